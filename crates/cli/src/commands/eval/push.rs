//! `aec-bench eval push`.

use aec_eval::hub::Visibility;
use clap::Args;
use serde::Serialize;

use crate::commands::eval::after::{hub_account, push as publish};
use crate::commands::eval::find;
use crate::commands::models;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench eval push 1a2b3c4d\n  \
                        aec-bench eval push 1a2b3c4d --hf-hub-dataset-name acme/aec-cables --public")]
pub(crate) struct EvalPushArguments {
    /// Directory of the evaluation, or its id
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Name of the dataset [default: made from the names of the environment and the model]
    #[arg(long, short = 'D', value_name = "OWNER/NAME")]
    pub(crate) hf_hub_dataset_name: Option<String>,
    /// Make the dataset public
    #[arg(long)]
    pub(crate) public: bool,
}

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
