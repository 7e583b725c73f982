//! The tools of `run` in environments: prepared once for all rollouts of the tasks that share them.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use aec_package::manifest::{PackagedTask, PackagedTool};
use aec_run::harness::tools::Toolset;
use aec_task::task::Tool;
use serde_json::value::RawValue;

use crate::results::ToolDefs;

/// An empty list of tools, as rows have it.
pub(super) static NONE: LazyLock<ToolDefs> =
    LazyLock::new(|| ToolDefs::new(RawValue::from_string("[]".to_owned()).unwrap_or_default().into()));

#[derive(Debug)]
pub(super) struct Offered {
    pub(super) set: Toolset,
    /// The same as rows have them, in one line.
    pub(super) in_rows: ToolDefs,
}

impl Offered {
    fn new(tools: &[PackagedTool]) -> Self {
        let tool = |tool: &PackagedTool| Tool {
            name: tool.name.clone(),
            source: tool.path.clone(),
            description: tool.description.clone(),
            returns_image: tool.returns_image,
        };
        let set = Toolset::new(&tools.iter().map(tool).collect::<Vec<_>>());
        let line = serde_json::to_string(set.offers()).unwrap_or_else(|_| "[]".to_owned());
        Self { set, in_rows: ToolDefs::new(RawValue::from_string(line).unwrap_or_default().into()) }
    }
}

#[derive(Debug, Default)]
pub(super) struct EnvironmentTools {
    by_declared: HashMap<Vec<PackagedTool>, Arc<Offered>>,
    /// Their names, each once: every rollout counts the calls of all of them, whether or not its task has them.
    pub(super) names: Vec<String>,
}

impl EnvironmentTools {
    pub(super) fn of<'a>(tasks: impl IntoIterator<Item = &'a PackagedTask>) -> Self {
        let mut all = Self::default();
        for task in tasks {
            let offered = all.by_declared.entry(task.tools.clone());
            let offered = offered.or_insert_with(|| Arc::new(Offered::new(&task.tools)));
            for name in offered.set.names() {
                if !all.names.iter().any(|known| known == name) {
                    all.names.push(name.to_owned());
                }
            }
        }
        all
    }

    pub(super) fn of_task(&self, task: &PackagedTask) -> Arc<Offered> {
        match self.by_declared.get(&task.tools) {
            Some(offered) => Arc::clone(offered),
            None => Arc::new(Offered::new(&task.tools)),
        }
    }
}
