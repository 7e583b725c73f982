//! `report traces`: what every trial did, and one typical trial of each class to look at.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use crate::trace::{Class, TraceFacts};

/// What every trial did.
#[derive(Clone, Debug, Serialize)]
pub struct Traces {
    /// How many of each class, with one to look at.
    pub classes: Vec<ClassRow>,
    /// What ended the work of how many.
    pub stop_conditions: BTreeMap<String, usize>,
    /// Faults by kind.
    pub error_types: BTreeMap<String, usize>,
    /// Every trial.
    pub trials: Vec<TraceFacts>,
}

/// The trials of one class.
#[derive(Clone, Debug, Serialize)]
pub struct ClassRow {
    pub class: Class,
    /// How many.
    pub trials: usize,
    /// The one in the middle by turns and tool calls.
    pub typical: String,
    /// Its conversation below the root of `jobs`.
    pub conversation: Option<PathBuf>,
}

/// Puts together what trials did.
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
