//! Splits a source into chunks at the best places that its structure offers.
//!
//! Chunks are byte ranges of the source: together they are the source, in order, without overlap, so that every fact
//! found in a chunk has a place in the source. Each has at most `max_chars` characters. The best cut is a page break,
//! then a heading (higher ones first), a blank line, a row of a table or list, the end of a sentence, a line, a word,
//! and finally any character.
//!
//! A cut table does not repeat its header; the chunk refers to the header row as [`Chunk::context`].
//!
//! A requested number of chunks is exact, if the size allows it. Without one, the number leaves an eighth of each
//! chunk free, because full chunks could not be cut at the best places. Cuts are searched around equal parts, a third
//! of a part to either side. Everything takes time linear in the source.

mod data;
mod prose;

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::sentence;

/// The format of a source, which decides where it can be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// Markdown or plain text.
    Text,
    /// Rows, the first of which is the header.
    Csv,
    /// JSON, or a JSON value per line.
    Json,
    Toml,
}

impl Form {
    /// The form of a file, from its name.
    pub fn of_name(name: &str) -> Self {
        let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase();
        match ending.as_str() {
            "csv" | "tsv" => Self::Csv,
            "json" | "jsonl" | "ndjson" => Self::Json,
            "toml" => Self::Toml,
            _ => Self::Text,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// At least 1.
    pub max_chars: usize,
    /// Most characters of a header row in a chunk's context; a longer one is left out.
    pub max_context_chars: usize,
    /// Wanted number of chunks; more are made when these cannot hold the source.
    pub chunks: Option<usize>,
}

/// How many characters of a chunk to fill, so that there is a choice of cuts.
pub(crate) fn comfortable(max_chars: usize) -> usize {
    (max_chars - max_chars / 8).max(1)
}

/// A part of a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunk {
    /// Byte range in the source.
    pub range: Range<usize>,
    pub chars: usize,
    /// Byte range of the header row, if the chunk begins inside a table.
    pub context: Option<Range<usize>>,
}

/// How good a cut is; lower is better. Headings have 1 to 6.
type Rank = u8;

const PAGE: Rank = 0;
const LOWEST_HEADING: Rank = 6;
const PARAGRAPH: Rank = 7;
const ROW: Rank = 8;
const SENTENCE: Rank = 9;
const LINE: Rank = 10;

/// How many places to cut are kept for each chunk; more would only take memory.
const PLACES_PER_CHUNK: usize = 64;

#[derive(Clone, Copy, Debug)]
struct Place {
    byte: usize,
    chars: usize,
    rank: Rank,
}

#[derive(Clone, Debug)]
struct Table {
    range: Range<usize>,
    header: Range<usize>,
}

/// Places to cut and tables, collected while a source is read from its beginning.
struct Structure {
    /// Within this many characters only the best place is kept.
    grain: usize,
    places: Vec<Place>,
    tables: Vec<Table>,
}

impl Structure {
    fn add(&mut self, place: Place) {
        if place.byte == 0 {
            return;
        }
        match self.places.last_mut() {
            Some(last) if last.chars / self.grain == place.chars / self.grain => {
                if place.rank < last.rank {
                    *last = place;
                }
            }
            _ => self.places.push(place),
        }
    }

    /// The header of the table that continues at a byte.
    fn header_at(&self, byte: usize) -> Option<&Range<usize>> {
        let after = self.tables.partition_point(|table| table.range.start < byte);
        let table = self.tables.get(after.checked_sub(1)?)?;
        (table.header.end <= byte && byte < table.range.end).then_some(&table.header)
    }

