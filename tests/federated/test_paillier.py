"""Paillier against phe, against itself, and against what must be refused."""

from __future__ import annotations

import secrets

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import FormatError, PrivacyError
from discreet.federated.crypto.packing import Slots
from discreet.federated.crypto.paillier import Encryptor, PrivateKey, PublicKey, generate_key
from discreet.federated.refusals import ProtocolError


def test_what_was_encrypted_is_read_and_fresh_every_time(real_key):
    encryptor, n = Encryptor(real_key.public), real_key.public.n
    for plain in (0, 1, 2**64, n - 1, secrets.randbelow(n)):
        assert real_key.decrypt(encryptor.encrypt(plain)) == plain
    assert encryptor.encrypt(7) != encryptor.encrypt(7)


@pytest.mark.parametrize("expected", [1, 40, 5000])
def test_every_window_encrypts_the_same_law(small_key, expected):
    for secret, bits in ((None, 320), (small_key, 200)):  # the owner has two exponents
        encryptor = Encryptor(small_key.public, expected, secret)
        assert (
            encryptor.window_bits * len(encryptor.power_tables[0])
            >= encryptor.exponent_bits
            == bits
        )
        assert small_key.decrypt(encryptor.encrypt(12345)) == 12345
        assert (
            small_key.decrypt(encryptor.encrypt(small_key.public.n - 1)) == small_key.public.n - 1
        )


def test_the_owner_draws_an_exponent_for_each_prime(small_key):
    """Modulo p and modulo q the randomness is independent: neither repeats when the other does."""
    encryptor, drawn = Encryptor(small_key.public, 1, small_key), iter([5, 6, 5, 7, 8, 6])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(secrets, "randbits", lambda bits: next(drawn))
        one, two, three = (int(encryptor.encrypt(1)) for _ in range(3))
    p, q = small_key.p, small_key.q
    assert one % p == two % p != three % p
    assert one % q == three % q != two % q
    assert Encryptor(small_key.public, 1).exponent_bits < 2 * encryptor.exponent_bits


def test_sums_products_and_fresh_randomness(small_key):
    key, encryptor = small_key.public, Encryptor(small_key.public)
    a, b = encryptor.encrypt(20), encryptor.encrypt(22)
    assert small_key.decrypt(key.add([a, b])) == 42
    assert small_key.decrypt(key.scale_ciphertext(a, 1000)) == 20_000
    assert small_key.decrypt(key.scale_ciphertext(a, -3)) == key.n - 60
    again = key.refresh_ciphertext(a)
    assert again != a
    assert small_key.decrypt(again) == 20


def test_phe_reads_ours_and_we_read_phe(real_key):
    phe = pytest.importorskip("phe")
    public = phe.PaillierPublicKey(real_key.public.n)
    private = phe.PaillierPrivateKey(public, real_key.p, real_key.q)
    ours = Encryptor(real_key.public).encrypt(987654321)
    assert private.raw_decrypt(int(ours)) == 987654321
    assert real_key.decrypt(public.raw_encrypt(123456789)) == 123456789
    both = real_key.public.add([ours, real_key.public.check_ciphertext(public.raw_encrypt(1))])
    assert private.raw_decrypt(int(both)) == 987654322


def test_keys_below_2048_bits_are_refused_unless_a_test_asks(small_key):
    with pytest.raises(PrivacyError, match="at least 2048"):
        generate_key(1024)
    with pytest.raises(PrivacyError, match="at least 2048"):
        PublicKey(small_key.public.n)
    with pytest.raises(PrivacyError, match="at least 2048"):
        PrivateKey.from_json(small_key.to_json())
    assert PrivateKey.from_json(small_key.to_json(), allow_small=True) == small_key


def test_primes_fit_the_short_exponents(real_key):
    assert real_key.p % 4 == real_key.q % 4 == 3
    assert real_key.public.bits == 2048
    assert str(real_key.p) not in repr(real_key)


