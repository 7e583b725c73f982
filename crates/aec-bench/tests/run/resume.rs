//! Continuing: a plan is carried out exactly once, however often it is stopped and in whatever parts it is run.

use std::collections::BTreeSet;
use std::time::Duration;

use aec_judge::verdict::Outcome;
use aec_ledger::transcript::{self, Event, EventRole};
use aec_model::event::CallEvent;
use aec_model_server::{Options, Range};
use aec_xtest::files::names_in;
use aec_xtest::wait::until;
use rustix::process::Signal;
use serde_json::json;

use crate::run::world::right;
use crate::run::{Project, Server};

/// A project with this many tasks, whose model is slow.
fn slow(tasks: usize, latency: Duration) -> (Project, Server) {
    let project = Project::with_tasks(tasks);
    let server = Server::start(Options { latency: Range::only(latency), ..right() });
    project.endpoints(&server.url(), &["mine"]);
    (project, server)
}

const LINE: &str = "run civil --model mine --harness direct -e x";

fn outcomes(project: &Project) -> Vec<Outcome> {
    project.records("x").values().map(|record| record.outcome).collect()
}

#[test]
fn a_second_run_of_a_plan_does_nothing() {
    let (project, server) = slow(3, Duration::ZERO);
    let first = project.data(LINE);
    assert_eq!((&first["recorded"], server.count()), (&json!(3), 3));
    let names = project.record_names("x");
    for line in [LINE, "run --resume x"] {
        let again = project.data(line);
        assert_eq!((&again["recorded"], &again["all"]["executed"]), (&json!(0), &json!(3)), "{line}");
        assert_eq!(again["head"], first["head"], "no link was added");
    }
    assert_eq!((server.count(), project.record_names("x")), (3, names));
    assert_eq!(project.data("runs status x")["state"], "complete");
    project.assert_sound("x");
}

#[test]
fn rerun_makes_another_attempt_and_keeps_the_first() {
    let project = Project::with_tasks(3);
    // One answers, one is an agent fault, one fails permanently.
    let server = Server::saying(&format!("replies:\n- text: '{}'\n", crate::run::world::RIGHT));
    project.endpoints(&server.url(), &["mine"]);
    project.data(LINE);
    let id = project.record_names("x")[0].trim_end_matches(".json").to_owned();
    let again = project.data(&format!("{LINE} --rerun {id}"));
    assert_eq!((&again["recorded"], &again["all"]["executed"]), (&json!(1), &json!(3)));
    assert_eq!(project.record_names("x").len(), 4);
    let records = project.records("x");
    let (first, second) = (&records[&format!("{id}.json")], &records[&format!("{id}.2.json")]);
    assert_eq!((first.attempt, second.attempt, &first.key), (1, 2, &second.key));
    assert!(project.jobs("x").join(format!("{id}.2/workspace/trajectory.jsonl")).is_file());
    for word in ["failed", "infra"] {
        assert_eq!(project.data(&format!("run --resume x --rerun {word}"))["recorded"], 0, "nothing failed");
    }
    let third = project.data(&format!("run --resume x --rerun {}", &id[..13]));
    assert_eq!(third["recorded"], 1, "a beginning of the id is enough");
    assert!(project.records("x").contains_key(&format!("{id}.3.json")));
    let shown = project.data(&format!("ledger show {id}"));
    assert_eq!(shown["record"]["attempt"], 3);
    project.assert_sound("x");
}

