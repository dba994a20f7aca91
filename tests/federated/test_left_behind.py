"""What lies in a state folder, while a round runs and when it has ended: no digest to guess from.

The attack is a co-provider's that finds the folder of another (a backup, a disk that was sold): it
knows the totals and its own counts, so there are few vectors of counts to try.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import math
import os
import shutil
import stat
import threading

import numpy as np
import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

pytest.importorskip("httpx")
pytest.importorskip("uvicorn")

from ring_helpers import invitation
from round_fixtures import NAMES, PARTIES, horizontal_manifest, table, vertical_manifest
from served_rounds import Served, frame, receiver_in, run_all, soon, unsigned

from discreet.errors import FormatError
from discreet.federated.alignment.collector_session import AlignmentSession
from discreet.federated.alignment.owner_program import run_owner
from discreet.federated.crypto.sealing import unseal_bytes
from discreet.federated.refusals import ProtocolError
from discreet.federated.service import collector_client
from discreet.federated.service.collector_client import CollectorClient, RoundClient
from discreet.federated.service.patience import RetryPolicy
from discreet.federated.service.provider import (
    ProviderInput,
    _compute_column_digest,
    _count_source,
    load_aligned_columns,
    run_label_provider,
    run_provider,
)
from discreet.federated.service.server import RoundSession
from discreet.federated.service.state_folder import StateFolder

DIGESTS = ("sha256", "sha1", "md5", "sha512", "blake2b", "sha3_256")


def run_round(manifest, folder):
    """A round to its end, with the state of every party in the folder."""
    running = RoundSession(PARTIES["collector"], manifest, folder / "collector")

    def provide(line, seed):
        return run_provider(line, ProviderInput(frame(seed)), folder / line.identity.name)

    parts = [(name, lambda c, s=seed: provide(c, s)) for seed, name in enumerate(NAMES, 1)]
    with Served(running) as url:
        run_all(url, manifest, [*parts, receiver_in(folder)], folder)
    assert running.is_result_confirmed


def spellings(vector):
    """How counts may have been written before they were hashed."""
    numbers = [int(one) for one in vector]
    yield str(numbers).encode()
    yield ",".join(map(str, numbers)).encode()
    yield str(numbers).replace(" ", "").encode()
    for kind in ("<i4", "<i8", "<u4", "<u8"):
        yield np.array(numbers).astype(kind).tobytes()


def bytes_below(folder):
    """Every name and every byte of every file."""
    found = b""
    for path in sorted(folder.rglob("*")):
        found += path.name.encode() + b"\0" + (path.read_bytes() if path.is_file() else b"")
    return found


def recovered(folder, guesses, keys=(b"",)):
    """Which guesses are confirmed by a digest anywhere in a folder."""
    data = bytes_below(folder)
    right = []
    for guess in guesses:
        for content in guess if isinstance(guess, tuple) else spellings(guess):
            codes = [hashlib.new(name, content).digest() for name in DIGESTS]
            codes += [hmac.digest(key, content, "sha256") for key in keys]
            if any(code[:16] in data or code[:16].hex().encode() in data for code in codes):
                right.append(guess)
                break
    return right


def keys_in(folder):
    """What a thief of a folder would try as keys: every short file, and its ends."""
    found = {b""}
    for path in folder.rglob("*"):
        if path.is_file() and 16 <= path.stat().st_size <= 4096:
            content = path.read_bytes()
            found |= {content, content[:32], content[-32:]}
    return sorted(found)


def coded(*contents):
    """What the code of a party's data is made over."""
    return b"discreet/data\0" + "\0".join(map(str, contents)).encode()


def plain_secret(self, own, name, content):
    """The twin: keys of the round in clear, beside what they protect."""
    self.write(name, content)


def read_plain_secret(self, own, name):
    return self.read(name)


