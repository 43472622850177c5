"""The reference of HTTP: both OpenAPI documents, which the servers themselves serve, as Markdown.

The pages docs/reference/*.md include the files that this writes into .make/openapi/.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from sphinx.application import Sphinx

from deniable_collector.documents import description
from deniable_estimator.dashboard.api import description as api_description

Json: TypeAlias = Mapping[str, Any]

_BOUNDS = (
    ("minimum", "at least {}"),
    ("exclusiveMinimum", "above {}"),
    ("maximum", "at most {}"),
    ("exclusiveMaximum", "below {}"),
    ("minLength", "{} characters or more"),
    ("maxLength", "{} characters or fewer"),
    ("minItems", "{} items or more"),
    ("maxItems", "{} items or fewer"),
    ("pattern", "`{}`"),
    ("default", "default `{}`"),
)
METHODS = ("get", "post", "options", "put", "delete")


def describe(document: Json) -> str:
    """The operations of an OpenAPI document, then its schemas, as Markdown from the third level."""
    lines: list[str] = []
    for path, operations in document["paths"].items():
        for method in METHODS:
            if method in operations:
                lines += _operation(f"{method.upper()} {path}", operations[method], document)
    lines += ["", "## Schemas", ""]
    for name, schema in document["components"].get("schemas", {}).items():
        lines += ["", f"### {name}", "", _flat(schema.get("description", "")), ""]
        rows = list(_properties(schema))
        kind = _kind({key: each for key, each in schema.items() if key != "description"})
        lines += _table(("field", "type", "meaning"), rows) if rows else [kind]
    return "\n".join(lines) + "\n"


def _operation(title: str, operation: Json, document: Json) -> Iterator[str]:
    yield from ("", f"### {title}", "", _flat(operation.get("summary", "")), "")
    yield from (_flat(operation.get("description", "")), "")
    found = [_resolved(each, document) for each in operation.get("parameters", ())]
    if found:
        rows = []
        for each in found:
            required = ", required" if each.get("required") else ""
            schema = each.get("schema", {})
            meaning = _flat(each.get("description") or schema.get("description", ""))
            rows.append((f"`{each['name']}`", f"{each['in']}{required}", _kind(schema), meaning))
        yield from (*_table(("parameter", "in", "type", "meaning"), rows), "")
    bodies = operation.get("requestBody", {}).get("content", {})
    if bodies:
        rows = [(f"`{name}`", _kind(each.get("schema", {}))) for name, each in bodies.items()]
        yield from (*_table(("body", "type"), rows), "")
    rows = []
    for status, response in operation["responses"].items():
        each = _resolved(response, document)
        kinds = {
            _kind(content.get("schema", {})) for content in each.get("content", {}).values()
        } - {""}
        rows.append((status, _flat(each.get("description", "")), ", ".join(sorted(kinds))))
    yield from _table(("response", "meaning", "body"), rows)


def _resolved(part: Json, document: Json) -> Json:
    """What a reference names."""
    while "$ref" in part:
        found: Any = document
        for name in part["$ref"].removeprefix("#/").split("/"):
            found = found[name.replace("~1", "/")]
        part = found
    return part


def _properties(schema: Json) -> Iterator[tuple[str, str, str]]:
    required = schema.get("required", ())
    for name, each in schema.get("properties", {}).items():
        optional = "" if name in required else " (optional)"
        yield f"`{name}`{optional}", _kind(each), _flat(each.get("description", ""))


def _kind(schema: Json | bool) -> str:
    """A type in words, with links to the schemas that it names."""
    if isinstance(schema, bool) or not schema:
        return "anything" if schema is True else ""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    for key in ("oneOf", "anyOf", "allOf"):
        if key in schema:
            found = list(dict.fromkeys(filter(None, (_kind(each) for each in schema[key]))))
            return (" or " if key != "allOf" else " with ").join(found)
    if "enum" in schema:
        return ", ".join(f"`{each}`" for each in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    types = schema.get("type", ())
    names = [types] if isinstance(types, str) else list(types)
    words = " or ".join(names)
    if "array" in names and (inner := _kind(schema.get("items", {}))):
        words = words.replace("array", f"list of {inner}")
    bounds = [text.format(schema[key]) for key, text in _BOUNDS if schema.get(key, "") != ""]
    return _cell(", ".join([words, *bounds])) if words or bounds else ""


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    lines = [head, tuple("---" for _ in head), *rows]
    return ["| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines]


def _cell(text: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", text)


def _flat(text: str) -> str:
    """One line; braces of paths and the like are no markup."""
    return " ".join(text.split()).replace("<", "&lt;")


def _write(app: Sphinx) -> None:
    root = Path(__file__).parents[3]
    folder = root / ".make" / "openapi"
    folder.mkdir(parents=True, exist_ok=True)
    read = api_description.describe()
    for name, document in {"collector": description(), "read": read}.items():
        (folder / f"{name}.md").write_text(describe(document), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
