//! The effect of every key of `rlm.toml`.

use std::collections::BTreeMap;

use aec_run::harness::{End, Limit};
use serde_json::{Value, json};

use super::rlm::{bench, notes};
use super::{Bench, Left, bodies, served};

const REPORT: &str = r#"
[meta]
voice = "plain"
[[sections]]
id = "depths"
title = "Depths"
fields = [{ name = "depth_m", dtype = "float" }]
writing_guidance = { summary = "All depths.", rules = ["in metres"] }
[[sections]]
id = "advice"
title = "Advice"
"#;

fn system(left: &Left) -> &str {
    left.events[0].content.as_deref().unwrap()
}

/// Runs these cells one after another with this `rlm.toml`.
async fn with(settings: &str, cells: &[&str], others: &[(&str, Value)]) -> Left {
    let bench = bench(json!({}), cells, others);
    bench.task_file("rlm.toml", settings);
    bench.task_file("report.toml", REPORT);
    bench.run().await
}

#[tokio::test]
async fn template() {
    let fill = "report.fill_section('advice', 'Dig.')\nreport.fill_section('depths', '1.25 m')\n";
    let cells = [
        "status = report.get_status()\nstatus['unlocked'], report.get_writing_guidance('depths')['rules']",
        "report.get_section('depths')['report']['voice'], report.no_such()",
        &format!("{fill}report.submit().complete"),
        "FINAL('not this')",
    ];
    let left = with("[template]\ndefinition = 'report.toml'\n", &cells, &[]).await;
    assert!(left.stdout(0).starts_with("(['depths', 'advice'], ['in metres'])"), "{}", left.stdout(0));
    assert!(
        left.stdout(1).contains("the report has no `no_such`; it has fill_section"),
        "{}",
        left.stdout(1)
    );
    assert!(left.stdout(2).starts_with("True"), "{}", left.stdout(2));
    // The submitted answer takes precedence over the value of FINAL.
    let report = left.submitted().unwrap();
    assert_eq!(report.trim(), "# 1. Depths\n\n1.25 m\n\n# 2. Advice\n\nDig.");
    assert!(system(&left).contains("report of 2 sections"), "{}", system(&left));
    // Only the tier `dependency_tree` uses dependencies.
    let tree = REPORT.replace("title = \"Advice\"", "title = \"Advice\"\ndepends_on = [\"depths\"]");
    for (tier, expected) in [("flat", None), ("dependency_tree", Some("['depths']"))] {
        let bench = bench(json!({}), &["report.get_status()['unlocked']", "FINAL(1)"], &[]);
        bench.task_file("rlm.toml", &format!("[template]\ntier = '{tier}'\ndefinition = 'report.toml'\n"));
        bench.task_file("report.toml", &tree);
        let left = bench.run().await;
        match expected {
            Some(expected) => assert!(left.stdout(0).starts_with(expected), "{}", left.stdout(0)),
            None => {
                assert!(
                    matches!(left.rollout.end, End::Task(ref why) if why.contains("flat")),
                    "{left:?}",
                    left = left.rollout
                );
            }
        }
    }
    let left = with("", &["report", "FINAL(1)"], &[]).await;
    assert!(left.stdout(0).contains("name 'report' is not defined"), "{}", left.stdout(0));
    assert!(!system(&left).contains("fill_section"), "what is not there is not told");
}

#[tokio::test]
async fn fill_parallel_writes_sections_at_once_and_keeps_failures_apart() {
    let cells = [
        "def write(id):\n    return {'content': summarise(id).summary} if id == 'depths' else 1 / 0\n\
         filled = fill_parallel(write)\nfilled['depths'].success, filled['advice'].error",
        "report.submit().gaps",
        "FINAL()",
    ];
    let others = [("<content>", json!({"text": "1.25 m deep"}))];
    let left = with("[template]\ndefinition = 'report.toml'\n", &cells, &others).await;
    assert!(
        left.stdout(0).starts_with("(True, 'ZeroDivisionError: division by zero')"),
        "{}",
        left.stdout(0)
    );
    assert!(left.stdout(1).contains("advice"), "{}", left.stdout(1));
    assert!(left.submitted().unwrap().contains("1.25 m deep"));
}

