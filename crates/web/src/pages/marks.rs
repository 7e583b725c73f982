//! The verifier's marks of the parts of an answer.

use aec_ledger::record::TrialRecord;
use aec_report::html::Field;
use aec_report::shown::fields;

/// Longest value; a verifier may quote a long text of an agent.
const VALUE: usize = 400;

/// The parts, in the verifier's order.
pub(super) fn marks(record: &TrialRecord) -> Vec<Field> {
    fields(record).into_iter().map(|field| field.clipped(VALUE)).collect()
}
