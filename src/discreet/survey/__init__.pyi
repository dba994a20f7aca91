# The public names of the package, listed here only: discreet.exports reads them.

from discreet.collection.parquet_tally import tally_parquet as tally_parquet
from discreet.collection.report import Report as Report
from discreet.collection.respondent import Respondent as Respondent
from discreet.collection.store import FolderStore as FolderStore
from discreet.collection.store import MemoryStore as MemoryStore
from discreet.collection.tally import Tally as Tally
from discreet.survey.inversion import estimate_share as estimate_share
from discreet.survey.inversion import estimate_statistics as estimate_statistics
from discreet.survey.questionnaire import Group as Group
from discreet.survey.questionnaire import PersonalLaw as PersonalLaw
from discreet.survey.questionnaire import Questionnaire as Questionnaire
from discreet.survey.testing import estimate_sheet_accuracy as estimate_sheet_accuracy
