//! Converts paths that agents write to a normal form, and matches shell patterns.

/// The path of workspaces inside the sandbox.
const WORKSPACE: &str = "/workspace";
/// Most alternatives in the braces of one pattern.
const MOST_ALTERNATIVES: usize = 16;
/// Longer patterns and paths match nothing.
const LONGEST: usize = 256;

/// A path in normal form: relative to the workspace if below it, absolute otherwise. `current` must have that form.
pub(crate) fn resolve(root: Option<&str>, current: &str, path: &str) -> String {
    let (mut absolute, start, rest) = match inside(root, path) {
        Some(rest) => (false, "", rest),
        None if path.starts_with('/') => (true, "", path),
        None => (current.starts_with('/'), current, path),
    };
    let mut resolved = String::with_capacity(start.len() + rest.len() + 2);
    for part in start.split('/').chain(rest.split('/')) {
        match part {
            "" | "." => {}
            ".." if resolved.is_empty() => absolute = true,
            ".." => resolved.truncate(resolved.rfind('/').unwrap_or(0)),
            part => {
                if !resolved.is_empty() {
                    resolved.push('/');
                }
                resolved.push_str(part);
            }
        }
    }
    if absolute {
        resolved.insert(0, '/');
        // A path that leaves the workspace may lead back into it.
        if let Some(rest) = inside(root, &resolved) {
            return rest.trim_start_matches('/').to_owned();
        }
    }
    resolved
}

/// The rest of a path below the workspace.
fn inside<'p>(root: Option<&str>, path: &'p str) -> Option<&'p str> {
    let below = |root: &str| {
        let rest = path.strip_prefix(root.trim_end_matches('/'))?;
        (rest.is_empty() || rest.starts_with('/')).then_some(rest)
    };
    root.filter(|root| !root.trim_matches('/').is_empty()).and_then(below).or_else(|| below(WORKSPACE))
}

pub(crate) fn base_name(path: &str) -> &str {
    let path = path.trim_end_matches('/');
    // Paths are short, so a plain loop is faster than a search made for long texts.
    path.bytes().rposition(|byte| byte == b'/').map_or(path, |slash| &path[slash + 1..])
}

/// Whether a path matches a pattern with `*`, `?`, `[…]`, `{a,b}` and `**`.
pub(crate) fn matches(pattern: &str, path: &str) -> bool {
    if pattern.len() > LONGEST || path.len() > LONGEST {
        return false;
    }
    let mut alternatives = vec![pattern.to_owned()];
    let mut at = 0;
    while at < alternatives.len() {
        match braces(&alternatives[at]) {
            Some(more) if alternatives.len() + more.len() <= MOST_ALTERNATIVES => {
                alternatives.swap_remove(at);
                alternatives.extend(more);
            }
            _ => at += 1,
        }
    }
    alternatives.iter().any(|pattern| wild(pattern.as_bytes(), path.as_bytes()))
}

/// The alternatives of the first braces in a pattern.
fn braces(pattern: &str) -> Option<Vec<String>> {
    let open = pattern.find('{')?;
    let close = open + pattern[open..].find('}')?;
    let inside = &pattern[open + 1..close];
    if !inside.contains(',') {
        return None;
    }
    let (before, after) = (&pattern[..open], &pattern[close + 1..]);
    Some(inside.split(',').map(|part| format!("{before}{part}{after}")).collect())
}

/// Follows all possible positions in the pattern at once, so that no pattern is slow.
fn wild(pattern: &[u8], path: &[u8]) -> bool {
    let mut places = vec![false; pattern.len() + 1];
    enter(pattern, 0, &mut places);
    for byte in path {
        let mut next = vec![false; pattern.len() + 1];
        for place in (0..pattern.len()).filter(|place| places[*place]) {
            if pattern[place] == b'*' {
                let deep = pattern.get(place + 1) == Some(&b'*');
                if deep || *byte != b'/' {
                    enter(pattern, place, &mut next);
                }
            } else if let Some(after) = one(pattern, place, *byte) {
                enter(pattern, after, &mut next);
            }
        }
        places = next;
    }
    places[pattern.len()]
}