@pytest.fixture
def folders_of_the_killed(tmp_path, monkeypatch):
    """A copy of every party's folder after each of its writes: where a kill could have left it."""
    copies, write = [], StateFolder.write

    def copying(self, name, content):
        write(self, name, content)
        if "collector" not in self.path.parts[-2]:
            copies.append(tmp_path / "killed" / f"{len(copies)} {self.path.parent.name} {name}")
            shutil.copytree(self.path, copies[-1])

    monkeypatch.setattr(StateFolder, "write", copying)
    return copies


def same_as_it_was(self, *contents):
    """The twin: an unsalted SHA-256, which stays."""
    self.write("was", hashlib.sha256("\0".join(map(str, contents)).encode()).digest())


def guesses_around(exact):
    """Vectors of counts, one of them right: the first two cells are not known exactly."""
    found = []
    for first in range(-9, 10):
        for second in range(-9, 10):
            guess = exact.copy()
            guess[:2] += (first, second)
            found.append(guess)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("twin", [False, True], ids=["as it is", "an unsalted digest"])
def test_a_state_folder_confirms_no_guess_of_the_counts(twin, tmp_path, monkeypatch):
    """The folder of hospital-a, and of the twin that keeps an unsalted digest in it."""
    if twin:
        monkeypatch.setattr(StateFolder, "require_same_data", same_as_it_was)
    manifest = unsigned(horizontal_manifest(epsilon=1.0, deadline=soon(900)))
    exact = _count_source(manifest, frame(1))
    seen = []
    once = StateFolder.load_or_create

    def while_it_runs(self, name, make):
        message = once(self, name, make)
        if name == "submission":
            place = tmp_path / "while it ran" / self.path.parent.name
            seen.append(shutil.copytree(self.path, place))
        return message

    monkeypatch.setattr(StateFolder, "load_or_create", while_it_runs)
    run_round(manifest, tmp_path)
    assert len(seen) == 3
    guesses = guesses_around(exact)
    for folder in (tmp_path / "while it ran", tmp_path / "hospital-a"):
        right = recovered(folder, guesses)
        assert len(right) == twin
        assert not twin or np.array_equal(right[0], exact)


TWINS = pytest.mark.parametrize("twin", [False, True], ids=["as it is", "keys in clear"])


def in_clear(monkeypatch):
    monkeypatch.setattr(StateFolder, "write_secret", plain_secret)
    monkeypatch.setattr(StateFolder, "read_secret", read_plain_secret)


@pytest.mark.slow
@TWINS
def test_a_folder_confirms_no_guess_wherever_its_provider_was_killed(
    twin, tmp_path, monkeypatch, folders_of_the_killed
):
    """Also not with keys from the same folder, which is all that a backup or a thief has."""
    if twin:
        in_clear(monkeypatch)
    manifest = unsigned(horizontal_manifest(epsilon=1.0, deadline=soon(900)))
    exact = _count_source(manifest, frame(1))
    run_round(manifest, tmp_path)
    guesses = [(coded(guess.tolist()), *spellings(guess)) for guess in guesses_around(exact)]
    right = (coded(exact.tolist()), *spellings(exact))
    killed = [path for path in folders_of_the_killed if " hospital-a " in path.name]
    written = {path.name.rpartition(" ")[2] for path in killed}
    assert {"party", "session", "data", "submission.sent", "delivered", "finished"} <= written
    confirmed = [path for path in killed if recovered(path, [right], keys_in(path))]
    assert bool(confirmed) == twin
    for path in [*killed[:6], *confirmed[:1]]:
        assert recovered(path, guesses, keys_in(path)) == ([right] if path in confirmed else [])


