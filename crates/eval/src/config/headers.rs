//! Headers: reading `Name: Value`, and laying one set over another. Names differ only in their letters, not in case.

use aec_base::problem::Problem;

use crate::config::check;
use crate::config::options::Headers;

/// More headers than servers take.
const MOST_HEADERS: usize = 100;

/// A check of a header: the key or flag it is from, its name and its value.
pub(crate) type Check = fn(&str, &str, &str) -> Result<(), Problem>;

/// Reads the values of a repeatable flag that takes `Name: Value`, such as `--header`. Every problem is reported.
pub fn parse_headers(flag: &str, lines: &[String]) -> Result<Headers, Vec<Problem>> {
    parse(flag, lines, check::header)
}

/// Reads the values of a repeatable flag that takes `Name: state key`, such as `--header-from-state`. Every problem is
/// reported.
pub fn parse_headers_from_state(flag: &str, lines: &[String]) -> Result<Headers, Vec<Problem>> {
    parse(flag, lines, check::header_from_state)
}

fn parse(flag: &str, lines: &[String], check: Check) -> Result<Headers, Vec<Problem>> {
    let mut headers = Headers::new();
    let add = |line: &String| add(&mut headers, flag, split(flag, line)?, check);
    let problems: Vec<Problem> = lines.iter().map(add).filter_map(Result::err).collect();
    if problems.is_empty() { Ok(headers) } else { Err(problems) }
}

/// Adds a header that passes its check and is not there yet.
pub(crate) fn add(
    to: &mut Headers,
    key: &str,
    (name, value): (&str, &str),
    check: Check,
) -> Result<(), Problem> {
    if to.len() == MOST_HEADERS {
        let what = format!("`{key}` has more than {MOST_HEADERS} headers");
        return Err(check::header_problem(what, "no service takes that many; remove some"));
    }
    check(key, name, value)?;
    if find(to, name).is_some() {
        let what = format!("the header `{name}` is twice in `{key}`");
        return Err(check::header_problem(what, "keep one of them"));
    }
    to.insert(name.to_owned(), value.to_owned());
    Ok(())
}

/// `upper` laid over `lower`. A header of both keeps the place it had below and the value it has above.
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

/// The header of this name in whatever case.
pub(crate) fn find<'a>(headers: &'a Headers, name: &str) -> Option<(&'a String, &'a String)> {
    headers.get_key_value(name).or_else(|| headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)))
}

/// The two parts of `Name: Value`. A line without them is not repeated in the problem: it may be a secret.
pub(crate) fn split<'a>(key: &str, line: &'a str) -> Result<(&'a str, &'a str), Problem> {
    let Some((name, value)) = line.split_once(':') else {
        let what = format!("a text in `{key}` is not of the form \"Name: Value\"");
        return Err(check::header_problem(what, "write the name, a colon and the value"));
    };
    Ok((name.trim(), value.trim()))
}
