//! A hand-written parser for JSON and common mistakes in it: the grammar of `Parser` in `python/verify.py`, function
//! by function.
//!
//! Accepted mistakes: single quotes, trailing commas, comments, unquoted keys, `True`, `None`, `NaN`, numbers with a
//! unit, `NumPy` scalars. A strict parser accepts none of them.

use super::MAX_DEPTH;
use super::numeral::digits_end;
use super::text::{is_minus, is_space};

/// A value as written.
#[derive(Clone, Debug)]
pub(super) enum Value {
    /// Not in quotes: a number, perhaps with a unit, or a word such as `true` and `null`.
    Bare(String),
    Quoted(String),
    List(Vec<Self>),
    /// An object: its pairs in the order written, repeated keys included.
    Object(Vec<(String, Self)>),
}

impl Value {
    /// The text of a scalar.
    pub(super) fn scalar(&self) -> Option<&str> {
        match self {
            Self::Bare(text) | Self::Quoted(text) => Some(text),
            Self::List(_) | Self::Object(_) => None,
        }
    }

    /// Whether nothing was given: `null`, `None` or an empty text.
    pub(super) fn is_blank(&self) -> bool {
        match self {
            Self::Bare(text) if text.eq_ignore_ascii_case("null") || text.eq_ignore_ascii_case("none") => {
                true
            }
            Self::Bare(text) | Self::Quoted(text) => text.chars().all(is_space),
            Self::List(_) | Self::Object(_) => false,
        }
    }

    /// The value on one line.
    pub(super) fn show(&self) -> String {
        let mut shown = String::new();
        self.show_into(&mut shown);
        shown
    }

    fn show_into(&self, shown: &mut String) {
        match self {
            Self::Bare(text) | Self::Quoted(text) => shown.push_str(text),
            Self::List(items) => {
                shown.push('[');
                for (at, item) in items.iter().enumerate() {
                    shown.push_str(if at == 0 { "" } else { ", " });
                    item.show_into(shown);
                }
                shown.push(']');
            }
            Self::Object(pairs) => {
                shown.push('{');
                for (at, (key, item)) in pairs.iter().enumerate() {
                    shown.push_str(if at == 0 { "" } else { ", " });
                    shown.push_str(key);
                    shown.push_str(": ");
                    item.show_into(shown);
                }
                shown.push('}');
            }
        }
    }
}

/// There is no object here; the parser's `at` is where it stopped.
#[derive(Debug)]
pub(super) struct Fail;

/// A parser over characters. `at` is where it stopped, also after a failure: the caller limits the total distance of
/// failed attempts.
pub(super) struct Parser<'a> {
    text: &'a [char],
    strict: bool,
    /// The position of the next character.
    pub(super) at: usize,
}

impl<'a> Parser<'a> {
    pub(super) fn relaxed(text: &'a [char]) -> Self {
        Self { text, strict: false, at: 0 }
    }

