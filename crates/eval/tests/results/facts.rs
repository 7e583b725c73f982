//! Facts are read from rows of any version, and from nothing else.

use aec_eval::results::facts::{ErrorFacts, RowFacts};
use proptest::prelude::*;

fn parse(line: &str) -> RowFacts {
    RowFacts::parse(line.as_bytes()).unwrap()
}

fn error_id(line: &[u8]) -> String {
    RowFacts::parse(line).unwrap_err().id.unwrap()
}

#[test]
fn rows_of_0_1_9_have_metrics_and_milliseconds_at_top_level() {
    let facts = parse(
        r#"{"example_id": 4, "prompt": [], "completion": [], "task": "t", "reward": 1, "generation_ms": 1500.0,
            "scoring_ms": 250.0, "total_ms": 1750.0, "correct": 1.0, "flag": true, "info": {"a": 1}}"#,
    );
    assert_eq!(facts.reward, Some(1.0));
    assert_eq!(facts.metrics, [("correct".into(), 1.0)]);
    let seconds = facts.seconds.unwrap();
    assert_eq!((seconds.generation, seconds.scoring, seconds.total), (1.5, 0.25, 1.75));
    assert_eq!((facts.rollout_number, facts.attempt), (None, 1));
}

#[test]
fn rows_of_0_1_12_have_milliseconds_in_their_timing() {
    let facts = parse(
        r#"{"example_id": 0, "reward": 0.5, "timing": {"start_time": 1.0, "generation_ms": 10, "scoring_ms": 2,
            "total_ms": 12}, "metrics": {"a": 1.0}, "a": 1.0, "b": 2.0, "token_usage": {"input_tokens": 3.0,
            "output_tokens": 4.0}, "oai_tools": [{"type": "function", "function": {"name": "look"}}]}"#,
    );
    assert_eq!(facts.seconds.unwrap().total, 0.012);
    assert_eq!(facts.metrics, [("a".into(), 1.0)]);
    let usage = facts.usage.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.final_input_tokens), (3.0, 4.0, None));
    assert_eq!(*facts.tools, [Box::<str>::from("look")]);
}

#[test]
fn errors_are_objects_or_texts() {
    let error = |json: &str| parse(&format!(r#"{{"example_id": 0, "error": {json}}}"#)).error;
    let facts =
        |chain: &str, class: &str| Some(ErrorFacts { chain: chain.to_owned(), class: class.to_owned() });
    assert_eq!(error("null"), None);
    assert_eq!(error("\"\""), None);
    assert_eq!(error("\"ValueError('no')\""), facts("ValueError('no')", "ValueError"));
    assert_eq!(error(r#"{"error": "A", "message": "m", "error_chain_str": "A -> B"}"#), facts("A -> B", "A"));
    assert_eq!(error("{}"), facts("unknown error", "unknown error"));
    assert_eq!(error("[1]"), facts("[1]", "[1]"));
    assert_eq!(error(&format!("\"{}\"", "ü".repeat(5000))).unwrap().chain.chars().count(), 300);
}

#[test]
fn what_python_writes_is_read() {
    let facts = parse(
        r#"{"example_id": 1, "reward": NaN, "metrics": {"a": Infinity, "b": -Infinity, "c": 1.0}, "stop_condition": "\udc00"}"#,
    );
    assert_eq!((facts.reward, &facts.metrics[..]), (None, &[("c".into(), 1.0)][..]));
    assert_eq!(facts.stop_condition.as_deref(), Some("\u{fffd}"));
    assert_eq!(parse(r#"{"example_id": 1, "reward": 1e300}"#).reward, None, "statistics cannot take it");
    assert_eq!(parse(r#"{"example_id": 1, "reward": 1e-300}"#).reward, Some(0.0));
}

#[test]
fn odd_shapes_cost_the_fact_and_not_the_row() {
    let facts = parse(
        r#"{"example_id": 1, "reward": "high", "metrics": [1], "timing": "long", "token_usage": {"input_tokens": 1},
            "tool_defs": {"a": 1}, "stop_condition": {"x": [1]}, "is_truncated": null, "rollout_number": null}"#,
    );
    assert_eq!(facts, RowFacts { example_id: 1, attempt: 1, ..RowFacts::default() });
    let last = parse(r#"{"example_id": 1, "reward": 1.0, "reward": 2.0, "ex\u0061mple_id": 3}"#);
    assert_eq!((last.example_id, last.reward), (3, Some(2.0)), "the last of equal keys counts, as in Python");
}

#[test]
fn what_is_no_row_is_refused() {
    for line in
        [&b""[..], b"{", b"{\"example_id\": 1", b"nul", b"\xff\xfe\x00", b"{\"example_id\": 1} x", b"\0\0"]
    {
        assert_eq!(error_id(line), "R020", "{line:?}");
    }
    let not_rows = ["{}", "[]", "5", "null", r#"{"example_id": "a"}"#, r#"{"example_id": 1.5}"#];
    for line in not_rows.into_iter().chain([r#"{"example_id": 1, "rollout_number": -1}"#]) {
        assert_eq!(error_id(line.as_bytes()), "R021", "{line:?}");
    }
    let deep = format!("{{\"example_id\": 1, \"metrics\": {}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(error_id(deep.as_bytes()), "R021", "deeper than anything that this program reads");
}

#[test]
fn a_huge_row_is_read() {
    let long = "x\\n".repeat(10_000_000);
    let facts =
        parse(&format!(r#"{{"example_id": 1, "completion": [{{"content": "{long}"}}], "reward": 1.0}}"#));
    assert_eq!(facts.reward, Some(1.0));
    let keys: Vec<_> = (0..200_000).map(|index| format!(",\"k{}\":{index}", index % 150_000)).collect();
    let keys = keys.concat();
    assert_eq!(parse(&format!("{{\"example_id\":1{keys}}}")).metrics.len(), 150_000);
}

proptest! {
    #[test]
    fn nothing_stops_the_reader(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _unused = RowFacts::parse(&bytes);
    }

    #[test]
    fn no_beginning_of_a_row_is_a_row(cut in 0.0..1.0_f64) {
        let line = super::support::line(&super::support::errored(1, 2));
        // Without the bracket and the line break.
        let length = ((line.len() - 1) as f64 * cut) as usize;
        prop_assert_eq!(error_id(&line[..length]), "R020");
    }
}
