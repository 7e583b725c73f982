//! What rooms on this machine could show that is not for agents, and the program that they need.

use aec_base::problem::{Problem, Severity};
use aec_base::settings::Backend;
use aec_sandbox::{InSight, OURSELVES, agent_program, in_sight};

use crate::experiment::{FAMILY, Harness};
use crate::plan::{Conditions, PlannedAgent};

/// Files of the project, or of other private places, that lie where rooms show this machine: an error where they cannot
/// be hidden, else a note.
pub fn seen() -> Vec<Problem> {
    in_sight().iter().map(problem).collect()
}

fn problem(seen: &InSight) -> Problem {
    let place = seen.place.display();
    let shown = seen.shown.display();
    let also =
        if seen.place == seen.seen_at { String::new() } else { format!(" as {}", seen.seen_at.display()) };
    let fix = "move the project to a directory of its own, such as one below a home directory";
    if seen.hidden {
        let what = format!("{place} lies{also} in {shown}, which rooms show; they hide it");
        Problem::note(what).id(FAMILY.number(72)).fix(fix)
    } else {
        let what = format!("{place} is{also} {shown}, which rooms show, and they cannot hide it");
        Problem::error(what).id(FAMILY.number(72)).why("agents could read answers and records").fix(fix)
    }
}

/// The same for the rooms of an experiment. Errors come first.
pub(crate) fn seen_under(conditions: &Conditions) -> (Vec<Problem>, Vec<Problem>) {
    if conditions.backend != Backend::Local {
        return (Vec::new(), Vec::new());
    }
    seen().into_iter().partition(|problem| problem.severity == Severity::Error)
}

/// Agents that run this program in their rooms, if the program for rooms is missing.
pub(crate) fn programless(agents: &[PlannedAgent]) -> Vec<Problem> {
    let asks = |agent: &&PlannedAgent| {
        let command = agent.parameters.get("command").and_then(|command| command.get(0));
        agent.harness == Harness::Command && command.and_then(|first| first.as_str()) == Some(OURSELVES)
    };
    let asking: Vec<&str> = agents.iter().filter(asks).map(|agent| agent.name.as_str()).collect();
    let Some(error) = agent_program().err().filter(|_| !asking.is_empty()) else { return Vec::new() };
    let what = format!("{} cannot run `{OURSELVES}` in a room: {error}", asking.join(", "));
    vec![Problem::error(what).id(FAMILY.number(73)).fix("build or install both programs into one directory")]
}
