"""Several organisations, no trusted curator: providers, a collector, a receiver, and their round.

Each party's part is a small machine that takes and gives signed messages; nothing here opens a
file or a connection. :mod:`discreet.federated.horizontal` is for providers who hold different
people, :mod:`discreet.federated.vertical` for providers who hold different columns;
:mod:`discreet.federated.alignment` finds out which people all of these have in common.
"""
