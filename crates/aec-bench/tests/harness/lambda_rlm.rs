//! `lambda_rlm`: a scripted model reads, merges, checks and writes; the program makes the plan.

use aec_run::experiment::Harness;
use aec_run::harness::{End, Limit};
use serde_json::{Value, json};

use super::{Bench, Left};

pub(super) const TEMPLATE: &str = r#"
[[sections]]
id = "depths"
title = "Depths"
fields = [{ name = "depth_m", dtype = "float", unit = "m", required = true }]
input_mapping = { sources = ["spec.md", "notes.md"], priority = { "spec.md" = 1, "notes.md" = 2 } }

[[sections]]
id = "advice"
title = "Advice"
depends_on = ["depths"]
generation_mode = "creative"
"#;

/// A harness whose model answers by the text of the question; the first match counts.
pub(super) fn bench(parameters: Value, conversations: &[(&str, &str)]) -> Bench {
    let conversation = |(when, text): &(&str, &str)| json!({"when": when, "replies": [{"text": text}]});
    let script = json!({"conversations": conversations.iter().map(conversation).collect::<Vec<_>>()});
    let mut bench = Bench::new(Harness::LambdaRlm, parameters);
    super::write(&bench.directory.path().join("replies.yaml"), &script.to_string());
    bench.model = Some("offline/scripted:replies.yaml".to_owned());
    bench.task_file("instruction.md", "Write a report to `/workspace/report.md`.\n");
    bench.task_file("report_template.toml", TEMPLATE);
    bench.task_file("environment/spec.md", "# Spec\n\nThe depth is 1.25 m.\n");
    bench.task_file("environment/notes.md", "# Notes\n\nSomebody says 9 m.\n");
    bench
}

