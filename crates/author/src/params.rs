//! `params.toml` as written.
//!
//! Archetypes and tiers mix their own keys with names of parameters, so they are parsed as open tables here and
//! interpreted in `check`.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A table whose keys are partly names of parameters.
pub type OpenTable = IndexMap<String, serde_json::Value>;

/// The version of a template that does not state one.
pub const FIRST_VERSION: &str = "1.0.0";

/// `params.toml`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ParamsFile {
    /// Description of the template.
    pub meta: MetaTable,
    /// Quantities that are passed to the engine.
    pub params: IndexMap<String, ParamTable>,
    /// Quantities that rules and tables start from.
    pub auxiliary: IndexMap<String, ParamTable>,
    /// Tables that the prompt prints.
    pub tables: IndexMap<String, LookupTable>,
    /// Quantities that the prompt asks for.
    pub outputs: IndexMap<String, OutputTable>,
    /// Typical situations: `description`, `site_contexts`, and limits of parameters.
    pub archetypes: IndexMap<String, OpenTable>,
    /// Tiers: their own keys, and limits of parameters.
    pub difficulty: IndexMap<String, OpenTable>,
    /// Expressions that must hold: a list, or a table with `rules`.
    #[schemars(with = "serde_json::Value")]
    pub constraints: ConstraintsTable,
    /// Worked examples.
    pub examples: Vec<ExampleTable>,
}

/// `[meta]`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MetaTable {
    /// Kebab-case name.
    pub name: String,
    /// Semantic version; 1.0.0 when absent.
    pub version: Option<String>,
    /// One line.
    pub description: String,
    /// A paragraph.
    pub long_description: String,
    /// First segment of task ids.
    pub discipline: String,
    /// Second segment of task ids.
    pub category: String,
    /// Standards that the tasks follow.
    pub standards: Vec<String>,
    /// Words for searching.
    pub tags: Vec<String>,
    /// Whether instances come with a calculator.
    pub tool_mode: Option<ToolModes>,
}

/// Whether a template's instances come with a calculator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ToolModes {
    /// Always with the calculator.
    WithTool,
    /// Never.
    NoTool,
    /// Either.
    Both,
}

/// Whether an instance comes with a calculator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ToolMode {
    /// With the calculator.
    WithTool,
    /// Without.
    NoTool,
}

impl ToolMode {
    pub const NAMES: [&'static str; 2] = ["with-tool", "no-tool"];

    /// The name as written in files and flags.
    pub fn name(self) -> &'static str {
        match self {
            Self::WithTool => "with-tool",
            Self::NoTool => "no-tool",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "with-tool" => Some(Self::WithTool),
            "no-tool" => Some(Self::NoTool),
            _ => None,
        }
    }
}

impl ToolModes {
    /// The name as written in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::WithTool => "with-tool",
            Self::NoTool => "no-tool",
            Self::Both => "both",
        }
    }

    pub fn allows(self, mode: ToolMode) -> bool {
        match self {
            Self::WithTool => mode == ToolMode::WithTool,
            Self::NoTool => mode == ToolMode::NoTool,
            Self::Both => true,
        }
    }

    /// The mode of an instance if the user did not choose one.
    pub fn usual(self) -> ToolMode {
        if self == Self::NoTool { ToolMode::NoTool } else { ToolMode::WithTool }
    }
}

/// `[params.NAME]` and `[auxiliary.NAME]`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ParamTable {
    /// Kind of value.
    #[serde(rename = "type")]
    pub kind: Option<ParamKind>,
    /// What it is.
    pub description: String,
    /// Its unit.
    pub unit: Option<String>,
    /// Least value.
    pub min: Option<f64>,
    /// Greatest value.
    pub max: Option<f64>,
    /// Distance between values, starting at `min`.
    pub step: Option<f64>,
    /// Number of significant figures, instead of `step`.
    pub sig: Option<u32>,
    /// List of values, instead of a range.
    pub values: Option<Vec<Scalar>>,
    /// Usual value.
    pub default: Option<Scalar>,
    /// Whether a tier may switch it off.
    pub optional: bool,
    /// `archetype`: a hidden value follows from the archetype.
    pub derivable_from: Option<String>,
}

/// Kind of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ParamKind {
    /// A number.
    Float,
    /// A whole number.
    Int,
    /// A text from a list.
    Enum,
}

/// A number or a text.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Scalar {
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl serde::de::Visitor<'_> for Reader {
            type Value = Scalar;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a number or a text")
            }

            #[expect(
                clippy::cast_precision_loss,
                reason = "larger numbers are refused by the check of ranges"
            )]
            fn visit_i64<E>(self, value: i64) -> Result<Scalar, E> {
                Ok(Scalar::Number(value as f64))
            }

            #[expect(
                clippy::cast_precision_loss,
                reason = "larger numbers are refused by the check of ranges"
            )]
            fn visit_u64<E>(self, value: u64) -> Result<Scalar, E> {
                Ok(Scalar::Number(value as f64))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Scalar, E> {
                Ok(Scalar::Number(value))
            }

            fn visit_str<E>(self, value: &str) -> Result<Scalar, E> {
                Ok(Scalar::Text(value.to_owned()))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

/// `[tables.NAME]`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LookupTable {
    /// Title in the prompt.
    pub title: String,
    /// The quantity that chooses the row.
    pub key: String,
    /// How the row is chosen.
    #[serde(rename = "match")]
    pub matching: Matching,
    /// Rows, each with the key and the same quantities.
    pub rows: Vec<IndexMap<String, Scalar>>,
}

/// How a row of a table is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Matching {
    /// The row whose key equals the value.
    #[default]
    Exact,
    /// The first row whose key is not below the value.
    UpTo,
}

