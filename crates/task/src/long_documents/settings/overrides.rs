//! Limits of a run that are set outside the file: they only lower the limits of the file.

use super::{LambdaSettings, RlmSettings};

/// Limits from outside the file. Absent and 0 both mean no override.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overrides {
    /// Most calls of the main model.
    pub max_turns: Option<u32>,
    /// Most tokens, read and written, over all calls.
    pub token_budget: Option<u64>,
    /// Most tokens in the context.
    pub context_limit: Option<u64>,
    /// Most US dollars.
    pub max_cost_usd: Option<f64>,
    /// Most calls at a time.
    pub max_parallel_workers: Option<u32>,
    /// Most sub-calls.
    pub max_subcalls: Option<u64>,
    /// Most input tokens that are billed in full.
    pub billable_input_budget: Option<u64>,
}

impl Overrides {
    fn dollars(&self) -> Option<f64> {
        self.max_cost_usd.filter(|dollars| dollars.is_finite() && *dollars > 0.0)
    }
}

fn lower<T: Ord + Copy + Default>(limit: &mut T, to: Option<T>) {
    if let Some(to) = to.filter(|to| *to > T::default()) {
        *limit = (*limit).min(to);
    }
}

fn lower_optional<T: Ord + Copy + Default>(limit: &mut Option<T>, to: Option<T>) {
    if let Some(to) = to.filter(|to| *to > T::default()) {
        *limit = Some(limit.map_or(to, |limit| limit.min(to)));
    }
}

fn lower_dollars(limit: &mut Option<f64>, to: Option<f64>) {
    if let Some(to) = to {
        *limit = Some(limit.map_or(to, |limit| limit.min(to)));
    }
}

impl RlmSettings {
    /// Lowers limits; never raises one.
    pub fn tighten(&mut self, overrides: &Overrides) {
        let guardrails = &mut self.guardrails;
        lower(&mut guardrails.max_iterations, overrides.max_turns);
        lower(&mut guardrails.token_budget, overrides.token_budget);
        lower_dollars(&mut guardrails.max_budget_usd, overrides.dollars());
        lower_optional(&mut guardrails.max_subcalls, overrides.max_subcalls);
        lower_optional(&mut guardrails.billable_input_budget, overrides.billable_input_budget);
        lower(&mut self.execution.context_limit, overrides.context_limit);
        lower(&mut self.execution.max_parallel_workers, overrides.max_parallel_workers);
    }
}

impl LambdaSettings {
    /// Lowers limits; never raises one. Returns the names of overrides that this harness does not support, so that
    /// the caller can refuse them.
    #[must_use]
    pub fn tighten(&mut self, overrides: &Overrides) -> Vec<&'static str> {
        lower_optional(&mut self.run.max_calls, overrides.max_turns);
        lower_dollars(&mut self.run.max_cost_usd, overrides.dollars());
        lower(&mut self.guardrails.token_budget, overrides.token_budget);
        lower(&mut self.execution.max_parallel_workers, overrides.max_parallel_workers);
        let is_set = |limit: Option<u64>| limit.is_some_and(|limit| limit > 0);
        [
            ("context_limit", is_set(overrides.context_limit)),
            ("max_subcalls", is_set(overrides.max_subcalls)),
            ("billable_input_budget", is_set(overrides.billable_input_budget)),
        ]
        .into_iter()
        .filter_map(|(name, set)| set.then_some(name))
        .collect()
    }
}
