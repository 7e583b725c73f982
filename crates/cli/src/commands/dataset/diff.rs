//! `aec-bench dataset diff`.

use aec_base::settings::Setting;
use aec_base::text;
use aec_task::dataset::diff::{Difference, diff as difference_of};
use aec_task::dataset::reference::DatasetRef;
use aec_task::dataset::store::Store;
use clap::Args;
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench dataset diff electrical-v1@1.0.0 electrical-v1@1.1.0")]
pub(crate) struct DatasetDiffArguments {
    /// The older dataset: NAME or NAME@VERSION
    pub(crate) before: String,
    /// The newer dataset: NAME or NAME@VERSION
    pub(crate) after: String,
}

#[derive(Serialize)]
struct Data {
    before: String,
    after: String,
    #[serde(flatten)]
    difference: Difference,
}

pub(crate) fn diff(context: &Context, arguments: &DatasetDiffArguments) -> Result<Outcome, Failure> {
    let project = context.project(Vec::new())?;
    let store = Store::new(project.settings.path(Setting::Datasets));
    let read = |reference: &str| -> Result<_, Failure> { Ok(store.read(&DatasetRef::parse(reference)?)?) };
    let (before, after) = (read(&arguments.before)?, read(&arguments.after)?);
    let difference = difference_of(&before, &after);
    let data = Data { before: before.reference(), after: after.reference(), difference };
    let Difference { added, removed, changed, unchanged } = &data.difference;
    let remark = format!(
        "From {} to {}: {} added, {} removed, {} changed, {} the same.",
        data.before,
        data.after,
        added.len(),
        removed.len(),
        changed.len(),
        text::count(*unchanged, "task")
    );
    let outcome = Outcome::new(context.format, &data, || {
        let mut signed: Vec<(&str, char)> = Vec::new();
        signed.extend(added.iter().map(|id| (id.as_str(), '+')));
        signed.extend(removed.iter().map(|id| (id.as_str(), '-')));
        signed.extend(changed.iter().map(|task| (task.task_id.as_str(), '~')));
        signed.sort_unstable();
        let mut lines = String::new();
        for (id, sign) in signed {
            lines.push_str(&format!("{sign} {}\n", text::printable(id)));
        }
        lines
    })?;
    Ok(outcome.remark(remark))
}
