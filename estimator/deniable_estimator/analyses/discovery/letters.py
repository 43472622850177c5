"""Which two bytes may follow a prefix: UTF-8 (RFC 3629, section 4) and the letters of an alphabet.

A prefix may end inside a letter, so it leaves a state: which bytes the letter still lacks. A letter
that is cut by the declared length is allowed; it ends in whatever state it is.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from deniable.protocol.mechanisms.prefix_code import ALPHABETS, WINDOW

DEAD = -1
"""No text goes on like this."""
BETWEEN = 0
"""Between two letters."""
ENDED = 1
"""The string is over."""

# One, two or three more continuation bytes; and the next one limited, after E0, ED, F0 and F4,
# so that no letter is written longer than need be, is half of a surrogate pair, or is too large.
_ONE, _TWO, _THREE, _E0, _ED, _F0, _F4 = range(2, 9)
_STATES = 9


@lru_cache(maxsize=8)
def steps(alphabet: str) -> NDArray[np.int8]:
    """The state after a token in a state, shape (9, 65,536); DEAD where none is allowed.

    `alphabet` is a name out of `prefix_code.ALPHABETS`.
    """
    singles = [each for each in ALPHABETS[alphabet] if each < 0x80]
    others = max(ALPHABETS[alphabet]) >= 0x80
    one = np.full((_STATES, 256), DEAD, np.int8)
    one[BETWEEN, singles] = BETWEEN
    one[BETWEEN, 0] = one[ENDED, 0] = ENDED
    if others:
        one[BETWEEN, 0xC2:0xE0] = _ONE
        one[BETWEEN, 0xE0:0xF0] = _TWO
        one[BETWEEN, 0xE0], one[BETWEEN, 0xED] = _E0, _ED
        one[BETWEEN, 0xF0:0xF5] = _THREE
        one[BETWEEN, 0xF0], one[BETWEEN, 0xF4] = _F0, _F4
    one[_ONE, 0x80:0xC0] = BETWEEN
    one[_TWO, 0x80:0xC0] = _ONE
    one[_THREE, 0x80:0xC0] = _TWO
    one[_E0, 0xA0:0xC0] = _ONE
    one[_ED, 0x80:0xA0] = _ONE
    one[_F0, 0x90:0xC0] = _TWO
    one[_F4, 0x80:0x90] = _TWO
    two = np.where(one[:, :, None] == DEAD, np.int8(DEAD), one[one])
    found: NDArray[np.int8] = two.reshape(_STATES, WINDOW)
    found.flags.writeable = False
    return found
