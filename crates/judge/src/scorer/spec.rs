//! The specification of one value: its type, unit, tolerance and words, and the expected value.

use aec_base::decimal::Decimal;

use super::answers::{AnswersError, Number, flag, get, need, number, only, text, texts};
use super::marks::is_placeholder;
use super::numeral::numeral;
use super::relaxed::Value;
use super::text::{compact, fold, squeeze, stated, word};
use super::units::{PLAIN, Unit, temperature, unit_of};
use super::words::{has, words};

/// Types of a single value, in the order that messages list them.
pub(super) const SCALARS: [&str; 5] = ["number", "integer", "boolean", "choice", "text"];

/// The accepted forms of one value.
#[derive(Clone, Debug)]
pub(super) struct Scalar {
    pub(super) kind: Kind,
    pub(super) unit: Unit,
    pub(super) unit_text: String,
    pub(super) unit_words: Vec<String>,
    /// The words of its name in singular and plural: what it may count.
    pub(super) nouns: Vec<String>,
    /// Whether an accepted text looks like a place to fill, so that no text is taken for one.
    pub(super) literal: bool,
    pub(super) meaning: String,
}

/// The type of one value.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    Number(Tolerance),
    Integer,
    /// Folded words and their meanings.
    Boolean {
        meanings: Vec<(String, bool)>,
        passing: Vec<(bool, bool)>,
    },
    /// Folded spellings and the options they name; `options` are those shown to readers.
    Choice {
        meanings: Vec<(String, String)>,
        /// Whether an option means that a check passed; empty unless the options are of that kind.
        passing: Vec<(String, bool)>,
        options: Vec<String>,
    },
    Text,
}

/// How far a number may deviate.
#[derive(Clone, Debug, Default)]
pub(super) struct Tolerance {
    pub(super) relative: Option<f64>,
    pub(super) absolute: Option<f64>,
    pub(super) significant: Option<i64>,
    /// A temperature difference, which is converted without an offset.
    pub(super) difference: bool,
}

/// One expected value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Want {
    Number { value: f64, bound: f64 },
    Integer { form: Decimal, value: f64 },
    Truth(bool),
    Option(String),
    Texts(Vec<String>),
}

type Pairs = [(String, Value)];

/// The type that an object names, if it is one of `kinds`.
pub(super) fn kind_of<'v>(
    raw: Option<&'v Value>,
    kinds: &[&str],
    place: &str,
) -> Result<(&'v str, &'v Pairs), AnswersError> {
    let Some(Value::Object(pairs)) = raw else { return Err(AnswersError::at(place, "must be an object")) };
    let kind = get(pairs, "type").and_then(text).filter(|kind| kinds.contains(kind));
    let Some(kind) = kind else {
        return Err(AnswersError::at(place, &format!("`type` must be one of {}", kinds.join(", "))));
    };
    need(
        get(pairs, "meaning").is_none_or(|meaning| text(meaning).is_some()),
        place,
        "`meaning` must be a text",
    )?;
    Ok((kind, pairs))
}

/// Keys of a type, besides those that every value or field may have.
pub(super) fn own_keys(kind: &str) -> &'static [&'static str] {
    match kind {
        "number" => &["unit", "unit_words", "rel_tol", "abs_tol", "sig", "difference"],
        "integer" => &["unit", "unit_words"],
        "boolean" => &["true_words", "false_words"],
        "choice" => &["options", "aliases"],
        "list" => &["items", "item", "ordered"],
        "table" => &["key", "columns", "rows"],
        _ => &[],
    }
}

/// The part of a field that does not depend on the expected value.
pub(super) fn scalar(
    raw: Option<&Value>,
    place: &str,
    extra: &[&str],
    name: &str,
) -> Result<Scalar, AnswersError> {
    let (kind, pairs) = kind_of(raw, &SCALARS, place)?;
    only(pairs, &[&["type", "meaning"], own_keys(kind), extra].concat(), place)?;
    let unit_words = texts(pairs, "unit_words", place)?.into_iter().map(word).collect();
    let unit_text = match get(pairs, "unit") {
        None => "",
        Some(unit) => text(unit).ok_or_else(|| AnswersError::at(place, "`unit` must be a text"))?,
    };
    let unit = if unit_text.is_empty() {
        PLAIN
    } else {
        unit_of(unit_text, false)
            .ok_or_else(|| AnswersError::at(place, &format!("unknown unit `{unit_text}`")))?
    };
    let kind = match kind {
        "number" => Kind::Number(tolerance(pairs, &unit, place)?),
        "integer" => Kind::Integer,
        "boolean" => boolean(pairs, place, name)?,
        "choice" => choice(pairs, place)?,
        _ => Kind::Text,
    };
    let meaning = get(pairs, "meaning").and_then(text).unwrap_or_default().to_owned();
    let (unit_text, nouns) = (unit_text.to_owned(), nouns_of(name));
    Ok(Scalar { kind, unit, unit_text, unit_words, nouns, literal: false, meaning })
}

