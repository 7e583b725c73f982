//! Files of every form, and broken files: one bad row gives one problem, and nothing is lost silently.

use std::io::{self, BufReader, Cursor, Read};
use std::path::Path;

use aec_prime::rollouts::json::{self, DEPTH_LIMIT, VALUE_LIMIT};
use aec_prime::rollouts::problem::{Note, Problem, ProblemKind};
use aec_prime::rollouts::reader::{OpenError, open};
use aec_prime::rollouts::rows::{Row, Rows};
use tempfile::TempDir;

const ROW: &str = r#"{"example_id": 0, "prompt": "q", "completion": "a", "reward": 1.0}"#;

fn row(id: usize) -> String {
    ROW.replace("0,", &format!("{id},"))
}

fn all(name: &str, content: &[u8]) -> Vec<Result<Row, Problem>> {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join(name);
    std::fs::write(&path, content).unwrap();
    open(&path).unwrap().rows.collect()
}

/// Ids of the rollouts that were read, and the lines of the problems.
fn told(rows: &[Result<Row, Problem>]) -> (Vec<&str>, Vec<Option<u64>>) {
    let read = rows.iter().flatten().flat_map(|row| &row.rollouts);
    let ids = read.map(|rollout| rollout.example_id.as_deref().unwrap_or_default()).collect();
    (ids, rows.iter().filter_map(|row| row.as_ref().err()).map(|problem| problem.line).collect())
}

#[test]
fn samples_are_found_in_every_form_of_document() {
    let (a, b) = (row(1), row(2));
    for content in [
        format!("[{a}, {b}]"),
        format!("{{\"samples\": [{a}, {b}], \"total\": 2}}"),
        format!("{{\"total\": 2, \"evaluation_id\": \"x\", \"samples\": [{a}, {b}]}}"),
        format!("{{\"data\": {{\"samples\": [{a}, {b}]}}}}"),
        format!("{{\"data\": [{a}, {b}]}}"),
        format!("{{\"samples\": [{a}]}}\n{{\"samples\": [{b}]}}"),
        format!("[{a}][{b}]"),
        format!("[{{\"samples\": [{a}]}}, {{\"samples\": [{b}]}}]"),
        format!("{a}\n{b}\n"),
        format!("\u{feff}{a}\r\n\r\n{b}"),
        format!("\u{feff}[{a},\n\n{b}\n]\n"),
        format!("{}\n{}", a.replace(", ", ",\n"), b.replace('{', "{\n")),
    ] {
        let rows = all("samples.json", content.as_bytes());
        assert_eq!(told(&rows), (vec!["1", "2"], vec![]), "{content}");
    }
}

#[test]
fn documents_without_samples_hold_none() {
    for content in [
        "[]",
        "{\"samples\": []}",
        "{\"samples\": null, \"total\": 0}",
        "{\"data\": {\"samples\": []}}",
        "",
        "  \n",
    ] {
        assert_eq!(told(&all("samples.json", content.as_bytes())), (vec![], vec![]), "{content}");
    }
    assert!(all("results.jsonl", b"").is_empty());
}

#[test]
fn a_sample_may_have_a_column_that_is_called_data() {
    let content = format!("{{\n \"data\": {{\"x\": 1}}, {}", ROW.trim_start_matches('{'));
    let rows = all("sample.json", content.as_bytes());
    assert_eq!(told(&rows), (vec!["0"], vec![]));
    assert!(String::from_utf8_lossy(&rows[0].as_ref().unwrap().raw).contains("\"data\":{\"x\":1}"));
}

#[test]
fn very_many_empty_pages_are_passed_over() {
    let content = format!("[{}{{\"samples\": [{ROW}]}}]", "{\"samples\": []}, ".repeat(100_000));
    assert_eq!(told(&all("samples.json", content.as_bytes())), (vec!["0"], vec![]));
}

#[test]
fn a_malformed_line_costs_one_row() {
    let content = format!("{}\n{{\"prompt\": \n\n[1]\n{{\"other\": 1}}\n{}\n{}", row(1), row(2), &ROW[..40]);
    let rows = all("results.jsonl", content.as_bytes());
    assert_eq!(told(&rows), (vec!["1", "2"], vec![Some(2), Some(4), Some(5), Some(7)]));
    let kinds: Vec<&ProblemKind> =
        rows.iter().filter_map(|row| row.as_ref().err()).map(|problem| &problem.kind).collect();
    assert!(matches!(
        kinds[..],
        [
            ProblemKind::Malformed(_),
            ProblemKind::NotARollout { .. },
            ProblemKind::NotARollout { .. },
            ProblemKind::Torn
        ]
    ));
    let message = rows[1].as_ref().unwrap_err().to_string();
    assert!(message.contains("results.jsonl:2: not valid JSON"), "{message}");
}