    /// The best place among those from `least` to `most` characters.
    fn best(&self, least: usize, most: usize, wanted: usize) -> Option<Place> {
        let first = self.places.partition_point(|place| place.chars < least);
        let near = self.places[first..].iter().take_while(|place| place.chars <= most);
        near.min_by_key(|place| (place.rank, place.chars.abs_diff(wanted))).copied()
    }
}

/// Splits a source. An empty one has no chunks.
pub fn split(text: &str, form: Form, limits: Limits) -> Vec<Chunk> {
    let total = text.chars().count();
    if total == 0 {
        return Vec::new();
    }
    let most = limits.max_chars.max(1);
    let least_chunks = total.div_ceil(most);
    let wanted = limits.chunks.unwrap_or_else(|| match least_chunks {
        1 => 1,
        _ => total.div_ceil(comfortable(most)),
    });
    let count = wanted.clamp(least_chunks, total);
    if count == 1 {
        return vec![Chunk { range: 0..text.len(), chars: total, context: None }];
    }
    let grain = (total / count / PLACES_PER_CHUNK).max(1);
    let mut structure = Structure { grain, places: Vec::new(), tables: Vec::new() };
    match form {
        Form::Text => prose::scan(text, &mut structure),
        Form::Csv => data::scan_csv(text, &mut structure),
        Form::Json => data::scan_json(text, &mut structure),
        Form::Toml => data::scan_toml(text, &mut structure),
    }
    let context = |byte: usize| {
        let header = structure.header_at(byte)?;
        // A character has at most four bytes; counting a long header for every chunk would not be linear.
        let short = header.len() <= limits.max_context_chars.saturating_mul(4);
        (short && text[header.clone()].chars().count() <= limits.max_context_chars).then(|| header.clone())
    };
    let mut chunks = Vec::with_capacity(count);
    let mut at = Position { byte: 0, chars: 0 };
    for left in (1..=count).rev() {
        let end = if left == 1 {
            Position { byte: text.len(), chars: total }
        } else {
            next_cut(text, &structure, at, Window::new(at.chars, total, left, most))
        };
        let range = at.byte..end.byte;
        chunks.push(Chunk { context: context(range.start), range, chars: end.chars - at.chars });
        at = end;
    }
    chunks
}

#[derive(Clone, Copy, Debug)]
struct Position {
    byte: usize,
    chars: usize,
}

/// The bounds of the next cut, in characters of the source.
#[derive(Clone, Copy, Debug)]
struct Window {
    least: usize,
    wanted: usize,
    most: usize,
}

impl Window {
    /// Chosen so that the rest still fits into the remaining chunks, each with at least one character.
    fn new(at: usize, total: usize, left: usize, max_chars: usize) -> Self {
        let rest = total - at;
        let part = (rest / left).max(1);
        let must = rest.saturating_sub((left - 1).saturating_mul(max_chars)).max(1);
        let may = max_chars.min(rest - (left - 1));
        let slack = part / 3;
        Self { least: at + must.max(part - slack), wanted: at + part, most: at + may.min(part + slack) }
    }
}

fn next_cut(text: &str, structure: &Structure, at: Position, window: Window) -> Position {
    let best = structure.best(window.least, window.most, window.wanted);
    if let Some(place) = best.filter(|place| place.rank < SENTENCE) {
        return Position { byte: place.byte, chars: place.chars };
    }
    let least = advance(text, at.byte, window.least - at.chars);
    let wanted = advance(text, least, window.wanted - window.least);
    let most = advance(text, wanted, window.most - window.wanted);
    let near = &text[least..most];
    let nearest = |ends: &mut dyn Iterator<Item = usize>| {
        ends.map(|end| least + end).min_by_key(|byte| byte.abs_diff(wanted))
    };
    // Only the text of the window is searched, so a sentence end needs its last word inside the window.
    let sentence = nearest(&mut sentence::ends(near));
    let line = best.map(|place| place.byte);
    let byte = sentence
        .or(line)
        .or_else(|| nearest(&mut word_starts(near)))
        .unwrap_or_else(|| not_in_line_break(text, least..most, wanted));
    Position { byte, chars: window.least + text[least..byte].chars().count() }
}

/// The byte offset that is `chars` characters after `from`.
fn advance(text: &str, from: usize, chars: usize) -> usize {
    text[from..].char_indices().nth(chars).map_or(text.len(), |(offset, _)| from + offset)
}

/// Offsets of letters that follow a blank.
fn word_starts(text: &str) -> impl Iterator<Item = usize> {
    let pairs = text.char_indices().zip(text.chars().skip(1));
    pairs
        .filter(|((_, blank), next)| blank.is_whitespace() && !next.is_whitespace())
        .map(|((at, blank), _)| at + blank.len_utf8())
}

fn not_in_line_break(text: &str, window: Range<usize>, wanted: usize) -> usize {
    let bytes = text.as_bytes();
    let inside = wanted > 0 && bytes.get(wanted - 1) == Some(&b'\r') && bytes.get(wanted) == Some(&b'\n');
    if inside && wanted < window.end {
        wanted + 1
    } else if inside && wanted > window.start {
        wanted - 1
    } else {
        wanted
    }
}

#[cfg(test)]
mod tests;
