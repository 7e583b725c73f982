//! `aec-bench evolve init`, `show`, `diff`, `rollback` and `export`: a workspace and its candidates.

use std::path::{Path, PathBuf};

use aec_base::digest::Digest;
use aec_base::file::write_atomic;
use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_base::text;
use aec_evolve::FAMILY;
use aec_evolve::workspace::candidate::Candidate;
use aec_evolve::workspace::diff::diff as differences;
use aec_evolve::workspace::{Version, Workspace};
use aec_run::experiment::Harness;
use serde::Serialize;

use crate::arguments::{
    EvolveDiffArguments, EvolveExportArguments, EvolveInitArguments, EvolveRollbackArguments,
    EvolveShowArguments,
};
use crate::commands::evolve::{candidate, git, short, workspace};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::{Outcome, STRONG};

#[derive(Serialize)]
struct Made {
    workspace_path: PathBuf,
    name: Name,
    harness: &'static str,
    candidate: Digest,
}

pub(crate) fn init(context: &Context, arguments: &EvolveInitArguments) -> Result<Outcome, Failure> {
    let path = context.absolute(&arguments.path)?;
    let given = match &arguments.name {
        Some(name) => name.clone(),
        None => path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
    };
    let name = Name::parse(&given).map_err(|error| {
        Failure::usage(
            Problem::error(format!("the name `{}` {error}", text::printable(&given)))
                .fix("pass --name with letters, digits, `.`, `_` and `-`"),
        )
    })?;
    let harness = Harness::parse(&arguments.harness).unwrap_or(Harness::ToolLoop);
    let workspace = Workspace::init(git(context)?, &path, &name, harness)?;
    let here = workspace.here()?;
    let data = Made { workspace_path: path, name, harness: harness.name(), candidate: here.id };
    let outcome = Outcome::new(context.format, &data, || format!("{}\n", data.workspace_path.display()))?;
    Ok(outcome.remark(format!(
        "{} begins with {}. Edit prompts/system.md, then name the workspace in an evolution file.",
        data.name,
        here.name()
    )))
}

#[derive(Serialize)]
struct Shown<'a> {
    candidate: Digest,
    name: Name,
    kept: bool,
    parents: Vec<Name>,
    labels: Vec<String>,
    summary: String,
    prompt: &'a str,
    skills: Vec<SkillShown<'a>>,
    system_prompt: String,
    files: Vec<&'a String>,
}

#[derive(Serialize)]
struct SkillShown<'a> {
    name: &'a str,
    description: &'a str,
    letters: usize,
}

pub(crate) fn show(context: &Context, arguments: &EvolveShowArguments) -> Result<Outcome, Failure> {
    let workspace = workspace(context, &arguments.workspace)?;
    let shown = candidate(&workspace, arguments.candidate.as_deref())?;
    let version = workspace.history()?.into_iter().find(|version| version.candidate == shown.id);
    let data = Shown {
        candidate: shown.id,
        name: shown.name(),
        kept: version.is_some(),
        parents: version
            .iter()
            .flat_map(|version| version.parents.iter().map(|id| aec_evolve::workspace::candidate::name(*id)))
            .collect(),
        labels: version.as_ref().map(|version| version.labels.clone()).unwrap_or_default(),
        summary: version.map(|version| version.summary).unwrap_or_default(),
        prompt: &shown.prompt,
        skills: shown
            .skills
            .iter()
            .map(|(name, skill)| SkillShown {
                name,
                description: &skill.description,
                letters: skill.body.chars().count(),
            })
            .collect(),
        system_prompt: shown.system_prompt(),
        files: shown.files.keys().collect(),
    };
    let outcome = Outcome::new(context.format, &data, || show_text(&data))?;
    Ok(if data.kept {
        outcome
    } else {
        outcome.remark("It was changed by hand and is not kept yet; a run or a rollback keeps it.")
    })
}

fn show_text(data: &Shown<'_>) -> String {
    let mut shown = format!("{STRONG}{}{STRONG:#}  {}\n", data.name, text::printable(&data.summary));
    if !data.parents.is_empty() {
        let parents: Vec<&str> = data.parents.iter().map(Name::as_str).collect();
        shown.push_str(&format!("made from {}\n", parents.join(" and ")));
    }
    if !data.labels.is_empty() {
        shown.push_str(&format!("labels {}\n", data.labels.join(", ")));
    }
    for line in data.system_prompt.lines() {
        shown.push_str(&format!("\n  {}", text::printable(line)));
    }
    shown.push('\n');
    shown
}

#[derive(Serialize)]
struct Compared {
    from: Name,
    to: Name,
    diff: String,
}

