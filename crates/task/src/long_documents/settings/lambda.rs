//! `lambda-rlm.toml`: settings for a report that is written by a plan of calls instead of a free loop.

use std::path::Path;

use aec_base::document::Shared;
use aec_base::problem::Problem;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::check::MOST_TOKENS;
use super::{Advisor, MOST_BRANCHES, TemplateSettings, TemplateTable, Tier};
use crate::long_documents::source_file::Checker;

/// A smaller window has no space for instructions beside the text.
pub(crate) const LEAST_WINDOW: u64 = 1_000;
/// A larger window is a typing error.
pub const MOST_WINDOW: u64 = 1_000_000_000;

/// `lambda-rlm.toml` with its defaults.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LambdaSettings {
    /// The report to write.
    pub template: TemplateSettings,
    /// How plans are made.
    pub planner: PlannerSettings,
    /// How extracted facts are reviewed before a section is written.
    pub review: Review,
    /// How a run is carried out.
    pub execution: LambdaExecution,
    /// Limits of a run.
    pub guardrails: LambdaGuardrails,
    /// A second model that gives advice.
    pub advisor: Option<Advisor>,
    /// Limits that only overrides set; the file has no keys for them.
    pub run: RunLimits,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PlannerSettings {
    /// Most characters that one call may read.
    pub context_window_chars: u64,
    /// Smallest probability that a fact survives from the source to the section.
    pub accuracy_target: f64,
    /// Probability that a fact survives its extraction.
    pub leaf_accuracy: f64,
    /// Probability that a fact survives one merge.
    pub compose_accuracy: f64,
    /// Most parts that one merge combines.
    pub max_branching_factor: u32,
}

impl Default for PlannerSettings {
    fn default() -> Self {
        Self {
            context_window_chars: 100_000,
            accuracy_target: 0.80,
            leaf_accuracy: 0.95,
            compose_accuracy: 0.90,
            max_branching_factor: 20,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Review {
    pub enabled: bool,
    /// How often one source is read again after a review.
    pub max_retries_per_source: u32,
    /// How often one section's facts are supplemented after a review.
    pub max_supplements_per_section: u32,
}

impl Default for Review {
    fn default() -> Self {
        Self { enabled: true, max_retries_per_source: 1, max_supplements_per_section: 1 }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LambdaExecution {
    /// Most calls at a time.
    pub max_parallel_workers: u32,
}

impl Default for LambdaExecution {
    fn default() -> Self {
        Self { max_parallel_workers: 4 }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LambdaGuardrails {
    /// Most tokens, read and written, over all calls.
    pub token_budget: u64,
}

impl Default for LambdaGuardrails {
    fn default() -> Self {
        Self { token_budget: 500_000 }
    }
}

/// Limits of a run that the file has no keys for.
#[derive(Clone, Debug, PartialEq, Default, Serialize)]
pub struct RunLimits {
    /// Most model calls.
    pub max_calls: Option<u32>,
    /// Most US dollars.
    pub max_cost_usd: Option<f64>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Written {
    template: TemplateTable,
    planner: PlannerSettings,
    review: Review,
    execution: LambdaExecution,
    guardrails: LambdaGuardrails,
    advisor: Option<Advisor>,
}

impl LambdaSettings {
    /// Parses a `lambda-rlm.toml`. Returns settings only if no problem is an error.
    pub fn read(path: &Path, text: &str) -> (Option<Self>, Vec<Problem>) {
        super::read(path, text, |written: Written, checker| {
            let settings = Self {
                template: written.template.with_default(Tier::DependencyTree),
                planner: written.planner,
                review: written.review,
                execution: written.execution,
                guardrails: written.guardrails,
                advisor: written.advisor,
                run: RunLimits::default(),
            };
            settings.check(checker);
            settings
        })
    }

    /// All settings including defaults, as stored in records: equal settings give equal text.
    pub fn effective(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    fn check(&self, checker: &mut Checker<'_>) {
        checker.template(&self.template);
        self.planner.check(checker);
        let review = &self.review;
        checker.whole("review.max_retries_per_source", review.max_retries_per_source.into(), 0, 100);
        checker.whole(
            "review.max_supplements_per_section",
            review.max_supplements_per_section.into(),
            0,
            100,
        );
        checker.workers(self.execution.max_parallel_workers);
        checker.whole("guardrails.token_budget", self.guardrails.token_budget, 1, MOST_TOKENS);
        if let Some(advisor) = &self.advisor {
            checker.advisor(advisor);
        }
    }
}

impl PlannerSettings {
    fn check(&self, checker: &mut Checker<'_>) {
        let window = self.context_window_chars;
        checker.whole("planner.context_window_chars", window, LEAST_WINDOW, MOST_WINDOW);
        let branches = self.max_branching_factor.into();
        checker.whole("planner.max_branching_factor", branches, 2, MOST_BRANCHES.into());
        checker.share("planner.accuracy_target", self.accuracy_target);
        checker.share("planner.leaf_accuracy", self.leaf_accuracy);
        checker.share("planner.compose_accuracy", self.compose_accuracy);
        if self.accuracy_target <= 1.0
            && self.leaf_accuracy < self.accuracy_target
            && self.leaf_accuracy > 0.0
        {
            let what = format!(
                "`planner.accuracy_target` {} cannot be reached with a `leaf_accuracy` of {}",
                self.accuracy_target, self.leaf_accuracy
            );
            let fix = format!("lower the target to {} or less", self.leaf_accuracy);
            checker.shared(Shared::Conflict, "planner.accuracy_target", what, fix);
        }
    }
}
