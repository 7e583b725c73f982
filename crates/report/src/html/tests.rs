//! Tests of whole pages.

use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use serde_json::Value;

use super::*;

fn field(name: &str, got: &str) -> Field {
    Field {
        name: name.into(),
        score: Some(1.0),
        status: "correct".into(),
        got: got.into(),
        ..Field::default()
    }
}

/// Agents in turn, rewards 0, 0.5, 1 and a fault in turn, and a trace of `length` characters for each trial.
fn document(trials: usize, length: usize) -> Document {
    let agent =
        |name: &str| Agent { name: name.into(), harness: "sim".into(), mean: Some(0.5), ..Agent::default() };
    let task =
        |n: usize| Task { id: format!("task-{n}"), prompt: Some(format!("prompt {n}")), ..Task::default() };
    let trial = |n: usize| Trial {
        id: format!("trial-{n}"),
        task: n % 3,
        agent: n % 2,
        repetition: 1,
        attempt: 1,
        outcome: if n % 4 == 3 { "infra_fault" } else { "scored" }.into(),
        reward: [Some(0.0), Some(0.5), Some(1.0), None][n % 4],
        fields: vec![field("depth_m", &format!("{n}.5"))],
        ..Trial::default()
    };
    let trace = |n: usize| Trace {
        trial: n,
        answer: None,
        entries: vec![
            TraceEntry {
                role: "user".into(),
                text: Some(format!("prompt {}", n % 3)),
                ..TraceEntry::default()
            },
            TraceEntry { role: "assistant".into(), text: Some(noise(n, length)), ..TraceEntry::default() },
        ],
    };
    Document {
        title: "Test".into(),
        tool: "aec-bench 0".into(),
        pass_reward: 1.0,
        experiments: vec![Experiment { id: "e".into(), ..Experiment::default() }],
        agents: vec![agent("a"), agent("b")],
        tasks: (0..3).map(task).collect(),
        trials: (0..trials).map(trial).collect(),
        traces: (0..trials).map(trace).collect(),
        ..Document::default()
    }
}

/// Text that does not compress: hexadecimal digits of a linear congruential generator.
fn noise(seed: usize, length: usize) -> String {
    let mut state = seed as u64 + 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from_digit((state >> 60) as u32, 16).unwrap()
    };
    (0..length).map(|_| next()).collect()
}

fn block(html: &str, id: &str) -> Value {
    let start = format!("<script type=\"application/octet-stream\" id=\"{id}\">");
    let data = html.split_once(start.as_str()).unwrap().1.split_once("</script>").unwrap().0;
    let mut json = String::new();
    GzDecoder::new(STANDARD.decode(data).unwrap().as_slice()).read_to_string(&mut json).unwrap();
    serde_json::from_str(&json).unwrap()
}

#[test]
fn the_same_document_gives_the_same_bytes() {
    let budget = Budget { bytes: 200_000, ..Budget::default() };
    let first = render(&document(60, 3_000), &budget).unwrap();
    let second = render(&document(60, 3_000), &budget).unwrap();
    assert_eq!(first.html, second.html);
    assert_eq!(first.omitted, second.omitted);
}

#[test]
fn tasks_and_trials_have_labels_and_whole_ids() {
    let mut document = document(3, 10);
    for (task, id) in
        document.tasks.iter_mut().zip(["a/b/c/beam-easy-7-000", "a/b/c/beam-easy-7-001", "a/b/d/slab"])
    {
        task.family = format!("task:{id}");
        task.id = id.into();
    }
    for (trial, id) in
        document.trials.iter_mut().zip(["737d140f-3ddd-8000", "737d140f-3eee-8000", "é漢字é漢字é漢字"])
    {
        trial.id = id.into();
    }
    let table = block(&render(&document, &Budget::default()).unwrap().html, "data-table");
    let tasks: Vec<[&str; 3]> = (0..3)
        .map(|at| ["id", "label", "family_label"].map(|key| table["tasks"][at][key].as_str().unwrap()))
        .collect();
    assert_eq!(tasks[0], ["a/b/c/beam-easy-7-000", "c/beam-easy#000", "task:c/beam-easy#000"]);
    assert_eq!(tasks[2], ["a/b/d/slab", "d/slab", "task:d/slab"]);
    assert_eq!(table["trials"]["id"]["t"][0], "737d140f-3ddd-8000");
    // The third id cannot be cut there, so it is its own label; the script counts its letters in units of 16 bits.
    assert_eq!(table["trials"]["label"], serde_json::json!([11, 11, 9]));
}

