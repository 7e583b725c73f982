//! Runs are compared by the examples that they share.

use aec_eval::results::compare::compare;
use aec_eval::results::row::RolloutRow;
use aec_eval::results::writer::ResultsWriter;
use tempfile::TempDir;

use super::support::{description, errored, fixture, raw, ready, row};

fn run_of(rows: &[RolloutRow]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let writer = ResultsWriter::create(directory.path(), description(3, 2)).unwrap();
    for row in rows {
        writer.write(ready(row)).unwrap();
    }
    writer.finish(description(3, 2)).unwrap();
    directory
}

fn rewards(rewards: &[(i64, u32, f64)]) -> Vec<RolloutRow> {
    rewards.iter().map(|(example, number, reward)| row(*example, *number, *reward)).collect()
}

#[test]
fn means_of_shared_examples_are_paired() {
    let first =
        run_of(&rewards(&[(0, 0, 0.0), (0, 1, 1.0), (1, 0, 0.0), (1, 1, 0.0), (2, 0, 1.0), (7, 0, 1.0)]));
    let mut rows =
        rewards(&[(0, 0, 1.0), (0, 1, 1.0), (1, 0, 0.0), (1, 1, 0.5), (2, 0, 1.0), (8, 0, 1.0), (9, 0, 1.0)]);
    // The same prompt, formatted differently.
    rows[0].prompt = raw("[ {\"role\" : \"user\", \"content\": \"qu\\u0065stion 0\"}\n]");
    let second = run_of(&rows);
    let compared = compare(&[first.path(), second.path()]).unwrap();
    let paired = &compared.against_first[0];
    assert_eq!((paired.run, paired.pairs, paired.other_prompt), (1, 3, 0));
    assert_eq!((paired.only_first, paired.only_this), (1, 2));
    assert_eq!(paired.configuration, []);
    // Differences 1/2, 1/4, 0: mean 1/4, sd(ddof 1) = 1/4, by sqrt(3); t(2 degrees, 0.975) = 4.302653.
    let reward = paired.reward.unwrap();
    assert_eq!((reward.pairs, reward.first, reward.this, reward.difference), (3, 0.5, 0.75, 0.25));
    let error = 0.25 / 3.0_f64.sqrt();
    assert!((reward.standard_error.unwrap() - error).abs() < 1e-15);
    assert!((reward.low.unwrap() - (0.25 - 4.302_652_73 * error)).abs() < 1e-6, "{reward:?}");
    assert!((reward.high.unwrap() - (0.25 + 4.302_652_73 * error)).abs() < 1e-6);
    assert_eq!(paired.metrics["exact"].difference, 0.25);
    assert_eq!((paired.metrics["num_turns"].low, paired.metrics["num_turns"].high), (Some(0.0), Some(0.0)));
    assert_eq!(paired.usage.unwrap().input_tokens, 0.0);
    let json = serde_json::to_value(&compared).unwrap();
    assert_eq!(json["runs"][1]["summary"]["rows"], 7);
    assert_eq!(json["against_first"][0]["reward"]["difference"], 0.25);
}

#[test]
fn examples_with_other_prompts_are_not_compared() {
    let first = run_of(&rewards(&[(0, 0, 0.0), (1, 0, 0.0)]));
    let mut rows = rewards(&[(0, 0, 1.0), (1, 0, 1.0)]);
    rows[1].prompt = raw("[]");
    let second = run_of(&rows);
    let third = run_of(&[errored(5, 0)]);
    let compared = compare(&[first.path(), second.path(), third.path()]).unwrap();
    let paired = &compared.against_first[0];
    assert_eq!((paired.pairs, paired.other_prompt, paired.only_first, paired.only_this), (1, 1, 0, 0));
    let reward = paired.reward.unwrap();
    assert_eq!((reward.difference, reward.standard_error, reward.low), (1.0, None, None));
    let none = &compared.against_first[1];
    assert_eq!((none.run, none.pairs, none.reward, none.usage), (2, 0, None, None));
    assert_eq!(compared.runs[2].summary.errored, 1);
}

#[test]
fn samples_of_verifiers_are_compared_also_while_they_are_written() {
    let torn = tempfile::tempdir().unwrap();
    let rows = std::fs::read(fixture("passk").join("results.jsonl")).unwrap();
    std::fs::write(torn.path().join("results.jsonl"), &rows[..rows.len() - 20]).unwrap();
    std::fs::copy(fixture("passk").join("metadata.json"), torn.path().join("metadata.json")).unwrap();
    let compared = compare(&[fixture("passk"), fixture("err500"), torn.path().to_owned()]).unwrap();
    assert_eq!(compared.against_first[0].pairs, 4, "both have the same four examples");
    let keys: Vec<_> =
        compared.against_first[0].configuration.iter().map(|difference| &difference.key[..]).collect();
    assert_eq!(keys, ["model", "base_url", "num_examples", "rollouts_per_example"]);
    assert_eq!(compared.against_first[0].reward.unwrap().difference, 0.625);
    assert_eq!((compared.runs[2].is_torn, compared.runs[2].summary.rows), (true, 15));
    let left = std::fs::read(torn.path().join("results.jsonl")).unwrap();
    assert_eq!(left.len(), rows.len() - 20, "the file is only read");
}

#[test]
fn rows_without_prompts_are_paired_within_one_environment() {
    let run = |environment: &str, reward: f64| {
        let directory = tempfile::tempdir().unwrap();
        let row = format!("{{\"example_id\": 1, \"reward\": {reward}}}\n");
        std::fs::write(directory.path().join("results.jsonl"), row).unwrap();
        std::fs::write(directory.path().join("metadata.json"), format!("{{\"env_id\": \"{environment}\"}}"))
            .unwrap();
        directory
    };
    let runs = [run("a", 0.0), run("a", 1.0), run("b", 1.0)];
    let compared = compare(&runs.each_ref().map(TempDir::path)).unwrap();
    assert_eq!(compared.against_first[0].reward.unwrap().difference, 1.0);
    assert_eq!((compared.against_first[1].pairs, compared.against_first[1].other_prompt), (0, 1));
}

#[test]
fn one_run_or_none_is_nothing_to_compare() {
    assert_eq!(compare(&[fixture("passk")]).unwrap_err().id.as_deref(), Some("R039"));
    assert_eq!(compare(&[fixture("passk"), fixture("none")]).unwrap_err().id.as_deref(), Some("R025"));
}
