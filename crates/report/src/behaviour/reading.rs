//! A trace with its calls interpreted: which files of the task and of the agent each call touched.

use std::collections::HashMap;

use aec_ledger::transcript::turns::{Call, CallResult};

use super::action::{Act, Deed, Interpreter};
use super::outcome::{Fault, Outcome, outcome};
use super::paths::{base_name, matches};
use super::trace::Trace;

/// Most patterns of a trace that are compared with the assigned files.
const MOST_PATTERNS: usize = 200;

/// Most error messages of one call that are compared with the files that it should write.
const MOST_COMPLAINTS: usize = 16;

/// One interpreted call.
pub(crate) struct Step<'t> {
    /// The index of its turn.
    pub(crate) turn: usize,
    pub(crate) call: &'t Call,
    pub(crate) result: Option<&'t CallResult>,
    pub(crate) deed: Deed,
    pub(crate) outcome: Outcome,
    /// The results of its acts, in order.
    pub(crate) facts: Vec<Fact>,
}

/// The result of an act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fact {
    /// An assigned file was read.
    Input {
        file: usize,
        how: &'static str,
    },
    /// The output was read.
    Output(Back),
    /// Another file that the agent wrote was read.
    Own,
    Elsewhere,
    /// A file was written. Paths are numbered in the order of their first writes.
    Write {
        path: usize,
        is_output: bool,
        how: &'static str,
        bytes: Option<u64>,
        appends: bool,
    },
    /// A file should have been written, but the call failed.
    FailedWrite,
    Act(Act),
}

/// When the output that was read had been written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Back {
    Earlier,
    Now,
    /// Not by the agent, as far as is known.
    Never,
}

pub(crate) struct Reading<'t> {
    pub(crate) steps: Vec<Step<'t>>,
    /// The files that were written, in the order of their numbers.
    pub(crate) written: Vec<String>,
}

pub(crate) fn read(trace: &Trace) -> Reading<'_> {
    let mut interpreter = Interpreter::new(&trace.task);
    let inputs: Vec<String> = trace.task.input_files.iter().map(|file| interpreter.path("", file)).collect();
    let mut files = Files {
        numbers: inputs.iter().enumerate().map(|(number, path)| (path.as_str(), number)).collect(),
        inputs: &inputs,
        output: interpreter.output.clone(),
        written: HashMap::new(),
        order: Vec::new(),
        output_turn: None,
        patterns: 0,
    };
    let mut steps = Vec::new();
    for (turn, said) in trace.turns.iter().enumerate() {
        for (call, result) in said.calls.iter().zip(said.results_in_order()) {
            let mut deed = interpreter.deed(call);
            let outcome = outcome(&deed, result);
            let acts = std::mem::take(&mut deed.acts);
            let mut step = Step { turn, call, result, deed, outcome, facts: Vec::with_capacity(acts.len()) };
            files.take(acts, &mut step);
            steps.push(step);
        }
    }
    Reading { steps, written: files.order }
}

struct Files<'i> {
    inputs: &'i [String],
    numbers: HashMap<&'i str, usize>,
    output: String,
    written: HashMap<String, usize>,
    order: Vec<String>,
    output_turn: Option<usize>,
    patterns: usize,
}

impl Files<'_> {
    fn take(&mut self, acts: Vec<Act>, step: &mut Step<'_>) {
        let tests = acts.contains(&Act::Test);
        let (showed, complaints) = (step.showed(), step.complaints());
        for act in acts {
            match act {
                Act::Read { path, pattern, how } => {
                    if showed {
                        self.seen(&path, pattern, how, tests, step);
                    }
                }
                Act::Write { path, how, bytes, appends } => {
                    if path.is_empty() {
                        continue;
                    }
                    if !step.wrote(&path, how, &complaints) {
                        step.facts.push(Fact::FailedWrite);
                        continue;
                    }
                    let is_output = path == self.output;
                    if is_output {
                        self.output_turn = Some(step.turn);
                    }
                    let path = self.number(path);
                    step.facts.push(Fact::Write { path, is_output, how, bytes, appends });
                }
                act => step.facts.push(Fact::Act(act)),
            }
        }
    }

    fn number(&mut self, path: String) -> usize {
        if let Some(number) = self.written.get(&path) {
            return *number;
        }
        let number = self.order.len();
        self.order.push(path.clone());
        self.written.insert(path, number);
        number
    }

    fn seen(&mut self, path: &str, pattern: bool, how: &'static str, tests: bool, step: &mut Step<'_>) {
        if path == self.output {
            // A program that gets the output as an argument counts as looking at it only if it checks something.
            if how != "argument" || tests {
                step.facts.push(Fact::Output(match self.output_turn {
                    Some(turn) if turn == step.turn => Back::Now,
                    Some(_) => Back::Earlier,
                    None => Back::Never,
                }));
            }
        } else if let Some(file) = self.numbers.get(path) {
            step.facts.push(Fact::Input { file: *file, how });
        } else if self.written.contains_key(path) {
            if how != "argument" {
                step.facts.push(Fact::Own);
            }
        } else if pattern && self.patterns < MOST_PATTERNS {
            self.patterns += 1;
            let before = step.facts.len();
            let fitting = self.inputs.iter().enumerate().filter(|(_, input)| matches(path, input));
            step.facts.extend(fitting.map(|(file, _)| Fact::Input { file, how }));
            if self.output_turn.is_some() && how != "argument" && matches(path, &self.output) {
                self.seen(&self.output.clone(), false, how, tests, step);
            }
            if step.facts.len() == before && how != "argument" {
                step.facts.push(Fact::Elsewhere);
            }
        } else if how != "argument" {
            step.facts.push(Fact::Elsewhere);
        }
    }
}

impl<'t> Step<'t> {
    pub(crate) fn failed(&self) -> bool {
        matches!(self.outcome, Outcome::Failed(_))
    }

    /// Whether the call showed its files: a shell may show one file and fail at the next.
    fn showed(&self) -> bool {
        let is_shell = self.deed.families.iter().any(|(program, _)| !program.is_empty());
        let lines = || {
            self.result
                .map_or(0, |result| result.stdout.lines().filter(|line| !line.is_empty()).take(3).count())
        };
        match self.outcome {
            Outcome::Unknown | Outcome::Worked => true,
            Outcome::Failed(Fault::Refused) => false,
            // The lines include the error messages.
            Outcome::Failed(Fault::Text) => is_shell && lines() > 2,
            Outcome::Failed(_) => is_shell && lines() > 0,
        }
    }

    /// Error messages about files that could not be written, if the call failed.
    fn complaints(&self) -> Vec<&'t str> {
        let texts =
            self.result.filter(|_| self.failed()).map(|result| [result.stderr.as_str(), &result.stdout]);
        let lines = texts.into_iter().flatten().flat_map(str::lines);
        lines
            .filter(|line| line.ends_with("denied") || line.ends_with("directory"))
            .take(MOST_COMPLAINTS)
            .collect()
    }

    /// Whether a file was written. Redirections of a failed call usually took effect before it failed.
    fn wrote(&self, path: &str, how: &str, complaints: &[&str]) -> bool {
        match self.outcome {
            Outcome::Unknown | Outcome::Worked => true,
            Outcome::Failed(Fault::Refused) => false,
            Outcome::Failed(_) => {
                let name = base_name(path);
                matches!(how, "redirect" | "tee") && !complaints.iter().any(|line| line.contains(name))
            }
        }
    }
}
