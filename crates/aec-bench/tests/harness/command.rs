//! `command`: the user's own program as the agent.

use std::sync::Arc;
use std::time::Duration;

use aec_ledger::transcript::EventRole;
use aec_model::failure::FailureKind;
use aec_model::meter::Budget;
use aec_model::script::Script;
use aec_model_server::{Answers, Options, TestServer};
use aec_run::experiment::Harness;
use aec_run::harness::{AgentFile, End, Limit};
use serde_json::{Value, json};

use crate::harness::{Bench, INSTRUCTION, write};

const EXAMPLE: &str = include_str!("../../../../docs/examples/agents/minimal_agent.py");

fn program(path: &str, text: &str) -> AgentFile {
    AgentFile { path: path.to_owned(), content: text.as_bytes().into(), executable: true }
}

/// A bench whose model is on a real server with a key.
async fn served(parameters: Value, script: &str, faults: &[&str]) -> (Bench, TestServer) {
    let mut bench = Bench::new(Harness::Command, parameters);
    write(&bench.directory.path().join("s.json"), script);
    let script = Arc::new(Script::read(&bench.directory.path().join("s.json")).unwrap());
    let options = Options {
        answers: Answers::Script(script),
        key: Some("sk-canary-key".into()),
        faults: faults.iter().map(|fault| fault.parse().unwrap()).collect(),
        keep_requests: 8,
        ..Options::default()
    };
    let server = TestServer::start(options).await.unwrap();
    bench.endpoints = format!(
        "[[endpoint]]\nendpoint_id = \"mine\"\nmodel = \"big\"\nurl = \"{}/v1\"\nkey = \"P_KEY\"\n",
        server.url()
    );
    bench.env = vec![("P_KEY".to_owned(), "sk-canary-key".to_owned())];
    bench.model = Some("mine".to_owned());
    (bench, server)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_agent_works_with_its_model_and_never_sees_a_key() {
    let script = r#"{"replies": [
        {"text": "Let me see.\n```bash\ncat survey.csv\nenv | grep -c canary\ncat /agent/instruction.md | head -n 1\n```"},
        {"text": "Now.\n```bash\necho '{\"depth_m\": 1.25}' > /workspace/output.json\n```"},
        {"text": "Done."}]}"#;
    let path = "docs/examples/agents/minimal_agent.py";
    let (mut bench, server) =
        served(json!({ "command": ["python3", format!("/agent/{path}")] }), script, &[]).await;
    bench.files = vec![program(path, EXAMPLE)];
    bench.system_prompt = Some("You are an engineer.".to_owned());
    let left = bench.run().await;
    assert!(matches!(left.rollout.end, End::Done), "{:?} {}", left.rollout, left.stderr(0));
    assert_eq!(left.file("output.json").await.as_deref(), Some("{\"depth_m\": 1.25}\n"));
    assert_eq!(left.result("model_calls"), 3);
    assert_eq!(left.result("agent_result"), &json!({ "status": "ok", "model": "mine", "turns_used": 3 }));
    assert_eq!(left.rollout.resolved_model.as_deref(), Some("big"));
    // The trajectory contains each message once.
    let said = |role: EventRole| -> Vec<&str> {
        let events = left.events.iter().filter(|event| event.role == role);
        events.filter_map(|event| event.content.as_deref()).collect()
    };
    assert_eq!(said(EventRole::System), ["You are an engineer."]);
    let user = said(EventRole::User);
    assert_eq!((user.len(), user[0]), (3, INSTRUCTION));
    assert!(user[1].contains("x,z\n0,1\n0\n# Channel\n"), "{}", user[1]);
    assert_eq!(said(EventRole::Assistant).len(), 3);
    let calls = left.events.iter().filter(|event| event.call.is_some()).count();
    assert_eq!(calls, 6, "each call begins and is answered");
    assert!(left.account.totals().all.tokens() > 0);
    let sent: Value = serde_json::from_slice(&server.requests()[0].body).unwrap();
    assert_eq!(
        (&sent["model"], &sent["messages"][0]["content"]),
        (&json!("big"), &json!("You are an engineer."))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_seven_variables_are_set_and_nobody_replaces_them() {
    let parameters = json!({
        "command": "python3 -c 'import json, os; print(json.dumps(dict(os.environ)))'",
        "env": { "MY_OWN": "$P_KEY", "LANG": "C" },
    });
    let (bench, _server) = served(parameters, r#"{"replies": [{"text": "x"}]}"#, &[]).await;
    let left = bench.run().await;
    let env: Value = serde_json::from_str(left.stdout(0)).unwrap();
    assert_eq!(env["AGENT_MODEL"], "mine");
    assert_eq!(env["AGENT_INSTRUCTION"], INSTRUCTION);
    assert_eq!(env["AGENT_MAX_TOKENS"], "16384");
    assert_eq!(env["AGENT_MAX_TURNS"], "10");
    assert_eq!(env["AGENT_COMMAND_TIMEOUT"], "120");
    assert_eq!(env["AGENT_API_VERSION"], "2024-10-21");
    let tools: Value = serde_json::from_str(env["AGENT_TOOLS_JSON"].as_str().unwrap()).unwrap();
    assert_eq!(
        tools,
        json!([
            { "name": "flow_calc", "source": "tools/flow.py", "description": "Flow from depth.", "returns_image": false },
            { "name": "task_bash", "source": "plot.py", "description": "Plots the survey.", "returns_image": true },
        ])
    );
    // References are not filled in, and the token is not recorded.
    assert_eq!((&env["MY_OWN"], &env["LANG"]), (&json!("$P_KEY"), &json!("C")));
    assert_eq!(env["OPENAI_API_KEY"], "[token of the gateway redacted]");
    assert!(env["OPENAI_BASE_URL"].as_str().unwrap().starts_with("http://127.0.0.1:"));
    assert_eq!(env["HOME"], "/home/agent");
    let names: Vec<&String> = env.as_object().unwrap().keys().collect();
    assert!(!names.iter().any(|name| *name == "P_KEY" || name.starts_with("AEC")), "{names:?}");
    let other = Bench::new(
        Harness::Command,
        json!({ "command": "env", "max_tokens": 5, "max_turns": 6, "command_timeout": 7 }),
    );
    let left = other.run().await;
    for line in ["AGENT_MAX_TOKENS=5", "AGENT_MAX_TURNS=6", "AGENT_COMMAND_TIMEOUT=7"] {
        assert!(left.stdout(0).contains(line), "{line}");
    }
    // An agent without a model gets no address.
    assert!(!left.stdout(0).contains("OPENAI") && !left.stdout(0).contains("AGENT_MODEL"));
}

#[tokio::test(flavor = "multi_thread")]
async fn how_a_program_ends_is_how_the_work_ends() {
    let run = async |command: &str, time: u64| {
        let mut bench = Bench::new(Harness::Command, json!({ "command": command }));
        bench.time = Duration::from_secs(time);
        bench.run().await
    };
    let failed = run("echo out; echo broken >&2; echo '{}' > output.json; exit 3", 60).await;
    let End::Agent(what) = &failed.rollout.end else { panic!("{:?}", failed.rollout) };
    assert_eq!(what, "the program ended with exit code 3: broken");
    assert_eq!((failed.stdout(0), failed.result("exit_code")), ("out\n", &json!(3)));
    assert_eq!(failed.rollout.final_text, None, "what is printed is no answer");
    let killed = run("kill -9 $$", 60).await;
    assert!(
        matches!(&killed.rollout.end, End::Crashed(what) if what.contains("signal 9")),
        "{:?}",
        killed.rollout
    );
    let late = run("echo begun; sleep 600", 5).await;
    assert!(matches!(late.rollout.end, End::Limit(Limit::Time)));
    assert_eq!(late.stdout(0), "begun\n");
    let absent = run("/nowhere/at/all", 60).await;
    assert!(
        matches!(&absent.rollout.end, End::Crashed(what) if what.contains("127")),
        "{:?}",
        absent.rollout
    );
    let sealed = run("touch /agent/x || exit 0; exit 5", 60).await;
    assert!(matches!(sealed.rollout.end, End::Done));
    for (content, kept) in [("[1]", false), ("{", false), ("{\"turns_used\": 4}", true)] {
        let said = run(&format!("echo '{content}' > agent_result.json"), 60).await;
        assert_eq!(said.rollout.result.contains_key("agent_result"), kept, "{content}");
        assert!(matches!(said.rollout.end, End::Done));
    }
    let large = run("head -c 100000 /dev/zero > agent_result.json", 60).await;
    assert!(!large.rollout.result.contains_key("agent_result"));
}

const ONE_CALL: &str = r"
import json, os, sys, urllib.error, urllib.request
body = dict(model=os.environ['AGENT_MODEL'], max_tokens=20, messages=[dict(role='user', content='hello')])
request = urllib.request.Request(os.environ['OPENAI_BASE_URL'] + '/chat/completions', json.dumps(body).encode(),
    {'authorization': 'Bearer ' + os.environ['OPENAI_API_KEY'], 'content-type': 'application/json'})
try:
    urllib.request.urlopen(request).read()
except urllib.error.HTTPError as error:
    sys.exit(f'status {error.code}')
sys.exit(int(sys.argv[1]))
";

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_ends_for_want_of_its_model_did_not_fail_itself() {
    let parameters = |code: u8| json!({ "command": ["python3", "/agent/one.py", code.to_string()] });
    let reply = r#"{"replies": [{"text": "hello"}]}"#;
    let (mut down, _server) = served(parameters(0), reply, &["server"]).await;
    down.files = vec![program("one.py", ONE_CALL)];
    let left = down.run().await;
    let End::Model(failure) = &left.rollout.end else { panic!("{:?}", left.rollout) };
    assert_eq!(failure.kind, FailureKind::Server);
    let (mut own, _server) = served(parameters(2), reply, &[]).await;
    own.files = vec![program("one.py", ONE_CALL)];
    assert!(matches!(own.run().await.rollout.end, End::Crashed(_)));
    // A program chooses how much it asks for, so a call that fits into no budget is its own doing.
    own.budget = Budget::of_tokens(10);
    let left = own.run().await;
    assert!(
        matches!(&left.rollout.end, End::Model(failure) if failure.kind == FailureKind::Budget),
        "{:?}",
        left.rollout
    );
}

/// Ends while its model is still answering: the gateway's first byte shows that the call is under way.
const IMPATIENT: &str = r"
import json, os, urllib.request
body = dict(model=os.environ['AGENT_MODEL'], max_tokens=20, stream=True, messages=[dict(role='user', content='hello')])
request = urllib.request.Request(os.environ['OPENAI_BASE_URL'] + '/chat/completions', json.dumps(body).encode(),
    {'authorization': 'Bearer ' + os.environ['OPENAI_API_KEY'], 'content-type': 'application/json'})
print(urllib.request.urlopen(request).readline().decode(), end='')
";

/// A program that ends during a call: the call ends with it, and its possible cost is counted.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_under_way_ends_with_the_program_and_is_counted() {
    let parameters = json!({ "command": ["python3", "/agent/impatient.py"] });
    let (mut bench, server) = served(parameters, r#"{"replies": [{"text": "x"}]}"#, &["timeout"]).await;
    bench.files = vec![program("impatient.py", IMPATIENT)];
    let left = bench.run().await;
    assert!(matches!(left.rollout.end, End::Done), "{:?}", left.rollout);
    assert_eq!(left.stdout(0), ": waiting for the model\n");
    assert_eq!(server.stats().requests["chat_completions"], 1);
    assert!(left.account.totals().all.tokens() > 0);
}
