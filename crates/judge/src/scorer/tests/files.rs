//! Tests of the answers file and of its description for the agent.

use super::*;

#[test]
fn broken_answers_are_the_tasks_fault() {
    for (spec, error) in [
        (r#"{"type": "number", "value": 1}"#, "fields.x: needs `rel_tol`, `abs_tol` or `sig`"),
        (r#"{"type": "number", "value": 0, "rel_tol": 0.1}"#, "fields.x: an expected 0 needs `abs_tol`"),
        (
            r#"{"type": "number", "value": 1, "rel_tol": -0.1}"#,
            "fields.x: `rel_tol` must be a number, 0 or more",
        ),
        (
            r#"{"type": "number", "value": 1, "abs_tol": 1e999}"#,
            "fields.x: `abs_tol` must be a number, 0 or more",
        ),
        (r#"{"type": "number", "value": 1, "rel_tol": 1}"#, "fields.x: `rel_tol` must be below 1"),
        (
            r#"{"type": "number", "value": 1e999, "sig": 3}"#,
            "fields.x: the expected value must be a finite number",
        ),
        (
            r#"{"type": "number", "value": "1", "sig": 3}"#,
            "fields.x: the expected value must be a finite number",
        ),
        (
            r#"{"type": "number", "value": 1, "sig": 3.5}"#,
            "fields.x: `sig` must be a whole number from 1 to 15",
        ),
        (r#"{"type": "number", "value": 1, "sig": 3, "unit": "kNn"}"#, "fields.x: unknown unit `kNn`"),
        (
            r#"{"type": "number", "value": 1, "sig": 3, "unit": "m", "difference": true}"#,
            "fields.x: `difference` is for temperatures",
        ),
        (r#"{"type": "number", "value": 1, "sig": 3, "tolerance": 1}"#, "fields.x: unknown key `tolerance`"),
        (r#"{"type": "number", "sig": 3}"#, "fields.x: needs `value`"),
        (r#"{"type": "integer", "value": 2.5}"#, "fields.x: the expected value must be a whole number"),
        (r#"{"type": "boolean", "value": "yes"}"#, "fields.x: the expected value must be true or false"),
        (
            r#"{"type": "boolean", "value": true, "false_words": ["PASS"]}"#,
            "fields.x: `PASS` is both true and false",
        ),
        (
            r#"{"type": "choice", "value": "c", "options": ["a", "b"]}"#,
            "fields.x: the expected value is not an option",
        ),
        (
            r#"{"type": "choice", "value": "a", "options": ["a", "A "]}"#,
            "fields.x: `options` has an empty text or one twice",
        ),
        (
            r#"{"type": "choice", "value": "a", "options": ["a", "b"], "aliases": {"B": "a"}}"#,
            "fields.x: alias `B` is empty or names two options",
        ),
        (
            r#"{"type": "text", "accept": ["..."]}"#,
            "fields.x: the expected value must be a text or a list of texts, none of them empty",
        ),
        (
            r#"{"type": "text", "accept": ["a"], "weight": 0}"#,
            "fields.x: `weight` must be above 0, at most 1000000",
        ),
        (
            r#"{"type": "list", "items": [1], "item": {"type": "number"}}"#,
            "fields.x.item: needs `rel_tol`, `abs_tol` or `sig`",
        ),
        (
            r#"{"type": "list", "items": [1], "item": {"type": "list"}}"#,
            "fields.x.item: `type` must be one of number, integer, boolean, choice, text",
        ),
        (
            r#"{"type": "table", "key": "a", "columns": {"a": {"type": "text"}, "b": {"type": "boolean"}}, "rows": [{"a": "1"}]}"#,
            "fields.x.rows[0]: needs `b`",
        ),
        (
            r#"{"type": "table", "key": "a", "columns": {"a": {"type": "text"}, "b": {"type": "boolean"}}, "rows": [{"a": "k", "b": true}, {"a": "K", "b": true}]}"#,
            "fields.x.rows[1]: the key is there twice",
        ),
        (
            r#"{"type": "colour"}"#,
            "fields.x: `type` must be one of number, integer, boolean, choice, text, list, table",
        ),
        (r#"{"type": "text", "accept": ["a"], "accept": ["b"]}"#, "answers: `accept` is there twice"),
    ] {
        let text = format!(r#"{{"version": 1, "output": "o.json", "fields": {{"x": {spec}}}}}"#);
        assert_eq!(Answers::parse(text.as_bytes()).unwrap_err().to_string(), error, "{spec}");
    }
    for (text, error) in [
        ("", "answers: not JSON at character 0"),
        ("{'a': 1}", "answers: not JSON at character 1"),
        (r#"{"version": 2}"#, "answers: `version` must be 1"),
        (r#"{"version": 1, "output": "../x"}"#, "answers: `output` must be a file below /workspace"),
        (r#"{"version": 1, "output": "/x"}"#, "answers: `output` must be a file below /workspace"),
        (r#"{"version": 1, "output": "x", "fields": {}}"#, "answers: `fields` must have 1 to 1000 fields"),
        (
            r#"{"version": 1, "output": "x", "fields": {"value": {}}}"#,
            "fields.value: the name says nothing; name the quantity",
        ),
        (
            r#"{"version": 1, "output": "x", "fields": {"a b": {"type": "text", "accept": ["a"]}, "A_B": {}}}"#,
            "fields.A_B: the name is empty or there twice",
        ),
    ] {
        assert_eq!(Answers::parse(text.as_bytes()).unwrap_err().to_string(), error, "{text}");
    }
}

#[test]
fn the_contract_says_everything_but_the_answers() {
    let text = contract(&sheet());
    println!("{text}");
    for part in [
        "`/workspace/results/output.json`",
        "| `moment` | number in kN.m | at midspan |",
        "| `n_bolts` | whole number |  |",
        "| `compliant` | true or false |  |",
        "| `grade` | one of `C30/37`, `C25/30` |  |",
        "| `standard` | text |  |",
        "| `loads` | list, in any order; of each item: number in kN |  |",
        "| `beams` | list of objects, one for each `beam`, with `beam`: text; `load`: number in kN; `ok`: true or false |  |",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    for answer in ["1234", "AS 3600", "B1", "12.34"] {
        assert!(!text.contains(answer), "{answer}");
    }
}