#[test]
fn what_has_no_price_is_not_free() {
    let told = |cost, unpriced, cost_per_solved| -> Vec<String> {
        let mut document = document(0, 0);
        document.agents[0] = Agent { cost, unpriced, cost_per_solved, ..Agent::default() };
        let html = render(&document, &Budget::default()).unwrap().html;
        let row = html.split_once("<tbody>").unwrap().1.split_once("</tr>").unwrap().0;
        let cells = row.split("<td class=\"n\">").skip(11).take(2);
        cells.map(|cell| cell.trim_end_matches("</td>").to_owned()).collect()
    };
    assert_eq!(told(Some(0.0), 0, None), ["$0", "–"]);
    assert_eq!(told(Some(1.5), 0, Some(0.75)), ["$1.50", "$0.7500"]);
    assert_eq!(told(Some(1.5), 2, None), ["$1.50 and 2 unpriced", "unpriced"]);
    assert_eq!(told(Some(0.0), 2, None), ["unpriced", "unpriced"]);
    assert_eq!(told(None, 0, None), ["unpriced", "–"]);
}

#[test]
fn everything_fits_when_there_is_room() {
    let rendered = render(&document(8, 100), &Budget::default()).unwrap();
    assert_eq!((rendered.omitted.kept, rendered.omitted.traces), (8, 0));
    let index = block(&rendered.html, "data-index");
    let trials: Vec<u64> = index[0].as_array().unwrap().iter().map(|trial| trial.as_u64().unwrap()).collect();
    // Agent 0 has fails (0, 4) and passes (2, 6); agent 1 has faults (3, 7) and partial results (1, 5).
    assert_eq!(trials, [0, 2, 3, 1, 4, 7, 5, 6]);
    let chunk = block(&rendered.html, "data-traces-0");
    let entries = &chunk["traces"][0]["entries"];
    assert_eq!(entries[0][2][0], -1, "a text that is the prompt is not repeated");
    let place = usize::try_from(entries[1][2][0].as_u64().unwrap()).unwrap();
    assert_eq!(chunk["texts"][place], noise(0, 100));
}

#[test]
fn the_table_is_complete_and_traces_fill_what_is_left() {
    let document = document(400, 4_000);
    for bytes in [130_000, 200_000, 400_000, 800_000] {
        let rendered = render(&document, &Budget { bytes, ..Budget::default() }).unwrap();
        assert!(rendered.html.len() <= bytes, "{} of {bytes}", rendered.html.len());
        assert_eq!(rendered.omitted.kept + rendered.omitted.traces, 400);
        let table = block(&rendered.html, "data-table");
        assert_eq!(table["trials"]["id"]["p"].as_array().unwrap().len(), 400);
        assert_eq!(table["fields"]["got"]["t"].as_array().unwrap().len(), 400);
        let index = block(&rendered.html, "data-index");
        let kept: usize = index.as_array().unwrap().iter().map(|chunk| chunk.as_array().unwrap().len()).sum();
        assert_eq!(kept, rendered.omitted.kept);
        let words = format!("This file has {kept} of 400 traces");
        assert!(rendered.html.contains(&words), "{words}");
        let counted: usize = rendered.omitted.classes.iter().map(|class| class.kept + class.omitted).sum();
        assert_eq!(counted, 400);
    }
    let at = |bytes| render(&document, &Budget { bytes, ..Budget::default() }).unwrap().omitted.kept;
    assert!(at(200_000) > 10 && at(400_000) > 2 * at(200_000) && at(800_000) > at(400_000));
}

#[test]
fn one_huge_trace_does_not_keep_the_others_out() {
    let mut document = document(40, 500);
    // Trial 3 is the typical fault of its agent, so its trace comes early but not first.
    for trial in &mut document.trials {
        trial.trace_bytes = Some(500);
    }
    document.traces[3].entries = (0..400)
        .map(|n| TraceEntry {
            role: "assistant".into(),
            text: Some(noise(n, 4_000)),
            ..TraceEntry::default()
        })
        .collect();
    let place = trace_order(&document).iter().position(|trial| *trial == 3).unwrap();
    assert!((1..20).contains(&place), "{place}");
    let rendered = render(&document, &Budget { bytes: 300_000, ..Budget::default() }).unwrap();
    assert_eq!((rendered.omitted.kept, rendered.omitted.traces), (39, 1));
    assert!(rendered.html.len() <= 300_000);
}

#[test]
fn a_table_that_does_not_fit_is_an_error_that_says_what_to_do() {
    let error = render(&document(4_000, 0), &Budget { bytes: 100_000, ..Budget::default() }).unwrap_err();
    let message = error.to_string();
    assert!(message.contains("4,000 trials") && message.contains("0.10 MB"), "{message}");
    assert!(message.contains("allow a larger file, or report fewer"), "{message}");
}