fn tolerance(pairs: &Pairs, unit: &Unit, place: &str) -> Result<Tolerance, AnswersError> {
    let difference = flag(pairs, "difference", place)?;
    need(!difference || unit.dimension == temperature(), place, "`difference` is for temperatures")?;
    let given = |key| get(pairs, key).filter(|value| !matches!(value, Value::Bare(word) if word == "null"));
    let mut bounds = [None, None];
    for (bound, key) in bounds.iter_mut().zip(["rel_tol", "abs_tol"]) {
        if let Some(value) = given(key) {
            let found = number(value).map(|number| number.value).filter(|value| *value >= 0.0);
            need(found.is_some(), place, &format!("`{key}` must be a number, 0 or more"))?;
            *bound = found;
        }
    }
    let [relative, absolute] = bounds;
    need(relative.is_none_or(|relative| relative < 1.0), place, "`rel_tol` must be below 1")?;
    let mut significant = None;
    if let Some(value) = given("sig") {
        significant = number(value).filter(|number| number.whole).and_then(|number| number.text.parse().ok());
        let sound = significant.is_some_and(|figures| (1..=15).contains(&figures));
        need(sound, place, "`sig` must be a whole number from 1 to 15")?;
    }
    need(
        relative.is_some() || absolute.is_some() || significant.is_some(),
        place,
        "needs `rel_tol`, `abs_tol` or `sig`",
    )?;
    Ok(Tolerance { relative, absolute, significant, difference })
}

/// The folded words of a name.
fn words_of(name: &str) -> Vec<String> {
    let joint = |c: char| matches!(c, ' ' | '_' | '-' | '.' | ',' | ';' | ':' | '/' | '(' | ')' | '[' | ']');
    fold(name).split(joint).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

fn nouns_of(name: &str) -> Vec<String> {
    let mut nouns = Vec::new();
    for part in words_of(name).into_iter().filter(|part| part.chars().count() > 2) {
        nouns.push(part.strip_suffix('s').unwrap_or(&part).to_owned());
        nouns.push(format!("{part}s"));
        nouns.push(part);
    }
    nouns
}

/// Whether the name of a boolean asks whether a check passed: its last word says so, and none negates it.
fn asks_for_pass(name: &str) -> bool {
    words_of(name).last().is_some_and(|last| has(&words().passed, last)) && !negates(name)
}

/// Whether a name has a word for no or for failing: "pass" is then no word for true.
fn negates(name: &str) -> bool {
    words_of(name).iter().any(|part| has(&words().negations, part) || has(&words().failed, part))
}

/// Words that are always true or false.
pub(super) const TRUTHS: [(&str, bool); 6] =
    [("true", true), ("yes", true), ("pass", true), ("false", false), ("no", false), ("fail", false)];

/// Adds the usual words for pass and fail, unless the task uses one of them the other way round.
fn add_verdicts<T: Clone + PartialEq>(
    meanings: &mut Vec<(String, T)>,
    passed: &T,
    failed: &T,
) -> Vec<(T, bool)> {
    let lists = words();
    let usual = [(&lists.passed, passed), (&lists.failed, failed)];
    let usual: Vec<(&String, &T)> =
        usual.iter().flat_map(|(list, meaning)| list.iter().map(move |word| (word, *meaning))).collect();
    if usual.iter().any(|(word, meaning)| named(meanings, word).is_some_and(|known| known != *meaning)) {
        return Vec::new();
    }
    for (word, meaning) in usual {
        if named(meanings, word).is_none() {
            meanings.push((word.clone(), meaning.clone()));
        }
    }
    vec![(passed.clone(), true), (failed.clone(), false)]
}

fn boolean(pairs: &Pairs, place: &str, name: &str) -> Result<Kind, AnswersError> {
    let (yes, no) = (texts(pairs, "true_words", place)?, texts(pairs, "false_words", place)?);
    let mut meanings: Vec<(String, bool)> =
        TRUTHS.into_iter().map(|(word, truth)| (word.to_owned(), truth)).collect();
    if negates(name) {
        meanings.retain(|(word, _)| word != "pass" && word != "fail");
    }
    let own = yes.into_iter().map(|text| (text, true)).chain(no.into_iter().map(|text| (text, false)));
    for (text, truth) in own {
        let folded = word(text);
        match named(&meanings, &folded) {
            Some(known) => need(*known == truth, place, &format!("`{text}` is both true and false"))?,
            None => meanings.push((folded, truth)),
        }
    }
    let passing = if asks_for_pass(name) { add_verdicts(&mut meanings, &true, &false) } else { Vec::new() };
    Ok(Kind::Boolean { meanings, passing })
}

fn choice(pairs: &Pairs, place: &str) -> Result<Kind, AnswersError> {
    let options = texts(pairs, "options", place)?;
    need(!options.is_empty(), place, "`options` must not be empty")?;
    let mut meanings: Vec<(String, String)> =
        options.iter().map(|option| (word(option), (*option).to_owned())).collect();
    let aliases = match get(pairs, "aliases") {
        None => &[],
        Some(Value::Object(aliases)) => aliases.as_slice(),
        Some(_) => return Err(AnswersError::at(place, "`aliases` must be an object")),
    };
    for (alias, option) in aliases {
        let Some(option) = text(option).filter(|option| options.contains(option)) else {
            return Err(AnswersError::at(place, &format!("alias `{alias}` does not name an option")));
        };
        let folded = word(alias);
        let known = named(&meanings, &folded);
        let sound = !compact(alias).is_empty() && known.is_none_or(|known| known == option);
        need(sound, place, &format!("alias `{alias}` is empty or names two options"))?;
        if known.is_none() {
            meanings.push((folded, option.to_owned()));
        }
    }
    let options: Vec<String> = options.into_iter().map(str::to_owned).collect();
    let only = |list: &[String]| -> Option<String> {
        let mut found = options.iter().filter(|option| has(list, &word(option)));
        found.next().filter(|_| found.next().is_none()).cloned()
    };
    let passing = match (only(&words().passed), only(&words().failed)) {
        (Some(passed), Some(failed)) => add_verdicts(&mut meanings, &passed, &failed),
        _ => Vec::new(),
    };
    Ok(Kind::Choice { meanings, passing, options })
}

/// Looks up a folded word in a short list.
pub(super) fn named<'a, T>(list: &'a [(String, T)], word: &str) -> Option<&'a T> {
    list.iter().find(|(known, _)| known == word).map(|(_, meaning)| meaning)
}

