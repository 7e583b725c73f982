//! Words and phrases that indicate the kind of a turn, found in one pass over the words.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::text::beginning;

/// Most bytes of a text that are examined.
const LISTENED: usize = 20_000;

/// What a phrase indicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cue {
    /// Checking results.
    Check,
    /// Doubt, alternatives.
    Hedge,
    /// Looking around.
    Look,
    /// Reasoning from causes.
    Because,
    /// An order of steps.
    Step,
    /// Completion.
    Done,
}

const PHRASES: &[(Cue, &[&str])] = &[
    (
        Cue::Check,
        &[
            "verify",
            "verifying",
            "verified",
            "double-check",
            "double-checking",
            "double check",
            "cross-check",
            "cross-checking",
            "cross check",
            "recheck",
            "re-check",
            "recompute",
            "recalculate",
            "re-run the check",
            "validate",
            "validating",
            "sanity check",
            "sanity-check",
            "confirm",
            "confirmed",
            "confirms",
            "confirming",
            "spot check",
            "check my",
            "check the result",
            "check the results",
            "check the answer",
            "check the output",
            "check the value",
            "check the values",
            "check the calculation",
            "check the numbers",
            "check that",
            "they match",
            "it matches",
            "this matches",
            "which matches",
            "matches the",
            "agrees with",
            "agree with",
            "is consistent",
            "are consistent",
            "consistent with",
            "as expected",
            "comparing",
            "compare with",
            "compare against",
            "compare the",
            "read it back",
            "read back",
            "looks correct",
            "is correct",
            "are correct",
            "is valid",
            "are valid",
            "make sure",
            "made a mistake",
            "a mistake",
            "my mistake",
            "an error in my",
            "i was wrong",
            "is wrong",
            "looking back",
            "review my",
            "review the output",
            "within tolerance",
            "within the limits",
            "i forgot",
            "plausible",
            "order of magnitude",
            "too low",
            "too high",
            "testing the",
            "against the",
        ],
    ),
    (
        Cue::Hedge,
        &[
            "maybe",
            "perhaps",
            "alternatively",
            "might",
            "could be",
            "could mean",
            "could also",
            "would be",
            "not sure",
            "unsure",
            "unclear",
            "what if",
            "i wonder",
            "wonder",
            "either",
            "possibly",
            "hypothesis",
            "suppose",
            "another option",
            "another approach",
            "another way",
            "another possibility",
            "one option",
            "the other option",
            "on the other hand",
            "two ways",
            "different approach",
            "different way",
            "ambiguous",
            "which one",
            "could use",
            "what happens",
            "curious",
        ],
    ),
    (
        Cue::Look,
        &[
            "let me look",
            "let me see",
            "let's see",
            "let's look",
            "explore",
            "exploring",
            "inspect",
            "inspecting",
            "take a look",
            "have a look",
            "find out",
            "look at",
            "looking at",
            "see what",
            "see which",
            "see whether",
            "what files",
            "which files",
            "what is in",
            "start by looking",
            "start by reading",
            "understand the",
            "overview",
            "try a few",
            "let me open",
            "let me read",
        ],
    ),
    (
        Cue::Because,
        &[
            "therefore",
            "because",
            "thus",
            "hence",
            "since",
            "consequently",
            "which means",
            "this means",
            "that means",
            "it follows",
            "follows from",
            "given that",
            "as a result",
            "implies",
            "so the",
            "so that",
            "so i",
            "so a",
            "so sliding",
            "governs",
            "leads to",
            "we have",
            "substituting",
            "by definition",
            "with that",
        ],
    ),
    (
        Cue::Step,
        &[
            "step 1",
            "step 2",
            "step 3",
            "step 4",
            "first",
            "second",
            "then",
            "next",
            "finally",
            "after that",
            "plan",
            "approach",
            "i need to",
            "we need",
            "i need the",
            "i will use",
            "the formula",
        ],
    ),
    (
        Cue::Done,
        &[
            "submit",
            "submitting",
            "submitted",
            "final answer",
            "done",
            "completed",
            "complete",
            "finished",
            "i have written",
            "i wrote",
            "written to",
            "saved to",
            "summary",
            "here is the",
            "here are the",
            "handing in",
            "handed in",
            "answer is in",
        ],
    ),
];

