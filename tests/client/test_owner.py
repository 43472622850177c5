"""What the owner of the device sees and can do: the page, the switch, and erasing."""

import html
import json
import re
from fractions import Fraction

import pytest
from click.testing import CliRunner

from deniable import Registry
from deniable.device.owner import Account, Owned, owner_page
from deniable.device.sent import OWNER_TEXTS, SentReport
from deniable.device.state import FILE_NAME, State
from deniable.tools import notice
from deniable.tools.commands import sent

from .conftest import REGISTRY, locked

HOSTILE = "<script>alert(1)</script>\"'&"


def text_of(page):
    """The words of a page that a person sees."""
    words = re.sub(r"<style>.*?</style>|<[^>]*>", " ", page, flags=re.S)
    return " ".join(html.unescape(words).split())


@pytest.fixture
def told(make_client, clock):
    """A device that has reported two days, and has a value that waits."""
    client = make_client()
    for _ in range(2):
        client.record("browser", "chrome")
        clock.days(1)
        assert client.flush()
    client.record("browser", "firefox")
    client.flush()
    return client


def test_the_page_needs_nothing_else(told):
    """No script, picture, font or address of anybody; its own policy forbids what is not there."""
    page = told.owner_page(opt_out_url="/off")
    names = set(re.findall(r"<(\w+)", page))
    assert not names & {"script", "img", "link", "iframe", "object", "embed"}
    assert not re.search(r"<[^>]*\b(src|srcset|style)=", page)
    assert re.search(r"<meta http-equiv=[^>]*content=\"default-src 'none'", page)


def test_everything_is_escaped():
    """Hostile names, values, words, reasons, addresses and recipients stay text."""
    named = f"recipient = {json.dumps(HOSTILE)}\ncontact = {json.dumps(HOSTILE)}\n"
    told = [HOSTILE] * 3
    report = SentReport(*told, "rejected", HOSTILE, HOSTILE, {HOSTILE: Fraction(1)})
    account = Account(HOSTILE, HOSTILE, 1, 1, 2)
    page = owner_page(
        [report],
        Owned(ledger=[account]),
        Registry.parse(named + REGISTRY),
        sending=True,
        app=HOSTILE,
        opt_out_url=f"/off?{HOSTILE}",
        erase_url=f"acme:{HOSTILE}",
    )
    assert "<script" not in page
    assert HOSTILE not in page
    assert text_of(page).count(HOSTILE) >= 10


@pytest.mark.parametrize(("count", "more"), [(200, None), (201, "1 "), (1_500, "1,300 ")])
def test_a_long_list_is_cut(count, more):
    """200 reports are listed, and how many more there are is said."""
    report = SentReport("m", "2026-11-20", "Which?", "sent", None, "It says yes.", {})
    text = text_of(owner_page([report] * count, Owned(), None, sending=True, app="editor"))
    assert text.count("It says yes.") == min(count, 200)
    rest = text.rpartition("It says yes.")[2]
    assert (f"And {more}older ones" in rest) if more else ("older" not in rest)


@pytest.mark.parametrize(
    "url",
    [
        *("javascript:alert(1)", " JavaScript:x", "data:text/html,x"),
        *("//evil.example/off", " //evil.example", "/\\evil.example", "\\\\evil.example"),
    ],
)
def test_an_address_that_runs_or_leads_away_is_refused(url):
    """What would run a script, or leads to another site without saying so, is a mistake of the
    app."""
    with pytest.raises(ValueError, match="an address of the page"):
        owner_page([], Owned(), None, sending=True, opt_out_url=url)


def run(*arguments):
    return CliRunner().invoke(sent, [str(each) for each in arguments])


def test_switching_off_ends_reports_for_good(told, make_client, clock, collector, tmp_path):
    """After `--switch-off` a client that runs and one that starts keep and send nothing, though
    the app consents; what waited is forgotten, and what was sent and spent is not."""
    sent_before = len(collector.bodies)
    assert run("--state-dir", tmp_path / "state", "--switch-off").exit_code == 0
    other = make_client()
    assert other.status == "no_consent"
    for client in (told, other):
        client.record("browser", "chrome")
        clock.days(1)
        client.flush()
        client.opt_in()
        assert client.status == "no_consent"
        assert [each.status for each in client.sent()] == ["sent", "sent"]
    assert len(collector.bodies) == sent_before
    state = State(tmp_path / "state")
    with state.transaction() as connection:
        assert connection.execute("SELECT count(*) FROM open_values").fetchone() == (0,)
        assert connection.execute("SELECT sum(answers) FROM ledger").fetchone() == (2,)
    state.close()
    assert run("--state-dir", tmp_path / "state", "--switch-on").exit_code == 0
    again = make_client()
    assert again.status == "on"
    again.record("browser", "chrome")
    clock.days(1)
    assert again.flush()
    assert len(collector.bodies) == sent_before + 1


def test_what_cannot_be_read_or_done_is_said(told, tmp_path, monkeypatch):
    """While another process holds the state, the page does not say that nothing was reported, and
    the command says what is done and what is not, and to run it again."""
    monkeypatch.setattr("deniable.device.state.PATIENCE", 0.0)
    told._troubles._on_trouble = None
    with locked(tmp_path / "state" / FILE_NAME):
        page = text_of(told.owner_page())
        assert OWNER_TEXTS["en"].nothing_sent not in page
        assert page.count("This cannot be read now.") == 3
        erased = run("--state-dir", tmp_path / "state", "--erase")
        assert (erased.exit_code, erased.stdout) == (1, "")
        assert re.search("nothing is erased.*run this again", erased.stderr, re.S)
        off = run("--state-dir", tmp_path / "state", "--switch-off")
        assert (off.exit_code, off.stdout) == (1, "Reporting is off.\n")
        assert re.search("not deleted yet.*run this again", off.stderr, re.S)


def test_erasing_keeps_the_ledger(told, registry, tmp_path):
    """`--erase` takes values and reports off the device and leaves what was spent, so that
    nothing is asked twice; reporting goes on."""
    told.close()
    done = run("--state-dir", tmp_path / "state", "--erase")
    assert done.exit_code == 0
    assert "the ledger stays" in done.output
    state = State(tmp_path / "state")
    with state.transaction() as connection:
        for table in ("reports", "open_values", "schemes"):
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
        assert connection.execute("SELECT sum(answers) FROM ledger").fetchone() == (2,)
    assert not state.switched_off
    state.close()


def test_the_texts_of_every_language_fill_in_the_same():
    """No language leaves out a number, a name, or a sentence."""
    for english, *others in (OWNER_TEXTS.values(), notice.TEXTS.values()):
        assert all(vars(texts).keys() == vars(english).keys() for texts in others)
        for name, told in (each for texts in others for each in vars(texts).items()):
            ours = vars(english)[name]
            pairs = [(ours, told)] if isinstance(ours, str) else _pairs(ours, told)
            for one, other in pairs:
                assert other
                assert set(re.findall(r"{[^}]*}", one)) == set(re.findall(r"{[^}]*}", other))


def _pairs(ours, told):
    if isinstance(ours, dict):
        assert ours.keys() == told.keys()
        return [(ours[key], told[key]) for key in ours]
    return list(zip(ours, told, strict=True))
