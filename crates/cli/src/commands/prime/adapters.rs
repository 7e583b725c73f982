//! `aec-bench prime adapters`.

use aec_prime::service::adapters::{self, Adapter, AdapterError};
use clap::Args;
use serde::Serialize;

use crate::commands::prime::{Service, failed, unusable};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;
use crate::table::{Table, TableArguments};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench prime adapters")]
pub(crate) struct PrimeAdaptersArguments {
    #[command(flatten)]
    pub(crate) table: TableArguments,
}

const COLUMNS: [&str; 6] = ["ADAPTER", "BASE MODEL", "RUN", "STEP", "STATUS", "DEPLOYMENT"];

#[derive(Serialize)]
struct Data {
    total: usize,
    adapters: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    id: String,
    name: Option<String>,
    base_model: Option<String>,
    rft_run_id: Option<String>,
    step: Option<u64>,
    status: String,
    deployment_status: String,
    deployment_error: Option<String>,
    deployed_at: Option<String>,
    created_at: Option<String>,
    /// What to pass as the model; absent if the adapter does not answer yet.
    model: Option<String>,
}

pub(crate) fn list(context: &Context, arguments: &PrimeAdaptersArguments) -> Result<Outcome, Failure> {
    arguments.table.apply(&[&COLUMNS])?;
    let service = Service::open(context)?;
    let found = service.runtime.block_on(adapters::list(&service.client));
    let adapters: Vec<Row> =
        found.map_err(|error| adapter_failed(&error))?.into_iter().map(Row::of).collect();
    let data = Data { total: adapters.len(), adapters };
    let outcome = Outcome::new(context.format, &data, || table(&data.adapters))?;
    Ok(if data.total == 0 {
        outcome.remark("There are no adapters: training runs create them when they finish.")
    } else {
        outcome
    })
}

pub(crate) fn adapter_failed(error: &AdapterError) -> Failure {
    match error {
        AdapterError::Api(error) => failed(error),
        _ => unusable(error, "list what is deployed with `aec-bench prime adapters`"),
    }
}

impl Row {
    fn of(adapter: Adapter) -> Self {
        let answers = adapter.answers();
        let model = adapter.base_model.as_ref().filter(|_| answers);
        Self {
            model: model.map(|base| format!("{base}:{}", adapter.id)),
            id: adapter.id,
            name: adapter.display_name,
            base_model: adapter.base_model,
            rft_run_id: adapter.run_id,
            step: adapter.step,
            status: adapter.status,
            deployment_status: adapter.deployment_status,
            deployment_error: adapter.deployment_error,
            deployed_at: adapter.deployed_at,
            created_at: adapter.created_at,
        }
    }
}

fn table(rows: &[Row]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut table = Table::new(COLUMNS).spare(["STEP", "RUN"]).cut(["BASE MODEL", "RUN"]);
    for row in rows {
        let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        table.row([
            row.id.clone(),
            or_none(&row.base_model),
            or_none(&row.rft_run_id),
            row.step.map_or_else(|| "-".to_owned(), |step| step.to_string()),
            row.status.clone(),
            row.deployment_status.clone(),
        ]);
    }
    table.render()
}
