//! Interprets the `.gitignore` at the top of a package as Prime's program does.
//!
//! The published files determine the content hash, so this follows the rules of the Python package `gitignore_parser`
//! that Prime uses, even where they differ from git: `name/` also ignores a file of that name, `!name/` never includes
//! anything again, and a character class may match a slash.

/// Rules of one file. The last matching rule decides.
#[derive(Debug, Default)]
pub(crate) struct IgnoreRules(Vec<Rule>);

#[derive(Debug)]
struct Rule {
    parts: Vec<Part>,
    anchored: bool,
    end: End,
    ignores: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Part {
    Literal(char),
    /// `?`
    One,
    /// `*`
    Name,
    /// `**`
    Anything,
    /// `**/`
    Directories,
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
}

#[derive(Debug, PartialEq, Eq)]
enum End {
    Whole,
    /// The path or a directory above it.
    Within,
    /// Only a path with a slash at its end, and no path here has one.
    Never,
}

impl IgnoreRules {
    pub(crate) fn parse(text: &str) -> Self {
        Self(text.lines().filter_map(Rule::parse).collect())
    }

    /// Whether a path below the top, separated by `/`, is ignored.
    pub(crate) fn ignores(&self, path: &str) -> bool {
        let path: Vec<char> = path.chars().collect();
        self.0.iter().rev().find(|rule| rule.matches(&path)).is_some_and(|rule| rule.ignores)
    }
}

impl IgnoreRules {
    /// Whether a rule matches a path or a directory above it; used for lists of files to include.
    pub(crate) fn covers(&self, path: &str) -> bool {
        self.ignores(path) || path.match_indices('/').any(|(end, _)| self.ignores(&path[..end]))
    }
}

impl Rule {
    fn parse(line: &str) -> Option<Self> {
        if line.trim().is_empty() || line.starts_with('#') {
            return None;
        }
        let (ignores, pattern) = match line.strip_prefix('!') {
            Some(rest) => (false, rest),
            None => (true, line),
        };
        let pattern = single_stars(pattern);
        if pattern.trim_end() == "/" || pattern.is_empty() {
            return None;
        }
        let directory_only = pattern.ends_with('/');
        let without_last: String = pattern.chars().take(pattern.chars().count() - 1).collect();
        let mut anchored = without_last.contains('/');
        let mut pattern = pattern.strip_prefix('/').unwrap_or(&pattern).to_owned();
        if let Some(rest) = pattern.strip_prefix("**") {
            anchored = false;
            pattern = rest.to_owned();
        }
        let pattern = pattern.strip_prefix('/').unwrap_or(&pattern);
        let pattern = pattern.strip_suffix('/').unwrap_or(pattern);
        let pattern = match pattern.strip_prefix('\\') {
            Some(rest) if rest.starts_with(['#', '!']) => rest,
            _ => pattern,
        };
        let end = match (directory_only, ignores) {
            (false, _) => End::Whole,
            (true, true) => End::Within,
            (true, false) => End::Never,
        };
        let parts = if pattern.is_empty() { vec![Part::Anything] } else { parts(&without_blanks(pattern)) };
        Some(Self { parts, anchored, end, ignores })
    }

    fn matches(&self, path: &[char]) -> bool {
        // Positions in the path that the pattern may have reached so far.
        let mut reached: Vec<bool> =
            (0..=path.len()).map(|at| at == 0 || (!self.anchored && path[at - 1] == '/')).collect();
        for part in &self.parts {
            reached = part.advance(path, &reached);
        }
        match self.end {
            End::Never => false,
            End::Whole => reached[path.len()],
            End::Within => (0..=path.len()).any(|at| reached[at] && path.get(at).is_none_or(|c| *c == '/')),
        }
    }
}

impl Part {
    fn advance(&self, path: &[char], from: &[bool]) -> Vec<bool> {
        let mut to = vec![false; from.len()];
        match self {
            Self::Name => {
                for at in 0..from.len() {
                    to[at] = from[at] || (at > 0 && to[at - 1] && path[at - 1] != '/');
                }
            }
            Self::Anything => {
                for at in 0..from.len() {
                    to[at] = from[at] || (at > 0 && to[at - 1]);
                }
            }
            Self::Directories => {
                let mut started = false;
                for at in 0..from.len() {
                    to[at] = from[at] || (started && at > 0 && path[at - 1] == '/');
                    started |= from[at];
                }
            }
            Self::Literal(_) | Self::One | Self::Class { .. } => {
                for at in 1..from.len() {
                    to[at] = from[at - 1] && self.takes(path[at - 1]);
                }
            }
        }
        to
    }

