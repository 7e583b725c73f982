//! What the user says once applies to the whole experiment: caps, limits and what was spent, over all its sessions.

use std::time::Duration;

use aec_ledger::transcript::{self, Event, EventRole};
use aec_model::event::CallEvent;
use aec_model::money::MicroDollars;
use aec_model_server::{Options, Range};
use aec_xtest::files::names_in;
use aec_xtest::wait::until;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::run::world::right;
use crate::run::{Project, Server};

const LINE: &str = "run civil --model mine --harness direct --parameter max_tokens=64 -e x";

/// A project whose model costs this many dollars per million tokens.
fn priced(tasks: usize, dollars: u32, options: Options) -> (Project, Server) {
    let project = Project::with_tasks(tasks);
    let server = Server::start(options);
    project.endpoints(&server.url(), &["mine"]);
    project.env.write(
        "configs/prices.toml",
        format!(
            "schema_version = 1\n[[price]]\nendpoint = \"mine\"\ninput = {dollars}\noutput = {dollars}\n"
        ),
    );
    (project, server)
}

fn spent(project: &Project) -> f64 {
    project.records("x").values().map(|record| record.cost.estimated_cost_usd.unwrap()).sum()
}

/// The notes of a run.
fn notes(run: &aec_xtest::Run) -> String {
    run.envelope().to_string()
}

#[test]
fn a_cap_is_kept_until_another_one_is_named() {
    let (project, server) = priced(60, 1, right());
    let stopped = project.json(&format!("{LINE} --concurrency 4 --max-cost 0.002"));
    assert_eq!(stopped.code, Some(1), "{stopped:?}");
    let first = spent(&project);
    // The printed command to continue, and the first command line without its cap.
    for line in ["run --resume x", LINE] {
        let again = project.json(line);
        assert_eq!(again.code, Some(1), "{line}: {again:?}");
        assert_eq!(again.envelope()["data"]["stopped"]["reason"], "budget", "{line}: {again:?}");
        assert!(spent(&project) <= 0.002, "{line}: {} after {first}", spent(&project));
        let told = "going on with --concurrency 4 --max-cost 0.002 of the earlier session";
        assert!(notes(&again).contains(told), "{again:?}");
    }
    let status = project.data("runs status x");
    let budget = &status["budget"];
    assert_eq!((&budget["max_usd"], &status["terms"]["max_cost"]), (&json!(0.002), &json!("0.002")));
    assert_eq!(status["terms"]["concurrency"], 4);
    let sum = budget["spent_usd"].as_f64().unwrap() + budget["left_usd"].as_f64().unwrap();
    assert!(
        (sum - 0.002).abs() < 1e-9 && (budget["spent_usd"].as_f64().unwrap() - spent(&project)).abs() < 1e-9
    );
    let shown = project.run("runs status x").stdout;
    assert!(
        shown.contains("of $0.0020, $0.00") && shown.contains("--concurrency 4 --max-cost 0.002"),
        "{shown}"
    );
    let before = server.count();
    // A new cap replaces it, and `none` removes it.
    let more = project.json("run --resume x --max-cost 0.003");
    assert_eq!(more.code, Some(1), "{more:?}");
    assert!(server.count() > before && spent(&project) <= 0.003, "{}", spent(&project));
    assert_eq!(project.data("runs status x")["budget"]["max_usd"], json!(0.003));
    let lifted = project.data("run --resume x --max-cost none");
    assert_eq!(lifted["all"]["outcomes"], json!({ "scored": 60 }));
    assert_eq!(project.data("runs status x")["budget"]["max_usd"], Value::Null);
    project.assert_sound("x");
}

#[test]
fn a_limit_of_tokens_is_kept_too() {
    let (project, server) = priced(40, 1, right());
    let stopped = project.json(&format!("{LINE} --concurrency 1 --max-total-tokens 2000"));
    assert_eq!(stopped.code, Some(1), "{stopped:?}");
    let asked = server.count();
    let again = project.json("run --resume x");
    assert_eq!((again.code, server.count()), (Some(1), asked), "{again:?}");
    assert_eq!(
        project.data("run --resume x --max-total-tokens none")["all"]["outcomes"],
        json!({ "scored": 40 })
    );
}