    pub(super) fn strict(text: &'a [char]) -> Self {
        Self { text, strict: true, at: 0 }
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    fn is_blank(&self, c: char) -> bool {
        if self.strict { matches!(c, ' ' | '\t' | '\r' | '\n') } else { is_space(c) }
    }

    fn find(&self, wanted: char, from: usize) -> Option<usize> {
        self.text.get(from..)?.iter().position(|c| *c == wanted).map(|offset| from + offset)
    }

    /// Skips white space and comments.
    pub(super) fn space(&mut self) -> Result<(), Fail> {
        while let Some(c) = self.peek() {
            let next = self.text.get(self.at + 1).copied();
            if self.is_blank(c) {
                self.at += 1;
            } else if self.strict {
                return Ok(());
            } else if c == '#' || (c == '/' && next == Some('/')) {
                self.at = self.find('\n', self.at).unwrap_or(self.text.len());
            } else if c == '/' && next == Some('*') {
                let body = self.at + 2;
                let end = self.text[body..].windows(2).position(|pair| pair == ['*', '/']);
                self.at = end.map_or(self.text.len(), |end| body + end + 2);
                if end.is_none() {
                    return Err(Fail);
                }
            } else {
                return Ok(());
            }
        }
        Ok(())
    }

    fn value(&mut self, depth: usize) -> Result<Value, Fail> {
        match self.peek() {
            Some('{') => self.object(depth + 1),
            Some('[') => self.array(depth + 1),
            Some(quote) if self.is_quote(quote) => self.string(quote).map(Value::Quoted),
            _ => self.bare(),
        }
    }

    fn is_quote(&self, c: char) -> bool {
        c == '"' || (c == '\'' && !self.strict)
    }

    /// Parses the object at `at`, which is an opening brace.
    pub(super) fn object(&mut self, depth: usize) -> Result<Value, Fail> {
        if depth > MAX_DEPTH {
            return Err(Fail);
        }
        let mut pairs = Vec::new();
        self.at += 1;
        self.space()?;
        while self.peek() != Some('}') {
            let key = self.key()?;
            self.space()?;
            if self.peek() != Some(':') {
                return Err(Fail);
            }
            self.at += 1;
            self.space()?;
            pairs.push((key, self.value(depth)?));
            self.separator('}')?;
        }
        self.at += 1;
        Ok(Value::Object(pairs))
    }

    fn array(&mut self, depth: usize) -> Result<Value, Fail> {
        if depth > MAX_DEPTH {
            return Err(Fail);
        }
        let mut items = Vec::new();
        self.at += 1;
        self.space()?;
        while self.peek() != Some(']') {
            items.push(self.value(depth)?);
            self.separator(']')?;
        }
        self.at += 1;
        Ok(Value::List(items))
    }

    /// Expects a comma, or the closing bracket.
    fn separator(&mut self, close: char) -> Result<(), Fail> {
        self.space()?;
        if self.peek() == Some(close) {
            return Ok(());
        }
        if self.peek() != Some(',') {
            return Err(Fail);
        }
        self.at += 1;
        self.space()?;
        if self.strict && self.peek() == Some(close) { Err(Fail) } else { Ok(()) }
    }

    fn key(&mut self) -> Result<String, Fail> {
        if let Some(quote) = self.peek().filter(|c| self.is_quote(*c)) {
            return self.string(quote);
        }
        let start = self.at;
        while !self.strict
            && self.peek().is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
        {
            self.at += 1;
        }
        if self.at == start { Err(Fail) } else { Ok(self.text[start..self.at].iter().collect()) }
    }

    /// Parses the string at `at`, which is its opening quote.
    pub(super) fn string(&mut self, quote: char) -> Result<String, Fail> {
        let mut read = String::new();
        let mut i = self.at + 1;
        loop {
            match self.text.get(i) {
                None => {
                    self.at = self.text.len();
                    return Err(Fail);
                }
                Some(c) if *c == quote => break,
                Some('\\') if let Some(next) = self.escape(i, &mut read) => i = next,
                Some(c) if *c == '\\' || (self.strict && *c < ' ') => {
                    if self.find(quote, i).is_none() {
                        self.at = self.text.len();
                    }
                    return Err(Fail);
                }
                Some(c) => {
                    read.push(*c);
                    i += 1;
                }
            }
        }
        self.at = i + 1;
        Ok(read)
    }

    /// Decodes the escape at `slash` and returns the next position; `None` if it is invalid in strict JSON.
    fn escape(&self, slash: usize, read: &mut String) -> Option<usize> {
        let c = self.text.get(slash + 1).copied().unwrap_or('\0');
        let plain = match c {
            'n' => Some('\n'),
            't' => Some('\t'),
            'r' => Some('\r'),
            'b' => Some('\u{8}'),
            'f' => Some('\u{c}'),
            '/' | '\\' | '"' => Some(c),
            '\'' if !self.strict => Some(c),
            _ => None,
        };
        if let Some(plain) = plain {
            read.push(plain);
            return Some(slash + 2);
        }
        let width = match c {
            'u' => 4,
            'x' if !self.strict => 2,
            _ => 0,
        };
        let Some(code) = self.hexadecimal(slash + 2, width) else {
            if self.strict {
                return None;
            }
            read.push('\\');
            return Some(slash + 1);
        };
        let end = slash + 2 + width;
        if (0xd800..0xdc00).contains(&code) && self.text.get(end..end + 2) == Some(&['\\', 'u']) {
            let low = self.hexadecimal(end + 2, 4).filter(|low| (0xdc00..0xe000).contains(low));
            if let Some(low) = low {
                read.extend(char::from_u32(0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00)));
                return Some(end + 6);
            }
        }
        // An unpaired surrogate is not a character.
        read.push(char::from_u32(code).unwrap_or('\u{fffd}'));
        Some(end)
    }

