//! Finds the files that a piece of Python reads and writes, and whether it asserts anything. Names with plain paths are
//! followed, computed paths are not. Calls of the same shape in JavaScript are recognised as well.

use std::borrow::Cow;
use std::collections::HashMap;

use super::shell::Word;

/// Further tokens of a program are ignored.
const MOST_TOKENS: usize = 200_000;
/// Most paths that one name may represent.
const MOST_PATHS: usize = 64;
const LONGEST: usize = 1_024;
/// How deep nested expressions are followed.
const DEEPEST: usize = 8;
/// Most parts of a composed path.
const MOST_PARTS: usize = 16;
/// Most acts reported for one program.
const MOST_ACTS: usize = 4_096;

/// An effect of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CodeAct {
    Read(Word),
    Write(Word),
    Append(Word),
    List,
    Help,
    /// Asserts, or compares numbers within a tolerance.
    Assert,
    Compute,
}

/// The effects of a program, in the order of its text.
pub(crate) fn scan(code: &str) -> Vec<CodeAct> {
    let mut scanner = Scanner { tokens: tokens(code), names: HashMap::new(), acts: Vec::new() };
    scanner.run();
    scanner.acts
}

#[derive(Clone, Debug, PartialEq)]
enum Token<'t> {
    Name(&'t str),
    /// A string, and whether it has placeholders.
    Text(Cow<'t, str>, bool),
    Sign(u8),
    Line,
    Number,
}

fn tokens(code: &str) -> Vec<Token<'_>> {
    let bytes = code.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < bytes.len() && tokens.len() < MOST_TOKENS {
        let start = at;
        match bytes[at] {
            b'\n' => {
                tokens.push(Token::Line);
                at += 1;
            }
            b'#' => at += bytes[at..].iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len() - at),
            b'"' | b'\'' => {
                let (text, end) = quoted(code, at, false);
                tokens.push(Token::Text(text, false));
                at = end;
            }
            byte if byte == b'_' || byte.is_ascii_alphabetic() => {
                while bytes.get(at).is_some_and(|byte| *byte == b'_' || byte.is_ascii_alphanumeric()) {
                    at += 1;
                }
                let name = &code[start..at];
                let is_prefix = name.len() <= 2 && name.bytes().all(|b| b"rRbBfFuU".contains(&b));
                if is_prefix && matches!(bytes.get(at), Some(b'"' | b'\'')) {
                    let (text, end) = quoted(code, at, name.contains(['r', 'R']));
                    tokens.push(Token::Text(text, name.contains(['f', 'F'])));
                    at = end;
                } else {
                    tokens.push(Token::Name(name));
                }
            }
            byte if byte.is_ascii_digit() => {
                while bytes.get(at).is_some_and(|byte| *byte == b'.' || byte.is_ascii_alphanumeric()) {
                    at += 1;
                }
                tokens.push(Token::Number);
            }
            byte => {
                if !byte.is_ascii_whitespace() {
                    tokens.push(Token::Sign(byte));
                }
                at += 1;
            }
        }
    }
    tokens
}

/// The string that begins with the quote at `start`, and the position after it.
fn quoted(code: &str, start: usize, is_raw: bool) -> (Cow<'_, str>, usize) {
    let bytes = code.as_bytes();
    let quote = bytes[start];
    let triple = bytes[start..].starts_with(&[quote; 3]);
    let open = start + if triple { 3 } else { 1 };
    let mut at = open;
    let mut escaped = false;
    let end = loop {
        match bytes.get(at) {
            None => break bytes.len(),
            Some(b'\\') => {
                escaped = true;
                at = (at + 2).min(bytes.len());
            }
            Some(b'\n') if !triple => break at,
            Some(byte) if *byte == quote && (!triple || bytes[at..].starts_with(&[quote; 3])) => break at,
            Some(_) => at += 1,
        }
    };
    let text = &code[open..end];
    let text = if escaped && !is_raw && text.len() <= LONGEST {
        Cow::Owned(text.replace("\\\\", "\\").replace("\\'", "'").replace("\\\"", "\""))
    } else {
        Cow::Borrowed(text)
    };
    let closes = bytes.get(end) == Some(&quote);
    (text, (end + if closes { open - start } else { 0 }).min(bytes.len()))
}

