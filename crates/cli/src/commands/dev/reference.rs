//! `aec-bench dev reference`: generates the pages of `docs/reference` from the program. A test compares them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use aec_base::file::{Links, read_text, write_atomic};
use aec_base::problem::Problem;
use aec_base::settings::SETTINGS;
use aec_base::text::count;
use clap::{Args, Command, ValueHint};
use serde_json::json;

use crate::commands::schema;
use crate::context::Context;
use crate::entry::command_tree;
use crate::failure::{Exit, Failure};
use crate::output::Outcome;

/// Width of the help pages, in columns.
const WIDTH: usize = 100;

/// Largest documentation page that is read, in bytes.
const LARGEST_PAGE: u64 = 4 * 1024 * 1024;

const MADE: &str = "<!-- made by `aec-bench dev reference`; edit the program instead -->\n\n";

#[derive(Debug, Args)]
pub(crate) struct ReferenceArguments {
    /// Documentation directory, which contains `reference`
    #[arg(value_name = "DIR", default_value = "docs", value_hint = ValueHint::DirPath)]
    docs: PathBuf,
    /// Write nothing; only report which pages differ
    #[arg(long)]
    check: bool,
}

pub(crate) fn reference(context: &Context, arguments: &ReferenceArguments) -> Result<Outcome, Failure> {
    let docs = context.absolute(&arguments.docs)?;
    let pages = [
        ("cli.md", commands()),
        ("settings.md", settings()),
        ("exit-codes.md", exit_codes()),
        ("schemas.md", schemas()),
    ];
    let pages = pages.into_iter().chain([("problems.md", problems(&docs)?)]);
    let mut changed = Vec::new();
    for (name, text) in pages {
        let path = docs.join("reference").join(name);
        let is_there = read_text(&path, LARGEST_PAGE, Links::Refuse).is_ok_and(|there| there == text);
        if !is_there {
            if !arguments.check {
                write_atomic(&path, text.as_bytes())?;
            }
            changed.push(format!("reference/{name}"));
        }
    }
    let outcome = Outcome::new(context.format, &json!({ "changed": changed }), String::new)?;
    if !arguments.check || changed.is_empty() {
        return Ok(outcome.remark(format!("{} changed", count(changed.len(), "page"))));
    }
    let problem =
        Problem::error(format!("these pages are not what the program says: {}", changed.join(", ")));
    Ok(outcome
        .problems(vec![problem.fix("run `aec-bench dev reference` and read what changed")])
        .exit(Exit::Found))
}

fn commands() -> String {
    let mut text = format!(
        "# Commands\n\n{MADE}What `--help` says, for every command. [cli.md](../cli.md) has what is common to all of them.\n"
    );
    let mut tree = command_tree().term_width(WIDTH);
    tree.build();
    command(&tree, "aec-bench", &mut text);
    text
}

fn command(command_: &Command, name: &str, text: &mut String) {
    let help = command_.clone().term_width(WIDTH).render_help().to_string();
    let _ = write!(text, "\n## `{name}`\n\n```text\n{}\n```\n", help.trim_end());
    for sub in command_.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help") {
        command(sub, &format!("{name} {}", sub.get_name()), text);
    }
}

fn settings() -> String {
    let mut text = format!(
        "# All settings\n\n{MADE}[settings.md](../settings.md) says which place wins.\n\n\
         | setting | flag | experiment | project file | user file | default | meaning |\n|---|---|---|---|---|---|---|\n"
    );
    let cell = |value: Option<&str>| value.map_or_else(|| "–".to_owned(), |value| format!("`{value}`"));
    for row in &SETTINGS {
        let default = if row.default.is_empty() {
            "name of the directory".to_owned()
        } else {
            format!("`{}`", row.default)
        };
        let (flag, experiment, user) = (cell(row.flag), cell(row.experiment_key), cell(row.user_key));
        let key = row.key;
        let _ = writeln!(
            text,
            "| `{key}` | {flag} | {experiment} | `{key}` | {user} | {default} | {} |",
            row.help
        );
    }
    text
}

fn exit_codes() -> String {
    let mut text =
        format!("# Exit codes\n\n{MADE}| code | meaning | `status` of the envelope |\n|---|---|---|\n");
    for exit in Exit::ALL {
        let status = exit.status().map_or_else(|| "–".to_owned(), |status| format!("`{status}`"));
        let _ = writeln!(text, "| {} | {} | {status} |", exit as u8, exit.meaning());
    }
    text
}

fn schemas() -> String {
    let mut text = format!(
        "# Schemas\n\n{MADE}`aec-bench schema NOUN` prints the JSON Schema of a file format; `aec-bench schema --output DIR` writes all \
         of them.\n\n| noun | file | keys at the top |\n|---|---|---|\n"
    );
    for (noun, file, schema) in schema::nouns() {
        let keys = schema.get("properties").and_then(|keys| keys.as_object());
        let keys: Vec<String> =
            keys.into_iter().flat_map(|keys| keys.keys()).map(|key| format!("`{key}`")).collect();
        let _ = writeln!(text, "| `{noun}` | `{file}` | {} |", keys.join(", "));
    }
    text
}

/// Every problem id with its explanation, taken from the table rows that begin with an id.
fn problems(docs: &Path) -> Result<String, Failure> {
    let mut ids: BTreeMap<String, (String, String)> = BTreeMap::new();
    let mut names: Vec<PathBuf> =
        fs_err::read_dir(docs)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    names.sort();
    for path in names.iter().filter(|path| path.extension().is_some_and(|ending| ending == "md")) {
        let page = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let text = read_text(path, LARGEST_PAGE, Links::Refuse)
            .map_err(|error| Problem::error(error.to_string()).fix(error.fix()).in_file(path))?;
        for line in text.lines() {
            let Some((first, rest)) = line.strip_prefix("| `").and_then(|line| line.split_once('|')) else {
                continue;
            };
            let meaning = rest.trim_end_matches('|').trim().to_owned();
            for id in first.split('`').filter(|part| is_id(part)) {
                ids.entry(id.to_owned()).or_insert_with(|| (meaning.clone(), page.to_owned()));
            }
        }
    }
    let mut text = format!(
        "# Problems\n\n{MADE}Every problem that the program reports about files has an id. The page of its format explains it.\n\n\
         | id | page | what |\n|---|---|---|\n"
    );
    for (id, (meaning, page)) in ids {
        let _ = writeln!(
            text,
            "| `{id}` | [{page}](../{page}) | {} |",
            meaning.replace(" | ", " · ").replace("](", "](../")
        );
    }
    Ok(text)
}

/// Whether the text is a capital letter and three digits.
fn is_id(text: &str) -> bool {
    let mut bytes = text.bytes();
    text.len() == 4
        && bytes.next().is_some_and(|first| first.is_ascii_uppercase())
        && bytes.all(|byte| byte.is_ascii_digit())
}
