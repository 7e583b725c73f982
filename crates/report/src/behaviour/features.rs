//! Answers questions about an agent's way of working from a trace: did it inspect the assigned files, use the tools,
//! recover, write the output, read it back, submit it, and was it accepted.

use std::collections::HashSet;
use std::hash::{Hash, Hasher};

use aec_ledger::transcript::turns::{Call, CallResult, Turn};
use indexmap::IndexMap;
use serde::Serialize;
use serde_json::Value;

pub use super::outcome::Fault;

use super::action::{Act, Family};
use super::outcome::Outcome;
use super::reading::{Back, Fact, Reading, Step, read};
use super::trace::Trace;

/// Longest excerpt of an error message.
const LONGEST_COMPLAINT: usize = 200;
/// Most errors whose recovery is tracked.
const MOST_FOLLOWED: usize = 1_000;

/// The features of a trace. Turns have the numbers of the trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Features {
    pub turns: usize,
    pub inspected_files: InspectedFiles,
    pub used_tools: UsedTools,
    pub tool_calls: usize,
    /// Calls whose result is in the trace.
    pub tool_results: usize,
    pub tool_errors: ToolErrors,
    pub recovered: Recovery,
    pub wrote_output: WroteOutput,
    /// How often the agent looked at its own output after writing it.
    pub read_back: Sightings,
    pub submit_calls: usize,
    pub submitted: bool,
    /// The turn of the first successful submission.
    pub submit_turn: Option<u32>,
    pub accepted: Acceptance,
    /// Answers with neither text nor calls.
    pub empty_responses: Sightings,
    /// Calls that were repeated without effect.
    pub loops: Loops,
    pub edit_churn: EditChurn,
    /// Turns up to and including the first write of the output.
    pub turns_to_first_write: Option<usize>,
    /// Milliseconds up to the turn of that write.
    pub ms_to_first_write: Option<u64>,
    /// Turns after the last write of the output.
    pub turns_after_last_write: Option<usize>,
}

impl Features {
    /// Removes texts of agents and their tools: error messages, and names of files that agents made.
    #[must_use]
    pub fn without_text(mut self) -> Self {
        self.tool_errors.first = None;
        self.edit_churn.most = None;
        self
    }
}

/// How often something occurred, and where first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sightings {
    pub count: usize,
    /// Absent if it is in no turn.
    pub first_turn: Option<u32>,
}

/// Assigned files that were read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct InspectedFiles {
    pub read: usize,
    /// Files that the task has.
    pub of: usize,
    pub first_turn: Option<u32>,
    /// Reads by the way they were made: `cat`, `sed`, `python`, `read_file`, `argument` (passed to a program) …
    pub how: IndexMap<&'static str, usize>,
    pub unread: Vec<String>,
}

/// Tools of the task that were used. Asking for their help does not count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct UsedTools {
    pub used: usize,
    /// Tools that the task has.
    pub of: usize,
    pub calls: usize,
    pub first_turn: Option<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ToolErrors {
    pub count: usize,
    pub first_turn: Option<u32>,
    pub by: IndexMap<Fault, usize>,
    /// The first error message, cut.
    pub first: Option<String>,
}