#[test]
fn a_malformed_sample_costs_one_sample() {
    let content = format!("{{\"samples\": [\n{},\n{{\"prompt\": nope}},\n{}, 7]}}", row(1), row(2));
    let rows = all("samples.json", content.as_bytes());
    assert_eq!(told(&rows), (vec!["1", "2"], vec![Some(3), Some(4)]));
}

#[test]
fn a_document_that_ends_in_the_middle_is_torn() {
    for end in ["", ",", ", {\"prompt\": \"", ", {\"prompt\": \"\\"] {
        let rows = all("samples.json", format!("{{\"samples\": [{}{end}", row(1)).as_bytes());
        assert_eq!(told(&rows), (vec!["1"], vec![Some(1)]), "{end}");
        assert!(matches!(rows[1].as_ref().unwrap_err().kind, ProblemKind::Torn));
    }
    for content in ["{", "{\"a\"", "{\"a\":", "{\"a\": 1", "["] {
        let rows = all("samples.json", content.as_bytes());
        assert!(matches!(rows[..], [Err(Problem { kind: ProblemKind::Torn, .. })]), "{content}");
    }
}

#[test]
fn what_is_no_document_is_one_problem() {
    for content in [
        &b"$ prime eval samples\n{}"[..],
        b"\0\x01\x02",
        b"\xff\xfe{",
        b"nonsense",
        b"}",
        b"[}",
        b"{]",
        b"{1: 2}",
        b"{\"a\" 1}",
        b"[:]",
    ] {
        let rows = all("samples.json", content);
        assert!(
            matches!(rows[..], [Err(Problem { kind: ProblemKind::Malformed(_), .. })]),
            "{content:?} {rows:?}"
        );
    }
    let rows = all("evaluation.json", b"{\"evaluation_id\": \"x\", \"status\": \"COMPLETED\"}");
    assert!(matches!(rows[..], [Err(Problem { kind: ProblemKind::NotARollout { .. }, .. })]));
}

#[test]
fn rows_that_are_not_text_are_told() {
    let rows = all(
        "results.jsonl",
        format!("{}\n", row(1))
            .into_bytes()
            .into_iter()
            .chain(*b"\xff\xfe\x00\n")
            .collect::<Vec<u8>>()
            .as_slice(),
    );
    assert!(matches!(rows[..], [Ok(_), Err(Problem { kind: ProblemKind::NotText, line: Some(2), .. })]));
}

#[test]
fn a_row_that_is_too_long_is_passed_over() {
    let long = ROW.replace("\"q\"", &format!("\"{}\"", "x".repeat(5000)));
    let lines = format!("{}\n{long}\n{}\n{long}", row(1), row(2));
    let rows: Vec<_> = Rows::lines(BufReader::with_capacity(16, lines.as_bytes()), Path::new("r"))
        .with_limit(1000)
        .collect();
    assert_eq!(told(&rows), (vec!["1", "2"], vec![Some(2), Some(4)]));
    let page =
        format!("{{\"samples\": [{},\n{long},\n{}], \"note\": \"{}\"}}", row(1), row(2), "y".repeat(5000));
    let rows: Vec<_> = Rows::document(BufReader::with_capacity(16, page.as_bytes()), Path::new("p"))
        .with_limit(1000)
        .collect();
    assert_eq!(told(&rows), (vec!["1", "2"], vec![Some(2), Some(1)]));
    assert!(
        rows.iter()
            .filter_map(|row| row.as_ref().err())
            .all(|problem| matches!(problem.kind, ProblemKind::TooLong { limit: 1000 }))
    );
}

#[test]
fn depth_is_refused_and_does_not_exhaust_the_stack() {
    let nested =
        |depth: usize| format!("{{\"prompt\": \"q\", \"info\": {}{}}}", "[".repeat(depth), "]".repeat(depth));
    assert!(json::parse(nested(DEPTH_LIMIT - 1).as_bytes()).is_ok());
    for depth in [DEPTH_LIMIT, 1_000_000] {
        let content = format!("{}\n{}\n{}", row(1), nested(depth), row(2));
        let rows = all("results.jsonl", content.as_bytes());
        assert_eq!(told(&rows), (vec!["1", "2"], vec![Some(2)]));
        assert!(matches!(rows[1].as_ref().unwrap_err().kind, ProblemKind::TooDeep { limit: DEPTH_LIMIT }));
        let page = format!("[{}, {}, {}]", row(1), nested(depth), row(2));
        assert_eq!(told(&all("samples.json", page.as_bytes())).0, ["1", "2"]);
    }
    let unclosed = "[".repeat(1_000_000);
    assert!(matches!(json::parse(unclosed.as_bytes()), Err(ProblemKind::TooDeep { .. })));
    assert!(matches!(all("samples.json", unclosed.as_bytes())[..], [Err(_)]));
}