#[test]
fn rerun_of_faults_takes_those_of_the_right_side() {
    let project = Project::with_tasks(2);
    // More files than may be submitted are an agent fault; a refused request is not.
    let agent = project.script(
        "large",
        "replies:\n- tool_calls: [{name: bash, arguments: {command: mkdir d; cd d; seq 10100 | xargs touch}}]\n- text: x\n",
    );
    let server = Server::start(Options { faults: vec!["auth".parse().unwrap()], ..right() });
    project.endpoints(&server.url(), &["mine"]);
    project.env.write(
        "e.yaml",
        format!(
            "experiment_id: x\nagents:\n- {{name: large, harness: tool_loop, model: \"{agent}\"}}\n- {{name: refused, harness: direct, model: mine}}\n"
        ),
    );
    let first = project.json("run --config e.yaml");
    let data = first.envelope()["data"].clone();
    assert_eq!(data["all"]["outcomes"], json!({ "agent_fault": 2, "infra_fault": 2 }), "{first:?}");
    assert_eq!(project.json("run --resume x").envelope()["data"]["recorded"], 0, "faults are results");
    let infra = project.json("run --resume x --rerun infra").envelope();
    assert_eq!(infra["data"]["recorded"], 2, "{infra}");
    let failed = project.json("run --resume x --rerun failed").envelope();
    assert_eq!(failed["data"]["recorded"], 2, "what an agent did is its result: {failed}");
    let attempts: Vec<u32> = project.records("x").values().map(|record| record.attempt).collect();
    assert_eq!(attempts.iter().filter(|attempt| **attempt == 3).count(), 2);
    assert_eq!(attempts.len(), 8);
    project.assert_sound("x");
}

/// The ids of the trials of the plan.
fn planned(project: &Project) -> BTreeSet<String> {
    let data = project.data(&format!("{LINE} --dry-run"));
    data["trials"]
        .as_array()
        .unwrap()
        .iter()
        .map(|trial| trial["trial_id"].as_str().unwrap().to_owned())
        .collect()
}

fn recorded(project: &Project) -> BTreeSet<String> {
    let names = project.record_names("x");
    let ids: BTreeSet<String> = names.iter().map(|name| name.trim_end_matches(".json").to_owned()).collect();
    assert_eq!(ids.len(), names.len());
    ids
}

#[test]
fn shards_together_are_the_whole() {
    let (project, server) = slow(25, Duration::ZERO);
    let mut sum = 0;
    for index in 0..3 {
        let data = project.data(&format!("{LINE} --shard {index}/3"));
        assert_eq!(data["all"]["planned"], data["all"]["executed"]);
        sum += data["all"]["planned"].as_u64().unwrap();
    }
    assert_eq!((sum, server.count()), (25, 25));
    assert_eq!(recorded(&project), planned(&project));
    assert_eq!(project.data(LINE)["recorded"], 0);
    assert_eq!(project.data("runs status x")["state"], "complete");
    project.assert_sound("x");
}

#[test]
fn shards_can_run_at_the_same_time() {
    let (project, server) = slow(60, Duration::from_millis(20));
    let runs: Vec<_> = (0..3)
        .map(|index| project.start(&format!("--json {LINE} --shard {index}/3 --concurrency 4")))
        .collect();
    // A concurrent reader sees a sound ledger.
    for _ in 0..5 {
        let status = project.json("runs status x");
        assert!(status.code == Some(0) || status.stdout.contains("there is no experiment"), "{status:?}");
        let listed = project.json("ledger list -e x");
        assert!(listed.code == Some(0) || listed.stdout.contains("L025"), "{listed:?}");
    }
    let refused = project.json(&format!("{LINE} --shard 0/3"));
    assert!(
        refused.code == Some(3) && refused.errors()[0].0 == "E034" || refused.code == Some(0),
        "{refused:?}"
    );
    for run in runs {
        let (code, output, said) = run.end();
        // The run above may have been quicker to take the shard.
        let was_late = refused.code == Some(0) && code == Some(3) && output.contains("E034");
        assert!(code == Some(0) || was_late, "{output} {said}");
    }
    assert_eq!(recorded(&project), planned(&project));
    assert_eq!(server.count(), 60);
    assert_eq!(project.data("runs status x")["state"], "complete");
    assert_eq!(project.data(LINE)["recorded"], 0);
    project.assert_sound("x");
}

#[test]
fn status_of_a_busy_run_is_never_an_error() {
    let (project, _server) = slow(200, Duration::ZERO);
    let mut run = project.start(&format!("{LINE} --concurrency 2 -n 2"));
    run.wait_for("planned");
    let mut looks = 0;
    while !run.is_over() {
        let status = project.json("runs status x");
        assert_eq!(status.code, Some(0), "{status:?}");
        looks += 1;
    }
    assert!(looks > 1, "the run was watched");
    assert_eq!(run.end().0, Some(0));
    assert_eq!(project.data("runs status x")["all"]["executed"], 400);
}

