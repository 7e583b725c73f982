//! `tool_loop`: tools, their errors, limits and the recorded events.

use std::sync::Arc;

use aec_ledger::transcript::EventRole;
use aec_model::failure::FailureKind;
use aec_model::script::Script;
use aec_model_server::{Answers, Options, TestServer};
use aec_run::harness::{End, Limit};
use serde_json::{Value, json};

use crate::harness::{Bench, Left, write};

fn is_limit(left: &Left, limit: Limit) -> bool {
    matches!(&left.rollout.end, End::Limit(found) if *found == limit)
        && left.result("stop_reason") == limit.name()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_worked_out_with_every_tool_and_handed_in() {
    let bench = Bench::looped(
        json!({ "snapshots": true }),
        r#"
replies:
- text: Let me look.
  tool_calls:
  - {name: list_files, arguments: {}}
  - {name: read_file, arguments: {path: /workspace/survey.csv, offset: 2, limit: 1}}
  - {name: bash, arguments: {command: "echo $HOME $LANG; env | sort | cut -d= -f1 | tr '\\n' ' '; id -un; pwd; exit 3"}}
- tool_calls:
  - {name: flow_calc, arguments: {command: "--depth 1.25 'two words'"}}
  - {name: task_bash, arguments: {command: ""}}
  - {name: write_file, arguments: {path: notes/a.md, content: "depth 1.2 m\n"}}
  - {name: edit_file, arguments: {path: notes/a.md, old: "1.2", new: "1.25"}}
  - {name: submit_answer, arguments: {content: "{\"depth_m\": 1.25}"}}
  - {name: bash, arguments: {command: "cat notes/a.md"}}
- text: never said
"#,
    );
    let left = bench.run().await;
    assert!(matches!(left.rollout.end, End::Done), "{:?}", left.rollout);
    assert_eq!(left.submitted(), Some("{\"depth_m\": 1.25}"));
    assert_eq!(left.rollout.final_text, None);
    let keys: Vec<(&str, Value)> =
        left.rollout.result.iter().map(|(key, value)| (key.as_str(), value.clone())).collect();
    assert_eq!(
        keys,
        [
            ("turns_used", json!(2)),
            ("max_turns", json!(10)),
            ("tool_calls", json!(8)),
            ("submitted", json!(true)),
            ("stop_reason", json!("done")),
        ]
    );
    assert!(left.stdout(0).contains("plot.py") && left.stdout(0).contains("tools/flow.py"));
    assert!(!left.stdout(0).contains("verify.py"));
    assert_eq!(left.stdout(1), "0,1\n");
    assert_eq!(left.stdout(2), "/home/agent C.UTF-8\nHOME LANG PATH PWD SHLVL _ agent\n/workspace\n");
    assert_eq!(left.results()[2].exit_code, Some(3));
    assert_eq!(left.stdout(3), "args ['--depth', '1.25', 'two words']\n");
    let plot = left.results()[4];
    assert_eq!(plot.media, ["plot.png"]);
    let said = plot.stdout.as_deref().unwrap();
    assert!(said.contains("/etc/passwd is not shown") && said.contains("survey.csv is not shown"), "{said}");
    // The call after the answer was executed as well.
    assert_eq!(left.stdout(8), "depth 1.25 m\n");
    let steps: Vec<u32> = left.results().iter().map(|event| event.step).collect();
    assert_eq!(steps, [1, 1, 1, 2, 2, 2, 2, 2, 2]);
    let store = aec_base::content::ContentStore::new(bench.directory.path().join("store"));
    let states: Vec<Value> = left
        .results()
        .iter()
        .map(|event| serde_json::from_slice(&store.read(event.snapshot.unwrap(), 1 << 20).unwrap()).unwrap())
        .collect();
    let note = |state: &Value| {
        let files = state["files"].as_array().unwrap();
        files.iter().find(|file| file["path"] == "notes/a.md").map(|file| file["hash"].clone())
    };
    assert_eq!((note(&states[4]), note(&states[5]).is_some()), (None, true));
    assert_ne!(note(&states[5]), note(&states[6]));
    let hash: aec_base::digest::Digest = serde_json::from_value(note(&states[6]).unwrap()).unwrap();
    assert_eq!(store.read(hash, 100).unwrap(), b"depth 1.25 m\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_model_does_wrong_is_told_to_it_and_ends_nothing() {
    let bench = Bench::looped(
        json!({}),
        r#"
replies:
- tool_calls:
  - {name: bash, arguments: "not json"}
  - {name: bash, arguments: {cmd: ls}}
  - {name: bash, arguments: {command: 3}}
  - {name: bash, arguments: {command: "  "}}
  - {name: python, arguments: {code: "1"}}
  - {name: read_file, arguments: {path: ../etc/passwd}}
  - {name: read_file, arguments: {path: missing.txt}}
  - {name: read_file, arguments: {path: survey.csv, offset: 99}}
  - {name: edit_file, arguments: {path: survey.csv, old: "nowhere", new: ""}}
  - {name: edit_file, arguments: {path: survey.csv, old: ",", new: ";"}}
  - {name: write_file, arguments: {path: /etc/x, content: a}}
  - {name: list_files, arguments: {path: /}}
  - {name: submit_answer, arguments: {content: {depth_m: 1}}}
  - {name: bash, arguments: {command: "ln -s /etc/passwd link; printf 'a\\0\\377' > binary; sleep 60 & echo started"}}
  - {name: read_file, arguments: {path: link}}
  - {name: read_file, arguments: {path: binary}}
- text: I give up.
"#,
    );
    let left = bench.run().await;
    assert!(matches!(left.rollout.end, End::Done));
    assert_eq!(left.rollout.final_text.as_deref(), Some("I give up."));
    assert_eq!(left.rollout.submitted, None);
    let expected = [
        "not a JSON object; `bash` takes {\"command\": string}. They were: not json",
        "there is no argument `cmd`",
        "`command` must be a string",
        "`command` is empty",
        "there is no tool `python`; the tools are bash, read_file",
        "is not a path below /workspace",
        "cannot read `missing.txt`",
        "`survey.csv` has 2 lines",
        "`old` does not occur",
        "`old` occurs 2 times",
        "is not a path below /workspace",
        "cannot list `/`",
        "`content` must be a string",
        "",
        "cannot read `link`",
        "`binary` is not UTF-8 text (3 bytes)",
    ];
    for (index, text) in expected.iter().enumerate() {
        assert!(left.stderr(index).contains(text), "{index}: {}", left.stderr(index));
        let failed = left.results()[index].exit_code != Some(0);
        assert_eq!(failed, !text.is_empty(), "{index}");
    }
    // A background process delays nothing.
    assert_eq!(left.stdout(13), "started\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_calls_of_the_last_allowed_turn_are_carried_out() {
    let replies =
        "replies:\n- text: on my way\n  tool_calls:\n  - {name: bash, arguments: {command: echo x >> out}}\n";
    let left = Bench::looped(json!({ "max_turns": 3 }), replies).run().await;
    assert!(is_limit(&left, Limit::Turns), "{:?}", left.rollout);
    assert_eq!(left.file("out").await.unwrap(), "x\nx\nx\n");
    assert_eq!((left.result("turns_used"), left.result("tool_calls")), (&json!(3), &json!(3)));
    // Text between tool calls is not an answer.
    assert_eq!(left.rollout.final_text, None);
    let note = left.events.iter().find(|event| event.role == EventRole::Note).unwrap();
    assert!(note.content.as_deref().unwrap().contains("turn_limit_reached"));
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_beyond_their_limit_are_refused_and_an_answer_is_not() {
    let two = "  - {name: bash, arguments: {command: echo x >> out}}\n";
    let replies = format!("replies:\n- tool_calls:\n{two}- tool_calls:\n{two}{two}{two}");
    let left = Bench::looped(json!({ "max_tool_calls": 2 }), &replies).run().await;
    assert!(is_limit(&left, Limit::ToolCalls), "{:?}", left.rollout);
    assert_eq!(left.file("out").await.unwrap(), "x\nx\n");
    assert_eq!(left.results().len(), 4);
    assert!(left.stderr(3).contains("more than 2 calls"));
    assert_eq!((left.result("turns_used"), left.result("tool_calls")), (&json!(2), &json!(2)));
    let answered = format!("{replies}  - {{name: submit_answer, arguments: {{content: '1'}}}}\n");
    let left = Bench::looped(json!({ "max_tool_calls": 2 }), &answered).run().await;
    assert!(matches!(left.rollout.end, End::Done));
    assert_eq!(left.submitted(), Some("1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_limited_over_all_turns() {
    let replies = "replies:\n- tool_calls:\n  - {name: bash, arguments: {command: seq 1000}}\n";
    for (parameters, turns) in [
        (json!({ "max_input_tokens": 1 }), 1),
        (json!({ "max_total_tokens": 1 }), 1),
        // The second call reads the output of the first.
        (json!({ "max_total_tokens": 1000 }), 2),
        (json!({ "max_input_tokens": 1_000_000_000_u32 }), 10),
    ] {
        let left = Bench::looped(parameters.clone(), replies).run().await;
        assert_eq!(left.result("turns_used"), turns, "{parameters}");
        let limit = if turns == 10 { Limit::Turns } else { Limit::Tokens };
        assert!(is_limit(&left, limit), "{parameters}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_and_the_whole_work_end_in_time() {
    let replies = "replies:\n- tool_calls:\n  - {name: bash, arguments: {command: 'echo begun; sleep 600'}}\n\
                   - text: done\n";
    let left = Bench::looped(json!({ "command_timeout": 5 }), replies).run().await;
    assert!(matches!(left.rollout.end, End::Done));
    assert_eq!((left.stdout(0), left.stderr(0)), ("begun\n", "\n[timed out after 5 s]"));
    assert_eq!(left.results()[0].exit_code, None);
    let mut bench = Bench::looped(json!({}), replies);
    bench.time = std::time::Duration::from_secs(2);
    let left = bench.run().await;
    assert!(is_limit(&left, Limit::Time), "{:?}", left.rollout);
    assert_eq!(left.results().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn long_output_is_cut_and_kept_whole_in_the_room() {
    let replies = r#"
replies:
- tool_calls:
  - {name: bash, arguments: {command: "seq 100000; echo oops >&2"}}
  - {name: bash, arguments: {command: "sort -n /logs/tool-output/1.txt | tail -n 1; printf '\\033[31mred'; wc -c < /logs/tool-output/1.txt"}}
  - {name: bash, arguments: {command: "yes | head -c 20000000"}}
- text: done
"#;
    let left = Bench::looped(json!({ "tool_output": 1000 }), replies).run().await;
    let cut = left.stdout(0);
    assert!(cut.starts_with("1\n2\n") && cut.ends_with("99999\n100000\n"), "{cut}");
    assert!(cut.contains("bytes left out; the whole output is in /logs/tool-output/1.txt"), "{cut}");
    assert!(cut.len() < 1100);
    assert_eq!(left.stderr(0), "oops\n");
    assert_eq!(left.stdout(1), "100000\n\u{1b}[31mred588909\n");
    assert!(left.stdout(2).contains("its first and last 5242880 bytes are in /logs/tool-output/3.txt"));
}

/// The requests to a provider, whose way of ending a turn does not matter.
#[tokio::test(flavor = "multi_thread")]
async fn a_provider_gets_results_by_call_and_tools_by_schema() {
    let script = r#"{"replies": [
        {"text": "looking", "stop": "end", "tool_calls": [
            {"name": "bash", "arguments": {"command": "echo a"}}, {"name": "nothing", "arguments": {}}]},
        {"text": "cut off", "stop": "length"}]}"#;
    let directory = tempfile::tempdir().unwrap();
    write(&directory.path().join("s.json"), script);
    let script = Arc::new(Script::read(&directory.path().join("s.json")).unwrap());
    let options = Options { answers: Answers::Script(script), keep_requests: 8, ..Options::default() };
    let server = TestServer::start(options).await.unwrap();
    for (kind, suffix) in [("openai_chat_completions", "/v1"), ("anthropic_messages", "")] {
        let mut bench = Bench::looped(json!({ "temperature": 0.5 }), "replies: [{text: x}]");
        bench.endpoints = format!(
            "[[endpoint]]\nendpoint_id = \"mine\"\nmodel = \"big\"\nurl = \"{}{suffix}\"\nkey = \"K_KEY\"\n\
             api_client_type = \"{kind}\"\n",
            server.url()
        );
        bench.env = vec![("K_KEY".to_owned(), "sk-secret-value".to_owned())];
        bench.model = Some("mine".to_owned());
        bench.system_prompt = Some("Be brief.\n".to_owned());
        let left = bench.run().await;
        assert!(matches!(left.rollout.end, End::Done), "{:?}", left.rollout);
        assert_eq!(left.rollout.final_text.as_deref(), Some("cut off"));
        assert!(left.events.iter().any(|event| {
            event.content.as_deref().is_some_and(|text| text.contains("limit of output tokens"))
        }));
        let system = left.events[0].content.as_deref().unwrap();
        assert!(system.starts_with("Be brief.\n\nYou work in /workspace"), "{system}");
        let sent = server.requests();
        let body: Value = serde_json::from_slice(&sent[sent.len() - 1].body).unwrap();
        assert_eq!(body["temperature"], 0.5);
        let text = body.to_string();
        for expected in
            ["echo a", "there is no tool `nothing`", "task_bash", "flow_calc", "/workspace/output.json"]
        {
            assert!(text.contains(expected), "{kind}: {expected}: {text}");
        }
        assert_eq!(body["tools"].as_array().unwrap().len(), 8, "{kind}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_fails_ends_the_work_as_its_failure() {
    let options = Options { faults: vec!["server".parse().unwrap()], ..Options::default() };
    let server = TestServer::start(options).await.unwrap();
    let mut bench = Bench::looped(json!({}), "replies: [{text: x}]");
    bench.endpoints =
        format!("[[endpoint]]\nendpoint_id = \"mine\"\nmodel = \"big\"\nurl = \"{}/v1\"\n", server.url());
    bench.model = Some("mine".to_owned());
    let left = bench.run().await;
    let End::Model(failure) = &left.rollout.end else { panic!("{:?}", left.rollout.end) };
    assert_eq!(failure.kind, FailureKind::Server);
    assert_eq!(left.result("turns_used"), 1);
    assert!(left.context.opened().is_none(), "no room was needed");
}
