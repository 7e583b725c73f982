//! `rlm.toml`: settings for a model that works through long inputs with Python, sub-calls and a report.

use std::collections::BTreeMap;
use std::path::Path;

use aec_base::document::Shared;
use aec_base::problem::Problem;
use aec_base::text;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::check::MOST_TOKENS;
use super::{Advisor, TemplateSettings, TemplateTable, Tier};
use crate::long_documents::number_of;
use crate::long_documents::source_file::{Checker, is_python_name, shown};

/// The built-in sub-calls.
pub const KNOWN_SUBCALLS: [&str; 6] = ["extract", "calculate", "verify", "summarise", "reason", "review"];

/// Names that the harness defines in the model's Python; inputs must not use them.
pub const RESERVED_NAMES: [&str; 14] = [
    "ADVISOR",
    "COMMIT_OUTPUT",
    "FINAL",
    "FINAL_VAR",
    "HELP",
    "NOTE",
    "RECALL",
    "SHOW_VARS",
    "SUBCALL_LOG",
    "context",
    "fill_parallel",
    "grep",
    "parallel",
    "report",
];

const PYTHON_KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def",
    "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is",
    "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
];

/// `rlm.toml` with its defaults.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RlmSettings {
    /// The report to write.
    pub template: TemplateSettings,
    /// Inputs by their names in the model's Python.
    pub inputs: BTreeMap<String, Input>,
    /// Instructions about the way of working.
    pub hints: Hints,
    /// Sub-calls that the file configures; see [`RlmSettings::offered_subcalls`].
    pub subcalls: BTreeMap<String, Subcall>,
    /// Limits of a run.
    pub guardrails: Guardrails,
    /// How a run is carried out.
    pub execution: Execution,
    /// A second model that gives advice.
    pub advisor: Option<Advisor>,
}

/// The type of an input, which decides what the model's Python gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InputType {
    /// UTF-8 text.
    #[default]
    String,
    Json,
    /// Rows with a header line.
    Csv,
    Toml,
    Bytes,
}

/// `[inputs.<name>]`.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Input {
    #[serde(rename = "type")]
    pub kind: InputType,
    /// A plain path below the directory of the settings file.
    pub source: String,
    /// Whether Python gets the parsed value instead of the text.
    pub pre_parse: bool,
    /// A description for the model.
    pub description: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Hints {
    /// Phases in which the model should work.
    pub phases: Vec<String>,
    /// What the model must not do.
    pub prohibited: Vec<String>,
}

/// `[subcalls.<name>]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Subcall {
    /// Whether the model may use it.
    pub enabled: bool,
    /// `file.py:function` below the task, which replaces the built-in one.
    pub custom_impl: Option<String>,
    /// A description for the model.
    pub description: String,
}

