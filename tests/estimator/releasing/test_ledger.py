"""The ledger of releases: charged first, kept before it is seen, the same for all processes."""

import multiprocessing
import os
import sqlite3
from contextlib import closing
from datetime import date
from pathlib import Path

import pytest

from deniable_estimator.releasing.charge import Charge
from deniable_estimator.releasing.release_ledger import LedgerError, ReleaseLedger
from deniable_estimator.releasing.words import epsilon_text

TODAY = date(2026, 11, 23)


def charge(epsilon, window="2026-11-01"):
    return Charge("browser", (window,), 8, "laplace", epsilon, 0.0, epsilon, epsilon**2 / 2)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "releases.sqlite"


def test_a_release_is_kept_once(path):
    """The second document of the same release is thrown away, and the first is returned."""
    ledger = ReleaseLedger(path, 1e-6, None)
    assert ledger.charged("a", TODAY, lambda _: charge(0.5)).document is None
    assert ledger.keep("a", "one", "csv").document == "one"
    assert ledger.keep("a", "two", "csv").document == "one"
    found = ledger.charged("a", TODAY, lambda _: charge(0.5))
    assert (found.document, found.csv) == ("one", "csv")
    assert ledger.spent().releases == 1


def test_a_crash_between_charge_and_document_spends_and_publishes_nothing(path):
    """If a process dies while noise is drawn, the charge stays, there is no document, and the same
    release is finished without a second charge."""
    ledger = ReleaseLedger(path, 1e-6, None)
    ledger.charged("a", TODAY, lambda _: charge(0.5))
    again = ReleaseLedger(path, 1e-6, 0.5)
    assert again.spent().epsilon == pytest.approx(0.5)
    assert [each.document for each in ledger.releases()] == [None]
    again.charged("a", TODAY, lambda _: charge(0.5))
    assert again.keep("a", "one", "csv").document == "one"
    assert again.spent().epsilon == pytest.approx(0.5)


def test_a_spent_budget_refuses_in_words_and_charges_nothing(path):
    """The message has what was spent, what it would be, the budget, and what to do."""
    ledger = ReleaseLedger(path, 1e-6, 0.9)
    ledger.charged("a", TODAY, lambda _: charge(0.5))
    with pytest.raises(
        LedgerError, match=r"epsilon 0\.5.* is spent \(1 so far\).* 1.*RELEASE_BUDGET"
    ):
        ledger.charged("b", TODAY, lambda _: charge(0.5))
    assert ledger.spent().releases == 1
    ledger.charged("c", TODAY, lambda _: charge(0.4))
    assert ledger.spent().epsilon == pytest.approx(0.9)


def test_a_budget_may_be_spent_to_the_last(path):
    """What is above the budget by the rounding of floats alone is allowed, and is not shown."""
    ledger = ReleaseLedger(path, 1e-6, 0.3)
    for name in "abc":
        ledger.charged(name, TODAY, lambda _: charge(0.1))
    assert ledger.spent().epsilon > 0.3
    assert epsilon_text(ledger.spent().epsilon) == "0.300"
    with pytest.raises(LedgerError, match="budget"):
        ledger.charged("d", TODAY, lambda _: charge(0.001))


def test_a_spent_delta_is_refused(path):
    """Deltas that add up to more than the ledger's are refused whatever the budget."""
    ledger = ReleaseLedger(path, 1e-8, 100.0)
    exact = Charge("browser", ("2026-11-01", "2026-11-02"), 8, "exact", 0.1, 6e-9)
    ledger.charged("a", TODAY, lambda _: exact)
    with pytest.raises(LedgerError, match="delta of the releases is spent"):
        ledger.charged("b", TODAY, lambda _: exact)


def test_others_cannot_read_the_file(path):
    """It is made for its owner alone."""
    ReleaseLedger(path, 1e-6, None).charged("a", TODAY, lambda _: charge(0.5))
    assert path.stat().st_mode & 0o077 == 0


def _releases(path, results):
    ledger = ReleaseLedger(Path(path), 1e-6, 0.5)
    for number in range(20):
        try:
            cost = charge(0.25, f"2026-11-{number % 2 + 1:02}")
            ledger.charged(f"same {number}", TODAY, lambda _, cost=cost: cost)
        except LedgerError:
            results.put((None, True))
            continue
        kept = ledger.keep(f"same {number}", multiprocessing.current_process().name, "")
        results.put((f"{number} {kept.document}", False))


def test_two_processes_never_spend_more_than_the_budget(path):
    """Both ask for the same releases at once: each is made once, both get the same document, and
    the budget holds."""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    workers = [context.Process(target=_releases, args=(str(path), results)) for _ in range(2)]
    for worker in workers:
        worker.start()
    found = [results.get(timeout=60) for _ in range(40)]
    for worker in workers:
        worker.join(60)
    assert {worker.exitcode for worker in workers} == {0}
    documents = [text for text, refused in found if not refused]
    assert len(documents) == 4
    assert len(set(documents)) == 2
    ledger = ReleaseLedger(path, 1e-6, 0.5)
    assert ledger.spent().releases == 2
    assert ledger.spent().epsilon <= 0.5


def test_nobody_else_charges_while_a_charge_is_calculated(path):
    """It rests on all earlier ones, so none may come in between."""
    ledger = ReleaseLedger(path, 1e-6, None)

    def cost(earlier):
        with (
            closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as other,
            pytest.raises(sqlite3.OperationalError, match="locked"),
        ):
            other.execute("BEGIN IMMEDIATE")
        return charge(0.1)

    assert ledger.charged("a", TODAY, cost).charge.epsilon == 0.1