@TWINS
def test_a_refused_provider_leaves_nothing_to_guess_from(twin, tmp_path, monkeypatch):
    """Its folder stays as it is: nobody starts it again."""
    if twin:
        in_clear(monkeypatch)
    monkeypatch.setattr(collector_client, "DEFAULT_POLICY", RetryPolicy(max_silence_seconds=0.0))
    manifest = unsigned(horizontal_manifest(epsilon=1.0, deadline=soon(900)))
    right = (coded(_count_source(manifest, frame(1)).tolist()),)
    with RoundClient("http://127.0.0.1:9", PARTIES["hospital-a"], manifest) as line:
        line.allow_leaving()
        with pytest.raises(ProtocolError, match="is gone"):
            run_provider(line, ProviderInput(frame(1)), tmp_path / "alone")
    known = (PARTIES["hospital-b"].card,)
    with (
        RoundClient("http://127.0.0.1:9", PARTIES["hospital-a"], manifest) as line,
        pytest.raises(ProtocolError, match="not among the known ones"),
    ):
        run_provider(line, ProviderInput(frame(1), known_cards=known), tmp_path / "unknown")
    for name in ("alone", "unknown"):
        left = tmp_path / name
        assert [*left.rglob("data")]
        assert bool(recovered(left, [right], keys_in(left))) == twin


@pytest.mark.slow
@TWINS
def test_a_folder_confirms_no_guess_of_ids_wherever_its_owner_was_killed(
    twin, tmp_path, monkeypatch, folders_of_the_killed
):
    """The list of ids is recognised by a code under the secret that blinds it."""
    if twin:
        in_clear(monkeypatch)
    texts = ["anna", "bert", "carl"]
    aligned_by_all(tmp_path, texts)
    found = []
    for path in folders_of_the_killed:
        data = bytes_below(path)
        for key in keys_in(path):
            places = {hmac.digest(key, b"place " + text.encode(), "sha256"): text for text in texts}
            ordered = [text.encode() for _, text in sorted(places.items())]
            listed = b"".join(hashlib.sha256(text).digest() for text in ordered)
            if hmac.digest(key, listed, "sha256") in data:
                found.append(path)
    assert bool(found) == twin


def test_the_code_of_the_data_is_keyed_and_goes_with_the_key(tmp_path):
    manifest, own = horizontal_manifest(), PARTIES["hospital-a"]
    codes = []
    for place in ("a", "b"):
        kept = StateFolder(tmp_path / place, manifest)
        with kept.hold_session(own):
            kept.require_same_data([1, 2, 3], "x")
            kept.require_same_data([1, 2, 3], "x")
            with pytest.raises(ProtocolError, match="the data are not those"):
                kept.require_same_data([1, 2, 4], "x")
            codes.append(kept.read("data"))
            session = kept.read_secret(own, "session")
            assert codes[-1] == hmac.digest(session, coded([1, 2, 3], "x"), "sha256")
            assert session not in bytes_below(kept.path)
        own.delete_session(manifest.hash)
    assert codes[0] != codes[1]
    kept.mark_delivered()
    assert kept.read("data") is None  # not needed any more
    first = StateFolder(tmp_path / "a", manifest)
    assert first.read("data")
    first.finish_round(own)
    for name in ("session", "secret", "data", "digest"):
        assert first.read(name) is None
    with pytest.raises(ProtocolError, match="no key of this round"):
        first.require_same_data([1, 2, 3], "x")


def test_what_an_earlier_version_left_of_ended_rounds_is_deleted(tmp_path):
    """It kept an unsalted digest of the counts; the next round with the same --state deletes it."""
    own, exact = PARTIES["hospital-a"], [5, 0, 7]
    digest = hashlib.sha256(str(exact).encode()).digest()
    old = {name: tmp_path / (name[0] * 32) for name in ("ended", "begun", "foreign")}
    old["another folder"] = tmp_path / "ended"
    for name, folder in old.items():
        folder.mkdir()
        (folder / "data").write_bytes(digest)
        if name != "begun":
            (folder / "finished").touch()
        if name != "foreign":
            (folder / "party").write_text(own.card.fingerprint)
    assert recovered(old["ended"], [exact]) == [exact]
    kept = StateFolder(tmp_path, horizontal_manifest())
    with kept.hold_session(own):
        assert recovered(old["ended"], [exact]) == []
        assert (old["ended"] / "finished").exists()
        for name in ("begun", "foreign", "another folder"):  # not ours to delete, or not ended
            assert (old[name] / "data").exists()
    kept.finish_round(own)


