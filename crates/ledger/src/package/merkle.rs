//! One digest for a whole package, from which each part can be proved without revealing the others: the Merkle tree
//! of RFC 6962.
//!
//! A leaf is `SHA-256(0x00 ‖ bytes)`, a node `SHA-256(0x01 ‖ left ‖ right)`. The left subtree has the largest power
//! of two of leaves that is less than their number.

use aec_base::digest::Digest;
use serde::{Deserialize, Serialize};

pub fn leaf(bytes: &[u8]) -> Digest {
    let mut message = Vec::with_capacity(bytes.len() + 1);
    message.push(0);
    message.extend_from_slice(bytes);
    Digest::of(&message)
}

fn node(left: Digest, right: Digest) -> Digest {
    let mut message = [1; 65];
    message[1..33].copy_from_slice(left.bytes());
    message[33..].copy_from_slice(right.bytes());
    Digest::of(&message)
}

/// How many of `count` leaves, at least two, belong to the left subtree.
fn left_share(count: usize) -> usize {
    1 << (count - 1).ilog2()
}

pub fn root(leaves: &[Digest]) -> Digest {
    match leaves {
        [] => Digest::of(b""),
        [only] => *only,
        _ => {
            let (left, right) = leaves.split_at(left_share(leaves.len()));
            node(root(left), root(right))
        }
    }
}

/// Evidence that a leaf is part of a root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proof {
    /// The position of the leaf, from 0.
    pub index: u64,
    pub leaves: u64,
    /// The siblings on the path from the leaf to the root.
    pub path: Vec<Digest>,
}

/// The proof for one of the leaves; `None` when there is no such leaf.
pub fn proof(leaves: &[Digest], index: usize) -> Option<Proof> {
    fn walk(leaves: &[Digest], index: usize, path: &mut Vec<Digest>) {
        if leaves.len() < 2 {
            return;
        }
        let (left, right) = leaves.split_at(left_share(leaves.len()));
        if index < left.len() {
            walk(left, index, path);
            path.push(root(right));
        } else {
            walk(right, index - left.len(), path);
            path.push(root(left));
        }
    }
    if index >= leaves.len() {
        return None;
    }
    let mut path = Vec::new();
    walk(leaves, index, &mut path);
    Some(Proof { index: index as u64, leaves: leaves.len() as u64, path })
}

/// Whether a proof is valid for a leaf and a root.
pub fn check(leaf: Digest, proof: &Proof, root: Digest) -> bool {
    let Some(mut last) = proof.leaves.checked_sub(1).filter(|last| proof.index <= *last) else {
        return false;
    };
    let mut index = proof.index;
    let mut seen = leaf;
    for beside in &proof.path {
        if last == 0 {
            return false;
        }
        if index & 1 == 1 || index == last {
            seen = node(*beside, seen);
            // The last leaf of a level without a partner moves up unchanged.
            while index & 1 == 0 && index != 0 {
                index >>= 1;
                last >>= 1;
            }
        } else {
            seen = node(seen, *beside);
        }
        index >>= 1;
        last >>= 1;
    }
    last == 0 && seen == root
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaves(count: usize) -> Vec<Digest> {
        (0..count).map(|index| leaf(&index.to_le_bytes())).collect()
    }

    #[test]
    fn known_roots() {
        // The inputs of Certificate Transparency's test vectors; the roots were computed by other programs.
        let inputs: [&[u8]; 8] = [
            b"",
            b"\x00",
            b"\x10",
            b"\x20\x21",
            b"\x30\x31",
            b"\x40\x41\x42\x43",
            b"\x50\x51\x52\x53\x54\x55\x56\x57",
            b"\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f",
        ];
        let leaves = inputs.map(leaf);
        for (count, expected) in [
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
            "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
            "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
            "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
            "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
            "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
            "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
            "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
        ]
        .into_iter()
        .enumerate()
        {
            assert_eq!(root(&leaves[..count]).hex(), expected, "{count} leaves");
        }
    }

    #[test]
    fn every_leaf_of_every_size_has_a_proof_and_no_other_one() {
        for count in 1..=40 {
            let leaves = leaves(count);
            let root = root(&leaves);
            for index in 0..count {
                let proof = proof(&leaves, index).unwrap();
                assert!(check(leaves[index], &proof, root), "{index} of {count}");
                for other in 0..count {
                    assert_eq!(check(leaves[other], &proof, root), other == index);
                    let moved = Proof { index: other as u64, ..proof.clone() };
                    assert_eq!(check(leaves[index], &moved, root), other == index, "{index} as {other}");
                }
            }
            assert_eq!(proof(&leaves, count), None);
        }
    }

    proptest::proptest! {
        #[test]
        fn a_changed_proof_proves_nothing(count in 2..300_usize, at in 0..300_usize, change in 0..4_u8, place in 0..9_usize) {
            let leaves = leaves(count);
            let root = root(&leaves);
            let index = at % count;
            let mut proof = proof(&leaves, index).unwrap();
            let place = place % proof.path.len();
            match change {
                0 => proof.path[place] = leaf(b"x"),
                1 => { proof.path.remove(place); }
                2 => proof.path.insert(place, leaf(b"x")),
                _ => proof.leaves = proof.index,
            }
            proptest::prop_assert!(!check(leaves[index], &proof, root));
        }

        #[test]
        fn roots_of_different_leaves_differ(count in 1..100_usize, at in 0..100_usize) {
            let before = leaves(count);
            let mut after = before.clone();
            after[at % count] = leaf(b"x");
            proptest::prop_assert_ne!(root(&before), root(&after));
            after.pop();
            proptest::prop_assert_ne!(root(&before), root(&after));
        }
    }
}
