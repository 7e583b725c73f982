//! `nop`: does nothing. Its reward shows what a task pays for nothing.

use super::{End, Rollout, TrialContext};

/// Ends at once.
pub fn run(context: &mut TrialContext) -> Rollout {
    let instruction = context.task.instruction.clone();
    context.begin(None, &instruction);
    Rollout::new(End::Done)
}
