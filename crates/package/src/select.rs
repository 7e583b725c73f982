//! Selects and orders the tasks of a package that an environment shows. `core.py` in every package does the same.

use aec_base::digest::Digest;

use crate::manifest::{PackageManifest, PackagedSide, PackagedTask};

/// A smaller selection is not split, because an environment without tasks is useless.
pub const SMALLEST_SPLIT: usize = 5;

#[derive(Clone, Debug, Default)]
pub struct Ask {
    /// Empty for any, including unknown ones.
    pub difficulty: Vec<String>,
    /// Absent for both.
    pub side: Option<PackagedSide>,
    /// Shuffles the tasks; absent for the order of the ids.
    pub seed: Option<i64>,
    pub num_examples: Option<usize>,
}

#[derive(Clone, Debug)]
pub struct Slice<'a> {
    pub tasks: Vec<&'a PackagedTask>,
    /// Whether train and eval share tasks, because the selection is too small or all on one side.
    pub overlap: bool,
}

/// Applies difficulty first, then the side, then the order, then the count.
pub fn select<'a>(manifest: &'a PackageManifest, ask: &Ask) -> Slice<'a> {
    let mut tasks: Vec<&PackagedTask> = manifest
        .tasks
        .iter()
        .filter(|task| {
            let wanted = |known: &String| ask.difficulty.contains(known);
            ask.difficulty.is_empty() || task.difficulty.as_ref().is_some_and(wanted)
        })
        .collect();
    let on = |side: PackagedSide| tasks.iter().any(|task| task.side == side);
    let overlap = tasks.len() < SMALLEST_SPLIT || !on(PackagedSide::Train) || !on(PackagedSide::Eval);
    if let Some(side) = ask.side
        && !overlap
    {
        tasks.retain(|task| task.side == side);
    }
    tasks.sort_by(|a, b| a.task_id.cmp(&b.task_id));
    if let Some(seed) = ask.seed {
        tasks.sort_by_cached_key(|task| place(seed, &task.task_id));
    }
    if let Some(most) = ask.num_examples.filter(|most| *most > 0) {
        tasks.truncate(most);
    }
    Slice { tasks, overlap }
}

/// The sort key of a task under a seed.
pub fn place(seed: i64, task_id: &str) -> Digest {
    Digest::of(format!("aec-bench order\n{seed}\n{task_id}").as_bytes())
}
