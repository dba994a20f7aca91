"""The construction as published (Li et al. 2018, sections 5.3 and 5.4), broken, for the tests only.

Two Paillier systems, blinding factors with product one that every provider reuses for all of its
ciphertexts, and Laplace noise that one provider draws alone. The factors are taken from Z*_{N^2}:
as printed, from Z*_N with product one modulo N, it does not even decrypt (attack E).
"""

from __future__ import annotations

import math
import secrets

import numpy as np

from discreet.federated.crypto.paillier import Encryptor

PUBLIC_FACTOR = 10**6
"""l: what numbers are multiplied with to become whole."""


def factors(key, count, modulus=None):
    """Random factors with product one."""
    modulus = key.public.n**2 if modulus is None else modulus
    found, product = [], 1
    while len(found) < count - 1:
        factor = secrets.randbelow(modulus)
        if math.gcd(factor, key.public.n) == 1:
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
    """

    def __init__(self, first, second, counts, epsilon=1.0, seed=0):
        self.first, self.second, self.counts = first, second, counts
        self.tau1 = factors(first, len(counts) + 2)  # 0 … s, and s + 1 for the noise
        self.tau2 = factors(second, len(counts) + 1)
        self._one, self._two = Encryptor(first.public), Encryptor(second.public)
        rng = np.random.default_rng(seed)
        self.submitted1 = [
            self._hidden(own, self.tau1[k], self._one, PUBLIC_FACTOR)
            for k, own in enumerate(counts, 1)
        ]
        self.submitted2 = [
            [int(self.tau2[k] * self._two.encrypt(int(n)) % second.public.modulus) for n in own[0]]
            for k, own in enumerate(counts, 1)
        ]
        noise = [rng.laplace(0, 1 / epsilon, np.shape(part)) for part in self._parts(counts[0])]
        self.noise = [np.ceil(part * PUBLIC_FACTOR).astype(int) for part in noise]
        self.noise_token = self._hidden((self.noise[0], self.noise[1:]), self.tau1[-1], self._one)

    @staticmethod
    def _parts(own):
        return [own[0], *own[1]]

    def _hidden(self, own, tau, encryptor, factor=1):
        """Tau times the ciphertext of every count, as numbers in the shape of the counts."""
        modulus = encryptor.key.modulus

        def hide(count):
            return int(tau * encryptor.encrypt(int(count) * factor) % modulus)

        return [np.vectorize(hide, otypes=[object])(part) for part in self._parts(own)]

    def collector_opens(self):
        """Algorithm 3, line 3: the noised totals, multiplied with l."""
        modulus, opened = self.first.public.n**2, []
        for index, token in enumerate(self.noise_token):
            product = self.tau1[0] * token
            for submitted in self.submitted1:
                product = product * submitted[index] % modulus
            opened.append(np.vectorize(self._centred, otypes=[object])(product % modulus))
        return opened

    def _centred(self, ciphertext):
        plain, n = self.first.decrypt(int(ciphertext)), self.first.public.n
        return plain if plain < n // 2 else plain - n

    def receiver_opens(self):
        """Algorithm 3, lines 15 to 25, and the extraction: n r_i and n_i r_ij(v) as integers."""
        public, opened = self.second.public, self.collector_opens()
        each = []
        for i in range(len(self.counts[0][0])):
            product = public.add([self.tau2[0], *(own[i] for own in self.submitted2)])
            each.append(product)
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