struct Scanner<'t> {
    tokens: Vec<Token<'t>>,
    names: HashMap<&'t str, Vec<Word>>,
    acts: Vec<CodeAct>,
}

impl<'t> Scanner<'t> {
    fn run(&mut self) {
        let mut at = 0;
        let mut computes = false;
        let mut begins = true;
        while at < self.tokens.len() && self.acts.len() < MOST_ACTS {
            let starts = std::mem::replace(&mut begins, false);
            match self.tokens[at] {
                Token::Line | Token::Sign(b';' | b':') => begins = true,
                Token::Sign(b'*' | b'%' | b'^') => computes |= self.is_operand(at + 1),
                Token::Name("assert") if starts => self.acts.push(CodeAct::Assert),
                Token::Name("for") => self.bind_loop(at),
                Token::Name("math" | "np" | "numpy" | "scipy" | "sqrt" | "sum" | "round" | "solve") => {
                    computes = true;
                }
                _ => {}
            }
            if let (Token::Name(name), true) = (&self.tokens[at], starts) {
                self.bind(at, name);
            }
            if let Some(after) = self.method(at) {
                at = after;
                continue;
            }
            if let (Token::Name(name), true) = (&self.tokens[at], self.is_sign(at + 1, b'(')) {
                self.call(at, name);
            }
            at += 1;
        }
        if computes {
            self.acts.push(CodeAct::Compute);
        }
    }

    fn is_sign(&self, at: usize, sign: u8) -> bool {
        self.tokens.get(at) == Some(&Token::Sign(sign))
    }

    fn is_operand(&self, at: usize) -> bool {
        matches!(self.tokens.get(at), Some(Token::Number | Token::Name(_) | Token::Sign(b'(' | b'*')))
    }

    /// `name = path` at the beginning of a statement.
    fn bind(&mut self, at: usize, name: &'t str) {
        if !self.is_sign(at + 1, b'=') || self.is_sign(at + 2, b'=') {
            return;
        }
        match self.path(at + 2, 0) {
            Some((paths, after)) if self.ends(after) && is_short(&paths) => {
                self.names.insert(name, paths);
            }
            _ => {
                self.names.remove(name);
            }
        }
    }

    /// `for name in paths:`.
    fn bind_loop(&mut self, at: usize) {
        if let (Some(Token::Name(name)), Some(Token::Name("in"))) =
            (self.tokens.get(at + 1), self.tokens.get(at + 2))
            && let Some((paths, _)) = self.path(at + 3, 0)
            && is_short(&paths)
        {
            self.names.insert(name, paths);
        }
    }

    fn ends(&self, at: usize) -> bool {
        matches!(self.tokens.get(at), None | Some(Token::Line | Token::Sign(b';')))
    }

    /// A method of a path, such as `Path("a").read_text()`; returns the position after it.
    fn method(&mut self, at: usize) -> Option<usize> {
        let inside = at + usize::from(self.is_sign(at, b'('));
        let Some(Token::Name(first)) = self.tokens.get(inside) else { return None };
        if !self.names.contains_key(first) && !matches!(*first, "Path" | "PurePath" | "pathlib") {
            return None;
        }
        let (paths, after) = self.path(at, 0)?;
        let (Some(Token::Sign(b'.')), Some(Token::Name(method)), true) =
            (self.tokens.get(after), self.tokens.get(after + 1), self.is_sign(after + 2, b'('))
        else {
            return None;
        };
        let act: fn(Word) -> CodeAct = match *method {
            "read_text" | "read_bytes" => CodeAct::Read,
            "write_text" | "write_bytes" => CodeAct::Write,
            "open" => match self.tokens.get(after + 3) {
                Some(Token::Text(mode, _)) => by_mode(mode),
                _ => CodeAct::Read,
            },
            _ => return None,
        };
        self.acts.extend(paths.into_iter().map(act));
        Some(after + 3)
    }

