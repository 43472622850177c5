"""Links by themselves: what their file holds, when they open, how many there may be."""

import os
from datetime import date, timedelta

import pytest

from deniable_estimator.dashboard.sharing import links as module
from deniable_estimator.dashboard.sharing.links import (
    KEPT_DAYS,
    MOST_OF_ONE,
    LinksError,
    SharedLink,
    SharedLinks,
)

TODAY = date(2026, 11, 21)
MAKERS = {"Ana": "here", "Eve": "away", "Bob": "left"}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "links.db"


@pytest.fixture
def links(path):
    return SharedLinks(str(path))


def made(links, maker="Ana", days=30):
    """A link to a page, made today."""
    return links.make(
        SharedLink(
            "/metric/browser", TODAY, TODAY + timedelta(days), "by=week", maker, note="for Bob"
        )
    )


def test_a_link_opens_until_its_last_day(links):
    """From the day on which it is made, through its last day in UTC, and never after it."""
    link = made(links, days=2)
    secret = link.secret
    assert link.until == TODAY + timedelta(days=2)
    assert link.address == "/metric/browser?by=week"
    opens = [links.find(secret, TODAY + timedelta(days=day)) for day in range(5)]
    assert opens == [link, link, link, None, None]


def test_a_secret_cannot_be_guessed_or_read(links, path):
    """It has 256 random bits; the file, which is its owner's alone, has a digest of it; the id
    opens nothing."""
    link = made(links)
    secret = link.secret
    assert len(secret) == 43
    assert len({made(links).secret for _ in range(20)}) == 20
    assert path.stat().st_mode & 0o777 == 0o600
    assert secret.encode() not in path.read_bytes()
    for wrong in (link.id, "", secret[:-1], secret + "A", secret.swapcase(), "\udce4", "%"):
        assert links.find(wrong, TODAY) is None


def test_revoking_holds_at_once_in_every_process(links, path):
    """Two that have the file open, as workers do, see each other's links and revocations; nothing
    of a revoked link stays in the file."""
    other = SharedLinks(str(path))
    link = made(links)
    secret = link.secret
    assert other.find(secret, TODAY) == link
    assert other.revoke(link.id) == link
    assert links.find(secret, TODAY) is None
    assert other.revoke(link.id) is None
    assert b"for Bob" not in path.read_bytes()


def test_links_that_have_ended_are_forgotten(links):
    """Thirty days after their end, with the next link that is made."""
    assert KEPT_DAYS == 30
    link = made(links, days=1)
    for day, kept in ((31, True), (32, False)):
        links.make(SharedLink("/x", TODAY + timedelta(day), TODAY + timedelta(day + 1)))
        assert (link in links.listed()) is kept


def test_there_are_so_many_links(links, monkeypatch):
    """Of one person; whoever is refused is told what to do."""
    assert MOST_OF_ONE == 500
    monkeypatch.setattr(module, "MOST_OF_ONE", 2)
    made(links)
    made(links)
    with pytest.raises(LinksError, match="You have 2 links, which is the most"):
        made(links)
    made(links, "Bob")
    links.revoke(links.listed("Ana")[0].id)
    made(links)


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_process_has_a_connection_of_its_own(links):
    """Links that were made before the fork open after it."""
    secret = made(links).secret
    child = os.fork()
    if not child:
        os._exit(0 if links.find(secret, TODAY) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_links_end_with_their_maker(path):
    """Those of whoever is away neither open nor are listed; those of whoever has left are deleted
    when they are found so, by their secret or in a list."""
    everybody = SharedLinks(str(path))
    kept, closed = made(everybody, "Ana"), made(everybody, "Eve")
    for way in (
        lambda links, left: links.find(left.secret, TODAY),
        lambda links, _: links.listed("Bob"),
    ):
        left = made(everybody, "Bob")
        links = SharedLinks(str(path), lambda link: MAKERS[link.maker])
        assert not way(links, left)
        assert links.listed() == [kept]
        assert links.find(kept.secret, TODAY) == kept
        assert links.find(closed.secret, TODAY) is None
        assert everybody.listed() == [closed, kept]
        assert everybody.find(left.secret, TODAY) is None