/// Errors after which the same kind of action succeeded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Recovery {
    /// Whether any error was recovered; unknown without an error.
    pub recovered: Option<bool>,
    pub errors_recovered: usize,
    pub errors_left: usize,
    /// The turn of the first success after an error.
    pub first_turn: Option<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WroteOutput {
    /// Whether the output was written. The files that the trial left take precedence over what its commands suggest.
    pub wrote: bool,
    /// Calls that wrote it, as far as the trace shows.
    pub writes: usize,
    pub first_turn: Option<u32>,
    /// By the way they were made: `redirect`, `tee`, `python`, `write_file`, `submission` …
    pub by: IndexMap<&'static str, usize>,
    /// Whether the file existed although no write was seen: an unknown program made it.
    pub unseen: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Acceptance {
    /// Full reward.
    Full,
    /// Some reward.
    Partial,
    /// No reward.
    None,
    /// The reward is missing or not a number.
    #[default]
    Unknown,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Loops {
    /// Calls that had been made before, with the same result.
    pub repeated_calls: usize,
    pub share: f64,
    /// The longest run of the same call with the same result.
    pub longest_run: usize,
    pub first_turn: Option<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EditChurn {
    pub files: usize,
    pub rewritten_files: usize,
    /// Writes after the first of each file, except appending.
    pub rewrites: usize,
    /// Bytes of the writes whose size is known, including first ones.
    pub bytes: u64,
    pub writes_of_unknown_size: usize,
    /// The file that was written most often, and how often.
    pub most: Option<(String, usize)>,
}

impl Acceptance {
    pub fn of(reward: Option<f64>) -> Self {
        match reward {
            Some(reward) if reward >= 1.0 => Self::Full,
            Some(reward) if reward > 0.0 => Self::Partial,
            Some(reward) if reward <= 0.0 => Self::None,
            _ => Self::Unknown,
        }
    }
}

impl Sightings {
    fn add(&mut self, turn: u32) {
        self.count += 1;
        self.first_turn.get_or_insert(turn);
    }
}

pub fn features(trace: &Trace) -> Features {
    of(trace, &read(trace))
}

/// The features of a trace that was already interpreted.
pub(crate) fn of(trace: &Trace, reading: &Reading<'_>) -> Features {
    let mut features = Features {
        turns: trace.turns.len(),
        tool_calls: reading.steps.len(),
        tool_results: reading.steps.iter().filter(|step| step.result.is_some()).count(),
        accepted: Acceptance::of(trace.reward),
        loops: loops(trace, reading),
        edit_churn: edit_churn(reading),
        ..Features::default()
    };
    for turn in trace.turns.iter().filter(|turn| turn.is_empty()) {
        features.empty_responses.add(turn.index);
    }
    features.empty_responses.count += trace.empty_replies;
    uses(trace, reading, &mut features);
    errors(trace, reading, &mut features);
    submissions(trace, reading, &mut features);
    writes(trace, reading, &mut features);
    features
}

fn uses(trace: &Trace, reading: &Reading<'_>, features: &mut Features) {
    let files = &trace.task.input_files;
    let mut read = vec![false; files.len()];
    let mut used = vec![false; trace.task.declared_tools.len()];
    let (inspected, tools) = (&mut features.inspected_files, &mut features.used_tools);
    for step in &reading.steps {
        let turn = trace.turns[step.turn].index;
        for fact in &step.facts {
            match fact {
                Fact::Input { file, how } => {
                    read[*file] = true;
                    inspected.first_turn.get_or_insert(turn);
                    *inspected.how.entry(how).or_default() += 1;
                }
                Fact::Output(Back::Earlier | Back::Now) => features.read_back.add(turn),
                Fact::Act(Act::Declared(tool)) => {
                    used[*tool] = true;
                    tools.calls += 1;
                    tools.first_turn.get_or_insert(turn);
                }
                _ => {}
            }
        }
    }
    let unread = files.iter().zip(&read).filter(|(_, read)| !**read).map(|(file, _)| file.clone());
    inspected.unread = unread.collect();
    (inspected.read, inspected.of) = (files.len() - inspected.unread.len(), files.len());
    (tools.used, tools.of) = (used.iter().filter(|used| **used).count(), used.len());
}

fn errors(trace: &Trace, reading: &Reading<'_>, features: &mut Features) {
    let (errors, recovery) = (&mut features.tool_errors, &mut features.recovered);
    let mut open: Vec<Option<&Family>> = Vec::new();
    for step in &reading.steps {
        let turn = trace.turns[step.turn].index;
        match step.outcome {
            Outcome::Failed(fault) => {
                errors.count += 1;
                errors.first_turn.get_or_insert(turn);
                *errors.by.entry(fault).or_default() += 1;
                if errors.first.is_none() {
                    errors.first = step.result.map(complaint);
                }
                if open.len() < MOST_FOLLOWED {
                    // A call of a tool that does not exist counts as recovered after any successful call.
                    open.push(step.failing_family().filter(|_| fault != Fault::Refused));
                }
            }
            Outcome::Worked => {
                let before = open.len();
                open.retain(|family| {
                    let is_same = |(_, of): &(String, Family)| family.is_none_or(|family| of == family);
                    !step.deed.families.iter().any(is_same)
                });
                if open.len() < before {
                    recovery.errors_recovered += before - open.len();
                    recovery.first_turn.get_or_insert(turn);
                }
            }
            Outcome::Unknown => {}
        }
    }
    recovery.errors_left = errors.count - recovery.errors_recovered;
    recovery.recovered = (errors.count > 0).then_some(recovery.errors_recovered > 0);
}

fn complaint(result: &CallResult) -> String {
    let text = if result.stderr.trim().is_empty() { &result.stdout } else { &result.stderr };
    super::text::cut(text.trim(), LONGEST_COMPLAINT)
}

fn submissions(trace: &Trace, reading: &Reading<'_>, features: &mut Features) {
    let submits = |fact: &Fact| matches!(fact, Fact::Act(Act::Submit { .. }));
    for step in reading.steps.iter().filter(|step| step.facts.iter().any(submits)) {
        features.submit_calls += 1;
        if !step.failed() {
            features.submit_turn.get_or_insert(trace.turns[step.turn].index);
        }
    }
    features.submitted = trace.submitted.unwrap_or_else(|| features.submit_turn.is_some());
}

fn writes(trace: &Trace, reading: &Reading<'_>, features: &mut Features) {
    let wrote = &mut features.wrote_output;
    let mut turns: Option<(usize, usize)> = None;
    let mut take = |step: &Step<'_>, how: &'static str| {
        wrote.writes += 1;
        *wrote.by.entry(how).or_default() += 1;
        turns = Some((turns.map_or(step.turn, |(first, _)| first), step.turn));
    };
    for step in &reading.steps {
        let write = step.facts.iter().find_map(|fact| match fact {
            Fact::Write { is_output: true, how, .. } => Some(how),
            _ => None,
        });
        if let Some(how) = write {
            take(step, how);
        }
    }
    if turns.is_none() {
        let full = |fact: &Fact| matches!(fact, Fact::Act(Act::Submit { bytes }) if *bytes != Some(0));
        let mut turns_of = reading.steps.iter().filter(|step| !step.failed() && step.facts.iter().any(full));
        if let Some(step) = turns_of.next() {
            wrote.by.insert("submission", 1);
            wrote.writes = 1;
            turns = Some((step.turn, step.turn));
        }
    }
    wrote.unseen = wrote.writes == 0 && trace.output_present == Some(true);
    wrote.wrote = trace.output_present.unwrap_or(wrote.writes > 0);
    let Some((first, last)) = turns else { return };
    let turn: &Turn = &trace.turns[first];
    wrote.first_turn = Some(turn.index);
    features.turns_to_first_write = Some(first + 1);
    features.ms_to_first_write = turn.offset_ms;
    features.turns_after_last_write = Some(trace.turns.len() - 1 - last);
}

/// A tool, its arguments and command; both streams and the exit code of its result.
type Parts<'t> = (&'t str, &'t Value, Option<&'t str>, Option<(&'t str, &'t str, Option<i32>)>);

#[derive(Clone, Copy)]
struct Attempt<'t>(&'t Call, Option<&'t CallResult>);

impl Attempt<'_> {
    /// The parts that must be equal for two calls to count as the same: not their ids, nor their durations.
    fn parts(&self) -> Parts<'_> {
        let Self(call, result) = self;
        let result = result.map(|result| (result.stdout.as_str(), result.stderr.as_str(), result.exit_code));
        (&call.name, &call.arguments, call.command.as_deref(), result)
    }
}