pub(crate) fn diff(context: &Context, arguments: &EvolveDiffArguments) -> Result<Outcome, Failure> {
    let workspace = workspace(context, &arguments.workspace)?;
    let first = candidate(&workspace, Some(&arguments.first))?;
    let (before, after) = match &arguments.second {
        Some(second) => (first, candidate(&workspace, Some(second))?),
        None => (parent_of(&workspace, &first)?, first),
    };
    let data = Compared { from: before.name(), to: after.name(), diff: differences(&before, &after) };
    let outcome = Outcome::new(context.format, &data, || diff_text(&data.diff))?;
    Ok(if data.diff.is_empty() { outcome.remark("They are the same.") } else { outcome })
}

/// A difference as it is printed: what a model wrote does not move the cursor.
pub(crate) fn diff_text(diff: &str) -> String {
    let lines: Vec<_> = diff.lines().map(text::printable).collect();
    if lines.is_empty() { String::new() } else { format!("{}\n", lines.join("\n")) }
}

fn parent_of(workspace: &Workspace, candidate: &Candidate) -> Result<Candidate, Failure> {
    let version = workspace.history()?.into_iter().find(|version| version.candidate == candidate.id);
    match version.as_ref().map(|version: &Version| version.parents.as_slice()) {
        Some([parent, ..]) => Ok(workspace.load(*parent)?),
        _ => {
            let what = format!("{} was made from no other candidate", candidate.name());
            Err(Problem::error(what).id(FAMILY.number(17)).fix("name two candidates").into())
        }
    }
}

#[derive(Serialize)]
struct RolledBack {
    workspace: PathBuf,
    candidate: Digest,
    name: Name,
    /// What lay in the workspace before.
    before: Digest,
}

pub(crate) fn rollback(context: &Context, arguments: &EvolveRollbackArguments) -> Result<Outcome, Failure> {
    let workspace = workspace(context, &arguments.workspace)?;
    let _held = workspace.hold()?;
    let target = candidate(&workspace, Some(&arguments.candidate))?;
    // What people changed by hand is kept before it is replaced.
    let before = workspace.keep_here()?;
    workspace.show(&target)?;
    let data = RolledBack {
        workspace: workspace.path().to_owned(),
        candidate: target.id,
        name: target.name(),
        before: before.id,
    };
    let outcome = Outcome::new(context.format, &data, || format!("{}\n", data.name))?;
    Ok(outcome.remark(format!("Before it was {}, which is kept.", short(data.before))))
}

#[derive(Serialize)]
struct Exported {
    candidate: Digest,
    name: Name,
    directory: Option<PathBuf>,
    prompt: Option<PathBuf>,
    files: usize,
}

pub(crate) fn export(context: &Context, arguments: &EvolveExportArguments) -> Result<Outcome, Failure> {
    let workspace = workspace(context, &arguments.workspace)?;
    let exported = candidate(&workspace, arguments.candidate.as_deref())?;
    if let Some(path) = &arguments.prompt {
        nothing_in_place(&context.absolute(path)?, "name a file that does not exist")?;
    }
    let directory = match &arguments.output {
        Some(path) => Some(write_files(context, path, &exported)?),
        None => None,
    };
    let prompt = match &arguments.prompt {
        Some(path) => {
            let path = context.absolute(path)?;
            write_atomic(&path, format!("{}\n", exported.system_prompt().trim_end()).as_bytes())?;
            Some(path)
        }
        None => None,
    };
    let data = Exported {
        candidate: exported.id,
        name: exported.name(),
        files: directory.as_ref().map_or(0, |_| exported.files.len()),
        directory,
        prompt,
    };
    Outcome::new(context.format, &data, || {
        let places = data.directory.iter().chain(&data.prompt);
        let places: Vec<String> = places.map(|path| path.display().to_string()).collect();
        format!("{}\n", places.join("\n"))
    })
}

/// An export never replaces anything.
fn nothing_in_place(path: &Path, fix: &str) -> Result<(), Failure> {
    if path.symlink_metadata().is_ok() {
        let problem = Problem::error("there is something in the place of the export").id(FAMILY.number(18));
        return Err(problem.fix(fix).in_file(path).into());
    }
    Ok(())
}

/// Writes the files of a candidate into a new directory.
pub(crate) fn write_files(context: &Context, path: &Path, candidate: &Candidate) -> Result<PathBuf, Failure> {
    let directory = context.absolute(path)?;
    nothing_in_place(&directory, "name a directory that does not exist")?;
    for (path, content) in &candidate.files {
        let place = directory.join(path);
        if let Some(parent) = place.parent() {
            std::fs::create_dir_all(parent)?;
        }
        write_atomic(&place, content)?;
    }
    Ok(directory)
}
