"""The OpenAPI 3.1 description of the read API, from what the code declares: the addresses, the
parameters (`parameters.py`), and what the responses mean, and parameters that the API alone has
(`schemas.toml`, here and of each kind)."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from flask import Response

from deniable_estimator import kinds
from deniable_estimator.dashboard.access.people import Role
from deniable_estimator.dashboard.api.parameters import COMMON
from deniable_estimator.dashboard.api.representations import Form
from deniable_estimator.inputs import REQUIRED, Input, day_in
from deniable_estimator.kinds.registry import KINDS


@dataclass(frozen=True)
class Endpoint:
    """An address of the API, and what it takes and gives."""

    path: str
    respond: Callable[..., Response]
    """Called with the parameters, the form that is asked for, and what the path names: the
    `reading` of a metric that the token reaches. Its docstring is the summary."""
    scope: str
    reply: str
    """The schema of its JSON."""
    takes: tuple[Input, ...]
    """Its parameters."""
    role: Role = Role.READER
    """The least one that people need."""
    csv: bool = False
    """Whether it can be sent as CSV too."""
    sends: bool = False
    """Whether it also takes POST, with a list of strings as the body."""
    errors: tuple[int, ...] = ()
    """Statuses that it has beside those of all addresses like it."""

    @property
    def name(self) -> str:
        """The endpoint's name."""
        return self.respond.__name__.removeprefix("list_").removeprefix("show_")

    @property
    def forms(self) -> tuple[Form, ...]:
        """What it can be sent as."""
        return ("json", "csv") if self.csv else ("json",)


ENDPOINTS: list[Endpoint] = []
"""All addresses of the API."""

METRICS, ESTIMATES, RELEASES = "read:metrics", "read:estimates", "read:releases"
"""Scopes."""

NAMED = "/metrics/<name>"


def endpoint(
    path: str, scope: str, reply: str, takes: Sequence[Input] = (), **more: Any
) -> Callable[[Callable[..., Response]], Callable[..., Response]]:
    """Let a function respond at an address, as `Endpoint` says; `takes` are its parameters beside
    those of all addresses."""

    def add(respond: Callable[..., Response]) -> Callable[..., Response]:
        ENDPOINTS.append(Endpoint(path, respond, scope, reply, (*COMMON, *takes), **more))
        return respond

    return add


def describe() -> dict[str, Any]:
    """The document."""
    paths: dict[str, Any] = {}
    for each in sorted(ENDPOINTS, key=lambda each: each.path):
        operations = paths.setdefault("/api/v1" + re.sub(r"<(\w+)>", r"{\1}", each.path), {})
        operations["get"] = _operation(each)
        if each.sends:
            operations["post"] = _operation(each, sent=True)
    document = _tables()["_document"]
    parts = {
        **document["components"],
        "schemas": _schemas(),
        "responses": {code: _error(code, told) for code, told in _tables()["_errors"].items()},
    }
    return {**document, "paths": paths, "components": parts}


_OF_ALL = (400, 401, 403, 406, 429, 503)


def _operation(each: Endpoint, *, sent: bool = False) -> dict[str, Any]:
    named = re.findall(r"<(\w+)>", each.path)
    codes = {*_OF_ALL, *each.errors, *((404,) if named else ()), *((409, 413, 415) if sent else ())}
    content: dict[str, Any] = {"application/json": {"schema": _reference(each.reply)}}
    if each.csv:
        told = "a header and a line for each row (RFC 4180)"
        content["text/csv"] = {"schema": {"type": "string", "description": told}}
    result: dict[str, Any] = {"description": "the result", "content": content}
    responses: dict[str, Any] = {"200": result}
    if not sent:
        headers = _tables()["_document"]["components"]["headers"]
        result["headers"] = {name: {"$ref": f"#/components/headers/{name}"} for name in headers}
        responses["304"] = {"description": "it is what the ETag in If-None-Match stands for"}
    responses |= {str(code): {"$ref": f"#/components/responses/{code}"} for code in sorted(codes)}
    summary, _, rest = (each.respond.__doc__ or "").partition("\n")
    more = f"Scope: `{each.scope}`. " + " ".join(rest.split())
    operation = {
        "operationId": f"{each.name}_strings" if sent else each.name,
        "summary": "The same of the strings in the body" if sent else summary.rstrip("."),
        "description": "The list is not kept once the response is sent. " * sent + more.strip(),
        "security": [{"bearer": [each.scope]}, {"cookie": []}],
        "parameters": [
            *(
                {"name": name, "in": "path", "required": True, **_tables()["_paths"][name]}
                for name in named
            ),
            *_query(each),
        ],
        "responses": responses,
    }
    if sent:
        lines = {"type": "string", "description": "one string on each line, UTF-8"}
        body = {
            "text/plain": {"schema": lines},
            "application/json": {"schema": _reference("Candidates")},
        }
        operation["requestBody"] = {"required": True, "content": body}
    return operation


