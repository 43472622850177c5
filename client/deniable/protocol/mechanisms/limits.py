"""What a mechanism may be built from: limits, and checks of epsilons and parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, TypeAlias

from deniable.protocol.errors import SchemeError

MAX_CELLS = 1 << 23
"""The most cells that a tally may have: 64 MB of counters, decoded in a second or two."""

MAX_EPSILON = 10.0
"""The largest epsilon a mechanism is designed for: at e**10 (22,026 to 1) noise hides nothing."""

MAX_MEMO_EPSILON = 20.0
"""The largest epsilon of a memo: at e**20 all but one memo in 10**8 are the true value."""


def check_epsilon(epsilon: float) -> float:
    """The epsilon, if a mechanism can be designed for it.

    Raises:
        SchemeError: it is not a number above 0 and at most `MAX_EPSILON`.
    """
    if not 0 < epsilon <= MAX_EPSILON:
        raise SchemeError.of(
            "epsilon_range",
            "epsilon must be above 0 and at most {most:g}, not {epsilon}",
            most=MAX_EPSILON,
            epsilon=epsilon,
        )
    return epsilon


def check_memo_epsilon(
    epsilon: float, lifetime_epsilon: float, key: str = "lifetime_epsilon"
) -> None:
    """Refuse a lifetime epsilon within which no memo can be drawn under reports of `epsilon`; `key`
    is what says it.

    Raises:
        SchemeError: it is not a number above `epsilon` and at most `MAX_MEMO_EPSILON`.
    """
    if not check_epsilon(epsilon) < lifetime_epsilon <= MAX_MEMO_EPSILON:
        raise SchemeError.of(
            "memo_range",
            "{key} limits what one memo reveals: it must be above epsilon {epsilon} and at most "
            "{most:g}, not {lifetime}",
            key=key,
            epsilon=epsilon,
            most=MAX_MEMO_EPSILON,
            lifetime=lifetime_epsilon,
        )


TEXT, SALT, FLAG = object(), object(), object()
"""In place of a bound: the parameter is a text; the salt of hashes; 0 or 1, which stand for False
and True."""


class Each(NamedTuple):
    """In place of a bound: the parameter is a list of integers, each from the first to the last."""

    lowest: int
    highest: int


Parameters: TypeAlias = Mapping[str, int | str | list[int]]
"""What fixes a mechanism, as a scheme publishes it."""

Bounds: TypeAlias = Mapping[str, Any]
"""For each parameter the lowest and the highest integer, or what stands in place of them; or a
`Parametrized` class, whose own parameters stand there."""


class Parametrized:
    """What is built from named parameters.

    Attributes:
        bounds: what each may be, in the order of the constructor. An attribute of the same name
            holds each, unless `parameters` says otherwise.
    """

    bounds: ClassVar[Bounds] = {}

    def parameters(self) -> Parameters:
        """All of them: integers, lists of integers, and texts."""
        found: dict[str, Any] = {}
        for name, bound in self.bounds.items():
            held = getattr(self, name)
            if isinstance(bound, type):
                found |= held.parameters()
            elif isinstance(bound, Each):
                found[name] = list(held)
            else:
                found[name] = int(held) if bound is FLAG else held
        return found


def check_parameters(mechanism: str, parameters: Mapping[str, Any], bounds: Bounds) -> list[Any]:
    """What a constructor takes for these parameters, each checked against its bound; lists become
    tuples, and what has parameters of its own is built.

    Raises:
        SchemeError: one is missing, of another kind or out of range, or there are others.
    """
    rest = dict(parameters)
    checked = _take(mechanism, rest, bounds)
    if rest:
        raise SchemeError(f"{mechanism}: unknown parameters {', '.join(sorted(rest))}")
    return checked


def _take(mechanism: str, rest: dict[str, Any], bounds: Bounds) -> list[Any]:
    """The same of the parameters that have bounds, which are taken out of `rest`."""
    checked: list[Any] = []
    for name, bound in bounds.items():
        if isinstance(bound, type) and issubclass(bound, Parametrized):
            owner = getattr(bound, "name", mechanism)
            checked.append(bound(*_take(owner, rest, bound.bounds)))
        else:
            checked.append(_checked(f"{mechanism}: {name}", rest.pop(name, None), bound))
    return checked


def _checked(name: str, value: Any, bound: Any) -> Any:
    """The value of one parameter."""
    if bound is TEXT or bound is SALT:
        if not isinstance(value, str):
            raise SchemeError(f"{name} must be a text, not {value!r}")
        if bound is SALT and (not value or "\0" in value):
            raise SchemeError(f"{name} must be a text without zero bytes")
        return value
    if isinstance(bound, Each):
        if not isinstance(value, list) or not all(_fits(each, bound) for each in value):
            raise SchemeError(
                f"{name} must be a list of integers from {bound.lowest} to {bound.highest}"
            )
        return tuple(value)
    lowest, highest = limits = (0, 1) if bound is FLAG else bound
    if not _fits(value, limits):
        raise SchemeError(f"{name} must be an integer from {lowest} to {highest}, not {value!r}")
    return bool(value) if bound is FLAG else value


def _fits(value: Any, bound: tuple[int, int]) -> bool:
    return type(value) is int and bound[0] <= value <= bound[1]
