"""What hides numbers from whoever adds them: Paillier, pads, noise in shares, packing, points."""
