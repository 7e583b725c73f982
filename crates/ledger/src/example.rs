//! Made-up records for tests and benchmarks.

use std::collections::BTreeMap;

use aec_base::content::ContentStore;
use aec_base::digest::Digest;
use aec_base::name::Name;
use aec_base::timestamp::Timestamp;
use aec_judge::settle::order::{AnswerOrder, Source};
use aec_judge::settle::outcome::{AgentStatus, Boundary, Fault};
use aec_judge::verdict::{Judged, Outcome};
use aec_sandbox::{Held, Hold, Level, Limits};
use indexmap::IndexMap;
use serde_json::json;

use crate::chain::Link;
use crate::layout::Ledger;
use crate::record::{
    AgentFacts, AgentOutput, Artefact, Completeness, Cost, EnvironmentFacts, Evaluation, Inputs, Outputs,
    SCHEMA_VERSION, TaskFacts, Timing, TrialRecord, Validity,
};

/// A scored record of an attempt at a trial.
///
/// # Panics
///
/// When a name is invalid.
pub fn record(experiment: &str, trial: &str, attempt: u32) -> TrialRecord {
    let seconds = 1_775_952_000 + u64::from(attempt);
    TrialRecord {
        schema_version: SCHEMA_VERSION,
        trial_id: name(trial),
        experiment_id: name(experiment),
        dataset_id: Some("beams@1.0.0".to_owned()),
        timestamp: Timestamp::from_seconds(seconds),
        attempt,
        repetition: 1,
        key: Digest::of(trial.as_bytes()),
        plan: Digest::of(b"plan"),
        outcome: Outcome::Scored,
        fault: None,
        task: TaskFacts {
            task_id: "structural.beam.simple".to_owned(),
            task_revision: Digest::of(b"task"),
            domain: "structural".to_owned(),
            difficulty: Some("easy".to_owned()),
            visibility: Some("public".to_owned()),
            family: "beam".to_owned(),
        },
        agent: AgentFacts {
            name: name("baseline"),
            adapter: "direct".to_owned(),
            adapter_revision: Some("0.1.0".to_owned()),
            model: Some("openai/gpt-4.1".to_owned()),
            resolved_model: Some("gpt-4.1-2025-04-14".to_owned()),
            configuration: IndexMap::from_iter([("temperature".to_owned(), json!(0.0))]),
            digest: Digest::of(b"agent"),
        },
        environment: environment(),
        inputs: Inputs {
            instruction: "What is the bending moment in the middle of the beam?".to_owned(),
            system_prompt: None,
            input_files: Vec::new(),
        },
        outputs: Outputs {
            agent_output: Some(AgentOutput {
                status: AgentStatus::Completed,
                output_path: "/workspace/output.json".to_owned(),
                output_format: "jsonl".to_owned(),
                error_message: None,
            }),
            output_source: Some(Source::File),
            raw_output_path: Some("workspace/output.json".to_owned()),
            conversation_path: Some("conversation.jsonl".to_owned()),
            trajectory_path: Some("trajectory.jsonl".to_owned()),
            answer_order: AnswerOrder::FileFirst,
            trajectory_content: None,
            agent_result: IndexMap::new(),
            submission: None,
            snapshots: Vec::new(),
        },
        evaluation: Some(evaluation(0.75)),
        cost: Cost {
            model_calls: 2,
            tokens_in: Some(1200),
            tokens_out: Some(340),
            estimated_cost_usd: Some(0.0123),
            ..Cost::default()
        },
        adaptation: None,
        artefacts: Vec::new(),
        completeness: Completeness::Complete,
        timing: Timing {
            completed_at: Some(Timestamp::from_seconds(seconds + 4)),
            total_seconds: 4.5,
            setup_seconds: Some(0.25),
            agent_seconds: Some(4.0),
            verification_seconds: Some(0.25),
            artefacts: Vec::new(),
        },
    }
}

/// A scored record of the experiment `exp` with these files, whose contents are stored.
///
/// # Panics
///
/// When they cannot be stored.
pub fn record_with(
    contents: &ContentStore,
    trial: &str,
    attempt: u32,
    files: &[(&str, &[u8])],
) -> TrialRecord {
    let artefact = |(path, content): &(&str, &[u8])| {
        let digest = contents.put(content).unwrap_or_else(|error| panic!("{path}: {error}"));
        Artefact { path: (*path).to_owned(), digest, size: content.len() as u64 }
    };
    TrialRecord { artefacts: files.iter().map(artefact).collect(), ..record("exp", trial, attempt) }
}

