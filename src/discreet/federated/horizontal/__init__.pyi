# The public names of the package, listed here only: discreet.exports reads them.

from discreet.federated.horizontal.collector import HorizontalCollector as HorizontalCollector
from discreet.federated.horizontal.provider import HorizontalProvider as HorizontalProvider
from discreet.federated.horizontal.receiver import HorizontalReceiver as HorizontalReceiver
