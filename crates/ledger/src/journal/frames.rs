//! Reads a journal that may be damaged: an entry that does not check costs only itself.

use std::collections::HashSet;

use aec_base::digest::Digest;

use super::{Entry, HEADER, LARGEST_ENTRY, take};
use crate::chain::Link;

/// Bytes of length and digest before a payload.
const FRAME: usize = 40;

/// Most ends that are tried for an entry whose length may be wrong.
const ENDS: usize = 1000;

/// What lies at one place of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    Whole(Entry),
    Damaged(Damaged),
    /// An entry at the end that was never written completely.
    Torn {
        bytes: usize,
    },
}

/// An entry that does not check, and the parts of it that check by themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Damaged {
    /// Where it begins in the file.
    pub(super) at: usize,
    pub(super) bytes: usize,
    pub(super) link: Option<Link>,
    /// The bytes in the place of the record, which may be damaged.
    pub(super) record: Option<Vec<u8>>,
    pub(super) contents: Vec<(Digest, Vec<u8>)>,
}

impl Frame {
    pub(super) fn link(&self) -> Option<&Link> {
        match self {
            Self::Whole(entry) => Some(&entry.link),
            Self::Damaged(damaged) => damaged.link.as_ref(),
            Self::Torn { .. } => None,
        }
    }
}

/// The entries of a journal, in their order. `chained` are the links that the session's chain has already.
pub(super) fn frames(bytes: &[u8], chained: &[Link]) -> Vec<Frame> {
    let known: HashSet<Digest> = chained.iter().map(|link| link.link).collect();
    let mut found: Vec<Frame> = Vec::new();
    let mut at = HEADER.len();
    while at < bytes.len() {
        let (frame, end) = match whole(&bytes[at..]) {
            Some((entry, length)) => (Frame::Whole(entry), at + length),
            None => {
                let last = found.iter().rev().find_map(Frame::link).map(|link| link.link);
                let connects = |link: &Link| {
                    Some(link.previous) == last
                        || known.contains(&link.previous)
                        || known.contains(&link.link)
                };
                unsound(bytes, at, connects)
            }
        };
        found.push(frame);
        at = end;
    }
    let is_ours = bytes.starts_with(HEADER) || found.iter().any(|frame| matches!(frame, Frame::Whole(_)));
    if is_ours || bytes.is_empty() { found } else { vec![Frame::Torn { bytes: bytes.len() }] }
}

/// The entry at the beginning of some bytes, with the length of its frame.
fn whole(bytes: &[u8]) -> Option<(Entry, usize)> {
    let length = FRAME + payload(bytes)?.len();
    Some((checked(&bytes[..length])?, length))
}

/// The entry of a frame, if its digest is right.
fn checked(frame: &[u8]) -> Option<Entry> {
    let payload = frame.get(FRAME..)?;
    if Digest::of(payload).bytes() != &frame[8..FRAME] {
        return None;
    }
    Entry::decode(payload)
}

/// The payload that a frame announces, if it is there.
fn payload(bytes: &[u8]) -> Option<&[u8]> {
    let (length, _) = bytes.split_first_chunk::<8>()?;
    let length = u64::from_le_bytes(*length);
    if length > LARGEST_ENTRY {
        return None;
    }
    bytes.get(FRAME..FRAME.checked_add(usize::try_from(length).ok()?)?)
}

/// Whether bytes may begin a frame: a length that fits, and a record that is JSON in a payload that holds it.
fn looks_like_frame(bytes: &[u8]) -> bool {
    let Some(payload) = payload(bytes) else { return false };
    let mut rest = payload;
    take(&mut rest).is_some_and(|record| record.first() == Some(&b'{'))
}

/// A frame that does not check, and where it ends. Contents of a journal come from agents and may contain anything,
/// so a frame that is found by searching counts only if its link `connects` to the chain.
fn unsound(bytes: &[u8], at: usize, connects: impl Fn(&Link) -> bool) -> (Frame, usize) {
    let rest = &bytes[at..];
    let torn = (Frame::Torn { bytes: rest.len() }, bytes.len());
    if rest.len() < FRAME || rest.iter().all(|byte| *byte == 0) {
        return torn;
    }
    // Only its length may be wrong.
    let is_end = |end: &usize| *end == rest.len() || looks_like_frame(&rest[*end..]);
    let mut ends = (FRAME + 1..=rest.len()).filter(is_end).take(ENDS);
    if let Some((entry, end)) = ends.find_map(|end| Some((checked(&rest[..end])?, end))) {
        return (Frame::Whole(entry), at + end);
    }
    let announced = payload(rest).map(|payload| FRAME + payload.len());
    let is_short = announced.is_none();
    let announced = announced.filter(is_end);
    let is_next = |end: &usize| {
        looks_like_frame(&rest[*end..])
            && whole(&rest[*end..]).is_some_and(|(entry, _)| {
                let link = &entry.link;
                link.is_sound() && Digest::of(&entry.record) == link.record && connects(link)
            })
    };
    match announced.or_else(|| (1..rest.len()).find(is_next)) {
        None if is_short => torn,
        end => {
            let end = end.unwrap_or(rest.len());
            (Frame::Damaged(parts(&rest[..end], at)), at + end)
        }
    }
}

