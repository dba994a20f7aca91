"""Whoever reads the database at rest cannot tell which report came with which invitation.

The attacker has every byte of the database, in use and stale: heap, indexes, write-ahead log; all
keys that are left; and the export, so that it recognises reports, by id or by the marks of keys it
has. It guesses, for each invitation, which report was sent with it: by equal transaction numbers,
by the order of rows, transactions or bytes, and by what stands next in a file. Of 40 guesses by
pure chance one is right on average; 9 or more with a probability below 1 / 9! = 3e-6, so a test
here fails by chance less than once in 10^3 runs (there are some hundred guesses in each). The
known-bad twins are the layout before arrivals were sealed, keys that stay, and a report that is
written in the transaction that spends its invitation: the same attacks join all of it.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sql
from server_processes import Process
from servers import Live, added, bytes_of, fresh_postgres, plan, report, serving, waiting_in

from discreet.collection.announcement import Announcement
from discreet.server import database as db
from discreet.server import running, settling
from discreet.server.arrivals import Arrival, store_arrivals
from discreet.server.database import Database
from discreet.server.intake import ReportRow, pack_integers
from discreet.server.invitations import create_codes, hash_code
from discreet.server.keys import Key, KeyFolder, format_key_name
from discreet.server.sealed_arrivals import CODE_MARK, REPORT_MARK, count_waiting, load_live_keys
from discreet.server.settling import MAX_WAIT_SECONDS, settle_arrivals, settle_piece
from discreet.server.tallies import create_tally

PEOPLE = 40
CHANCE = 9
FOUND = PEOPLE // 2
"""More than this is no chance: the attack works."""
Pairs = dict[bytes, bytes]
"""Hash of an invitation -> id of the report that came with it: what nobody may learn."""
Guess = list[tuple[bytes, bytes]]
Places = list[tuple[int, bytes]]
SPENT_IN_SQLITE = b"\x09"
"""Stands before the hash in the record of a spent invitation: the type of the constant 1."""


def right(guessed: Sequence[tuple[bytes, bytes]], truth: Pairs) -> int:
    return sum(truth.get(bytes(hash_)) == bytes(id_) for hash_, id_ in guessed)


# ---------------------------------------------------------------- attacks


def by_transactions(database: Database) -> list[Guess]:
    """On PostgreSQL: equal transactions, and the order of transactions and of places."""
    if database.is_sqlite:
        return []
    with database.read_engine.connect() as connection:

        def column(query: str) -> list[Any]:
            return [tuple(row) for row in connection.exec_driver_sql(query)]

        joined = column(
            "SELECT i.hash, r.id FROM invitation i JOIN report r ON i.xmin = r.xmin "
            "AND i.survey = r.survey WHERE i.spent > 0"
        )
        guesses: list[Guess] = [list(dict(joined).items())]  # one for each invitation
        for order in ("xmin::text::bigint, ctid", "ctid"):
            hashes = column(f"SELECT hash FROM invitation WHERE spent > 0 ORDER BY {order}")
            ids = column(f"SELECT id FROM report ORDER BY {order}")
            pairs = zip((h for (h,) in hashes), (i for (i,) in ids), strict=True)
            guesses.append(list(pairs))
        return guesses


def keys_left(database: Database) -> list[Key]:
    """Every key whose file is still there."""
    folder = KeyFolder(lambda: database.keys.folder)  # reads files, remembers nothing
    names = [
        (str(path.relative_to(folder.folder).with_suffix("")), int(path.stem.split("-")[-1], 16))
        for path in sorted(folder.folder.rglob("*.key"))
    ]
    return [folder.load_key(name, number) for name, number in names]


def occurrences(content: bytes, patterns: dict[bytes, bytes]) -> Places:
    """(place, what it stands for) of every pattern in some bytes."""
    found = []
    for pattern, meaning in patterns.items():
        place = content.find(pattern)
        while place >= 0:
            found.append((place, meaning))
            place = content.find(pattern, place + 1)
    return sorted(found)


def by_bytes(files: dict[Path, bytes], keys: Sequence[Key], truth: Pairs) -> list[Guess]:
    """The order of first and last places in each file, and what stands next to what."""
    hashes = {hash_: hash_ for hash_ in truth}
    hashes |= {key.compute_mark(CODE_MARK, hash_): hash_ for key in keys for hash_ in truth}
    spent = {SPENT_IN_SQLITE + hash_: hash_ for hash_ in truth}
    ids = {id_: id_ for id_ in truth.values()}
    ids |= {key.compute_mark(REPORT_MARK, id_): id_ for key in keys for id_ in truth.values()}
    guesses: list[Guess] = []
    for content in files.values():
        reports = occurrences(content, ids)
        for codes in (occurrences(content, hashes), occurrences(content, spent)):
            if codes and reports:
                guesses += [*in_order(codes, reports), *side_by_side(codes, reports)]
    return guesses


def in_order(codes: Places, reports: Places) -> list[Guess]:
    """By the order of first places, and of last ones."""
    return [
        list(zip(*(dict.fromkeys(meaning for _, meaning in found) for found in some), strict=False))
        for some in ((codes, reports), (codes[::-1], reports[::-1]))
    ]


def side_by_side(codes: Places, reports: Places) -> list[Guess]:
    """By what stands next after an invitation, and before it, most often."""
    guesses: list[Guess] = []
    events = sorted([(p, 0, m) for p, m in codes] + [(p, 1, m) for p, m in reports])
    for step in (-1, 1):
        votes: defaultdict[bytes, Counter[bytes]] = defaultdict(Counter)
        last = None
        for _, kind, meaning in events[::step]:
            if kind == 1:
                last = meaning
            elif last is not None:
                votes[meaning][last] += 1
        guesses.append([(hash_, some.most_common(1)[0][0]) for hash_, some in votes.items()])
    return guesses


def best(database: Database, truth: Pairs) -> int:
    guesses = by_transactions(database)
    guesses += by_bytes(bytes_of(database), keys_left(database), truth)
    return max((right(guess, truth) for guess in guesses), default=0)


def collected(live: Live, settle_after: Sequence[int] = (PEOPLE,)) -> Pairs:
    """People answer one after the other; settled where the numbers say so."""
    survey = live.server.surveys.find_survey("health")
    assert survey is not None
    codes = live.owned("POST", "/health/invitations", json={"count": PEOPLE}).json()["codes"]
    truth = {}
    for number, code in enumerate(codes, 1):
        made, _ = report(live.collection)
        assert live.post(made, Invitation=code).status_code == 201
        truth[hash_code(survey.number, code)] = bytes.fromhex(made.id)
        if number in settle_after:
            assert live.owned("POST", "/health/settle", params={"anyway": True}).status_code == 200
    return truth  # type: ignore[return-value]


# ---------------------------------------------------------------- live, stopped, killed


@pytest.mark.slow
def test_no_byte_joins_settled_reports_with_their_invitations(database: Database) -> None:
    added(database, plan(), entry="invited", batch=PEOPLE)
    with serving(database) as live:
        truth = collected(live, ())
        assert database.keys.list_batches(), "what waits is sealed under a key"
        assert best(database, truth) > FOUND, "whoever has the key can join, and we would see"
        assert live.owned("POST", "/health/settle", params={"anyway": True}).status_code == 200
        assert live.counted() == PEOPLE
        assert database.keys.list_batches() == [], "its key was destroyed"
        assert best(database, truth) < CHANCE
        if not database.is_sqlite:
            with database.read_engine.connect() as connection:
                alone = connection.execution_options(isolation_level="AUTOCOMMIT")
                order = "SELECT hash FROM invitation WHERE spent > 0 ORDER BY xmin::text, ctid"
                spent = [bytes(one) for (one,) in alone.exec_driver_sql(order)]
                assert spent == sorted(truth), "nor does anything tell the order of codes"
                alone.exec_driver_sql("VACUUM FREEZE")
            assert best(database, truth) < CHANCE
    assert best(database, truth) < CHANCE
    if database.is_sqlite:
        path = Path(str(database.url.database))
        log = path.with_name(path.name + "-wal")
        assert not log.exists() or log.stat().st_size == 0


LATE = 12
"""People who answer while all that wait are settled, one after each transaction of it."""


def arriving_late(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> tuple[Pairs, list[int], tuple[Any, int]]:
    """Who answers late, and the sizes of all pieces: both grow. And the survey."""
    _, collection, number = arrived(database, PEOPLE // 4)
    with database.write() as connection:
        codes = create_codes(connection, number, LATE)
    late: Pairs = {}
    sizes: list[int] = []

    def settle_and_answer(*arguments: Any, **named: Any) -> Any:
        piece = settle_piece(*arguments, **named)
        if piece.settled:
            sizes.append(piece.settled)
        if piece.settled and codes:
            hash_, identity = answered(database, number, collection, codes.pop())
            late[hash_] = identity
        return piece

    monkeypatch.setattr(settling, "PIECE_REPORTS", PEOPLE // 4)
    for module in (settling, running):
        monkeypatch.setattr(module, "settle_piece", settle_and_answer)
    return late, sizes, (collection, number)


@pytest.mark.slow
def test_what_arrives_while_all_are_settled_is_not_settled_alone(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is settled is what waited when the act began, in pieces of a batch or more."""

    async def settle_nothing(*_: Any) -> None:
        """Instead of the look at the start, which would settle batches."""

    monkeypatch.setattr(running.Server, "_settle_waiting", settle_nothing)
    late, sizes, (_, number) = arriving_late(database, monkeypatch)
    with serving(database) as live:
        answer = live.owned("POST", "/health/settle", params={"anyway": True})
        assert answer.json() == {"settled": PEOPLE}
        assert live.counted() == PEOPLE
    assert sizes == [PEOPLE // 4] * 4
    assert len(waiting_in(database, number)) == len(late) == 4


def test_nor_where_no_server_runs(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    late, sizes, (collection, number) = arriving_late(database, monkeypatch)
    assert settle_arrivals(database, number, collection, 1) == PEOPLE
    assert sizes == [PEOPLE // 4] * 4
    assert len(waiting_in(database, number)) == len(late) == 4


def test_twin_settling_until_nothing_waits_joins_those_who_come_meanwhile(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    late, sizes, (collection, number) = arriving_late(database, monkeypatch)
    while settling.settle_piece(database, number, collection, 1).settled:
        pass
    assert sizes[4 - LATE :] == [1] * (LATE - 4)
    joined = max((right(guess, late) for guess in by_transactions(database)), default=0)
    assert joined >= (0 if database.is_sqlite else LATE - 4), "equal transactions join each of them"


def test_a_piece_is_not_smaller_than_a_batch_where_people_withdraw_meanwhile(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settling, "PIECE_REPORTS", 10)
    truth, collection, number = arrived(database, 10)
    assert settle_piece(database, number, collection, 10) == (10, False)
    left = [waiting.arrival.row.id for waiting in waiting_in(database, number)]
    for identity in left[5:]:
        with database.write() as connection:
            assert settling.withdraw_report(connection, number, collection, identity) == "withdrawn"
    assert settle_piece(database, number, collection, 10, is_first=False) == (0, True)
    assert settle_arrivals(database, number, collection, 10) == 0
    assert settle_arrivals(database, number, collection, 1) == 5
    with database.read() as connection:
        spent = connection.execute(sql.select(db.invitation.c.spent)).scalars().all()
    assert spent == [1] * len(truth)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_nor_do_the_bytes_that_a_killed_server_leaves(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Killed after settling, with or without time to tidy up; then started again."""
    url = f"sqlite:///{tmp_path}/collected.db"
    if kind == "postgresql":
        url = fresh_postgres(request.getfixturevalue("postgres"))
    collection = plan()
    file = tmp_path / "plan.json"
    file.write_text(collection.to_json())
    with Database(url) as database:
        database.migrate()
        number = added(database, collection, "plan", entry="invited", batch=PEOPLE)
        with database.write() as connection:
            codes = create_codes(connection, number, PEOPLE)
    process = Process(url, file, "--invited")
    truth: Pairs = {}
    with httpx.Client(timeout=60) as client:
        for code in codes:
            made, _ = report(collection)
            answer = client.post(
                f"http://127.0.0.1:{process.port}/api/v1/surveys/plan/reports",
                content=made.to_json(),
                headers={"Content-Type": "application/json", "Invitation": code},
            )
            assert answer.status_code == 201
            truth[hash_code(number, code)] = bytes.fromhex(made.id)  # type: ignore[index]
    with Database(url, serving=False) as looking:
        for survey, key in looking.keys.list_batches():  # all have waited for long enough
            looking.keys.set_age(format_key_name(survey, key), 2 * MAX_WAIT_SECONDS)
        while looking.keys.list_batches():
            assert process.running.poll() is None
            time.sleep(0.001)
        process.kill()
        assert best(looking, truth) < CHANCE
    with Database(url) as database, serving(database) as live:
        assert live.counted("plan") == PEOPLE
        assert best(database, truth) < CHANCE


def test_nor_those_who_were_drawn_where_others_are_kept_back(database: Database) -> None:
    truth, collection, number = arrived(database)
    assert settle_arrivals(database, number, collection, PEOPLE // 2) == PEOPLE // 2
    with database.read() as connection:
        settled = set(map(bytes, connection.execute(sql.select(db.report.c.id)).scalars()))
    drawn = {hash_: identity for hash_, identity in truth.items() if identity in settled}
    assert len(drawn) == PEOPLE // 2
    assert len(database.keys.list_batches()) == 1, (
        "the others wait under a key, which the attack has"
    )
    assert best(database, drawn) < CHANCE
    assert best(database, truth) >= PEOPLE // 2, "those it joins"


@pytest.mark.slow
def test_a_crash_before_the_key_is_destroyed_is_made_good_at_the_next_start(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin of destroying keys: while a key stays, the attack joins everything."""
    truth, collection, number = arrived(database)
    monkeypatch.setattr(KeyFolder, "destroy_key", lambda *_: None)  # killed between the two
    assert settle_piece(database, number, collection, 1) == (PEOPLE, True)
    monkeypatch.undo()
    assert best(database, truth) > FOUND, "the key was not destroyed yet"
    with serving(database) as live:
        assert database.keys.list_batches() == []
        assert best(database, truth) < CHANCE
        assert live.counted() == PEOPLE


def arrived(database: Database, batch: int = PEOPLE) -> tuple[Pairs, Any, int]:
    """People who were invited have answered, one transaction each."""
    collection = plan()
    number = added(database, collection, entry="invited", batch=batch)
    with database.write() as connection:
        codes = create_codes(connection, number, PEOPLE)
    truth = dict(answered(database, number, collection, code) for code in codes)
    return truth, collection, number


def answered(database: Database, number: int, collection: Any, code: str) -> tuple[bytes, bytes]:
    """Somebody answers: the hash of the invitation and the id of the report."""
    made, _ = report(collection)
    hash_ = hash_code(number, code)
    assert hash_ is not None
    arrival = Arrival(
        ReportRow(bytes.fromhex(made.id), made.question, pack_integers(made.value)), hash_
    )
    with database.write() as connection:
        assert store_arrivals(connection, number, True, [arrival]) == ["counted"]
    return hash_, arrival.row.id


def sizes_of_pieces(database: Database, number: int, collection: Any, least: int) -> list[int]:
    """How many reports each transaction of one act settles."""
    sizes: list[int] = []
    piece = settling.SettledPiece(0, is_last=False)
    while not piece.is_last:
        piece = settle_piece(database, number, collection, least, is_first=not sizes)
        sizes.append(piece.settled)
    return sizes


# ---------------------------------------------------------------- known-bad twins


def arrived_unsealed(database: Database) -> Pairs:
    """People who were invited have answered a server of version 0002, one transaction each."""
    database.migrate("0002")
    collection = plan()
    told = Announcement.make_default(collection, "health", entry="invited", batch=PEOPLE)
    columns = "slug, document, announcement, state"
    values = ("health", collection.encode_canonical(), told.to_json(), "open")
    written(database, f"INSERT INTO survey ({columns}) VALUES ({{}}, {{}}, {{}}, {{}})", [values])
    with database.write() as connection:
        create_tally(connection, 1, collection)
    made = [report(collection)[0] for _ in range(PEOPLE)]
    truth = {secrets.token_bytes(32): bytes.fromhex(one.id) for one in made}
    rows = [(1, hash_, 0) for hash_ in sorted(truth)]
    written(database, "INSERT INTO invitation VALUES ({}, {}, {})", rows)
    for one, (hash_, id_) in zip(made, truth.items(), strict=True):
        with database.write() as connection:
            spent = sql.update(db.invitation).where(db.invitation.c.hash == hash_)
            connection.execute(spent.values(spent=1))
            row = (1, id_, one.question, pack_integers(one.value))
            run(connection, "INSERT INTO arrival VALUES ({}, {}, {}, {})", [row])
    return truth


@pytest.mark.slow
def test_nor_what_was_not_sealed_before_a_migration(url: str) -> None:
    with Database(url) as database:
        truth = arrived_unsealed(database)
        database.migrate()
        with serving(database) as live:
            answer = live.owned("POST", "/health/settle", params={"anyway": True})
            assert answer.status_code == 200
            assert live.counted() == PEOPLE
            assert best(database, truth) < CHANCE
            if not database.is_sqlite:
                with database.read_engine.connect() as connection:
                    rows = connection.exec_driver_sql("SELECT hash FROM invitation ORDER BY ctid")
                    assert [bytes(one) for (one,) in rows] == sorted(truth), "an order of arrival"
        assert best(database, truth) < CHANCE


def test_twin_the_layout_before_arrivals_were_sealed_is_joined_whole(url: str) -> None:
    """As version 0002 wrote and settled: its bytes join everything, as long as they are there."""
    with Database(url) as database:
        truth = arrived_unsealed(database)
        with database.write() as connection:
            move = "INSERT INTO report SELECT * FROM arrival ORDER BY id"
            connection.exec_driver_sql(move)
            connection.exec_driver_sql("DELETE FROM arrival")
        with database.write() as connection:
            connection.exec_driver_sql("DELETE FROM invitation")
            sorted_anew = [(1, hash_, 2) for hash_ in sorted(truth)]
            run(connection, "INSERT INTO invitation VALUES ({}, {}, {})", sorted_anew)
        assert best(database, truth) > FOUND


def run(connection: Any, text: str, rows: Sequence[tuple[Any, ...]]) -> None:
    mark = "?" if connection.dialect.name == "sqlite" else "%s"
    connection.exec_driver_sql(text.replace("{}", mark), list(rows))


def written(database: Database, text: str, rows: Sequence[tuple[Any, ...]]) -> None:
    with database.write() as connection:
        run(connection, text, rows)


def twin(database: Database) -> Pairs:
    """The obvious way: one transaction spends the invitation and stores the report for good."""
    collection = plan()
    number = added(database, collection, entry="invited")
    with database.write() as connection:
        codes = create_codes(connection, number, PEOPLE)
    truth: Pairs = {}
    for code in codes:
        made, _ = report(collection)
        hash_ = hash_code(number, code)
        assert hash_ is not None
        row = {"survey": number, "question": made.question, "value": pack_integers(made.value)}
        with database.write() as connection:
            change = sql.update(db.invitation).where(db.invitation.c.hash == hash_).values(spent=1)
            connection.execute(change)
            identity = bytes.fromhex(made.id)
            connection.execute(sql.insert(db.report).values(id=identity, **row))
        truth[hash_] = bytes.fromhex(made.id)
    return truth


def test_the_known_bad_twin_is_joined_whole(database: Database) -> None:
    truth = twin(database)
    assert best(database, truth) > FOUND
    if not database.is_sqlite:
        with database.read_engine.connect() as connection:
            alone = connection.execution_options(isolation_level="AUTOCOMMIT")
            alone.exec_driver_sql("VACUUM FREEZE")
        assert max(right(one, truth) for one in by_transactions(database)) == PEOPLE


def test_invitations_are_spent_in_the_order_of_their_hashes(postgres: str) -> None:
    with Database(fresh_postgres(postgres)) as database:
        database.migrate()
        truth, collection, number = arrived(database)
        unspent = "SELECT count(*) FROM invitation WHERE spent = 0"
        with database.read_engine.connect() as connection:
            count = connection.exec_driver_sql(unspent).scalar()
            assert count == PEOPLE, "what was spent is sealed with its report"
        assert settle_piece(database, number, collection, 1) == (PEOPLE, True)
        with database.read_engine.connect() as connection:
            order = "SELECT hash FROM invitation WHERE spent = 1 ORDER BY ctid"
            assert [bytes(h) for (h,) in connection.exec_driver_sql(order)] == sorted(truth)
            assert list(truth) != sorted(truth)


# ---------------------------------------------------------------- sealed rows


def test_a_key_ends_with_the_transaction_that_settles_its_batch(database: Database) -> None:
    _, collection, number = arrived(database)
    assert len(database.keys.list_batches()) == 1
    assert settle_piece(database, number, collection, 1) == (PEOPLE, True)
    assert database.keys.list_batches() == []


def test_a_key_that_another_server_destroyed_is_kept_in_no_memory(postgres: str) -> None:
    url = fresh_postgres(postgres)
    with Database(url) as one, Database(url) as two:
        one.migrate()
        _, collection, number = arrived(one)
        assert len(one.keys._loaded_keys) == 1
        assert settle_piece(two, number, collection, 1) == (PEOPLE, True)
        with one.read() as connection:  # whatever it does next with the survey
            assert load_live_keys(connection, number) == {}
        assert one.keys._loaded_keys == two.keys._loaded_keys == {}


def test_a_code_that_comes_twice_in_one_transaction_is_used_once(database: Database) -> None:
    number = added(database, plan(), entry="invited")
    with database.write() as connection:
        (code,) = create_codes(connection, number, 1)
    hash_ = hash_code(number, code)
    both = [Arrival(ReportRow(bytes([n]) * 16, 0, b"\0"), hash_) for n in range(2)]
    with database.write() as connection:
        assert store_arrivals(connection, number, True, both) == ["counted", "invitation"]


def test_sealed_rows_are_equally_long_and_no_two_are_alike(database: Database) -> None:
    """Otherwise the length of a row, or its repetition, would tell which question was answered."""
    collection = plan()
    number = added(database, collection)
    values = [ReportRow(bytes([n]) * 16, 0, bytes(1 + n % 2)) for n in range(20)]
    for row in values:
        with database.write() as connection:
            assert store_arrivals(connection, number, False, [Arrival(row)]) == ["counted"]
    with database.read() as connection:
        stored = connection.execute(db.arrival.select()).all()
    assert len({len(row.body) for row in stored}) == 1
    assert len({bytes(row.body) for row in stored}) == len(stored)
    opened = {waiting.arrival.row for waiting in waiting_in(database, number)}
    assert opened == set(values)


def test_batches_are_never_smaller_than_announced(database: Database) -> None:
    collection = plan()
    number = added(database, collection)
    sizes = []
    for arrived in (3, 4, 12, 5, 5):
        for _ in range(arrived):
            made, _ = report(collection)
            row = ReportRow(bytes.fromhex(made.id), made.question, pack_integers(made.value))
            with database.write() as connection:
                store_arrivals(connection, number, False, [Arrival(row)])
        sizes.append(settle_arrivals(database, number, collection, 10))
    assert sizes == [0, 0, 0, 10, 0]


def test_large_batches_stay_large_where_work_is_done_in_pieces(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settling, "PIECE_REPORTS", 3)
    collection = plan()
    number = added(database, collection, entry="invited", batch=4)
    with database.write() as connection:
        arrivals = []
        for code in create_codes(connection, number, 49):
            made, _ = report(collection)
            row = ReportRow(bytes.fromhex(made.id), made.question, pack_integers(made.value))
            arrivals.append(Arrival(row, hash_code(number, code)))
    with database.write() as connection:
        assert set(store_arrivals(connection, number, True, arrivals)) == {"counted"}
    (key,) = database.keys.list_batches()
    assert sizes_of_pieces(database, number, collection, 10) == [10, 10, 10]
    assert key not in database.keys.list_batches(), "what is kept back has another one"
    with database.read() as connection:
        assert count_waiting(connection, number) == 19
    sizes = sizes_of_pieces(database, number, collection, 1)
    assert sizes == [4, 4, 4, 7], "nor are there crumbs where all are settled"
    with database.read() as connection:
        spent = connection.execute(sql.select(db.invitation.c.spent)).scalars().all()
    assert spent == [1] * 49
    assert database.keys.list_batches() == []


def test_no_column_holds_a_time_an_address_or_an_order() -> None:
    columns = {
        f"{table.name}.{column.name}" for table in db.metadata.tables.values() for column in table.c
    }
    assert columns == {
        *(f"survey.{one}" for one in ("number", "slug", "document", "announcement")),
        *(f"survey.{one}" for one in ("state", "longest")),
        *(f"arrival.{one}" for one in ("survey", "mark", "code", "batch", "live", "body")),
        *(f"batch_key.{one}" for one in ("survey", "number", "state")),
        *(f"report.{one}" for one in ("survey", "id", "question", "value")),
        *(f"withdrawn.{one}" for one in ("survey", "id")),
        *(f"invitation.{one}" for one in ("survey", "hash", "spent")),
        *(f"tally.{one}" for one in ("survey", "version", "counted", "sums", "settled")),
        *(f"tally.{one}" for one in ("repeated", "withdrawn")),
        *(f"sheet.{one}" for one in ("survey", "question", "value", "times")),
        *(f"refusal.{one}" for one in ("survey", "kind", "times")),
        *(f"token.{one}" for one in ("hash", "kind", "role", "label", "made", "expires")),
        "erasure.survey",
        *(f"action.{one}" for one in ("day", "label", "what", "times")),
    }  # the only times are the days of tokens and of what owners did