def _query(each: Endpoint) -> list[dict[str, Any]]:
    found = []
    for given in each.takes:
        schema = _schema(given)
        if given.default not in (None, "", (), {}, REQUIRED):
            schema["default"] = given.default
        if given.name == "format":
            schema["enum"] = list(each.forms)
        one = {"name": given.name, "in": "query", "required": given.needed}
        one |= _described(_meaning(each, given), schema)
        if given.many:
            one |= {"style": "form", "explode": True}
        found.append(one)
    return found


_JSON: dict[Any, str] = {int: "integer", float: "number", bool: "boolean"}


def _schema(given: Input) -> dict[str, Any]:
    """What an input takes."""
    if given.choices:
        return {"enum": list(given.choices)}
    if given.many:
        least = {"minItems": 1} if given.needed else {}
        return {"type": "array", "items": {"type": "string"}, "maxItems": given.many, **least}
    found: dict[str, Any] = {"type": _JSON.get(given.read, "string")}
    if given.read is day_in:
        found["format"] = "date"
    ends = {"minimum": given.low, "maximum": given.highest}
    if given.read not in (int, float):
        ends = {"maxLength": given.high}
    return found | {name: end for name, end in ends.items() if math.isfinite(end)}


def _meaning(each: Endpoint, given: Input) -> str:
    meanings: dict[str, str] = _tables()["_parameters"]
    own = meanings.get(f"{each.name}.{given.name}", meanings.get(given.name))
    return own or str.__str__(given.help)


def _described(about: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": about, "schema": schema}


def _error(code: str, told: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        "description": told,
        "content": {"application/problem+json": {"schema": _reference("Problem")}},
    }
    if code in ("429", "503"):
        found["headers"] = {"Retry-After": _described("seconds", {"type": "integer"})}
    if code == "401":
        found["headers"] = {"WWW-Authenticate": _described("Bearer", {"type": "string"})}
    return found


@lru_cache
def _tables() -> dict[str, dict[str, Any]]:
    own = Path(__file__).with_name("schemas.toml")
    of_kinds = [each for at in kinds.__path__ for each in sorted(Path(at).glob("*/schemas.toml"))]
    tables: dict[str, dict[str, Any]] = {}
    for path in (own, *of_kinds):
        tables |= tomllib.loads(path.read_text(encoding="utf-8"))
    names = [each.answer.kind for each in KINDS]
    tables["_types"]["kind"] = {"enum": names}
    tables["Estimate"] = {"_is": " or ".join(name.title() for name in names)}
    return tables


def _schemas() -> dict[str, Any]:
    """The schemas of `schemas.toml`, whose head explains how it is written."""
    tables = _tables()
    found: dict[str, Any] = {}
    for name, table in tables.items():
        if name.startswith("_"):
            continue
        keys = {**tables[table["_base"]], **table} if "_base" in table else table
        about = {"description": table["_about"]} if "_about" in table else {}
        if "_is" in table:
            found[name] = {**about, **_type(table["_is"])}
            continue
        properties, required = {}, []
        for key, told in keys.items():
            if not key.startswith("_"):
                kind, _, meaning = told.partition(": ")
                needed = kind.removeprefix("optional ")
                if needed == kind:
                    required.append(key)
                properties[key] = _type(needed) | ({"description": meaning} if meaning else {})
        found[name] = {
            "type": "object", **about, "properties": properties, "required": required
        }  # fmt: skip
    return found


def _type(kind: str) -> dict[str, Any]:
    if kind.startswith("("):
        return _type(kind[1:-1])
    if not kind.startswith(("list of (", "map of (")) and kind.endswith(" or null"):
        return {"anyOf": [_type(kind.removesuffix(" or null")), {"type": "null"}]}
    for before, schema, key in (
        ("list", "array", "items"),
        ("map", "object", "additionalProperties"),
    ):
        if kind.startswith(f"{before} of "):
            return {"type": schema, key: _type(kind.removeprefix(f"{before} of "))}
    if " or " in kind:
        return {"anyOf": [_type(each) for each in kind.split(" or ")]}
    if kind.startswith("'"):
        return {"enum": [each.strip("'") for each in kind.split("/")]}
    if kind.isdecimal():
        return {"const": int(kind)}
    known: dict[str, Any] | None = _tables()["_types"].get(kind)
    return _reference(kind) if known is None else dict(known)


def _reference(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}
