"""Signing in with a token, once in a form or by a login link, and signing out."""

from __future__ import annotations

from flask import Blueprint, Response, make_response, redirect, render_template, request
from flask.typing import ResponseReturnValue

from deniable_estimator.dashboard.access.door import door, end_session, remember, signed_in
from deniable_estimator.dashboard.access.people import Person
from deniable_estimator.dashboard.access.requests import for_people, local
from deniable_estimator.dashboard.access.roles import Role
from deniable_estimator.dashboard.problems import ApiProblem

access = Blueprint("access", __name__)


@access.get("/login")
def sign_in() -> ResponseReturnValue:
    """The form; or, by a login link, straight in."""
    target = local(request.args.get("next", "/"))
    token = request.args.get("token")
    if token is None:
        return redirect(target, 303) if signed_in() else _form(target)
    if door().takes_link:
        if door().opens_by_link(token):
            remember(Person("", Role.OPERATOR))
            return redirect(target, 303)
        if (slowed := _wrong(target)) is not None:
            return slowed
    # The redirect takes the token out of the address bar whether or not it was right.
    return redirect("/" if signed_in() else "/login?used=1", 303)


@access.post("/login")
def sign_in_post() -> ResponseReturnValue:
    """Begin a session of the person whose token the form has."""
    target = local(request.form.get("next", "/"))
    person = door().person(request.form.get("token", "").strip())
    if person is None:
        return _wrong(target) or (_form(target, wrong=True), 403)
    remember(person)
    return redirect(target, 303)


@access.post("/logout")
def sign_out() -> ResponseReturnValue:
    """End the session, for whoever else has a copy of its cookie too."""
    end_session()
    return redirect("/login", 303)


def _wrong(target: str) -> Response | None:
    """Count a wrong token. The form with how long to wait, for a network that has shown too
    many."""
    try:
        door().guesses.wrong(request)
    except ApiProblem as error:
        if not for_people(request):
            raise
        refusal = make_response(_form(target, slowed=error.description), error.code)
        refusal.headers["Retry-After"] = str(error.retry_after)
        return refusal
    return None


def _form(target: str, *, wrong: bool = False, slowed: str | None = None) -> str:
    return render_template(
        "login.html",
        target=target,
        wrong=wrong,
        slowed=slowed,
        used=request.args.get("used") == "1",
    )