#[tokio::test]
async fn inputs() {
    let settings = "[inputs.survey]\ntype = 'csv'\nsource = 'environment/survey.csv'\npre_parse = true\n\
                    description = 'levels along the axis'\n\
                    [inputs.raw]\ntype = 'csv'\nsource = 'environment/survey.csv'\n\
                    [inputs.data]\ntype = 'json'\nsource = 'extra/data.json'\npre_parse = true\n\
                    [inputs.tables]\ntype = 'toml'\nsource = 'extra/t.toml'\npre_parse = true\n\
                    [inputs.picture]\ntype = 'bytes'\nsource = 'extra/data.json'\n\
                    [inputs.all]\ntype = 'string'\nsource = 'extra'\n";
    let cells = ["survey[0]['z'], raw[:3], data['a'], tables['b'], picture[:2], sorted(all)", "FINAL(1)"];
    let bench = bench(json!({}), &cells, &[]);
    bench.task_file("rlm.toml", settings);
    bench.task_file("extra/data.json", "{\"a\": [1, 2]}");
    bench.task_file("extra/t.toml", "b = 3\n");
    // A directory is accepted if it is part of the workspace.
    bench.task_file("environment/extra/data.json", "{\"a\": [1, 2]}");
    bench.task_file("environment/extra/t.toml", "b = 3\n");
    let left = bench.run().await;
    assert!(
        left.stdout(0).starts_with("('1', 'x,z', [1, 2], 3, b'{\"', ['data.json', 't.toml'])"),
        "{:?} {}",
        left.rollout,
        left.stdout(0)
    );
    assert!(system(&left).contains("survey (csv, from /workspace/survey.csv): levels along the axis"));
    for hidden in ["tests/verify.py", "solution/answer.json", "no/such.md"] {
        let settings = format!("[inputs.x]\ntype = 'string'\nsource = '{hidden}'\n");
        let left = with(&settings, &["FINAL(1)"], &[]).await;
        assert!(matches!(left.rollout.end, End::Task(_)), "{hidden}: {:?}", left.rollout);
    }
}

#[tokio::test]
async fn hints_and_subcalls() {
    let settings = "[hints]\nphases = ['Read the survey first']\nprohibited = ['Guess a level']\n\
                    [subcalls.extract]\nenabled = false\n\
                    [subcalls.verify]\ndescription = 'a second look'\n\
                    [subcalls.area]\ncustom_impl = 'functions.py:area'\ndescription = 'area of a trapezium'\n";
    let bench = bench(json!({}), &["extract('a', ['b'])", "area(2, 3)", "HELP()", "FINAL(1)"], &[]);
    bench.task_file("rlm.toml", settings);
    bench.task_file("functions.py", "def area(width, depth):\n    return width * depth\n");
    let left = bench.run().await;
    assert!(left.stdout(0).contains("name 'extract' is not defined"), "{}", left.stdout(0));
    assert!(left.stdout(1).starts_with('6'), "{}", left.stdout(1));
    for told in [system(&left), left.stdout(2)] {
        assert!(told.contains("a second look") && told.contains("area(…): area of a trapezium"), "{told}");
        assert!(!told.contains("extract("), "{told}");
    }
    assert!(system(&left).contains("- Read the survey first") && system(&left).contains("- Guess a level"));
}

/// A bench with a priced model on a real server; the last name is that of the model.
async fn paid(settings: &str, cells: &[&str], others: &[(&str, Value)]) -> Left {
    let mut bench = bench(json!({}), &["FINAL(1)"], &[]);
    let cell = |code: &&str| json!({"tool_calls": [{"name": "repl", "arguments": {"code": code}}]});
    let other = |(when, reply): &(&str, Value)| json!({"when": when, "replies": [reply]});
    let script = json!({
        "replies": cells.iter().map(cell).collect::<Vec<_>>(),
        "conversations": others.iter().map(other).collect::<Vec<_>>(),
    });
    let server = served(&mut bench, &script, &["mine"], &[]).await;
    bench.prices.push_str("[[price]]\nendpoint = 'mine'\ninput = 1000\noutput = 1000\n");
    bench.task_file("rlm.toml", settings);
    let left = bench.run().await;
    drop(server);
    left
}

