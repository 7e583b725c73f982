//! The native executor: runs groups of rollouts of a native environment and returns finished rows.

use std::sync::Arc;

use aec_base::digest::Hasher;
use aec_model::client::Model;
use aec_model::message::Sampling;
use futures_util::future::join_all;
use serde_json::value::RawValue;

use crate::engine::{Environment, Finished, Group, Trouble};
use crate::native::{Generated, Generation, NativeEnvironment};
use crate::results::RowFacts;
use crate::results::payers::Payers;
use crate::results::row::example_column;

#[derive(Debug)]
pub struct NativeExecutor {
    pub environment: NativeEnvironment,
    pub model: Model,
    pub sampling: Sampling,
    /// Base of the seeds of rollouts; absent for rollouts without a seed.
    pub seed: Option<i64>,
    pub payers: Payers,
    /// Tells this evaluation apart from others of the same run, on cassettes.
    pub label: String,
    pub columns: Vec<Arc<str>>,
}

impl NativeExecutor {
    fn generation(&self, example: usize, rollout_number: u32, attempt: u32) -> Generation {
        let example = self.environment.examples.get(example);
        let task = example.map_or("", |example| &example.task.task_id);
        let example_id =
            example.and_then(|example| i64::try_from(example.example_id).ok()).unwrap_or(i64::MAX);
        let mut sampling = self.sampling.clone();
        if let Some(seed) = self.seed
            && sampling.seed.is_none()
        {
            sampling.seed = Some(rollout_seed(seed, task, rollout_number));
        }
        Generation {
            model: self.model.clone(),
            sampling,
            account: self.payers.begin(example_id, rollout_number),
            rollout_number,
            attempt,
            label: format!("{}/{task}#{rollout_number}", self.label),
        }
    }
}

/// Rollouts of one example must differ from each other, and repeat in the next run.
fn rollout_seed(seed: i64, task: &str, rollout_number: u32) -> i64 {
    let mut hasher = Hasher::default();
    hasher.part(b"aec-bench rollout");
    hasher.part(&seed.to_le_bytes());
    hasher.part(task.as_bytes());
    hasher.part(&rollout_number.to_le_bytes());
    let digest = hasher.finish();
    // Providers accept seeds of 31 bits.
    i64::from_str_radix(&digest.hex()[..8], 16).unwrap_or_default() & 0x7fff_ffff
}

impl Environment for NativeExecutor {
    type Generated = Vec<Generated>;

    async fn generate(&self, group: Group) -> Vec<Generated> {
        let Some(example) = self.environment.examples.get(group.example) else { return Vec::new() };
        if let [(number, attempt)] = group.rollouts[..] {
            let how = self.generation(group.example, number, attempt);
            return vec![self.environment.generate(example, &how).await];
        }
        let rollouts = group.rollouts.iter().map(|(number, attempt)| async {
            let how = self.generation(group.example, *number, *attempt);
            self.environment.generate(example, &how).await
        });
        join_all(rollouts).await
    }

    fn scores_at_once(&self) -> bool {
        self.environment.scores_at_once()
    }

    async fn score(&self, generated: Vec<Generated>) -> Vec<Finished> {
        let mut finished = Vec::with_capacity(generated.len());
        for rollout in generated {
            finished.push(self.score_one(rollout).await);
        }
        finished
    }
}

impl NativeExecutor {
    async fn score_one(&self, rollout: Generated) -> Finished {
        let failure = rollout.failure.clone();
        let mut scored = self.environment.score(rollout).await;
        for name in &self.columns {
            let own = || RawValue::from_string(scored.column(name).to_string()).ok().map(Arc::from);
            let value = example_column(name, &scored.row.prompt, scored.row.answer.as_deref()).or_else(own);
            if let Some(value) = value {
                scored.row.columns.push((Arc::clone(name), value));
            }
        }
        let infra = scored.row.error.as_ref().map(|error| error.chain.clone());
        let trouble = failure.map(Trouble::Model).or_else(|| infra.map(Trouble::Infra));
        let mut line = Vec::with_capacity(4096);
        scored.row.write(&mut line);
        Finished { facts: RowFacts::of(&scored.row), line, trouble }
    }
}