pub(super) const ANSWERS: [(&str, &str); 5] = [
    ("<sources>", r#"{"status": "pass", "gaps": []}"#),
    ("<source path=\"spec.md\">", r#"{"depth_m": 1.25, "__confidence__": 0.5}"#),
    ("<source path=\"notes.md\">", r#"{"depth_m": 9, "__confidence__": 1.0}"#),
    ("Advice\n", "Keep the depth."),
    ("<data>", "The depth is 1.25 m."),
];

/// The notes about a section.
pub(super) fn section<'a>(left: &'a Left, id: &str) -> &'a Value {
    let noted = left.events.iter().filter_map(|event| event.metadata.get("section"));
    noted.into_iter().find(|section| section["id"] == id).unwrap()
}

#[tokio::test]
async fn a_report_is_written_by_plan_and_every_statement_has_its_place() {
    let left = bench(json!({}), &ANSWERS).run().await;
    assert!(matches!(left.rollout.end, End::Done), "{:?}", left.rollout);
    let report = left.submitted().unwrap();
    assert_eq!(
        report.trim(),
        "# 1. Depths\n\nThe depth is 1.25 m.\n\n# 2. Advice\n\nKeep the depth.",
        "{report}"
    );
    // The source of higher authority wins, whatever the models' confidence, and the other one is kept.
    let fact = &section(&left, "depths")["facts"][0];
    assert_eq!((&fact["value"], &fact["provenance"][0]["source"]), (&json!(1.25), &json!("spec.md")));
    assert_eq!(fact["conflicts"][0]["value"], 9);
    let statement = &section(&left, "depths")["trace"]["statements"][0];
    assert_eq!((&statement["facts"], &statement["unsupported"]), (&json!([0]), &json!([])));
    assert_eq!((left.result("stop_reason"), left.result("sections")), (&json!("done"), &json!(2)));
    let planes = left.result("planes");
    assert_eq!((&planes["subcalls"]["calls"], &planes["main"]["calls"]), (&json!(3), &json!(2)));
    let plan = left.events.iter().find_map(|event| event.content.as_deref()?.strip_prefix("the plan:\n"));
    assert!(plan.unwrap().contains("accuracy at least"), "{plan:?}");
}

#[tokio::test]
async fn a_long_source_is_read_in_parts_and_merged_in_a_tree() {
    let merged = r#"{"findings": [{"key": "depth_m", "value": 1.25, "from": [0, 1, 99]}, {"key": "made_up", "value": 3, "from": []}]}"#;
    let mut answers = vec![("\"number\":", merged)];
    answers.extend(ANSWERS);
    let bench = bench(json!({}), &answers);
    let paragraph = "The depth of the channel was measured again. ".repeat(20);
    let long: Vec<String> = (0..40).map(|number| format!("## Survey {number}\n\n{paragraph}\n\n")).collect();
    bench.task_file("environment/spec.md", &long.concat());
    bench.task_file("lambda-rlm.toml", "[planner]\ncontext_window_chars = 10_000\n");
    let left = bench.run().await;
    assert!(matches!(left.rollout.end, End::Done), "{:?}", left.rollout);
    let calls = left.result("plan")["calls"].as_u64().unwrap();
    assert!(calls >= 6, "{calls}");
    let fact = &section(&left, "depths")["facts"][0];
    let places = fact["provenance"].as_array().unwrap();
    assert!(places.len() >= 2 && places[0]["range"] != places[1]["range"], "{fact}");
    assert!(
        section(&left, "depths")["facts"].to_string().find("made_up").is_none(),
        "what rests on nothing is not taken"
    );
}

#[tokio::test]
async fn what_cannot_be_had_is_said_and_never_made_up() {
    // No plan has this accuracy.
    let strict = bench(json!({}), &ANSWERS);
    strict.task_file("environment/spec.md", &"One word. ".repeat(40_000));
    strict
        .task_file("lambda-rlm.toml", "[planner]\ncontext_window_chars = 10_000\naccuracy_target = 0.949\n");
    let left = strict.run().await;
    let End::Task(why) = &left.rollout.end else { panic!("{:?}", left.rollout) };
    assert!(why.contains("the best accuracy that can be had is") && why.contains("would do"), "{why}");
    // Circles and unknown keys are found before the first call.
    let circle = bench(json!({}), &ANSWERS);
    circle.task_file("report_template.toml", "[[sections]]\nid='a'\ntitle='A'\ndepends_on=['b']\n[[sections]]\nid='b'\ntitle='B'\ndepends_on=['a']\n");
    assert!(matches!(circle.run().await.rollout.end, End::Task(why) if why.contains("wait for each other")));
    // A budget ends the work; a part that is not JSON is a fault, and a missing field is a gap.
    let poor = bench(json!({"token_budget": 5}), &ANSWERS).run().await;
    assert!(matches!(poor.rollout.end, End::Limit(Limit::Tokens)), "{:?}", poor.rollout);
    let mut answers = ANSWERS;
    answers[1].1 = "I could not read it.";
    answers[2].1 = "{}";
    let left = bench(json!({}), &answers).run().await;
    let depths = section(&left, "depths");
    assert!(depths["faults"][0].as_str().unwrap().contains("spec.md bytes 0 to"), "{depths}");
    assert!(depths["gaps"][0].as_str().unwrap().contains("`depth_m` was found nowhere"), "{depths}");
    assert_eq!(left.result("stop_reason"), "incomplete");
}

#[tokio::test]
async fn a_review_has_sources_read_again_within_its_limits() {
    let mut answers = ANSWERS;
    answers[0].1 =
        r#"{"status": "reextract", "sources": ["spec.md"], "guidance": "the depth", "gaps": ["no datum"]}"#;
    let left = bench(json!({}), &answers).run().await;
    let depths = section(&left, "depths");
    assert_eq!((&depths["reviews"], &depths["reread"]), (&json!(2), &json!(1)), "{depths}");
    assert_eq!(depths["gaps"], json!(["no datum"]));
    // An advisor is asked before a source is read again.
    let mut answers: Vec<(&str, &str)> = answers.to_vec();
    answers.insert(0, ("<goal>", "Look at the sections."));
    let advised = bench(json!({}), &answers);
    advised.task_file("lambda-rlm.toml", "[advisor]\nmodel = 'offline/scripted:replies.yaml'\n");
    assert_eq!(advised.run().await.result("planes")["advisor"]["calls"], 1);
    let off = bench(json!({}), &answers);
    off.task_file("lambda-rlm.toml", "[review]\nenabled = false\n");
    assert_eq!(section(&off.run().await, "depths")["reviews"], 0);
}