@pytest.mark.parametrize(
    ("primes", "match"), [((15, 7), "primes"), ((7, 7), "primes"), ((3, 7), "fit together")]
)
def test_what_is_no_key_is_refused(primes, match):
    with pytest.raises(PrivacyError, match=match):
        PrivateKey(*primes, allow_small=True)


@pytest.mark.parametrize("n", [2**2048, 2**61 - 1, 9 - 2])
def test_what_is_no_modulus_is_refused(n):
    with pytest.raises(PrivacyError, match="modulus"):
        PublicKey(n, allow_small=True)


def test_a_damaged_key_file_is_refused(small_key):
    with pytest.raises(FormatError, match="changed or damaged"):
        PrivateKey.from_json(small_key.to_json().replace("0x", "0x1", 1), allow_small=True)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda key: 0, "out-of-range"),
        (lambda key: -5, "out-of-range"),
        (lambda key: key.public.n**2, "out-of-range"),
        (lambda key: key.public.n, "not-invertible"),
        (lambda key: key.p * 1234567, "not-invertible"),
        (lambda key: "12", "malformed"),
        (lambda key: True, "malformed"),
        (lambda key: 1.5, "malformed"),
    ],
)
def test_what_is_no_ciphertext_is_refused_with_its_reason(small_key, make, reason):
    with pytest.raises(ProtocolError) as refusal:
        small_key.public.check_ciphertext(make(small_key))
    assert refusal.value.reason == reason
    with pytest.raises(ProtocolError):
        small_key.decrypt(make(small_key))


def test_ciphertexts_travel_as_bytes_of_one_length(small_key):
    key, encryptor = small_key.public, Encryptor(small_key.public)
    sent = [encryptor.encrypt(i) for i in range(3)]
    data = key.to_bytes(sent)
    assert len(data) == 3 * 256
    assert key.from_bytes(data, 3) == sent
    for damaged in (data[:-1], data + b"\0", b""):
        with pytest.raises(ProtocolError, match="wrong-length"):
            key.from_bytes(damaged, 3)


@pytest.mark.slow
@given(st.data())
def test_slots_add_up_whatever_the_signs(data):
    parties = data.draw(st.integers(1, 6))
    slots = Slots(256, parties, data.draw(st.sampled_from([48, 64])))
    size = data.draw(st.integers(1, 8))
    edge = slots.offset - 1
    numbers = st.one_of(st.integers(-edge, edge), st.sampled_from([-edge, edge, 0]))
    rows = data.draw(
        st.lists(
            st.lists(numbers, min_size=size, max_size=size), min_size=parties, max_size=parties
        )
    )
    sums = [sum(plains) for plains in zip(*(slots.pack_counters(row) for row in rows), strict=True)]
    assert all(one < 2**255 for one in sums)
    assert slots.unpack_counters(sums, size).tolist() == [
        sum(column) for column in zip(*rows, strict=True)
    ]


@pytest.mark.parametrize(("bits", "wide", "narrow"), [(3072, 47, 63), (2048, 31, 42)])
def test_a_plaintext_holds_as_many_counters_as_the_design_says(bits, wide, narrow):
    assert Slots(bits, 16).size == wide
    assert Slots(bits, 16, 48).size == narrow


@pytest.mark.parametrize("value", [2**59, -(2**59), 2**63])
def test_a_counter_beyond_the_bound_is_refused_not_wrapped(value):
    with pytest.raises(PrivacyError, match="beyond"):
        Slots(1024, 16).pack_counters(np.array([value], dtype=object))


def test_counters_are_whole_numbers():
    with pytest.raises(PrivacyError, match="whole"):
        Slots(1024, 2).pack_counters([1.5])


def test_a_sum_that_does_not_fit_is_refused():
    slots = Slots(1024, 2)
    with pytest.raises(ProtocolError, match="out-of-range"):
        slots.unpack_counters([1 << 64 * 3], 3)
    with pytest.raises(ProtocolError, match="wrong-length"):
        slots.unpack_counters([1, 2], 3)
    with pytest.raises(PrivacyError, match="parties"):
        Slots(1024, 0)
    with pytest.raises(PrivacyError, match="room"):
        Slots(64, 1)
