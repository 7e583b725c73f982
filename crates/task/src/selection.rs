//! Selecting tasks: filters that intersect, as in the `tasks` block of an experiment.

use std::collections::HashSet;
use std::path::Path;

use aec_base::problem::Problem;
use aec_base::text;
use globset::{GlobBuilder, GlobMatcher};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::dataset::reference::DatasetRef;
use crate::dataset::store::Store;
use crate::file::{Difficulty, Lifecycle, Visibility};
use crate::id::TaskId;
use crate::task::Task;

/// The `tasks` block of an experiment. An empty list filters nothing; filters combine as intersections.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SelectionTable {
    /// Only tasks of this dataset: `NAME` or `NAME@VERSION`.
    pub dataset: Option<String>,
    /// Only tasks whose id matches one of these patterns; `*` also crosses slashes.
    pub include_patterns: Vec<String>,
    /// No task whose id matches one of these patterns.
    pub exclude_patterns: Vec<String>,
    /// Only these disciplines.
    pub domains: Vec<String>,
    /// Only these difficulties.
    pub difficulties: Vec<Difficulty>,
    /// Only tasks in these stages of life; absent: active tasks.
    pub lifecycle: Option<Vec<Lifecycle>>,
    /// Another spelling of `lifecycle`.
    pub lifecycle_filter: Option<Vec<Lifecycle>>,
    /// Only these visibilities; a task without one matches none.
    pub visibility: Vec<Visibility>,
    /// Only tasks that have all of these tags.
    pub tags: Vec<String>,
}

#[derive(Debug, Default)]
pub struct Selection {
    dataset: Option<HashSet<String>>,
    include: Vec<Pattern>,
    exclude: Vec<Pattern>,
    domains: Vec<String>,
    difficulties: Vec<Difficulty>,
    lifecycles: Vec<Lifecycle>,
    visibilities: Vec<Visibility>,
    tags: Vec<String>,
}

impl Selection {
    /// Prepares a selection; reads the dataset from the datasets root.
    pub fn prepare(table: &SelectionTable, datasets_root: &Path) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut patterns = |texts: &[String]| -> Vec<Pattern> {
            texts
                .iter()
                .filter_map(|text| Pattern::parse(text).map_err(|problem| problems.push(problem)).ok())
                .collect()
        };
        let include = patterns(&table.include_patterns);
        let exclude = patterns(&table.exclude_patterns);
        let mut dataset = None;
        if let Some(reference) = &table.dataset {
            match DatasetRef::parse(reference)
                .map_err(|problem| vec![problem])
                .and_then(|reference| Store::new(datasets_root).task_ids(&reference))
            {
                Ok(tasks) => dataset = Some(tasks.task_ids.into_iter().collect()),
                Err(found) => problems.extend(found),
            }
        }
        let lifecycles = match (&table.lifecycle, &table.lifecycle_filter) {
            (Some(_), Some(_)) => {
                let what = "`lifecycle` and `lifecycle_filter` say the same thing";
                problems.push(Problem::error(what).fix("keep `lifecycle`"));
                Vec::new()
            }
            (Some(stages), None) | (None, Some(stages)) => stages.clone(),
            (None, None) => vec![Lifecycle::Active],
        };
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Self {
            dataset,
            include,
            exclude,
            domains: table.domains.clone(),
            difficulties: table.difficulties.clone(),
            lifecycles,
            visibilities: table.visibility.clone(),
            tags: table.tags.clone(),
        })
    }

    /// Whether a task with this id may be selected, judging by the id alone: of a task that does not load, only the
    /// id is known.
    pub fn may_take(&self, id: &TaskId) -> bool {
        self.dataset.as_ref().is_none_or(|ids| ids.contains(id.as_str()) || ids.contains(&id.dotted()))
            && (self.include.is_empty() || self.include.iter().any(|pattern| pattern.matches(id)))
            && !self.exclude.iter().any(|pattern| pattern.matches(id))
    }

    pub fn takes(&self, task: &Task) -> bool {
        self.takes_at_any_stage(task)
            && (self.lifecycles.is_empty() || self.lifecycles.contains(&task.lifecycle))
    }

    /// Whether a task would be selected if it were at another stage of its life.
    pub fn takes_at_any_stage(&self, task: &Task) -> bool {
        let allows =
            |filter: &[String], value: &str| filter.is_empty() || filter.iter().any(|item| item == value);
        self.may_take(&task.id)
            && allows(&self.domains, &task.domain)
            && (self.difficulties.is_empty()
                || task.difficulty.is_some_and(|difficulty| self.difficulties.contains(&difficulty)))
            && (self.visibilities.is_empty()
                || task.visibility.is_some_and(|visibility| self.visibilities.contains(&visibility)))
            && self.tags.iter().all(|tag| task.tags.contains(tag))
    }

    /// Ids of the dataset that are missing from the catalogue.
    pub fn missing_from<'a>(&'a self, tasks: &[Task]) -> Vec<&'a str> {
        let Some(ids) = &self.dataset else { return Vec::new() };
        let known: HashSet<String> =
            tasks.iter().flat_map(|task| [task.id.as_str().to_owned(), task.id.dotted()]).collect();
        let mut missing: Vec<&str> =
            ids.iter().filter(|id| !known.contains(*id)).map(String::as_str).collect();
        missing.sort_unstable();
        missing
    }
}