@pytest.fixture(scope="module")
def spent_ledger(tmp_path_factory):
    """The bytes of a ledger with ten releases, and what they spend."""
    path = tmp_path_factory.mktemp("ledger") / "releases.sqlite"
    ledger = ReleaseLedger(path, 1e-6, None)
    for number in range(10):
        cost = charge(0.1, f"2026-11-{number + 1:02}")
        ledger.charged(f"id{number}", TODAY, lambda _, cost=cost: cost)
        ledger.keep(f"id{number}", "{}" + " " * 300, "csv" * 50)
    spent = ledger.spent().epsilon
    return path.read_bytes(), spent


def _spent_by(path, content):
    """What the ledger and the pages say of a file: None if it is refused. Both are asked, and a
    refusal is the only error."""
    path.write_bytes(content)
    told = []
    for ask in (
        lambda: ReleaseLedger(path, 1e-6, None).spent().epsilon,
        lambda: ReleaseLedger(path, 1e-6, None).account().total.epsilon,
    ):
        try:
            told.append(ask())
        except LedgerError:
            told.append(None)
    return told[0], told[1]


def test_a_ledger_that_is_cut_at_any_byte_forgets_nothing(path, spent_ledger):
    """Whatever part of the file is left: it is refused, or says what was spent, never less. SQLite
    takes a file of up to one byte for a new one; that is refused too."""
    whole, spent = spent_ledger
    cuts = [*range(20), 99, 100, 101, *range(127, len(whole), 251), len(whole) - 1]
    for cut in cuts:
        assert set(_spent_by(path, whole[:cut])) <= {None, spent}, cut
    for cut in (0, 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(LedgerError, match="is cut off"):
            ReleaseLedger(path, 1e-6, None).charged("a", TODAY, lambda _: charge(0.1))
    assert _spent_by(path, whole) == (spent, spent)


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM releases WHERE id = 'b'",
        "UPDATE releases SET charge = replace(charge, '0.1', '0.0') WHERE id = 'a'",
        "UPDATE releases SET made = '2026-01-01' WHERE id = 'b'",
        "UPDATE releases SET chain = '' WHERE id = 'b'",
    ],
)
def test_a_row_that_was_changed_or_lost_refuses_every_release(path, change):
    """The rows after it have links that do not fit any more, so nothing more is charged, and no
    total is stated of those that are left."""
    ledger = ReleaseLedger(path, 1e-6, None)
    for name in "abc":
        ledger.charged(name, TODAY, lambda _: charge(0.1))
    with sqlite3.connect(path) as opened:
        assert opened.execute(change).rowcount == 1
    opened.close()
    with pytest.raises(LedgerError, match=r"is damaged.* was changed"):
        ledger.charged("d", TODAY, lambda _: charge(0.1))
    with pytest.raises(LedgerError, match="is damaged"):
        ledger.account()


def test_a_ledger_is_made_whole_or_not_at_all(path, monkeypatch):
    """A process that dies while it makes the file leaves none; one that comes second takes the
    first one's, and no other file stays in the folder."""
    real = os.link

    def die(one, other):
        raise OSError("no space left on device")

    monkeypatch.setattr("deniable_estimator.releasing.release_ledger.os.link", die)
    ledger = ReleaseLedger(path, 1e-6, None)
    with pytest.raises(LedgerError, match="no space left"):
        ledger.charged("b", TODAY, lambda _: charge(0.1))
    assert list(path.parent.iterdir()) == []

    def late(one, other):
        monkeypatch.setattr("deniable_estimator.releasing.release_ledger.os.link", real)
        ledger.charged("a", TODAY, lambda _: charge(0.1))
        real(one, other)

    monkeypatch.setattr("deniable_estimator.releasing.release_ledger.os.link", late)
    ledger.charged("b", TODAY, lambda _: charge(0.1))
    assert ledger.spent().releases == 2
    assert list(path.parent.iterdir()) == [path]


def test_a_full_disk_charges_nothing_or_keeps_the_charge(path, monkeypatch):
    """If there is no room for a charge, nothing is charged. If there is none for the document, the
    charge stays, nothing was handed out, and the same release is finished once there is room."""
    ledger = ReleaseLedger(path, 1e-6, None)
    ledger.charged("a", TODAY, lambda _: charge(0.1))

    def full(*given, connect=sqlite3.connect, **more):
        connection = connect(*given, **more)
        connection.execute(f"PRAGMA max_page_count = {path.stat().st_size // 4096}")
        return connection

    monkeypatch.setattr("deniable_estimator.releasing.release_ledger.sqlite3.connect", full)
    with pytest.raises(LedgerError, match="full"):
        ledger.keep("a", "{}" * 100_000, "csv")
    (kept,) = ledger.releases()
    assert kept.document is None

    def charge_more():
        for number in range(200):
            ledger.charged(f"b{number}", TODAY, lambda _: charge(0.1, "2026-11-02"))

    with pytest.raises(LedgerError, match="full"):
        charge_more()
    # The charge that had no room is not counted, and those before it are.
    names = {each.id for each in ledger.releases()}
    assert names == {"a", *(f"b{number}" for number in range(len(names) - 1))}
    monkeypatch.undo()
    assert ledger.keep("a", "one", "csv").document == "one"
    assert ledger.charged("c", TODAY, lambda _: charge(0.1)).document is None


def test_a_ledger_holds_so_many_releases(path, monkeypatch):
    """The last one is charged, one more is not."""
    monkeypatch.setattr("deniable_estimator.releasing.release_ledger.MOST_RELEASES", 2)
    ledger = ReleaseLedger(path, 1e-6, None)
    for name in ("a", "b"):
        ledger.charged(name, TODAY, lambda _: charge(0.1))
    with pytest.raises(LedgerError, match="holds 2 releases, which is the most"):
        ledger.charged("c", TODAY, lambda _: charge(0.1))
    assert ledger.spent().releases == 2
