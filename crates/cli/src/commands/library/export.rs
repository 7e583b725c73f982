//! `aec-bench library export`.

use std::path::PathBuf;

use aec_author::catalogue::catalogue;
use aec_base::file::write_atomic;
use aec_base::problem::Problem;
use aec_base::settings::Setting;
use aec_base::text;
use aec_task::seed;
use clap::{Args, ValueHint};
use serde::Serialize;

use crate::commands::generate::TemplatesArgument;
use crate::commands::generate::list_templates::library;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::{Format, Outcome};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench library export --pretty\n  \
                        aec-bench library export --output library.json")]
pub(crate) struct LibraryExportArguments {
    /// File to write [default: stdout]
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Add line breaks and indentation
    #[arg(long)]
    pub(crate) pretty: bool,
    #[command(flatten)]
    pub(crate) templates: TemplatesArgument,
}

#[derive(Serialize)]
struct Data {
    output: PathBuf,
    total_templates: usize,
    total_seeds: usize,
    skipped_seeds: usize,
    disciplines: Vec<String>,
}

pub(crate) fn export(context: &Context, arguments: &LibraryExportArguments) -> Result<Outcome, Failure> {
    let library = library(context, &arguments.templates)?;
    let project = context.project(Vec::new())?;
    let (seeds, bad_seeds) = seed::seeds(&project.settings.path(Setting::Seeds));
    let catalogue = catalogue(&library.templates, &seeds);
    let written = if arguments.pretty {
        serde_json::to_string_pretty(&catalogue)
    } else {
        serde_json::to_string(&catalogue)
    };
    let mut document = written.map_err(|error| Failure::internal(Problem::error(error.to_string())))?;
    document.push('\n');
    let mut problems: Vec<Problem> = library.problems.into_iter().filter(Problem::counts).collect();
    problems.extend(bad_seeds.iter().cloned());
    let Some(output) = &arguments.output else {
        // The catalogue itself is the data, inside the envelope or alone.
        let outcome = Outcome::new(context.format, &catalogue, || document.clone())?;
        return Ok(outcome.problems(problems));
    };
    let output = context.absolute(output)?;
    write_atomic(&output, document.as_bytes())?;
    let mut disciplines: Vec<String> =
        catalogue.templates.iter().map(|template| template.discipline.to_owned()).collect();
    disciplines.dedup();
    let data = Data {
        total_templates: catalogue.templates.len(),
        total_seeds: catalogue.seeds.len(),
        skipped_seeds: bad_seeds.len(),
        disciplines,
        output,
    };
    let outcome = Outcome::new(context.format, &data, String::new)?;
    let outcome = if context.format == Format::Text {
        outcome.remark(format!(
            "Wrote {} and {} to {}.",
            text::count(data.total_templates, "template"),
            text::count(data.total_seeds, "seed"),
            data.output.display()
        ))
    } else {
        outcome
    };
    Ok(outcome.problems(problems))
}
