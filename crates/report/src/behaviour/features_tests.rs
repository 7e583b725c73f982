//! Features of small traces with obvious answers.

use aec_ledger::transcript::turns::{Call, CallResult, Turn};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::features::{Acceptance, Fault, Features, features};
use super::trace::{DeclaredTool, TaskFacts, Trace};

fn task() -> TaskFacts {
    TaskFacts {
        input_files: vec!["inputs/a.csv".into(), "inputs/b.csv".into(), "inputs/notes.md".into()],
        declared_tools: vec![
            DeclaredTool { name: "calc".into(), path: Some("tools/calc.py".into()) },
            DeclaredTool { name: "plot".into(), path: None },
        ],
        output_path: "/workspace/output.json".into(),
        root: None,
    }
}

fn turn(name: &str, arguments: Value, stdout: &str, exit_code: Option<i32>) -> Turn {
    Turn {
        calls: vec![Call { name: name.into(), arguments, ..Call::default() }],
        results: vec![CallResult { stdout: stdout.into(), exit_code, ..CallResult::default() }],
        ..Turn::default()
    }
}

fn bash(command: &str) -> Turn {
    turn("bash", json!({ "command": command }), "ok\n", Some(0))
}

fn trace(turns: Vec<Turn>) -> Trace {
    let number = |(index, turn): (usize, Turn)| Turn {
        index: u32::try_from(index).unwrap() + 1,
        offset_ms: Some(1_000 * index as u64),
        ..turn
    };
    Trace { turns: turns.into_iter().enumerate().map(number).collect(), task: task(), ..Trace::default() }
}

fn of(commands: &[&str]) -> Features {
    features(&trace(commands.iter().map(|command| bash(command)).collect()))
}

#[test]
fn files_are_inspected_in_many_ways() {
    for (command, read) in [
        ("cat inputs/a.csv", 1),
        ("cat /workspace/inputs/a.csv ./inputs/b.csv", 2),
        ("cd inputs && head -5 *.csv", 2),
        ("cat inputs/*", 3),
        ("cat inputs/{a,b}.csv", 2),
        ("for f in a b; do sed -n 1,5p inputs/$f.csv; done", 2),
        ("find /workspace -name '*.csv' | xargs -n1 head", 2),
        ("find . -type f -name '*.md' -exec cat {} \\;", 1),
        ("python3 -c \"print(open('inputs/a.csv').read())\"", 1),
        ("python3 - <<'E'\nimport pandas as pd\nd = '/workspace/inputs'\npd.read_csv(d + '/a.csv')\nE", 1),
        ("awk -F, '{print $1}' < inputs/a.csv", 1),
        ("bash -lc 'cat inputs/notes.md'", 1),
        ("timeout 5 env X=1 cat inputs/notes.md", 1),
        ("cat > peek.py <<'E'\nprint(open('inputs/a.csv').read())\nE\npython3 peek.py", 1),
        ("(cd inputs; cat a.csv); cat b.csv", 1),
        ("python3 tools/calc.py --table=inputs/a.csv", 1),
        ("ls inputs; wc -l inputs/a.csv; cp inputs/a.csv x", 0),
        ("echo inputs/a.csv; grep inputs/a.csv x", 0),
        ("cat a.csv", 0),
        ("echo 'cat inputs/a.csv'", 0),
    ] {
        assert_eq!(of(&[command]).inspected_files.read, read, "{command}");
    }
    let features = features(&trace(vec![turn("read_file", json!({ "path": "inputs/b.csv" }), "x", Some(0))]));
    assert_eq!(
        (features.inspected_files.how["read_file"], features.inspected_files.first_turn),
        (1, Some(1))
    );
    assert_eq!(features.inspected_files.unread, ["inputs/a.csv", "inputs/notes.md"]);
}

#[test]
fn a_file_that_was_not_found_was_not_read() {
    let missing = |stdout: &str| turn("bash", json!({ "command": "cat inputs/a.csv" }), stdout, Some(1));
    assert_eq!(features(&trace(vec![missing("")])).inspected_files.read, 0);
    let refused = turn("read_file", json!({ "path": "inputs/a.csv" }), "error: cannot read", Some(1));
    assert_eq!(features(&trace(vec![refused])).inspected_files.read, 0);
    let half = turn("bash", json!({ "command": "cat inputs/a.csv nowhere" }), "1,2,3\n4,5,6\n", Some(1));
    assert_eq!(features(&trace(vec![half])).inspected_files.read, 1);
}

