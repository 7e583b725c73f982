//! Headers: reading `Name: Value`, and laying one set over another. Names are compared without regard to case.

use crate::config::options::Headers;

/// The two parts of `Name: Value`.
pub(crate) fn parts(line: &str) -> Option<(&str, &str)> {
    line.split_once(':').map(|(name, value)| (name.trim(), value.trim()))
}

/// The headers of lines that are of the form `Name: Value`.
pub(crate) fn from_lines(lines: &[String]) -> Headers {
    let parts = lines.iter().filter_map(|line| parts(line));
    parts.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// `upper` laid over `lower`. A header in both keeps its place in `lower` and takes its value from `upper`.
pub(crate) fn merged(upper: Option<Headers>, lower: Option<Headers>) -> Option<Headers> {
    let (Some(upper), Some(lower)) = (&upper, &lower) else { return upper.or(lower) };
    let mut merged = Headers::new();
    for (name, value) in lower {
        let (name, value) = find(upper, name).unwrap_or((name, value));
        merged.insert(name.clone(), value.clone());
    }
    for (name, value) in upper {
        merged.insert(name.clone(), value.clone());
    }
    Some(merged)
}

/// The header with this name, in any case.
fn find<'a>(headers: &'a Headers, name: &str) -> Option<(&'a String, &'a String)> {
    headers.get_key_value(name).or_else(|| headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)))
}
