//! Tries a package with the real `verifiers` library: it must load, and the library's rewards must equal those of our
//! judge.

mod play;
mod venv;

use std::collections::BTreeMap;

use aec_base::content::ContentStore;
use aec_judge::judge::Judge;
use aec_judge::submission::Submission;
use aec_model::script::{Script, ScriptedCall, ScriptedConversation, ScriptedReply};
use aec_package::interaction::{HarnessMode, Interaction};
use aec_package::manifest::{PackageManifest, PackagedTask};
use aec_package::select::{Ask, select};
use aec_run::harness::oracle::reference_files;
use aec_task::task::Task;
use serde::Serialize;
use serde_json::json;

pub use play::{Loaded, Played, Player, Seat, play};
pub use venv::{Venv, VenvError};

/// The default version for loading packages: the last one with both interfaces.
pub const DEFAULT_VERIFIERS: &str = "0.3.1";

/// The answer of a model that does nothing.
const NOTHING: &str = "I have no answer.";

/// Rewards that differ by less are equal: one of them was converted to text.
const SAME: f64 = 1e-9;

/// A task to try, with the rewards that its answers must earn.
#[derive(Debug)]
pub struct Trial {
    pub task_id: String,
    /// The reward of the reference solution here; absent if there is none to play.
    pub reference: Option<f64>,
    /// Why there is none.
    pub without: Option<String>,
    /// The reward for doing nothing here.
    pub nothing: f64,
    conversation: Option<ScriptedConversation>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// `reference`, `nothing` or `model`.
    pub player: Player,
    pub task_id: String,
    /// The library's reward.
    pub reward: Option<f64>,
    /// Our judge's reward; absent for a model.
    pub expected: Option<f64>,
    pub stop_condition: Option<String>,
    pub error: Option<String>,
    pub is_right: bool,
}

/// The first tasks of a package, with the answers of their reference solutions and the rewards of these.
pub fn trials(
    manifest: &PackageManifest,
    tasks: &[Task],
    judge: &Judge,
    contents: &ContentStore,
    most: usize,
) -> Result<Vec<Trial>, String> {
    let ask = Ask { num_examples: Some(most), ..Ask::default() };
    let slice = select(manifest, &ask);
    let is_stateful = match manifest.harness {
        HarnessMode::SingleTurn => false,
        HarnessMode::Stateful => true,
        HarnessMode::Auto => slice.tasks.iter().any(|task| task.lane == Interaction::Stateful),
    };
    let interaction = if is_stateful { Interaction::Stateful } else { Interaction::SingleTurn };
    slice.tasks.iter().map(|packaged| trial(packaged, interaction, tasks, judge, contents)).collect()
}

fn trial(
    packaged: &PackagedTask,
    interaction: Interaction,
    tasks: &[Task],
    judge: &Judge,
    contents: &ContentStore,
) -> Result<Trial, String> {
    let task = tasks.iter().find(|task| task.id.as_str() == packaged.task_id);
    let task = task.ok_or_else(|| format!("the task `{}` is gone", packaged.task_id))?;
    let given = given(packaged, task)?;
    let worth = |files: BTreeMap<String, Vec<u8>>| {
        let mut all = given.clone();
        all.extend(files);
        let submission = Submission::from_contents(all, contents).map_err(|error| error.to_string())?;
        let verdict = judge.verdict(task, &submission);
        verdict
            .reward
            .ok_or_else(|| verdict.fault.unwrap_or_else(|| "the verifier gave no reward".to_owned()))
    };
    let nothing = worth(BTreeMap::from([(packaged.output_path.clone(), NOTHING.as_bytes().to_vec())]));
    let nothing = nothing.map_err(|error| format!("`{}`: {error}", packaged.task_id))?;
    let made = reference_files(task, judge).and_then(|files| {
        let replies = replies(packaged, interaction, &files)?;
        Ok((worth(files)?, replies))
    });
    let (reference, conversation, without) = match made {
        Ok((reward, replies)) => {
            let conversation = ScriptedConversation { when: packaged.instruction.clone(), replies };
            (Some(reward), Some(conversation), None)
        }
        Err(why) => (None, None, Some(why)),
    };
    Ok(Trial { task_id: packaged.task_id.clone(), reference, without, nothing, conversation })
}

