# The public names of the package, listed here only: discreet.exports reads them.

from discreet.estimators.central import CentralNB as CentralNB
from discreet.estimators.federated import FederatedNB as FederatedNB
from discreet.estimators.local import LocalNB as LocalNB
from discreet.estimators.mixed import MixedNB as MixedNB
from discreet.estimators.survey import SurveyNB as SurveyNB
