# The public names of the package, listed here only: discreet.exports reads them.

from discreet.federated.agreement.identity import Card as Card
from discreet.federated.agreement.identity import Identity as Identity
from discreet.federated.agreement.invitation import Invitation as Invitation
from discreet.federated.agreement.manifest import Manifest as Manifest
from discreet.federated.crypto.paillier import PrivateKey as PrivateKey
from discreet.federated.crypto.paillier import PublicKey as PublicKey
from discreet.federated.release import Release as Release
from discreet.federated.simulation import RoundTerms as RoundTerms
from discreet.federated.simulation import simulate_horizontal as simulate_horizontal
from discreet.federated.simulation import simulate_judged as simulate_judged
from discreet.federated.simulation import simulate_vertical as simulate_vertical
