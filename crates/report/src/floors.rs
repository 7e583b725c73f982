//! Rewards relative to the reward for doing nothing, which an audit measured.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::evaluate::{Tables, evaluate};
use crate::group::{Group, Unit};
use crate::selection::Selection;
use crate::stats::rescale;

/// The reward for doing nothing, by task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Floors(BTreeMap<String, f64>);

/// Means of rescaled rewards: 0 is the reward for doing nothing, 1 is full reward.
#[derive(Clone, Debug, Serialize)]
pub struct Rescaled {
    pub tasks: usize,
    /// Tasks without a floor; their rewards are unchanged.
    pub tasks_without: usize,
    pub overall: Group,
    pub agent: Vec<Group>,
}

impl Floors {
    /// Reads the output of `audit --json`, with or without its envelope.
    pub fn parse(text: &str) -> Result<Self, String> {
        let document: Value =
            aec_base::json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))?;
        let data = document.get("data").unwrap_or(&document);
        let audits = data.get("audits").and_then(Value::as_array).ok_or("it has no list `audits`")?;
        let mut floors = BTreeMap::new();
        for audit in audits {
            let id = audit.get("task_id").and_then(Value::as_str).ok_or("an audit has no `task_id`")?;
            let Some(floor) = audit.get("floor").filter(|floor| !floor.is_null()) else { continue };
            let sound = floor.as_f64().filter(|floor| (0.0..1.0).contains(floor));
            let floor =
                sound.ok_or_else(|| format!("the floor of {id} is not a number from 0 to below 1"))?;
            floors.insert(id.to_owned(), floor);
        }
        Ok(Self(floors))
    }

    pub fn evaluate(&self, selection: &Selection, unit: Unit) -> Rescaled {
        let mut selection = selection.clone();
        let floors: Vec<Option<f64>> =
            selection.tasks.iter().map(|task| self.0.get(&task.id).copied()).collect();
        for trial in &mut selection.trials {
            if let (Some(reward), Some(floor)) = (trial.reward, floors[trial.task]) {
                trial.reward = rescale(reward, floor).or(trial.reward);
            }
        }
        let tasks = floors.iter().flatten().count();
        let evaluation = evaluate(&selection, unit);
        let Tables { agent, .. } = evaluation.by;
        Rescaled { tasks, tasks_without: floors.len() - tasks, overall: evaluation.overall, agent }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floors_are_read_from_an_audit_and_nothing_else() {
        let text = r#"{"command": "audit", "data": {"audits": [
            {"task_id": "a", "floor": 0.25}, {"task_id": "b", "floor": null}]}}"#;
        assert_eq!(Floors::parse(text).unwrap(), Floors(BTreeMap::from([("a".to_owned(), 0.25)])));
        for text in [
            "",
            "[]",
            "{}",
            r#"{"audits": 1}"#,
            r#"{"audits": [{}]}"#,
            r#"{"audits": [{"task_id": "a", "floor": 1}]}"#,
            r#"{"audits": [{"task_id": "a", "floor": -0.1}]}"#,
            r#"{"audits": [{"task_id": "a", "floor": "x"}]}"#,
        ] {
            assert!(Floors::parse(text).is_err(), "{text}");
        }
    }
}
