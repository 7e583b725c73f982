//! Collects everything that the HTML report of some experiments shows from records and statistics.

use std::collections::{BTreeMap, HashMap};

use aec_base::content::ContentStore;
use aec_base::digest::Digest;
use aec_base::parallel;
use aec_base::problem::Problem;
use aec_ledger::index::{Filter, Index, IndexError};
use aec_ledger::layout::Ledger;
use aec_ledger::record::TrialRecord;
use aec_ledger::transcript;

use crate::evaluate::{Evaluation, evaluate};
use crate::glance::each_record;
use crate::group::Group;
use crate::html::{self, Budget, Document, Field, GroupKind, Trace, wanted_traces};
use crate::selection::Selection;
use crate::shown::{entry, fields};
use crate::trace::TraceFacts;

/// Bytes of an answer that are shown.
const ANSWER_LIMIT: u64 = 256 * 1024;

/// Explains the numbers of the page.
const METHOD: &str = "The mean reward leaves out trials that failed through no fault of the agent and counts an agent \
    that left nothing to judge as 0; \u{201c}as run\u{201d} counts every fault as 0, \u{201c}worst case\u{201d} also what was planned and not \
    run, was withheld or is not verified. A mean marked with * is not of all trials. \u{201c}Faults\u{201d} are trials that are \
    left out of the mean, \u{201c}crashed\u{201d} those whose program ended with an error and left no answer; they count. \
    Intervals are at 95 % with tasks as units: repetitions of one task say nothing about other tasks.";

struct Shown {
    facts: TraceFacts,
    task: (String, Digest),
    agent: Digest,
    fault_message: Option<String>,
    fields: Vec<Field>,
    prompt: Option<String>,
    trajectory: Option<(Digest, u64)>,
    answer: Option<Digest>,
}

pub struct PageSource<'a> {
    pub ledger: &'a Ledger,
    pub index: &'a Index,
    pub filter: &'a Filter,
    /// The trials that the filter accepts.
    pub selection: &'a Selection,
    pub evaluation: &'a Evaluation,
}

/// Everything that the page shows, with traces as far as the budget allows, and problems of unreadable records.
pub fn document(
    source: &PageSource<'_>,
    tool: &str,
    budget: Option<&Budget>,
) -> Result<(Document, Vec<Problem>), IndexError> {
    let contents = source.ledger.contents();
    let (shown, problems) =
        each_record(source.ledger, source.index, source.filter, |record| Shown::of(record, &contents))?;
    let mut document = skeleton(source, tool);
    let tasks: HashMap<(&str, Digest), usize> = source
        .selection
        .tasks
        .iter()
        .enumerate()
        .map(|(at, task)| ((task.id.as_str(), task.revision), at))
        .collect();
    let agents: HashMap<Digest, usize> =
        source.selection.agents.iter().enumerate().map(|(at, agent)| (agent.digest, at)).collect();
    let experiments: HashMap<&str, usize> =
        source.selection.experiments.iter().enumerate().map(|(at, one)| (one.id.as_str(), at)).collect();
    let mut read = Vec::with_capacity(shown.len());
    for one in shown {
        // A record that was written after the selection is left to the next report.
        let task = tasks.get(&(one.task.0.as_str(), one.task.1)).copied();
        let agent = agents.get(&one.agent).copied();
        let experiment = experiments.get(one.facts.experiment_id.as_str()).copied();
        let (Some(task), Some(agent), Some(experiment)) = (task, agent, experiment) else { continue };
        if document.tasks[task].prompt.is_none() {
            document.tasks[task].prompt.clone_from(&one.prompt);
        }
        read.push((one.trajectory, one.answer));
        document.trials.push(one.trial(task, agent, experiment));
    }
    if let Some(budget) = budget {
        let wanted = wanted_traces(&document, budget);
        document.traces = parallel::map(&wanted, 4, |trial| trace(*trial, read[*trial], &contents))
            .into_iter()
            .flatten()
            .collect();
    }
    Ok((document, problems))
}

impl Shown {
    fn of(record: &TrialRecord, contents: &ContentStore) -> Self {
        let artefact = |path: &Option<String>| {
            let path = path.as_ref()?;
            record.all_artefacts().find(|artefact| artefact.path == *path)
        };
        Self {
            facts: TraceFacts::read(record, contents).without_text(),
            task: (record.task.task_id.clone(), record.task.task_revision),
            agent: record.agent.digest,
            fault_message: record.fault.as_ref().map(|fault| fault.message.clone()),
            fields: fields(record),
            // Prompts of held-out tasks must not be published.
            prompt: (record.task.visibility.as_deref() != Some("holdout"))
                .then(|| record.inputs.instruction.clone()),
            trajectory: artefact(&record.outputs.trajectory_path).map(|found| (found.digest, found.size)),
            answer: artefact(&record.outputs.raw_output_path).map(|found| found.digest),
        }
    }

