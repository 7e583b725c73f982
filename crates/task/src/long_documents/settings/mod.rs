//! The settings files of the long-document harnesses: `rlm.toml` and `lambda-rlm.toml`.
//!
//! Every key has a default and a range, and every key has an effect: a key that is not known is an error, and so is a
//! part of the format that is not supported. A limit that is written as 0 where 0 means "none" is `None` here.

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

/// Most branches of a plan, and most workers at a time: beyond these a number is a typing error.
pub const MOST_BRANCHES: u32 = 1_000;

/// How the sections of a report depend on each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Every section is independent, and a template that declares dependencies is refused.
    Flat,
    /// A section is unlocked when those it depends on are filled.
    DependencyTree,
}

/// `[template]`: the report that is to be written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TemplateSettings {
    /// How sections depend on each other.
    pub tier: Tier,
    /// The report template: a plain path below the directory of the settings file.
    pub definition: Option<String>,
}

/// `[template]` as written; the tier's default is the harness's.
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

/// `[advisor]`: a second model that may be asked for advice. Without the table there is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Advisor {
    /// The model that gives advice.
    pub model: String,
    /// Most times it may be asked.
    pub max_uses: u32,
    /// Most tokens of one piece of advice.
    pub max_response_tokens: u32,
    /// Most recent messages that it is shown; 0 shows none.
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

/// Reads a settings file: decodes what was written, and lets `build` check it.
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

/// A constitution changes what a run may do, so leaving one out silently would be worse than any typo.
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
