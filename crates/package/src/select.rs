//! Which tasks of a package an environment shows, in which order. `core.py` in every package does the same.

use aec_base::digest::Digest;

use crate::manifest::{PackageManifest, PackagedSide, PackagedTask};

/// A smaller slice stays whole: an environment without tasks is of no use to anybody.
pub const SMALLEST_SPLIT: usize = 5;

#[derive(Clone, Debug, Default)]
pub struct Ask {
    /// Difficulties; empty is any, also an unknown one.
    pub difficulty: Vec<String>,
    /// The side; absent for both.
    pub side: Option<PackagedSide>,
    /// Draws the order; absent for the order of the ids.
    pub seed: Option<i64>,
    /// At most so many.
    pub num_examples: Option<usize>,
}

/// What an environment shows.
#[derive(Clone, Debug)]
pub struct Slice<'a> {
    /// The tasks, in order.
    pub tasks: Vec<&'a PackagedTask>,
    /// Whether the slice cannot be split, so that train and eval share tasks: it is too small, or all on one side.
    pub overlap: bool,
}

/// Difficulty first, then the side, then the order, then the count.
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

/// Where a seed puts a task.
pub fn place(seed: i64, task_id: &str) -> Digest {
    Digest::of(format!("aec-bench order\n{seed}\n{task_id}").as_bytes())
}