#[test]
fn the_output_is_written_in_many_ways() {
    for (command, how) in [
        ("echo '{}' > output.json", "redirect"),
        ("cat <<'E' > /workspace/output.json\n{}\nE", "redirect"),
        ("cd /tmp && echo x >> ../workspace/output.json", "redirect"),
        ("jq -n '{}' | tee output.json", "tee"),
        ("cp draft.json ./output.json", "copy"),
        ("mv out/output.json .", "copy"),
        ("sed -i 's/1/2/' output.json", "edit"),
        ("python3 -c \"open('output.json','w').write('x')\"", "python"),
        (
            "python3 <<E\nfrom pathlib import Path\nPath('/workspace/output.json').write_text('x')\nE",
            "python",
        ),
        ("cat > s.py <<'E'\nimport json\njson.dump({}, open('output.json', 'w'))\nE\npython3 s.py", "python"),
        ("python3 tools/calc.py --output output.json", "option"),
        ("O=output.json; echo 1 > \"$O\"", "redirect"),
    ] {
        let wrote = of(&[command]).wrote_output;
        assert_eq!(
            (wrote.wrote, wrote.by.keys().copied().collect::<Vec<_>>()),
            (true, vec![how]),
            "{command}"
        );
    }
    for command in [
        "cat output.json",
        "echo 'x > output.json'",
        "echo x > output.json.bak",
        "cd /tmp; echo x > output.json",
        "# > output.json",
    ] {
        assert!(!of(&[command]).wrote_output.wrote, "{command}");
    }
    let tool = turn("write_file", json!({ "path": "output.json", "content": "{}" }), "", None);
    assert_eq!(features(&trace(vec![tool])).wrote_output.by["write_file"], 1);
    let text =
        turn("write_file", Value::from(r#"{"path": "/workspace/output.json", "content": "{}"}"#), "", None);
    assert!(features(&trace(vec![text])).wrote_output.wrote);
    let words = turn("run_command", json!({ "command": ["bash", "-c", "echo 1 > output.json"] }), "", None);
    assert!(features(&trace(vec![words])).wrote_output.wrote);
}

#[test]
fn what_was_left_counts_before_what_commands_suggest() {
    let mut unseen = trace(vec![bash("bash /solution/solve.sh")]);
    unseen.output_present = Some(true);
    let wrote = features(&unseen).wrote_output;
    assert!(wrote.wrote && wrote.unseen && wrote.writes == 0);
    let mut gone = trace(vec![bash("echo 1 > output.json")]);
    gone.output_present = Some(false);
    assert!(!features(&gone).wrote_output.wrote);
    let failed = turn("write_file", json!({ "path": "output.json", "content": "x" }), "error: no", Some(1));
    assert!(!features(&trace(vec![failed])).wrote_output.wrote);
}

#[test]
fn writes_are_dated_and_read_back() {
    let features =
        of(&["ls", "echo 1 > output.json", "cat output.json", "echo 2 > output.json; cat output.json", "ls"]);
    assert_eq!((features.turns_to_first_write, features.ms_to_first_write), (Some(2), Some(1_000)));
    assert_eq!((features.turns_after_last_write, features.wrote_output.writes), (Some(1), 2));
    assert_eq!((features.read_back.count, features.read_back.first_turn), (2, Some(3)));
    assert_eq!(of(&["cat output.json", "echo 1 > output.json"]).read_back.count, 0);
    assert_eq!(of(&["ls"]).turns_to_first_write, None);
}

#[test]
fn errors_are_counted_and_made_good() {
    let run = |command: &str, code: i32| turn("bash", json!({ "command": command }), "", Some(code));
    let features = |turns: Vec<Turn>| features(&trace(turns));
    let mended = features(vec![run("python3 a.py", 1), run("ls", 0), run("python3 b.py", 0)]);
    assert_eq!((mended.tool_errors.count, mended.tool_errors.by[&Fault::ExitCode]), (1, 1));
    assert_eq!((mended.recovered.recovered, mended.recovered.first_turn), (Some(true), Some(3)));
    let left = features(vec![run("python3 a.py", 1), run("ls", 0)]);
    assert_eq!((left.recovered.recovered, left.recovered.errors_left), (Some(false), 1));
    let other_way = features(vec![
        turn("read_file", json!({ "path": "x" }), "error: cannot read `x`", Some(1)),
        run("cat inputs/a.csv", 0),
    ]);
    assert_eq!(other_way.recovered.recovered, Some(true));
    let unknown =
        features(vec![turn("sudo", json!({}), "error: there is no tool `sudo`", Some(1)), run("ls", 0)]);
    assert_eq!(unknown.tool_errors.by[&Fault::Refused], 1);
    assert_eq!(unknown.recovered.recovered, Some(true));
    assert_eq!(features(vec![run("ls", 0)]).recovered.recovered, None);
    let never_before = features(vec![run("python3 a.py", 0), run("python3 a.py", 1)]);
    assert_eq!(never_before.recovered.recovered, Some(false));
}

#[test]
fn tools_count_when_they_are_used() {
    let features = of(&[
        "python3 tools/calc.py --help",
        "python3 /workspace/tools/calc.py --x 1",
        "cd tools; ./calc.py 2",
    ]);
    assert_eq!((features.used_tools.used, features.used_tools.of, features.used_tools.calls), (1, 2, 2));
    assert_eq!(features.used_tools.first_turn, Some(2));
    let by_name =
        super::features::features(&trace(vec![turn("plot", json!({ "command": "--x 1" }), "", Some(0))]));
    assert_eq!((by_name.used_tools.used, by_name.used_tools.calls), (1, 1));
    assert_eq!(of(&["cat tools/calc.py"]).used_tools.used, 0);
}

#[test]
fn submissions_and_verdicts() {
    let submit = |code: i32| turn("submit_answer", json!({ "answer": "{}" }), "", Some(code));
    let mut done = trace(vec![submit(1), submit(0)]);
    done.reward = Some(0.4);
    let found = features(&done);
    assert_eq!((found.submit_calls, found.submitted, found.submit_turn), (2, true, Some(2)));
    assert_eq!(found.accepted, Acceptance::Partial);
    assert_eq!(found.wrote_output.by["submission"], 1);
    done.submitted = Some(false);
    assert!(!features(&done).submitted);
    assert_eq!(Acceptance::of(Some(1.0)), Acceptance::Full);
    assert_eq!(Acceptance::of(Some(f64::NAN)), Acceptance::Unknown);
    assert_eq!(Acceptance::of(Some(-1.0)), Acceptance::None);
}

#[test]
fn loops_need_the_same_result() {
    let run = |stdout: &str| turn("bash", json!({ "command": "make" }), stdout, Some(0));
    let features = features(&trace(vec![run("a"), run("a"), run("a"), run("b"), run("a")]));
    assert_eq!((features.loops.longest_run, features.loops.repeated_calls), (3, 3));
    assert_eq!((features.loops.share, features.loops.first_turn), (0.6, Some(2)));
}

#[test]
fn churn_counts_rewrites() {
    let features = of(&["echo 12 > a", "echo 3 >> a", "echo 45 > a; echo 6 >> a", "echo 1 > b", "make > c"]);
    let churn = features.edit_churn;
    assert_eq!((churn.files, churn.rewritten_files, churn.rewrites), (3, 1, 1));
    assert_eq!((churn.bytes, churn.writes_of_unknown_size), (3 + 2 + 3 + 2 + 2, 1));
    assert_eq!(churn.most, Some(("a".into(), 2)));
}

#[test]
fn a_trace_without_anything_is_a_trace() {
    let mut empty = trace(vec![Turn::default(), Turn { reasoning: "hm".into(), ..Turn::default() }]);
    empty.empty_replies = 1;
    let features = features(&empty);
    assert_eq!((features.empty_responses.count, features.empty_responses.first_turn), (3, Some(1)));
    assert_eq!(super::features::features(&Trace::default()), Features::default());
    serde_json::to_string(&features).unwrap();
}

proptest! {
    #[test]
    fn nothing_panics(
        calls in prop::collection::vec(
            (
                prop::sample::select(vec!["bash", "read_file", "write_file", "edit_file", "submit_answer", "python", "calc", "apply_patch", ""]),
                "(\\PC|[ \n;|<>'\"$()]|cat |output.json|inputs/a.csv|python3 |<<E|E\n|> ){0,40}",
                prop::option::of(-3..3_i32),
                any::<bool>(),
            ),
            0..6,
        )
    ) {
        let turns = calls.into_iter().map(|(name, text, code, whole)| {
            let arguments = if whole { Value::from(text.clone()) } else {
                json!({ "command": text, "path": text, "content": text, "code": text, "patch": text, "old": text, "new": 3 })
            };
            turn(name, arguments, &text, code)
        });
        let trace = trace(turns.collect());
        let (features, labels) = super::analyse(&trace);
        prop_assert_eq!(labels.len(), trace.turns.len());
        prop_assert!(features.recovered.errors_recovered <= features.tool_errors.count);
        prop_assert!(features.inspected_files.read <= 3 && features.loops.share < 1.0);
        prop_assert!(labels.iter().all(|label| (0.0..=1.0).contains(&label.confidence)));
    }
}
