"""Other ways to a histogram of numbers, on the same cells: what is drawn for each, as shares.

* Square wave, with expectation maximization and smoothing (Li et al., SIGMOD 2020).
* Piecewise mechanism (Wang et al., ICDE 2019), whose reports are decoded likewise.
* Haar: a binary hierarchy of left minus right, each level by one bit of a Hadamard transform
  (Cormode, Kulkarni and Srivastava, VLDB 2019), made possible from the top down as well.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_STEPS = 10_000
_OUTPUTS = 512


def square_wave_channel(epsilon: float, cells: int) -> Floats:
    """The probability of each output for each cell, shape (cells, outputs)."""
    odds = math.exp(epsilon)
    half = (epsilon * odds - odds + 1) / (2 * odds * (odds - 1 - epsilon))
    reach = max(0, round(half * cells))
    near = 2 * reach + 1
    low = 1 / (near * odds + cells - 1)
    channel = np.full((cells, cells + 2 * reach), low)
    for cell in range(cells):
        channel[cell, cell : cell + near] = odds * low
    return channel


def piecewise_channel(epsilon: float, cells: int) -> Floats:
    """The same for outputs from -C to C, in 512 parts; a cell stands for its middle."""
    root = math.exp(epsilon / 2)
    reach = (root + 1) / (root - 1)
    edges = np.linspace(-reach, reach, _OUTPUTS + 1)
    middle = (np.arange(cells) + 0.5) / cells * 2 - 1
    start = (reach + 1) / 2 * middle - (reach - 1) / 2
    high = (math.exp(epsilon) - root) / (2 * root + 2)
    inside = np.minimum(edges[1:], (start + reach - 1)[:, None])
    inside = np.maximum(inside - np.maximum(edges[:-1], start[:, None]), 0.0)
    channel = high / math.exp(epsilon) * np.diff(edges) + high * (1 - math.exp(-epsilon)) * inside
    return np.asarray(channel / channel.sum(axis=1, keepdims=True))


def smoothed(channel: Floats, cells: Floats, epsilon: float) -> Floats:
    """Expectation maximization with a smoothing of (1, 2, 1) / 4, with the paper's stop."""
    shares = np.full(len(channel), 1 / len(channel))
    before = -math.inf
    total = cells.sum()
    for _ in range(_STEPS):
        rate = shares @ channel
        shares = shares * (channel @ (cells / total / rate))
        wide = np.pad(shares, 1)
        smooth = (wide[:-2] + 2 * shares + wide[2:]) / 4
        smooth[0], smooth[-1] = (2 * shares[0] + shares[1]) / 3, (2 * shares[-1] + shares[-2]) / 3
        shares = smooth / smooth.sum()
        likelihood = float(cells @ np.log(shares @ channel))
        if abs(likelihood - before) < 1e-3 * math.exp(epsilon):
            break
        before = likelihood
    return shares


def drawn_by_channel(
    channel: Floats, shares: Floats, reports: int, epsilon: float, rng: np.random.Generator
) -> Floats:
    """The histogram of one crowd by a channel of outputs."""
    rate = shares @ channel
    return smoothed(channel, rng.multinomial(reports, rate / rate.sum()).astype(float), epsilon)


def drawn_by_haar(shares: Floats, reports: int, epsilon: float, rng: np.random.Generator) -> Floats:
    """The histogram of one crowd by the binary hierarchy; its bits are normal for many reports."""
    height = int(math.log2(len(shares)))
    odds = math.exp(epsilon)
    noise = ((odds + 1) / (odds - 1)) ** 2
    found = np.ones(1)
    for level, count in enumerate(rng.multinomial(reports, np.full(height, 1 / height))):
        left, right = shares.reshape(2**level, 2, -1).sum(axis=2).T
        apart = left - right + rng.normal(0, math.sqrt(noise / count), 2**level)
        # No part is below 0 or above its parent.
        apart = np.clip(apart, -found, found)
        found = np.stack([(found + apart) / 2, (found - apart) / 2], axis=1).ravel()
    return found
