"""Before anything is signed: who is known, which part and key one has, and what it all means."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

pytest.importorskip("httpx")
pytest.importorskip("uvicorn")

from click.testing import CliRunner
from ring_helpers import invitation
from round_fixtures import NAMES, PARTIES, horizontal_manifest, vertical_manifest
from served_rounds import Served, frame, soon, unsigned

from discreet import Categorical, Schema
from discreet.cli import main
from discreet.errors import FormatError, SchemaError
from discreet.federated.agreement.description import describe_agreement as words_of
from discreet.federated.agreement.identity import Card, Identity
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.counters import make_feature_requests
from discreet.federated.refusals import ProtocolError
from discreet.federated.service.collector_client import RoundClient
from discreet.federated.service.provider import ProviderInput, run_label_provider, run_provider
from discreet.federated.service.receiver import run_receiver
from discreet.federated.service.server import RoundSession

EVERYONE = [PARTIES[name].card for name in (*NAMES, "collector", "receiver")]
OWN = PARTIES["hospital-a"].card


def test_whoever_knows_cards_knows_everyone():
    """A party that the manifest made up is refused, as is a known one with other keys."""
    manifest = horizontal_manifest()
    manifest.require_known_parties(OWN, [])
    manifest.require_known_parties(OWN, EVERYONE)
    manifest.require_known_parties(OWN, [one for one in EVERYONE if one != OWN])
    invented = [one for one in EVERYONE if one.name != "hospital-c"]
    with pytest.raises(ProtocolError, match="names hospital-c") as told:
        manifest.require_known_parties(OWN, invented)
    assert PARTIES["hospital-c"].card.fingerprint in told.value.sentence
    assert "--known hospital-c.card.json" in told.value.sentence
    changed = [replace(one, signing=bytes(32)) for one in EVERYONE if one.name == "hospital-b"]
    with pytest.raises(ProtocolError, match="other keys for hospital-b"):
        manifest.require_known_parties(OWN, [*EVERYONE, *changed])
    stranger = Identity.generate("hospital-z").card
    with pytest.raises(ProtocolError, match="hospital-z, whose card is given as known"):
        manifest.require_known_parties(OWN, [*EVERYONE, stranger])


@pytest.mark.slow
def test_an_invented_party_is_refused_before_a_signature_leaves(tmp_path):
    manifest = unsigned(horizontal_manifest(epsilon=math.inf, deadline=soon(600)))
    running = RoundSession(PARTIES["collector"], manifest, tmp_path / "c")
    known = tuple(one for one in EVERYONE if one.name != "hospital-c")
    with (
        Served(running) as url,
        RoundClient(url, PARTIES["hospital-a"], manifest) as line,
        pytest.raises(ProtocolError, match="names hospital-c"),
    ):
        run_provider(line, ProviderInput(frame(0), known_cards=known), tmp_path / "a")
    assert set(running.agreement.signatures) == {"collector"}


@pytest.mark.parametrize(
    ("who", "act", "says"),
    [
        (
            "receiver",
            run_provider,
            "not the provider but the receiver.*`discreet federated receive`",
        ),
        ("hospital-a", run_receiver, "not the receiver but the provider.*federated provide`"),
        ("labels", run_provider, "labels is not in this manifest, which names hospital-a"),
        ("hospital-b", run_label_provider, "not the label provider but the provider"),
    ],
)
def test_another_part_is_refused_at_the_start(who, act, says, tmp_path):
    """Neither a collector nor a table is needed to hear it; nothing is written."""
    with (
        RoundClient("http://127.0.0.1:9", PARTIES[who], horizontal_manifest()) as line,
        pytest.raises(ProtocolError, match=says),
    ):
        act(line, tmp_path / "none", tmp_path / "none")
    assert not list(tmp_path.iterdir())


def test_another_key_under_ones_name_is_refused_at_the_start(tmp_path):
    other = Identity.generate("hospital-a")
    with (
        RoundClient("http://127.0.0.1:9", other, horizontal_manifest()) as line,
        pytest.raises(ProtocolError, match="another key for hospital-a") as told,
    ):
        run_provider(line, ProviderInput("none.csv"), tmp_path)
    assert other.card.fingerprint in told.value.sentence


def test_the_collector_needs_its_part_and_its_key(small_key, tmp_path):
    with pytest.raises(ProtocolError, match="not the collector but the receiver"):
        RoundSession(PARTIES["receiver"], horizontal_manifest(), tmp_path)
    opening = horizontal_manifest(small_key, mode="probabilities")
    with pytest.raises(ProtocolError, match=r"collector needs a Paillier key.*--key"):
        RoundSession(PARTIES["collector"], opening, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_missing_or_wrong_paillier_key_is_named_before_anyone_signs(
    small_key, real_key, tmp_path
):
    upright, flat = vertical_manifest(small_key), horizontal_manifest(small_key)
    for who, manifest, act in (
        (
            "labels",
            upright,
            lambda line, key: run_label_provider(line, ProviderInput("none.csv"), tmp_path, key),
        ),
        ("receiver", flat, lambda line, key: run_receiver(line, tmp_path, print, key)),
    ):
        with RoundClient("http://127.0.0.1:9", PARTIES[who], manifest) as line:
            with pytest.raises(ProtocolError, match=f"--key {who}.paillier.json"):
                act(line, None)
            with pytest.raises(ProtocolError, match="is not the one of this manifest") as told:
                act(line, real_key)
        assert small_key.public.fingerprint in told.value.sentence
        assert real_key.public.fingerprint in told.value.sentence
    assert not list(tmp_path.iterdir())


def test_a_paillier_key_belongs_to_the_card_of_whoever_opens(small_key, real_key):
    manifest = horizontal_manifest(small_key)
    with pytest.raises(SchemaError, match="card of receiver, who opens with it, states no"):
        replace(manifest, receiver=PARTIES["receiver"].card)
    with pytest.raises(SchemaError, match="states the Paillier key"):
        replace(manifest, paillier=real_key.public)
    upright = vertical_manifest(small_key)
    with pytest.raises(SchemaError, match="card of labels"):
        replace(upright, label=PARTIES["labels"].card)
    again = Manifest.from_json(manifest.to_json(), allow_small_key=True)
    assert again.hash == manifest.hash
    assert again.receiver.paillier == small_key.public.fingerprint


def test_a_statement_about_a_paillier_key_is_signed_by_the_card(small_key):
    own = PARTIES["receiver"]
    card = own.make_card_with_key(small_key)
    assert card == own.card
    assert card.fingerprint == own.card.fingerprint
    assert Card.from_json(card.to_json()).paillier == small_key.public.fingerprint
    for changes in ({"paillier": "00" * 32}, {"statement": b""}, {"paillier": None}):
        with pytest.raises(FormatError, match="is not signed by receiver"):
            replace(card, **changes)


def files(folder, manifest):
    (folder / "m.json").write_text(unsigned(manifest).to_json())
    for name, own in PARTIES.items():
        (folder / f"{name}.identity.json").write_text(own.to_json())
        (folder / f"{name}.card.json").write_text(own.card.to_json())
    return folder


def run(folder, step, *words, **how):
    arguments = ["federated", step, str(folder / "m.json"), *map(str, words)]
    return CliRunner().invoke(main, arguments, **how)


def party(folder, name):
    return (
        *("--identity", folder / f"{name}.identity.json", "--state", folder / "kept"),
        *("--collector", "http://127.0.0.1:9"),
    )


def test_without_a_terminal_nothing_is_signed_but_with_yes(tmp_path, monkeypatch):
    monkeypatch.setattr("uvicorn.Server.run", lambda server: None)
    files(tmp_path, horizontal_manifest())
    result = run(tmp_path, "provide", "none.csv", *party(tmp_path, "hospital-a"))
    assert result.exit_code == 2
    assert "no terminal to ask" in result.stderr
    assert "--yes" in result.stderr
    for said in (
        *("epsilon = 1 per person in total", "Protected against", "Assumes:", "Deadline: none"),
        *(
            "colour: counts in 3 cells",
            "age: count, sum and sum of squares",
            "uniform numbers only",
        ),
        horizontal_manifest().parties["hospital-b"].fingerprint,
    ):
        assert said in result.stderr
    assert not (tmp_path / "kept").exists()
    own = ("--identity", tmp_path / "collector.identity.json", "--state", tmp_path / "kept")
    result = run(tmp_path, "collect", *own)
    assert "no terminal to ask" in result.stderr
    assert not (tmp_path / "kept").exists()


@pytest.mark.parametrize(("answer", "signs"), [("n\n", False), ("y\n", True)])
def test_at_a_terminal_the_answer_decides(answer, signs, tmp_path, monkeypatch):
    files(tmp_path, horizontal_manifest())
    monkeypatch.setattr("discreet.cli.federated.confirm._is_at_terminal", lambda: True)
    result = run(tmp_path, "provide", "none.csv", *party(tmp_path, "hospital-a"), input=answer)
    assert result.exit_code == 2
    assert "Sign this manifest as hospital-a?" in result.stderr
    assert ("did not agree" in result.stderr) == (not signs)
    assert (tmp_path / "kept").exists() == signs


@pytest.mark.parametrize("epsilon", [math.inf, 1e300, 90.0])
def test_exact_counts_need_a_flag_of_their_own(epsilon, tmp_path):
    """An epsilon that adds no noise to speak of is none."""
    files(tmp_path, horizontal_manifest(epsilon=epsilon))
    words = ("none.csv", *party(tmp_path, "hospital-a"), "--yes")
    result = run(tmp_path, "provide", *words)
    assert result.exit_code == 2
    assert "add --unprotected" in result.stderr
    assert not (tmp_path / "kept").exists()
    result = run(tmp_path, "provide", *words, "--unprotected")
    assert "none.csv" in result.stderr
    assert "exact totals" in result.stderr


def test_noised_counts_need_no_flag(tmp_path):
    files(tmp_path, horizontal_manifest(epsilon=20.0))
    result = run(tmp_path, "provide", "none.csv", *party(tmp_path, "hospital-a"), "--yes")
    assert "none.csv" in result.stderr
    assert "exact totals" not in result.stderr


BAD = "age\x1b[2J\x1b[H\nWhat is promised:\n  epsilon = 0.01\u202e"


@pytest.mark.parametrize("agreement", ["manifest", "invitation"])
def test_what_is_shown_before_signing_cannot_be_overwritten_by_what_is_in_it(agreement):
    """Names of features and words about ids are written by others."""
    if agreement == "manifest":
        schema = Schema([Categorical(BAD, ["a", "b"])], f"class{BAD}", ["no", "yes"])
        shown = words_of(
            replace(horizontal_manifest(), schema=schema, requests=make_feature_requests(schema))
        )
    else:
        shown = words_of(invitation(ids=BAD))
    assert all(line.isprintable() for line in shown.split("\n"))
    assert "epsilon = 0.01" in shown
    assert "  epsilon = 0.01" not in shown.replace("\\n  epsilon = 0.01", "")


def test_the_command_refuses_unknown_parties(tmp_path):
    files(tmp_path, horizontal_manifest())
    known = [w for n in NAMES for w in ("--known", tmp_path / f"{n}.card.json")]
    result = run(tmp_path, "provide", "none.csv", *party(tmp_path, "hospital-a"), "--yes", *known)
    assert result.exit_code == 2
    assert "names collector" in result.stderr


def test_show_prints_all_that_is_signed_and_no_secret(tmp_path, small_key):
    folder = files(tmp_path, horizontal_manifest())
    result = run(folder, "show")
    assert "Not signed yet by: hospital-a" in result.stdout
    told = json.loads(run(folder, "show", "--json").stdout)
    assert told["digest"] == Manifest.from_json((folder / "m.json").read_text()).hash.hex()
    assert [one["role"] for one in told["parties"]] == 3 * ["provider"] + ["collector", "receiver"]
    (folder / "m.json").write_text(invitation(signed=False).to_json())
    assert "No epsilon covers this" in run(folder, "show").stdout
    (folder / "m.json").write_text(PARTIES["receiver"].to_json())
    for words in ((), ("--json",)):
        said = run(folder, "show", *words).stdout
        assert PARTIES["receiver"].card.fingerprint in said
        assert PARTIES["receiver"].signing.private_bytes_raw().hex() not in said
    card = PARTIES["receiver"].make_card_with_key(small_key)
    (folder / "m.json").write_text(card.to_json())
    assert small_key.public.fingerprint in run(folder, "show").stdout
    (folder / "m.json").write_text(small_key.to_json())
    refused = run(folder, "show")
    assert "not a card, identity, manifest or invitation" in refused.stderr
    assert f"{small_key.p:x}" not in refused.output


def test_an_identity_gets_a_paillier_key_later_and_keeps_its_fingerprint(
    tmp_path, monkeypatch, real_key
):
    monkeypatch.setattr("discreet.federated.crypto.paillier.generate_key", lambda bits: real_key)
    words = ["federated", "identity", "r", "--folder", str(tmp_path)]
    assert CliRunner().invoke(main, words).exit_code == 0
    before = Card.from_json((tmp_path / "r.card.json").read_text())
    assert CliRunner().invoke(main, [*words, "--paillier"]).exit_code == 0
    after = Card.from_json((tmp_path / "r.card.json").read_text())
    assert before == after
    assert after.paillier == real_key.public.fingerprint
    again = CliRunner().invoke(main, [*words, "--paillier"])
    assert again.exit_code == 2
    assert "keys are not replaced" in again.stderr
    assert "keys are not replaced" in CliRunner().invoke(main, words).stderr