@pytest.mark.slow
@pytest.mark.parametrize("aggregation", ["masks", "paillier"])
def test_nothing_of_rows_and_labels_can_be_confirmed_after_a_vertical_round(
    aggregation, tmp_path, small_key
):
    """Digests of whole columns and ids, as they are compared after a restart."""
    key = small_key if aggregation == "paillier" else None
    manifest = unsigned(vertical_manifest(key, epsilon=math.inf, deadline=soon(900)))
    columns, codes = table(40, 3)
    text = [manifest.schema.classes[code] for code in codes]
    tables = {**columns, "class": np.array(text, dtype=object), "id": np.arange(40)}
    running = RoundSession(PARTIES["collector"], manifest, tmp_path / "collector")

    holding = ProviderInput(tables, "id")
    parts = [
        (name, lambda c: run_provider(c, holding, tmp_path / c.identity.name))
        for name in manifest.columns
    ]
    parts.append(("labels", lambda c: run_label_provider(c, holding, tmp_path / "labels", key)))
    with Served(running) as url:
        run_all(url, manifest, [*parts, receiver_in(tmp_path)], tmp_path)
    assert running.is_result_confirmed
    names = ("colour", "size", "age", "class")
    held, ids = load_aligned_columns(tables, names, "id")
    plain = [_compute_column_digest(ids), *(_compute_column_digest(held[name]) for name in names)]
    data = bytes_below(tmp_path)
    for code in plain:
        assert code.encode() not in data
        assert bytes.fromhex(code) not in data
    guesses = [
        tuple("\0".join(map(str, part)).encode() for part in ([ids_], [ids_, one]))
        for ids_ in plain[:1]
        for one in plain
    ]
    assert recovered(tmp_path, guesses) == []


def aligned_by_all(tmp_path, texts):
    """Align as three owners with the same ids; gives their names."""
    agreed = unsigned(invitation(deadline=soon(900)))
    running = AlignmentSession(PARTIES["collector"], agreed, tmp_path / "collector")
    owners = [card.name for card in agreed.owners]

    def act(name):
        with CollectorClient(url, PARTIES[name], agreed) as line:
            run_owner(line, texts, tmp_path / name, lambda rows: None)

    with Served(running) as url:
        jobs = [threading.Thread(target=act, args=(name,), daemon=True) for name in owners]
        for job in jobs:
            job.start()
        for job in jobs:
            job.join(900)
    assert running.is_result_confirmed
    return owners


@pytest.mark.slow
def test_nothing_of_the_ids_can_be_confirmed_after_an_alignment(tmp_path):
    owners = aligned_by_all(tmp_path, ["anna", "bert", "carl"])
    for name in owners:
        assert not [*(tmp_path / name).rglob("digest"), *(tmp_path / name).rglob("secret")]
    guesses = [(text.encode(), b"place " + text.encode()) for text in ("anna", "bert", "carl")]
    assert recovered(tmp_path, guesses) == []


