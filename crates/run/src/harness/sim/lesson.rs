//! Lessons: texts in a system prompt that make an agent better or worse. The quality of a prompt then follows a rule
//! that only the experiment knows, so that a search for better prompts can be tried without a model.

use std::collections::BTreeMap;

/// The resolution of a learnt skill, as a fraction of one. With it, gains that add up to 1 make exactly 1.
const PARTS: f64 = 1e9;

/// The skill of an agent with this system prompt, and the lessons that it applies.
pub(super) fn heed<'a>(
    skill: f64,
    lessons: &'a BTreeMap<String, f64>,
    system_prompt: Option<&str>,
) -> (f64, Vec<&'a str>) {
    let prompt = plain(system_prompt.unwrap_or_default());
    let heeded: Vec<(&str, f64)> = lessons
        .iter()
        .filter(|(lesson, _)| prompt.contains(&plain(lesson)))
        .map(|(lesson, gain)| (lesson.as_str(), *gain))
        .collect();
    if heeded.is_empty() {
        return (skill, Vec::new());
    }
    let sum = heeded.iter().fold(skill, |sum, (_, gain)| sum + gain);
    // Clamped before rounding: otherwise rounding could give -0, which is a different random seed than 0.
    let skill = (sum.clamp(0.0, 1.0) * PARTS).round() / PARTS;
    (skill, heeded.into_iter().map(|(lesson, _)| lesson).collect())
}

/// A text for comparison: in lower case, with single blanks.
fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heeded(skill: f64, lessons: &[(&str, f64)], prompt: Option<&str>) -> (f64, Vec<String>) {
        let lessons = lessons.iter().map(|(text, gain)| ((*text).to_owned(), *gain)).collect();
        let (skill, heeded) = heed(skill, &lessons, prompt);
        (skill, heeded.into_iter().map(str::to_owned).collect())
    }

    /// The bits of the skill, which seed the random choices.
    fn bits(skill: f64, lessons: &[(&str, f64)], prompt: &str) -> u64 {
        heeded(skill, lessons, Some(prompt)).0.to_bits()
    }

    #[test]
    fn a_lesson_counts_when_its_text_is_in_the_prompt() {
        let lessons = [("check the units", 0.3), ("round early", -0.1)];
        let none = (0.5_f64, Vec::<String>::new());
        assert_eq!(heeded(0.5, &lessons, None), none);
        assert_eq!(heeded(0.5, &lessons, Some("")), none);
        assert_eq!(heeded(0.5, &lessons, Some("Check units.")), none);
        assert_eq!(heeded(0.5, &[], Some("check the units")), none);
        let one = (0.8, vec!["check the units".to_owned()]);
        assert_eq!(heeded(0.5, &lessons, Some("Always check the units.")), one);
        let both = (0.7, vec!["check the units".to_owned(), "round early".to_owned()]);
        assert_eq!(heeded(0.5, &lessons, Some("Round early. Check the units, check the units.")), both);
    }

    #[test]
    fn cases_and_white_space_do_not_matter_on_either_side() {
        let prompt = "First\n\tCHECK\r\n  the\u{a0}Units\n";
        for lesson in ["check the units", "Check  The\nUNITS", "  check the units\n"] {
            assert_eq!(
                heeded(0.0, &[(lesson, 1.0)], Some(prompt)),
                (1.0, vec![lesson.to_owned()]),
                "{lesson:?}"
            );
        }
        assert_eq!(bits(0.0, &[("ÜBERPRÜFE", 1.0)], "überprüfe alles"), 1.0_f64.to_bits());
    }

    #[test]
    fn a_skill_stays_from_0_to_1_and_sums_are_exact() {
        let up = [("a", 1.0), ("b", 1.0)];
        assert_eq!(bits(0.5, &up, "a b"), 1.0_f64.to_bits());
        let down = [("a", -1.0), ("b", -1.0)];
        assert_eq!(bits(0.5, &down, "a b"), 0.0_f64.to_bits());
        // 0.6 + 0.3 + 0.1 is less than 1 in binary, and 0.3 - 0.1 - 0.2 less than 0.
        assert_eq!(bits(0.6, &[("a", 0.3), ("b", 0.1)], "a b"), 1.0_f64.to_bits());
        assert_eq!(bits(0.3, &[("a", -0.1), ("b", -0.2)], "a b"), 0.0_f64.to_bits());
        assert_eq!(bits(0.1, &[("a", 0.2)], "a"), 0.3_f64.to_bits());
        // An agent without lessons has exactly the given skill, to the bit.
        let third = 1.0 / 3.0;
        assert_eq!(bits(third, &up, "c"), third.to_bits());
    }
}
