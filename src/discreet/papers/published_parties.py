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

__all__ = ["PUBLIC_FACTOR", "Published", "centred", "exposed_counts", "factors", "pad_of"]

PUBLIC_FACTOR = 10**6
"""The paper's l: factor that turns numbers into integers."""

Counts = tuple[Any, Sequence[Any]]
"""Class totals n_i and, for each feature, n_ij(v) by class and value."""


def factors(key: PrivateKey, count: int, modulus: int | None = None) -> list[int]:
    """Random factors with product one."""
    modulus = int(key.public.n) ** 2 if modulus is None else int(modulus)
    found: list[int] = []
    product = 1
    while len(found) < count - 1:
        factor = secrets.randbelow(modulus)
        if math.gcd(factor, int(key.public.n)) == 1:
            found.append(factor)
            product = product * factor % modulus
    return [*found, pow(product, -1, modulus)]


class Published:
    """All parties of a round as printed; what each of them sees is an attribute.

    Parameters
    ----------
    first, second : PrivateKey
        Of the collector and of the receiver.
    counts : list of (totals, tables)
        For each provider the class totals n_i and, for each feature, n_ij(v) by class and value.
    epsilon : float
    seed : int
        Of the noise.
    """

    def __init__(
        self,
        first: PrivateKey,
        second: PrivateKey,
        counts: Sequence[Counts],
        epsilon: float = 1.0,
        seed: int = 0,
    ) -> None:
        self.first, self.second, self.counts = first, second, counts
        self.tau1 = factors(first, len(counts) + 2)  # 0 … s, and s + 1 for the noise
        self.tau2 = factors(second, len(counts) + 1)
        self._one, self._two = Encryptor(first.public), Encryptor(second.public)
        rng = np.random.default_rng(seed)
        self.submitted1 = [self.hidden(k) for k in range(1, len(counts) + 1)]
        self.submitted2 = [self.hidden_totals(k) for k in range(1, len(counts) + 1)]
        noise = [rng.laplace(0, 1 / epsilon, np.shape(part)) for part in self._parts(counts[0])]
        self.noise = [np.ceil(part * PUBLIC_FACTOR).astype(int) for part in noise]
        self.noise_token = self._hidden((self.noise[0], self.noise[1:]), self.tau1[-1], self._one)

    @staticmethod
    def _parts(own: Counts) -> list[Any]:
        return [own[0], *own[1]]

    def hidden(self, provider: int) -> list[Any]:
        """What provider k, from 1, sends under the first system."""
        return self._hidden(
            self.counts[provider - 1], self.tau1[provider], self._one, PUBLIC_FACTOR
        )

    def hidden_totals(self, provider: int) -> list[int]:
        """What provider k, from 1, sends under the second system."""
        modulus, tau = self.second.public.modulus, self.tau2[provider]
        totals = self.counts[provider - 1][0]
        return [int(tau * self._two.encrypt(int(n)) % modulus) for n in totals]

    def _hidden(self, own: Counts, tau: int, encryptor: Encryptor, factor: int = 1) -> list[Any]:
        """Tau times the ciphertext of every count, as numbers in the shape of the counts."""
        modulus = encryptor.key.modulus

        def hide(count: Any) -> int:
            return int(tau * encryptor.encrypt(int(count) * factor) % modulus)

        return [np.vectorize(hide, otypes=[object])(part) for part in self._parts(own)]

    def collector_opens(self) -> list[Any]:
        """Algorithm 3, line 3: the noised totals, multiplied with l."""
        modulus, opened = self.first.public.n**2, []
        for index, token in enumerate(self.noise_token):
            product = self.tau1[0] * token
            for submitted in self.submitted1:
                product = product * submitted[index] % modulus
            opened.append(np.vectorize(self._centred, otypes=[object])(product % modulus))
        return opened

    def _centred(self, ciphertext: Any) -> int:
        return centred(self.first.decrypt(int(ciphertext)), self.first.public.n)

    def receiver_opens(self) -> tuple[list[int], list[list[list[int]]]]:
        """Algorithm 3, lines 15 to 25, and the extraction: n r_i and n_i r_ij(v) as integers."""
        public, opened = self.second.public, self.collector_opens()
        each = []
        for i in range(len(self.counts[0][0])):
            each.append(public.add([self.tau2[0], *(own[i] for own in self.submitted2)]))
        whole = public.add(each)
        reciprocal = [
            np.vectorize(lambda x: round(PUBLIC_FACTOR**2 / x) if x else 0, otypes=[object])(part)
            for part in opened
        ]
        priors = [self.second.decrypt(public.scale(whole, r)) for r in reciprocal[0]]
        tables = [
            [
                [self.second.decrypt(public.scale(each[i], r)) for r in row]
                for i, row in enumerate(table)
            ]
            for table in reciprocal[1:]
        ]
        return priors, tables


# ---------------------------------------------------------------- the attack


def centred(number: Any, n: Any) -> int:
    """A residue modulo n as a number around zero."""
    whole, size = int(number) % int(n), int(n)
    return whole if whole < size // 2 else whole - size


def pad_of(key: PrivateKey, total: Any, cells: Sequence[Any]) -> int:
    """Attack B: sum over v of Dec(e_ij(v)) minus Dec(e_i) is (D - 1) alpha."""
    n = int(key.public.n)
    gap = sum(int(key.decrypt(int(one))) for one in cells) - int(key.decrypt(int(total)))
    return int(gap * pow(len(cells) - 1, -1, n) % n)


def exposed_counts(round_: Published, provider: int) -> list[list[int]]:
    """Read, as the collector, every exact count times l of one provider (numbered from 0)."""
    key, submitted = round_.first, round_.submitted1[provider]
    pad = pad_of(key, submitted[0][0], submitted[1][0])
    return [
        [centred(int(key.decrypt(int(c))) - pad, key.public.n) for c in part.ravel()]
        for part in submitted
    ]
