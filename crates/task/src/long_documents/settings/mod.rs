//! The settings files of the long-document harnesses: `rlm.toml` and `lambda-rlm.toml`.
//!
//! Every key has a default, a range and an effect: an unknown key is an error, and so is an unsupported part of the
//! format. If 0 means "no limit" in the file, the value is `None` here.

mod check;
mod lambda;
mod null;
mod overrides;
mod rlm;

use std::path::Path;

use aec_base::document::Shared;
use aec_base::problem::Problem;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use lambda::{
    LambdaExecution, LambdaGuardrails, LambdaSettings, MOST_WINDOW, PlannerSettings, Review, RunLimits,
};
pub use overrides::Overrides;
pub use rlm::{
    Execution, Guardrails, Hints, Input, InputType, KNOWN_SUBCALLS, RESERVED_NAMES, RlmSettings, Subcall,
};

use crate::long_documents::source_file::{self, Checker};
use crate::long_documents::{FAMILY, number_of};

/// Most branches of a plan; a larger number is a typing error.
pub const MOST_BRANCHES: u32 = 1_000;

/// How the sections of a report depend on each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// All sections are independent, and a template that declares dependencies is refused.
    Flat,
    /// A section is unlocked when the sections it depends on are filled.
    DependencyTree,
}

/// `[template]`: the report to write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TemplateSettings {
    pub tier: Tier,
    /// The report template: a plain path below the directory of the settings file.
    pub definition: Option<String>,
}

/// `[template]` as written; the default tier differs between the harnesses.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct TemplateTable {
    tier: Option<Tier>,
    definition: Option<String>,
}

impl TemplateTable {
    fn with_default(self, tier: Tier) -> TemplateSettings {
        TemplateSettings { tier: self.tier.unwrap_or(tier), definition: self.definition }
    }
}

/// `[advisor]`: a second model that the main model may ask for advice. Without the table there is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Advisor {
    /// The model that gives advice.
    pub model: String,
    /// How often it may be asked.
    pub max_uses: u32,
    /// Most tokens of one answer.
    pub max_response_tokens: u32,
    /// How many recent messages it sees; 0 means none.
    pub context_window: u32,
    /// Whether it may be asked at all.
    pub enabled: bool,
}

impl Default for Advisor {
    fn default() -> Self {
        Self {
            model: String::new(),
            max_uses: 5,
            max_response_tokens: 500,
            context_window: 10,
            enabled: true,
        }
    }
}

/// Reads a settings file: decodes it, and lets `build` check it.
fn read<Written: DeserializeOwned, Settings>(
    path: &Path,
    text: &str,
    build: impl FnOnce(Written, &mut Checker<'_>) -> Settings,
) -> (Option<Settings>, Vec<Problem>) {
    let (changed, nulls) = null::stand_in(text);
    let document = match source_file::parse(path, changed) {
        Ok(document) => document,
        Err(problems) => return (None, problems),
    };
    let mut checker = Checker::new(&document);
    let written = checker.decode::<Written>();
    null::explain(path, text, &nulls, &mut checker.problems);
    refuse_constitution(&mut checker.problems);
    let settings = written.map(|written| build(written, &mut checker));
    checker.finish(settings)
}

/// A constitution changes what a run may do, so it must not be ignored silently.
fn refuse_constitution(problems: &mut [Problem]) {
    let unknown_key = FAMILY.id(Shared::UnknownKey);
    let constitution = |problem: &&mut Problem| {
        problem.id.as_ref() == Some(&unknown_key) && problem.what == "unknown key `constitution` here"
    };
    for problem in problems.iter_mut().filter(constitution) {
        "`[constitution]` is not supported".clone_into(&mut problem.what);
        problem.id = Some(FAMILY.number(number_of::UNSUPPORTED));
        problem.why = Some("no harness here reads or enforces a constitution".to_owned());
        problem.fix = Some("remove the table; say what must not be done in the instruction".to_owned());
    }
}

#[cfg(test)]
mod tests;