impl PartialEq for Attempt<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for Attempt<'_> {}

impl Hash for Attempt<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let (name, arguments, command, result) = self.parts();
        // Arguments usually repeat the command.
        match command {
            Some(command) => command.hash(state),
            None => (name, arguments).hash(state),
        }
        result.hash(state);
    }
}

fn loops(trace: &Trace, reading: &Reading<'_>) -> Loops {
    let mut seen: HashSet<Attempt<'_>> = HashSet::new();
    let mut loops = Loops::default();
    let (mut run, mut last) = (0, None);
    for step in &reading.steps {
        let attempt = Attempt(step.call, step.result);
        run = if last == Some(attempt) { run + 1 } else { 1 };
        last = Some(attempt);
        loops.longest_run = loops.longest_run.max(run);
        if !seen.insert(attempt) {
            loops.repeated_calls += 1;
            loops.first_turn.get_or_insert(trace.turns[step.turn].index);
        }
    }
    if !reading.steps.is_empty() {
        loops.share = super::structure::ratio(loops.repeated_calls, reading.steps.len());
    }
    loops
}

fn edit_churn(reading: &Reading<'_>) -> EditChurn {
    let mut churn = EditChurn { files: reading.written.len(), ..EditChurn::default() };
    let mut writes = vec![0_usize; reading.written.len()];
    for step in &reading.steps {
        let mut counted: Option<usize> = None;
        for fact in &step.facts {
            let Fact::Write { path, bytes, appends, .. } = fact else { continue };
            match bytes {
                Some(bytes) => churn.bytes = churn.bytes.saturating_add(*bytes),
                None => churn.writes_of_unknown_size += 1,
            }
            // `> file` and `>> file` in one call are one write.
            if (!appends || writes[*path] == 0) && counted != Some(*path) {
                writes[*path] += 1;
                counted = Some(*path);
            }
        }
    }
    churn.rewritten_files = writes.iter().filter(|count| **count > 1).count();
    churn.rewrites = writes.iter().map(|count| count.saturating_sub(1)).sum();
    let most = writes.iter().enumerate().max_by_key(|(number, count)| (**count, std::cmp::Reverse(*number)));
    churn.most = most.map(|(number, count)| (reading.written[number].clone(), *count));
    churn
}

impl Step<'_> {
    /// The kind of the action that failed: of the program with an error message, or else of the last one.
    fn failing_family(&self) -> Option<&Family> {
        let families = &self.deed.families;
        let stderr = self.result.map_or("", |result| result.stderr.as_str());
        let last = stderr.trim_end().rsplit('\n').next().unwrap_or_default();
        let complaining = families.iter().find(|(program, _)| {
            !program.is_empty()
                && last.strip_prefix(program.as_str()).is_some_and(|rest| rest.starts_with(": "))
        });
        let family = complaining.or_else(|| families.iter().rev().find(|(program, _)| !program.is_empty()));
        family.or_else(|| families.last()).map(|(_, family)| family)
    }
}