    fn hexadecimal(&self, start: usize, width: usize) -> Option<u32> {
        let digits = self.text.get(start..start + width).filter(|digits| !digits.is_empty())?;
        digits.iter().try_fold(0, |code, c| c.to_digit(16).map(|digit| code * 16 + digit))
    }

    fn bare(&mut self) -> Result<Value, Fail> {
        let start = self.at;
        while let Some(c) = self.peek() {
            let comment = c == '/' && matches!(self.text.get(self.at + 1), Some('/' | '*'));
            if comment || matches!(c, ',' | '}' | ']' | '\n' | '\r' | '#') {
                break;
            }
            if matches!(c, '"' | '\'' | '`' | '{' | '[' | ':' | '<' | '=' | '>' | ';' | '|' | '$') {
                return Err(Fail);
            }
            self.at += 1;
        }
        let mut token = &self.text[start..self.at];
        while let [rest @ .., c] = token
            && self.is_blank(*c)
        {
            token = rest;
        }
        let token = if self.strict { strict_token(token) } else { relaxed_token(token) };
        token.map(|token| Value::Bare(token.iter().collect())).ok_or(Fail)
    }
}

/// A literal or number of standard JSON.
fn strict_token(token: &[char]) -> Option<&[char]> {
    let is = |word: &str| token.iter().copied().eq(word.chars());
    if is("true") || is("false") || is("null") {
        return Some(token);
    }
    let first = usize::from(token.first() == Some(&'-'));
    let mut i = digits_end(token, first);
    if i == first || token.len() > 128 || (token[first] == '0' && i > first + 1) {
        return None;
    }
    if token.get(i) == Some(&'.') {
        let start = i + 1;
        i = digits_end(token, start);
        if i == start {
            return None;
        }
    }
    if matches!(token.get(i), Some('e' | 'E')) {
        let start = if matches!(token.get(i + 1), Some('+' | '-')) { i + 2 } else { i + 1 };
        i = digits_end(token, start);
        if i == start {
            return None;
        }
    }
    (i == token.len()).then_some(token)
}

/// A word such as `true`, or anything that begins like a number; scalars as `NumPy` prints them are unwrapped.
fn relaxed_token(mut token: &[char]) -> Option<&[char]> {
    let is = |token: &[char], word: &str| token.iter().copied().eq(word.chars());
    if token.starts_with(&['n', 'p', '.']) {
        let bracket = token.iter().position(|c| *c == '(');
        if is(token, "np.True_") || is(token, "np.False_") {
            token = &token[3..token.len() - 1];
        } else if let (Some(bracket), Some(')')) = (bracket, token.last()) {
            token = trim(&token[bracket + 1..token.len() - 1]);
        }
    }
    let unsigned = match token {
        [c, rest @ ..] if is_minus(*c) || matches!(c, '+' | '~' | '≈') => trim_start(rest),
        _ => token,
    };
    let like = |token: &[char], word: &str| token.iter().map(char::to_ascii_lowercase).eq(word.chars());
    let words = ["true", "false", "null", "none", "nan", "inf", "infinity"];
    if words.iter().any(|word| like(token, word))
        || ["inf", "infinity", "nan"].iter().any(|word| like(unsigned, word))
    {
        return Some(token);
    }
    let begins = if unsigned.first() == Some(&'.') { unsigned.get(1) } else { unsigned.first() };
    begins.is_some_and(char::is_ascii_digit).then_some(token)
}

pub(super) fn trim_start(mut token: &[char]) -> &[char] {
    while let [c, rest @ ..] = token
        && is_space(*c)
    {
        token = rest;
    }
    token
}

/// Removes white space at both ends.
pub(super) fn trim(token: &[char]) -> &[char] {
    let mut token = trim_start(token);
    while let [rest @ .., c] = token
        && is_space(*c)
    {
        token = rest;
    }
    token
}
