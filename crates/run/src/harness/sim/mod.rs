//! `sim`: the reference solution with a skill. It makes the mistakes that engineers make, as often as its skill says,
//! and the same ones each time the same trial is run. For demonstrations, and for trying out statistics.

mod answer;
mod chance;
mod fault;

use serde_json::{Map, Value, json};

use self::answer::{Spoiled, spoil};
use self::chance::Chance;
use super::{End, Rollout, TrialContext, oracle};

/// A larger answer is left as it is.
const LARGEST: u64 = 4 * 1024 * 1024;

/// Runs the solution, then spoils its answer.
pub async fn run(context: &mut TrialContext) -> Rollout {
    let instruction = context.task.instruction.clone();
    context.begin(None, &instruction);
    let skill = context.agent.parameters.skill;
    let (end, faults) = match work(context, skill).await {
        Ok(faults) => (End::Done, faults),
        Err(end) => (end, Vec::new()),
    };
    Rollout::new(end).with("skill", skill).with("faults", Value::from(faults))
}

/// What it leaves in place of the right answer in the trial with this key; nothing when it forgets to answer.
pub fn answer(right: &str, trial: &[u8; 32], seed: i64, skill: f64) -> Option<String> {
    spoil(right, skill, &mut Chance::new(trial, seed, skill)).text
}

async fn work(context: &mut TrialContext, skill: f64) -> Result<Vec<Value>, End> {
    let place = context.task.output_place().to_owned();
    oracle::solve(context).await?;
    // The best is the solution itself, to the byte.
    if skill >= 1.0 {
        return Ok(Vec::new());
    }
    let workspace = context.workspace().await?;
    let right = match workspace.read(&place, LARGEST).await {
        Ok(bytes) => String::from_utf8(bytes).ok(),
        Err(_) => None,
    };
    let Some(right) = right else {
        context.trajectory.note(format!("{place} is no text to make mistakes in"), Map::new());
        return Ok(Vec::new());
    };
    let mut chance = Chance::new(&context.seed, context.agent.parameters.seed, skill);
    let Spoiled { text, faults } = spoil(&right, skill, &mut chance);
    if let Some(text) = text {
        workspace.write(&place, text.into_bytes()).await?;
    } else {
        // A file cannot be unwritten through a handle, but the room's own shell can remove it.
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
