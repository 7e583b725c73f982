//! The description of the answer for the agent; every generated instruction contains it.

use super::answers::{Answers, Shape};
use super::spec::{Kind, Scalar};

/// The paragraph and the table of keys at the end of a generated instruction. Reveals no expected values.
pub fn contract(answers: &Answers) -> String {
    let mut text = format!(
        "Write your answer to `/workspace/{}`: one JSON object with the keys below. Give each value once. A number\n\
         without a unit is taken to be in the unit of the table; `\"12.5 kN\"` and `{{\"value\": 12.5, \"unit\": \
         \"kN\"}}` state\nit. Write decimals with a point. Give one value, not a range or alternatives: two different \
         values for a key\ncount as none.\n\n| key | value | meaning |\n|---|---|---|\n",
        answers.output()
    );
    for field in &answers.fields {
        let value = match &field.shape {
            Shape::One { scalar, .. } => one(scalar),
            Shape::List { item, ordered, .. } => {
                format!(
                    "list, {}; of each item: {}",
                    if *ordered { "in order" } else { "in any order" },
                    one(item)
                )
            }
            Shape::Table { columns, .. } => {
                let cells: Vec<String> = columns
                    .iter()
                    .map(|column| {
                        let meaning = if column.scalar.meaning.is_empty() {
                            String::new()
                        } else {
                            format!(" ({})", column.scalar.meaning)
                        };
                        format!("`{}`: {}{meaning}", column.name, one(&column.scalar))
                    })
                    .collect();
                format!("list of objects, one for each `{}`, with {}", columns[0].name, cells.join("; "))
            }
        };
        text.push_str(&format!(
            "| `{}` | {} | {} |\n",
            cell(&field.name),
            cell(&value),
            cell(&field.meaning)
        ));
    }
    text
}

fn one(scalar: &Scalar) -> String {
    let with_unit = |noun: &str| {
        if scalar.unit_text.is_empty() { noun.to_owned() } else { format!("{noun} in {}", scalar.unit_text) }
    };
    match &scalar.kind {
        Kind::Number(_) => with_unit("number"),
        Kind::Integer => with_unit("whole number"),
        Kind::Boolean { .. } => "true or false".to_owned(),
        Kind::Choice { options, .. } => {
            let options: Vec<String> = options.iter().map(|option| format!("`{option}`")).collect();
            format!("one of {}", options.join(", "))
        }
        Kind::Text => "text".to_owned(),
    }
}

/// Text that cannot break out of its table cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").split_whitespace().collect::<Vec<_>>().join(" ")
}
