"""The cases of client/vectors/discovery.json and prefix_tree.json.

`python tests/client/discovery_cases.py` computes both files anew.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from deniable.mechanisms import PrefixTree, ProjectiveGeometry, Report
from deniable.mechanisms.prefix_code import base, head, place, token
from deniable.types import Discovery
from deniable.types.deny import denied

VECTORS = Path(__file__).parents[2] / "client" / "vectors"
FILE = VECTORS / "discovery.json"
MECHANISM = VECTORS / "prefix_tree.json"

ABOUT = (
    "Discovery. heads: the bytes (hexadecimal) of a text that can be found, with so many levels of "
    "two bytes and this alphabet. places: the tokens of a head, and in each row of K places the "
    "place of token 0 after the prefix (base) and the place of the head. denied: whether a text "
    "fits a pattern. recorded: the text that waits for a recorded one, with these keys of the "
    "registry. invalid: texts that no device takes; \\ud800 stands for half of a surrogate pair."
)

MECHANISM_ABOUT = (
    "Prefixes of strings: parameters, rows (width, packing, columns per report), exact odds "
    "(e**epsilon); for some items the head (hexadecimal), its place in each row, and the chance "
    "(likelihood) of some reports (row, column). Parameters with an `error` must be refused."
)

HEADS = (
    *(("", 4, "bytes"), ("a", 4, "bytes"), ("abcde", 4, "bytes"), ("abcdefgh", 4, "bytes")),
    *(("abcdefghi", 4, "bytes"), ("Ålesund", 3, "bytes"), ("A\u030alesund", 3, "bytes")),
    *(("привет", 3, "bytes"), ("привет", 8, "bytes"), ("天气预报", 2, "bytes")),
    *(("a\U0001f600b", 2, "bytes"), ("ab\0cd", 8, "bytes"), ("\0ab", 8, "bytes")),
    *(("two\nlines", 8, "bytes"), ("abcdefg\n", 3, "bytes"), ("tab\there", 8, "bytes")),
    *(("\x7f", 8, "bytes"), (" ", 8, "bytes"), ("\u202egnp.exe", 8, "bytes")),
    *(("<script>", 4, "printable"), ("naïve", 4, "printable"), ("naïve", 1, "printable")),
    *(("main.c_2-X", 8, "identifier"), ("a b", 8, "identifier"), ("A", 8, "lowercase")),
    *(("cdn.example-1.org", 16, "host"), ("CDN.example.org", 16, "host"), ("word", 2, "lowercase")),
    *(("c0ffee", 8, "hex"), ("coffee", 8, "hex"), ("c0ffee!", 3, "hex"), ("00", 16, "hex")),
    *(("a" * 40, 16, "bytes"), ("a" + "\u0301" * 1_100, 16, "bytes")),
    *(("e" + "\u0301" * 1022 + "\u0323x", 2, "bytes"), ("x" * 1023 + "\U0001f600", 2, "bytes")),
)

PLACES = (
    *(("demo", 4, 960800, "abcde"), ("demo", 8, 712980, "weather"), ("demo", 1, 13, "")),
    *(("search", 16, 488281, "Ålesund, Norge, i dag og i morgen"), ("søk", 3, 40000, "天气预报")),
)

DENIED = (
    *(("*@*", "me@example.org"), ("*@*", "me"), ("token=*", "token="), ("token=*", "a token=1")),
    *(("TOKEN=*", "Token=1"), ("a*b*c", "aXbYc"), ("a*b*c", "abc"), ("a*b*c", "acb")),
    *(("ab*ba", "aba"), ("ab*ba", "abba"), ("a", "a"), ("a", "aa"), ("**a**", "xax")),
    *(("ÅL*", "Ålesund"), ("ål*", "Ålesund"), ("a.c", "abc"), ("[a]*", "a"), ("a*a*a", "aa")),
    *(("*\U0001f600*", "a\U0001f600b"), ("a?c", "a?c"), ("* *", "two words"), ("*ab*ab", "ab")),
)

RECORDED: tuple[tuple[dict[str, Any], str], ...] = (
    ({}, "weather"),
    ({}, ""),
    ({}, "a string that is longer than sixteen bytes"),
    ({"max_length": 4}, "привет"),
    ({"deny": ["*@*"]}, "somebody.long@example.org"),
    ({"deny": ["*.exe"], "max_length": 8}, "tool.exe.backup"),
    ({"deny": ["*@*"]}, "nobody"),
    ({"alphabet": "hex", "max_length": 4}, "c0ffee"),
    ({"alphabet": "hex", "max_length": 4}, "c0fXee"),
    ({"alphabet": "lowercase"}, "Weather"),
    ({}, "A\u030alesund"),
    ({}, "ab\0cd"),
    ({}, "a\nb"),
)

INVALID = ("\ud800", "ab\udc00cd", "\udc00\ud800")


def _places(salt: str, levels: int, width: int, text: str) -> dict[str, Any]:
    found = head(text, levels)
    rows = range(levels + 1)
    return {
        "salt": salt,
        "levels": levels,
        "width": width,
        "text": text,
        "tokens": [token(found, row) for row in range(levels)],
        "bases": [base(salt, row, found[: 2 * row], width) for row in rows],
        "places": [place(salt, row, levels, found, width) for row in rows],
    }


def cases() -> dict[str, Any]:
    """What discovery.json holds, but for its first line."""
    recorded = []
    for keys, text in RECORDED:
        given = {"max_length": 16, "alphabet": "bytes", "deny": [], **keys}
        kind = Discovery(given["max_length"], given["alphabet"], tuple(given["deny"]))
        recorded.append({**given, "text": text, "waits": kind.normalize(text)})
    return {
        "heads": [
            {
                "text": text,
                "levels": levels,
                "alphabet": alphabet,
                "head": head(text, levels, alphabet).hex(),
            }
            for text, levels, alphabet in HEADS
        ],
        "places": [_places(*case) for case in PLACES],
        "denied": [
            {"pattern": pattern, "text": text, "denied": denied(text, [pattern])}
            for pattern, text in DENIED
        ],
        "recorded": recorded,
        "invalid": list(INVALID),
    }


_HALF = 1 << 52
_PLANE: dict[str, Any] = {"size": 13, "q": 3, "t": 3, "threshold": _HALF}

MECHANISMS: tuple[tuple[PrefixTree, tuple[str, ...]], ...] = (
    (
        PrefixTree("city", 2, ProjectiveGeometry(13, 3, 3, _HALF)),
        ("Oslo", "Ålesund", "A\u030alesund", ""),
    ),
    (
        PrefixTree("city", 3, ProjectiveGeometry(7, 2, 3, _HALF + _HALF // 3), "hex"),
        ("c0ffee", "c0f", "coffee"),
    ),
    (PrefixTree.design("search", 2.0, 8), ("weather", "weather tomorrow morning")),
    (PrefixTree.design("search", 4.0, 16, "printable"), ("https://example.org/", "naïve")),
    (PrefixTree.design("søk", 2.5, 4), ("天气预报",)),
)

REFUSED = (
    ({"salt": "", "levels": 2, "alphabet": "bytes", **_PLANE}, "salt"),
    ({"salt": "a\0b", "levels": 2, "alphabet": "bytes", **_PLANE}, "salt"),
    ({"salt": "city", "levels": 0, "alphabet": "bytes", **_PLANE}, "levels"),
    ({"salt": "city", "levels": 17, "alphabet": "bytes", **_PLANE}, "levels"),
    ({"salt": "city", "levels": 2, "alphabet": "klingon", **_PLANE}, "alphabet"),
    ({"salt": "city", "levels": 2, "alphabet": "bytes", **_PLANE, "size": 12}, "size"),
    ({"salt": "city", "levels": 2, **_PLANE}, "alphabet"),
    (
        {**PrefixTree.design("city", 2.0, 8).parameters(), "levels": 9},
        "cells in all",
    ),
)


def _mechanism(made: PrefixTree, items: tuple[str, ...]) -> dict[str, Any]:
    described = []
    for item in items:
        places = [made.place(row, item) for row in range(made.levels + 1)]
        reports = [(row, place % made.width) for row, place in enumerate(places[:3])]
        reports += [(0, 0), (made.levels, made.width - 1)]
        described.append(
            {
                "item": item,
                "head": made.head(item).hex(),
                "places": places,
                "reports": [
                    {
                        "row": row,
                        "columns": column,
                        "likelihood": str(made.likelihood(Report(row, column), item)),
                    }
                    for row, column in reports
                ],
            }
        )
    return {
        "parameters": made.parameters(),
        "odds": str(made.odds),
        "rows": [[row.width, row.packing.value, row.columns] for row in made.rows],
        "items": described,
    }


def mechanisms() -> list[dict[str, Any]]:
    """What prefix_tree.json holds, but for its first line."""
    good = [_mechanism(made, items) for made, items in MECHANISMS]
    return good + [{"parameters": given, "error": why} for given, why in REFUSED]


def take() -> None:
    """Write both files anew."""
    _write(FILE, ABOUT, cases())
    _write(MECHANISM, MECHANISM_ABOUT, {"mechanisms": mechanisms()})


def _write(path: Path, about: str, parts: dict[str, Any]) -> None:
    lines = [f'{{\n  "about": {json.dumps(about)}']
    for key, values in parts.items():
        # Halves of surrogate pairs have no UTF-8.
        each = ",\n".join(
            f"    {json.dumps(value, ensure_ascii=key == 'invalid')}" for value in values
        )
        lines.append(f'  "{key}": [\n{each}\n  ]')
    path.write_text(",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    take()
