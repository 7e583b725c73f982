//! What the commands of `evolve` and `swarm` share: finding git, workspaces and runs.

use std::path::{Path, PathBuf};

use aec_base::digest::Digest;
use aec_base::problem::Problem;
use aec_base::project::Project;
use aec_base::settings::Setting;
use aec_base::text;
use aec_evolve::FAMILY;
use aec_evolve::event::Kind;
use aec_evolve::run::RunDirectory;
use aec_evolve::workspace::Workspace;
use aec_evolve::workspace::candidate::Candidate;
use aec_evolve::workspace::git::GitProgram;

use crate::context::Context;
use crate::failure::Failure;

/// The git command of this machine.
pub(crate) fn git(context: &Context) -> Result<GitProgram, Failure> {
    GitProgram::find(context.search_path()).map_err(|error| {
        Failure::environment(Problem::error(error.to_string()).id(FAMILY.number(16)).fix("install git"))
    })
}

/// A workspace that a person names: a path from where they stand, or a name below `paths.workspaces`.
pub(crate) fn workspace(context: &Context, path: &Path) -> Result<Workspace, Failure> {
    let place = context.absolute(path)?;
    let is_name = path.components().count() == 1 && path.symlink_metadata().is_err();
    let place = match context.project(Vec::new()) {
        Ok(project) if is_name => project.settings.path(Setting::Workspaces).join(path),
        _ => place,
    };
    Ok(Workspace::open(git(context)?, &place)?)
}

/// A candidate of a workspace: the one that is named, or what lies there.
pub(crate) fn candidate(workspace: &Workspace, word: Option<&str>) -> Result<Candidate, Failure> {
    Ok(match word {
        Some(word) => workspace.load(workspace.find(word)?)?,
        None => workspace.here()?,
    })
}

/// Where runs keep what they know.
pub(crate) fn feedback(project: &Project) -> PathBuf {
    project.settings.path(Setting::Feedback)
}

/// The run that a word stands for.
pub(crate) fn run(project: &Project, kind: Kind, word: &str) -> Result<RunDirectory, Failure> {
    Ok(RunDirectory::find(&feedback(project), kind, word)?)
}

/// The run that a word stands for, of either kind. Runs of both kinds may have the same id: then the kind stands before it.
pub(crate) fn any_run(project: &Project, word: &str) -> Result<RunDirectory, Failure> {
    let feedback = feedback(project);
    for kind in [Kind::Evolution, Kind::Swarm] {
        if let Some(run) = word.strip_prefix(kind.name()).and_then(|rest| rest.strip_prefix('/')) {
            return Ok(RunDirectory::find(&feedback, kind, run)?);
        }
    }
    let evolution = RunDirectory::find(&feedback, Kind::Evolution, word);
    let swarm = RunDirectory::find(&feedback, Kind::Swarm, word);
    match (evolution, swarm) {
        (Ok(one), Ok(other)) => {
            let what = format!("`{}` is an evolution and a swarm", text::printable(word));
            let problem = Problem::error(what).id(FAMILY.number(34));
            Err(problem.fix(format!("write evolve/{} or swarm/{}", one.run, other.run)).into())
        }
        (Ok(one), _) | (_, Ok(one)) => Ok(one),
        (Err(problem), _) => Err(problem.into()),
    }
}

/// Names of candidates in text: twelve digits are enough for people.
pub(crate) fn short(id: Digest) -> String {
    aec_evolve::workspace::candidate::name(id).to_string()
}
