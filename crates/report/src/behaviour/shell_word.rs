//! The words of a command line: quotes, escapes, expansions.

use super::shell::{DEEPEST, LONGEST_VALUE, MOST_VALUES, Parser, Word};

/// Most bytes that variables may add to a command line.
const MOST_EXPANDED: usize = 1 << 20;

/// A word being parsed: one text, or several if it contains the variable of a loop.
#[derive(Default)]
pub(crate) struct Lexed {
    pub(crate) text: String,
    pub(crate) others: Vec<String>,
    pub(crate) pattern: bool,
    pub(crate) quoted: bool,
    /// The position of its first plain `=`, if only a name precedes it.
    pub(crate) assignment: Option<usize>,
}

impl Parser<'_, '_> {
    pub(crate) fn word(&mut self, depth: usize) -> Lexed {
        let mut word = Lexed::default();
        while let Some(byte) = self.byte(0) {
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')' => break,
                b'\\' => {
                    self.at += 1;
                    let next = self.text[self.at..].chars().next();
                    self.at += next.map_or(0, char::len_utf8);
                    if let Some(next) = next.filter(|next| *next != '\n') {
                        word.quoted = true;
                        word.push(next.encode_utf8(&mut [0; 4]));
                    }
                }
                b'\'' => {
                    let end = self.find_from(self.at + 1, b'\'');
                    word.quoted = true;
                    word.push(&self.text[self.at + 1..end]);
                    self.at = (end + 1).min(self.text.len());
                }
                b'"' => {
                    self.at += 1;
                    word.quoted = true;
                    self.double_quoted(&mut word, depth);
                }
                b'$' => self.dollar(&mut word, depth, false),
                b'`' => self.backtick(&mut word, depth),
                _ => {
                    let start = self.at;
                    self.plain(&mut word);
                    word.push(&self.text[start..self.at]);
                }
            }
        }
        word
    }

    /// A run of bytes that stand for themselves or form a pattern.
    fn plain(&mut self, word: &mut Lexed) {
        let start = self.at;
        while let Some(byte) = self.byte(0) {
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')' | b'\\'
                | b'\'' | b'"' | b'$' | b'`' => break,
                b'*' | b'?' | b'[' => word.pattern = true,
                b'{' => word.pattern |= self.byte(1).is_some_and(|next| !next.is_ascii_whitespace()),
                b'=' if word.assignment.is_none() && !word.quoted && word.text.is_empty() => {
                    let name = self.text[start..self.at].trim_end_matches('+');
                    if is_name(name) {
                        word.assignment = Some(self.at - start);
                    }
                }
                _ => {}
            }
            self.at += 1;
        }
    }

    fn double_quoted(&mut self, word: &mut Lexed, depth: usize) {
        while let Some(byte) = self.byte(0) {
            match byte {
                b'"' => {
                    self.at += 1;
                    return;
                }
                b'\\' => {
                    let special = matches!(self.byte(1), Some(b'"' | b'\\' | b'$' | b'`'));
                    if self.byte(1) == Some(b'\n') {
                        self.at += 2;
                        continue;
                    }
                    let start = self.at + usize::from(special);
                    self.at = start + 1;
                    word.push(&self.text[start..self.at]);
                }
                b'$' => self.dollar(word, depth, true),
                b'`' => self.backtick(word, depth),
                _ => {
                    let start = self.at;
                    while self.byte(0).is_some_and(|byte| !matches!(byte, b'"' | b'\\' | b'$' | b'`')) {
                        self.at += 1;
                    }
                    word.push(&self.text[start..self.at]);
                }
            }
        }
    }

    fn dollar(&mut self, word: &mut Lexed, depth: usize, in_quotes: bool) {
        let start = self.at;
        self.at += 1;
        match self.byte(0) {
            Some(b'(') if self.byte(1) == Some(b'(') => {
                self.skip_balanced();
                word.push("$(())");
            }
            Some(b'(') => {
                self.at += 1;
                let first = self.state.script.commands.len();
                self.substitution(depth);
                let commands = &mut self.state.script.commands;
                let is_pwd = commands.len() == first + 1
                    && commands[first].words.len() == 1
                    && commands[first].words[0].text == "pwd";
                if is_pwd {
                    commands.truncate(first);
                }
                word.push(if is_pwd { "." } else { "$()" });
            }
            Some(b'{') => {
                let end = self.brace_end();
                let name = self.text[start + 2..end].to_owned();
                self.at = (end + 1).min(self.text.len());
                self.variable(word, &name, start);
            }
            Some(b'\'') if !in_quotes => self.ansi_quoted(word),
            Some(byte) if byte == b'_' || byte.is_ascii_alphabetic() => {
                let name_start = self.at;
                while self.byte(0).is_some_and(|byte| byte == b'_' || byte.is_ascii_alphanumeric()) {
                    self.at += 1;
                }
                let name = self.text[name_start..self.at].to_owned();
                self.variable(word, &name, start);
            }
            Some(b'0'..=b'9' | b'?' | b'@' | b'#' | b'$' | b'!' | b'*' | b'-') => {
                self.at += 1;
                word.push(&self.text[start..self.at]);
            }
            _ => word.push("$"),
        }
    }

    pub(crate) fn substitution(&mut self, depth: usize) {
        if depth < DEEPEST {
            self.list(true, depth + 1);
        } else {
            self.at -= 1;
            self.skip_balanced();
        }
    }

    fn variable(&mut self, word: &mut Lexed, name: &str, start: usize) {
        if name == "PWD" {
            return word.push(".");
        }
        let Some(values) = self.state.variables.get(name) else {
            return word.push(&self.text[start..self.at]);
        };
        let size: usize = values.iter().map(|value| value.text.len()).sum();
        let copies = (1 + word.others.len()) * values.len();
        let growth = size + copies * (word.text.len() + LONGEST_VALUE.min(size));
        if copies > MOST_VALUES || self.state.expanded + growth > MOST_EXPANDED {
            return word.push(&self.text[start..self.at]);
        }
        self.state.expanded += growth;
        word.pattern |= values.iter().any(|value| value.pattern);
        word.expand(values);
    }

    fn backtick(&mut self, word: &mut Lexed, depth: usize) {
        self.at += 1;
        let mut inner = String::new();
        loop {
            let start = self.at;
            while self.byte(0).is_some_and(|byte| !matches!(byte, b'`' | b'\\')) {
                self.at += 1;
            }
            inner.push_str(&self.text[start..self.at]);
            match self.byte(0) {
                Some(b'\\') => {
                    let keeps = !matches!(self.byte(1), Some(b'`' | b'\\' | b'$'));
                    if keeps {
                        inner.push('\\');
                    }
                    self.at += 1;
                    let next = self.text[self.at..].chars().next();
                    self.at += next.map_or(0, char::len_utf8);
                    inner.extend(next);
                }
                Some(_) => {
                    self.at += 1;
                    break;
                }
                None => break,
            }
        }
        if depth < DEEPEST {
            Parser { text: &inner, at: 0, state: self.state }.list(false, depth + 1);
        }
        word.push("$()");
    }

    fn ansi_quoted(&mut self, word: &mut Lexed) {
        self.at += 1;
        word.quoted = true;
        while let Some(byte) = self.byte(0) {
            let start = self.at;
            match byte {
                b'\'' => {
                    self.at += 1;
                    return;
                }
                b'\\' => {
                    self.at += 1;
                    let next = self.text[self.at..].chars().next();
                    self.at += next.map_or(0, char::len_utf8);
                    match next {
                        Some('n') => word.push("\n"),
                        Some('t') => word.push("\t"),
                        Some(next @ ('\\' | '\'' | '"')) => word.push(next.encode_utf8(&mut [0; 4])),
                        _ => word.push(&self.text[start..self.at]),
                    }
                }
                _ => {
                    while self.byte(0).is_some_and(|byte| !matches!(byte, b'\'' | b'\\')) {
                        self.at += 1;
                    }
                    word.push(&self.text[start..self.at]);
                }
            }
        }
    }

    /// The end of `${…}`, starting at its brace.
    fn brace_end(&self) -> usize {
        let mut open = 0_usize;
        for (offset, byte) in self.text.as_bytes()[self.at..].iter().enumerate() {
            match byte {
                b'{' => open += 1,
                b'}' => {
                    open -= 1;
                    if open == 0 {
                        return self.at + offset;
                    }
                }
                _ => {}
            }
        }
        self.text.len()
    }

    /// Skips to the position after the parenthesis that closes the current one.
    pub(crate) fn skip_balanced(&mut self) {
        let mut open = 0_usize;
        while let Some(byte) = self.byte(0) {
            self.at += 1;
            match byte {
                b'(' => open += 1,
                b')' => {
                    open = open.saturating_sub(1);
                    if open == 0 {
                        return;
                    }
                }
                b'\'' => self.at = (self.find_from(self.at, b'\'') + 1).min(self.text.len()),
                _ => {}
            }
        }
    }

    pub(crate) fn find_from(&self, from: usize, byte: u8) -> usize {
        let from = from.min(self.text.len());
        self.text.as_bytes()[from..].iter().position(|at| *at == byte).map_or(self.text.len(), |at| from + at)
    }
}

impl Lexed {
    fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.others.iter_mut().for_each(|other| other.push_str(text));
    }

    /// Appends each value to each text so far.
    fn expand(&mut self, values: &[Word]) {
        if let [value] = values {
            return self.push(&value.text);
        }
        let mut before = vec![std::mem::take(&mut self.text)];
        before.append(&mut self.others);
        let mut all =
            before.iter().flat_map(|text| values.iter().map(move |value| format!("{text}{}", value.text)));
        self.text = all.next().unwrap_or_default();
        self.others = all.collect();
    }

    pub(crate) fn texts(self) -> impl Iterator<Item = String> {
        std::iter::once(self.text).chain(self.others)
    }
}

fn is_name(text: &str) -> bool {
    text.bytes().next().is_some_and(|first| first == b'_' || first.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
}