    fn trial(self, task: usize, agent: usize, experiment: usize) -> html::Trial {
        let facts = self.facts;
        html::Trial {
            id: facts.trial_id.to_string(),
            task,
            agent,
            experiment,
            repetition: facts.repetition,
            attempt: facts.attempt,
            outcome: facts.outcome.name().to_owned(),
            reward: facts.reward,
            rescaled: None,
            fault_kind: facts.error_type,
            fault_message: self.fault_message,
            stop: Some(facts.stop_condition),
            turns: facts.has_trace.then_some(facts.turns_used),
            tool_calls: facts.has_trace.then_some(facts.tool_calls),
            tool_errors: facts.has_trace.then_some(facts.tool_errors),
            submitted: Some(facts.submit_reached),
            output_source: facts.output_source.map(|source| source.name().to_owned()),
            tokens_in: facts.tokens_in,
            tokens_out: facts.tokens_out,
            cost: facts.cost_usd,
            seconds: Some(facts.seconds),
            trace_bytes: self.trajectory.map(|(_, size)| size),
            fields: self.fields,
        }
    }
}

fn skeleton(source: &PageSource<'_>, tool: &str) -> Document {
    let (selection, evaluation) = (source.selection, source.evaluation);
    let ids: Vec<&str> = selection.experiments.iter().map(|one| one.id.as_str()).collect();
    Document {
        title: ids.join(", "),
        tool: tool.to_owned(),
        method: Some(METHOD.to_owned()),
        pass_reward: 1.0 - 1e-9,
        notes: evaluation.notes.clone(),
        experiments: selection
            .experiments
            .iter()
            .map(|one| html::Experiment {
                id: one.id.clone(),
                dataset: one.dataset.clone(),
                ..html::Experiment::default()
            })
            .collect(),
        agents: agents(selection, evaluation),
        tasks: selection
            .tasks
            .iter()
            .map(|task| html::Task {
                id: task.id.clone(),
                revision: task.revision.hex()[..12].to_owned(),
                discipline: task.discipline.clone(),
                difficulty: task.difficulty.clone(),
                family: task.family.clone(),
                prompt: None,
            })
            .collect(),
        groups: groups(selection, evaluation),
        ..Document::default()
    }
}

fn agents(selection: &Selection, evaluation: &Evaluation) -> Vec<html::Agent> {
    let names = crate::evaluate::agent_names(&selection.agents);
    let by_name: BTreeMap<&str, &Group> =
        evaluation.by.agent.iter().map(|group| (group.name.as_str(), group)).collect();
    selection
        .agents
        .iter()
        .map(|agent| {
            let name = names.get(&agent.digest).cloned().unwrap_or_else(|| agent.name.clone());
            let group = by_name.get(name.as_str()).copied();
            let known = |value: fn(&Group) -> Option<f64>| group.and_then(value);
            let took = group.map(|group| group.took);
            html::Agent {
                harness: agent.harness.clone(),
                model: agent.model.clone(),
                trials: group.map_or(0, |group| group.trials as u64),
                scored: group.map_or(0, |group| group.counted as u64),
                mean: known(|group| group.mean_reward),
                unknown: group.and_then(|group| Some(group.unknown?.text(group.counted))),
                low: known(|group| group.interval.map(|span| span.low)),
                high: known(|group| group.interval.map(|span| span.high)),
                as_run: known(|group| group.denominators.as_run),
                without_infra: known(|group| group.denominators.without_infra),
                worst_case: known(|group| group.denominators.worst_case),
                faults: group.map_or(0, |group| group.faults.uncounted as u64),
                crashed: group.map_or(0, |group| group.faults.crashed as u64),
                pass_rate: known(|group| group.solve_rate),
                cost: took.map(|took| took.cost_usd),
                unpriced: took.map_or(0, |took| took.without_cost),
                cost_per_solved: known(|group| group.cost_per_solved),
                tokens_in: took.filter(|took| took.without_tokens == 0).map(|took| took.tokens_in),
                tokens_out: took.filter(|took| took.without_tokens == 0).map(|took| took.tokens_out),
                seconds: known(|group| group.mean_seconds),
                name,
            }
        })
        .collect()
}

fn groups(selection: &Selection, evaluation: &Evaluation) -> Vec<html::Group> {
    let mut groups = Vec::new();
    let mut add = |evaluation: &Evaluation, agent: Option<usize>| {
        for (kind, found) in [
            (GroupKind::Difficulty, &evaluation.by.difficulty),
            (GroupKind::Discipline, &evaluation.by.discipline),
            (GroupKind::Family, &evaluation.by.family),
        ] {
            groups.extend(found.iter().map(|group| html::Group {
                kind,
                name: group.name.clone(),
                agent,
                trials: group.trials as u64,
                mean: group.mean_reward,
                low: group.interval.map(|span| span.low),
                high: group.interval.map(|span| span.high),
            }));
        }
    };
    add(evaluation, None);
    if selection.agents.len() > 1 {
        for (at, agent) in selection.agents.iter().enumerate() {
            let own = selection.filtered(|trial| selection.agents[trial.agent] == *agent);
            add(&evaluate(&own, evaluation.unit), Some(at));
        }
    }
    groups
}

fn trace(
    trial: usize,
    read: (Option<(Digest, u64)>, Option<Digest>),
    contents: &ContentStore,
) -> Option<Trace> {
    let events = transcript::of_content(read.0?.0, contents)?;
    let answer = read.1.and_then(|digest| contents.read(digest, ANSWER_LIMIT).ok());
    let start = events.iter().find_map(|event| Some(event.timestamp.as_ref()?.to_milliseconds()));
    Some(Trace {
        trial,
        answer: answer.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
        entries: events.into_iter().filter_map(|event| entry(event, start)).collect(),
    })
}
