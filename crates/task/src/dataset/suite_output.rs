//! The output of a generated suite: its manifest lists the tasks under `instances[].task` and what they were made
//! from under `suite`.

use std::path::{Path, PathBuf};

use aec_base::document::{Document, Shared, Syntax, unreadable};
use aec_base::file::{Links, read_text};
use aec_base::problem::Problem;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::manifest::{MANIFEST_LIMIT, Source, SourceMethod};
use super::{FAMILY, finding, paths};
use crate::suite::SuiteFile;

/// The tasks of a generated suite and how they were made.
#[derive(Debug)]
pub struct SuiteOutput {
    pub tasks: Vec<PathBuf>,
    pub source: Source,
}

/// Written by a program, so unknown keys are allowed and kept.
#[derive(Default, Deserialize)]
#[serde(default)]
struct OutputFile {
    suite: Option<SuiteSource>,
    instances: Vec<Instance>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SuiteSource {
    seed: Option<i64>,
    config: Map<String, Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Instance {
    task: Option<String>,
}

/// Reads a suite's output; paths in it are relative to its directory.
pub fn read(path: &Path) -> Result<SuiteOutput, Vec<Problem>> {
    let text = read_text(path, MANIFEST_LIMIT, Links::Follow)
        .map_err(|error| vec![unreadable(path, &error, FAMILY)])?;
    let document = Document::parse(path, text, Syntax::Json, FAMILY)?;
    let decoded = document.decode::<OutputFile>();
    let Some(output) = decoded.value.filter(|_| decoded.problems.is_empty()) else {
        return Err(decoded.problems);
    };
    let mut problems = Vec::new();
    let directory = path.parent().unwrap_or_else(|| Path::new("."));
    let mut tasks = Vec::with_capacity(output.instances.len());
    for (index, instance) in output.instances.iter().enumerate() {
        let at = |problem: Problem| problem.at(document.place_in_list("instances", index));
        match instance.task.as_deref() {
            None => problems.push(at(finding(
                Shared::MissingKey as u32,
                format!("`instances[{index}].task` is missing"),
            )
            .fix("name the manifest that `generate suite` wrote"))),
            Some(task) => match paths::check(task) {
                Ok(()) => tasks.push(directory.join(task)),
                Err(error) => problems.push(at(finding(
                    15,
                    format!("`instances[{index}].task` cannot be used: {error}"),
                )
                .fix("write a path below the directory of this file"))),
            },
        }
    }
    if output.instances.is_empty() {
        problems.push(
            finding(14, "the suite has no instances")
                .fix("name the manifest that `generate suite` wrote")
                .at(document.place("instances")),
        );
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let (seed, config) = match output.suite {
        Some(mut suite) => {
            remove_absent(&mut suite.config);
            (suite.seed, Some(suite.config))
        }
        None => (None, None),
    };
    let source = Source { method: SourceMethod::SuiteConfig, suite_config: config, seed };
    Ok(SuiteOutput { tasks, source })
}

/// Keeps the whole suite file as data.
pub fn source_of(suite: &SuiteFile) -> Source {
    let suite_config = match serde_json::to_value(suite) {
        Ok(Value::Object(mut config)) => {
            remove_absent(&mut config);
            Some(config)
        }
        _ => None,
    };
    Source { method: SourceMethod::SuiteConfig, suite_config, seed: suite.seed }
}

/// Removes keys that the file does not have.
fn remove_absent(table: &mut Map<String, Value>) {
    for value in table.values_mut() {
        if let Value::Object(inner) = value {
            remove_absent(inner);
        }
    }
    table.retain(|_, value| match value {
        Value::Null => false,
        Value::Object(inner) => !inner.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    });
}
