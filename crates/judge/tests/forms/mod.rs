//! The table of forms: right answers as models write them, and wrong or hedged ones, under both scorers.

use std::collections::BTreeMap;

use aec_judge::scorer::{Answers, Status, score};

use super::Twin;

const ANSWERS: &str = include_str!("answers.json");
const FORMS: &str = include_str!("forms.txt");

/// One line of the table.
struct Form<'a> {
    line: &'a str,
    is_right: bool,
    field: &'a str,
    submission: String,
}

fn forms() -> Vec<Form<'static>> {
    let lines = FORMS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
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

/// Under revision 1, 218 of the right forms lost their field and 34 of the wrong ones earned it.
#[test]
fn right_forms_earn_their_field_and_wrong_ones_nothing() {
    let answers = Answers::parse(ANSWERS.as_bytes()).unwrap();
    let forms = forms();
    let mut frames: Vec<(u8, &[u8])> = vec![(b'A', ANSWERS.as_bytes())];
    frames.extend(forms.iter().map(|form| (b'S', form.submission.as_bytes())));
    let (python, ()) = Twin::start().exchange(&frames, || ());
    assert_eq!(python[0], "");
    let mut bad = Vec::new();
    let mut counts: BTreeMap<bool, usize> = BTreeMap::new();
    for (form, python) in forms.iter().zip(&python[1..]) {
        let found = score(&answers, form.submission.as_bytes());
        assert_eq!(&found.to_details_json(), python, "the twins disagree on {}", form.line);
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
    assert!(counts[&true] >= 155 && counts[&false] >= 155);
}
