//! Places to cut in markdown and plain text.

use super::{LINE, LOWEST_HEADING, PAGE, PARAGRAPH, Place, ROW, Rank, Structure, Table};

/// Longest line that is taken for a numbered heading.
const LONGEST_HEADING: usize = 100;

/// The previous line, which may turn out to be a heading or the header of a table.
struct Before<'a> {
    place: Place,
    line: &'a str,
    /// The rank it gets if a blank line follows.
    if_blank_follows: Option<Rank>,
}

struct Scan<'a, 's> {
    structure: &'s mut Structure,
    before: Option<Before<'a>>,
    after_blank: bool,
    fence: Option<&'a str>,
    table: Option<Table>,
}

pub(super) fn scan(text: &str, structure: &mut Structure) {
    let mut scan = Scan { structure, before: None, after_blank: true, fence: None, table: None };
    let (mut byte, mut chars) = (0, 0);
    // Checking the whole text once saves both checks on every line.
    let (has_pages, is_ascii) = (text.contains('\u{c}'), text.is_ascii());
    for line in text.split_inclusive('\n') {
        scan.line(line, byte, chars);
        if has_pages && line.contains('\u{c}') {
            scan.page_breaks(line, byte, chars);
        }
        byte += line.len();
        chars += if is_ascii { line.len() } else { line.chars().count() };
    }
    scan.flush();
    scan.close_table(byte);
}

impl<'a> Scan<'a, '_> {
    fn line(&mut self, line: &'a str, byte: usize, chars: usize) {
        let bare = line.trim_end();
        let trimmed = bare.trim_start_matches(' ');
        let indent = bare.len() - trimmed.len();
        if let Some(fence) = self.fence {
            self.flush();
            if trimmed.starts_with(fence) {
                self.fence = None;
            }
            self.before = Some(before(byte, chars, LINE, line));
            return;
        }
        if trimmed.trim().is_empty() {
            if let Some(rank) = self.before.as_ref().and_then(|before| before.if_blank_follows) {
                self.upgrade(rank);
            }
            self.flush();
            self.close_table(byte);
            self.after_blank = true;
            return;
        }
        if self.table.is_some() {
            if trimmed.contains('|') {
                self.flush();
                self.before = Some(before(byte, chars, ROW, line));
                return;
            }
            self.close_table(byte);
        } else if let Some(header) = self.header_above(trimmed) {
            self.table = Some(Table { range: header..header, header: header..byte + line.len() });
            return;
        }
        if let Some(level) = underline_level(trimmed)
            && self.before.as_ref().is_some_and(|before| before.place.rank == PARAGRAPH)
        {
            self.upgrade(level);
            self.flush();
            self.after_blank = false;
            return;
        }
        self.flush();
        let first = std::mem::replace(&mut self.after_blank, false);
        let mut new = before(byte, chars, rank_of(trimmed, indent, first), line);
        if indent < 4
            && let Some(fence) = ["```", "~~~"].into_iter().find(|fence| trimmed.starts_with(fence))
        {
            self.fence = Some(fence);
        }
        if first && single_number(trimmed) {
            new.if_blank_follows = Some(1);
        }
        self.before = Some(new);
    }

    /// The byte where a table begins, if this line is the rule below a header.
    fn header_above(&self, trimmed: &str) -> Option<usize> {
        let is_rule = trimmed.contains('|')
            && trimmed.contains('-')
            && trimmed.bytes().all(|byte| matches!(byte, b'|' | b'-' | b':' | b' ' | b'\t'));
        let above = self.before.as_ref().filter(|before| is_rule && before.line.contains('|'))?;
        Some(above.place.byte)
    }

    fn upgrade(&mut self, rank: Rank) {
        if let Some(before) = &mut self.before {
            before.place.rank = before.place.rank.min(rank);
        }
    }

    fn flush(&mut self) {
        if let Some(before) = self.before.take() {
            self.structure.add(before.place);
        }
    }

    fn close_table(&mut self, byte: usize) {
        if let Some(mut table) = self.table.take() {
            table.range.end = byte;
            self.structure.tables.push(table);
        }
    }

    fn page_breaks(&mut self, line: &str, byte: usize, chars: usize) {
        self.flush();
        let mut count = 0;
        for (offset, letter) in line.char_indices() {
            count += 1;
            if letter != '\u{c}' {
                continue;
            }
            let rest = &line[offset + 1..];
            if rest.trim_matches(['\r', '\n']).is_empty() {
                let place =
                    Place { byte: byte + line.len(), chars: chars + line.chars().count(), rank: PAGE };
                self.structure.add(place);
                break;
            }
            self.structure.add(Place { byte: byte + offset + 1, chars: chars + count, rank: PAGE });
        }
    }
}