#[test]
fn a_row_of_very_many_values_is_refused() {
    let many = format!("{{\"prompt\": \"q\", \"info\": [{}0]}}", "0,".repeat(VALUE_LIMIT));
    assert!(matches!(json::parse(many.as_bytes()), Err(ProblemKind::TooManyValues { .. })));
}

#[test]
fn what_python_writes_and_json_does_not_have_is_read_and_noted() {
    let text = r#"{"prompt": "NaN \\ud835 \"NaN\" é \ud83d\ude00 \ud835 \udc00 \ud835\ud835\udc00", "reward": NaN, "score": -Infinity, "metrics": {"a": Infinity, "b": -1}, "completion": []}"#;
    let parsed = json::parse(text.as_bytes()).unwrap();
    assert_eq!(parsed.notes, [Note::NotANumber { count: 3 }, Note::HalfSurrogate { count: 3 }]);
    assert_eq!(parsed.value["prompt"], "NaN \\ud835 \"NaN\" é 😀 \u{fffd} \u{fffd} \u{fffd}\u{1d400}");
    assert!(parsed.value["reward"].is_null());
    assert_eq!(parsed.value["metrics"]["b"], -1);
    for text in ["NaNs", "{\"a\": -}", "{\"a\": Inf}", "{\"a\": \"\\ud8zz\"}", "{NaN: 1}", "{\"a\": \"\\"] {
        assert!(json::parse(text.as_bytes()).is_err(), "{text}");
    }
}

#[test]
fn of_a_key_that_stands_twice_the_last_counts() {
    let rows = all(
        "results.jsonl",
        br#"{"prompt": "q", "completion": "a", "reward": 0, "reward": 1, "metrics": {"a": 1, "a": 2}}"#,
    );
    let rollout = &rows[0].as_ref().unwrap().rollouts[0];
    assert_eq!((rollout.reward, rollout.metrics["a"]), (Some(1.0), 2.0));
    let notes = ["a", "reward"].map(|key| Note::DuplicateKey { key: key.to_owned() });
    assert_eq!(rollout.notes, notes);
}

#[test]
fn directories_are_recognised() {
    let directory = TempDir::new().unwrap();
    let path = directory.path();
    assert!(matches!(open(path), Err(OpenError::NotARun(_))));
    let message = open(path).err().unwrap().to_string();
    assert!(message.contains("`results.jsonl` or `traces.jsonl`"), "{message}");
    std::fs::write(path.join("results.jsonl"), ROW).unwrap();
    let source = open(path).unwrap();
    assert!(source.run.is_none() && source.run_problem.is_none());
    assert_eq!(source.rows.count(), 1);
    std::fs::write(path.join("metadata.json"), "{torn").unwrap();
    let source = open(path).unwrap();
    assert!(source.run_problem.unwrap().to_string().contains("metadata.json: not valid JSON"));
    assert_eq!(source.rows.count(), 1);
    std::fs::write(path.join("metadata.json"), "{\"env_id\": \"e\", \"avg_reward\": NaN}").unwrap();
    for path in [path, &path.join("results.jsonl")] {
        assert_eq!(open(path).unwrap().run.unwrap().environment.as_deref(), Some("e"));
    }
    std::fs::write(path.join("traces.jsonl"), "").unwrap();
    assert!(matches!(open(path), Err(OpenError::TwoRuns(_))));
    assert!(matches!(open(&path.join("nothing")), Err(OpenError::Unreadable(_))));
    assert!(matches!(open(Path::new("/dev/null")), Err(OpenError::NotAFile(_))));
}

/// Returns some bytes, then fails.
struct Failing(Cursor<Vec<u8>>);

impl Read for Failing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 => Err(io::Error::other("the disk is gone")),
            read => Ok(read),
        }
    }
}

#[test]
fn a_file_that_cannot_be_read_on_ends_with_a_problem() {
    let input = |content: String| BufReader::new(Failing(Cursor::new(content.into_bytes())));
    let lines: Vec<_> = Rows::lines(input(format!("{}\n{}", row(1), row(2))), Path::new("r")).collect();
    let document: Vec<_> =
        Rows::document(input(format!("[{}, {}", row(1), &ROW[..30])), Path::new("d")).collect();
    for rows in [lines, document] {
        assert!(
            matches!(rows[..], [Ok(_), Err(Problem { kind: ProblemKind::Unreadable(_), .. })]),
            "{rows:?}"
        );
    }
}

#[test]
fn bytes_may_come_one_at_a_time() {
    let page = format!(
        "{{\"data\": {{\"samples\": [{}, {}], \"total\": 2}}}}",
        row(1),
        ROW.replace("\"q\"", "\"\\\"]}\\\\\"")
    );
    let rows = Rows::document(BufReader::with_capacity(1, page.as_bytes()), Path::new("p"));
    let read: Vec<_> = rows.collect();
    assert_eq!(told(&read), (vec!["1", "0"], vec![]));
    assert_eq!(read[1].as_ref().unwrap().rollouts[0].messages[0].text, "\"]}\\");
}
