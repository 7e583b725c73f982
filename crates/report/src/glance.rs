//! Reads many records on all cores, and reports those that could not be read.

use aec_base::parallel;
use aec_base::problem::Problem;
use aec_ledger::index::{Filter, Index, IndexError};
use aec_ledger::layout::Ledger;
use aec_ledger::record::TrialRecord;

/// Records that a thread takes at a time.
const CHUNK: usize = 16;

/// Calls `look` for every record that a filter accepts, in the order of their ids. Unreadable records are returned as
/// problems and do not affect the others.
pub fn each_record<T: Send>(
    ledger: &Ledger,
    index: &Index,
    filter: &Filter,
    look: impl Fn(&TrialRecord) -> T + Sync,
) -> Result<(Vec<T>, Vec<Problem>), IndexError> {
    let files = index.files(filter)?;
    let read = parallel::map(&files, CHUNK, |(file, _)| match file.read(ledger) {
        Ok(stored) => Ok(look(&stored.record)),
        Err(broken) => Err(broken.problem),
    });
    let mut seen = Vec::with_capacity(read.len());
    let mut problems = Vec::new();
    for one in read {
        match one {
            Ok(looked) => seen.push(looked),
            Err(problem) => problems.push(problem),
        }
    }
    Ok((seen, problems))
}