/// Marks a position, and those that can be reached from it without a byte.
fn enter(pattern: &[u8], mut place: usize, places: &mut [bool]) {
    loop {
        places[place] = true;
        if pattern.get(place) != Some(&b'*') {
            return;
        }
        place += if pattern.get(place + 1) == Some(&b'*') { 2 } else { 1 };
        // `**/x` also matches `x`.
        if pattern[place - 1..].starts_with(b"*/") && place >= 2 && pattern[place - 2] == b'*' {
            places[place] = true;
            place += 1;
        }
    }
}

/// The position in the pattern after it has matched one byte.
fn one(pattern: &[u8], at: usize, byte: u8) -> Option<usize> {
    match *pattern.get(at)? {
        b'?' if byte != b'/' => Some(at + 1),
        b'[' => {
            let Some(length) = pattern[at + 1..].iter().skip(1).position(|end| *end == b']') else {
                return (byte == b'[').then_some(at + 1);
            };
            let set = &pattern[at + 1..at + 2 + length];
            let (negated, set) = match set {
                [b'!' | b'^', rest @ ..] => (true, rest),
                set => (false, set),
            };
            let mut found = false;
            let mut index = 0;
            while index < set.len() {
                if set.get(index + 1) == Some(&b'-') && index + 2 < set.len() {
                    found |= (set[index]..=set[index + 2]).contains(&byte);
                    index += 3;
                } else {
                    found |= set[index] == byte;
                    index += 1;
                }
            }
            (found != negated && byte != b'/').then_some(at + 3 + length)
        }
        plain => (plain == byte).then_some(at + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn paths_have_one_form() {
        for (current, path, resolved) in [
            ("", "/workspace/output.json", "output.json"),
            ("", "./output.json", "output.json"),
            ("", "output.json", "output.json"),
            ("inputs", "../output.json", "output.json"),
            ("inputs", "a.csv", "inputs/a.csv"),
            ("", "/workspace", ""),
            ("", "/workspaces/x", "/workspaces/x"),
            ("", "/tmp//x/../y", "/tmp/y"),
            ("/tmp", "a", "/tmp/a"),
            ("/tmp", "/workspace/a", "a"),
            ("", "../etc/passwd", "/etc/passwd"),
            ("/tmp", "../workspace/a", "a"),
            ("", "/srv/room/a", "a"),
        ] {
            assert_eq!(resolve(Some("/srv/room/"), current, path), resolved, "{current} {path}");
        }
        assert_eq!(base_name("a/b/"), "b");
    }

    #[test]
    fn patterns_match_as_in_a_shell() {
        for (pattern, path, fits) in [
            ("inputs/*.csv", "inputs/a.csv", true),
            ("*.csv", "inputs/a.csv", false),
            ("**/*.csv", "inputs/deep/a.csv", true),
            ("**/*.csv", "a.csv", true),
            ("**", "a/b", true),
            ("inputs/**", "inputs/a/b", true),
            ("{a,b}.csv", "b.csv", true),
            ("{a,b}.{csv,txt}", "a.txt", true),
            ("a?.c[sx]v", "ab.csv", true),
            ("[!a].csv", "a.csv", false),
            ("[a-c].csv", "b.csv", true),
            ("a[.csv", "a[.csv", true),
            ("*", "", true),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxbyy", false),
        ] {
            assert_eq!(matches(pattern, path), fits, "{pattern} {path}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(pattern in "[a{},*?\\[\\]!/é-]{0,40}", path in "[a/é.\\-]{0,20}") {
            matches(&pattern, &path);
            resolve(Some(&pattern), &path, &pattern);
        }

        #[test]
        fn a_plain_pattern_matches_itself_alone(path in "[a-c/.]{1,12}", other in "[a-c/.]{1,12}") {
            prop_assert_eq!(matches(&path, &other), path == other);
        }
    }
}
