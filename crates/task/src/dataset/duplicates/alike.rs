//! Groups of things that are alike, grown pair by pair.

use super::Likeness;

/// Disjoint groups over the numbers from 0.
pub(super) struct Groups {
    /// The next one on the way to the root of the group.
    above: Vec<usize>,
    /// The ways in which members of a group are alike, kept at its root.
    ways: Vec<[bool; 3]>,
}

const WAYS: [Likeness; 3] = [Likeness::Identical, Likeness::Numbers, Likeness::Words];

impl Groups {
    /// Every one alone.
    pub(super) fn new(count: usize) -> Self {
        Self { above: (0..count).collect(), ways: vec![[false; 3]; count] }
    }

    /// The one that stands for the group.
    pub(super) fn root(&mut self, mut index: usize) -> usize {
        while self.above[index] != index {
            self.above[index] = self.above[self.above[index]];
            index = self.above[index];
        }
        index
    }

    /// Puts two into one group.
    pub(super) fn join(&mut self, one: usize, other: usize, way: Likeness) {
        let (one, other) = (self.root(one), self.root(other));
        // The smaller number stands for the group, so that the result does not depend on the order of joins.
        let (root, below) = (one.min(other), one.max(other));
        self.above[below] = root;
        let of_below = self.ways[below];
        for ((kept, joined), known) in self.ways[root].iter_mut().zip(of_below).zip(WAYS) {
            *kept |= joined || known == way;
        }
    }

    /// The ways in which the group of this root is alike.
    pub(super) fn alike(&self, root: usize) -> Vec<Likeness> {
        WAYS.into_iter().zip(self.ways[root]).filter(|(_, is)| *is).map(|(way, _)| way).collect()
    }
}
