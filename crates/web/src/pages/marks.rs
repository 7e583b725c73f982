//! What the verifier says about the parts of an answer.

use aec_ledger::record::TrialRecord;
use aec_report::html::Field;
use aec_report::shown::fields;

/// One value is this long at most; a verifier quotes whatever an agent wrote.
const VALUE: usize = 400;

/// The parts, in the order of the verifier.
pub(super) fn marks(record: &TrialRecord) -> Vec<Field> {
    fields(record).into_iter().map(|field| field.clipped(VALUE)).collect()
}