impl Default for Subcall {
    fn default() -> Self {
        Self { enabled: true, custom_impl: None, description: String::new() }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Guardrails {
    /// Most tokens, read and written, over all calls.
    pub token_budget: u64,
    /// Most calls of the main model.
    pub max_iterations: u32,
    /// How deep sub-calls may nest; with 1 no sub-call can make another.
    pub max_subcall_depth: u32,
    /// Percentage of a budget at which the model is warned.
    pub budget_warning_pct: f64,
    /// Most sub-calls.
    #[serde(deserialize_with = "zero_is_none")]
    pub max_subcalls: Option<u64>,
    /// Most US dollars.
    #[serde(deserialize_with = "zero_dollars_are_none")]
    pub max_budget_usd: Option<f64>,
    /// Most input tokens that are billed in full, without cached ones.
    #[serde(deserialize_with = "zero_is_none")]
    pub billable_input_budget: Option<u64>,
}

impl Default for Guardrails {
    fn default() -> Self {
        Self {
            token_budget: 500_000,
            max_iterations: 100,
            max_subcall_depth: 1,
            budget_warning_pct: 80.0,
            max_subcalls: None,
            max_budget_usd: None,
            billable_input_budget: None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Execution {
    /// Whether the model sees its progress after every turn.
    pub scaffolding: bool,
    /// Share of the context at which older turns are condensed.
    pub compaction_threshold_pct: f64,
    /// Share of the context at which the run is stopped.
    pub hard_ceiling_pct: f64,
    /// The model that condenses; the agent's model if absent.
    pub compaction_model: Option<String>,
    /// The model of sub-calls; the agent's model if absent.
    pub subcall_model: Option<String>,
    /// Most tokens in the context.
    pub context_limit: u64,
    /// Most calls at a time.
    pub max_parallel_workers: u32,
}

impl Default for Execution {
    fn default() -> Self {
        Self {
            scaffolding: true,
            compaction_threshold_pct: 0.85,
            hard_ceiling_pct: 0.95,
            compaction_model: None,
            subcall_model: None,
            context_limit: 1_000_000,
            max_parallel_workers: 4,
        }
    }
}

fn zero_is_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    u64::deserialize(deserializer).map(|limit| Some(limit).filter(|limit| *limit > 0))
}

fn zero_dollars_are_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    f64::deserialize(deserializer).map(|limit| Some(limit).filter(|limit| *limit != 0.0))
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Written {
    template: TemplateTable,
    inputs: BTreeMap<String, Input>,
    hints: Hints,
    subcalls: BTreeMap<String, Subcall>,
    guardrails: Guardrails,
    execution: Execution,
    advisor: Option<Advisor>,
}

impl RlmSettings {
    /// Parses an `rlm.toml`. Returns settings only if no problem is an error.
    pub fn read(path: &Path, text: &str) -> (Option<Self>, Vec<Problem>) {
        super::read(path, text, |written: Written, checker| {
            let settings = Self {
                template: written.template.with_default(Tier::Flat),
                inputs: written.inputs,
                hints: written.hints,
                subcalls: written.subcalls,
                guardrails: written.guardrails,
                execution: written.execution,
                advisor: written.advisor,
            };
            settings.check(checker);
            settings
        })
    }

    /// All settings including defaults, as stored in records: equal settings give equal text.
    pub fn effective(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Names of the sub-calls that the model may use: the built-in ones unless disabled, and those that the file
    /// adds.
    pub fn offered_subcalls(&self) -> Vec<&str> {
        let own = self.subcalls.keys().map(String::as_str).filter(|name| !KNOWN_SUBCALLS.contains(name));
        let all = KNOWN_SUBCALLS.into_iter().chain(own);
        all.filter(|name| self.subcalls.get(*name).is_none_or(|subcall| subcall.enabled)).collect()
    }

    fn check(&self, checker: &mut Checker<'_>) {
        checker.template(&self.template);
        for (name, input) in &self.inputs {
            check_input(checker, name, input, &self.subcalls);
        }
        for (key, words) in
            [("hints.phases", &self.hints.phases), ("hints.prohibited", &self.hints.prohibited)]
        {
            if words.iter().any(|word| word.trim().is_empty()) {
                let what = format!("`{key}` has an empty entry");
                checker.shared(Shared::BadValue, key, what, "remove the entry, or write something there");
            }
        }
        for (name, subcall) in &self.subcalls {
            check_subcall(checker, name, subcall);
        }
        self.guardrails.check(checker);
        self.execution.check(checker);
        if let Some(advisor) = &self.advisor {
            checker.advisor(advisor);
        }
    }
}

impl Guardrails {
    fn check(&self, checker: &mut Checker<'_>) {
        checker.whole("guardrails.token_budget", self.token_budget, 1, MOST_TOKENS);
        checker.whole("guardrails.max_iterations", self.max_iterations.into(), 1, 1_000_000);
        checker.whole("guardrails.max_subcall_depth", self.max_subcall_depth.into(), 1, 8);
        checker.whole("guardrails.max_subcalls", self.max_subcalls.unwrap_or(0), 0, 1_000_000_000);
        let billable = self.billable_input_budget.unwrap_or(0);
        checker.whole("guardrails.billable_input_budget", billable, 0, MOST_TOKENS);
        let key = "guardrails.max_budget_usd";
        if self.max_budget_usd.is_some_and(|dollars| !dollars.is_finite() || dollars < 0.0) {
            let what = format!("`{key}` must be a finite number of dollars, 0 or more");
            checker.shared(Shared::BadValue, key, what, "write dollars such as 2.5, or 0 for no limit");
        }
        let (key, percent) = ("guardrails.budget_warning_pct", self.budget_warning_pct);
        if !(percent > 0.0 && percent <= 100.0) {
            let what = format!("`{key}` must be per cent above 0 and up to 100, not {percent}");
            checker.shared(Shared::BadValue, key, what, "write a number such as 80.0");
        } else if percent < 1.0 {
            let what = format!("`{key}` is {percent}, less than one per cent");
            let fix = "this key counts per cent: write 80.0 for 80 per cent";
            checker.warn(number_of::SHARE, key, what, fix);
        }
    }
}

impl Execution {
    fn check(&self, checker: &mut Checker<'_>) {
        checker.share("execution.compaction_threshold_pct", self.compaction_threshold_pct);
        checker.share("execution.hard_ceiling_pct", self.hard_ceiling_pct);
        if self.compaction_threshold_pct >= self.hard_ceiling_pct {
            let key = "execution.compaction_threshold_pct";
            let what = "`compaction_threshold_pct` is not below `hard_ceiling_pct`".to_owned();
            let fix = "lower the first or raise the second: a run would be stopped before it is condensed";
            checker.shared(Shared::Conflict, key, what, fix);
        }
        for (key, model) in [
            ("execution.compaction_model", &self.compaction_model),
            ("execution.subcall_model", &self.subcall_model),
        ] {
            if let Some(model) = model {
                checker.not_blank(key, model);
            }
        }
        checker.whole("execution.context_limit", self.context_limit, 1, MOST_TOKENS);
        checker.workers(self.max_parallel_workers);
    }
}

/// Why a name cannot be used in Python; `None` if it can.
fn name_fault(name: &str) -> Option<&'static str> {
    if !is_python_name(name) {
        Some("is not a name in Python")
    } else if PYTHON_KEYWORDS.contains(&name) {
        Some("is a reserved word of Python")
    } else if name.starts_with("__") {
        Some("begins with two underscores, as Python's own names do")
    } else if RESERVED_NAMES.contains(&name) {
        Some("is a name of the harness")
    } else {
        None
    }
}

fn check_input(checker: &mut Checker<'_>, name: &str, input: &Input, subcalls: &BTreeMap<String, Subcall>) {
    let key = format!("inputs.{name}");
    let taken = KNOWN_SUBCALLS.contains(&name) || subcalls.contains_key(name);
    if let Some(fault) = name_fault(name).or_else(|| taken.then_some("is the name of a sub-call")) {
        let what = format!("the input's name \"{}\" {fault}", shown(name));
        checker.own(number_of::NAME, &key, what, "use letters, digits and _, such as source_doc");
    }
    if input.source.is_empty() {
        let what = format!("`{key}.source` is missing or empty");
        checker.shared(Shared::MissingKey, &key, what, "name the file, such as fixtures/spec.md");
    } else {
        checker.path(&format!("{key}.source"), &input.source);
    }
    if input.pre_parse && matches!(input.kind, InputType::String | InputType::Bytes) {
        let what = format!("`{key}.pre_parse` is true, but there is nothing to parse in text and bytes");
        let fix = "remove it, or set the type to json, csv or toml";
        checker.shared(Shared::Conflict, &format!("{key}.pre_parse"), what, fix);
    }
}

fn check_subcall(checker: &mut Checker<'_>, name: &str, subcall: &Subcall) {
    let key = format!("subcalls.{name}");
    if name == "retrieve" && subcall.custom_impl.is_none() {
        let what = "the sub-call `retrieve` is not offered".to_owned();
        let fix = "remove the table and search with `grep`, or give it a `custom_impl` that really searches";
        let problem =
            Problem::error(what).id(crate::long_documents::FAMILY.number(number_of::SUBCALL)).fix(fix);
        checker.push(&key, problem.why("a model that is asked to retrieve without a search invents results"));
        return;
    }
    if let Some(fault) = name_fault(name) {
        let what = format!("the sub-call's name \"{}\" {fault}", shown(name));
        checker.own(number_of::NAME, &key, what, "use letters, digits and _, such as look_up");
        return;
    }
    match &subcall.custom_impl {
        Some(implementation) => {
            if let Some(fault) = implementation_fault(implementation) {
                let what = format!("`{key}.custom_impl` \"{}\" {fault}", shown(implementation));
                let fix = "write a file below the task and its function, such as tools/calls.py:look_up";
                checker.own(number_of::SUBCALL, &format!("{key}.custom_impl"), what, fix);
            }
        }
        None if KNOWN_SUBCALLS.contains(&name) => {}
        None => {
            let what = format!("the sub-call `{name}` is not known and has no `custom_impl`");
            let fix = match text::nearest(name, &KNOWN_SUBCALLS) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("use {}, or add `custom_impl`", text::one_of(&KNOWN_SUBCALLS)),
            };
            checker.own(number_of::SUBCALL, &key, what, fix);
        }
    }
}

fn implementation_fault(implementation: &str) -> Option<&'static str> {
    let Some((file, function)) = implementation.rsplit_once(':') else {
        return Some("names no function");
    };
    if !is_python_name(function) || PYTHON_KEYWORDS.contains(&function) {
        return Some("names something that is not a function");
    }
    if !file.ends_with(".py") {
        return Some("names a file that does not end with .py");
    }
    crate::long_documents::source_file::path_fault(file)
}
