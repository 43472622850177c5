"""What a mechanism may be built from: limits, and checks of epsilons, sizes and parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from deniable.protocol.errors import SchemeError
from deniable.protocol.randomness import PRECISION

MAX_CELLS = 1 << 23
"""The most cells that a tally may have: 64 MB of counters, decoded in a second or two."""

MAX_EPSILON = 10.0
"""The largest epsilon a mechanism is designed for: at e**10 (22,026 to 1) noise hides nothing."""

MAX_MEMO_EPSILON = 20.0
"""The largest epsilon of a memo: at e**20 all but one memo in 10**8 are the true value."""


def check_size(mechanism: str, size: int, largest: int = MAX_CELLS) -> None:
    """Refuse a number of values over which no mechanism can be built.

    Raises:
        SchemeError: fewer than two values, or more than `largest`.
    """
    if size < 2:
        raise SchemeError.of(
            "too_few_values",
            "{mechanism}: a domain needs at least two values, not {size}",
            mechanism=mechanism,
            size=size,
        )
    if size > largest:
        raise SchemeError.of(
            "too_many_values",
            "{mechanism}: a domain of {size:,} values is above the limit of {most:,}; merge rare "
            'values into an `other`, or use type = "string"',
            mechanism=mechanism,
            size=size,
            most=largest,
        )


def check_epsilon(epsilon: float) -> float:
    """The epsilon, if a mechanism can be designed for it.

    Raises:
        SchemeError: it is not a number above 0 and at most `MAX_EPSILON`.
    """
    if not 0 < epsilon <= MAX_EPSILON:
        raise SchemeError.of(
            "epsilon_range",
            "epsilon must be above 0 and at most {most:g}, not {epsilon}",
            most=MAX_EPSILON,
            epsilon=epsilon,
        )
    return epsilon


def check_memo_epsilon(epsilon: float, lifetime_epsilon: float) -> None:
    """Refuse a lifetime epsilon within which no memo can be drawn under reports of `epsilon`.

    Raises:
        SchemeError: it is not a number above `epsilon` and at most `MAX_MEMO_EPSILON`.
    """
    if not check_epsilon(epsilon) < lifetime_epsilon <= MAX_MEMO_EPSILON:
        raise SchemeError.of(
            "memo_range",
            "lifetime_epsilon limits what one memo reveals: it must be above epsilon {epsilon} and "
            "at most {most:g}, not {lifetime}",
            epsilon=epsilon,
            most=MAX_MEMO_EPSILON,
            lifetime=lifetime_epsilon,
        )


def check_threshold(mechanism: str, threshold: int, owned: int, columns: int) -> None:
    """Refuse a chance out of 2**53 of a column that the true value owns, where each value owns so
    many of the columns.

    Raises:
        SchemeError: it does not favour the truth, or cannot hide it.
    """
    if not owned << PRECISION < threshold * columns < columns << PRECISION:
        raise SchemeError(
            f"{mechanism}: threshold {threshold} of 2**{PRECISION} is outside "
            f"({owned}/{columns}, 1): epsilon would not be positive and finite"
        )


SALT = object()
"""In place of a bound: the parameter is the salt of hashes."""


class Each(NamedTuple):
    """In place of a bound: the parameter is a list of integers, each from the first to the last."""

    lowest: int
    highest: int


Bounds: TypeAlias = Mapping[str, Any]
"""For each parameter the lowest and the highest integer, `Each` or SALT."""


def check_salt(mechanism: str, salt: Any) -> str:
    """The salt of hashes, if it can be one.

    Raises:
        SchemeError: it is no text, empty, or holds a zero byte.
    """
    if not isinstance(salt, str):
        raise SchemeError(f"{mechanism}: salt must be a text, not {salt!r}")
    if not salt or "\0" in salt:
        raise SchemeError(f"{mechanism}: salt must be a text without zero bytes")
    return salt


def check_parameters(mechanism: str, parameters: Mapping[str, Any], **bounds: Any) -> list[Any]:
    """The values of the named parameters, each checked against its bound (see `Bounds`); lists
    become tuples.

    Raises:
        SchemeError: one is missing, of another kind or out of range, or there are others.
    """
    unknown = sorted(set(parameters) - set(bounds))
    if unknown:
        raise SchemeError(f"{mechanism}: unknown parameters {', '.join(unknown)}")
    checked: list[Any] = []
    for name, bound in bounds.items():
        value = parameters.get(name)
        if bound is SALT:
            checked.append(check_salt(mechanism, value))
            continue
        lowest, highest = bound
        if isinstance(bound, Each):
            if not isinstance(value, list) or not all(_fits(each, bound) for each in value):
                raise SchemeError(
                    f"{mechanism}: {name} must be a list of integers from {lowest} to {highest}"
                )
            value = tuple(value)
        elif not _fits(value, bound):
            raise SchemeError(
                f"{mechanism}: {name} must be an integer from {lowest} to {highest}, not {value!r}"
            )
        checked.append(value)
    return checked


def _fits(value: Any, bound: tuple[int, int]) -> bool:
    return type(value) is int and bound[0] <= value <= bound[1]
