"""A protocol for several data owners as published (Li and others 2018), and how it is broken.

Two Paillier systems, blinding factors with product one that every provider reuses for all of its
ciphertexts, and Laplace noise that one provider draws alone. The factors are taken from Z*_{N^2}:
as printed, from Z*_N with product one modulo N, it does not even decrypt. Only for reproduction and
for tests: it keeps no promise.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.federated.crypto.paillier import Encryptor, PrivateKey

__all__ = [
    "PUBLIC_FACTOR",
    "PublishedRound",
    "center_residue",
    "draw_blinding_factors",
    "read_exposed_counts",
    "recover_pad",
]

PUBLIC_FACTOR = 10**6
"""The paper's l: factor that turns numbers into integers."""

ProviderCounts = tuple[Any, Sequence[Any]]
"""Class totals n_i and, for each feature, n_ij(v) by class and value."""


def draw_blinding_factors(key: PrivateKey, count: int, modulus: int | None = None) -> list[int]:
    """Random factors with product one."""
    modulus = int(key.public.n) ** 2 if modulus is None else int(modulus)
    blinding_factors: list[int] = []
    product = 1
    while len(blinding_factors) < count - 1:
        factor = secrets.randbelow(modulus)
        if math.gcd(factor, int(key.public.n)) == 1:
            blinding_factors.append(factor)
            product = product * factor % modulus
    return [*blinding_factors, pow(product, -1, modulus)]


class PublishedRound:
    """All parties of a round as printed; what each of them sees is an attribute.

    Parameters
    ----------
    collector_key, receiver_key : PrivateKey
        Of the collector and of the receiver.
    counts : list of (totals, tables)
        For each provider the class totals n_i and, for each feature, n_ij(v) by class and value.
    epsilon : float
    seed : int
        Of the noise.
    """

    def __init__(
        self,
        collector_key: PrivateKey,
        receiver_key: PrivateKey,
        counts: Sequence[ProviderCounts],
        epsilon: float = 1.0,
        seed: int = 0,
    ) -> None:
        self.collector_key, self.receiver_key, self.counts = collector_key, receiver_key, counts
        # 0 … s, and s + 1 for the noise
        self.collector_factors = draw_blinding_factors(collector_key, len(counts) + 2)
        self.receiver_factors = draw_blinding_factors(receiver_key, len(counts) + 1)
        self._collector_encryptor = Encryptor(collector_key.public)
        self._receiver_encryptor = Encryptor(receiver_key.public)
        rng = np.random.default_rng(seed)
        providers = range(1, len(counts) + 1)
        self.collector_submissions = [self.hide_counts(provider) for provider in providers]
        self.receiver_submissions = [self.hide_totals(provider) for provider in providers]
        noise = [
            rng.laplace(0, 1 / epsilon, np.shape(count_array))
            for count_array in self._list_arrays(counts[0])
        ]
        self.noise = [np.ceil(count_array * PUBLIC_FACTOR).astype(int) for count_array in noise]
        self.noise_token = self._encrypt_counts(
            (self.noise[0], self.noise[1:]), self.collector_factors[-1], self._collector_encryptor
        )

    @staticmethod
    def _list_arrays(provider_counts: ProviderCounts) -> list[Any]:
        return [provider_counts[0], *provider_counts[1]]

    def hide_counts(self, provider: int) -> list[Any]:
        """What provider k, from 1, sends under the first system."""
        return self._encrypt_counts(
            self.counts[provider - 1],
            self.collector_factors[provider],
            self._collector_encryptor,
            PUBLIC_FACTOR,
        )

    def hide_totals(self, provider: int) -> list[int]:
        """What provider k, from 1, sends under the second system."""
        modulus = self.receiver_key.public.n_squared
        blinding_factor = self.receiver_factors[provider]
        class_totals = self.counts[provider - 1][0]
        return [
            int(blinding_factor * self._receiver_encryptor.encrypt(int(class_total)) % modulus)
            for class_total in class_totals
        ]

    def _encrypt_counts(
        self,
        provider_counts: ProviderCounts,
        blinding_factor: int,
        encryptor: Encryptor,
        factor: int = 1,
    ) -> list[Any]:
        """Tau times the ciphertext of every count, as numbers in the shape of the counts."""
        modulus = encryptor.key.n_squared

        def hide_count(count: Any) -> int:
            return int(blinding_factor * encryptor.encrypt(int(count) * factor) % modulus)

        return [
            np.vectorize(hide_count, otypes=[object])(count_array)
            for count_array in self._list_arrays(provider_counts)
        ]

    def open_collector_totals(self) -> list[Any]:
        """Algorithm 3, line 3: the noised totals, multiplied with l."""
        key = self.collector_key
        modulus, opened_totals = key.public.n**2, []

        def decrypt_centered(ciphertext: Any) -> int:
            return center_residue(key.decrypt(int(ciphertext)), key.public.n)

        for index, noise_array in enumerate(self.noise_token):
            product = self.collector_factors[0] * noise_array
            for submitted in self.collector_submissions:
                product = product * submitted[index] % modulus
            opened_totals.append(np.vectorize(decrypt_centered, otypes=[object])(product % modulus))
        return opened_totals

    def open_receiver_quotients(self) -> tuple[list[int], list[list[list[int]]]]:
        """Algorithm 3, lines 15 to 25, and the extraction: n r_i and n_i r_ij(v) as integers."""
        public_key, opened_totals = self.receiver_key.public, self.open_collector_totals()
        class_ciphertexts = [
            public_key.add([self.receiver_factors[0], *submissions])
            for submissions in zip(*self.receiver_submissions, strict=True)
        ]
        total_ciphertext = public_key.add(class_ciphertexts)

        def scale_reciprocal(count: Any) -> int:
            return round(PUBLIC_FACTOR**2 / count) if count else 0

        reciprocal_factors = [
            np.vectorize(scale_reciprocal, otypes=[object])(count_array)
            for count_array in opened_totals
        ]
        priors = [
            self.receiver_key.decrypt(public_key.scale_ciphertext(total_ciphertext, factor))
            for factor in reciprocal_factors[0]
        ]
        tables = [
            [
                [
                    self.receiver_key.decrypt(
                        public_key.scale_ciphertext(class_ciphertexts[class_index], factor)
                    )
                    for factor in row
                ]
                for class_index, row in enumerate(table)
            ]
            for table in reciprocal_factors[1:]
        ]
        return priors, tables


# ---------------------------------------------------------------- the attack


def center_residue(value: Any, n: Any) -> int:
    """A residue modulo n as a number around zero."""
    residue, modulus = int(value) % int(n), int(n)
    return residue if residue < modulus // 2 else residue - modulus


def recover_pad(key: PrivateKey, total: Any, cells: Sequence[Any]) -> int:
    """Attack B: sum over v of Dec(e_ij(v)) minus Dec(e_i) is (D - 1) alpha."""
    n = int(key.public.n)
    decrypted_difference = sum(int(key.decrypt(int(cell))) for cell in cells) - int(
        key.decrypt(int(total))
    )
    return int(decrypted_difference * pow(len(cells) - 1, -1, n) % n)


def read_exposed_counts(published_round: PublishedRound, provider: int) -> list[list[int]]:
    """Read, as the collector, every exact count times l of one provider (numbered from 0)."""
    key, submission = published_round.collector_key, published_round.collector_submissions[provider]
    pad = recover_pad(key, submission[0][0], submission[1][0])
    return [
        [
            center_residue(int(key.decrypt(int(ciphertext))) - pad, key.public.n)
            for ciphertext in cell_array.ravel()
        ]
        for cell_array in submission
    ]
