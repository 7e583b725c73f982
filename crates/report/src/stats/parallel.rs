//! Blocks of work on all cores.

use aec_base::parallel;

/// With fewer steps in all, starting threads takes longer than the work.
const FEW_STEPS: usize = 1_000_000;

/// Results of `work` for the blocks 0 to `count - 1`, in their order; each takes about `steps` additions.
pub(super) fn blocks<R: Send>(count: usize, steps: usize, work: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let numbers: Vec<usize> = (0..count).collect();
    let at_a_time = if count.saturating_mul(steps) < FEW_STEPS { count.max(1) } else { 1 };
    parallel::map(&numbers, at_a_time, |number| work(*number))
}