    fn takes(&self, c: char) -> bool {
        match self {
            Self::Literal(expected) => c == *expected,
            Self::One => c != '/',
            Self::Class { negated, ranges } => {
                ranges.iter().any(|(first, last)| (*first..=*last).contains(&c)) != *negated
            }
            Self::Name | Self::Anything | Self::Directories => false,
        }
    }
}

/// Two or more stars next to anything but a slash count as one.
fn single_stars(pattern: &str) -> String {
    let chars: Vec<char> = pattern.chars().collect();
    let mut text = String::new();
    let mut at = 0;
    while at < chars.len() {
        let stars = chars[at..].iter().take_while(|c| **c == '*').count();
        if stars < 2 {
            text.push(chars[at]);
            at += 1;
            continue;
        }
        let beside = |c: Option<&char>| c.is_some_and(|c| *c != '/');
        let before = at.checked_sub(1).and_then(|index| chars.get(index));
        let alone = !beside(before) && !beside(chars.get(at + stars));
        text.push_str(if alone { "**" } else { "*" });
        at += stars;
    }
    text
}

/// Trailing blanks count only after a backslash.
fn without_blanks(pattern: &str) -> String {
    let trimmed = pattern.trim_end_matches(' ');
    match trimmed.strip_suffix('\\') {
        Some(start) if trimmed.len() < pattern.len() => format!("{start} "),
        _ => trimmed.to_owned(),
    }
}

fn parts(pattern: &str) -> Vec<Part> {
    let chars: Vec<char> = pattern.chars().collect();
    let mut parts = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        let rest = &chars[at + 1..];
        at += 1;
        parts.push(match chars[at - 1] {
            '*' if rest.starts_with(&['*', '/']) => {
                at += 2;
                Part::Directories
            }
            '*' if rest.starts_with(&['*']) => {
                at += 1;
                Part::Anything
            }
            '*' => Part::Name,
            '?' => Part::One,
            '[' => match class(rest) {
                Some((part, length)) => {
                    at += length;
                    part
                }
                None => Part::Literal('['),
            },
            c => Part::Literal(c),
        });
    }
    parts
}

/// A character class after its `[`, and its length.
fn class(rest: &[char]) -> Option<(Part, usize)> {
    let negated = rest.first() == Some(&'!');
    let start = usize::from(negated);
    // A bracket at the very beginning belongs to the class.
    let skipped = start + usize::from(rest.get(start) == Some(&']'));
    let close = skipped + rest.get(skipped..)?.iter().position(|c| *c == ']')?;
    let members: Vec<char> = rest[start..close].iter().copied().filter(|c| *c != '/').collect();
    let mut ranges = Vec::new();
    let mut at = 0;
    while at < members.len() {
        if at + 2 < members.len() && members[at + 1] == '-' {
            ranges.push((members[at], members[at + 2]));
            at += 3;
        } else {
            ranges.push((members[at], members[at]));
            at += 1;
        }
    }
    Some((Part::Class { negated, ranges }, close + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_match_as_in_primes_program() {
        let cases: [(&str, &str, bool); 30] = [
            ("*.log", "a.log", true),
            ("*.log", "x/y/a.log", true),
            ("*.log", "a.log.txt", false),
            ("/a.py", "a.py", true),
            ("/a.py", "x/a.py", false),
            ("x/a.py", "x/a.py", true),
            ("x/a.py", "y/x/a.py", false),
            ("data/", "data", true),
            ("data/", "x/data/deep/file", true),
            ("data/", "database", false),
            ("**/tmp", "a/b/tmp", true),
            ("**/tmp", "tmp", true),
            ("a/**/b", "a/b", true),
            ("a/**/b", "a/x/y/b", true),
            ("a/**/b", "ab", false),
            ("a/**", "a/x/y", true),
            ("a**b", "axxb", true),
            ("a**b", "ax/xb", false),
            ("?.py", "a.py", true),
            ("?.py", "ab.py", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[!a-c]x", "dx", true),
            ("[x", "[x", true),
            ("# no", "# no", false),
            ("\\#yes", "#yes", true),
            ("a.b  ", "a.b", true),
            ("a.b", "axb", false),
            ("", "a", false),
            ("/", "a", false),
        ];
        for (rule, path, expected) in cases {
            assert_eq!(IgnoreRules::parse(rule).ignores(path), expected, "{rule:?} on {path:?}");
        }
    }

    #[test]
    fn the_last_match_decides_and_directories_do_not_come_back() {
        let rules = IgnoreRules::parse("*.txt\r\n!keep.txt\nout/\n!out/\n");
        assert!(rules.ignores("a.txt"));
        assert!(!rules.ignores("x/keep.txt"));
        assert!(rules.ignores("out/a"));
    }

    #[test]
    fn hostile_patterns_take_no_time() {
        let rules = IgnoreRules::parse(&format!("{}b", "*a".repeat(60)));
        assert!(!rules.ignores(&"a".repeat(3000)));
    }
}
