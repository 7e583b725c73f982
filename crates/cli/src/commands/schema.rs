//! `aec-bench schema`: the JSON Schemas of the file formats, generated from the types that read them.

use std::path::PathBuf;

use aec_base::problem::Problem;
use aec_base::text;
use clap::{Args, ValueHint};
use schemars::{Schema, schema_for};
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;
use crate::table::{Table, TableArguments};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench schema\n  \
                        aec-bench schema experiment\n  \
                        aec-bench schema --output schemas")]
pub(crate) struct SchemaArguments {
    /// File format [default: all formats are listed]
    pub(crate) noun: Option<String>,
    /// Write every schema into this directory
    #[arg(long, short, value_name = "DIR", conflicts_with = "noun", value_hint = ValueHint::DirPath)]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) table: TableArguments,
}

const COLUMNS: [&str; 2] = ["NOUN", "FILE"];

type MakeSchema = fn() -> Schema;

/// Every file format: its noun, the file that it describes, and its schema.
const NOUNS: [(&str, &str, MakeSchema); 18] = [
    ("actions", "actions.yaml", || schema_for!(aec_run::harness::scripted::Script)),
    ("annotation", "annotations/EXPERIMENT/TRIAL.jsonl", || schema_for!(aec_ledger::annotate::Annotation)),
    ("dataset", "manifest.json", || schema_for!(aec_task::dataset::manifest::Manifest)),
    ("endpoints", "configs/endpoints.toml", || schema_for!(aec_model::registry::EndpointsFile)),
    ("evolution", "evolution.yaml", || schema_for!(aec_evolve::config::EvolutionFile)),
    ("experiment", "experiment.yaml", || schema_for!(aec_run::experiment::ExperimentFile)),
    ("generation", "generation-manifest.json", || schema_for!(aec_author::manifest::Manifest)),
    ("plan", "plan.json", || schema_for!(aec_run::plan::Plan)),
    ("prices", "configs/prices.toml", || schema_for!(aec_model::price::PriceFile)),
    ("project", "aec-bench.toml", || schema_for!(aec_base::project::ProjectFile)),
    ("record", "EXPERIMENT/TRIAL.json", || schema_for!(aec_ledger::record::TrialRecord)),
    ("script", "replies.yaml", || schema_for!(aec_model::script::Script)),
    ("suite", "suite.toml", || schema_for!(aec_task::suite::SuiteFile)),
    ("swarm", "swarm.yaml", || schema_for!(aec_evolve::config::SwarmFile)),
    ("task", "task.toml", || schema_for!(aec_task::file::TaskFile)),
    ("template", "params.toml", || schema_for!(aec_author::params::ParamsFile)),
    ("user-config", "~/.config/aec-bench/config.json", || schema_for!(aec_base::user::UserFile)),
    ("workspace", "manifest.yaml", || schema_for!(aec_evolve::workspace::manifest::ManifestFile)),
];

#[derive(Serialize)]
struct Noun {
    noun: &'static str,
    file: &'static str,
}

pub(crate) fn schema(context: &Context, arguments: &SchemaArguments) -> Result<Outcome, Failure> {
    arguments.table.apply(&[&COLUMNS])?;
    if let Some(directory) = &arguments.output {
        let directory = context.absolute(directory)?;
        let mut written = Vec::new();
        for (noun, text) in all() {
            let path = directory.join(format!("{noun}.json"));
            aec_base::file::write_atomic(&path, text.as_bytes())?;
            written.push(path);
        }
        let remark = format!("wrote {} to {}", text::count(written.len(), "schema"), directory.display());
        return Ok(Outcome::new(context.format, &serde_json::json!({ "files": written }), String::new)?
            .remark(remark));
    }
    let Some(asked) = &arguments.noun else {
        let nouns: Vec<Noun> = NOUNS.iter().map(|(noun, file, _)| Noun { noun, file }).collect();
        return Outcome::new(context.format, &nouns, || {
            let mut table = Table::new(COLUMNS).wrap(["FILE"]);
            for row in &nouns {
                table.row([row.noun, row.file]);
            }
            table.render()
        });
    };
    let names = NOUNS.map(|(noun, ..)| noun);
    let Some((.., make)) = NOUNS.iter().find(|(noun, ..)| noun == asked) else {
        let problem = Problem::error(format!("there is no schema `{}`", text::printable(asked)))
            .why(format!("there is {}", text::one_of(&names)));
        return Err(Failure::usage(problem.fix(text::near_or(asked, &names, "name one of them"))));
    };
    let schema = make();
    Outcome::new(context.format, &schema, || pretty(&schema))
}

pub(crate) fn nouns() -> impl Iterator<Item = (&'static str, &'static str, Schema)> {
    NOUNS.iter().map(|(noun, file, make)| (*noun, *file, make()))
}

/// Every schema with its file name.
pub(crate) fn all() -> Vec<(String, String)> {
    NOUNS.iter().map(|(noun, _, make)| ((*noun).to_owned(), pretty(&make()))).collect()
}

fn pretty(schema: &Schema) -> String {
    let mut text = serde_json::to_string_pretty(schema).unwrap_or_default();
    text.push('\n');
    text
}
