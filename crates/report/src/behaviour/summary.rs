//! Summaries of many trials. Each share names the number of trials behind it: a trial that cannot answer a question
//! does not count against it.

use indexmap::IndexMap;
use serde::Serialize;

use super::features::{Acceptance, Features};
use super::kind::{Kind, Label, counts, dominant};
use super::structure::{Nearness, Reference, Transitions, as_f64, ratio};

/// Labels and trials with less confidence count as uncertain.
pub const LOW_CONFIDENCE: f64 = 0.75;

#[derive(Clone, Debug, PartialEq)]
pub struct TrialBehaviour {
    pub trial_id: String,
    pub task_id: String,
    pub reward: Option<f64>,
    /// Absent without a trace.
    pub features: Option<Features>,
    /// The kinds of its turns, in order; absent for a turn without a label. See [`super::kind::in_order`].
    pub labels: Vec<Option<Label>>,
}

/// The share of yes among the trials that can answer a question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Share {
    pub yes: usize,
    /// Trials that can answer.
    pub of: usize,
}

impl Share {
    fn add(&mut self, answer: Option<bool>) {
        self.of += usize::from(answer.is_some());
        self.yes += usize::from(answer == Some(true));
    }

    /// Absent if no trial can answer.
    pub fn value(self) -> Option<f64> {
        (self.of > 0).then(|| ratio(self.yes, self.of))
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Workflow {
    /// Read at least one assigned file; of trials whose task has files.
    pub inspected_files: Share,
    pub inspected_all_files: Share,
    /// Used at least one of the task's tools; of trials whose task has tools.
    pub used_tools: Share,
    /// Had a tool error; of trials with tool results.
    pub met_errors: Share,
    /// Recovered from an error; of trials that had one.
    pub recovered: Share,
    pub wrote_output: Share,
    /// Read the output back; of trials whose writes are in the trace.
    pub read_back: Share,
    pub submitted: Share,
    pub empty_responses: Share,
    /// Repeated a call without effect; of trials with calls.
    pub looped: Share,
    /// Got full reward; of trials with a reward.
    pub accepted: Share,
    pub rewarded: Share,
    pub mean_tool_calls: Option<f64>,
    /// Mean number of calls that submit an answer.
    pub mean_submit_calls: Option<f64>,
    /// Mean turns up to the first write of the output, of trials that wrote it.
    pub mean_turns_to_first_write: Option<f64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    pub n_trials: usize,
    pub trials_with_behavioral_trace: usize,
    pub classified_trials: usize,
    pub reference_trial_count: usize,
    /// Mean labelled turns of the classified trials.
    pub mean_classified_turns: Option<f64>,
    pub workflow: Workflow,
    /// Shares of kinds among all labelled turns.
    pub bond_distribution: IndexMap<&'static str, f64>,
    /// Trials by their most frequent kind.
    pub dominant_bond_counts: IndexMap<&'static str, usize>,
    pub transitions: Transitions,
    /// Mean similarity to the reference, of trials that have one.
    pub mean_cosine_similarity: Option<f64>,
    /// Mean distance to the reference sequence, of trials that have one.
    pub mean_normalized_edit_distance: Option<f64>,
    pub confidence: Confidence,
    pub trials: Vec<TrialSummary>,
}

/// How certain the labels are.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Confidence {
    /// What labelled the turns.
    pub confidence_method: String,
    pub trials_with_behavioral_trace: usize,
    /// Trials with at least one labelled turn.
    pub classified_trials: usize,
    /// Labelled turns divided by all turns in traces.
    pub evaluation_completeness: Option<f64>,
    /// Mean over turns.
    pub mean_turn_confidence: Option<f64>,
    /// Mean over trials of their mean.
    pub mean_trial_confidence: Option<f64>,
    /// Share of turns below the threshold.
    pub low_confidence_turn_fraction: Option<f64>,
    /// Share of trials whose mean is below it.
    pub low_confidence_trial_fraction: Option<f64>,
    pub low_confidence_threshold: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrialSummary {
    pub trial_id: String,
    pub task_id: String,
    pub reward: Option<f64>,
    pub classified_turns: usize,
    pub mean_turn_confidence: Option<f64>,
    pub bond_counts: IndexMap<&'static str, usize>,
    pub dominant_bond: Option<Kind>,
    /// Cosine of the transitions with the reference's.
    pub cosine_similarity: Option<f64>,
    /// Distance to the reference sequence.
    pub edit_distance: Option<usize>,
    /// The same divided by the longer length.
    pub normalized_edit_distance: Option<f64>,
}

/// Summarises trials. `method` names what labelled their turns.
pub fn summary(trials: &[TrialBehaviour], method: &str) -> Summary {
    let sequences: Vec<Vec<Option<Kind>>> = trials.iter().map(sequence).collect();
    let pairs = sequences.iter().zip(trials);
    let reference = Reference::of(pairs.map(|(kinds, trial)| (kinds.as_slice(), trial.reward)));
    let rows: Vec<TrialSummary> =
        trials.iter().zip(&sequences).map(|(trial, kinds)| row(trial, kinds, reference.as_ref())).collect();
    let classified = rows.iter().filter(|row| row.classified_turns > 0).count();
    let traced = trials.iter().filter(|trial| trial.features.is_some()).count();
    let mut all = [0; 4];
    let mut dominants = [0; 4];
    for (trial, row) in trials.iter().zip(&rows) {
        for (sum, count) in all.iter_mut().zip(counts(trial.labels.iter().flatten())) {
            *sum += count;
        }
        if let Some(kind) = row.dominant_bond {
            dominants[kind.index()] += 1;
        }
    }
    let turns: usize = all.iter().sum();
    let matrices: Vec<Transitions> = sequences.iter().map(|kinds| Transitions::of(kinds)).collect();
    Summary {
        n_trials: trials.len(),
        trials_with_behavioral_trace: traced,
        classified_trials: classified,
        reference_trial_count: reference.as_ref().map_or(0, |reference| reference.traces),
        mean_classified_turns: (classified > 0).then(|| ratio(turns, classified)),
        workflow: workflow(trials),
        bond_distribution: named(all.map(|count| ratio(count, turns.max(1)))),
        dominant_bond_counts: named(dominants),
        transitions: Transitions::aggregate(&matrices),
        mean_cosine_similarity: mean(rows.iter().filter_map(|row| row.cosine_similarity)),
        mean_normalized_edit_distance: mean(rows.iter().filter_map(|row| row.normalized_edit_distance)),
        confidence: confidence(trials, &rows, method),
        trials: rows,
    }
}

fn sequence(trial: &TrialBehaviour) -> Vec<Option<Kind>> {
    trial.labels.iter().map(|label| label.as_ref().map(|label| label.kind)).collect()
}

fn row(trial: &TrialBehaviour, kinds: &[Option<Kind>], reference: Option<&Reference>) -> TrialSummary {
    let by_kind = counts(trial.labels.iter().flatten());
    let labelled = trial.labels.iter().flatten().count();
    let near = reference
        .filter(|_| labelled > 0)
        .map_or_else(Nearness::default, |reference| reference.nearness(kinds));
    TrialSummary {
        trial_id: trial.trial_id.clone(),
        task_id: trial.task_id.clone(),
        reward: trial.reward,
        classified_turns: labelled,
        mean_turn_confidence: mean(trial.labels.iter().flatten().map(|label| label.confidence)),
        bond_counts: named(by_kind),
        dominant_bond: dominant(by_kind),
        cosine_similarity: near.cosine_similarity,
        edit_distance: near.edit_distance,
        normalized_edit_distance: near.normalized_edit_distance,
    }
}

fn workflow(trials: &[TrialBehaviour]) -> Workflow {
    let mut flow = Workflow::default();
    let all: Vec<&Features> = trials.iter().filter_map(|trial| trial.features.as_ref()).collect();
    for features in &all {
        let (files, tools) = (&features.inspected_files, &features.used_tools);
        flow.inspected_files.add((files.of > 0).then_some(files.read > 0));
        flow.inspected_all_files.add((files.of > 0).then_some(files.read == files.of));
        flow.used_tools.add((tools.of > 0).then_some(tools.used > 0));
        flow.met_errors.add((features.tool_results > 0).then_some(features.tool_errors.count > 0));
        flow.recovered.add(features.recovered.recovered);
        flow.wrote_output.add(Some(features.wrote_output.wrote));
        flow.read_back.add((features.wrote_output.writes > 0).then_some(features.read_back.count > 0));
        flow.submitted.add(Some(features.submitted));
        flow.empty_responses.add(Some(features.empty_responses.count > 0));
        flow.looped.add((features.tool_calls > 0).then_some(features.loops.repeated_calls > 0));
        let known = features.accepted != Acceptance::Unknown;
        flow.accepted.add(known.then_some(features.accepted == Acceptance::Full));
        flow.rewarded.add(known.then_some(features.accepted != Acceptance::None));
    }
    flow.mean_tool_calls = mean(all.iter().map(|features| as_f64(features.tool_calls)));
    flow.mean_submit_calls = mean(all.iter().map(|features| as_f64(features.submit_calls)));
    flow.mean_turns_to_first_write =
        mean(all.iter().filter_map(|features| features.turns_to_first_write).map(as_f64));
    flow
}

fn confidence(trials: &[TrialBehaviour], rows: &[TrialSummary], method: &str) -> Confidence {
    let turns =
        || trials.iter().flat_map(|trial| trial.labels.iter().flatten()).map(|label| label.confidence);
    let means = || rows.iter().filter_map(|row| row.mean_turn_confidence);
    let low = |all: &mut dyn Iterator<Item = f64>| {
        let (mut low, mut count) = (0, 0);
        for value in all {
            low += usize::from(value < LOW_CONFIDENCE);
            count += 1;
        }
        (count > 0).then(|| ratio(low, count))
    };
    let traced: usize =
        trials.iter().filter_map(|trial| trial.features.as_ref()).map(|features| features.turns).sum();
    let labelled: usize = trials
        .iter()
        .filter(|trial| trial.features.is_some())
        .map(|trial| trial.labels.iter().flatten().count())
        .sum();
    Confidence {
        confidence_method: method.to_owned(),
        trials_with_behavioral_trace: trials.iter().filter(|trial| trial.features.is_some()).count(),
        classified_trials: means().count(),
        evaluation_completeness: (traced > 0).then(|| ratio(labelled, traced)),
        mean_turn_confidence: mean(turns()),
        mean_trial_confidence: mean(means()),
        low_confidence_turn_fraction: low(&mut turns()),
        low_confidence_trial_fraction: low(&mut means()),
        low_confidence_threshold: LOW_CONFIDENCE,
    }
}

fn named<T>(values: [T; 4]) -> IndexMap<&'static str, T> {
    Kind::ALL.into_iter().map(Kind::name).zip(values).collect()
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0);
    for value in values {
        sum += value;
        count += 1;
    }
    (count > 0).then(|| sum / as_f64(count))
}

