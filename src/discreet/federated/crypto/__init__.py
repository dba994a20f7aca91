"""Cryptography of secure sums: Paillier, pads, noise shares, packing, sealing, Curve25519."""
