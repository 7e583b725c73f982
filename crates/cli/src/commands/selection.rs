//! The selection flags that several commands share, applied as filters.

use aec_base::problem::{Problem, Severity};
use aec_base::project::Project;
use aec_base::settings::Setting;
use aec_base::text;
use aec_task::catalogue::Catalogue;
use aec_task::dataset::FAMILY;
use aec_task::file::{Difficulty, Lifecycle, Visibility};
use aec_task::id::TaskId;
use aec_task::selection::{Selection, SelectionTable};
use aec_task::task::Task;

use crate::arguments::SelectionArguments;
use crate::failure::Failure;

impl SelectionArguments {
    /// The flags as the `tasks` block of an experiment.
    pub(crate) fn table(&self, include_patterns: Vec<String>) -> SelectionTable {
        // The argument parser has checked the words.
        let difficulty = |name: &String| Difficulty::parse(name);
        let visibility = |name: &String| Visibility::parse(name);
        SelectionTable {
            dataset: self.dataset.clone(),
            include_patterns,
            exclude_patterns: self.exclude.clone(),
            domains: self.domain.clone(),
            difficulties: self.difficulty.iter().filter_map(difficulty).collect(),
            lifecycle: self.lifecycle(),
            lifecycle_filter: None,
            visibility: self.visibility.iter().filter_map(visibility).collect(),
            tags: self.tag.clone(),
        }
    }

    /// The stages that the flags allow: an empty list allows all stages, and `None` means the default.
    pub(crate) fn lifecycle(&self) -> Option<Vec<Lifecycle>> {
        let stages = &self.lifecycle;
        if stages.iter().any(|stage| stage == "any") {
            return Some(Vec::new());
        }
        (!stages.is_empty()).then(|| stages.iter().filter_map(|stage| Lifecycle::parse(stage)).collect())
    }

    /// The filters on fields that have no separate flag.
    pub(crate) fn filters(&self) -> Result<Vec<FieldFilter>, Failure> {
        self.filter.iter().map(|filter| FieldFilter::parse(filter)).collect()
    }
}

/// The tasks of a dataset, and the problems of its tasks that are missing or do not load.
pub(crate) fn tasks_of_dataset(
    project: &Project,
    reference: &str,
    catalogue: Catalogue,
) -> Result<(Vec<Task>, Vec<Problem>), Failure> {
    let table = SelectionTable {
        dataset: Some(reference.to_owned()),
        lifecycle: Some(Vec::new()),
        ..SelectionTable::default()
    };
    let selection = Selection::prepare(&table, &project.settings.path(Setting::Datasets))?;
    let Catalogue { tasks, mut problems } = catalogue;
    problems.retain(|problem| problem.counts() && concerns(problem, |id| selection.may_take(id)));
    problems.extend(missing(&selection, &tasks));
    Ok((tasks.into_iter().filter(|task| selection.takes(task)).collect(), problems))
}

/// The tasks that flags select, and problems that may have hidden some.
pub(crate) struct NamedTasks<'a> {
    pub(crate) tasks: Vec<&'a Task>,
    /// Problems of the catalogue that may have hidden tasks.
    pub(crate) warnings: Vec<Problem>,
}

