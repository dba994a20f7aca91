# The public names of the package, listed here only: discreet.exports reads them.

from discreet.errors import DiscreetError as DiscreetError
from discreet.errors import EstimationError as EstimationError
from discreet.errors import FormatError as FormatError
from discreet.errors import MissingDependencyError as MissingDependencyError
from discreet.errors import PrivacyError as PrivacyError
from discreet.errors import PrivacyWarning as PrivacyWarning
from discreet.errors import SchemaError as SchemaError
from discreet.estimation import estimate as estimate
from discreet.estimators.central import CentralNB as CentralNB
from discreet.estimators.federated import FederatedNB as FederatedNB
from discreet.estimators.local import LocalNB as LocalNB
from discreet.estimators.mixed import MixedNB as MixedNB
from discreet.estimators.private_scores import score_privately as score_privately
from discreet.estimators.survey import SurveyNB as SurveyNB
from discreet.model import NaiveBayesModel as NaiveBayesModel
from discreet.privacy.guarantee import Guarantee as Guarantee
from discreet.privacy.ledger import Ledger as Ledger
from discreet.privacy.ledger import MemoryLedger as MemoryLedger
from discreet.randomness import CryptoRandom as CryptoRandom
from discreet.randomness import SeededRandom as SeededRandom
from discreet.schema.dates import Date as Date
from discreet.schema.dates import DatePart as DatePart
from discreet.schema.schema import Categorical as Categorical
from discreet.schema.schema import Numeric as Numeric
from discreet.schema.schema import Schema as Schema
from discreet.statistics.statistics import Statistics as Statistics

__version__: str
