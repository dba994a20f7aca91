"""A Paillier key that was crafted: what its owner would read, and the proof that refuses it.

Every attack here works on a twin of the protocol in which the proof on the card is not checked.
"""

from __future__ import annotations

import hashlib
import json
import math
import secrets
from dataclasses import replace
from itertools import count, product

import gmpy2
import numpy as np
import pytest
from click.testing import CliRunner
from ring_helpers import invitation
from round_fixtures import PARTIES, SCHEMA, agreed, cards, table, vector_of, vertical_manifest

from discreet.cli import main
from discreet.errors import FormatError, PrivacyError
from discreet.federated import vertical
from discreet.federated.agreement import identity
from discreet.federated.agreement.identity import Card, Identity
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.counters import make_feature_requests
from discreet.federated.crypto import key_proof, paillier
from discreet.federated.crypto.key_proof import derive_challenges, prove_modulus, verify_modulus
from discreet.federated.crypto.packing import SLOT_BITS
from discreet.federated.crypto.paillier import PrivateKey, PublicKey, generate_key
from discreet.federated.vertical.protocol import ORDER_TAG_BYTES
from discreet.files.documents import dump_document

PARTY = b"labels and its key"
ROWS = 20


class CraftedKey(PrivateKey):
    """Two primes that do not fit together; decryption works all the same."""

    def __post_init__(self) -> None:
        pass


def random_prime(bits):
    return int(gmpy2.next_prime(secrets.randbits(bits) | 1 << (bits - 1)))


def prime_above_a_multiple(p, bits):
    """A prime q of about so many bits with p | q - 1, and p^2 not."""
    for factor in count(secrets.randbits(bits - p.bit_length()) & ~1, 2):
        q = factor * p + 1
        if factor % p and gmpy2.is_prime(q):
            return q
    raise AssertionError


def crafted(kind):
    """A modulus N, and where it leaks: a modulus M, a prime p, and an exponent.

    Powers with this exponent modulo M show the part of order p, which no r^N ever touches.
    """
    p = random_prime(400)
    if kind == "p divides q - 1":
        q = prime_above_a_multiple(p, 624)
        return p * q, q, p, (q - 1) // p
    if kind == "p squared":
        return p * p * random_prime(224), p * p, p, p - 1
    # many primes, and among them pairs of which one divides the other less one
    primes = [one for one in range(3, 800) if gmpy2.is_prime(one)]
    return math.prod(primes), 787, 131, 6  # 786 = 6 * 131


KINDS = ["p divides q - 1", "p squared", "smooth"]
LEAKY = pytest.mark.parametrize("kind", KINDS)


def part_of_order(p, exponent, modulus):
    while True:
        found = pow(secrets.randbelow(modulus - 2) + 2, exponent, modulus)
        if found != 1 and math.gcd(found, modulus) == 1:
            assert pow(found, p, modulus) == 1
            return found


