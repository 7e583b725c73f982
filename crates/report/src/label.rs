//! The labels of the tasks and trials that a page shows together. The page shows whole ids on demand.

use std::borrow::Cow;

use aec_base::label::{Beginnings, Labels};
use aec_ledger::layout::stem;

/// The family of a task that is alone in it begins with this, and its id follows.
const ALONE: &str = "task:";

#[derive(Clone, Debug, Default)]
pub struct PageLabels {
    tasks: Labels,
    trials: Beginnings,
}

impl PageLabels {
    pub fn of<'a, 'b>(
        tasks: impl IntoIterator<Item = &'a str>,
        trials: impl IntoIterator<Item = &'b str>,
    ) -> Self {
        Self { tasks: Labels::of(tasks), trials: Beginnings::of(trials) }
    }

    /// The labels of families, of which some are named after their only task.
    pub fn of_families<'a>(families: impl IntoIterator<Item = &'a str>) -> Self {
        Self::of(families.into_iter().filter_map(|family| family.strip_prefix(ALONE)), [])
    }

    pub fn task<'a>(&'a self, id: &'a str) -> &'a str {
        self.tasks.get(id)
    }

    pub fn trial<'a>(&self, id: &'a str) -> &'a str {
        self.trials.get(id)
    }

    /// The label of an attempt at a trial.
    pub fn attempt(&self, trial: &str, attempt: u32) -> String {
        stem(self.trial(trial), attempt)
    }

    /// A family, with the label of its task if it is named after one.
    pub fn family<'a>(&self, family: &'a str) -> Cow<'a, str> {
        match family.strip_prefix(ALONE) {
            Some(id) => Cow::Owned(format!("{ALONE}{}", self.task(id))),
            None => Cow::Borrowed(family),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_and_families_have_the_labels_of_their_trials_and_tasks() {
        let labels = PageLabels::of(["a/b/c/beam", "a/b/d/beam"], ["737d140f-3ddd", "06fc3024-fe87"]);
        assert_eq!(labels.task("a/b/c/beam"), "c/beam");
        assert_eq!(
            [labels.attempt("737d140f-3ddd", 1), labels.attempt("737d140f-3ddd", 2)],
            ["737d140f", "737d140f.2"]
        );
        assert_eq!(labels.family("task:a/b/d/beam"), "task:d/beam");
        assert_eq!(labels.family("directory:a/b/c"), "directory:a/b/c");
    }
}
