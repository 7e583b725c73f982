//! The effect of every key of `lambda-rlm.toml`, and the parts of reports.

use std::time::Duration;

use aec_http::pause::Rule;
use aec_ledger::transcript::EventRole;
use aec_model::retry::RetryPolicy;
use aec_run::harness::{End, Limit};
use serde_json::{Value, json};

use super::lambda_rlm::{ANSWERS, bench, section};
use super::{Bench, Left, bodies, served};

/// The bench of the other tests, with its model on a server.
async fn on_a_server(
    bench: &mut Bench,
    answers: &[(&str, &str)],
    faults: &[&str],
) -> aec_model_server::TestServer {
    let conversation = |(when, text): &(&str, &str)| json!({"when": when, "replies": [{"text": text}]});
    let script = json!({"conversations": answers.iter().map(conversation).collect::<Vec<_>>()});
    served(bench, &script, &["mine", "wise"], faults).await
}

fn long_spec(parts: usize) -> String {
    let paragraph = "The depth of the channel was measured again. ".repeat(20);
    (0..parts).map(|number| format!("## Survey {number}\n\n{paragraph}\n\n")).collect::<Vec<_>>().concat()
}

/// The plan of a run with these settings on a long source.
async fn planned(settings: &str) -> Left {
    let merged = r#"{"findings": [{"key": "depth_m", "value": 1.25, "from": [0]}]}"#;
    let mut answers = vec![("\"number\":", merged)];
    answers.extend(ANSWERS);
    let bench = bench(json!({}), &answers);
    bench.task_file("environment/spec.md", &long_spec(60));
    bench.task_file("lambda-rlm.toml", settings);
    bench.run().await
}

#[tokio::test]
async fn planner() {
    let calls = |left: &Left| left.result("plan")["calls"].as_u64().unwrap();
    let whole = planned("").await;
    assert_eq!(calls(&whole), 2, "each source fits into one call");
    let small = planned("[planner]\ncontext_window_chars = 12_000\n").await;
    assert!(calls(&small) > 6 && matches!(small.rollout.end, End::Done), "{:?}", small.rollout);
    assert!((small.result("plan")["accuracy"].as_f64().unwrap() - 0.855).abs() < 1e-9);
    let exact = planned(
        "[planner]\ncontext_window_chars = 12_000\nleaf_accuracy = 0.99\ncompose_accuracy = 0.98\naccuracy_target = 0.97\n",
    )
    .await;
    assert!((exact.result("plan")["accuracy"].as_f64().unwrap() - 0.9702).abs() < 1e-9);
    // Merging in pairs needs more levels, which cost accuracy.
    let pairs = planned(
        "[planner]\ncontext_window_chars = 12_000\nmax_branching_factor = 2\naccuracy_target = 0.5\n",
    )
    .await;
    assert!(calls(&pairs) > calls(&small));
    let deep = pairs.result("plan")["accuracy"].as_f64().unwrap();
    assert!(deep < 0.8, "{deep}");
    for (target, why) in [("0.96", "lower the target to 0.95"), ("0.9", "context_window_chars = ")] {
        let left =
            planned(&format!("[planner]\ncontext_window_chars = 12_000\naccuracy_target = {target}\n")).await;
        assert!(matches!(&left.rollout.end, End::Task(told) if told.contains(why)), "{:?}", left.rollout);
    }
}

#[tokio::test]
async fn template_and_its_tiers() {
    let own = "[template]\ntier = 'flat'\ndefinition = 'reports/one.toml'\n";
    let flat = bench(json!({}), &ANSWERS);
    flat.task_file("lambda-rlm.toml", own);
    flat.task_file("reports/one.toml", "[meta]\nvoice = 'dry'\n[[sections]]\nid = 'only'\ntitle = 'Only'\n");
    flat.task_file("reports/source_mapping.toml", "[sections.only]\nsources = ['spec']\n");
    let left = flat.run().await;
    assert!(left.submitted().unwrap().starts_with("# 1. Only"), "{:?}", left.rollout);
    assert_eq!(section(&left, "only")["facts"][0]["provenance"][0]["source"], "spec.md");
    flat.task_file("reports/one.toml", super::lambda_rlm::TEMPLATE);
    assert!(matches!(flat.run().await.rollout.end, End::Task(why) if why.contains("flat")));
    // Without a template the report is one section with everything; for an output of data it is the facts.
    let plain = bench(json!({}), &ANSWERS);
    std::fs::remove_file(plain.directory.path().join("task/report_template.toml")).unwrap();
    plain.task_file("instruction.md", "Write JSON to `/workspace/output.json`.\n");
    let left = plain.run().await;
    let submitted: Value = serde_json::from_str(left.submitted().unwrap()).unwrap();
    assert_eq!(submitted["depth_m"], 9, "of sources of one rank the surer one counts");
}