#[test]
fn the_first_signal_lets_trials_finish_and_loses_nothing() {
    for signal in aec_xtest::running::asking_to_end() {
        let (project, server) = slow(12, Duration::from_millis(700));
        let run = project.start(&format!("--json {LINE} --concurrency 3"));
        server.wait_for_requests(5);
        run.signal(signal);
        let (code, output, said) = run.end();
        assert_eq!(code, Some(130), "{output} {said}");
        let begun = server.count();
        assert!((5..12).contains(&begun), "{begun}");
        assert_eq!(outcomes(&project), vec![Outcome::Scored; usize::try_from(begun).unwrap()], "{said}");
        let status = project.data("runs status x");
        assert_eq!((&status["state"], &status["under_way"]), (&json!("incomplete"), &json!([])));
        assert_eq!(status["sessions"][0]["stopped"], json!({ "reason": "asked" }), "{status}");
        let resumed = project.data("run --resume x");
        assert_eq!(resumed["recorded"].as_u64(), Some(12 - begun));
        assert_eq!((server.count(), project.record_names("x").len()), (12, 12));
        assert_eq!(recorded(&project), planned(&project));
        project.assert_sound("x");
    }
}

#[test]
fn the_second_signal_cancels_and_says_so_in_records() {
    let (project, server) = slow(8, Duration::from_mins(5));
    let mut run = project.start(&format!("{LINE} --concurrency 3"));
    server.wait_for_requests(3);
    run.signal(Signal::INT);
    run.wait_for("finishing 3 running trials");
    run.signal(Signal::INT);
    let (code, output, said) = run.end();
    assert_eq!(code, Some(130), "{output} {said}");
    let records = project.records("x");
    assert_eq!(outcomes(&project), [Outcome::Cancelled; 3]);
    for record in records.values() {
        assert!(record.reward().is_none() && record.evaluation.is_none());
        // The requests were sent and may have been billed, so they are counted.
        let cost = &record.cost;
        assert_eq!(cost.model_calls + cost.unbilled_calls + cost.unsettled_calls, 1, "{cost:?}");
    }
    assert_eq!(project.data("runs status x")["state"], "incomplete");
    let fast = Server::start(Options { port: 0, ..right() });
    project.endpoints(&fast.url(), &["mine"]);
    let resumed = project.data("run --resume x");
    assert_eq!(resumed["all"]["outcomes"], json!({ "scored": 8 }));
    let attempts: Vec<u32> = project.records("x").values().map(|record| record.attempt).collect();
    assert_eq!(
        attempts.iter().filter(|attempt| **attempt == 2).count(),
        3,
        "what was cancelled got its chance"
    );
    assert_eq!(project.data("runs status x")["state"], "complete");
    project.assert_sound("x");
}

#[test]
fn two_runs_at_once_are_one_run_and_a_refusal() {
    let (project, server) = slow(4, Duration::from_mins(5));
    let run = project.start(&format!("--json {LINE} --concurrency 1"));
    server.wait_for_requests(1);
    for line in ["run --resume x", LINE, "run --resume x --shard 0/2"] {
        let refused = project.json(line);
        assert_eq!(refused.code, Some(3), "{refused:?}");
        let (id, what) = refused.errors().remove(0);
        assert_eq!(id, "E034");
        assert!(what.contains("is being run by process ") && what.contains(" since "), "{what}");
    }
    assert_eq!(project.json("runs clean").code, Some(3), "nothing is swept while it runs");
    assert_eq!(project.data("runs stop x --force")["asked"], "give up");
    let (code, output, said) = run.end();
    assert_eq!(code, Some(130), "{output} {said}");
    assert_eq!((server.count(), outcomes(&project)), (1, vec![Outcome::Cancelled]));
    let quick = Server::start(right());
    project.endpoints(&quick.url(), &["mine"]);
    assert_eq!(project.data("run --resume x")["all"]["outcomes"], json!({ "scored": 4 }));
    assert_eq!(quick.count(), 4);
    project.assert_sound("x");
}

