# The public names of the package, listed here only: discreet.exports reads them.

from discreet.audit.auditing import Effort as Effort
from discreet.audit.auditing import audit as audit
from discreet.audit.report_subjects import make_collection_subject as make_collection_subject
from discreet.audit.report_subjects import make_mechanism_subject as make_mechanism_subject
from discreet.audit.subject import Pair as Pair
from discreet.audit.subject import Subject as Subject
from discreet.audit.table_subjects import make_classifier_subject as make_classifier_subject
from discreet.audit.table_subjects import make_function_subject as make_function_subject
from discreet.audit.table_subjects import make_manifest_subject as make_manifest_subject
from discreet.audit.verdict import Audit as Audit
from discreet.audit.verdict import Verdict as Verdict
