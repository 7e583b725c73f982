//! A run can be continued only with the configuration that it began with.

use aec_eval::results::aggregate::Aggregate;
use aec_eval::results::configuration::{differences, mismatch};
use aec_eval::results::metadata::{Description, Metadata};
use serde_json::{Value, json};

use super::support::{description, fixture};

fn saved() -> Metadata {
    description(4, 2).metadata(&Aggregate::new(2, 0.5).summary(), 0.0)
}

fn with(key: &str, value: Value) -> Description {
    let mut now = description(4, 2);
    now.configuration.insert(key.to_owned(), value);
    now
}

fn keys(saved: &Metadata, now: &Description) -> Vec<String> {
    differences(saved, now).into_iter().map(|difference| difference.key).collect()
}

#[test]
fn equal_configurations_have_no_differences() {
    assert_eq!(differences(&saved(), &description(4, 2)), []);
    assert_eq!(mismatch(&[]), None);
    for (key, value) in
        [("a", json!(null)), ("a", json!({})), ("num_examples", json!(4.0)), ("model", json!("some/model"))]
    {
        assert_eq!(differences(&saved(), &with(key, value.clone())), [], "{key} {value}");
    }
}

#[test]
fn every_difference_is_named() {
    let mut now = with("env_args", json!({"difficulty": "easy", "seed": 3}));
    now.configuration.insert("model".to_owned(), json!("x".repeat(5000)));
    assert_eq!(keys(&saved(), &now), ["model", "env_args.difficulty", "env_args.seed"]);
    let problem = mismatch(&differences(&saved(), &now)).unwrap();
    assert_eq!(problem.id.as_deref(), Some("R032"));
    for part in [
        "`env_args.difficulty` was \"hard\" and is now \"easy\"",
        "`env_args.seed` was null and is now 3",
        "`model`",
    ] {
        assert!(problem.what.contains(part), "{}", problem.what);
    }
    assert!(problem.what.len() < 600, "long values are cut");
    assert!(problem.fix.unwrap().contains("--resume"));
}

#[test]
fn lists_are_compared_whole() {
    let mut before = saved();
    before.configuration.as_mut().unwrap().insert("list".to_owned(), json!([1, {"a": null}]));
    assert_eq!(differences(&before, &with("list", json!([1.0, {}]))), []);
    assert_eq!(keys(&before, &with("list", json!([1, {"a": 1}]))), ["list"]);
    assert_eq!(keys(&before, &with("list", json!([1]))), ["list"]);
}

#[test]
fn the_number_of_examples_may_grow() {
    for (now, is_fine) in
        [(json!(4), true), (json!(5), true), (json!(-1), true), (json!(3), false), (json!("9"), false)]
    {
        assert_eq!(differences(&saved(), &with("num_examples", now.clone())).is_empty(), is_fine, "{now}");
    }
    let mut nested = with("env_args", json!({"difficulty": "hard", "num_examples": 5}));
    assert_eq!(keys(&saved(), &nested), ["env_args.num_examples"], "only the run's own may");
    nested.configuration.remove("num_examples");
    assert_eq!(keys(&saved(), &nested), ["env_args.num_examples"]);
}

#[test]
fn files_of_verifiers_are_compared_by_what_they_have() {
    let theirs = Metadata::read(&fixture("envargs").join("metadata.json")).unwrap();
    let mut now = description(u64::try_from(theirs.num_examples).unwrap() + 1, theirs.rollouts_of_example());
    now.env_id.clone_from(&theirs.env_id);
    now.env_args.clone_from(&theirs.env_args);
    now.model.clone_from(&theirs.model);
    now.base_url.clone_from(&theirs.base_url);
    now.sampling_args.clone_from(&theirs.sampling_args);
    assert_eq!(differences(&theirs, &now), []);
    now.rollouts_per_example += 1;
    now.base_url.push('x');
    now.env_args.insert("more".to_owned(), json!(1));
    assert_eq!(keys(&theirs, &now), ["env_args.more", "base_url", "rollouts_per_example"]);
}
