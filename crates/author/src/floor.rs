//! The reward of answers that need no engineering: the same number everywhere, taken from the prompt or made up.
//!
//! A draw for which such an answer earns too much is rejected. Audits check more; this covers only chance.

use serde_json::{Map, Value as Json};

use crate::params::{OutputKind, OutputTable};
use crate::template::{Template, Tier};

/// Highest reward that an agent may get without doing the work.
pub(crate) const HIGHEST_FLOOR: f64 = 0.2;
/// Factors between unit prefixes.
const FACTORS: [f64; 5] = [1.0, 1000.0, 0.001, 100.0, 0.01];

/// The highest reward of a constant answer.
pub(crate) fn floor(template: &Template, tier: &Tier, answers: &Map<String, Json>, prompt: &str) -> f64 {
    let fields: Vec<(&OutputTable, &Json)> = tier
        .outputs
        .iter()
        .filter_map(|name| Some((template.outputs.get(name)?, answers.get(name)?)))
        .collect();
    let weight = |output: &OutputTable| output.weight.unwrap_or(1.0);
    let all: f64 = fields.iter().map(|(output, _)| weight(output)).sum();
    let share = |earns: &dyn Fn(&OutputTable, &Json) -> bool| {
        let earned: f64 = fields
            .iter()
            .filter(|(output, answer)| earns(output, answer))
            .map(|(output, _)| weight(output))
            .sum();
        if all > 0.0 { earned / all } else { 0.0 }
    };
    let flags = [true, false].map(|flag| share(&|_, answer| answer.as_bool() == Some(flag)));
    let guesses = numbers(prompt).into_iter().chain([0.0, 1.0]);
    let constants = guesses
        .flat_map(|number| FACTORS.map(|factor| number * factor))
        .map(|guess| share(&|output, answer| is_hit(output, answer, guess)));
    flags.into_iter().chain(constants).fold(0.0, f64::max)
}

/// Finds an answer so close to zero that its tolerance would accept an answer half as large again.
pub(crate) fn swallowed<'a>(
    template: &Template,
    tier: &'a Tier,
    answers: &Map<String, Json>,
) -> Option<&'a str> {
    const LARGEST_SHARE: f64 = 0.45;
    let is_swallowed = |name: &&String| {
        let (Some(output), Some(value)) =
            (template.outputs.get(*name), answers.get(*name).and_then(Json::as_f64))
        else {
            return false;
        };
        let number = output.kind.unwrap_or_default() == OutputKind::Number;
        number && value != 0.0 && tolerance(output, value) > LARGEST_SHARE * value.abs()
    };
    tier.outputs.iter().find(is_swallowed).map(String::as_str)
}

fn is_hit(output: &OutputTable, answer: &Json, guess: f64) -> bool {
    let Some(value) = answer.as_f64() else { return false };
    let bound = match output.kind.unwrap_or_default() {
        OutputKind::Number => tolerance(output, value),
        OutputKind::Integer => 0.0,
        _ => return false,
    };
    (guess - value).abs() <= bound
}

/// How far an answer may be from the value.
fn tolerance(output: &OutputTable, value: f64) -> f64 {
    let relative = relative(output).unwrap_or(0.0) * value.abs();
    let figures = output
        .sig
        .filter(|_| value != 0.0)
        .map_or(0.0, |figures| 0.5 * 10_f64.powf(value.abs().log10().floor() - f64::from(figures) + 1.0));
    relative.max(output.abs_tol.unwrap_or(0.0)).max(figures)
}

/// The relative tolerance of a number, with its default.
pub(crate) fn relative(output: &OutputTable) -> Option<f64> {
    const USUAL: f64 = 0.03;
    let other = output.abs_tol.is_some() || output.sig.is_some();
    output.tolerance.or_else(|| (!other).then_some(USUAL))
}

fn numbers(prompt: &str) -> Vec<f64> {
    let words = prompt.split(|c: char| !(c.is_ascii_digit() || c == '.'));
    let mut found: Vec<f64> = words.filter_map(|word| word.trim_matches('.').parse().ok()).collect();
    found.sort_by(f64::total_cmp);
    found.dedup();
    found
}
