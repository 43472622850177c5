"""`deniable people`: who may sign in to the dashboard, and with which role."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shlex import quote
from typing import Any

import click

from deniable.commands import print_problems
from deniable.told import counted
from deniable_estimator.dashboard.access.people import (
    MOST_PEOPLE,
    SCHEMA,
    PeopleError,
    Person,
    check_name,
    hash_token,
    load_people,
    parse_people,
)
from deniable_estimator.dashboard.access.roles import ROLES
from deniable_estimator.dashboard.access.tokens import new_token
from deniable_estimator.dashboard.sharing.links import SharedLinks

__all__ = ["people"]


@click.group()
def people() -> None:
    """People who may sign in to the dashboard, with names and roles.

    They stand in the file that DENIABLE_DASHBOARD_PEOPLE names. A running dashboard reads it
    again when it changes.

    \b
    reader    sees pages, takes their files and pictures, reads the API
    analyst   also compares, plans, sends lists of strings, and shares views by link
    operator  everything, such as to revoke the links of others
    """


_file = click.option(
    "--file",
    "path",
    envvar="DENIABLE_DASHBOARD_PEOPLE",
    show_envvar=True,
    default="people.toml",
    show_default=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file of people.",
)
_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


@people.command()
@click.argument("name")
@click.option("--role", required=True, type=click.Choice(list(ROLES)), help="What NAME may do.")
@click.option("--no-token", is_flag=True, help="Make no token: a reverse proxy names this person.")
@click.option(
    "--replace", is_flag=True, help="Give somebody who is listed another role and a new token."
)
@_file
@_json
def add(name: str, role: str, no_token: bool, replace: bool, path: Path, as_json: bool) -> None:
    """Add NAME, and print the token once: only a hash of it is kept."""
    if wrong := check_name(name):
        raise click.UsageError(f"NAME {wrong}")
    token = "" if no_token else new_token()
    keys = {"role": role} | ({"token": hash_token(token)} if token else {})

    def change(document: Any, known: dict[str, Person]) -> None:
        same = next((each for each in known if each.casefold() == name.casefold()), None)
        if same is not None and not (replace and same == name):
            advice = (
                "--replace gives another role and a new token"
                if same == name
                else ("choose another name, or remove it first")
            )
            raise click.ClickException(f"{path} lists {same} already: {advice}")
        if same is None and len(known) >= MOST_PEOPLE:
            raise click.ClickException(f"{path} lists {MOST_PEOPLE} people, which is the most")
        entry = secrets.token_hex(8) if same is None else known[same].entry
        _set(document, name, keys | ({"entry": entry} if entry else {}))

    _edit(path, change)
    if as_json:
        click.echo(json.dumps({"name": name, "role": role, "token": token or None}))
        return
    if token:
        click.echo(f"token: {token}")
        click.echo(
            f"{name} signs in with it as {role}. It is shown once, and only its hash is in {path}.",
            err=True,
        )
    else:
        click.echo(f"{name} is {role} as soon as a proxy names {name}.")


@people.command("list")
@_file
@_json
def list_people(path: Path, as_json: bool) -> None:
    """List everybody: the name, the role, and whether there is a token."""
    known = _known(path)
    if as_json:
        told = [
            {"name": each.name, "role": each.role.word, "token": bool(each.hashed)}
            for each in known.values()
        ]
        click.echo(json.dumps({"people": told}))
        return
    width = max((len(name) for name in known), default=0)
    for person in known.values():
        way = "token" if person.hashed else "proxy"
        click.echo(f"{person.name:<{width}}  {person.role.word:<8}  {way}")
    if not known:
        click.echo(f"{path} lists nobody.", err=True)


@people.command()
@click.argument("name")
@click.option(
    "--links",
    envvar="DENIABLE_DASHBOARD_LINKS",
    show_envvar=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="The dashboard's file of links, from which those of NAME are deleted.",
)
@_file
@_json
def remove(name: str, links: Path | None, path: Path, as_json: bool) -> None:
    """Remove NAME, whose sessions, token and links end at once."""

    def change(document: Any, known: dict[str, Person]) -> None:
        if name not in known:
            raise click.ClickException(
                f"{path} does not list that name: `deniable people list` shows who is listed"
            )
        del document["people"][name]

    _known(path)
    _edit(path, change)
    revoked = _revoke(links, name)
    if as_json:
        click.echo(json.dumps({"removed": name, "links_revoked": revoked}))
        return
    click.echo(f"{name} is removed, and signed out at once.")
    if revoked is not None:
        click.echo(f"{counted(revoked, 'link')} of {name} revoked.")
    else:
        click.echo(
            f"A running dashboard ends the links of {name} with its next request. If it keeps "
            f"links in a file and does not run now, `deniable links revoke --by {quote(name)}` "
            "ends them.",
            err=True,
        )


def _revoke(links: Path | None, name: str) -> int | None:
    """Delete the links of a person, who may come back without them; how many there were, or None
    if there is no file of links."""
    if links is None or not links.is_file():
        return None
    try:
        return SharedLinks(str(links)).revoke_all_of([name])
    except (sqlite3.Error, OSError) as error:
        raise click.ClickException(
            f"{name} is removed, but the links in {links} cannot be revoked: {error}"
        ) from None


def _known(path: Path) -> dict[str, Person]:
    try:
        return load_people(path)
    except PeopleError as error:
        print_problems(error.problems, str(path))
        raise SystemExit(1) from None


def _set(document: Any, name: str, keys: dict[str, str]) -> None:
    import tomlkit

    if "people" not in document:
        document["people"] = tomlkit.table(is_super_table=True)
    table = document["people"].get(name)
    if table is None:
        document["people"][name] = tomlkit.table()
        table = document["people"][name]
    for key in [key for key in table if key not in keys]:
        del table[key]
    table.update(keys)


def _edit(path: Path, change: Callable[[Any, dict[str, Person]], None]) -> None:
    """Change the file in one step, alone, and keep its comments; a mistake changes nothing."""
    import tomlkit

    path = path.resolve()
    try:
        with _alone(path.parent):
            if path.exists():
                known = _known(path)
                before = path.read_text(encoding="utf-8")
            else:
                known, before = {}, f"schema = {SCHEMA}\n"
            document = tomlkit.parse(before)
            change(document, known)
            after = tomlkit.dumps(document)
            parse_people(after, str(path))
            _replace(path, after)
    except OSError as error:
        raise click.ClickException(
            f"{path} cannot be written: {error.strerror}. The folder must be writable too, as the "
            "file is replaced in one step"
        ) from None


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Wait until no other command changes a file in this folder."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _replace(path: Path, text: str) -> None:
    """Replace a file at once. Its mode and owner stay; a new one is for its owner alone."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            if path.exists():
                status = path.stat()
                with suppress(PermissionError):
                    os.fchown(file.fileno(), status.st_uid, status.st_gid)
                os.fchmod(file.fileno(), status.st_mode & 0o777)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