/// The same attempt with another outcome, with a fault and without a reward.
pub fn with_outcome(mut record: TrialRecord, outcome: Outcome) -> TrialRecord {
    record.outcome = outcome;
    record.evaluation = None;
    record.fault = Some(Fault {
        boundary: match outcome {
            Outcome::AgentFault => Boundary::Harness,
            Outcome::VerifierFault => Boundary::Verifier,
            Outcome::Cancelled => Boundary::Cancelled,
            _ => Boundary::Provider,
        },
        kind: Some("timeout".to_owned()),
        message: "no answer within 120 s".to_owned(),
        retryable: outcome == Outcome::InfraFault,
    });
    record
}

/// Writes a record's file, as a finished trial leaves it.
///
/// # Panics
///
/// When it cannot be written.
pub fn write(ledger: &Ledger, record: &TrialRecord) -> Digest {
    let text = record.to_json().unwrap_or_default();
    let path = ledger.experiment(&record.experiment_id).record(&record.trial_id, record.attempt);
    assert!(aec_base::file::write_atomic(&path, text.as_bytes()).is_ok(), "{}", path.display());
    Digest::of(text.as_bytes())
}

/// Writes records of one experiment with the chain of a session, the artefact `note.txt` of each and the plan of the
/// first.
///
/// # Panics
///
/// When they cannot be written.
pub fn write_session(ledger: &Ledger, session: &str, records: &[TrialRecord]) {
    let Some(first) = records.first() else { return };
    let directory = ledger.experiment(&first.experiment_id);
    let mut previous = first.plan;
    let mut chain = String::new();
    for (record, sequence) in records.iter().zip(1..) {
        let mut record = record.clone();
        let note = format!("notes of {}\n", record.trial_id);
        let kept = ledger.contents().put(note.as_bytes());
        assert!(kept.is_ok(), "a content is kept");
        let digest = kept.unwrap_or(record.key);
        record.artefacts.push(Artefact { path: "note.txt".to_owned(), digest, size: note.len() as u64 });
        let link = Link::after(previous, sequence, &record.trial_id, record.attempt, write(ledger, &record));
        previous = link.link;
        chain.push_str(&serde_json::to_string(&link).unwrap_or_default());
        chain.push('\n');
    }
    let plan = directory.run().join("plans").join(format!("{}.json", first.plan.hex()));
    for (path, text) in [(directory.chain(session), chain.as_str()), (plan, "{}\n")] {
        assert!(aec_base::file::write_atomic(&path, text.as_bytes()).is_ok(), "{}", path.display());
    }
}

/// A verdict with this reward.
pub fn evaluation(reward: f64) -> Evaluation {
    Evaluation {
        reward: Some(reward),
        validity: Validity {
            output_parseable: true,
            schema_valid: true,
            verifier_completed: true,
            errors: Vec::new(),
        },
        breakdown: Some(json!({
            "reward": reward,
            "fields": {
                "moment_kNm": {"score": 1.0, "status": "right", "expected": "42", "got": "42.1", "message": ""},
                "deflection_mm": {
                    "score": 0.0, "status": "wrong", "expected": "10.4", "got": "12.5", "message": "20.2 % off"
                },
            },
            "problem": null,
        })),
        judged: Judged::Native,
        scorer: None,
        trusted: false,
        verifier: Some(Digest::of(b"verifier")),
        submission: Some(Digest::of(b"submission")),
        sandbox: None,
        held: None,
        exit_code: None,
        stdout: String::new(),
        stderr: String::new(),
    }
}

fn environment() -> EnvironmentFacts {
    let (cpus, memory, storage, pids) = (Hold::Tree, Hold::Tree, Hold::Tree, Hold::Tree);
    EnvironmentFacts {
        runtime_image: "local".to_owned(),
        compute_backend: "local".to_owned(),
        sandbox: Some(Level::Namespaces),
        held: Some(Held { cpus, memory, storage, pids }),
        limits: Some(Limits { cpus: 2, memory_mb: 4096, storage_mb: 10_240, pids: 512 }),
        timeout_sec: Some(600),
        network: false,
        tool_versions: BTreeMap::from_iter([("aec-bench".to_owned(), "0.1.0".to_owned())]),
    }
}

fn name(text: &str) -> Name {
    match Name::parse(text) {
        Ok(name) => name,
        Err(error) => panic!("`{text}` {error}"),
    }
}
