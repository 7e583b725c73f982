//! `suite.toml`: how many tasks of which kind to generate from which templates.

use std::path::Path;

use aec_base::document::{Document, Family, Shared, Syntax};
use aec_base::name::Name;
use aec_base::problem::Problem;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::file::Quantity;

/// Ids of problems of suites begin with `S`.
pub const FAMILY: Family = Family('S');

/// `suite.toml`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SuiteFile {
    /// Name of the suite.
    pub name: Option<Name>,
    /// Seed of every draw.
    pub seed: Option<i64>,
    /// What the suite must cover.
    pub coverage: CoverageTable,
    /// Which templates it draws from.
    pub templates: TemplatesTable,
    /// How many of the given values the prompts show.
    pub visibility: VisibilityMix,
    /// Whether a calculator tool comes with the task.
    pub tool_mode: ToolModeMix,
    /// How many tasks to generate.
    pub instances: InstancesTable,
    /// Where to write them.
    pub output: OutputTable,
}

/// `[coverage]`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CoverageTable {
    /// Share of each tier, by the tier's name in the templates.
    pub difficulties: IndexMap<String, Share>,
    /// Least number of tasks of each discipline.
    pub min_tasks_per_discipline: Option<u32>,
}

/// `[templates]`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TemplatesTable {
    /// Patterns over `discipline/name`.
    pub include: Vec<String>,
    /// More directories with templates.
    pub user_dirs: Vec<String>,
}

/// `[visibility]`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct VisibilityMix {
    /// Share of each level.
    pub mix: GivensMix,
}

/// Shares of what a prompt shows.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GivensMix {
    /// Every given is in the prompt.
    pub all_given: Option<Share>,
    /// Some must be derived.
    pub partial: Option<Share>,
    /// Only the situation is described.
    pub scenario_only: Option<Share>,
}

/// `[tool_mode]`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ToolModeMix {
    /// Share of each mode.
    pub mix: ToolMix,
}

/// Shares of tool modes.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ToolMix {
    /// A calculator tool comes with the task.
    pub with_tool: Option<Share>,
    /// No calculator tool comes with the task.
    pub no_tool: Option<Share>,
}

/// `[instances]`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct InstancesTable {
    /// Tasks from each template.
    pub per_task: Option<Quantity>,
    /// Most tasks in total.
    pub total_max: Option<Quantity>,
}

/// `[output]`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OutputTable {
    /// Directory below the project root.
    pub dir: Option<String>,
}

/// A share from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "f64", into = "f64")]
#[schemars(extend("minimum" = 0, "maximum" = 1))]
pub struct Share(f64);

impl Share {
    pub fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Share {
    type Error = String;

    fn try_from(value: f64) -> Result<Self, String> {
        if (0.0..=1.0).contains(&value) {
            Ok(Self(value))
        } else {
            Err(format!("must be from 0 to 1, not {value}"))
        }
    }
}

impl From<Share> for f64 {
    fn from(share: Share) -> Self {
        share.0
    }
}

/// Shares may deviate from a sum of one by this much.
const SHARE_SLACK: f64 = 0.01;

impl SuiteFile {
    /// Reads and checks a suite file; every problem is reported.
    pub fn read(path: &Path) -> Result<Self, Vec<Problem>> {
        let document = Document::read(path, Syntax::Toml, FAMILY)?;
        let decoded = document.decode::<Self>();
        let mut problems = match &decoded.value {
            Some(suite) => suite.check(&document, |key| decoded.is_faulty(key)),
            None => Vec::new(),
        };
        problems.splice(..0, decoded.problems);
        match decoded.value {
            Some(suite) if problems.is_empty() => Ok(suite),
            _ => Err(problems),
        }
    }

    /// Checks that serde cannot make. Faulty keys already have a problem.
    fn check(&self, document: &Document, faulty: impl Fn(&str) -> bool) -> Vec<Problem> {
        let mut problems = Vec::new();
        let sum = |shares: &[Option<Share>]| {
            let given: Vec<f64> = shares.iter().flatten().map(|share| share.get()).collect();
            (!given.is_empty()).then(|| given.iter().sum::<f64>())
        };
        let givens = &self.visibility.mix;
        let tools = &self.tool_mode.mix;
        let difficulties: Vec<Option<Share>> =
            self.coverage.difficulties.values().copied().map(Some).collect();
        let shares = [
            ("coverage.difficulties", sum(&difficulties)),
            ("visibility.mix", sum(&[givens.all_given, givens.partial, givens.scenario_only])),
            ("tool_mode.mix", sum(&[tools.with_tool, tools.no_tool])),
        ];
        let missing = [("name", self.name.is_none()), ("seed", self.seed.is_none())]
            .into_iter()
            .chain(shares.map(|(key, total)| (key, total.is_none())));
        for (key, missing) in missing {
            if missing && !faulty(key) {
                problems.push(
                    document
                        .problem(Shared::MissingKey, key, format!("`{key}` is missing"))
                        .fix("add the key"),
                );
            }
        }
        for (key, total) in shares {
            if let Some(total) = total.filter(|total| (total - 1.0).abs() > SHARE_SLACK && !faulty(key)) {
                let what = format!("the shares of `{key}` add up to {total:.4}, not 1");
                problems.push(
                    document
                        .problem(Shared::BadValue, key, what)
                        .fix("change the shares so that they add up to 1"),
                );
            }
        }
        problems
    }
}
