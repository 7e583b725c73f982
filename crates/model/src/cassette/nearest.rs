//! Finds the recorded call nearest to a request that is not recorded.

use std::cmp::Reverse;
use std::collections::HashMap;

use aec_base::digest::Digest;

use super::canonical::{self, Prints};
use super::difference;
use super::shelf::{Entry, Shelf};
use super::tape::Unreadable;
use crate::message::{Message, Request};

/// How many calls to compare, those with a similar number of messages first.
const MOST_COMPARED: usize = 256;

/// Describes how the nearest of some calls differs from a request.
pub(super) fn explain(
    shelf: &Shelf,
    entries: &[Entry],
    model: &str,
    request: &Request,
) -> Result<String, Unreadable> {
    let mut search = Search { shelf, model, request, prints: Prints::of(request), known: HashMap::new() };
    let mut best: Option<(Rank, &Entry)> = None;
    for entry in candidates(entries, request.messages.len()) {
        let rank = search.rank(entry)?;
        // Of equally near calls the first recorded one is shown.
        if best.as_ref().is_none_or(|(known, _)| rank < *known) {
            best = Some((rank, entry));
        }
    }
    match best {
        Some((_, entry)) => {
            let (recorded_model, recorded) = shelf.request(entry)?;
            let place = shelf.tape(entry).name();
            let differences = difference::between((&recorded_model, &recorded), (model, request));
            Ok(format!(
                "the nearest recorded request ({place}, byte {}) differs:\n{differences}",
                entry.offset
            ))
        }
        None => Ok("nothing similar is recorded".to_owned()),
    }
}

fn candidates(entries: &[Entry], messages: usize) -> Vec<&Entry> {
    let key = |entry: &&Entry| ((entry.messages as usize).abs_diff(messages), entry.file, entry.offset);
    let mut candidates: Vec<&Entry> = entries.iter().collect();
    if candidates.len() > MOST_COMPARED {
        candidates.select_nth_unstable_by_key(MOST_COMPARED, key);
        candidates.truncate(MOST_COMPARED);
    }
    candidates.sort_unstable_by_key(key);
    candidates
}

/// The distance of a call from the request: differing pieces, then how little the first differing message agrees.
type Rank = (usize, Reverse<usize>);

struct Search<'a> {
    shelf: &'a Shelf,
    model: &'a str,
    request: &'a Request,
    prints: Prints,
    /// Digests of messages by file and number. Conversations share messages, so each is read once.
    known: HashMap<(u32, u32), Digest>,
}

impl Search<'_> {
    fn rank(&mut self, entry: &Entry) -> Result<Rank, Unreadable> {
        let tape = self.shelf.tape(entry);
        let call = tape.call(entry)?;
        let numbers = tape.conversation(call.request.turn);
        let mut recorded = Vec::with_capacity(numbers.len());
        for number in &numbers {
            recorded.push(self.print(entry, *number)?);
        }
        let asked = &self.prints.messages;
        let head = recorded.iter().zip(asked).take_while(|(one, other)| one == other).count();
        let tail = recorded[head..]
            .iter()
            .rev()
            .zip(asked[head..].iter().rev())
            .take_while(|(one, other)| one == other)
            .count();
        let tools = match call.request.tools {
            Some(number) => tape.tools(number)?,
            None => Vec::new(),
        };
        let settings = canonical::settings_text(&call.request.tool_choice, &call.request.sampling);
        // Messages weigh more than the other pieces, which usually differ for all calls or for none.
        let pieces = 4 * (recorded.len().max(asked.len()) - head - tail)
            + usize::from(call.model != self.model)
            + usize::from(Digest::of(canonical::tools_text(&tools).as_bytes()) != self.prints.tools)
            + usize::from(Digest::of(settings.as_bytes()) != self.prints.settings);
        let agreement = match (numbers.get(head), self.request.messages.get(head)) {
            (Some(number), Some(asked)) => agreement(&tape.message(*number)?, asked),
            _ => 0,
        };
        Ok((pieces, Reverse(agreement)))
    }

    fn print(&mut self, entry: &Entry, number: u32) -> Result<Digest, Unreadable> {
        let key = (entry.file, number);
        if let Some(print) = self.known.get(&key) {
            return Ok(*print);
        }
        let print = canonical::message_print(&self.shelf.tape(entry).message(number)?);
        self.known.insert(key, print);
        Ok(print)
    }
}

/// How many bytes two messages share at both ends.
fn agreement(one: &Message, other: &Message) -> usize {
    let (one, other) = (canonical::message_text(one), canonical::message_text(other));
    let equal = |(one, other): &(u8, u8)| one == other;
    let head = one.bytes().zip(other.bytes()).take_while(equal).count();
    let tail = one.bytes().rev().zip(other.bytes().rev()).take_while(equal).count();
    head + tail
}
