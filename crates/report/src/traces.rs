//! `report traces`: the facts of every trial, and one typical trial of each class.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use crate::trace::{Class, TraceFacts};

#[derive(Clone, Debug, Serialize)]
pub struct Traces {
    /// The number of trials of each class, with a typical one.
    pub classes: Vec<ClassRow>,
    pub stop_conditions: BTreeMap<String, usize>,
    /// Faults by kind.
    pub error_types: BTreeMap<String, usize>,
    pub trials: Vec<TraceFacts>,
}

#[derive(Clone, Debug, Serialize)]
pub struct ClassRow {
    pub class: Class,
    pub trials: usize,
    /// The median trial by turns and tool calls.
    pub typical: String,
    /// Its conversation below the root of `jobs`.
    pub conversation: Option<PathBuf>,
}

pub fn traces(trials: Vec<TraceFacts>) -> Traces {
    let mut classes: BTreeMap<Class, Vec<&TraceFacts>> = BTreeMap::new();
    let mut stop_conditions = BTreeMap::new();
    let mut error_types = BTreeMap::new();
    for trial in &trials {
        classes.entry(trial.class).or_default().push(trial);
        *stop_conditions.entry(trial.stop_condition.clone()).or_default() += 1;
        if let Some(kind) = &trial.error_type {
            *error_types.entry(kind.clone()).or_default() += 1;
        }
    }
    let classes = classes
        .into_iter()
        .map(|(class, mut of_class)| {
            of_class.sort_by_key(|trial| (trial.turns_used, trial.tool_calls, trial.trial_id.clone()));
            let typical = of_class[of_class.len() / 2];
            ClassRow {
                class,
                trials: of_class.len(),
                typical: format!("{}/{}", typical.experiment_id, typical.trial_id),
                conversation: typical.conversation.clone(),
            }
        })
        .collect();
    Traces { classes, stop_conditions, error_types, trials }
}