/// A pattern over task ids: `*`, `?` and `[…]` as in a shell, except that they also match a slash. Without any
/// of these it is an id in either form, or a directory of tasks.
#[derive(Debug)]
pub struct Pattern(Form);

#[derive(Debug)]
enum Form {
    Glob(GlobMatcher),
    Id(String),
}

impl Pattern {
    pub fn parse(pattern: &str) -> Result<Self, Problem> {
        let wrong = |why: String| {
            Problem::error(format!("`{}` is not a pattern over task ids", text::printable(pattern)))
                .why(why)
                .fix("write a task id, or a pattern such as electrical/*")
        };
        if pattern.is_empty() || pattern.len() > 512 {
            return Err(wrong("it must have 1 to 512 characters".into()));
        }
        if !pattern.contains(['*', '?', '[']) {
            return Ok(Self(Form::Id(pattern.to_owned())));
        }
        // Braces have no special meaning, as in the shell patterns that manifests use.
        let escaped = pattern.replace('{', "[{]").replace('}', "[}]");
        GlobBuilder::new(&escaped)
            .literal_separator(false)
            .backslash_escape(false)
            .build()
            .map(|glob| Self(Form::Glob(glob.compile_matcher())))
            .map_err(|error| wrong(error.kind().to_string()))
    }

    pub fn matches(&self, id: &TaskId) -> bool {
        match &self.0 {
            Form::Glob(glob) => glob.is_match(id.as_str()),
            Form::Id(text) => id.is(text) || id.is_below(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, id: &str) -> bool {
        Pattern::parse(pattern).unwrap().matches(&TaskId::parse(id).unwrap())
    }

    #[test]
    fn patterns_match_as_in_the_shell_but_cross_slashes() {
        assert!(matches("electrical/*", "electrical/voltage-drop/basic"));
        assert!(matches("*/voltage-*", "electrical/voltage-drop/basic"));
        assert!(matches("*basic", "electrical/voltage-drop/basic"));
        assert!(matches("electrical/voltage-dro[!x]/basi?", "electrical/voltage-drop/basic"));
        assert!(!matches("civil/*", "electrical/voltage-drop/basic"));
        assert!(!matches("electrical", "electrical2/x"));
        assert!(matches("electrical", "electrical/x"));
        assert!(matches("electrical.voltage-drop", "electrical/voltage-drop/basic"));
        assert!(!matches("{a,b}*", "a"));
        assert!(Pattern::parse("a[").is_err());
        assert!(Pattern::parse("").is_err());
    }
}