#[cfg(test)]
mod tests {
    use super::super::kind::Kind::{Execution as E, Exploration as X, Verification as V};
    use super::*;

    fn trial(
        id: &str,
        kinds: &[(u32, Kind, f64)],
        reward: Option<f64>,
        features: Option<Features>,
    ) -> TrialBehaviour {
        let label = |(turn_index, kind, confidence): &(u32, Kind, f64)| Label {
            turn_index: *turn_index,
            kind: *kind,
            confidence: *confidence,
            evidence: Vec::new(),
        };
        TrialBehaviour {
            trial_id: id.into(),
            task_id: "t".into(),
            reward,
            features,
            labels: kinds.iter().map(label).map(Some).collect(),
        }
    }

    #[test]
    fn trials_are_summed_up() {
        let good = [(1, X, 1.0), (2, E, 1.0), (3, V, 0.5)];
        let features = |turns| Some(Features { turns, ..Features::default() });
        let trials = [
            trial("a", &good, Some(1.0), features(3)),
            trial("b", &[(1, E, 0.6)], Some(0.0), features(2)),
            trial("c", &[], None, features(1)),
            trial("d", &[], Some(0.5), None),
        ];
        let sum = summary(&trials, "rules");
        assert_eq!((sum.n_trials, sum.trials_with_behavioral_trace, sum.classified_trials), (4, 3, 2));
        assert_eq!((sum.reference_trial_count, sum.mean_classified_turns), (1, Some(2.0)));
        assert_eq!(sum.bond_distribution.get("execution"), Some(&0.5));
        assert_eq!((sum.dominant_bond_counts["verification"], sum.dominant_bond_counts["execution"]), (1, 1));
        // Trial b has no transitions, so only trial a has a similarity; its distance is 2 of 3.
        assert_eq!(sum.mean_cosine_similarity.map(|cosine| (cosine * 1e9).round()), Some(1e9));
        assert!((sum.mean_normalized_edit_distance.unwrap() - 1.0 / 3.0).abs() < 1e-15);
        let sure = &sum.confidence;
        assert_eq!((sure.classified_trials, sure.evaluation_completeness), (2, Some(4.0 / 6.0)));
        assert_eq!(sure.low_confidence_turn_fraction, Some(0.5));
        assert_eq!(sure.low_confidence_trial_fraction, Some(0.5));
        assert!((sure.mean_turn_confidence.unwrap() - 0.775).abs() < 1e-15);
        assert_eq!(sum.trials[0].edit_distance, Some(0));
        assert_eq!((sum.trials[2].edit_distance, sum.trials[2].dominant_bond), (None, None));
    }

