"""Where every random bit comes from, and how bytes become exact draws."""

from discreet.randomness.source import CryptoRandom, Number, Random, SeededRandom, as_random

__all__ = ["CryptoRandom", "Number", "Random", "SeededRandom", "as_random"]
