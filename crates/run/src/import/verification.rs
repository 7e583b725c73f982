//! Judges again what another program judged, if everything that the verifier read there is available.

use aec_base::problem::Problem;
use aec_judge::settle::freeze::{AgentFiles, Frozen, Unfrozen};
use aec_judge::settle::order::{Files, Handed, Source, Submitted};
use aec_judge::settle::outcome::Ending;
use indexmap::IndexMap;
use serde_json::Value;

use super::FAMILY;
use super::foreign::{Answer, ForeignTrial, Left, Told};
use crate::elsewhere::{ForeignJudging, Judgement, Workspace, judge, judge_frozen};
use crate::task::PreparedTask;

/// The largest difference between equal rewards: one of them was converted to text and back.
const SAME: f64 = 1e-9;

/// The result of judging a trial again.
#[derive(Clone, Debug, PartialEq)]
pub enum Verification {
    Agrees,
    Disagrees {
        /// The reward of this judge.
        local: f64,
        /// The reward reported by the other program.
        told: Option<f64>,
    },
    /// It was not judged again, for this reason.
    Unverified(String),
}

impl Verification {
    /// Compares the reward of this judge with the reported one.
    pub fn compare(local: f64, told: Option<f64>) -> Self {
        let is_same = told.is_some_and(|told| (told - local).abs() <= SAME);
        if is_same { Self::Agrees } else { Self::Disagrees { local, told } }
    }

    /// Adds the result to the report on the agent's work in records.
    pub fn note(&self, agent_result: &mut IndexMap<String, Value>) {
        let word = match self {
            Self::Agrees => "agrees",
            Self::Disagrees { .. } => "disagrees",
            Self::Unverified(_) => "unverified",
        };
        agent_result.insert("verification".to_owned(), word.into());
        if let Self::Unverified(reason) = self {
            agent_result.insert("unverified_because".to_owned(), reason.as_str().into());
        }
    }

    /// A problem for the user, if this judge disagrees.
    pub fn problem(&self, trial: &str) -> Option<Problem> {
        let Self::Disagrees { local, told } = self else { return None };
        let told = told.map_or_else(
            || "no reward that is a number".to_owned(),
            |reward| format!("a reward of {reward}"),
        );
        let what = format!("{trial}: the run reported {told}, but the verifier here says {local}");
        Some(
            Problem::warning(what)
                .id(FAMILY.number(21))
                .why("the record has the reward of the verifier here, and the other one beside it")
                .fix("find out what differs: another verifier, or one that ran beside what the agent left running"),
        )
    }
}

/// Judges an agent's results again.
pub(super) fn verify(bench: ForeignJudging<'_>, trial: &ForeignTrial) -> (Option<Judgement>, Verification) {
    let unverified = |reason: &str| (None, Verification::Unverified(reason.to_owned()));
    let task = match &trial.here {
        Ok(task) => task,
        Err(reason) => return unverified(reason),
    };
    let own = match &trial.ending {
        Ending::Judgeable(_) if trial.told == Told::Refused => {
            return unverified("what the agent left was refused where it was made");
        }
        Ending::Judgeable(own) => own.clone(),
        Ending::Lost(..) => return unverified("it failed where it was made, before there was an answer"),
    };
    let judgement = match &trial.left {
        Left::Unknown(reason) => return unverified(reason),
        Left::Workspace(path) => judge(bench, task, Workspace { path, ours: &[], published: None }, own),
        Left::Conversation { answer, is_touched, is_one_file } => {
            if bench.judge.is_none() {
                return unverified("the user did not ask for it");
            }
            // Every revision reads the output file and nothing else.
            let is_standard = task.verifier.as_ref().is_some_and(|files| files.standard_revision().is_some());
            let answer = answer.as_ref();
            if answer.is_none() && trial.source == Some(Source::Submitted) {
                return unverified(
                    "the submitted answer is a file of the workspace or no text, and did not come along",
                );
            }
            // Files that the agent did not submit were judged in the original workspace, which is not available.
            let handed_in = answer.is_some_and(|answer| answer.source == Source::Submitted);
            if (*is_touched || trial.source == Some(Source::File)) && !handed_in {
                return unverified("the answer may be a file of the workspace, which did not come along");
            }
            if *is_touched && !is_standard && !is_one_file {
                return unverified("the verifier may read files of the workspace, which did not come along");
            }
            judge_frozen(bench, task, frozen(bench, task, answer, is_standard), own)
        }
    };
    let local = judgement.verdict.as_ref().and_then(|verdict| verdict.reward);
    let verification = match local {
        Some(local) => Verification::compare(local, trial.told.reward()),
        None if bench.judge.is_none() => Verification::Unverified("the user did not ask for it".to_owned()),
        None => {
            let reason =
                judgement.settled.fault.as_ref().map(|fault| fault.message.as_str()).unwrap_or_default();
            Verification::Unverified(format!("it could not be judged here: {reason}"))
        }
    };
    (Some(judgement), verification)
}

/// The workspace of an agent that changed nothing but its answer. The standard verifier reads nothing else.
fn frozen(
    bench: ForeignJudging<'_>,
    task: &PreparedTask,
    answer: Option<&Answer>,
    is_standard: bool,
) -> Result<Frozen, Unfrozen> {
    let mut handed = Handed::default();
    match answer {
        Some(Answer { text, source: Source::Submitted, .. }) => {
            handed.submitted = Some(Submitted::Content(text.clone().into_bytes()));
        }
        Some(answer) => handed.said = Some(answer.text.clone()),
        None => {}
    }
    let freezer = task.freezer(bench.order, bench.contents, bench.redactor);
    let files = if is_standard { Files::new() } else { freezer.given_files() };
    freezer.freeze(AgentFiles::InMemory(files), &handed)
}
