//! Parses a shell command line far enough to tell which programs run on which files: quoting, pipes, redirections,
//! here-documents, substitutions, simple variables and loops. Nothing is run, and every input is parsed in time linear
//! in its length.

use std::collections::HashMap;

use super::shell_word::Lexed;

/// How deep nested substitutions are followed; deeper ones are skipped.
pub(crate) const DEEPEST: usize = 24;
/// Most words of one command line. The rest is ignored.
const MOST_WORDS: usize = 50_000;
/// Most values of a loop variable.
pub(crate) const MOST_VALUES: usize = 64;
pub(crate) const LONGEST_VALUE: usize = 4_096;

/// The commands of a command line; substitutions come before the command that contains them.
#[derive(Debug, Default)]
pub(crate) struct Script {
    pub(crate) commands: Vec<Command>,
    pub(crate) bodies: Vec<String>,
    /// Whether it was too long to be parsed completely.
    pub(crate) cut: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Command {
    /// The program, then its arguments. Empty if there are only redirections.
    pub(crate) words: Vec<Word>,
    pub(crate) redirects: Vec<Redirect>,
    /// Whether it reads the output of the command before it.
    pub(crate) piped: bool,
    /// The number of subshells around it.
    pub(crate) depth: usize,
}

/// A word with its quotes removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Word {
    /// The text. Unknown expansions are kept unexpanded.
    pub(crate) text: String,
    /// Whether it has wildcards or braces outside quotes.
    pub(crate) pattern: bool,
}

/// A redirection to or from a file, or from a text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Redirect {
    /// `<`.
    Read(Word),
    /// `>`.
    Write(Word),
    /// `>>`.
    Append(Word),
    /// `<<` and `<<<`: the number of the text.
    Here(usize),
}

pub(crate) fn parse(text: &str) -> Script {
    let mut state = State::default();
    Parser { text, at: 0, state: &mut state }.list(false, 0);
    state.script
}

/// State shared by all substitutions of a line.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) script: Script,
    pub(crate) variables: HashMap<String, Vec<Word>>,
    /// Bytes that variables have added.
    pub(crate) expanded: usize,
    words: usize,
}

/// A position in a command line.
pub(crate) struct Parser<'t, 's> {
    pub(crate) text: &'t str,
    pub(crate) at: usize,
    pub(crate) state: &'s mut State,
}

#[derive(Default)]
struct Builder {
    command: Command,
    /// The variable that a loop sets, and whether `in` was seen.
    loops: Option<(String, bool)>,
    values: Vec<Word>,
    assignments: Vec<(String, Word)>,
    is_for: bool,
    skips_name: bool,
}

/// The state within a list of commands.
#[derive(Default)]
struct Place {
    builder: Builder,
    piped: bool,
    subshells: usize,
    cases: usize,
    pending: Vec<Pending>,
}

struct Pending {
    body: usize,
    delimiter: String,
    strips_tabs: bool,
}

impl Parser<'_, '_> {
    pub(crate) fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    /// Parses commands to the end, or to the parenthesis that closes a substitution.
    pub(crate) fn list(&mut self, closes: bool, depth: usize) {
        let mut place = Place::default();
        while let Some(byte) = self.byte(0) {
            if self.state.words > MOST_WORDS {
                self.state.script.cut = true;
                self.at = self.text.len();
                break;
            }
            if place.builder.is_condition() && self.condition_operator(&mut place.builder) {
                continue;
            }
            match byte {
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'\\' if self.byte(1) == Some(b'\n') => self.at += 2,
                b'\n' => {
                    self.at += 1;
                    self.end_command(&mut place, depth, false);
                    self.here_bodies(&mut place.pending);
                }
                b';' => {
                    self.at += 1;
                    self.end_command(&mut place, depth, false);
                }
                b'&' if self.byte(1) == Some(b'>') => {
                    self.at += 1;
                    self.redirect(&mut place, depth);
                }
                b'&' | b'|' => {
                    let double = self.byte(1) == Some(byte);
                    let both = byte == b'|' && self.byte(1) == Some(b'&');
                    self.at += if double || both { 2 } else { 1 };
                    self.end_command(&mut place, depth, byte == b'|' && !double);
                }
                b'(' => self.open(&mut place),
                b')' => {
                    self.at += 1;
                    if place.cases > 0 {
                        place.builder = Builder::default();
                        continue;
                    }
                    self.end_command(&mut place, depth, false);
                    if place.subshells > 0 {
                        place.subshells -= 1;
                    } else if closes {
                        break;
                    }
                }
                b'#' => self.at = self.find_from(self.at, b'\n'),
                b'<' | b'>' => self.redirect(&mut place, depth),
                _ => self.argument(&mut place, depth),
            }
        }
        self.end_command(&mut place, depth, false);
    }

