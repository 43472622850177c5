"""Translatable messages for English sentences of the packages below, which know no translation."""

from __future__ import annotations

from deniable import ValueListError
from deniable_estimator.messages import message, recognized, sentence

__all__ = [
    "list_mistake",
    "told_forecast",
    "told_http",
    "told_mechanism",
    "told_reason",
    "told_scheme_mistake",
]

_MECHANISMS = {
    "subset_selection": sentence("subset selection"),
    "memoized_subset_selection": sentence("memoized subset selection"),
    "unary_encoding": sentence("unary encoding"),
    "hadamard_response": sentence("hadamard response"),
    "projective_geometry": sentence("projective geometry"),
    "hashed_projective_geometry": sentence("hashed projective geometry"),
    "cohort_local_hashing": sentence("cohort local hashing"),
    "count_mean_sketch": sentence("count mean sketch"),
    "hadamard_count_mean_sketch": sentence("hadamard count mean sketch"),
    "memoized_local_hashing": sentence("memoized local hashing"),
    "basic_rappor": sentence("basic rappor"),
    "rappor": sentence("rappor"),
    "one_time_rappor": sentence("one time rappor"),
}

_REASONS = (
    sentence(
        "subset selection has the least possible error, and a report of {length} bytes is within "
        "{most}"
    ),
    sentence(
        "subset selection would need {length} bytes a report, above {most}; projective geometry "
        "needs {bytes} and loses little"
    ),
    sentence(
        "subset selection of a memo has {loss} times the least possible variance, in {length} "
        "bytes a report"
    ),
    sentence(
        "subset selection of a memo would need {length} bytes a report, above {most}; cohort "
        "local hashing needs {bytes}"
    ),
    sentence(
        "under lifetime epsilon {epsilon} subset selection of a memo would have {loss} times the "
        "least variance; cohort local hashing loses less"
    ),
)

_MEMO_BOUNDS = (
    sentence(
        "lifetime_epsilon limits what one memo reveals: it must be above epsilon {epsilon} and at "
        "most {most}, not {lifetime}"
    ),
)

_FORECASTS = (
    sentence(
        "no usable signal with {devices} devices at sample_rate {rate}: a 1 % share takes {needed} "
        "devices, or a larger epsilon or sample_rate"
    ),
    sentence(
        "with {devices} devices at sample_rate {rate} no share below {share} stands out in a day: "
        "a 1 % share takes {needed} devices, or a larger epsilon or sample_rate"
    ),
    sentence(
        "with {devices} devices at sample_rate {rate} no share below {share} stands out in a week: "
        "a 1 % share takes {needed} devices, or a larger epsilon or sample_rate"
    ),
    sentence(
        "with {devices} devices at sample_rate {rate} no share below {share} stands out in a "
        "month: a 1 % share takes {needed} devices, or a larger epsilon or sample_rate"
    ),
)

_OF_HTTP = (
    sentence("Bad Request"),
    sentence("Unauthorized"),
    sentence("Forbidden"),
    sentence("Not Found"),
    sentence("Method Not Allowed"),
    sentence("Request Entity Too Large"),
    sentence("Internal Server Error"),
    sentence("Service Unavailable"),
    sentence("The browser (or proxy) sent a request that this server could not understand."),
    sentence(
        "The requested URL was not found on the server. If you entered the URL manually please "
        "check your spelling and try again."
    ),
    sentence("The method is not allowed for the requested URL."),
)

_SOURCES = (sentence("The list"), sentence("Your list"))

_PLACED = sentence("{source}, line {line}: {mistake}")
_WHOLE = sentence("{source} {mistake}")

_LIST_MISTAKES = (
    sentence("cannot be read: {why}"),
    sentence("is not UTF-8 text; save the file in that encoding"),
    sentence("holds no value; write one on each line"),
    sentence("holds a control character; remove it"),
    sentence("is longer than {bytes} bytes; remove it"),
    sentence("is blank; remove it"),
    sentence("repeats line {line}; remove one of the two"),
    sentence("is missing; choose a file"),
    sentence("has more than {most} strings; send fewer, or part of them at a time"),
)


def told_mechanism(name: str) -> str:
    """A mechanism's name in words."""
    words = _MECHANISMS.get(name)
    return name.replace("_", " ") if words is None else message(words)


def told_reason(reason: str) -> str:
    """Why a mechanism is chosen."""
    return recognized(reason, _REASONS)


def told_scheme_mistake(mistake: str) -> str:
    """Why no mechanism can be built."""
    return recognized(mistake, _MEMO_BOUNDS)


def told_forecast(warning: str) -> str:
    """What the expected crowd cannot detect."""
    return recognized(warning, _FORECASTS)


def told_http(text: str) -> str:
    """The name of an HTTP error, or Werkzeug's description; other text unchanged."""
    return message(text) if text in _OF_HTTP else text


def list_mistake(error: ValueListError) -> str:
    """What is wrong with a list of values."""
    text = str(error)
    source = recognized(error.source, _SOURCES)
    if error.line is None:
        rest = text.removeprefix(f"{error.source} ")
        return message(_WHOLE, source=source, mistake=recognized(rest, _LIST_MISTAKES))
    rest = text.removeprefix(f"{error.source}, line {error.line}: ")
    mistake = recognized(rest, _LIST_MISTAKES)
    return message(_PLACED, source=source, line=error.line, mistake=mistake)
