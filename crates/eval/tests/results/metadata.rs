//! `metadata.json` has the fields of verifiers, and is read when some are missing.

use aec_eval::results::aggregate::Aggregate;
use aec_eval::results::facts::RowFacts;
use aec_eval::results::metadata::{Cost, Metadata};
use aec_eval::results::row::ToolDefs;
use serde_json::{Map, Value, json};

use super::support::{description, errored, fixtures, row};

fn read(text: &str) -> Result<Metadata, aec_base::problem::Problem> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("metadata.json");
    std::fs::write(&path, text).unwrap();
    Metadata::read(&path)
}

#[test]
fn fields_of_verifiers_come_first_and_as_they_were() {
    for directory in fixtures() {
        let path = directory.join("metadata.json");
        let sample: Map<String, Value> = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let ours = serde_json::to_value(Metadata::read(&path).unwrap()).unwrap();
        let first: Map<_, _> = ours.as_object().unwrap().clone().into_iter().take(sample.len()).collect();
        assert_eq!(Value::Object(first).to_string(), Value::Object(sample).to_string(), "{}", path.display());
    }
}

#[test]
fn keys_stand_in_their_order() {
    let mut aggregate = Aggregate::new(2, 0.5);
    aggregate.add(&RowFacts::of(&row(0, 0, 1.0)));
    aggregate.add(&RowFacts::of(&errored(0, 1)));
    let mut how = description(1, 2);
    how.name = Some("mine".to_owned());
    how.till.earlier = Some(Cost { input_usd: 0.5, output_usd: 1.0, total_usd: 1.5 });
    let metadata = how.metadata(&aggregate.summary(), 3.5);
    let value = serde_json::to_value(&metadata).unwrap();
    let keys: Vec<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
    let expected = "env_id env_args model base_url num_examples rollouts_per_example sampling_args time avg_reward \
        avg_metrics avg_error pass_at_k pass_all_k pass_threshold usage version_info state_columns tools reward reward_std \
        reward_se metrics_std name shuffle shuffle_seed cost stop_conditions errors timing rollouts rows complete date \
        configuration schema_version";
    assert_eq!(keys.join(" "), expected);
    assert_eq!(value["reward"], json!(0.5));
    assert_eq!(value["reward_std"], json!(0.5));
    assert_eq!(value["reward_se"], json!(null), "one example has no error of the mean");
    assert_eq!(value["avg_error"], json!(0.5));
    assert_eq!(value["metrics_std"], json!({"exact": 0.5, "num_turns": 0.0}));
    assert_eq!(value["complete"], json!(true));
    assert_eq!(value["rollouts"], json!(2));
    assert_eq!(value["errors"], json!({"ModelError -> APIError": 1}));
    assert_eq!(value["date"], json!("2027-01-15T08:00:00Z"));
    assert_eq!(value["timing"]["total"], json!({"min": 2.5, "mean": 2.5, "max": 2.5}));

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("metadata.json");
    metadata.write(&path).unwrap();
    assert_eq!(Metadata::read(&path).unwrap(), metadata);
}

#[test]
fn tools_are_written_when_all_rows_have_them() {
    let tools = r#"[{"name": "look", "description": "", "parameters": {}}]"#;
    let mut how = description(2, 1);
    how.tools = serde_json::from_str(tools).unwrap();
    let mut with = row(0, 0, 1.0);
    with.tool_defs = ToolDefs::new(super::support::raw(tools));
    let mut aggregate = Aggregate::new(1, 0.5);
    aggregate.add(&RowFacts::of(&with));
    assert_eq!(how.metadata(&aggregate.summary(), 0.0).tools, how.tools);
    aggregate.add(&RowFacts::of(&row(1, 0, 1.0)));
    assert_eq!(how.metadata(&aggregate.summary(), 0.0).tools, None);
}

#[test]
fn older_files_are_read() {
    let old = read(
        r#"{"env": "x", "env_id": "x", "env_args": null, "model": "m", "num_examples": -1, "rollouts_per_example": 3,
            "sampling_args": {}, "date": "2025-11-01 10:00:00", "time_ms": 1500.0, "avg_reward": NaN,
            "avg_metrics": {"a": NaN, "b": 1}, "state_columns": null, "path_to_save": "/x", "usage": {"input_tokens": 1,
            "output_tokens": 2}, "cost": "much", "timing": {"total": 1}}"#,
    )
    .unwrap();
    assert_eq!((old.time, old.avg_reward, old.reward), (Some(1.5), None, None));
    assert_eq!(old.avg_metrics.iter().collect::<Vec<_>>(), [(&"b".to_owned(), &1.0)]);
    assert_eq!((old.complete, old.configuration.is_none(), old.milliseconds()), (None, true, None));
    assert_eq!((old.cost, old.timing), (None, None));
    assert_eq!(old.usage.unwrap().final_input_tokens, None);
    assert_eq!(read("{}").unwrap(), Metadata::default());
}

#[test]
fn what_is_no_metadata_is_told_with_its_place() {
    for (text, id) in
        [("", "R026"), ("[]", "R026"), ("{\"env_id\": 5}", "R026"), ("{\"model\": \"m\",", "R026")]
    {
        let problem = read(text).unwrap_err();
        assert_eq!((problem.id.as_deref(), problem.line.is_some()), (Some(id), true), "{text}");
    }
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(Metadata::read(&directory.path().join("none")).unwrap_err().id.as_deref(), Some("R025"));
    std::fs::write(directory.path().join("binary"), b"\xff\0").unwrap();
    assert_eq!(Metadata::read(&directory.path().join("binary")).unwrap_err().id.as_deref(), Some("R025"));
}
