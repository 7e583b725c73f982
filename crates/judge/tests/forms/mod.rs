//! The tables of forms: right answers as models write them, and wrong, hedged or guessed ones, under both scorers.

use std::collections::BTreeMap;

use aec_judge::scorer::{Answers, Score, Status, score};

use super::Twin;

const ANSWERS: &str = include_str!("answers.json");
const FORMS: &str = include_str!("forms.txt");
const REVIEW: &str = include_str!("review.txt");
const GUESSES: &str = include_str!("guesses.txt");

/// One line of a table.
struct Form<'a> {
    line: &'a str,
    is_right: bool,
    field: &'a str,
    submission: String,
}

fn lines(table: &'static str) -> impl Iterator<Item = &'static str> {
    table.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn forms(table: &'static str) -> Vec<Form<'static>> {
    lines(table)
        .map(|line| {
            let (sign, rest) = line.split_at(2);
            let (field, given) = rest.split_once(" |").unwrap();
            let submission = match given.strip_prefix('|') {
                Some(whole) => whole.replace('⏎', "\n"),
                None => format!("{{\"{field}\":{given}}}"),
            };
            Form { line, is_right: sign == "+ ", field, submission }
        })
        .collect()
}

/// The verdicts of the twins on these submissions, which must be the same.
fn verdicts(twin: &mut Twin, answers: &str, submissions: &[&str]) -> Vec<Score> {
    let parsed = Answers::parse(answers.as_bytes()).unwrap();
    let mut frames: Vec<(u8, &[u8])> = vec![(b'A', answers.as_bytes())];
    frames.extend(submissions.iter().map(|submission| (b'S', submission.as_bytes())));
    let (python, ()) = twin.exchange(&frames, || ());
    assert_eq!(python[0], "");
    let pairs = submissions.iter().zip(&python[1..]);
    pairs
        .map(|(submission, python)| {
            let found = score(&parsed, submission.as_bytes());
            assert_eq!(&found.to_details_json(), python, "the twins disagree on {submission}");
            found
        })
        .collect()
}

/// Judges a table; returns how many of its forms are right and how many wrong.
fn judge(table: &'static str) -> BTreeMap<bool, usize> {
    let forms = forms(table);
    let submissions: Vec<&str> = forms.iter().map(|form| form.submission.as_str()).collect();
    let mut bad = Vec::new();
    let mut counts = BTreeMap::new();
    for (form, found) in forms.iter().zip(verdicts(&mut Twin::start(), ANSWERS, &submissions)) {
        let field = found.fields.iter().find(|field| field.name == form.field).unwrap();
        let as_meant =
            if form.is_right { field.status == Status::Correct } else { field.score.abs() < f64::EPSILON };
        if !as_meant {
            bad.push(format!("{}  is {}: {}", form.line, field.status, field.message));
        }
        *counts.entry(form.is_right).or_default() += 1;
    }
    assert!(bad.is_empty(), "{} forms are judged wrongly:\n{}", bad.len(), bad.join("\n"));
    println!("{} right forms, {} wrong ones", counts[&true], counts[&false]);
    counts
}

/// Under revision 1, 218 of the right forms lost their field and 34 of the wrong ones earned it.
#[test]
fn right_forms_earn_their_field_and_wrong_ones_nothing() {
    let counts = judge(FORMS);
    assert!(counts[&true] >= 155 && counts[&false] >= 155);
}

#[test]
fn forms_of_the_review_earn_their_field_or_nothing() {
    let counts = judge(REVIEW);
    assert!(counts[&true] >= 180 && counts[&false] >= 450);
}

/// A submission must be read without regard to the expected value: else several answers at once pay more than one.
#[test]
fn guesses_earn_under_one_expectation_at_most() {
    let mut twin = Twin::start();
    let (mut sheets, mut count) = (Vec::new(), 0);
    for line in lines(GUESSES) {
        if let Some(specification) = line.strip_prefix("= ") {
            let mut parts = specification.split(" | ");
            let specification = parts.next().unwrap();
            sheets = parts
                .map(|expected| {
                    let field = specification.replace('$', expected);
                    format!(r#"{{"version": 1, "output": "output.json", "fields": {{"x": {field}}}}}"#)
                })
                .collect();
            assert!(sheets.len() > 1, "{line}");
            continue;
        }
        let submission = line.replace('⏎', "\n");
        let earned: f64 = sheets
            .iter()
            .map(|answers| verdicts(&mut twin, answers, &[&submission])[0].fields[0].score)
            .sum();
        assert!(earned < 1.000_000_001, "{line} earns {earned} under {}", sheets[0]);
        count += 1;
    }
    assert!(count >= 80);
}
