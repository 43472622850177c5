"""The dashboard's part of `deniable lint`: the files that an operator writes for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from deniable import Registry
from deniable.protocol.errors import MistakesError, Problem
from deniable_estimator.files import ANNOTATIONS, PEOPLE, file_in_folder


def check_files(
    registry: Registry, environ: Mapping[str, str]
) -> Iterator[tuple[str, Sequence[Problem]]]:
    """Each file that there is, and what is wrong with it: annotations, boards, people."""
    # Most who lint have none of these files, and need not wait for what reads them.
    annotations, people = (file_in_folder(name, environ) for name in (ANNOTATIONS, PEOPLE))
    if annotations.exists():
        yield str(annotations), _annotations(annotations, registry)
    if path := environ.get("DENIABLE_BOARDS"):
        yield from _boards(Path(path), registry)
    if people.exists():
        yield str(people), _people(people)


def _annotations(path: Path, registry: Registry) -> Sequence[Problem]:
    from deniable_estimator.annotations import load_annotations, warnings_of

    try:
        return warnings_of(load_annotations(path), registry.metrics)
    except MistakesError as error:
        return error.problems


def _boards(folder: Path, registry: Registry) -> Iterator[tuple[str, Sequence[Problem]]]:
    from deniable_estimator.dashboard.boards.definition import MOST_BOARDS, BoardFolder, load_board

    if not folder.is_dir():
        yield str(folder), [Problem(None, "", "is no folder: DENIABLE_BOARDS names one")]
        return
    kept = BoardFolder(folder, registry)
    for name in kept.refused:
        told = (
            "is no board: a name has up to 64 of a-z, 0-9, _ and -, and a folder up to "
            f"{MOST_BOARDS} boards"
        )
        yield str(folder / name), [Problem(None, "", told)]
    for name in kept.names:
        path = folder / f"{name}.toml"
        try:
            load_board(path, registry)
        except MistakesError as error:
            yield str(path), error.problems
        else:
            yield str(path), ()


def _people(path: Path) -> Sequence[Problem]:
    from deniable_estimator.dashboard.access.people import load_people

    try:
        load_people(path)
    except MistakesError as error:
        return error.problems
    return ()