fn before(byte: usize, chars: usize, rank: Rank, line: &str) -> Before<'_> {
    Before { place: Place { byte, chars, rank }, line, if_blank_follows: None }
}

fn rank_of(trimmed: &str, indent: usize, after_blank: bool) -> Rank {
    if indent < 4
        && let Some(level) = marked_level(trimmed).or_else(|| numbered_level(trimmed).filter(|_| after_blank))
    {
        return level;
    }
    if after_blank {
        PARAGRAPH
    } else if is_item(trimmed) {
        ROW
    } else {
        LINE
    }
}

/// `## Title`.
fn marked_level(trimmed: &str) -> Option<Rank> {
    let rest = trimmed.trim_start_matches('#');
    let level = Rank::try_from(trimmed.len() - rest.len()).ok()?;
    let is_heading =
        (1..=LOWEST_HEADING).contains(&level) && (rest.is_empty() || rest.starts_with([' ', '\t']));
    is_heading.then_some(level)
}

/// A line of `=` or `-` below a title.
fn underline_level(trimmed: &str) -> Option<Rank> {
    let all = |mark: u8| trimmed.len() >= 3 && trimmed.bytes().all(|byte| byte == mark);
    if all(b'=') {
        Some(1)
    } else if all(b'-') {
        Some(2)
    } else {
        None
    }
}

/// `2.3 Title`: at least two numbers, then words that do not end like a sentence.
fn numbered_level(trimmed: &str) -> Option<Rank> {
    if !trimmed.starts_with(|letter: char| letter.is_ascii_digit()) {
        return None;
    }
    let (number, title) = trimmed.split_once([' ', '\t'])?;
    let parts: Vec<&str> = number.trim_end_matches('.').split('.').take(8).collect();
    let numbers =
        parts.iter().all(|part| (1..=3).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit()));
    let level = Rank::try_from(parts.len()).ok()?;
    (numbers && level > 1 && is_title(title)).then_some(level.min(LOWEST_HEADING))
}

/// `3. Title` or `3 Title`, which is a heading only between blank lines.
fn single_number(trimmed: &str) -> bool {
    let is_number = trimmed.starts_with(|letter: char| letter.is_ascii_digit());
    is_number
        && trimmed.split_once([' ', '\t']).is_some_and(|(number, title)| {
            let digits = number.strip_suffix('.').unwrap_or(number);
            (1..=3).contains(&digits.len())
                && digits.bytes().all(|byte| byte.is_ascii_digit())
                && is_title(title)
        })
}

fn is_title(words: &str) -> bool {
    let words = words.trim();
    words.len() <= LONGEST_HEADING
        && words.starts_with(char::is_uppercase)
        && !words.ends_with(['.', ',', ';', ':', '!', '?'])
}

fn is_item(trimmed: &str) -> bool {
    let digits = trimmed.bytes().take_while(u8::is_ascii_digit).count();
    let after = &trimmed[digits..];
    let numbered = (1..=3).contains(&digits) && (after.starts_with(". ") || after.starts_with(") "));
    numbered || ["- ", "* ", "+ ", "• "].iter().any(|mark| trimmed.starts_with(mark))
}
