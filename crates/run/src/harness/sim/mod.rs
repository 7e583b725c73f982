//! `sim`: the reference solution with a skill. It makes typical mistakes of engineers, as often as its skill
//! determines, and the same ones each time the same trial is run. Lessons in its system prompt change its skill. For
//! demonstrations, and for trying statistics and searches for better prompts.

mod answer;
mod chance;
mod fault;
mod lesson;

use std::sync::Arc;

use serde_json::{Map, Value, json};

use self::answer::{Spoiled, spoil};
use self::chance::Chance;
use super::{End, Rollout, TrialContext, oracle};

/// In bytes; a larger answer is not changed.
const LARGEST: u64 = 4 * 1024 * 1024;

/// Runs the solution, then spoils its answer.
pub async fn run(context: &mut TrialContext) -> Rollout {
    let instruction = context.task.instruction.clone();
    let agent = Arc::clone(&context.agent);
    let lessons = &agent.parameters.lessons;
    // Without lessons the prompt has no effect, so it is not recorded as sent.
    let system_prompt = agent.system_prompt.clone().filter(|_| !lessons.is_empty());
    let (skill, heeded) = lesson::heed(agent.parameters.skill, lessons, system_prompt.as_deref());
    context.begin(system_prompt, &instruction);
    let (end, faults) = match work(context, skill).await {
        Ok(faults) => (End::Done, faults),
        Err(end) => (end, Vec::new()),
    };
    let rollout = Rollout::new(end).with("skill", skill).with("faults", Value::from(faults));
    if lessons.is_empty() { rollout } else { rollout.with("lessons", Value::from(heeded)) }
}

/// The answer it leaves instead of the right one in the trial with this key; `None` when it leaves none.
pub fn answer(right: &str, trial: &[u8; 32], seed: i64, skill: f64) -> Option<String> {
    spoil(right, skill, &mut Chance::new(trial, seed, skill)).text
}

async fn work(context: &mut TrialContext, skill: f64) -> Result<Vec<Value>, End> {
    let place = context.task.output_place().to_owned();
    oracle::solve(context).await?;
    // With the best skill it is exactly the solution, byte for byte.
    if skill >= 1.0 {
        return Ok(Vec::new());
    }
    let workspace = context.workspace().await?;
    let right = match workspace.read(&place, LARGEST).await {
        Ok(bytes) => String::from_utf8(bytes).ok(),
        Err(_) => None,
    };
    let Some(right) = right else {
        context.trajectory.note(format!("{place} is not text in which to make mistakes"), Map::new());
        return Ok(Vec::new());
    };
    let mut chance = Chance::new(&context.seed, context.agent.parameters.seed, skill);
    let Spoiled { text, faults } = spoil(&right, skill, &mut chance);
    if let Some(text) = text {
        workspace.write(&place, text.into_bytes()).await?;
    } else {
        // The workspace has no operation to remove a file, but the sandbox's shell can.
        let mut command = workspace.command(["rm", "-f", "--", place.as_str()]);
        command.deadline = context.time_left();
        workspace.exec(command).await?;
    }
    let faults: Vec<Value> = faults
        .into_iter()
        .map(|(field, fault)| match field {
            Some(field) => json!({ "field": field, "fault": fault }),
            None => json!({ "fault": fault }),
        })
        .collect();
    let mut metadata = Map::new();
    metadata.insert("skill".to_owned(), skill.into());
    metadata.insert("faults".to_owned(), faults.clone().into());
    let count = aec_base::text::count(faults.len(), "mistake");
    context.trajectory.note(format!("made {count}"), metadata);
    Ok(faults)
}