#[tokio::test(flavor = "multi_thread")]
async fn guardrails() {
    let cells = ["1", "2", "3", "FINAL(4)"];
    for (settings, limit, turns) in [
        ("max_iterations = 2", Limit::Turns, 2),
        ("token_budget = 300", Limit::Tokens, 1),
        ("billable_input_budget = 300", Limit::BillableInput, 1),
    ] {
        let left = paid(&format!("[guardrails]\n{settings}\n"), &cells, &[]).await;
        assert!(
            matches!(left.rollout.end, End::Limit(found) if found == limit),
            "{settings}: {:?}",
            left.rollout
        );
        assert_eq!(left.result("turns_used"), turns, "{settings}");
        assert_eq!(left.result("stop_reason"), limit.name());
    }
    // Half a dollar is five hundred tokens, less than the first call can cost.
    let left = paid("[guardrails]\nmax_budget_usd = 0.5\n", &cells, &[]).await;
    let no_call = |end: &End| matches!(end, End::Task(why) if why.contains("first call was not made"));
    assert!(no_call(&left.rollout.end), "that says nothing about the agent: {:?}", left.rollout);
    let left = paid("[guardrails]\nmax_budget_usd = 1000.0\n", &cells, &[]).await;
    assert!(matches!(left.rollout.end, End::Done), "{:?}", left.rollout);
    assert!(left.result("planes")["main"]["cost_usd"].as_f64().unwrap() > 0.1);
    // One warning, at the share that the file sets.
    for (share, warned) in [("50.0", 1), ("60.0", 2)] {
        let settings = format!("[guardrails]\nmax_iterations = 4\nbudget_warning_pct = {share}\n");
        let left = with(&settings, &cells, &[]).await;
        let at: Vec<usize> = (0..3).filter(|at| left.stdout(*at).contains("turns are used up")).collect();
        assert_eq!(at, [warned], "{share}");
    }
    // Sub-calls are refused one by one, and the work goes on.
    let summary = [("<content>", json!({"text": "short"}))];
    let cells = ["for _ in range(3):\n    print(summarise('a').summary)", "FINAL(1)"];
    let left = with("[guardrails]\nmax_subcalls = 2\n", &cells, &summary).await;
    assert!(left.stdout(0).starts_with("short\nshort\n") && left.stdout(0).contains("subcall limit reached"));
    assert!(matches!(left.rollout.end, End::Done) && left.result("subcalls") == 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn execution_and_advisor_choose_models_and_their_limits() {
    let cells =
        ["summarise('a').summary", "ADVISOR(goal='g', problem='p', attempt='t').response", "2", "FINAL(1)"];
    let cell = |code: &&str| json!({"tool_calls": [{"name": "repl", "arguments": {"code": code}}]});
    let mut replies: Vec<Value> = cells.iter().map(cell).collect();
    // A shortened conversation has one turn, so the script continues with its second reply.
    replies.truncate(4);
    let script = json!({
        "replies": replies,
        "conversations": [
            {"when": "<content>", "replies": [{"text": "short"}]},
            {"when": "<goal>", "replies": [{"text": "Look at the survey."}]},
        ],
    });
    let mut bench = bench(json!({}), &["FINAL(1)"], &[]);
    let server = served(&mut bench, &script, &["mine", "small", "wise"], &[]).await;
    bench.task_file(
        "rlm.toml",
        "[execution]\nsubcall_model = 'small'\ncompaction_model = null\nscaffolding = false\n\
         [advisor]\nmodel = 'wise'\nmax_uses = 1\nmax_response_tokens = 77\ncontext_window = 1\n",
    );
    let left = bench.run().await;
    assert!(matches!(left.rollout.end, End::Done), "{:?}", left.rollout);
    let sent = bodies(&server);
    let by_model: BTreeMap<&str, usize> = sent.iter().fold(BTreeMap::new(), |mut counts, body| {
        *counts.entry(body["model"].as_str().unwrap()).or_default() += 1;
        counts
    });
    assert_eq!(by_model, BTreeMap::from([("mine", 4), ("small", 1), ("wise", 1)]));
    let advice = sent.iter().find(|body| body["model"] == "wise").unwrap();
    let most = advice.get("max_completion_tokens").or_else(|| advice.get("max_tokens")).unwrap();
    assert_eq!(*most, 77);
    let said = advice["messages"][1]["content"].to_string();
    assert_eq!(said.matches("<recent>").count(), 1, "{said}");
    let planes = left.result("planes");
    for (plane, calls) in [("main", 4), ("subcalls", 1), ("compaction", 0), ("advisor", 1), ("total", 6)] {
        assert_eq!(planes[plane]["calls"], calls, "{plane}");
    }
    let total: u64 = ["main", "subcalls", "advisor"]
        .iter()
        .map(|plane| planes[plane]["input_tokens"].as_u64().unwrap())
        .sum();
    assert_eq!(planes["total"]["input_tokens"], total);
    assert_eq!(notes(&left, "advisor").len(), 1);
    // A null was read as not set, and a warning says so.
    assert!(
        left.events.iter().any(|event| event.content.as_deref().is_some_and(|text| text.contains("null")))
    );
}

#[tokio::test]
async fn scaffolding_says_how_far_the_report_is() {
    for (scaffolding, told) in [(true, true), (false, false)] {
        let settings =
            format!("[template]\ndefinition = 'report.toml'\n[execution]\nscaffolding = {scaffolding}\n");
        let left = with(&settings, &["1", "FINAL(1)"], &[]).await;
        assert_eq!(left.stdout(0).contains("[0 of 2 sections are filled, `depths` is open]"), told);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn conversations_are_shortened_by_a_model_of_their_own_at_a_share_of_the_window() {
    // The script counts turns, and a shortened conversation has only one.
    let cell = |code: &str| json!({"tool_calls": [{"name": "repl", "arguments": {"code": code}}]});
    let script = json!({
        "replies": [cell("NOTE('level', 12.5)\nfound = 'x' * 3000\nprint(found)"), cell("FINAL(found[:3])")],
        "conversations": [{"when": "Variables of the session", "replies": [{"text": "The survey was read."}]}],
    });
    let run = async |settings: &str, prices: &str| -> (Left, Vec<Value>) {
        let mut bench: Bench = bench(json!({}), &["FINAL(1)"], &[]);
        let server = served(&mut bench, &script, &["mine", "small"], &[]).await;
        bench.task_file("rlm.toml", settings);
        bench.prices = prices.to_owned();
        let left = bench.run().await;
        (left, bodies(&server))
    };
    let (left, sent) = run(
        "[execution]\ncontext_limit = 1500\ncompaction_threshold_pct = 0.3\ncompaction_model = 'small'\n",
        "",
    )
    .await;
    assert_eq!((left.result("compactions"), left.rollout.final_text.as_deref()), (&json!(1), Some("xxx")));
    let summary = sent.iter().find(|body| body["model"] == "small").unwrap();
    assert!(summary.to_string().contains("found: str[3000]") && summary.to_string().contains("12.5"));
    // The task, the variables, the notes and the last turn are unchanged.
    let after = sent.last().unwrap();
    let messages = after["messages"].as_array().unwrap();
    let text = after.to_string();
    for kept in ["# Channel", "The survey was read.", "found: str[3000]", "level: 12.5", "print(found)"] {
        assert!(text.contains(kept), "{kept}: {text}");
    }
    assert_eq!(messages[0]["role"], "system");
    // The model's own window applies if it is smaller than the one in the file.
    let (left, _) =
        run("[execution]\n", "[[price]]\nendpoint = 'mine'\ninput = 0\noutput = 0\ncontext_window = 500\n")
            .await;
    assert!(matches!(left.rollout.end, End::Limit(Limit::Context)), "{:?}", left.rollout);
    let (left, _) = run("[execution]\ncontext_limit = 500\nhard_ceiling_pct = 0.99\n", "").await;
    assert!(
        matches!(left.rollout.end, End::Limit(Limit::Context)),
        "the ceiling comes first: {:?}",
        left.rollout
    );
    let (left, _) = run("", "").await;
    assert_eq!(left.result("compactions"), 0);
    // With defaults only, a conversation is shortened long before its token budget is used up.
    let first = left.events.iter().find_map(|event| event.usage);
    let first = first.map_or(0, |usage| usage.all_input());
    assert!(first > 0, "{:?}", left.events);
    let window = first * 10 / 9;
    let prices = format!("[[price]]\nendpoint = 'mine'\ninput = 0\noutput = 0\ncontext_window = {window}\n");
    let (left, _) = run("", &prices).await;
    assert_eq!(left.result("compactions"), 1, "{:?}", left.rollout);
}

#[tokio::test]
async fn max_parallel_workers() {
    for workers in [1, 3] {
        let cell = format!(
            "import threading\nmost = now = 0\ngate, all_at_once = threading.Lock(), threading.Barrier({workers})\n\
             def work():\n    global most, now\n    with gate:\n        now += 1\n        most = max(most, now)\n    \
             all_at_once.wait(20)\n    with gate:\n        now -= 1\n\
             _ = parallel([work] * 6, max_workers=50)\nmost"
        );
        let settings = format!("[execution]\nmax_parallel_workers = {workers}\n");
        let left = with(&settings, &[&cell, "FINAL(1)"], &[]).await;
        assert!(left.stdout(0).starts_with(&workers.to_string()), "{}", left.stdout(0));
    }
}

#[tokio::test]
async fn parameters_of_the_agent_only_tighten() {
    let own = "[guardrails]\nmax_iterations = 3\ntoken_budget = 1000\nmax_budget_usd = 2.0\n[execution]\ncontext_limit = 5000\n";
    for (parameters, expected) in [
        (
            json!({"max_turns": 50, "token_budget": 10_000, "max_cost_usd": 9.0, "context_budget_tokens": 90_000}),
            (3, 1000, 2.0, 5000),
        ),
        (
            json!({"max_turns": 2, "token_budget": 900, "max_cost_usd": 0.5, "context_budget_tokens": 4000}),
            (2, 900, 0.5, 4000),
        ),
    ] {
        let bench = bench(parameters, &["FINAL(1)"], &[]);
        bench.task_file("rlm.toml", own);
        let left = bench.run().await;
        let settings = left.result("settings");
        let (rules, execution) = (&settings["guardrails"], &settings["execution"]);
        assert_eq!(
            (
                &rules["max_iterations"],
                &rules["token_budget"],
                &rules["max_budget_usd"],
                &execution["context_limit"]
            ),
            (&json!(expected.0), &json!(expected.1), &json!(expected.2), &json!(expected.3))
        );
    }
    let left = with("[guardrails]\nmax_iteration = 3\n", &["FINAL(1)"], &[]).await;
    assert!(
        matches!(&left.rollout.end, End::Task(why) if why.contains("max_iteration") && why.contains("rlm.toml:2")),
        "{:?}",
        left.rollout
    );
}

/// Cells that kept the next session from starting got another attempt, free of charge.
#[tokio::test(flavor = "multi_thread")]
async fn files_of_a_cell_are_no_modules_of_the_session() {
    let cells = [
        "open('/workspace/csv.py', 'w').write('raise SystemExit(3)')\nimport os\nos._exit(1)",
        "open('/workspace/own.py', 'w').write('value = 5')\nimport own\nown.value",
        "FINAL(1)",
    ];
    let left = with("", &cells, &[]).await;
    assert!(matches!(left.rollout.end, End::Done), "{:?}", left.rollout);
    assert_eq!(left.result("sessions"), 2);
    assert!(left.stdout(1).contains('5'), "its own modules are found: {}", left.stdout(1));
}
