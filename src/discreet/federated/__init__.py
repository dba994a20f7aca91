"""Federated training without a trusted curator: the roles of a round and its manifest.

Each role is a small state machine that reads and returns signed messages; only programs open
files and connections. :mod:`discreet.federated.horizontal` is for providers who hold different
people, :mod:`discreet.federated.vertical` for providers who hold different columns;
:mod:`discreet.federated.alignment` finds the people whom all owners have in common.
"""

from discreet.exports import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__)
