# The public names of the package, listed here only: discreet.exports reads them.

from discreet.collection.parquet_tally import tally_parquet as tally_parquet
from discreet.collection.report import Report as Report
from discreet.collection.respondent import Respondent as Respondent
from discreet.collection.store import FolderStore as FolderStore
from discreet.collection.store import MemoryStore as MemoryStore
from discreet.collection.tally import Tally as Tally
from discreet.local.inversion import estimate_statistics as estimate_statistics
from discreet.local.plan import Plan as Plan
from discreet.local.plan import Question as Question
from discreet.local.planning import PlanOptions as PlanOptions
from discreet.local.planning import make_plan as make_plan
