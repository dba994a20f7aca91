# The public names of the package, listed here only: discreet.exports reads them.

from discreet.federated.vertical.collector import VerticalCollector as VerticalCollector
from discreet.federated.vertical.label_provider import LabelProvider as LabelProvider
from discreet.federated.vertical.provider import VerticalProvider as VerticalProvider
from discreet.federated.vertical.receiver import VerticalReceiver as VerticalReceiver
