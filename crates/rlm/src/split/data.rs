//! Places to cut in CSV, JSON and TOML.

use super::{LINE, LOWEST_HEADING, PAGE, Place, ROW, Rank, Structure, Table};

fn begins_character(byte: u8) -> bool {
    byte & 0xc0 != 0x80
}

/// Rows, with the first as the header. A quote that is never closed is an ordinary character.
pub(super) fn scan_csv(text: &str, structure: &mut Structure) {
    if !rows(text, structure, Quotes::Honoured) {
        structure.places.clear();
        structure.tables.clear();
        rows(text, structure, Quotes::Letters);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    Honoured,
    Letters,
}

/// Returns false when the text ends inside quotes.
fn rows(text: &str, structure: &mut Structure, quotes: Quotes) -> bool {
    let mut quoted = false;
    let mut field_start = true;
    let mut chars = 0;
    let mut header = None;
    for (at, byte) in text.bytes().enumerate() {
        chars += usize::from(begins_character(byte));
        match byte {
            b'"' if quoted => quoted = false,
            // A doubled quote inside quotes closes and reopens, so it needs no special rule.
            b'"' if quotes == Quotes::Honoured && (field_start || text.as_bytes()[at - 1] == b'"') => {
                quoted = true;
            }
            b'\n' if !quoted => {
                header.get_or_insert(at + 1);
                structure.add(Place { byte: at + 1, chars, rank: ROW });
            }
            _ => {}
        }
        field_start = matches!(byte, b',' | b';' | b'\t' | b'|' | b'\n') && !quoted;
    }
    if let Some(end) = header {
        structure.tables.push(Table { range: 0..text.len(), header: 0..end });
    }
    !quoted
}

/// Items of lists and objects, outer ones first; for one value per line, between the values.
pub(super) fn scan_json(text: &str, structure: &mut Structure) {
    let mut depth: usize = 0;
    let (mut quoted, mut escaped) = (false, false);
    let mut chars = 0;
    // The rank of a cut before the next character that is not blank.
    let mut pending: Option<Rank> = None;
    for (at, byte) in text.bytes().enumerate() {
        if quoted {
            chars += usize::from(begins_character(byte));
            if escaped {
                escaped = false;
            } else if byte == b'\\' {
                escaped = true;
            } else if byte == b'"' {
                quoted = false;
            }
            continue;
        }
        if !byte.is_ascii_whitespace()
            && begins_character(byte)
            && let Some(rank) = pending.take()
        {
            structure.add(Place { byte: at, chars, rank });
        }
        chars += usize::from(begins_character(byte));
        match byte {
            b'"' => quoted = true,
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth > 0 => {
                pending = Some(Rank::try_from(depth).unwrap_or(LOWEST_HEADING).min(LOWEST_HEADING));
            }
            b'\n' => {
                let rank = if depth == 0 { PAGE } else { LINE };
                pending = Some(pending.map_or(rank, |pending| pending.min(rank)));
            }
            _ => {}
        }
    }
}

/// Tables, outer ones first, then keys; a multi-line string is cut between lines.
pub(super) fn scan_toml(text: &str, structure: &mut Structure) {
    let (mut byte, mut chars) = (0, 0);
    let mut inside = None;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim();
        if inside.is_some() {
            structure.add(Place { byte, chars, rank: LINE });
        } else if trimmed.starts_with('[') {
            let dots = trimmed.bytes().filter(|byte| *byte == b'.').count() + 1;
            let rank = Rank::try_from(dots).unwrap_or(LOWEST_HEADING).min(LOWEST_HEADING);
            structure.add(Place { byte, chars, rank });
        } else if !trimmed.is_empty() {
            structure.add(Place { byte, chars, rank: ROW });
        }
        inside = long_string(line, inside);
        byte += line.len();
        chars += line.chars().count();
    }
}

/// The quote character of the multi-line string that is open at the end of a line.
fn long_string(line: &str, mut inside: Option<u8>) -> Option<u8> {
    let bytes = line.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let quote = bytes[at];
        let opens = matches!(quote, b'"' | b'\'') && inside.is_none_or(|open| open == quote);
        if opens && bytes[at..].starts_with(&[quote; 3]) {
            inside = if inside.is_some() { None } else { Some(quote) };
            at += 3;
        } else {
            at += 1;
        }
    }
    inside
}
