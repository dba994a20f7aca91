"""Proof that a Paillier modulus is well-formed: no small factor, and gcd(N, φ(N)) = 1.

If a prime p divides both N and φ(N), as with N = p q and p | q - 1, or N = p^2 q, then r -> r^N
forgets a subgroup of order p: refreshing a ciphertext leaves there whatever the key's owner put
into it, and the owner reads of a sum which rows went into it. If gcd(N, φ(N)) = 1, r -> r^N
permutes the units of Z_N, and a refreshed ciphertext with a uniform pad is uniform.

The prover gives the N-th root of each challenge; challenges are hash values (Goldberg, Reyzin,
Sagga, Baldimtsi 2019, "Efficient noninteractive certification of RSA moduli and beyond"). Where p
divides both N and φ(N), at most one unit in p is an N-th power. All p < 2^16 are ruled out by
division, so eight challenges are all met with a probability below 2^-128 for every modulus and name
that is tried: whoever searches for one that passes needs about 2^128 tries. The roots say nothing
else: whoever draws x knows that x is the N-th root of x^N.

The proof is about N alone, so it holds in every round. The challenges also name the party whose
key it is, so that nobody hands out another's proof as its own.
"""

from __future__ import annotations

import hashlib
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from discreet.errors import FormatError, PrivacyError

if TYPE_CHECKING:
    from discreet.federated.crypto.paillier import PrivateKey

__all__ = [
    "CHALLENGES",
    "MAX_MODULUS_BITS",
    "derive_challenges",
    "parse_proof",
    "prove_modulus",
    "verify_modulus",
]

SMALLEST_FACTOR_BITS = 16  # primes below 2^16 are ruled out by division
SOUNDNESS_BITS = 128  # a modulus that is not a proper one passes with probability below 2^-128
CHALLENGES = SOUNDNESS_BITS // SMALLEST_FACTOR_BITS  # roots; section 3.2 of the paper
EXCESS_BITS = 128  # of a hash value beyond those of N: reduced mod N it is within 2^-128 of uniform
PROOF_DOMAIN = b"discreet/paillier-modulus/1\0"
MAX_MODULUS_BITS = 8192  # of a modulus; longer ones only cost time
REMEMBERED_PROOFS = 64  # a manifest is checked again with every signature that is added


@cache
def _product_of_small_primes() -> Any:
    """The product of all primes below 2^16."""
    import gmpy2

    return gmpy2.primorial((1 << SMALLEST_FACTOR_BITS) - 1)


def derive_challenges(n: int, party: bytes) -> list[int]:
    """The numbers whose N-th roots are asked for, from N and from whose key it is.

    Parameters
    ----------
    n : int
    party : bytes
        What stands for the party: its name and its public key.
    """
    modulus_bytes = int(n).to_bytes(-(-int(n).bit_length() // 8), "big")
    # lengths are in front, so that no two pairs of modulus and party give the same seed
    seed_parts = (
        PROOF_DOMAIN,
        len(modulus_bytes).to_bytes(4, "big"),
        modulus_bytes,
        len(party).to_bytes(4, "big"),
        party,
    )
    seed = hashlib.sha256(b"".join(seed_parts)).digest()
    challenge_bytes = -(-(int(n).bit_length() + EXCESS_BITS) // 8)
    challenges = []
    for number in range(CHALLENGES):
        challenge_hash = hashlib.shake_256(seed + number.to_bytes(4, "big")).digest(challenge_bytes)
        challenges.append(int.from_bytes(challenge_hash, "big") % n)
    return challenges


def prove_modulus(key: PrivateKey, party: bytes) -> bytes:
    """The N-th roots of all challenges, one after the other.

    Parameters
    ----------
    key : PrivateKey
    party : bytes
        As for :func:`derive_challenges`.
    """
    import gmpy2

    p, q, n = gmpy2.mpz(key.p), gmpy2.mpz(key.q), key.public.n
    root_mod_p, root_mod_q = gmpy2.invert(n, p - 1), gmpy2.invert(n, q - 1)
    p_inverse, root_bytes = gmpy2.invert(p, q), -(-key.public.bits // 8)
    roots = []
    for challenge in derive_challenges(n, party):
        root_p = gmpy2.powmod(challenge % p, root_mod_p, p)
        root_q = gmpy2.powmod(challenge % q, root_mod_q, q)
        roots.append(
            int(root_p + p * ((root_q - root_p) * p_inverse % q)).to_bytes(root_bytes, "big")
        )
    return b"".join(roots)


def verify_modulus(n: int, party: bytes, proof: bytes, owner_name: str) -> None:
    """Refuse a modulus whose proof does not show that it is well-formed.

    Parameters
    ----------
    n : int
        Of a length that was checked.
    party : bytes
        As for :func:`derive_challenges`.
    proof : bytes
        From :func:`prove_modulus`.
    owner_name : str
        The party's name, for the refusal.
    """
    reason = _find_flaw(int(n), party, proof)
    if reason:
        raise PrivacyError(
            f"the Paillier key of {owner_name} is refused: {reason}. With such a key {owner_name} "
            f"could read single people's values out of sums; do not sign, and ask {owner_name} for "
            f"a key and a card made with `discreet federated identity {owner_name} --paillier`",
        )


@lru_cache(REMEMBERED_PROOFS)
def _find_flaw(n: int, party: bytes, proof: bytes) -> str:
    """Return why a proof does not hold; empty if it holds."""
    import gmpy2

    if gmpy2.gcd(n, _product_of_small_primes()) != 1:
        return f"it has a factor below {1 << SMALLEST_FACTOR_BITS}"
    root_bytes = -(-n.bit_length() // 8)
    if len(proof) != CHALLENGES * root_bytes:
        return f"its proof has {len(proof)} bytes, not {CHALLENGES} roots of {root_bytes}"
    modulus = gmpy2.mpz(n)
    for number, challenge in enumerate(derive_challenges(n, party)):
        root = int.from_bytes(proof[number * root_bytes : (number + 1) * root_bytes], "big")
        if not 0 < root < n or gmpy2.gcd(challenge, modulus) != 1:
            return f"root {number + 1} of its proof is not a number below N without its factors"
        if gmpy2.powmod(root, modulus, modulus) != challenge:
            return f"root {number + 1} of its proof is not the one that was asked for"
    return ""


def parse_proof(text: str) -> bytes:
    """A proof as it is written on a card, in hexadecimal and of limited length."""
    if len(text) > CHALLENGES * MAX_MODULUS_BITS // 4:
        raise FormatError(f"the proof of a Paillier key has {len(text)} digits, which is too many")
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise FormatError("the proof of a Paillier key is not hexadecimal") from None
