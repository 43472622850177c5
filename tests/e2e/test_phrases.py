"""Phrases that readers stumbled over have not come back: in README, docs, docstrings, comments,
messages, pages and catalogues. Each has a plain replacement, which the failure shows."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = [
    path
    for folder in ("client/deniable", "collector", "estimator", "demo")
    for path in sorted((ROOT / folder).rglob("*.py"))
]
PAGES = [
    *ROOT.glob("*.md"),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "estimator").rglob("*.html")),
    *sorted((ROOT / "estimator").rglob("*.svg")),
]
CATALOGUE = ROOT / "estimator/deniable_estimator/dashboard/translations/zh_Hans.po"

PLAIN = {
    r"cannot be quoted": "plausible deniability",
    r"questions? after the fact": "metrics must be declared first",
    r"that the noise leaves": "with 95% confidence interval",
    r"what would a metric see": "what can this metric detect",
    r"keeps? their noise": "memoize noise",
    r"epsilon of a lifetime": "lifetime epsilon",
    r"show it elsewhere": "embed and share",
    r"made to add up": "normalized (sums to 100%)",
    r"\beven guess": "50/50 guess",
    r"noisy memor(y|ies)": "memo, or permanent randomized response",
    r"keys of memories": "keys of memos",
    r"nobody's (news|string)": "say what is meant",
    r"behind the app's back": "background threads",
    r"crowd of one mind": "devices with the same value",
    r"cry wolf": "false alarm",
    r"stands? on the ground floor": "depends on",
    r"(disk|file|reader|lock) is in the way": "does not work, or: prevents it",
    r"is told by `": "called as by",
    r"\b(one|first|fewer|many|few|usual|honest|remembered|\}|\d) answers?\b": "report",
    r"\bdevices?( have| has| that)? answer": "report",
}
"""What readers stumbled over, as a pattern -> what to write instead."""

CHINESE = {
    "对半": "五五开",
    "标准误差": "标准误",
    "几率": "胜算（odds）",
    "被询问": "上报",
    "回答(?!“是”)": "上报",
    "作答": "上报",
    "通常的一年": "典型的一年",
    "都不突出": "无法与噪声区分",
    "在别处展示": "嵌入与分享",
    "正在计算答案": "正在计算结果",
    '任何人"': "全部负责人",
    "一致化": "归一化（合计 100%）",
}
"""The same for Chinese."""


def prose(path: Path) -> str:
    """What people read of a file: of Python its strings and comments, of others all of it."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return text
    strings = [
        node.value
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    comments = [token.string for token in tokens if token.type == tokenize.COMMENT]
    return "\n".join((" | ".join(strings), *comments))


def found(patterns: dict[str, str], paths: list[Path]) -> Iterator[str]:
    for path in paths:
        text = re.sub(r"\s+(?:# )?", " ", prose(path))
        for pattern, plain in patterns.items():
            for match in re.finditer(pattern, text, re.IGNORECASE):
                place = path.relative_to(ROOT)
                yield f"{place}: “{match[0]}”: write “{plain}”"


def test_no_riddle_has_come_back() -> None:
    """No text in English has a phrase of the list."""
    assert list(found(PLAIN, [*CODE, *PAGES])) == []


def test_no_chinese_riddle_has_come_back() -> None:
    """Neither the pages' Chinese nor that for owners of devices has a phrase of its list."""
    texts = ROOT / "client" / "deniable" / "owner_texts.py"
    assert list(found(CHINESE, [CATALOGUE, texts])) == []


def test_a_percent_sign_follows_its_number() -> None:
    """Docs, pages, commands and code write 95%, in English and in Chinese, never with a space."""
    folder = ROOT / "tests" / "golden" / "outputs"
    outputs = [p for p in folder.iterdir() if p.suffix in (".html", ".svg", ".txt")]
    further = [ROOT / "benchmarks" / "README.md", *sorted((ROOT / "docs").glob("*/*.md"))]
    pattern = {r"(?<![a-z]-)[\d}] %(?=[ ,.;:)|<]|$)(?! \(?\d)": "95%"}
    assert list(found(pattern, [*CODE, *PAGES, CATALOGUE, *outputs, *further])) == []
    assert re.search(*pattern, "a 95 % interval")


@pytest.mark.parametrize("text", ["an even\n    guess is right", "# the disk is in\n# the way"])
def test_a_phrase_is_found_across_lines(text: str) -> None:
    """A phrase that is broken over two lines of a comment or a docstring is found as well."""
    flat = re.sub(r"\s+(?:# )?", " ", text)
    assert any(re.search(pattern, flat) for pattern in PLAIN)
