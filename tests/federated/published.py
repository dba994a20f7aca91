"""The construction as published, broken: the reproduction has it, and the attacks need it."""

from discreet.papers.published_parties import PUBLIC_FACTOR, Published, factors

__all__ = ["PUBLIC_FACTOR", "Published", "factors"]