    /// In `[[ … ]]` the signs of redirections and pipes are operators.
    fn condition_operator(&mut self, builder: &mut Builder) -> bool {
        let Some(b'<' | b'>' | b'&' | b'|' | b'(' | b')' | b'\n' | b';') = self.byte(0) else {
            return false;
        };
        let Some(operator) = self.text.get(self.at..=self.at) else { return false };
        builder.command.words.push(Word { text: operator.to_owned(), pattern: false });
        self.state.words += 1;
        self.at += 1;
        true
    }

    /// An opening parenthesis: a subshell, an arithmetic command, a function or an array.
    fn open(&mut self, place: &mut Place) {
        if !place.builder.is_empty() {
            let start = self.at;
            self.skip_balanced();
            if self.text[start..self.at].trim_matches(['(', ')']).trim().is_empty() {
                place.builder = Builder::default();
            }
        } else if self.byte(1) == Some(b'(') {
            self.skip_balanced();
        } else {
            self.at += 1;
            place.subshells += 1;
        }
    }

    fn argument(&mut self, place: &mut Place, depth: usize) {
        let start = self.at;
        let word = self.word(depth);
        if self.at == start {
            // A byte that begins no word must not stop the parser.
            self.at += 1;
            return;
        }
        let is_number =
            !word.quoted && !word.text.is_empty() && word.text.bytes().all(|b| b.is_ascii_digit());
        if is_number && matches!(self.byte(0), Some(b'<' | b'>')) {
            return self.redirect(place, depth);
        }
        self.state.words += 1 + word.others.len();
        let Place { builder, cases, .. } = place;
        builder.take(word, cases);
    }

