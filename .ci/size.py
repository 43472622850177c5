"""What `make size` prints: files, code lines and words of each room.

A code line holds a token: blank lines, comments and docstrings do not count.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from collections import Counter
from pathlib import Path

ROOMS = {
    "client": ("client/", ".py"),
    "collector": ("collector/", ".py"),
    "estimator": ("estimator/", ".py"),
    "demo": ("demo/", ".py"),
    "tests": ("tests/", ".py"),
    "benchmarks": ("benchmarks/", ".py"),
    "docs and others": ("", ".py"),
    "TypeScript": ("client/web/src/", ".ts"),
    "Lua": ("", ".lua"),
    "templates": ("estimator/", ".html"),
}
PRODUCT = ("client", "collector", "estimator", "demo")
WORDS = ("docs/", "benchmarks/README.md", "tests/README.md")
COMMENT = re.compile(r"/\*.*?\*/|\{#.*?#\}", re.DOTALL)
"""Those of TypeScript and of templates that may have several lines."""
SILENT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}


def code_lines(path: Path) -> int:
    """The lines of a file that hold code."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        lines_left = map(str.strip, COMMENT.sub("", text).splitlines())
        return sum(bool(line) and not line.startswith(("//", "--")) for line in lines_left)
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in SILENT and token.type != tokenize.ENDMARKER:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if ast.get_docstring(node, clean=False) is not None and first is not None:
                lines.difference_update(range(first.lineno, (first.end_lineno or 0) + 1))
    return len(lines)


def main() -> None:
    """Print the table."""
    listed = subprocess.run(["git", "ls-files"], check=True, capture_output=True, text=True)  # noqa: S607
    paths = [each for each in listed.stdout.splitlines() if Path(each).is_file()]
    files: Counter[str] = Counter()
    code: Counter[str] = Counter()
    for path in paths:
        for room, (folder, suffix) in ROOMS.items():
            if path.startswith(folder) and path.endswith(suffix):
                files[room] += 1
                code[room] += code_lines(Path(path))
                break
    print(f"{'':16}{'files':>7}{'code lines':>12}")
    for room in ROOMS:
        print(f"{room:16}{files[room]:7}{code[room]:12,}")
        if room == PRODUCT[-1]:
            total = sum(files[each] for each in PRODUCT), sum(code[each] for each in PRODUCT)
            print(f"{'product':16}{total[0]:7}{total[1]:12,}")
    pages = [each for each in paths if each.endswith(".md")]
    pages = [each for each in pages if "/" not in each or each.startswith(WORDS)]
    words = sum(len(Path(each).read_text(encoding="utf-8").split()) for each in pages)
    print(f"{'documentation':16}{len(pages):7}{words:12,} words")


if __name__ == "__main__":
    main()
