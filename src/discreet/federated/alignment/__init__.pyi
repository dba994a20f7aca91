# The public names of the package, listed here only: discreet.exports reads them.

from discreet.federated.alignment.matcher import Matcher as Matcher
from discreet.federated.alignment.owner import Owner as Owner