/// The parts of a damaged frame that check.
fn parts(frame: &[u8], at: usize) -> Damaged {
    let mut damaged = Damaged { at, bytes: frame.len(), ..Damaged::default() };
    let mut rest = frame.get(FRAME..).unwrap_or_default();
    damaged.record = take(&mut rest).map(<[u8]>::to_vec);
    let link = take(&mut rest).and_then(|link| aec_base::json::from_slice::<Link>(link).ok());
    damaged.link = link.filter(Link::is_sound);
    while let Some((digest, after)) = rest.split_first_chunk::<32>() {
        rest = after;
        let Some(content) = take(&mut rest) else { break };
        let digest = Digest::from_bytes(*digest);
        if Digest::of(content) == digest {
            damaged.contents.push((digest, content.to_vec()));
        }
    }
    damaged
}

#[cfg(test)]
mod tests {
    use aec_base::name::Name;
    use proptest::prelude::*;

    use super::*;

    fn entry(sequence: u64, contents: Vec<Vec<u8>>) -> Entry {
        let trial = Name::parse("t").unwrap();
        let record = format!("{{\"number\": {sequence}}}").into_bytes();
        let link = Link::after(Digest::of(b"p"), sequence, &trial, 1, Digest::of(&record));
        let contents = contents.into_iter().map(|bytes| (Digest::of(&bytes), bytes)).collect();
        Entry { record, link, contents }
    }

    fn whole_ones(bytes: &[u8]) -> Vec<Entry> {
        let of = |frame| match frame {
            Frame::Whole(entry) => Some(entry),
            Frame::Damaged(_) | Frame::Torn { .. } => None,
        };
        frames(bytes, &[]).into_iter().filter_map(of).collect()
    }

    fn journal(entries: &[Entry]) -> (Vec<u8>, Vec<usize>) {
        let mut bytes = HEADER.to_vec();
        let mut ends = Vec::new();
        for entry in entries {
            entry.encode(&mut bytes).unwrap();
            ends.push(bytes.len());
        }
        (bytes, ends)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn a_journal_cut_anywhere_gives_its_whole_entries(
            contents in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..3),
        ) {
            let entries = [entry(1, contents), entry(2, Vec::new())];
            let (bytes, ends) = journal(&entries);
            for cut in HEADER.len()..=bytes.len() {
                let whole = ends.iter().filter(|end| **end <= cut).count();
                prop_assert_eq!(&whole_ones(&bytes[..cut])[..], &entries[..whole]);
                let is_damaged = |frame: &Frame| matches!(frame, Frame::Damaged(_));
                prop_assert!(!frames(&bytes[..cut], &[]).iter().any(is_damaged), "a torn end is no damage");
            }
        }

        #[test]
        fn a_flipped_bit_costs_no_more_than_its_own_entry(
            contents in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..3),
            at in any::<prop::sample::Index>(),
            bit in 0..8,
        ) {
            let entries = [entry(1, contents), entry(2, vec![b"abc".to_vec()]), entry(3, Vec::new())];
            let (mut bytes, ends) = journal(&entries);
            let at = at.index(bytes.len());
            bytes[at] ^= 1_u8 << bit;
            let hit = ends.iter().position(|end| at < *end).unwrap();
            let found = whole_ones(&bytes);
            for (number, entry) in entries.iter().enumerate() {
                prop_assert!(number == hit || found.contains(entry), "{} is lost, {} was hit", number, hit);
            }
            prop_assert!(found.iter().all(|entry| entries.contains(entry)), "nothing is invented");
        }
    }

    #[test]
    fn a_frame_in_a_content_is_no_entry() {
        let mut forged = Vec::new();
        entry(2, Vec::new()).encode(&mut forged).unwrap();
        let entries = [entry(1, vec![forged]), entry(3, Vec::new())];
        let (mut bytes, ends) = journal(&entries);
        // Its length and its record are damaged, so that its end must be searched for.
        bytes[HEADER.len() + 1] ^= 1;
        bytes[HEADER.len() + FRAME + 12] ^= 1;
        let found = frames(&bytes, &[entries[0].link.clone()]);
        assert!(!found.iter().any(|frame| frame.link() == Some(&entry(2, Vec::new()).link)), "{found:?}");
        assert_eq!(ends.len(), 2);
    }

    #[test]
    fn parts_of_a_damaged_entry_that_check_are_kept() {
        let entries = [entry(1, vec![b"content".to_vec()]), entry(2, Vec::new())];
        let (bytes, _) = journal(&entries);
        let find = |text: &[u8]| bytes.windows(text.len()).position(|part| part == text).unwrap();
        let hit = |at: usize| {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1;
            match frames(&bytes, &[]).as_slice() {
                [Frame::Damaged(damaged), Frame::Whole(second)] if *second == entries[1] => damaged.clone(),
                other => panic!("{other:?}"),
            }
        };
        let content = hit(find(b"content"));
        assert_eq!((content.record.as_deref(), content.contents.len()), (Some(&entries[0].record[..]), 0));
        assert_eq!(content.link.as_ref(), Some(&entries[0].link));
        let record = hit(find(b"number"));
        assert_eq!((record.link.as_ref(), record.contents.len()), (Some(&entries[0].link), 1));
        assert_ne!(record.record.as_deref(), Some(&entries[0].record[..]));
    }
}
