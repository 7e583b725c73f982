//! `aec-bench evolve show`.

use std::path::PathBuf;

use aec_base::digest::Digest;
use aec_base::name::Name;
use aec_base::text;
use clap::{Args, ValueHint};
use serde::Serialize;

use crate::commands::evolve::{candidate, workspace};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::{Outcome, STRONG};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench evolve show workspaces/cables\n  \
                        aec-bench evolve show workspaces/cables evolve-cables-1-0")]
pub(crate) struct EvolveShowArguments {
    /// Workspace of the candidate
    #[arg(value_name = "WORKSPACE", value_hint = ValueHint::DirPath)]
    pub(crate) workspace: PathBuf,
    /// Candidate or label [default: the current files of the workspace]
    #[arg(value_name = "CANDIDATE")]
    pub(crate) candidate: Option<String>,
}

#[derive(Serialize)]
pub(crate) struct Shown<'a> {
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
pub(crate) struct SkillShown<'a> {
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

pub(crate) fn show_text(data: &Shown<'_>) -> String {
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
