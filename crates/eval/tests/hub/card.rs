//! The page of a dataset.

use aec_eval::hub::{EvaluationFacts, WantedName, dataset_card};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::hub::METADATA;

fn card(metadata: &str) -> String {
    let facts = EvaluationFacts::of_metadata(metadata).unwrap();
    let repository = WantedName::parse("my-org/results").unwrap().owned_by("me").unwrap();
    dataset_card(&facts, &repository, 6)
}

fn head(card: &str) -> Value {
    let (head, _) = card.strip_prefix("---\n").unwrap().split_once("\n---\n").unwrap();
    serde_saphyr::from_str(head).unwrap()
}

#[test]
fn the_card_of_an_evaluation() {
    insta::assert_snapshot!(card(METADATA));
}

#[test]
fn the_head_leads_to_the_rows() {
    let head = head(&card(METADATA));
    assert_eq!(
        head["configs"],
        json!([{"config_name": "default", "data_files": [{"split": "train", "path": "data/results.jsonl"}]}])
    );
    assert_eq!(head["evaluation"]["model"], "openai/gpt-4.1-mini");
    assert_eq!(head["evaluation"]["figures"][0], json!({"name": "reward", "value": 0.5}));
}

#[test]
fn an_evaluation_without_figures_has_a_card_without() {
    let text = card(
        r#"{"env_id": "e", "model": "m", "num_examples": -1, "rollouts_per_example": 1, "avg_reward": null,
        "avg_metrics": ["odd"], "pass_at_k": {"1": "x"}, "usage": 5, "version_info": []}"#,
    );
    assert!(!text.contains("igures") && text.contains("| examples | all |"), "{text}");
    assert_eq!(head(&text)["evaluation"]["num_examples"], -1);
}

#[test]
fn figures_keep_their_meaning() {
    let shown = |value: f64| {
        let metadata = json!({"env_id": "e", "model": "m", "num_examples": 1, "rollouts_per_example": 1,
            "avg_reward": value});
        let text = card(&metadata.to_string());
        let read = head(&text)["evaluation"]["figures"][0]["value"].as_f64().unwrap();
        assert!((read - value).abs() <= 0.001 * value.abs().max(0.1), "{value}: {read}");
        let line = text.lines().find(|line| line.starts_with("| reward |")).unwrap();
        line.trim_start_matches("| reward | ").trim_end_matches(" |").to_owned()
    };
    assert_eq!(
        [0.0, -0.0, 1.0, 0.73456, -12.5, 0.00002, -3e-9, 2e18].map(shown),
        ["0", "0", "1", "0.7346", "-12.5", "2.0000e-5", "-3.0000e-9", "2.0000e+18"]
    );
}

#[test]
fn many_metrics_are_cut() {
    let metrics: serde_json::Map<String, Value> = (0..500).map(|n| (format!("m{n}"), json!(n))).collect();
    let metadata = json!({"env_id": "e", "model": "m", "num_examples": 1, "rollouts_per_example": 1,
        "avg_metrics": metrics});
    let text = card(&metadata.to_string());
    assert!(text.contains("440 more are in `metadata.json`") && text.len() < 10_000, "{text}");
}

#[test]
fn foreign_text_does_nothing_on_the_page() {
    let metadata = json!({"env_id": "a|b\n# <script>`x`", "model": "m\"]\n---\nlicense: mit", "num_examples": 1,
        "rollouts_per_example": 1, "avg_metrics": {"x | y": 1.0}});
    let text = card(&metadata.to_string());
    assert_eq!(head(&text)["evaluation"]["env_id"], "a|b\n# <script>`x`");
    assert!(head(&text).get("license").is_none());
    let (_, body) = text.split_once("\n---\n").unwrap();
    assert!(
        !body.contains("<script>") && !body.contains("\nlicense") && body.contains("| x \\| y | 1 |"),
        "{body}"
    );
}

#[test]
fn metadata_that_name_nothing_are_refused() {
    for (metadata, why) in [
        ("", "line 1"),
        ("{\"env_id\"", "not valid JSON"),
        ("[]", "expected a JSON object"),
        ("{}", "`env_id` is missing"),
        (r#"{"env_id": " "}"#, "`env_id` must be a text"),
        (r#"{"env_id": "e", "model": 5}"#, "`model` must be a text"),
        (r#"{"env_id": "e", "model": "m", "num_examples": 1.5}"#, "`num_examples` must be a whole number"),
        (r#"{"env_id": "e", "model": "m", "num_examples": 1}"#, "`rollouts_per_example` is missing"),
    ] {
        let error = EvaluationFacts::of_metadata(metadata).unwrap_err();
        assert!(error.contains(why), "{metadata}: {error}");
    }
}

proptest! {
    #[test]
    fn every_name_comes_back_from_the_head(env in "\\PC{1,40}|(?s).{1,40}", model in "\\PC{1,40}", value: f64) {
        prop_assume!(!env.trim().is_empty() && !model.trim().is_empty() && value.is_finite());
        let metadata = json!({"env_id": env, "model": model, "num_examples": 1, "rollouts_per_example": 1,
            "avg_reward": value});
        let head = head(&card(&metadata.to_string()));
        prop_assert_eq!(head["evaluation"]["env_id"].as_str(), Some(env.as_str()));
        prop_assert_eq!(head["evaluation"]["model"].as_str(), Some(model.as_str()));
        prop_assert!(head["evaluation"]["figures"][0]["value"].is_number());
    }
}