    /// A call of a function by its name, whatever precedes the name.
    fn call(&mut self, at: usize, name: &str) {
        let act: fn(Word) -> CodeAct = match name {
            "open" => by_mode(&self.mode(at + 2)),
            "loadtxt" | "genfromtxt" | "load_workbook" | "PdfReader" | "Document" | "imread"
            | "readFileSync" | "fromfile" | "load" | "getline" => CodeAct::Read,
            "savefig" | "savetxt" | "save" | "savez" | "writeFileSync" | "imwrite" => CodeAct::Write,
            "appendFileSync" => CodeAct::Append,
            "copy" | "copy2" | "copyfile" | "move" | "rename" | "replace" => {
                // Strings and tables have methods of these names, too.
                let owner = at.checked_sub(2).map(|owner| &self.tokens[owner]);
                if let Some(Token::Name("os" | "shutil")) = owner {
                    self.copy(at + 2);
                }
                return;
            }
            "listdir" | "walk" | "scandir" | "iterdir" | "glob" | "rglob" | "readdirSync" => {
                return self.acts.push(CodeAct::List);
            }
            "help" | "dir" if at == 0 || !self.is_sign(at - 1, b'.') => return self.acts.push(CodeAct::Help),
            "isclose" | "allclose" | "assert_allclose" | "assertEqual" | "assertAlmostEqual" | "approx" => {
                return self.acts.push(CodeAct::Assert);
            }
            _ if name.starts_with("read_") => CodeAct::Read,
            _ if name.starts_with("to_") => CodeAct::Write,
            _ => return,
        };
        if let Some((paths, _)) = self.path(at + 2, 0) {
            self.acts.extend(paths.into_iter().map(act));
        }
    }

    fn copy(&mut self, at: usize) {
        let Some((from, comma)) = self.path(at, 0) else { return };
        if self.is_sign(comma, b',')
            && let Some((to, _)) = self.path(comma + 1, 0)
        {
            self.acts.extend(from.into_iter().map(CodeAct::Read));
            self.acts.extend(to.into_iter().map(CodeAct::Write));
        }
    }

    /// The mode in the arguments of `open`, starting at the first one.
    fn mode(&self, from: usize) -> String {
        let mut open = 0_usize;
        for (at, token) in self.tokens.iter().enumerate().skip(from).take(60) {
            match token {
                Token::Sign(b'(' | b'[') => open += 1,
                Token::Sign(b')' | b']') if open == 0 => break,
                Token::Sign(b')' | b']') => open -= 1,
                Token::Sign(b',') if open == 0 => {
                    let named = self.tokens.get(at + 1) == Some(&Token::Name("mode"));
                    if let Some(Token::Text(mode, _)) = self.tokens.get(if named { at + 3 } else { at + 1 }) {
                        return mode.to_string();
                    }
                }
                _ => {}
            }
        }
        String::new()
    }

    /// The possible paths of an expression, and the token after it.
    fn path(&self, at: usize, depth: usize) -> Option<(Vec<Word>, usize)> {
        let (mut paths, mut next) = self.atom(at, depth)?;
        for _ in 0..MOST_PARTS {
            let tail = match (self.tokens.get(next), self.tokens.get(next + 1)) {
                (Some(Token::Sign(b'/')), _) => {
                    let (tail, after) = self.atom(next + 1, depth)?;
                    next = after;
                    joined(&paths, &tail, "/")?
                }
                (Some(Token::Sign(b'+')), _) => {
                    let (tail, after) = self.atom(next + 1, depth)?;
                    next = after;
                    joined(&paths, &tail, "")?
                }
                (Some(Token::Sign(b'.')), Some(Token::Name(method @ ("glob" | "rglob")))) => {
                    let (mut tail, after) = self.atom(next + 3, depth)?;
                    for pattern in &mut tail {
                        pattern.pattern = true;
                        if *method == "rglob" {
                            pattern.text.insert_str(0, "**/");
                        }
                    }
                    next = after + 1;
                    joined(&paths, &tail, "/")?
                }
                (Some(Token::Sign(b'.')), Some(Token::Name("iterdir"))) => {
                    next += 4;
                    joined(&paths, &[Word { text: "*".into(), pattern: true }], "/")?
                }
                _ => return Some((paths, next)),
            };
            paths = tail;
        }
        None
    }