#[test]
fn of_two_resumes_at_once_one_runs() {
    let (project, server) = slow(6, Duration::from_millis(300));
    let run = project.start(&format!("{LINE} --concurrency 2"));
    server.wait_for_requests(2);
    run.signal(Signal::KILL);
    run.end();
    let both = [0; 2].map(|_| project.start("--json run --resume x --concurrency 2"));
    let mut codes: Vec<Option<i32>> = both.into_iter().map(|run| run.end().0).collect();
    codes.sort();
    // The second may also start when the first is done.
    assert!(codes == [Some(0), Some(3)] || codes == [Some(0), Some(0)], "{codes:?}");
    let scored = outcomes(&project).iter().filter(|outcome| **outcome == Outcome::Scored).count();
    assert_eq!(scored, 6, "each trial has one result");
    project.assert_sound("x");
}

#[test]
fn time_ends_a_run_between_trials() {
    let (project, server) = slow(30, Duration::from_millis(250));
    let stopped = project.json(&format!("{LINE} --concurrency 1 --max-time 1"));
    assert_eq!(stopped.code, Some(1), "{stopped:?}");
    assert_eq!(stopped.errors()[0].0, "E060");
    let data = stopped.envelope()["data"].clone();
    let executed = data["all"]["executed"].as_u64().unwrap();
    assert!((1..30).contains(&executed), "{data}");
    assert_eq!(data["all"]["outcomes"], json!({ "scored": executed }));
    assert_eq!((server.count(), project.record_names("x").len() as u64), (executed, executed));
    let resumed = project.data("run --resume x --max-time none");
    assert_eq!((&resumed["all"]["executed"], server.count()), (&json!(30), 30));
    project.assert_sound("x");
}

#[test]
fn money_ends_a_run_and_is_never_overdrawn() {
    let (project, server) = slow(60, Duration::ZERO);
    project.env.write(
        "configs/prices.toml",
        "schema_version = 1\n[[price]]\nendpoint = \"mine\"\ninput = 1\noutput = 1\n",
    );
    let line = LINE.replace("-e x", "--parameter max_tokens=64 -e x");
    let stopped = project.json(&format!("{line} --concurrency 4 --max-cost 0.005"));
    assert_eq!(stopped.code, Some(1), "{stopped:?}");
    let data = stopped.envelope()["data"].clone();
    assert_eq!(data["stopped"]["reason"], "budget", "{data}");
    let spent = |project: &Project| -> f64 {
        project.records("x").values().map(|record| record.cost.estimated_cost_usd.unwrap()).sum()
    };
    let executed = data["all"]["outcomes"]["scored"].as_u64().unwrap();
    assert!((2..60).contains(&executed), "{data}");
    assert!(spent(&project) <= 0.005, "{}", spent(&project));
    assert_eq!(server.count(), executed, "what does not fit is not asked");
    // The budget belongs to the experiment, not to the session.
    let again = project.json("run --resume x --max-cost 0.005");
    assert_eq!(again.code, Some(1), "{again:?}");
    assert!(spent(&project) <= 0.005, "{}", spent(&project));
    let resumed = project.data("run --resume x --max-cost 1");
    assert_eq!(resumed["all"]["outcomes"], json!({ "scored": 60 }));
    assert!(spent(&project) < 1.0);
    project.assert_sound("x");
}

#[test]
fn tokens_end_an_experiment_over_all_its_sessions() {
    let (project, _server) = slow(40, Duration::ZERO);
    let tokens = |project: &Project| -> u64 {
        let records = project.records("x");
        records
            .values()
            .map(|record| record.cost.tokens_in.unwrap_or(0) + record.cost.tokens_out.unwrap_or(0))
            .sum()
    };
    let line = LINE.replace("-e x", "--parameter max_tokens=64 -e x --max-total-tokens 2000");
    let stopped = project.json(&format!("{line} --concurrency 1"));
    assert_eq!(stopped.code, Some(1), "{stopped:?}");
    let first = tokens(&project);
    assert!((1..=2000).contains(&first), "{first}");
    let again = project.json("run --resume x --max-total-tokens 2000");
    assert_eq!(again.code, Some(1), "{again:?}");
    assert!(tokens(&project) <= 2000, "{} after {first}", tokens(&project));
}