    #[test]
    fn shares_count_only_those_that_can_answer() {
        let mut with_files = Features { tool_calls: 3, tool_results: 2, ..Features::default() };
        (with_files.inspected_files.read, with_files.inspected_files.of) = (1, 2);
        with_files.accepted = Acceptance::Partial;
        let without = Features::default();
        let trials = [trial("a", &[], Some(0.5), Some(with_files)), trial("b", &[], None, Some(without))];
        let flow = summary(&trials, "rules").workflow;
        assert_eq!(flow.inspected_files, Share { yes: 1, of: 1 });
        assert_eq!(flow.inspected_all_files, Share { yes: 0, of: 1 });
        assert_eq!(flow.recovered, Share { yes: 0, of: 0 });
        assert_eq!(flow.recovered.value(), None);
        assert_eq!((flow.accepted, flow.rewarded), (Share { yes: 0, of: 1 }, Share { yes: 1, of: 1 }));
        assert_eq!(flow.submitted, Share { yes: 0, of: 2 });
        assert_eq!(flow.mean_tool_calls, Some(1.5));
    }

    #[test]
    fn a_turn_without_a_label_is_no_transition() {
        let mut gap = trial("a", &[(1, E, 1.0), (3, V, 1.0), (5, E, 1.0)], Some(1.0), None);
        gap.labels[1] = None;
        let sum = summary(&[gap], "rules");
        assert_eq!(sum.transitions.rows, [[0.0; 4]; 4]);
        assert_eq!((sum.trials[0].classified_turns, sum.trials[0].edit_distance), (2, Some(0)));
    }

    #[test]
    fn no_trials_are_no_numbers() {
        let sum = summary(&[], "rules");
        assert_eq!((sum.n_trials, sum.mean_classified_turns, sum.mean_cosine_similarity), (0, None, None));
        let text = serde_json::to_value(&sum).unwrap();
        assert_eq!(text["bond_distribution"]["execution"], 0.0);
        assert_eq!(text["confidence"]["confidence_method"], "rules");
    }
}