#[test]
fn time_and_limits_are_those_of_the_first_session() {
    let slow = Options { latency: Range::only(Duration::from_millis(250)), ..right() };
    let (project, server) = priced(30, 1, slow);
    let stopped = project.json(&format!("{LINE} --concurrency 1 --max-time 1 --max-faults 3"));
    assert_eq!((stopped.code, &stopped.envelope()["data"]["stopped"]["reason"]), (Some(1), &json!("time")));
    let first = server.count();
    assert!(first < 30);
    // The time limit applies to each session.
    let again = project.json("run --resume x");
    assert_eq!(
        (again.code, &again.envelope()["data"]["stopped"]["reason"]),
        (Some(1), &json!("time")),
        "{again:?}"
    );
    assert!((first + 1..30).contains(&server.count()), "{}", server.count());
    assert!(notes(&again).contains("--concurrency 1 --max-time 1 --max-faults 3"), "{again:?}");
    assert_eq!(project.data("run --resume x --max-time none --concurrency 8")["all"]["executed"], 30);
}

#[test]
fn an_experiment_without_kept_terms_goes_on_as_it_is_told() {
    let (project, _server) = priced(3, 1, right());
    project.data(&format!("{LINE} --max-cost 1"));
    let terms = project.ledger("x").join("_run/terms.json");
    let text = std::fs::read_to_string(&terms).unwrap();
    assert!(text.contains("\"max_cost\": \"1\""), "{text}");
    // An experiment of an earlier version has no such file.
    std::fs::remove_file(&terms).unwrap();
    let again = project.json("run --resume x");
    assert_eq!(again.code, Some(0), "{again:?}");
    assert!(!notes(&again).contains("going on with"), "{again:?}");
    assert_eq!(project.data("runs status x")["budget"]["max_usd"], Value::Null);
    // An unreadable file does not lift the limit.
    std::fs::write(&terms, "{\"max_cost\": \"much\"}").unwrap();
    let (id, _) = project.refusal("run --resume x", 3);
    assert_eq!(id, "E053");
}

#[test]
fn what_a_killed_session_spent_is_subtracted_once() {
    const TRIALS: usize = 12;
    let script = "replies:\n- tool_calls: [{name: bash, arguments: {command: sleep 100}}]\n";
    let (project, server) = priced(TRIALS, 5, crate::run::world::saying(script));
    let run = project
        .start("run civil --model mine --harness tool_loop --parameter max_tokens=64 -e x --concurrency 12");
    let live = project.jobs("x").join("_live");
    let events = |name: &String| {
        transcript::read(&std::fs::read(live.join(name).join("trajectory.jsonl")).unwrap_or_default())
    };
    let at_work = |name: &&String| events(name).iter().any(|event| event.role == EventRole::ToolCall);
    until("trials at work", || names_in(&live).iter().filter(at_work).count() >= TRIALS);
    run.signal(Signal::KILL);
    run.end();
    assert_eq!(server.count(), 12);
    let cost = |event: &Event| match &event.call {
        Some(CallEvent::Answered { cost, .. }) => cost.unwrap().0,
        _ => 0,
    };
    let gone: u64 = names_in(&live).iter().flat_map(events).map(|event| cost(&event)).sum();
    let status = project.data("runs status x");
    assert_eq!(
        status["budget"]["spent_usd"],
        json!(MicroDollars(gone).dollars()),
        "it is spent before it is recorded"
    );
    let quick = Server::start(right());
    project.endpoints(&quick.url(), &["mine"]);
    // Less than twice what is spent, and more than enough for some calls.
    let cap = gone * 19 / 10;
    let resumed =
        project.json(&format!("run --resume x --max-cost {}.{:06}", cap / 1_000_000, cap % 1_000_000));
    assert!(quick.count() > 0, "there is money left: {resumed:?}");
    assert!(spent(&project) <= MicroDollars(cap).dollars(), "{}", spent(&project));
    project.assert_sound("x");
}

#[test]
fn trials_that_were_cancelled_are_not_executed() {
    let slow = Options { latency: Range::only(Duration::from_mins(5)), ..right() };
    let (project, server) = priced(12, 1, slow);
    let run = project.start(&format!("--json {LINE} --concurrency 12"));
    server.wait_for_requests(12);
    project.data("runs stop x --force");
    let (code, output, said) = run.end();
    assert_eq!(code, Some(130), "{output} {said}");
    let envelope: Value = serde_json::from_str(&output).unwrap();
    let all = &envelope["data"]["all"];
    assert_eq!((&all["executed"], &all["outcomes"]), (&json!(0), &json!({ "cancelled": 12 })), "{all}");
    assert!(envelope["errors"].to_string().contains("12 trials not run"), "{envelope}");
    let status = project.data("runs status x");
    assert_eq!((&status["all"]["executed"], &status["state"]), (&json!(0), &json!("incomplete")));
    let listed = project.run("runs list").stdout;
    assert!(listed.contains("0 of 12"), "{listed}");
    let preview = project.data("run --resume x --dry-run");
    assert_eq!((&preview["done_trials"], &preview["trials_to_run"]), (&json!(0), &json!(12)));
}
