"""The dashboard's part of `deniable lint`: the files that an operator writes for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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
        from deniable_estimator.annotations import load_annotations, warnings_of

        wrong = _problems(load_annotations, annotations)
        told = wrong or warnings_of(load_annotations(annotations), registry.metrics)
        yield str(annotations), told
    if path := environ.get("DENIABLE_BOARDS"):
        yield from _boards(Path(path), registry)
    if people.exists():
        from deniable_estimator.dashboard.access.people import load_people

        yield str(people), _problems(load_people, people)


def _problems(read: Callable[..., object], *given: object) -> Sequence[Problem]:
    """What is wrong with a file for its reader."""
    try:
        read(*given)
    except MistakesError as error:
        return error.problems
    return ()


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
        yield str(path), _problems(load_board, path, registry)
