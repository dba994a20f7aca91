"""Private set intersection of ids by Diffie-Hellman: rows that all owners have in common.

    owner      maps its ids to points, puts them in a random order, blinds them      list-k
    others     blind the list as well, one after the other round the ring            list-k
    collector  compares lists that all owners have blinded; tells each owner which   common
               positions of its own list are common, in an order that is random

Equal ids have equal points under all scalars, and only then: the collector sees which entries
are the same, without being able to try out an id, as it would need every owner's scalar. A list
that fewer have blinded is sealed for the next owner, so the collector carries what it cannot read.

Who learns what, all parties following the protocol (semi-honest):

    an owner        who is common to all, and how long each list is
    the collector   how long each list is, and how many entries each group of owners shares
    anyone else     nothing; on a line without TLS who talks, and how long each list is

Parties who pool what they saw learn more. The collector with one owner learns which of that
owner's ids are with which other owner. Several owners learn which of their ids are with another
owner, common to all or not. An id that none of them holds stays hidden from all of them.
"""

from discreet.exports import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__)