/// `[outputs.NAME]`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OutputTable {
    /// What it is.
    pub description: String,
    /// Kind of answer; `number` when absent.
    #[serde(rename = "type")]
    pub kind: Option<OutputKind>,
    /// Its unit.
    pub unit: Option<String>,
    /// Further words for the unit.
    pub unit_words: Option<Vec<String>>,
    /// A difference of temperatures.
    pub difference: Option<bool>,
    /// Relative tolerance; 0.03 when a number has no other.
    pub tolerance: Option<f64>,
    /// Absolute tolerance.
    pub abs_tol: Option<f64>,
    /// Significant figures.
    pub sig: Option<u32>,
    /// Weight in the reward.
    pub weight: Option<f64>,
    /// Options of a choice.
    pub values: Option<Vec<String>>,
    /// Other words for options.
    pub aliases: Option<IndexMap<String, String>>,
    /// Type of a list's items.
    pub item: Option<CellTable>,
    /// Whether a list's order counts.
    pub ordered: Option<bool>,
    /// Key column of a table.
    pub key: Option<String>,
    /// Columns of a table.
    pub columns: Option<IndexMap<String, CellTable>>,
}

/// Kind of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OutputKind {
    /// A number with tolerance.
    #[default]
    Number,
    /// A whole number, exactly.
    Integer,
    /// True or false.
    Boolean,
    /// One of some options.
    Choice,
    /// A text.
    Text,
    /// A list of single values.
    List,
    /// Rows with a key.
    Table,
}

/// An item of a list or a column of a table.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CellTable {
    /// Kind of value.
    #[serde(rename = "type")]
    pub kind: Option<OutputKind>,
    /// What it is.
    pub description: Option<String>,
    /// Its unit.
    pub unit: Option<String>,
    /// Relative tolerance.
    pub tolerance: Option<f64>,
    /// Absolute tolerance.
    pub abs_tol: Option<f64>,
    /// Significant figures.
    pub sig: Option<u32>,
    /// Options of a choice.
    pub values: Option<Vec<String>>,
}

/// `constraints`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ConstraintsTable {
    /// The expressions.
    pub rules: Vec<String>,
}

impl<'de> Deserialize<'de> for ConstraintsTable {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> serde::de::Visitor<'de> for Reader {
            type Value = ConstraintsTable;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a list of expressions, or a table with `rules`")
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(
                self,
                mut items: A,
            ) -> Result<ConstraintsTable, A::Error> {
                let mut rules = Vec::new();
                while let Some(rule) = items.next_element()? {
                    rules.push(rule);
                }
                Ok(ConstraintsTable { rules })
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut entries: A,
            ) -> Result<ConstraintsTable, A::Error> {
                let mut rules = Vec::new();
                while let Some(key) = entries.next_key::<String>()? {
                    if key != "rules" {
                        return Err(serde::de::Error::unknown_field(&key, &["rules"]));
                    }
                    rules = entries.next_value()?;
                }
                Ok(ConstraintsTable { rules })
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

/// `[[examples]]`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ExampleTable {
    /// The text it comes from, or `derived`.
    pub source: String,
    /// How it was derived.
    pub method: Option<String>,
    /// Every parameter.
    pub inputs: IndexMap<String, Scalar>,
    /// Some of the outputs.
    pub outputs: IndexMap<String, serde_json::Value>,
    /// Relative tolerance for the rounding in the source; 0.01 when absent.
    pub tolerance: Option<f64>,
}

/// Keys of an archetype that are not limits.
pub(crate) const ARCHETYPE_KEYS: [&str; 2] = ["description", "site_contexts"];

/// `[archetypes.NAME]` without its limits.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ArchetypeTable {
    pub(crate) description: String,
    pub(crate) site_contexts: Vec<String>,
}

/// Keys of a tier that are not limits.
pub(crate) const TIER_KEYS: [&str; 8] = [
    "description",
    "visibility",
    "archetypes",
    "outputs",
    "hidden_params",
    "derive",
    "units",
    "replacement_text",
];

/// `[difficulty.NAME]` without its limits.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TierTable {
    pub(crate) description: String,
    pub(crate) visibility: Option<Givens>,
    pub(crate) archetypes: Option<Vec<String>>,
    pub(crate) outputs: Option<Vec<String>>,
    pub(crate) hidden_params: Vec<String>,
    pub(crate) derive: IndexMap<String, DeriveTable>,
    pub(crate) units: IndexMap<String, String>,
    pub(crate) replacement_text: Option<String>,
}

/// How a hidden parameter is derived.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct DeriveTable {
    pub(crate) table: Option<String>,
    pub(crate) rule: Option<String>,
}

/// How many of the given values a prompt shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Givens {
    /// Every parameter is printed.
    AllGiven,
    /// Some must be derived.
    Partial,
    /// All must be derived from the facts of the situation.
    ScenarioOnly,
}

impl Givens {
    pub const NAMES: [&'static str; 3] = ["all_given", "partial", "scenario_only"];

    /// The name as written in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::AllGiven => "all_given",
            Self::Partial => "partial",
            Self::ScenarioOnly => "scenario_only",
        }
    }
}