impl Scalar {
    /// The expected value, and its text for the details.
    pub(super) fn wanted(&mut self, value: &Value, place: &str) -> Result<(Want, String), AnswersError> {
        let with_unit =
            |shown: String| format!("{shown} {}", self.unit_text).trim_end_matches(' ').to_owned();
        match &self.kind {
            Kind::Number(tolerance) => {
                let Some(Number { text, value, .. }) = number(value) else {
                    return Err(AnswersError::at(place, "the expected value must be a finite number"));
                };
                let sound = value != 0.0 || tolerance.absolute.is_some();
                need(sound, place, "an expected 0 needs `abs_tol`")?;
                Ok((Want::Number { value, bound: tolerance.bound(value, &text) }, with_unit(text)))
            }
            Kind::Integer => {
                let read = match value {
                    Value::Quoted(text) => numeral(text),
                    other => number(other).and_then(|number| numeral(&number.text)),
                };
                let form = read.filter(|read| read.rest.is_empty()).map(|read| read.decimal());
                let Some((form, shown)) = form.and_then(|form| form.whole_text(64).map(|text| (form, text)))
                else {
                    return Err(AnswersError::at(place, "the expected value must be a whole number"));
                };
                let value = form.to_f64();
                Ok((Want::Integer { form, value }, with_unit(shown)))
            }
            Kind::Boolean { .. } => match value {
                Value::Bare(word) if word == "true" || word == "false" => {
                    Ok((Want::Truth(word == "true"), word.clone()))
                }
                _ => Err(AnswersError::at(place, "the expected value must be true or false")),
            },
            Kind::Choice { options, .. } => match text(value) {
                Some(option) if options.iter().any(|known| known == option) => {
                    Ok((Want::Option(option.to_owned()), option.to_owned()))
                }
                _ => Err(AnswersError::at(place, "the expected value is not an option")),
            },
            Kind::Text => {
                let accept: Option<Vec<&str>> = match value {
                    Value::List(items) => items.iter().map(text).collect(),
                    other => text(other).map(|text| vec![text]),
                };
                let accept = accept.unwrap_or_default();
                need(
                    !accept.is_empty() && accept.iter().all(|text| !squeeze(text).is_empty()),
                    place,
                    "the expected value must be a text or a list of texts, none of them empty",
                )?;
                self.literal |= accept.iter().any(|text| is_placeholder(text));
                Ok((Want::Texts(accept.iter().map(|text| stated(text)).collect()), accept.join(" | ")))
            }
        }
    }
}

impl Tolerance {
    /// How far a number may be from the expected one; `text` is the expected number as written.
    fn bound(&self, value: f64, text: &str) -> f64 {
        let mut bound = self.absolute.unwrap_or(0.0).max(self.relative.unwrap_or(0.0) * value.abs());
        if let (Some(figures), Some(read)) = (self.significant, numeral(text))
            && !read.digits.is_empty()
        {
            // Half a unit of the last figure, computed from the decimal text, because logarithms differ between
            // libraries.
            let places = i64::try_from(read.digits.len()).unwrap_or_default();
            bound = bound.max(Decimal::new(false, "5", read.exponent + places - figures - 1).to_f64());
        }
        bound
    }
}