/// The cue of a phrase, and its words after the first.
type Phrase = (Cue, Vec<&'static str>);

/// Phrases by their first word.
static BY_FIRST: LazyLock<HashMap<&'static str, Vec<Phrase>>> = LazyLock::new(|| {
    let mut table: HashMap<&str, Vec<Phrase>> = HashMap::new();
    for (cue, phrases) in PHRASES {
        for phrase in *phrases {
            let mut words = phrase.split(' ');
            let Some(first) = words.next() else { continue };
            table.entry(first).or_default().push((*cue, words.collect()));
        }
    }
    table
});

/// The lengths of first words, as bits, by their first letter: most words begin no phrase and can be skipped quickly.
static LENGTHS: LazyLock<[u32; 256]> = LazyLock::new(|| {
    let mut lengths = [0; 256];
    for first in BY_FIRST.keys() {
        lengths[usize::from(first.as_bytes()[0])] |= 1 << first.len().min(31);
    }
    lengths
});

fn phrases(word: &str) -> &'static [Phrase] {
    let first = usize::from(word.as_bytes()[0]);
    if LENGTHS[first] & (1 << word.len().min(31)) == 0 {
        return &[];
    }
    BY_FIRST.get(word).map_or(&[], Vec::as_slice)
}

/// How often a text contains each cue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cues {
    pub(crate) check: usize,
    pub(crate) hedge: usize,
    pub(crate) look: usize,
    pub(crate) because: usize,
    pub(crate) step: usize,
    pub(crate) done: usize,
    /// Question marks at ends of sentences.
    pub(crate) questions: usize,
    pub(crate) equations: usize,
    /// Lines of a numbered list.
    pub(crate) numbered: usize,
    pub(crate) words: usize,
}

impl Cues {
    /// Counts the cues of a text and of another after it.
    pub(crate) fn of(text: &str, reasoning: &str) -> Self {
        let mut cues = Self::default();
        cues.listen(text);
        cues.listen(reasoning);
        cues
    }

    fn listen(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let lower = beginning(text, LISTENED).to_ascii_lowercase();
        let is_part = |c: char| !(c.is_alphanumeric() || c == '-' || c == '\'');
        let mut words: Vec<&str> = Vec::with_capacity(lower.len() / 5 + 1);
        words.extend(lower.split(is_part).filter(|word| !word.is_empty()));
        self.words += words.len();
        let mut at = 0;
        while at < words.len() {
            // The longest phrase counts, so that its parts are not counted again.
            let found = phrases(words[at])
                .iter()
                .filter(|(_, rest)| words[at + 1..].starts_with(rest))
                .max_by_key(|(_, rest)| rest.len());
            let Some((cue, rest)) = found else {
                at += 1;
                continue;
            };
            at += 1 + rest.len();
            *match cue {
                Cue::Check => &mut self.check,
                Cue::Hedge => &mut self.hedge,
                Cue::Look => &mut self.look,
                Cue::Because => &mut self.because,
                Cue::Step => &mut self.step,
                Cue::Done => &mut self.done,
            } += 1;
        }
        self.questions += words_end_with_question(&lower);
        self.equations += lower.matches(" = ").count();
        let is_numbered = |line: &&str| {
            let rest = line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit());
            rest.len() < line.trim_start().len() && (rest.starts_with(". ") || rest.starts_with(") "))
        };
        self.numbered += lower.lines().filter(is_numbered).count();
    }
}

/// Ignores question marks in the middle of a word, as in addresses.
fn words_end_with_question(text: &str) -> usize {
    text.split_ascii_whitespace().filter(|word| word.trim_end_matches(['"', ')', '*']).ends_with('?')).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_phrase_counts_once() {
        let cues = Cues::of("Let me check the result, and check the results again.", "");
        assert_eq!((cues.check, cues.words), (2, 10));
        assert_eq!(Cues::of("I check the oil.", "").check, 0);
        assert_eq!(Cues::of("", "DOUBLE-CHECK").check, 1);
    }

    #[test]
    fn equations_questions_and_lists_are_counted() {
        let cues = Cues::of("a = b + c? So what?\n1. one\n2) two\n3.5 three", "");
        assert_eq!((cues.equations, cues.questions, cues.numbered), (1, 2, 2));
        assert_eq!(Cues::of("", ""), Cues::default());
    }
}
