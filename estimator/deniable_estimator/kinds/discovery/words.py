"""What a discovery has found, in words: the strings, and what the list says and does not say."""

from __future__ import annotations

import math

from deniable_estimator.document.document import Column, Document, Frame, Note, WordedValue
from deniable_estimator.document.units import SHARES
from deniable_estimator.kinds import formats
from deniable_estimator.kinds.discovery.finds import Explained, Finds
from deniable_estimator.messages import counted, isolated, message, spaced
from deniable_estimator.statistics.expected import Reach

_CUT = message("cut")
_CUT_NOTE = message(
    "A string that is cut fills the declared length: longer ones are counted in it."
)
_FALSE = message(
    "At most 1% of the list is expected to be strings that no device has. The list reveals no more "
    "about a device than its report does."
)


def finds_document(finds: Finds, rows: int) -> Document:
    """The strings, the commonest first, at most so many."""
    top = max([1e-12, *(each.high for each in finds.finds)])
    columns = (
        Column("text", message("String"), "name"),
        Column(
            *("share", message("Share of all reports"), "estimate"),
            interval=formats.interval_title(finds.level),
            scale=("0", SHARES.full(top, top / 10)),
        ),
        Column("followed", message("Followed by"), "words"),
    )
    lines = [
        (
            WordedValue(each.text, each.name, tag=_CUT if each.cut else ""),
            formats.estimate_of(SHARES, each.share, each.low, each.high, axis=(0.0, top)),
            WordedValue(each.followed, ", ".join(each.followed))
            if each.followed
            else WordedValue((), message("nobody"), "quiet"),
        )
        for each in finds.finds[:rows]
    ]
    frame = Frame("finds", "", columns, lines, notes=_notes(finds, len(finds.finds) - len(lines)))
    return Document(
        "finds",
        formats.heading(finds),
        Note(headline(finds), "strong"),
        frames=(frame,),
        notes=(*formats.warned(finds.warnings), *formats.strange(finds)),
        reading=_reading(finds),
    )


def headline(finds: Finds) -> str:
    """What was found, in a sentence."""
    if not finds.n:
        return message("No reports in these days")
    if not finds.finds:
        return message("No string is common enough to be found")
    top = finds.finds[0]
    return counted(
        "{count:,} string was found: {text} ({share} of all reports).",
        "{count:,} strings were found. {text} is the commonest: {share} of all reports.",
        len(finds.finds),
        text=isolated(top.name),
        share=formats.estimate(SHARES, top.share, top.low, top.high),
    )


def _reading(finds: Finds) -> tuple[str, ...]:
    """Which part of all reports the list explains, and what has to be common enough for it."""
    told: list[str] = []
    if finds.explained.low > 0:
        told.append(
            counted(
                "It explains {explained} of all reports.",
                "Together they explain {explained} of all reports.",
                len(finds.finds),
                explained=_part(finds.explained),
            )
        )
    if finds.withheld.low > 0:
        told.append(
            message(
                "{withheld} of all reports hold no string: it was empty, denied, or had a letter "
                "outside of the alphabet.",
                withheld=_part(finds.withheld),
            )
        )
    if finds.reach is not None:
        told.append(_surfacing(finds.reach, finds.n))
        told.append(
            counted(
                "About {count:,} fake device can make a string of theirs appear here.",
                "About {count:,} fake devices can make a string of theirs appear here.",
                finds.reach.fakes,
            )
        )
    return tuple(told)


def _surfacing(reach: Reach, n: int) -> str:
    """From which share on strings are on the list; from 1 on, no share is enough."""
    if reach.sure_text >= 1:
        return message("With so few reports no string is found, however common it is.")
    told = [
        message(
            "With this crowd a string that looks like text is found in 95% of cases if {text} of "
            "the devices have it ({devices} reports).",
            text=formats.share_text(reach.sure_text),
            devices=f"{math.ceil(reach.sure_text * n):,}",
        )
    ]
    if reach.sure_any < 1:
        told.append(
            message("One of random letters needs {any}.", any=formats.share_text(reach.sure_any))
        )
    told.append(message("A rarer one may be missing, and what few devices have does not surface."))
    return spaced(told)


def _notes(finds: Finds, more: int) -> tuple[str, ...]:
    """What the list leaves out."""
    told: list[str] = []
    if more > 0:
        told.append(formats.not_listed(more))
    if any(each.cut for each in finds.finds):
        told.append(_CUT_NOTE)
    if finds.below:
        told.append(
            counted(
                "{count:,} string with a share below {least} is left out.",
                "{count:,} strings with a share below {least} are left out.",
                finds.below,
                least=formats.share_text(finds.minimum_share),
            )
        )
    if finds.denied:
        told.append(
            counted(
                "{count:,} string is left out because the deny list matches it.",
                "{count:,} strings are left out because the deny list matches them.",
                finds.denied,
            )
        )
    return (*told, _FALSE) if finds.finds else tuple(told)


def _part(part: Explained) -> str:
    """A share with its interval."""
    told = formats.estimate_of(SHARES, *part)
    return message("{share} ({between})", share=told.text, between=told.between)