def unchecked(own, n):
    """A card with a key that is stated and signed, and with a proof that proves nothing."""
    public = PublicKey(n, allow_small=True)
    proof = bytes(key_proof.CHALLENGES * -(-public.bits // 8))
    statement = own.sign(identity._encode_key_statement(public.fingerprint, proof))
    return replace(own.card, paillier=public.fingerprint, proof=proof, statement=statement)


# ---- what such keys are good for


@LEAKY
def test_what_refreshing_does_not_hide_under_a_crafted_key(kind):
    """The owner marks six people's ciphertexts and reads who went into a padded, fresh sum."""
    n, modulus, p, exponent = crafted(kind)
    public, mark = PublicKey(n, allow_small=True), part_of_order(p, exponent, modulus)
    others = n // modulus  # the mark modulo M, and one modulo all the rest
    lifted = gmpy2.mpz(1 + others * (pow(others, -1, modulus) * (mark - 1) % modulus))
    ciphertexts = [
        public.refresh_ciphertext(public.embed_plaintext(1)) * lifted ** (1 << i) for i in range(6)
    ]
    chosen = [i for i in range(6) if secrets.randbits(1)]
    total = public.add([ciphertexts[i] for i in chosen]) * public.embed_plaintext(
        secrets.randbelow(n)
    )
    seen = pow(int(public.refresh_ciphertext(total)), exponent, modulus)
    base = pow(mark, exponent, modulus)
    read = [code for code in range(64) if pow(base, code, modulus) == seen]
    assert read == [sum(1 << i for i in chosen)]
    proof = bytes(key_proof.CHALLENGES * -(-public.bits // 8))
    with pytest.raises(PrivacyError, match="the Paillier key of labels is refused"):
        verify_modulus(n, PARTY, proof, "labels")


def test_refreshing_hides_everything_exactly_where_the_proof_can_be_made():
    """r^N takes every unit once if gcd(N, φ(N)) = 1, and otherwise at most one in p of them."""
    for n in range(9, 400, 2):
        units = [r for r in range(n) if math.gcd(r, n) == 1]
        powers = {pow(r, n, n) for r in units}
        common = math.gcd(n, len(units))
        if common == 1:
            assert len(powers) == len(units)
        else:
            smallest = next(p for p in range(3, n) if common % p == 0)
            assert len(powers) * smallest <= len(units)


def marking(label, marks, modulus):
    """The label provider hides labels as always, and marks the ciphertexts of some people."""

    def hide(own, codes, key):
        public, hidden = label.protocol.public, []
        for row, code in enumerate(codes.tolist()):
            plain = public.refresh_ciphertext(public.embed_plaintext(1 << SLOT_BITS * code))
            hidden.append(plain * gmpy2.powmod(modulus[0], marks.get(row, 0), modulus[1]))
        payload = public.to_bytes([one % public.n_squared for one in hidden])
        return lambda card: [payload]

    return hide


def crafted_manifest(key):
    options = {"rows": ROWS, "partition": "vertical", "aggregation": "paillier"}
    return Manifest(
        SCHEMA,
        make_feature_requests(SCHEMA, 4, ("age",)),
        math.inf,
        cards(["hospital-a", "hospital-b"]),
        PARTIES["collector"].card,
        PARTIES["receiver"].card,
        label=unchecked(PARTIES["labels"], key.public.n),
        columns={"hospital-a": ("colour", "age"), "hospital-b": ("size",)},
        paillier=key.public,
        **options,
    )


@pytest.fixture(scope="module")
def crafted_key():
    p = random_prime(400)
    return CraftedKey(p, prime_above_a_multiple(p, 624), allow_small=True)


def test_with_the_check_left_out_a_round_ends_normally_and_gives_chosen_people_away(
    crafted_key, monkeypatch
):
    """The twin: nobody looks at the proof. The label provider reads four people's sizes."""
    monkeypatch.setattr(identity, "verify_modulus", lambda *one: None)
    key, (columns, codes) = crafted_key, table(ROWS, 5)
    manifest = agreed(crafted_manifest(key))
    p, q = key.p, key.q
    mark = part_of_order(p, (q - 1) // p * q, q * q)
    lifted = 1 + p * p * (pow(p * p, -1, q * q) * (mark - 1) % (q * q))
    victims, marks = [3, 7, 11, 19], {3: 1, 7: 10**6, 11: 10**12, 19: 10**18}

    label = vertical.LabelProvider(PARTIES["labels"], manifest, key)
    label.protocol.make_label_hider = marking(
        label, marks, (lifted, label.protocol.public.n_squared)
    )
    for card, message in zip(manifest.providers, label.make_all_labels(codes), strict=True):
        provider = vertical.VerticalProvider(PARTIES[card.name], manifest)
        provider.receive(message.to_bytes())
        label.receive(provider.make_tables(columns).to_bytes())
    body = label.inbox.get_body("hospital-b", "tables").get_slice(0, -ORDER_TAG_BYTES)
    count = label.protocol.plaintext_layouts["hospital-b"].plaintext_count
    sums = label.protocol.public.from_bytes(body.read(), count)
    collector = vertical.VerticalCollector(PARTIES["collector"], manifest)
    collector.receive(label.make_shares().to_bytes())
    release = vertical.VerticalReceiver(PARTIES["receiver"], manifest).receive(
        collector.make_result().to_bytes()
    )

    exact = manifest.layout.count_rows(columns, codes)
    assert np.array_equal(vector_of(manifest, release.statistics), exact)  # nobody noticed
    shift, read = label.protocol.plaintext_layouts["hospital-b"].column_bits, []
    seen, base = pow(int(sums[0]), (q - 1) // p, q), pow(mark % q, (q - 1) // p, q)
    for cells in product(range(4), repeat=4):
        places = zip(cells, marks.values(), strict=True)
        if pow(base, sum(weight << shift * cell for cell, weight in places), q) == seen:
            read.append(list(cells))
    assert read == [[min(3, int(columns["size"][row] // 2.5)) for row in victims]]


def test_everyone_who_reads_a_manifest_with_a_crafted_key_refuses_it(crafted_key, monkeypatch):
    with pytest.raises(PrivacyError, match=r"is refused.*do not sign"):
        crafted_manifest(crafted_key)
    with monkeypatch.context() as patch:
        patch.setattr(identity, "verify_modulus", lambda *one: None)
        text = crafted_manifest(crafted_key).to_json()
    with pytest.raises(PrivacyError, match="the Paillier key of labels is refused"):
        Manifest.from_json(text, allow_small_key=True)


# ---- the proof itself


def test_a_proper_key_is_proven_and_believed(small_key, real_key):
    for key in (small_key, real_key, generate_key(64, allow_small=True)):
        n = key.public.n
        proof = prove_modulus(key, PARTY)
        verify_modulus(n, PARTY, proof, "labels")
        width = -(-key.public.bits // 8)
        for number, challenge in enumerate(derive_challenges(n, PARTY)):
            root = int.from_bytes(proof[number * width : (number + 1) * width], "big")
            assert pow(root, n, n) == challenge
    assert key_proof.CHALLENGES * math.log2(65536) >= 128


def test_every_root_is_looked_at(small_key):
    n, proof, width = small_key.public.n, prove_modulus(small_key, PARTY), 128
    for number in range(key_proof.CHALLENGES):
        for root in (0, 1, n - 1, n):
            changed = bytearray(proof)
            changed[number * width : (number + 1) * width] = root.to_bytes(width, "big")
            with pytest.raises(PrivacyError, match=f"root {number + 1} of its proof"):
                verify_modulus(n, PARTY, bytes(changed), "labels")
    for other in (b"", proof[:-width], proof + proof[:width], proof[:-1]):
        with pytest.raises(PrivacyError, match="bytes, not 8 roots of 128"):
            verify_modulus(n, PARTY, other, "labels")


def test_a_proof_holds_for_one_modulus_and_one_party(small_key):
    proof, other = prove_modulus(small_key, PARTY), generate_key(1024, allow_small=True)
    with pytest.raises(PrivacyError, match="root 1"):
        verify_modulus(other.public.n, PARTY, proof, "labels")
    with pytest.raises(PrivacyError, match="root 1"):
        verify_modulus(small_key.public.n, PARTY + b"2", proof, "labels")
    own = PARTIES["labels"]
    renamed = Identity("labels-2", own.signing)
    lent = own.make_card_with_key(small_key)
    assert lent.proof != renamed.make_card_with_key(small_key).proof
    stated = own.sign(identity._encode_key_statement(small_key.public.fingerprint, lent.proof))
    borrowed = Card("labels-2", lent.signing, lent.paillier, lent.proof, stated)
    with pytest.raises(PrivacyError, match="the Paillier key of labels-2 is refused"):
        borrowed.verify_modulus(small_key.public.n)


def test_challenges_are_derived_as_they_are_written_down():
    """The same numbers in every version: proofs on cards stay valid."""
    assert derive_challenges(3 * 5 * 7 * 11 * 13, b"a")[:4] == [5223, 1633, 11229, 7547]
    taken = {one for text in (b"a", b"b", b"") for one in derive_challenges((1 << 127) - 1, text)}
    assert len(taken) == 3 * key_proof.CHALLENGES
    assert all(0 <= one < (1 << 127) - 1 for one in taken)


def forged(party, q):
    """N-th roots for N = 3 q with 3 | q - 1, where there happen to be any: one time in 410."""
    n, roots = 3 * q, []
    for challenge in derive_challenges(n, party):
        if challenge % 3 == 0 or pow(challenge, (q - 1) // 3, q) != 1:
            return None
        root = pow(challenge, (q + 2) // 9, q)  # the cube root, as q = 7 mod 9
        roots.append((root + q * ((challenge - root) * pow(q, -1, 3) % 3)).to_bytes(9, "big"))
    return b"".join(roots)


def test_small_factors_are_divided_out_because_proofs_with_them_can_be_found(monkeypatch):
    """The twin without division believes N = 3 q after a few hundred tries for other names."""
    monkeypatch.setattr(key_proof, "CHALLENGES", 4)  # with eight it takes 170,000
    q = next(one for one in count((1 << 68) + 1, 2) if one % 9 == 7 and gmpy2.is_prime(one))
    tries = ((b"party %d" % i, forged(b"party %d" % i, q)) for i in range(20_000))
    party, proof = next(found for found in tries if found[1] is not None)
    with pytest.raises(PrivacyError, match="a factor below 65536"):
        verify_modulus(3 * q, party, proof, "labels")
    key_proof._find_flaw.cache_clear()
    monkeypatch.setattr(key_proof, "_product_of_small_primes", lambda: 1)
    verify_modulus(3 * q, party, proof, "labels")  # the twin
    key_proof._find_flaw.cache_clear()


@pytest.mark.parametrize("factor", [3, 257, 65_521])
def test_every_small_factor_is_found(factor):
    n = factor * random_prime(200)
    with pytest.raises(PrivacyError, match="a factor below 65536"):
        verify_modulus(n, PARTY, bytes(8), "labels")


# ---- at every entrance


def improper(kind):
    """A modulus that is long enough for every check of length, or too long for it."""
    if kind == "p divides q - 1":
        p = random_prime(800)
        return p * prime_above_a_multiple(p, 1300)
    if kind == "p squared":
        return random_prime(700) ** 2 * random_prime(700)
    if kind == "smooth":
        n, factor = 1, 1 << 16
        while n.bit_length() < 2048:
            factor = int(gmpy2.next_prime(factor))
            n *= factor
        return n
    return {
        "a small factor": lambda: 65_521 * random_prime(2100),
        "a prime": lambda: random_prime(2100),
        "even": lambda: 2 * random_prime(1024) * random_prime(1024),
        "negative": lambda: -random_prime(1024) * random_prime(1025),
        "zero": lambda: 0,
        "65,513 bits": lambda: (1 << 65_512) + 1,
    }[kind]()


REFUSALS = {
    "p divides q - 1": "of labels is refused: root",
    "p squared": "of labels is refused: root",
    "smooth": "of labels is refused: root",
    "a small factor": "a factor below 65536",
    "a prime": "must be odd and composite",
    "even": "must be odd and composite",
    "negative": "must be odd and composite",
    "zero": "0 bits can be broken",
    "65,513 bits": "at most 8192 bits",
}


def stating(own, n):
    """A card that states and signs any number at all as a Paillier key."""
    width = -(-n.bit_length() // 8)
    fingerprint = hashlib.sha256(abs(n).to_bytes(width, "big")).hexdigest()
    proof = bytes(key_proof.CHALLENGES * min(width, key_proof.MAX_MODULUS_BITS // 8))
    statement = own.sign(identity._encode_key_statement(fingerprint, proof))
    return replace(own.card, paillier=fingerprint, proof=proof, statement=statement)


def write_round(folder, real_key, n):
    """The files of all parties of a vertical round whose manifest has an improper key."""
    card = stating(PARTIES["labels"], n)
    body = json.loads(vertical_manifest(real_key).to_json())
    kept = {name: body[name] for name in body if name not in ("format", "version", "digest")}
    manifest = dump_document("manifest", 6, {**kept, "paillier": hex(n), "label": card.to_body()})
    (folder / "manifest.json").write_text(manifest)
    public = dump_document("paillier-public-key", paillier.KEY_FILE_VERSION, {"n": hex(n)})
    (folder / "labels.public.json").write_text(public)
    (folder / "labels.paillier.json").write_text(real_key.to_json())
    (folder / "schema.json").write_text(SCHEMA.to_json())
    (folder / "table.csv").write_text("colour,size,age,class\nred,1,2,no\n")
    for name, own in PARTIES.items():
        (folder / f"{name}.identity.json").write_text(own.to_json())
        (folder / f"{name}.card.json").write_text(own.card.to_json())
    (folder / "labels.card.json").write_text(card.to_json())


def refused(words):
    result = CliRunner().invoke(main, ["federated", *words.split()])
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    return " ".join(result.output.split())


ELSEWHERE = "--yes --collector http://127.0.0.1:9"
ROUND = "manifest schema.json --provider hospital-a.card.json --provider hospital-b.card.json"
ROUND += " --collector collector.card.json --key labels.public.json --epsilon 1 -o new.json"
HELD = "--columns hospital-a=colour,age --columns hospital-b=size --rows 40"
ENTRANCES = {
    "show": "show manifest.json",
    "collect": "collect manifest.json --identity collector.identity.json --state s --yes --port 0",
    "provide": "provide manifest.json table.csv --identity hospital-a.identity.json --state s "
    + ELSEWHERE,
    "label": "label manifest.json table.csv --identity labels.identity.json --state s "
    "--key labels.paillier.json " + ELSEWHERE,
    "receive": "receive manifest.json --identity receiver.identity.json --state s -o o.json "
    + ELSEWHERE,
    "manifest, vertical": f"{ROUND} --receiver receiver.card.json --label labels.card.json {HELD}",
    "manifest, horizontal": f"{ROUND} --receiver labels.card.json",
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", REFUSALS)
def test_every_improper_modulus_is_refused_in_words(kind, tmp_path, monkeypatch, real_key):
    monkeypatch.chdir(tmp_path)
    write_round(tmp_path, real_key, improper(kind))
    assert REFUSALS[kind] in refused(ENTRANCES["show"])


@pytest.mark.slow
@pytest.mark.parametrize("entrance", ENTRANCES)
def test_a_crafted_key_is_refused_at_every_entrance(entrance, tmp_path, monkeypatch, real_key):
    """Before anything is signed, kept or written; the twin without the check goes on."""
    monkeypatch.chdir(tmp_path)
    write_round(tmp_path, real_key, improper("p divides q - 1"))
    said = refused(ENTRANCES[entrance])
    assert "the Paillier key of labels is refused: root" in said
    assert not [*tmp_path.glob("s"), *tmp_path.glob("o.json"), *tmp_path.glob("new.json")]
    if entrance.startswith(("show", "manifest")):  # the others would go on to a collector
        monkeypatch.setattr(identity, "verify_modulus", lambda *one: None)
        twin = CliRunner().invoke(main, ["federated", *ENTRANCES[entrance].split()])
        assert twin.exit_code == 0, twin.output


# ---- on cards and in files


def test_a_card_carries_the_proof_signed(small_key):
    own = PARTIES["labels"]
    card = Card.from_json(own.make_card_with_key(small_key).to_json())
    card.verify_modulus(small_key.public.n)
    for changed in ({"proof": b""}, {"proof": bytes(len(card.proof))}):
        with pytest.raises(FormatError, match="not signed by labels"):
            replace(card, **changed)
    with pytest.raises(FormatError, match="not signed"):
        replace(own.card, proof=b"x")
    body = card.to_body()
    for proof, match in (("xx", "not hexadecimal"), ("00" * 10**5, "too many")):
        with pytest.raises(FormatError, match=match):
            Card.from_json(dump_document("party", 4, {**body, "proof": proof}))


def test_cards_and_manifests_without_proofs_are_refused_by_name(tmp_path, small_key):
    """Rounds that were agreed before keys had proofs are not finished."""
    for name, kind, text in (
        ("old.card.json", "party", PARTIES["labels"].card.to_json()),
        ("old.manifest.json", "manifest", vertical_manifest().to_json()),
        ("old.invitation.json", "invitation", invitation().to_json()),
    ):
        body = json.loads(text)
        path = tmp_path / name
        path.write_text(json.dumps({**body, "version": 3}))
        result = CliRunner().invoke(main, ["federated", "show", str(path)])
        assert result.exit_code != 0
        for words in (name, kind, "version 3", "only"):
            assert words in result.output
        # keys stay as they are: a new identity would be another party
        way = "discreet federated identity NAME --card"
        assert (way in " ".join(result.output.split())) == (kind == "party")


def test_long_numbers_are_refused_before_any_arithmetic(tmp_path, monkeypatch, real_key):
    """A modulus of 65,513 bits kept `show` busy for minutes."""
    n = (1 << 65_512) + 1
    manifest = vertical_manifest(real_key)
    body = json.loads(manifest.to_json())
    kept = {name: body[name] for name in body if name not in ("format", "version", "digest")}
    path = tmp_path / "manifest.json"

    def never(*one):
        raise AssertionError("arithmetic")

    for name in ("is_prime", "gcd", "powmod", "mpz"):
        monkeypatch.setattr(gmpy2, name, never)
    path.write_text(dump_document("manifest", 6, {**kept, "paillier": hex(n)}))
    result = CliRunner().invoke(main, ["federated", "show", str(path)])
    assert result.exit_code == 2, result.output
    assert "at most 8192 bits" in result.output.replace("\n", " ")
    with pytest.raises(PrivacyError, match="65513 bits is too long"):
        PublicKey(n)
    with pytest.raises(PrivacyError, match="at most 8192 bits"):
        PublicKey.from_json(
            dump_document("paillier-public-key", paillier.KEY_FILE_VERSION, {"n": hex(n)})
        )
    with pytest.raises(PrivacyError, match="too long"):
        PrivateKey(n, 3)
    with pytest.raises(PrivacyError, match="too long"):
        generate_key(8194)


def test_an_older_card_is_written_again_for_the_same_keys(tmp_path, monkeypatch):
    """Identities and Paillier keys stay; only what others get has another shape."""
    monkeypatch.chdir(tmp_path)
    own, key = Identity.generate("labels"), generate_key(2048)
    (tmp_path / "labels.identity.json").write_text(own.to_json())
    for stated in (None, key.public.fingerprint):
        if stated is not None:
            (tmp_path / "labels.paillier.json").write_text(key.to_json())
        result = CliRunner().invoke(main, ["federated", "identity", "labels", "--card"])
        assert result.exit_code == 0, result.output
        card = Card.from_json((tmp_path / "labels.card.json").read_text())
        assert card == own.card
        assert card.paillier == stated
    card.verify_modulus(key.public.n)
    assert (tmp_path / "labels.identity.json").read_text() == own.to_json()
    assert (tmp_path / "labels.paillier.json").read_text() == key.to_json()
    result = CliRunner().invoke(main, ["federated", "identity", "nobody", "--card"])
    assert result.exit_code == 2
    assert "nobody.identity.json" in result.output
