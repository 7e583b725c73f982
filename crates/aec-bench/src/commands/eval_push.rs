//! `aec-bench eval push`.

use aec_eval::hub::Visibility;
use serde::Serialize;

use super::eval::find;
use super::eval_after::{hub_account, push as publish};
use super::models;
use crate::arguments::EvalPushArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Serialize)]
struct Data {
    dataset: String,
    page: String,
    commit: String,
    rows: u64,
    visibility: &'static str,
}

pub(crate) fn push(context: &Context, arguments: &EvalPushArguments) -> Result<Outcome, Failure> {
    let project = context.project(Vec::new())?;
    let run = find(context, &project, &arguments.run)?;
    let account = hub_account(&project)?;
    let runtime = models::runtime()?;
    let visibility = if arguments.public { Visibility::Public } else { Visibility::Private };
    let dataset = arguments.hf_hub_dataset_name.clone();
    let published = publish(context, &project, &runtime, &account, &run, dataset, visibility)?;
    let data = Data {
        dataset: published.repository.to_string(),
        page: published.page,
        commit: published.commit,
        rows: published.rows,
        visibility: match published.visibility {
            Visibility::Private => "private",
            Visibility::Public => "public",
        },
    };
    Outcome::new(context.format, &data, || {
        format!("{}  {} rows, {}\n", data.page, data.rows, data.visibility)
    })
}
