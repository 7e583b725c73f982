//! The configuration of an evaluation: options as the user gives them, files of several evaluations, defaults of
//! packages, and the checked settings. Nothing here runs a model or uses the network.

mod check;
mod environment;
mod faults;
mod file;
mod headers;
mod json;
mod options;
mod package;
mod settings;
mod sweep;

use crate::FAMILY;

pub use environment::{Environment, display_name, module_name};
pub use file::{EvalFile, MOST_EVALUATIONS, parse_eval_file, read_eval_file};
pub use json::parse_json_object;
pub use options::{EvalOptions, Headers, Object, Switch, Workers};
pub use package::package_defaults;
pub use settings::{EvalSettings, Limit, ModelChoice, Resume};

/// Numbers of the problems that only configurations of evaluations have; 1 to 7 are shared by all formats.
mod number {
    /// A sweep without values, or an ablation without a sweep.
    pub(crate) const EMPTY_SWEEP: u32 = 8;
    /// More evaluations than a file may ask for.
    pub(crate) const TOO_MANY: u32 = 9;
    /// A file that asks for no evaluation.
    pub(crate) const NO_EVALUATION: u32 = 10;
    /// A flag whose text is not a JSON object.
    pub(crate) const NOT_AN_OBJECT: u32 = 11;
    /// A `pyproject.toml` whose defaults cannot be used.
    pub(crate) const PACKAGE_DEFAULTS: u32 = 12;
    /// A text that does not name an environment.
    pub(crate) const ENVIRONMENT: u32 = 13;
    /// A header that cannot be sent.
    pub(crate) const HEADER: u32 = 14;
    /// A name that cannot be a state column.
    pub(crate) const COLUMN: u32 = 15;
    /// The last entry of a list of problems that was cut short.
    pub(crate) const MORE_PROBLEMS: u32 = 16;
}
