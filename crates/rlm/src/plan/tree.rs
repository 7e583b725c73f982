//! The tree of one source: its chunks, and which results are merged into which.

use std::ops::Range;

use serde::Serialize;

use super::{CallShape, Request, Shape};
use crate::split::{self, Chunk, Limits};

/// The range of results of the level below that one merge combines, in order. A range of one goes up without a call.
pub type Group = Range<usize>;

/// How one source is read for one section.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SourceTree {
    pub section: String,
    /// The label of the source.
    pub source: String,
    pub shape: Shape,
    /// Parts of the source, one call each.
    pub leaves: Vec<Chunk>,
    /// Merges, lowest level first.
    pub levels: Vec<Vec<Group>>,
}

impl SourceTree {
    /// Cuts a source according to its shape.
    pub(super) fn grow(request: &Request<'_>, shape: Shape, call: &CallShape) -> Self {
        let whole = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let limits = Limits {
            max_chars: whole(shape.leaf_chars),
            max_context_chars: whole(call.context_chars),
            chunks: Some(whole(shape.leaves)),
        };
        let leaves = split::split(request.text, request.form, limits);
        let levels = levels(leaves.len(), whole(shape.branching));
        Self { section: request.section.to_owned(), source: request.source.to_owned(), shape, leaves, levels }
    }
}

/// Levels of groups until one result is left. Group sizes of a level differ by at most one.
fn levels(mut parts: usize, branching: usize) -> Vec<Vec<Group>> {
    let mut levels = Vec::new();
    while parts > 1 && branching > 1 {
        let groups = parts.div_ceil(branching);
        let (size, larger) = (parts / groups, parts % groups);
        let mut at = 0;
        let level: Vec<Group> = (0..groups)
            .map(|group| {
                let start = at;
                at += size + usize::from(group < larger);
                start..at
            })
            .collect();
        levels.push(level);
        parts = groups;
    }
    levels
}