#[test]
fn runs_can_be_watched_and_stopped_from_elsewhere() {
    let (project, server) = slow(10, Duration::from_secs(4));
    assert_eq!(project.json("runs stop x").code, Some(3), "there is nothing to stop");
    let run = project.start(&format!("--json {LINE} --concurrency 2"));
    server.wait_for_requests(2);
    let status = project.data("runs status x");
    assert_eq!(status["state"], "running");
    assert_eq!(
        (&status["all"]["planned"], status["under_way"].as_array().unwrap().len()),
        (&json!(10), 2),
        "{status}"
    );
    let listed = project.data("runs list");
    assert_eq!((&listed["total"], &listed["runs"][0]["state"]), (&json!(1), &json!("running")));
    assert_eq!(project.data("runs stop x")["asked"], "finish");
    let (code, output, said) = run.end();
    assert_eq!(code, Some(130), "{output} {said}");
    let begun = usize::try_from(server.count()).unwrap();
    assert!(begun < 10);
    assert_eq!(outcomes(&project), vec![Outcome::Scored; begun]);
    assert_eq!(project.json("runs stop x").code, Some(3), "it is not running any more");
    // The request to stop was only for that session.
    assert_eq!(project.data("run --resume x")["all"]["outcomes"], json!({ "scored": 10 }));
    assert!(names_in(&project.ledger("x").join("_run")).iter().all(|name| name != "stop"));
}

#[test]
fn runs_can_be_stopped_at_once_from_elsewhere() {
    let (project, server) = slow(4, Duration::from_mins(5));
    let run = project.start(&format!("--json {LINE} --concurrency 2"));
    server.wait_for_requests(2);
    assert_eq!(project.data("runs stop x --force")["asked"], "give up");
    let (code, output, said) = run.end();
    assert_eq!(code, Some(130), "{output} {said}");
    assert_eq!(outcomes(&project), [Outcome::Cancelled; 2]);
    project.assert_sound("x");
}

#[test]
fn what_a_killed_session_spent_is_spent() {
    const TRIALS: usize = 12;
    let project = Project::with_tasks(TRIALS);
    let server = Server::saying("replies:\n- tool_calls: [{name: bash, arguments: {command: sleep 100}}]\n");
    project.endpoints(&server.url(), &["mine"]);
    project.env.write(
        "configs/prices.toml",
        "schema_version = 1\n[[price]]\nendpoint = \"mine\"\ninput = 5\noutput = 5\n",
    );
    let line = "run civil --model mine --harness tool_loop --parameter max_tokens=64 -e x";
    let run = project.start(line);
    let live = project.jobs("x").join("_live");
    let events = |name: &String| {
        let text = std::fs::read_to_string(live.join(name).join("trajectory.jsonl")).unwrap_or_default();
        transcript::read(text.as_bytes())
    };
    let at_work = |name: &&String| events(name).iter().any(|event| event.role == EventRole::ToolCall);
    until("trials at work", || names_in(&live).iter().filter(at_work).count() >= TRIALS);
    run.signal(Signal::KILL);
    run.end();
    assert_eq!((server.count(), project.record_names("x").len()), (12, 0));
    let cost = |event: &Event| match &event.call {
        Some(CallEvent::Answered { cost, .. }) => cost.unwrap().0,
        _ => 0,
    };
    let spent: u64 = names_in(&live).iter().flat_map(events).map(|event| cost(&event)).sum();
    assert!(spent > 0);
    // All of the budget is spent, although no record says so yet.
    let cap = format!("{}.{:06}", spent / 1_000_000, spent % 1_000_000);
    let refused = project.json(&format!("run --resume x --max-cost {cap}"));
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert_eq!(refused.envelope()["data"]["stopped"]["reason"], "budget", "{refused:?}");
    assert_eq!(server.count(), 12, "nothing more was asked");
    let recorded: f64 =
        project.records("x").values().map(|record| record.cost.estimated_cost_usd.unwrap()).sum();
    assert_eq!(format!("{recorded:.6}"), cap);
    project.assert_sound("x");
}
