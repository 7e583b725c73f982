//! Compares what tasks need from their images with what backends provide.

use std::collections::BTreeMap;

use aec_base::problem::Problem;
use aec_base::settings::Backend;
use aec_base::text;
use aec_container::Extension;
use aec_container::image::DOCKERFILE;
use aec_task::compose::Compose;
use aec_task::task::Task;

use crate::experiment::FAMILY;
use crate::plan::Conditions;

/// Problems that prevent the image of a task from being built.
pub(crate) fn unbuildable(task: &Task) -> Vec<Problem> {
    let mut problems = Vec::new();
    if !task.path.join("environment").join(DOCKERFILE).is_file() {
        let what = format!("the task `{}` has no environment/{DOCKERFILE}", task.id);
        let problem = Problem::error(what).id(FAMILY.number(46)).about(task.id.as_str());
        problems.push(problem.why("its image is made from it").fix("add one, or use --backend local"));
    }
    for unknown in task.environment.extensions.iter().filter(|name| Extension::parse(name).is_none()) {
        let names: Vec<&str> = Extension::ALL.iter().map(|extension| extension.name()).collect();
        let what = format!("the task `{}` asks for the extension `{}`", task.id, text::printable(unknown));
        let problem = Problem::error(what).id(FAMILY.number(47)).about(task.id.as_str());
        problems.push(problem.why("there is none of this name").fix(format!("use {}", text::one_of(&names))));
    }
    problems
}

/// Problems of a task's services, or why a backend cannot start them. Without services that the task relies on, its
/// agents would be measured against something else.
pub(crate) fn unservable(task: &Task, backend: Backend) -> Vec<Problem> {
    let compose = match Compose::read(&task.path.join("environment")) {
        Err(problems) => {
            return problems.into_iter().map(|problem| problem.about(task.id.as_str())).collect();
        }
        Ok(compose) => compose,
    };
    if compose.is_empty() || matches!(backend, Backend::Docker | Backend::Harbor) {
        return Vec::new();
    }
    let names: Vec<&str> = compose.services.iter().map(|service| service.name.as_str()).collect();
    let what = match names.as_slice() {
        [] => format!("the task `{}` sets variables of its container", task.id),
        names => format!("the task `{}` has services ({})", task.id, names.join(", ")),
    };
    let problem = Problem::error(what).id(FAMILY.number(49)).about(task.id.as_str());
    let why = format!("the {} backend reads nothing of its Compose file", backend.name());
    vec![problem.why(why).fix("use --backend docker, or leave the task out")]
}

/// What tasks require and sandboxes on this machine do not have.
pub(crate) fn not_given(tasks: &[Task], conditions: &Conditions) -> Vec<Problem> {
    if conditions.backend != Backend::Local {
        return Vec::new();
    }
    let mut asked: BTreeMap<&str, usize> = BTreeMap::new();
    for name in tasks.iter().flat_map(|task| &task.environment.extensions) {
        *asked.entry(name).or_default() += 1;
    }
    asked
        .into_iter()
        .map(|(name, count)| {
            let what = format!(
                "{} for the extension `{}`, which the local backend does not give",
                if count == 1 { "1 task asks".to_owned() } else { format!("{count} tasks ask") },
                text::printable(name)
            );
            let problem = Problem::note(what).id(FAMILY.number(48));
            problem
                .why("commands find the programs of this machine, and no packages that are installed for Python")
                .fix("install them here and name their places in compute.local.show, or use --backend docker")
        })
        .collect()
}