    fn redirect(&mut self, place: &mut Place, depth: usize) {
        let writes = self.byte(0) == Some(b'>');
        self.at += 1;
        if self.byte(0) == Some(b'(') {
            self.at += 1;
            self.substitution(depth);
            place.builder.command.words.push(Word::default());
            return;
        }
        let mut append = false;
        let mut copies = false;
        let mut here = 0;
        while let Some(byte @ (b'>' | b'<' | b'|' | b'&')) = self.byte(0) {
            if byte == b'|' && !writes {
                break;
            }
            append |= byte == b'>' && writes;
            copies |= byte == b'&';
            here += usize::from(byte == b'<' && !writes);
            self.at += 1;
        }
        let strips_tabs = here == 1 && self.byte(0) == Some(b'-');
        self.at += usize::from(strips_tabs);
        while let Some(b' ' | b'\t') = self.byte(0) {
            self.at += 1;
        }
        let word = self.word(depth);
        self.state.words += 1;
        // `2>&1` and `>&-` name descriptors, not files.
        if copies && word.text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') {
            return;
        }
        let target = Word { text: word.text, pattern: word.pattern };
        let redirect = match (writes, here) {
            (true, _) if append => Redirect::Append(target),
            (true, _) => Redirect::Write(target),
            (false, 0) => Redirect::Read(target),
            (false, many) => {
                let body = self.state.script.bodies.len();
                if many == 1 {
                    self.state.script.bodies.push(String::new());
                    place.pending.push(Pending { body, delimiter: target.text, strips_tabs });
                } else {
                    self.state.script.bodies.push(target.text);
                }
                Redirect::Here(body)
            }
        };
        place.builder.command.redirects.push(redirect);
    }

    /// The texts of the here-documents that were announced on the line that just ended.
    fn here_bodies(&mut self, pending: &mut Vec<Pending>) {
        for Pending { body, delimiter, strips_tabs } in pending.drain(..) {
            let start = self.at;
            let mut end = self.text.len();
            while self.at < self.text.len() {
                let line_start = self.at;
                let line_end = self.find_from(self.at, b'\n');
                self.at = (line_end + 1).min(self.text.len());
                let line = self.text[line_start..line_end].trim_end_matches('\r');
                let line = if strips_tabs { line.trim_start_matches('\t') } else { line };
                if line == delimiter {
                    end = line_start;
                    break;
                }
            }
            self.text[start..end].clone_into(&mut self.state.script.bodies[body]);
        }
    }

    fn end_command(&mut self, place: &mut Place, depth: usize, pipes: bool) {
        let mut builder = std::mem::take(&mut place.builder);
        let piped = std::mem::replace(&mut place.piped, pipes);
        if let Some((name, true)) = builder.loops.take() {
            builder.values.truncate(MOST_VALUES);
            self.state.set(name, builder.values);
            return;
        }
        if builder.command.words.is_empty() && builder.command.redirects.is_empty() {
            for (name, value) in builder.assignments {
                self.state.set(name, vec![value]);
            }
            return;
        }
        builder.command.piped = piped;
        builder.command.depth = depth + place.subshells;
        self.state.script.commands.push(builder.command);
    }
}

impl State {
    fn set(&mut self, name: String, values: Vec<Word>) {
        if values.iter().map(|value| value.text.len()).sum::<usize>() > LONGEST_VALUE {
            self.variables.remove(&name);
        } else {
            self.variables.insert(name, values);
        }
    }
}

impl Builder {
    fn is_empty(&self) -> bool {
        self.command.words.is_empty() && self.command.redirects.is_empty() && self.assignments.is_empty()
    }

    fn is_condition(&self) -> bool {
        let words = &self.command.words;
        words.first().is_some_and(|word| word.text == "[[")
            && words.last().is_some_and(|word| word.text != "]]")
    }

    fn take(&mut self, word: Lexed, cases: &mut usize) {
        if self.is_for {
            return self.take_loop(word);
        }
        if std::mem::take(&mut self.skips_name) {
            return;
        }
        if self.command.words.is_empty() {
            if let Some(equals) = word.assignment {
                let name = word.text[..equals].trim_end_matches('+').to_owned();
                let value = Word { text: word.text[equals + 1..].to_owned(), pattern: word.pattern };
                self.assignments.push((name, value));
                return;
            }
            if !word.quoted {
                match word.text.as_str() {
                    "if" | "then" | "elif" | "else" | "fi" | "do" | "done" | "while" | "until" | "!"
                    | "{" | "}" => {
                        return;
                    }
                    "for" | "select" => {
                        self.is_for = true;
                        return;
                    }
                    "function" => {
                        self.skips_name = true;
                        return;
                    }
                    "case" => *cases += 1,
                    "esac" => {
                        *cases = cases.saturating_sub(1);
                        return;
                    }
                    _ => {}
                }
            }
        }
        let pattern = word.pattern;
        if self.command.words.is_empty() {
            self.command.words.reserve(8);
        }
        self.command.words.extend(word.texts().map(|text| Word { text, pattern }));
    }

    fn take_loop(&mut self, word: Lexed) {
        match &mut self.loops {
            None => self.loops = Some((word.text, false)),
            Some((_, seen @ false)) => *seen = word.text == "in",
            Some((_, true)) if self.values.len() <= MOST_VALUES => {
                let pattern = word.pattern;
                self.values.extend(word.texts().map(|text| Word { text, pattern }));
            }
            Some(_) => {}
        }
    }
}