/// The files in the workspace before the agent starts.
fn given(packaged: &PackagedTask, task: &Task) -> Result<BTreeMap<String, Vec<u8>>, String> {
    if packaged.outputs.is_some() {
        return Ok(BTreeMap::new());
    }
    let staged = task.workspace_files().map_err(|error| error.to_string())?;
    let read = |source| fs_err::read(source).map_err(|error| error.to_string());
    staged.into_iter().map(|file| Ok((file.place, read(file.source)?))).collect()
}

/// The reference solution as a model would give it.
fn replies(
    packaged: &PackagedTask,
    interaction: Interaction,
    files: &BTreeMap<String, Vec<u8>>,
) -> Result<Vec<ScriptedReply>, String> {
    let text = |path: &str, bytes: &[u8]| {
        String::from_utf8(bytes.to_vec())
            .map_err(|_| format!("{path} is not a text that a model could write"))
    };
    let answer = files.get(&packaged.output_path);
    let answer = answer.ok_or_else(|| format!("it leaves no {}", packaged.output_path))?;
    let answer = text(&packaged.output_path, answer)?;
    if interaction == Interaction::SingleTurn {
        return Ok(vec![ScriptedReply { text: Some(answer), ..ScriptedReply::default() }]);
    }
    let mut calls = Vec::new();
    for (path, bytes) in files.iter().filter(|(path, _)| **path != packaged.output_path) {
        let arguments = json!({ "path": path, "content": text(path, bytes)? });
        calls.push(ScriptedCall { name: "write_file".to_owned(), arguments });
    }
    calls.push(ScriptedCall { name: "submit_answer".to_owned(), arguments: json!({ "content": answer }) });
    Ok(vec![
        ScriptedReply { tool_calls: calls, ..ScriptedReply::default() },
        ScriptedReply { text: Some("Done.".to_owned()), ..ScriptedReply::default() },
    ])
}

/// The script of a model that knows the reference solutions.
pub fn reference_script(trials: &[Trial]) -> Script {
    Script {
        replies: nothing_script().replies,
        conversations: trials.iter().filter_map(|trial| trial.conversation.clone()).collect(),
    }
}

/// The script of a model that does nothing.
pub fn nothing_script() -> Script {
    let reply = ScriptedReply { text: Some(NOTHING.to_owned()), ..ScriptedReply::default() };
    Script { replies: vec![reply], conversations: Vec::new() }
}

/// Compares the library's rewards with our judge's.
pub fn compare(trials: &[Trial], played: Vec<Played>) -> Vec<Verdict> {
    let mut verdicts: Vec<Verdict> = played
        .into_iter()
        .map(|played| {
            let trial = trials.iter().find(|trial| Some(&trial.task_id) == played.task_id.as_ref());
            let expected = match played.player {
                Player::Model => None,
                // Without a solution, the reference model does nothing either.
                Player::Reference => trial.map(|trial| trial.reference.unwrap_or(trial.nothing)),
                Player::Nothing => trial.map(|trial| trial.nothing),
            };
            let same = |(reward, expected): (f64, f64)| (reward - expected).abs() <= SAME;
            let is_right = match played.player {
                Player::Model => played.reward.is_some_and(|reward| (0.0..=1.0).contains(&reward)),
                _ => played.reward.zip(expected).is_some_and(same) && played.error.is_none(),
            };
            Verdict {
                player: played.player,
                task_id: played.task_id.unwrap_or_default(),
                reward: played.reward,
                expected,
                stop_condition: played.stop_condition,
                error: played.error,
                is_right,
            }
        })
        .collect();
    verdicts.sort_by(|a, b| (a.player, &a.task_id).cmp(&(b.player, &b.task_id)));
    verdicts
}