#[test]
fn prompts_give_way_to_the_table() {
    let mut document = document(4, 10);
    let full = render(&document, &Budget::default()).unwrap().html.len();
    document.tasks[0].prompt = Some(noise(1, 15_000));
    let rendered = render(&document, &Budget { bytes: full + 2_000, ..Budget::default() }).unwrap();
    assert_eq!(rendered.omitted.prompts, 3);
    assert!(rendered.html.contains("Prompts left out: 3."));
    assert_eq!(block(&rendered.html, "data-table")["tasks"][0]["prompt"], Value::Null);
    // Traces no longer refer to prompts that were left out.
    let chunk = block(&rendered.html, "data-traces-0");
    assert!(chunk["traces"].as_array().unwrap().iter().all(|trace| trace["entries"][0][2][0] != -1));
}

#[test]
fn long_texts_are_shortened_and_counted() {
    let rendered = render(&document(4, 5_000), &Budget { text: 1_000, ..Budget::default() }).unwrap();
    assert_eq!(rendered.omitted.shortened, 4);
    assert!(rendered.html.contains("shortened: 4."));
}

#[test]
fn hostile_text_stays_out_of_the_markup() {
    let attack = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u{202e}\u{0}<!--";
    let mut document = document(2, 10);
    document.title = attack.into();
    document.tool = attack.into();
    document.method = Some(attack.into());
    document.notes = vec![attack.into()];
    document.experiments[0] = Experiment {
        id: attack.into(),
        dataset: Some(attack.into()),
        plan: Some(attack.into()),
        ..Experiment::default()
    };
    document.agents[0].name = attack.into();
    document.agents[0].model = Some(attack.into());
    document.trials[0].id = attack.into();
    document.trials[0].fields = vec![field(attack, attack)];
    document.traces[0].entries[0].text = Some(attack.into());
    let rendered = render(&document, &Budget::default()).unwrap();
    let clean = render(&self::document(2, 10), &Budget::default()).unwrap();
    for tag in ["<script", "</script", "<img", "<!--", "onerror"] {
        let count = |html: &str| html.matches(tag).count();
        let escaped = rendered.html.matches(&format!("{tag}=alert")).count();
        assert_eq!(count(&rendered.html) - escaped, count(&clean.html), "{tag}");
    }
    assert!(!rendered.html.contains('\u{202e}') && !rendered.html.contains('\0'));
    assert!(rendered.html.contains("⟨U+202E⟩"));
    // The data itself is unchanged; the script shows it as text.
    assert_eq!(block(&rendered.html, "data-table")["trials"]["id"]["t"][0], attack);
}

#[test]
fn empty_and_odd_documents_have_a_page() {
    let rendered = render(&Document::default(), &Budget::default()).unwrap();
    assert!(rendered.html.contains("No trial of this report has a trace."));
    let mut odd = document(2, 0);
    odd.pass_reward = f64::NAN;
    odd.trials[0].reward = Some(f64::NAN);
    odd.trials[1].cost = Some(f64::INFINITY);
    odd.agents[0].mean = Some(f64::NAN);
    odd.curves = vec![Curve { points: vec![(f64::NAN, 1.0)], ..Curve::default() }];
    let table = block(&render(&odd, &Budget::default()).unwrap().html, "data-table");
    assert_eq!(table["trials"]["reward"][0], Value::Null);
    assert_eq!(table["trials"]["cost"][1], Value::Null);
}

#[test]
fn what_is_named_must_be_there_once() {
    let fails = |change: &dyn Fn(&mut Document), words: &str| {
        let mut document = document(4, 10);
        change(&mut document);
        let message = render(&document, &Budget::default()).unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
    };
    fails(&|document| document.trials[1].task = 9, "trial trial-1 names task number 9");
    fails(&|document| document.trials[1].agent = 2, "names agent number 2");
    fails(&|document| document.trials[1].experiment = 1, "names experiment number 1");
    fails(&|document| document.traces[0].trial = 4, "a trace names trial number 4");
    fails(&|document| document.traces[0].trial = 1, "the trace of trial trial-1 is there twice");
    fails(&|document| document.trials[1].id = "trial-0".into(), "attempt 1 of trial trial-0 is there twice");
    let group = |agent| Group {
        kind: GroupKind::Family,
        name: "f".into(),
        agent,
        trials: 1,
        mean: None,
        low: None,
        high: None,
    };
    fails(&|document| document.groups = vec![group(Some(7))], "group f names agent number 7");
    let mut retried = document(2, 10);
    retried.trials[1].id = retried.trials[0].id.clone();
    retried.trials[1].attempt = 2;
    assert!(render(&retried, &Budget::default()).is_ok());
}
