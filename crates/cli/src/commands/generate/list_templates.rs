//! `aec-bench generate list-templates`.

use std::path::PathBuf;

use aec_author::library::{Library, Listed};
use aec_author::params::{FIRST_VERSION, ToolModes};
use aec_author::template::Origin;
use aec_base::problem::Problem;
use aec_base::settings::Setting;
use aec_base::text;
use clap::Args;
use serde::Serialize;

use crate::commands::generate::TemplatesArgument;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;
use crate::table::{Table, TableArguments};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench generate list-templates\n  \
                        aec-bench generate list-templates --discipline civil --filter category=drainage")]
pub(crate) struct ListTemplatesArguments {
    /// Only templates of this discipline
    #[arg(long, value_name = "NAME")]
    pub(crate) discipline: Vec<String>,
    /// Only templates whose field has this value, such as category=cables
    #[arg(long, value_name = "FIELD=VALUE")]
    pub(crate) filter: Vec<String>,
    /// Show at most this many
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    #[command(flatten)]
    pub(crate) table: TableArguments,
    #[command(flatten)]
    pub(crate) templates: TemplatesArgument,
}

#[derive(Serialize)]
struct Row {
    name: String,
    discipline: String,
    category: String,
    version: String,
    tool_mode: &'static str,
    difficulties: Vec<String>,
    origin: Option<PathBuf>,
    description: String,
}

const COLUMNS: [&str; 5] = ["TEMPLATE", "CATEGORY", "TIERS", "TOOL MODE", "ABOUT"];

const FIELDS: [&str; 5] = ["name", "discipline", "category", "tool_mode", "difficulty"];

pub(crate) fn list(context: &Context, arguments: &ListTemplatesArguments) -> Result<Outcome, Failure> {
    arguments.table.apply(&[&COLUMNS])?;
    let (templates, problems) = Library::list(&roots(context, &arguments.templates)?);
    let filters =
        arguments.filter.iter().map(|filter| parse_filter(filter)).collect::<Result<Vec<_>, _>>()?;
    let mut rows: Vec<Row> = templates.into_iter().map(row).collect();
    rows.retain(|row| arguments.discipline.is_empty() || arguments.discipline.contains(&row.discipline));
    rows.retain(|row| filters.iter().all(|(field, value)| fits(row, field, value)));
    let total = rows.len();
    rows.truncate(arguments.limit.unwrap_or(usize::MAX));
    let outcome = Outcome::new(context.format, &rows, || {
        if rows.is_empty() {
            return String::new();
        }
        let mut table = Table::new(COLUMNS)
            .spare(["TOOL MODE", "CATEGORY"])
            .cut_front(["TEMPLATE"])
            .wrap(["TIERS", "ABOUT"]);
        for row in &rows {
            table.row([
                format!("{}/{}", row.discipline, row.name),
                row.category.clone(),
                row.difficulties.join(" "),
                row.tool_mode.to_owned(),
                row.description.clone(),
            ]);
        }
        table.render()
    })?;
    let problems: Vec<Problem> = problems.into_iter().filter(Problem::counts).collect();
    let outcome = outcome.problems(problems);
    Ok(match rows.len() {
        shown if shown < total => {
            outcome.remark(format!("{shown} of {} are shown.", text::count(total, "template")))
        }
        0 => outcome.remark("No template fits."),
        _ => outcome,
    })
}

/// All available templates: built in, of the project, and in directories that the user named.
pub(crate) fn library(context: &Context, arguments: &TemplatesArgument) -> Result<Library, Failure> {
    Ok(Library::load(&roots(context, arguments)?))
}

fn roots(context: &Context, arguments: &TemplatesArgument) -> Result<Vec<PathBuf>, Failure> {
    let project = context.project(Vec::new())?;
    let mut roots = vec![project.settings.path(Setting::Templates)];
    for directory in &arguments.user_dir {
        roots.push(context.absolute(directory)?);
    }
    Ok(roots)
}

fn row(template: Listed) -> Row {
    let Listed { meta, tiers, origin } = template;
    Row {
        name: meta.name,
        discipline: meta.discipline,
        category: meta.category,
        version: meta.version.unwrap_or_else(|| FIRST_VERSION.to_owned()),
        tool_mode: meta.tool_mode.map_or("both", ToolModes::name),
        difficulties: tiers,
        origin: match origin {
            Origin::Library => None,
            Origin::Directory(directory) => Some(directory),
        },
        description: meta.description,
    }
}

fn parse_filter(filter: &str) -> Result<(&str, &str), Failure> {
    let (field, value) = filter.split_once('=').unwrap_or((filter, ""));
    if FIELDS.contains(&field) && !value.is_empty() {
        return Ok((field, value));
    }
    let problem = Problem::error(format!("`{}` is not FIELD=VALUE", text::printable(filter)));
    Err(Failure::usage(problem.fix(format!("the fields are {}", text::one_of(&FIELDS)))))
}

fn fits(row: &Row, field: &str, value: &str) -> bool {
    match field {
        "name" => row.name == value,
        "discipline" => row.discipline == value,
        "category" => row.category == value,
        "tool_mode" => row.tool_mode == value,
        _ => row.difficulties.iter().any(|difficulty| difficulty == value),
    }
}
