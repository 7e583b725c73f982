//! `aec-bench generate validate-template`.

use std::path::Path;

use aec_author::engine::Engines;
use aec_author::template::Template;
use aec_author::validate::{Trial, Validation};
use aec_base::decimal::rounded;
use aec_base::problem::Problem;
use aec_base::text;
use clap::{Args, ValueHint};
use serde::Serialize;

use crate::arguments::SandboxArgument;
use crate::commands::generate::{TemplatesArgument, list_templates};
use crate::commands::verify;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;
use crate::table::{Table, TableArguments};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench generate validate-template templates/culvert-flow\n  \
                        aec-bench generate validate-template voltage-drop")]
pub(crate) struct ValidateTemplateArguments {
    /// Template directories, or names of available templates
    #[arg(value_name = "DIR|NAME", value_hint = ValueHint::DirPath, required_unless_present = "all")]
    pub(crate) templates: Vec<String>,
    /// Validate every available template
    #[arg(long, conflicts_with = "templates")]
    pub(crate) all: bool,
    /// Instances to generate for each tier
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) instances: u32,
    #[command(flatten)]
    pub(crate) table: TableArguments,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArgument,
}

const COLUMNS: [&str; 7] =
    ["TEMPLATE", "TIER", "VISIBILITY", "INSTANCES", "SKIPPED", "MEDIANS EARN", "EXAMPLES"];

#[derive(Serialize)]
struct Data {
    checked: usize,
    valid: usize,
    templates: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    template: String,
    valid: bool,
    validation: Option<Validation>,
}

pub(crate) fn validate(context: &Context, arguments: &ValidateTemplateArguments) -> Result<Outcome, Failure> {
    arguments.table.apply(&[&COLUMNS])?;
    let judge = verify::judge(context, &arguments.sandbox);
    let engines = Engines::new(judge.isolation, judge.python.clone());
    let trial = Trial {
        engines: &engines,
        isolation: judge.isolation,
        python: judge.python.as_ref(),
        instances: arguments.instances,
    };
    let mut data = Data { checked: 0, valid: 0, templates: Vec::new() };
    let mut problems = Vec::new();
    for (name, template) in templates(context, arguments)? {
        data.checked += 1;
        let (validation, found) = match template {
            Err(found) => (None, found),
            Ok(template) => {
                let mut validation = trial.validate(&template)?;
                let found = std::mem::take(&mut validation.problems);
                (Some(validation), found)
            }
        };
        let valid = !found.iter().any(Problem::counts);
        data.valid += usize::from(valid);
        data.templates.push(Row { template: name, valid, validation });
        problems.extend(found);
    }
    let outcome = Outcome::new(context.format, &data, || validation_text(&data))?;
    let count = text::count(data.checked, "template");
    Ok(outcome.remark(format!("{} of {count} valid.", data.valid)).problems(problems))
}

type Found = Vec<(String, Result<Template, Vec<Problem>>)>;

/// The templates that the user named, by directory or by name.
fn templates(context: &Context, arguments: &ValidateTemplateArguments) -> Result<Found, Failure> {
    let known = || list_templates::library(context, &TemplatesArgument { user_dir: Vec::new() });
    if arguments.all {
        let library = known()?;
        let mut found: Found =
            library.templates.into_iter().map(|template| (template.path(), Ok(template))).collect();
        if !library.problems.is_empty() {
            found.push(("others".to_owned(), Err(library.problems)));
        }
        return Ok(found);
    }
    let mut found = Vec::new();
    for query in &arguments.templates {
        let directory = context.absolute(Path::new(query))?;
        if directory.is_dir() {
            found.push((query.clone(), Template::read(&directory)));
        } else {
            let library = known()?;
            let template = library.find(query).map_err(|problem| *problem)?;
            found.push((query.clone(), Ok(template.clone())));
        }
    }
    Ok(found)
}

fn validation_text(data: &Data) -> String {
    let mut table = Table::new(COLUMNS).spare(["VISIBILITY", "EXAMPLES"]).cut_front(["TEMPLATE"]);
    for row in &data.templates {
        let Some(validation) = &row.validation else {
            table.row([row.template.as_str(), "-", "-", "-", "-", "-", "-"]);
            continue;
        };
        for tier in &validation.tiers {
            table.row([
                validation.template.clone(),
                tier.difficulty.clone(),
                tier.visibility_level.to_owned(),
                tier.instances.to_string(),
                tier.skipped.iter().map(|skipped| skipped.draws).sum::<usize>().to_string(),
                rounded(tier.medians_earn, 2),
                validation.examples.to_string(),
            ]);
        }
    }
    table.render()
}
