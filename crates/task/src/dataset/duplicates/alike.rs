//! Groups of similar items, merged pair by pair.

use super::Likeness;

/// Disjoint groups of the numbers from 0.
pub(super) struct Groups {
    /// The parent of each item on the path to its group's root.
    above: Vec<usize>,
    /// The kinds of likeness within a group, stored at its root.
    ways: Vec<[bool; 3]>,
}

const WAYS: [Likeness; 3] = [Likeness::Identical, Likeness::Numbers, Likeness::Words];

impl Groups {
    /// Each item is its own group.
    pub(super) fn new(count: usize) -> Self {
        Self { above: (0..count).collect(), ways: vec![[false; 3]; count] }
    }

    /// The item that represents the group.
    pub(super) fn root(&mut self, mut index: usize) -> usize {
        while self.above[index] != index {
            self.above[index] = self.above[self.above[index]];
            index = self.above[index];
        }
        index
    }

    /// Merges the groups of two items.
    pub(super) fn join(&mut self, one: usize, other: usize, way: Likeness) {
        let (one, other) = (self.root(one), self.root(other));
        // The smaller number becomes the root, so that the result does not depend on the order of merges.
        let (root, below) = (one.min(other), one.max(other));
        self.above[below] = root;
        let of_below = self.ways[below];
        for ((kept, joined), known) in self.ways[root].iter_mut().zip(of_below).zip(WAYS) {
            *kept |= joined || known == way;
        }
    }

    /// The kinds of likeness in the group of this root.
    pub(super) fn alike(&self, root: usize) -> Vec<Likeness> {
        WAYS.into_iter().zip(self.ways[root]).filter(|(_, is)| *is).map(|(way, _)| way).collect()
    }
}