def test_the_key_of_a_folder_comes_from_the_secret_part_of_the_identity(tmp_path):
    """Nothing that others know, or that is in the folder, takes its place."""
    manifest, own = horizontal_manifest(), PARTIES["hospital-a"]
    kept = StateFolder(tmp_path, manifest)
    kept.join_round(own)
    content, info = kept.read("session"), b"discreet/folder/1\0session"

    def opens(secret):
        derive = HKDF(algorithm=SHA256(), length=32, salt=manifest.hash, info=info)
        with contextlib.suppress(ProtocolError):
            return unseal_bytes(derive.derive(secret), content) == own.get_session_private_key(
                manifest.hash
            )

    public = [
        b"",
        bytes(32),
        own.card.signing,
        manifest.hash,
        own.get_session_public_key(manifest.hash),
    ]
    public += [bytes.fromhex(own.card.fingerprint), *keys_in(kept.path)]
    public += [manifest.with_signatures(own).signatures[own.name].encode()]
    assert not any(opens(secret) or opens(secret[:32]) for secret in public)
    with pytest.raises(ProtocolError, match="cannot be opened"):
        unseal_bytes(bytes(32), content)
    assert opens(own.signing.private_bytes_raw())
    kept.finish_round(own)


@pytest.mark.skipif(not hasattr(os, "O_DIRECTORY"), reason="folders are not synced here")
def test_what_is_deleted_at_the_end_does_not_come_back_after_a_power_cut(tmp_path, monkeypatch):
    """Names that were removed are gone for good only when their folder was synced after that."""
    manifest, own, sync, kept_by_disk = horizontal_manifest(), PARTIES["hospital-a"], os.fsync, []

    def synced(file):
        if stat.S_ISDIR(os.fstat(file).st_mode):
            kept_by_disk.append(set(os.listdir(file)))
        sync(file)

    kept = StateFolder(tmp_path, manifest)
    kept.join_round(own)
    kept.require_same_data([1, 2, 3])
    kept.write("submission.body", b"under this key")
    monkeypatch.setattr(os, "fsync", synced)
    kept.finish_round(own)
    assert kept_by_disk[-1] == {"party", "finished"}


@pytest.mark.parametrize("damage", ["cut off", "changed", "another file"])
def test_a_damaged_key_of_a_round_is_named(damage, tmp_path):
    manifest, own = horizontal_manifest(), PARTIES["hospital-a"]
    kept = StateFolder(tmp_path, manifest)
    kept.join_round(own)
    content = kept.read("session")
    kept.write_secret(own, "secret", own.get_session_private_key(manifest.hash))
    kept.write(
        "session",
        {
            "cut off": content[:-1],
            "changed": content[:-1] + bytes([content[-1] ^ 1]),
            "another file": kept.read("secret"),
        }[damage],
    )
    with pytest.raises(FormatError, match=r"session: the kept key of this round is damaged"):
        StateFolder(tmp_path, manifest).join_round(own)
    assert kept.read("session"), "what was damaged may be restored"
    own.delete_session(manifest.hash)


@pytest.mark.parametrize("twin", [False, True], ids=["as it is", "refused and left"])
def test_what_an_earlier_version_left_of_a_round_that_never_ended_is_deleted(
    twin, tmp_path, monkeypatch
):
    """It cannot go on; its key lies there in clear, and an unsalted digest of the counts."""
    if twin:
        monkeypatch.setattr(StateFolder, "finish_round", lambda self, own: None)
    manifest, own, exact = horizontal_manifest(), PARTIES["hospital-a"], [5, 0, 7]
    kept = StateFolder(tmp_path, manifest)
    session = own.get_session_private_key(manifest.hash)
    digest = hashlib.sha256(str(exact).encode()).digest()
    for name, content in {"session": session, "secret": session, "data": digest}.items():
        kept.write(name, content)
    kept.write("submission.body", b"under this key")
    assert recovered(tmp_path, [exact]) == [exact]
    with (
        pytest.raises(FormatError, match="was written by another version; agree on a new round"),
        StateFolder(tmp_path, manifest).hold_session(own),
    ):
        raise AssertionError("the round went on")
    assert (recovered(tmp_path, [exact]) == [exact]) == twin
    assert (session in bytes_below(tmp_path)) == twin
    assert (kept.read("submission.body") is not None) == twin
    with pytest.raises((ProtocolError, FormatError), match=None if twin else "finished this round"):
        StateFolder(tmp_path, manifest).join_round(own)
    own.delete_session(manifest.hash)
