//! Defaults that a package gives for its own evaluation: `[tool.verifiers.eval]` in its `pyproject.toml`.

use std::path::Path;

use aec_base::document::place;
use aec_base::file::{Links, ReadError, read_text};
use aec_base::problem::Problem;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::config::options::EvalOptions;
use crate::config::{FAMILY, number};

/// Longest `pyproject.toml` that is read.
const LONGEST_FILE: u64 = 4 * 1024 * 1024;

/// What the package in this directory says about its evaluation: `num_examples` and `rollouts_per_example`. Without a
/// file, or without the table in it, nothing. A file that cannot be used is a warning, because the evaluation can do
/// without it.
pub fn package_defaults(directory: &Path) -> Result<EvalOptions, Problem> {
    let path = directory.join("pyproject.toml");
    let warning = |what: String, fix: &str| {
        Problem::warning(what)
            .id(FAMILY.number(number::PACKAGE_DEFAULTS))
            .why("the package's defaults are not used")
            .fix(fix)
            .in_file(&path)
    };
    let text = match read_text(&path, LONGEST_FILE, Links::Follow) {
        Ok(text) => text,
        Err(ReadError::Missing) => return Ok(EvalOptions::default()),
        Err(error) => return Err(warning(format!("cannot read pyproject.toml: {error}"), error.fix())),
    };
    let root = DeTable::parse(&text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        warning(format!("not valid TOML: {}", error.message()), "correct the file at this place")
            .at(place(&path, &text, offset))
    })?;
    let mut options = EvalOptions::default();
    let mut table = root.get_ref();
    for key in ["tool", "verifiers", "eval"] {
        let Some(value) = table.get(key) else { return Ok(options) };
        let DeValue::Table(inner) = value.get_ref() else {
            let problem = warning(format!("`{key}` must be a table"), "write [tool.verifiers.eval]");
            return Err(problem.at(place(&path, &text, value.span().start)));
        };
        table = inner;
    }
    let whole =
        |key: &str, value: &Spanned<DeValue<'_>>| {
            value
                .get_ref()
                .as_integer()
                .and_then(|integer| i64::from_str_radix(integer.as_str(), integer.radix()).ok())
                .ok_or_else(|| {
                    warning(format!("`{key}` must be a whole number"), "write a whole number there")
                        .at(place(&path, &text, value.span().start))
                })
        };
    if let Some(value) = table.get("num_examples") {
        options.num_examples = Some(whole("num_examples", value)?);
    }
    if let Some(value) = table.get("rollouts_per_example") {
        let key = "rollouts_per_example";
        let rollouts = u32::try_from(whole(key, value)?).ok().filter(|rollouts| *rollouts > 0);
        options.rollouts_per_example = Some(rollouts.ok_or_else(|| {
            warning(format!("`{key}` must be at least 1"), "raise it, or remove the key").at(place(
                &path,
                &text,
                value.span().start,
            ))
        })?);
    }
    Ok(options)
}
