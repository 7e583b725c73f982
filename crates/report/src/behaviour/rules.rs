//! Assigns a kind to each turn by rules: the effects of its calls weigh more than its text.

use std::borrow::Cow;

use aec_ledger::transcript::turns::Turn;

use super::action::Act;
use super::cues::Cues;
use super::kind::{Kind, Label};
use super::reading::{Back, Fact, Reading, Step, read};
use super::structure::as_f64;
use super::trace::Trace;

pub fn label(trace: &Trace) -> Vec<Label> {
    of(trace, &read(trace))
}

/// Labels every turn of a trace that was already interpreted.
pub(crate) fn of(trace: &Trace, reading: &Reading<'_>) -> Vec<Label> {
    let mut steps = reading.steps.as_slice();
    let mut labels = Vec::with_capacity(trace.turns.len());
    for (place, turn) in trace.turns.iter().enumerate() {
        let count = steps.iter().take_while(|step| step.turn == place).count();
        let (own, rest) = steps.split_at(count);
        steps = rest;
        labels.push(Scores::of(turn, own).label(turn.index));
    }
    labels
}

/// The evidence for each kind: the weight of the strongest rule, and the names of all.
#[derive(Default)]
struct Scores {
    strongest: [f64; 4],
    evidence: [Vec<&'static str>; 4],
}

impl Scores {
    fn of(turn: &Turn, steps: &[Step<'_>]) -> Self {
        let mut scores = Self::default();
        for step in steps {
            for fact in &step.facts {
                scores.fact(fact);
            }
        }
        let cues = Cues::of(&turn.text, &turn.reasoning);
        if turn.calls.is_empty() {
            scores.said(&cues, turn);
        } else {
            scores.meant(&cues, steps);
        }
        scores
    }

    fn add(&mut self, kind: Kind, weight: f64, rule: &'static str) {
        let index = kind.index();
        self.strongest[index] = self.strongest[index].max(weight);
        if !self.evidence[index].contains(&rule) {
            self.evidence[index].push(rule);
        }
    }

    fn is_silent(&self) -> bool {
        self.strongest.iter().all(|weight| *weight <= 0.0)
    }

    fn fact(&mut self, fact: &Fact) {
        use Kind::{Deliberation, Execution, Exploration, Verification};
        let (kind, weight, rule) = match fact {
            // Code that reads a file mainly computes, so reading weighs less.
            Fact::Input { how: "python" | "argument", .. } => (Exploration, 2.5, "reads_input"),
            Fact::Input { .. } => (Exploration, 3.0, "reads_input"),
            Fact::Output(Back::Earlier) => (Verification, 4.0, "reads_back"),
            Fact::Output(Back::Now) => (Verification, 2.0, "reads_back_at_once"),
            Fact::Output(Back::Never) | Fact::Elsewhere => (Exploration, 3.0, "reads_file"),
            Fact::Own => (Verification, 3.0, "reads_own_file"),
            Fact::Write { is_output: true, .. } => (Execution, 6.0, "writes_output"),
            Fact::Write { .. } => (Execution, 4.0, "writes_file"),
            Fact::FailedWrite => (Execution, 3.5, "tries_to_write"),
            Fact::Act(act) => match act {
                Act::List => (Exploration, 3.0, "lists"),
                Act::Search => (Exploration, 2.5, "searches"),
                Act::Look => (Exploration, 2.5, "looks_around"),
                Act::Help => (Exploration, 4.0, "asks_for_help"),
                Act::Test => (Verification, 5.0, "tests"),
                Act::Compare => (Verification, 4.5, "compares_files"),
                Act::Assert => (Verification, 3.5, "asserts"),
                Act::Compute => (Execution, 3.0, "computes"),
                Act::Declared(_) => (Execution, 4.0, "uses_tool"),
                Act::Run => (Execution, 3.0, "runs_program"),
                Act::Tidy => (Execution, 2.0, "prepares_files"),
                Act::Install => (Execution, 3.0, "installs"),
                Act::Say => (Execution, 0.5, "prints"),
                Act::Think => (Deliberation, 4.0, "thinks"),
                Act::Submit { .. } => (Execution, 7.0, "submits"),
                Act::Read { .. } | Act::Write { .. } => return,
            },
        };
        self.add(kind, weight, rule);
    }

    /// Evidence from the text about the calls.
    fn meant(&mut self, cues: &Cues, steps: &[Step<'_>]) {
        let only_computes = steps.iter().flat_map(|step| &step.facts).all(|fact| {
            matches!(fact, Fact::Act(Act::Compute | Act::Run | Act::Say | Act::Declared(_)) | Fact::Own)
        });
        if cues.check > 0 {
            // A calculation that the text announces as a check counts as one.
            let weight = if only_computes { 4.5 } else { 1.5 };
            self.add(Kind::Verification, weight, "says_check");
        }
        if cues.look + cues.hedge + cues.questions > 0 {
            self.add(Kind::Exploration, 1.5, "says_look");
        }
        if cues.because + cues.step >= 3 {
            self.add(Kind::Deliberation, 1.0 + 0.25 * as_f64(cues.because.min(4)), "reasons");
        }
        if self.is_silent() {
            self.add(Kind::Execution, 0.5, "calls_tool");
        }
    }

    /// Evidence from the text of a turn without calls.
    fn said(&mut self, cues: &Cues, turn: &Turn) {
        if turn.text.trim().is_empty() && turn.reasoning.trim().is_empty() {
            return self.add(Kind::Execution, 0.0, "empty");
        }
        let weigh = |count: usize, weight: f64| weight * as_f64(count.min(5));
        let check = weigh(cues.check, 1.6);
        if check > 0.0 {
            self.add(Kind::Verification, check, "says_check");
        }
        let doubt = weigh(cues.hedge, 1.2) + weigh(cues.questions, 1.0) + weigh(cues.look, 0.8);
        if doubt > 0.0 {
            self.add(Kind::Exploration, doubt, if cues.hedge > 0 { "hedges" } else { "asks" });
        }
        let reason = weigh(cues.because, 1.2)
            + weigh(cues.step, 0.6)
            + weigh(cues.equations, 0.5)
            + weigh(cues.numbered, 0.5);
        if reason > 0.0 {
            self.add(Kind::Deliberation, reason, "reasons");
        }
        if cues.done > 0 {
            self.add(Kind::Execution, 1.5 + weigh(cues.done, 0.5), "reports");
        }
        if self.is_silent() {
            // Sentences without a cue count as thinking, a few words as an answer.
            match cues.words {
                0..15 => self.add(Kind::Execution, 0.5, "answers"),
                _ => self.add(Kind::Deliberation, 0.5, "long_text"),
            }
        }
    }

    fn label(mut self, turn_index: u32) -> Label {
        // A kind that comes later in the order wins only if it is stronger.
        let kind = Kind::BY_PRECEDENCE
            .into_iter()
            .reduce(
                |best, kind| {
                    if self.strongest[kind.index()] > self.strongest[best.index()] { kind } else { best }
                },
            )
            .unwrap_or(Kind::Execution);
        let kind = if self.is_silent() { Kind::Execution } else { kind };
        let top = self.strongest[kind.index()];
        let second = Kind::ALL
            .into_iter()
            .filter(|other| *other != kind)
            .map(|other| self.strongest[other.index()])
            .fold(0.0, f64::max);
        let evidence = std::mem::take(&mut self.evidence[kind.index()]);
        Label {
            turn_index,
            kind,
            confidence: confidence(top, second),
            evidence: evidence.into_iter().map(Cow::Borrowed).collect(),
        }
    }
}

/// Grows with the weight of the evidence and with its lead over the next kind: 0 without evidence, a half at a tie of
/// strong evidence, near 1 for strong evidence without contradiction.
fn confidence(top: f64, second: f64) -> f64 {
    if top <= 0.0 {
        return 0.0;
    }
    let strength = top / (top + 0.5);
    strength * (0.5 + 0.5 * (top - second) / top)
}

#[cfg(test)]
mod tests {
    use aec_ledger::transcript::turns::Call;

    use super::*;

    fn turn(text: &str, command: Option<&str>) -> Turn {
        let call =
            |command: &str| Call { name: "bash".into(), command: Some(command.into()), ..Call::default() };
        Turn { text: text.into(), calls: command.map(call).into_iter().collect(), ..Turn::default() }
    }

    fn kind(text: &str, command: Option<&str>) -> (Kind, f64) {
        let labels = label(&Trace { turns: vec![turn(text, command)], ..Trace::default() });
        (labels[0].kind, labels[0].confidence)
    }

    #[test]
    fn every_turn_gets_one_label() {
        let turns = vec![turn("", None), turn("", Some("")), turn("…", None), turn("?", Some("((((("))];
        let labels = label(&Trace { turns, ..Trace::default() });
        assert_eq!(labels.len(), 4);
        assert_eq!((labels[0].kind, labels[0].confidence), (Kind::Execution, 0.0));
        assert_eq!(labels[0].evidence, ["empty"]);
        assert!(
            labels.iter().all(|label| (0.0..=1.0).contains(&label.confidence) && !label.evidence.is_empty())
        );
    }

    #[test]
    fn contradictions_cost_confidence() {
        let (_, plain) = kind("", Some("pytest -q"));
        let (both, mixed) = kind("", Some("pytest -q; cat a.txt"));
        assert_eq!(both, Kind::Verification);
        assert!(mixed < plain, "{mixed} {plain}");
    }

    #[test]
    fn a_tie_goes_by_precedence() {
        // Listing and computing have equal weights.
        assert_eq!(kind("", Some("ls; bc <<< 1+1")).0, Kind::Exploration);
    }
}
