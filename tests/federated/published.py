"""The construction as published, broken: the reproduction has it, and the attacks need it."""

from discreet.papers.published_parties import PUBLIC_FACTOR, PublishedRound, draw_blinding_factors

__all__ = ["PUBLIC_FACTOR", "PublishedRound", "draw_blinding_factors"]