    fn atom(&self, at: usize, depth: usize) -> Option<(Vec<Word>, usize)> {
        if depth > DEEPEST {
            return None;
        }
        match self.tokens.get(at)? {
            Token::Text(text, false) if text.len() <= LONGEST => {
                Some((vec![Word { text: text.to_string(), pattern: false }], at + 1))
            }
            Token::Text(text, true) if text.len() <= LONGEST => Some((self.filled(text)?, at + 1)),
            Token::Sign(open @ (b'(' | b'[')) => {
                let (items, after) = self.items(at + 1, depth)?;
                let close = if *open == b'(' { b')' } else { b']' };
                self.is_sign(after, close).then_some((items.concat(), after + 1))
            }
            Token::Name(
                name @ ("Path" | "PurePath" | "PosixPath" | "str" | "sorted" | "list" | "glob" | "join"),
            ) if self.is_sign(at + 1, b'(') => {
                let (items, after) = self.items(at + 2, depth)?;
                if !self.is_sign(after, b')') {
                    return None;
                }
                let mut parts = items.into_iter();
                let mut paths = parts.next()?;
                if matches!(*name, "Path" | "PurePath" | "PosixPath" | "join") {
                    for part in parts {
                        paths = joined(&paths, &part, "/")?;
                    }
                }
                for path in &mut paths {
                    path.pattern |= *name == "glob";
                }
                Some((paths, after + 1))
            }
            Token::Name("os" | "path" | "pathlib" | "glob") if self.is_sign(at + 1, b'.') => {
                self.atom(at + 2, depth + 1)
            }
            Token::Name(name) => Some((self.names.get(name)?.clone(), at + 1)),
            _ => None,
        }
    }

    fn items(&self, mut at: usize, depth: usize) -> Option<(Vec<Vec<Word>>, usize)> {
        let mut items = Vec::new();
        loop {
            while self.tokens.get(at) == Some(&Token::Line) {
                at += 1;
            }
            if self.is_sign(at, b')') || self.is_sign(at, b']') {
                return Some((items, at));
            }
            let (item, after) = self.path(at, depth + 1)?;
            items.push(item);
            if items.len() > MOST_PATHS {
                return None;
            }
            at = after;
            while self.tokens.get(at) == Some(&Token::Line) {
                at += 1;
            }
            at += usize::from(self.is_sign(at, b','));
        }
    }

    /// A string whose placeholders are filled from known names.
    fn filled(&self, text: &str) -> Option<Vec<Word>> {
        let mut paths = vec![Word::default()];
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            let close = open + rest[open..].find('}')?;
            let values = self.names.get(rest[open + 1..close].trim())?;
            paths = joined(&paths, &[Word { text: rest[..open].to_owned(), pattern: false }], "")?;
            paths = joined(&paths, values, "")?;
            rest = &rest[close + 1..];
        }
        joined(&paths, &[Word { text: rest.to_owned(), pattern: false }], "")
    }
}

fn by_mode(mode: &str) -> fn(Word) -> CodeAct {
    if mode.len() > 4 {
        CodeAct::Read
    } else if mode.contains('a') {
        CodeAct::Append
    } else if mode.contains(['w', 'x', '+']) {
        CodeAct::Write
    } else {
        CodeAct::Read
    }
}

/// Whether a name may represent these paths: each use of it copies them.
fn is_short(paths: &[Word]) -> bool {
    paths.iter().map(|path| path.text.len()).sum::<usize>() <= 4 * LONGEST
}

/// Every combination of a first and a second part.
fn joined(first: &[Word], second: &[Word], separator: &str) -> Option<Vec<Word>> {
    if first.len() * second.len() > MOST_PATHS {
        return None;
    }
    let mut all = Vec::with_capacity(first.len() * second.len());
    for before in first {
        for after in second {
            if before.text.len() + after.text.len() > LONGEST {
                return None;
            }
            // As in Python, an absolute path replaces everything before it.
            let text = if separator == "/" && after.text.starts_with('/') {
                after.text.clone()
            } else {
                format!("{}{separator}{}", before.text, after.text)
            };
            all.push(Word { text, pattern: before.pattern || after.pattern });
        }
    }
    Some(all)
}