impl<'a> NamedTasks<'a> {
    /// Selects tasks by ids or directories of ids, by patterns, and by the selection flags. It is an error if a filter
    /// leaves out a task that the user named, because the user might notice too late.
    pub(crate) fn choose(
        project: &Project,
        (ids, patterns): (&[String], &[String]),
        flags: &SelectionArguments,
        catalogue: &'a Catalogue,
    ) -> Result<Self, Failure> {
        let filters = flags.filters()?;
        let table = flags.table(ids.iter().chain(patterns).cloned().collect());
        let selection = Selection::prepare(&table, &project.settings.path(Setting::Datasets))?;
        let warnings = refuse_broken(catalogue, |id| selection.may_take(id))?;
        let absent = missing(&selection, &catalogue.tasks);
        if !absent.is_empty() {
            return Err(absent.into());
        }
        let takes = |task: &Task| selection.takes(task) && filters.iter().all(|filter| filter.takes(task));
        for query in ids {
            let named = catalogue.find(query)?;
            if !named.iter().any(|task| takes(task)) {
                return Err(Problem::error(format!(
                    "`{}` was named, but a filter leaves it out",
                    text::printable(query)
                ))
                .id(FAMILY.number(32))
                .why("tasks must pass all filters, and by default only active tasks do")
                .fix("drop the filter, or pass --lifecycle any")
                .into());
            }
        }
        Ok(Self { tasks: catalogue.tasks.iter().filter(|task| takes(task)).collect(), warnings })
    }
}

/// A broken task that the user wants is an error, because what is made without it could not be corrected later. A
/// problem that names no task may have hidden any task, so it counts as well.
pub(crate) fn refuse_broken(
    catalogue: &Catalogue,
    wanted: impl Fn(&TaskId) -> bool,
) -> Result<Vec<Problem>, Failure> {
    let (broken, warnings): (Vec<Problem>, Vec<Problem>) = catalogue
        .problems
        .iter()
        .filter(|problem| problem.counts() && (problem.about.is_none() || concerns(problem, &wanted)))
        .cloned()
        .partition(|problem| problem.severity == Severity::Error);
    if broken.is_empty() { Ok(warnings) } else { Err(broken.into()) }
}

/// Whether a problem of the catalogue is about a wanted task.
pub(crate) fn concerns(problem: &Problem, wanted: impl Fn(&TaskId) -> bool) -> bool {
    problem.about.as_deref().and_then(|id| TaskId::parse(id).ok()).is_some_and(|id| wanted(&id))
}

/// The problems of tasks that a dataset names and that do not exist.
pub(crate) fn missing(selection: &Selection, tasks: &[Task]) -> Vec<Problem> {
    let problem = |id: &str| {
        Problem::warning(format!("the dataset names `{}`, which is not here", text::printable(id)))
            .fix("restore the task, or select without the dataset")
    };
    selection.missing_from(tasks).into_iter().map(problem).collect()
}

/// `FIELD=VALUE`: a column of the task table, which may have no separate flag.
pub(crate) struct FieldFilter {
    field: &'static str,
    value: String,
}

const FIELDS: [&str; 8] =
    ["task_id", "domain", "category", "difficulty", "visibility", "lifecycle", "standard", "tags"];

impl FieldFilter {
    fn parse(filter: &str) -> Result<Self, Failure> {
        let shown = text::printable(filter);
        let Some((field, value)) = filter.split_once('=') else {
            return Err(Failure::usage(
                Problem::error(format!("`{shown}` is not FIELD=VALUE"))
                    .fix("write, say, --filter category=reasoning"),
            ));
        };
        match FIELDS.iter().find(|known| **known == field) {
            Some(field) => Ok(Self { field, value: value.to_owned() }),
            None => {
                let problem = Problem::error(format!("tasks have no field `{}`", text::printable(field)))
                    .why(format!("the fields are {}", FIELDS.join(", ")));
                Err(Failure::usage(problem.fix(text::near_or(field, &FIELDS, "name one of them"))))
            }
        }
    }

    pub(crate) fn takes(&self, task: &Task) -> bool {
        let value = self.value.as_str();
        match self.field {
            "task_id" => task.id.is(value),
            "domain" => task.domain == value,
            "category" => task.category.as_deref().unwrap_or("unknown") == value,
            "difficulty" => task.difficulty.map_or("unknown", Difficulty::name) == value,
            "visibility" => task.visibility.map_or("unknown", Visibility::name) == value,
            "lifecycle" => task.lifecycle.name() == value,
            "standard" => task.standard.as_deref().unwrap_or("unknown") == value,
            _ => task.tags.iter().any(|tag| tag == value),
        }
    }
}
