//! `aec-bench models check`: shows what would be called, with which key, at what price, and whether it answers.

use aec_base::env::EnvOrigin;
use aec_base::problem::Problem;
use aec_base::project::Project;
use aec_model::check::{Checked, Checking};
use aec_model::event::CallEvent;
use aec_model::failure::{Failure as CallFailure, FailureKind};
use aec_model::meter::Unpriced;
use aec_model::price::Price;
use aec_model::retry::RetryPolicy;
use aec_run::terms::Caps;
use clap::Args;
use serde::Serialize;

use crate::commands::models;
use crate::commands::models::{EndpointsArgument, TapeArguments};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;
use crate::table::{Table, TableArguments};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench models check --no-call\n  \
                        aec-bench models check gpt-4.1-mini qwen3-235b-i --no-call\n  \
                        aec-bench models check offline/echo")]
pub(crate) struct ModelsCheckArguments {
    /// Models or endpoint ids [default: every endpoint of the project]
    #[arg(value_name = "MODEL")]
    pub(crate) models: Vec<String>,
    /// Only show what would be called; call nothing
    #[arg(long)]
    pub(crate) no_call: bool,
    #[command(flatten)]
    pub(crate) table: TableArguments,
    #[command(flatten)]
    pub(crate) endpoints: EndpointsArgument,
    #[command(flatten)]
    pub(crate) tape: TapeArguments,
}

const COLUMNS: [&str; 7] = ["MODEL", "ENDPOINT", "FORMAT", "ADDRESS", "KEY", "ANSWERS", "PRICE PER MILLION"];

#[derive(Serialize)]
struct Data {
    endpoints: Vec<Row>,
}

/// One endpoint of one model.
#[derive(Serialize)]
struct Row {
    model: String,
    endpoint: String,
    provider: &'static str,
    format: Option<&'static str>,
    url: Option<String>,
    wire_model: Option<String>,
    keys: Vec<Key>,
    price: Option<Price>,
    /// Whether it answered; absent if it was not called.
    answers: Option<bool>,
    failure: Option<CallFailure>,
    elapsed_ms: Option<u64>,
}

/// The name of a variable that holds a key.
#[derive(Serialize)]
struct Key {
    name: String,
    origin: Option<EnvOrigin>,
}

pub(crate) fn check(context: &Context, arguments: &ModelsCheckArguments) -> Result<Outcome, Failure> {
    arguments.table.apply(&[&COLUMNS])?;
    let project = models::project(context, &arguments.endpoints, &Caps::default())?;
    let opened = models::open(context, &project, &arguments.tape, RetryPolicy::once(), Unpriced::Allow)?;
    let names = if arguments.models.is_empty() { opened.endpoint_ids } else { arguments.models.clone() };
    let mut problems = opened.problems;
    if names.is_empty() {
        problems.push(Problem::note("the project names no endpoints").fix(
            "name a model, such as `aec-bench models check gpt-4.1-mini`, or write configs/endpoints.toml",
        ));
    }
    let call = if arguments.no_call { Checking::Look } else { Checking::Call };
    let mut rows = Vec::new();
    let runtime = models::runtime()?;
    for name in &names {
        match runtime.block_on(opened.client.check(name, call, &opened.run)) {
            Ok(checked) => rows.extend(checked.into_iter().map(|checked| row(name, checked, &project))),
            Err(error) => problems.push(Problem::from(error).about(name.clone())),
        }
    }
    problems.extend(rows.iter().filter_map(complaint));
    let data = Data { endpoints: rows };
    Ok(Outcome::new(context.format, &data, || table(&data))?.problems(problems))
}

fn row(name: &str, checked: Checked, project: &Project) -> Row {
    let outcome = checked.called.as_ref().map(|called| &called.outcome);
    // A model that uses up the token limit, or answers with nothing, is reachable all the same.
    let answers = outcome.map(|outcome| match outcome {
        Ok(_) => true,
        Err(failure) => matches!(failure.kind, FailureKind::Truncated | FailureKind::Empty),
    });
    let failure =
        outcome.and_then(|outcome| outcome.as_ref().err()).filter(|_| answers != Some(true)).cloned();
    let elapsed_ms = checked.called.as_ref().and_then(|called| {
        called.events.iter().rev().find_map(|event| match event {
            CallEvent::Answered { elapsed_ms, .. } | CallEvent::Failed { elapsed_ms, .. } => {
                Some(*elapsed_ms)
            }
            CallEvent::Attempt { .. } => None,
        })
    });
    let endpoint = checked.endpoint.as_ref();
    let keys = endpoint.map(|endpoint| endpoint.credential.variables()).unwrap_or_default();
    Row {
        model: name.to_owned(),
        endpoint: endpoint.map_or_else(|| "offline".to_owned(), |endpoint| endpoint.label.clone()),
        provider: endpoint.map_or("offline", |endpoint| endpoint.provider.name()),
        format: endpoint.map(|endpoint| endpoint.format.name()),
        url: endpoint.map(aec_model::endpoint::Endpoint::shown_url),
        wire_model: endpoint.map(|endpoint| endpoint.model.clone()),
        keys: keys.into_iter().map(|name| Key { origin: project.env.origin(&name), name }).collect(),
        price: checked.price,
        answers,
        failure,
        elapsed_ms,
    }
}

/// The problem of an endpoint that was called and did not answer.
fn complaint(row: &Row) -> Option<Problem> {
    let failure = row.failure.as_ref()?;
    let fix = match failure.kind {
        FailureKind::Auth => "set the key that is named, or ask the provider whether it may use this model",
        FailureKind::Network => "check the address and the network",
        FailureKind::Request => "check the model's name and the address",
        FailureKind::Rate | FailureKind::Server => "try again later",
        _ => "see docs/models.md for what this kind of failure means",
    };
    let about = format!("{} at {}", row.model, row.endpoint);
    Some(Problem::error(format!("{about}: {failure}")).about(row.model.clone()).fix(fix))
}

fn table(data: &Data) -> String {
    let mut table = Table::new(COLUMNS)
        .spare(["FORMAT", "ADDRESS", "PRICE PER MILLION"])
        .cut(["MODEL", "ENDPOINT"])
        .wrap(["ADDRESS", "KEY", "PRICE PER MILLION"]);
    for row in &data.endpoints {
        let keys: Vec<String> = row
            .keys
            .iter()
            .map(|key| match key.origin {
                Some(_) => key.name.clone(),
                None => format!("{} (not set)", key.name),
            })
            .collect();
        let answers = match (row.answers, row.elapsed_ms) {
            (Some(true), Some(elapsed)) => format!("yes, {elapsed} ms"),
            (Some(true), None) => "yes".to_owned(),
            (Some(false), _) => {
                format!("no: {}", row.failure.as_ref().map_or("", |failure| failure.kind.name()))
            }
            (None, _) => "not called".to_owned(),
        };
        let price = row.price.as_ref().map_or_else(
            || "unpriced".to_owned(),
            |price| format!("${} in, ${} out", price.rates.input, price.rates.output),
        );
        table.row([
            row.model.clone(),
            row.endpoint.clone(),
            row.format.unwrap_or("-").to_owned(),
            row.url.clone().unwrap_or_else(|| "-".to_owned()),
            if keys.is_empty() { "none".to_owned() } else { keys.join(", ") },
            answers,
            price,
        ]);
    }
    if data.endpoints.is_empty() { String::new() } else { table.render() }
}