#[tokio::test]
async fn review() {
    let asked = |status: &'static str| {
        let mut answers = ANSWERS;
        answers[0].1 = status;
        bench(json!({}), &answers)
    };
    let again = r#"{"status": "reextract", "sources": ["spec.md"], "guidance": "the depth", "gaps": []}"#;
    let more = r#"{"status": "supplement", "guidance": "the datum", "gaps": []}"#;
    for (status, settings, reviews, reread) in [
        (again, "max_retries_per_source = 3", 4, 3),
        (again, "max_retries_per_source = 0", 1, 0),
        (more, "max_supplements_per_section = 2", 3, 4),
        (more, "max_supplements_per_section = 0", 1, 0),
        (more, "enabled = false", 0, 0),
    ] {
        let bench = asked(status);
        bench.task_file("lambda-rlm.toml", &format!("[review]\n{settings}\n"));
        let left = bench.run().await;
        let depths = section(&left, "depths");
        assert_eq!((&depths["reviews"], &depths["reread"]), (&json!(reviews), &json!(reread)), "{settings}");
        assert_eq!(depths["facts"].as_array().unwrap().len(), 1, "the same twice is one fact");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn execution_guardrails_and_advisor() {
    // One worker never makes two calls at once; the server refuses a second one.
    for (workers, in_flight) in [(1, 1), (4, 2)] {
        let mut bench = bench(json!({}), &ANSWERS);
        let server = on_a_server(&mut bench, &ANSWERS, &[]).await;
        bench.task_file("lambda-rlm.toml", &format!("[execution]\nmax_parallel_workers = {workers}\n"));
        let left = bench.run().await;
        assert!(matches!(left.rollout.end, End::Done), "{:?}", left.rollout);
        assert!(server.stats().highest_in_flight <= in_flight, "{:?}", server.stats());
    }
    let budget = bench(json!({}), &ANSWERS);
    budget.task_file("lambda-rlm.toml", "[guardrails]\ntoken_budget = 5\n");
    let left = budget.run().await;
    assert!(matches!(left.rollout.end, End::Limit(Limit::Tokens)), "{:?}", left.rollout);
    // The agent's parameters limit calls and dollars.
    let left = bench(json!({"max_turns": 1}), &ANSWERS).run().await;
    assert!(matches!(left.rollout.end, End::Limit(Limit::Subcalls | Limit::Turns)), "{:?}", left.rollout);
    let mut dear = bench(json!({"max_cost_usd": 0.4}), &ANSWERS);
    let server = on_a_server(&mut dear, &ANSWERS, &[]).await;
    dear.prices = "[[price]]\nendpoint = 'mine'\ninput = 1000\noutput = 1000\n".to_owned();
    let left = dear.run().await;
    let no_call = |end: &End| matches!(end, End::Task(why) if why.contains("first call was not made"));
    assert!(no_call(&left.rollout.end), "that says nothing about the agent: {:?}", left.rollout);
    drop(server);
    let mut answers = ANSWERS.to_vec();
    answers[0].1 = r#"{"status": "supplement", "guidance": "the datum", "gaps": ["no datum"]}"#;
    answers.insert(0, ("<goal>", "Look at the notes."));
    let mut advised = bench(json!({}), &answers);
    let server = on_a_server(&mut advised, &answers, &[]).await;
    advised.task_file(
        "lambda-rlm.toml",
        "[review]\nmax_supplements_per_section = 3\n[advisor]\nmodel = 'wise'\nmax_uses = 2\nmax_response_tokens = 55\n",
    );
    let left = advised.run().await;
    assert_eq!(left.result("planes")["advisor"]["calls"], 2);
    let sent = bodies(&server);
    let advice = sent.iter().find(|body| body["model"] == "wise").unwrap();
    assert_eq!(*advice.get("max_completion_tokens").or_else(|| advice.get("max_tokens")).unwrap(), 55);
    assert!(
        sent.iter().any(|body| body["model"] == "mine" && body.to_string().contains("Look at the notes."))
    );
    for wrong in ["[guardrails]\nmax_iterations = 3\n", "[planner]\naccuracy = 1\n", "k_candidates = 3\n"] {
        let bench = bench(json!({}), &ANSWERS);
        bench.task_file("lambda-rlm.toml", wrong);
        assert!(
            matches!(bench.run().await.rollout.end, End::Task(why) if why.contains("lambda-rlm.toml:")),
            "{wrong}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn provider_faults_are_retried_and_cost_no_section() {
    let mut flaky = bench(json!({}), &ANSWERS);
    let server = on_a_server(&mut flaky, &ANSWERS, &["unavailable=0.2", "reset=0.1"]).await;
    let usual = RetryPolicy::default();
    let pauses = Rule { first: Duration::from_millis(5), ..usual.pauses };
    flaky.retry = RetryPolicy { attempts: 20, pauses, ..usual };
    let left = flaky.run().await;
    assert_eq!(
        (left.result("stop_reason"), left.result("sections")),
        (&json!("done"), &json!(2)),
        "{:?}",
        left.rollout
    );
    drop(server);
    // If the provider never answers, no section counts as complete.
    let mut down = bench(json!({}), &ANSWERS);
    let _server = on_a_server(&mut down, &ANSWERS, &["garbage"]).await;
    let left = down.run().await;
    assert_eq!(left.result("sections"), 0);
    assert!(left.rollout.submitted.is_none(), "{:?}", left.rollout);
    assert_ne!(left.result("stop_reason"), "done");
    let mut refused = bench(json!({}), &ANSWERS);
    let _server = on_a_server(&mut refused, &ANSWERS, &["auth"]).await;
    assert!(
        matches!(refused.run().await.rollout.end, End::Model(_)),
        "what fails for every call ends the work"
    );
}

#[tokio::test]
async fn texts_of_tables_keep_their_lines_and_sources_their_paths() {
    let table: String =
        (0..400).map(|row| format!("P{row},{},{}\n", row * 7 % 13, row * 3)).collect::<Vec<_>>().concat();
    let merged = r#"{"findings": [{"key": "depth_m", "value": 1.25, "from": [0]}]}"#;
    let mut answers = vec![("\"number\":", merged), ("<source path=\"spec.csv\">", r#"{"depth_m": 1.25}"#)];
    answers.extend(ANSWERS);
    let bench = bench(json!({}), &answers);
    bench.task_file("environment/spec.csv", &format!("pile,depth,length\n{table}"));
    bench.task_file(
        "report_template.toml",
        "[[sections]]\nid='s'\ntitle='S'\ninput_mapping = { sources = ['spec.csv'] }\n",
    );
    bench.task_file("lambda-rlm.toml", "[planner]\ncontext_window_chars = 3_000\n");
    let left = bench.run().await;
    assert!(matches!(left.rollout.end, End::Done), "{:?}", left.rollout);
    let fact = &section(&left, "s")["facts"][0];
    assert_eq!(fact["provenance"][0]["source"], "spec.csv", "a path keeps its ending");
    assert!(left.result("plan")["calls"].as_u64().unwrap() >= 4);
}

/// The system and user messages to the model with this name, sorted.
fn asked(server: &aec_model_server::TestServer, model: &str) -> Vec<(String, String)> {
    let text = |message: &Value| message["content"].as_str().unwrap().to_owned();
    let of = bodies(server).into_iter().filter(|body| body["model"] == model);
    let mut asked: Vec<(String, String)> =
        of.map(|body| (text(&body["messages"][0]), text(&body["messages"][1]))).collect();
    asked.sort();
    asked
}

#[tokio::test(flavor = "multi_thread")]
async fn the_agents_system_prompt_comes_first_in_every_call_but_the_advisors() {
    const OWN: &str = "Check every unit twice.";
    let merged = r#"{"findings": [{"key": "depth_m", "value": 1.25, "from": [0]}]}"#;
    let mut answers = vec![("<goal>", "Look at the notes."), ("\"number\":", merged)];
    answers.extend(ANSWERS);
    answers[2].1 = r#"{"status": "supplement", "guidance": "the datum", "gaps": ["no datum"]}"#;
    let mut runs = Vec::new();
    for own in [None, Some(format!("{OWN}\n \n"))] {
        let mut bench = bench(json!({}), &answers);
        let server = on_a_server(&mut bench, &answers, &[]).await;
        bench.system_prompt = own.clone();
        bench.task_file("environment/spec.md", &long_spec(40));
        bench.task_file(
            "lambda-rlm.toml",
            "[planner]\ncontext_window_chars = 10_000\n[advisor]\nmodel = 'wise'\n",
        );
        let left = bench.run().await;
        assert!(matches!(left.rollout.end, End::Done), "{:?}", left.rollout);
        let noted = left.events.iter().find(|event| event.role == EventRole::System);
        assert_eq!(noted.and_then(|event| event.content.clone()), own, "what is sent is written down");
        runs.push((asked(&server, "mine"), asked(&server, "wise"), left));
    }
    let [(plain, advice, before), (led, same_advice, after)] = runs.as_slice() else { panic!() };
    // Reading, merging, reviewing and writing: each has its role after the prompt, and nothing else differs.
    let stripped: Vec<(String, String)> = led
        .iter()
        .map(|(system, user)| {
            let role = system.strip_prefix(OWN).and_then(|rest| rest.strip_prefix("\n\n"));
            (role.unwrap_or_else(|| panic!("{system}")).to_owned(), user.clone())
        })
        .collect();
    assert_eq!(&stripped, plain);
    for role in ["You read one part", "You merge", "You check", "You write one section"] {
        assert!(plain.iter().any(|(system, _)| system.starts_with(role)), "{role}");
    }
    // The advisor is another model with its own prompt.
    assert_eq!((advice.len(), advice), (1, same_advice));
    // The forecast counts the prompt in every call.
    let tokens = |left: &Left| left.result("forecast")["input_tokens"].as_u64().unwrap();
    let calls = after.result("forecast")["calls"].as_u64().unwrap();
    assert_eq!(before.result("forecast")["calls"], calls);
    let more = tokens(after) - tokens(before);
    let expected = calls * (OWN.len() as u64 + 2) / 4;
    assert!(more.abs_diff(expected) <= 2, "{more} instead of about {expected}");
}
