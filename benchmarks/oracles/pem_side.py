"""pure-ldp's prefix extending method, inside the peers' own environment.

    python pem_side.py ORACLE EPSILON K SEED < words

reads words of equally many small letters with their devices, and prints the K likeliest words.
Every device reports through the library's client. ORACLE is OLH, its default, or CMS.
"""

from __future__ import annotations

import random
import sys
import types

import numpy as np

sys.modules["statsmodels"] = types.ModuleType("statsmodels")
sys.modules["statsmodels.api"] = types.ModuleType("statsmodels.api")

_zeros = np.zeros
# pure-ldp's sketches ask for an array of shape None, which numpy refuses by now.
np.zeros = lambda shape, *rest, **more: _zeros(() if shape is None else shape, *rest, **more)

from pure_ldp.frequency_oracles import CMSClient, CMSServer, LHClient, LHServer  # noqa: E402
from pure_ldp.heavy_hitters import PEMClient, PEMServer  # noqa: E402

LETTERS = list("abcdefghijklmnopqrstuvwxyz")


def number(text: str) -> int:
    """The word as a number in base 26."""
    found = 0
    for letter in text:
        found = found * 26 + ord(letter) - 97
    return found


def main() -> None:
    oracle, epsilon, most, seed = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    random.seed(int(seed))
    np.random.seed(int(seed))
    held = [line.split("\t") for line in sys.stdin.read().splitlines()]
    length = len(held[0][0])
    shape = {"start_length": 1, "max_string_length": length, "fragment_length": 1}
    common = {**shape, "alphabet": LETTERS, "index_mapper": number}
    if oracle == "CMS":
        server = CMSServer(epsilon, 128, 1024)
        client = CMSClient(epsilon, server.get_hash_funcs(), 1024)
    else:
        server = LHServer(epsilon, 26, use_olh=True, index_mapper=number)
        client = LHClient(epsilon, 26, use_olh=True, index_mapper=number)
    devices = PEMClient(epsilon, fo_client=client, **common)
    tallies = PEMServer(epsilon, fo_server=server, **common)
    for word, count in held:
        for _ in range(int(count)):
            tallies.aggregate(devices.privatise(word))
    print(*tallies.find_heavy_hitters(k=most)[0], sep="\n")


if __name__ == "__main__":
    main()
