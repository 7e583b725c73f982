//! `ledger list`, `show`, `export`, `verify`, `repair`, `reindex` and `annotate`, on ledgers after runs and crashes.

use std::os::unix::fs::PermissionsExt as _;

use aec_judge::verdict::Outcome;
use aec_ledger::example;
use aec_ledger::layout::Ledger;
use aec_ledger::record::TrialRecord;
use aec_xtest::{Run, TestEnv};
use serde_json::Value;

use crate::cli::empty_project;

const FIRST: &str = "0f1e2d3c-0000-8000-8000-000000000001";
const SECOND: &str = "0f1e2d3c-0000-8000-8000-000000000002";
const THIRD: &str = "77777777-0000-8000-8000-000000000003";

/// A project with two experiments: three trials with four attempts, and one more trial.
fn project() -> TestEnv {
    let mut env = empty_project();
    env.set("SOURCE_DATE_EPOCH", "1775952000");
    let ledger = ledger(&env);
    let failed = example::with_outcome(example::record("beams", SECOND, 1), Outcome::InfraFault);
    let mut second = example::record("beams", SECOND, 2);
    second.evaluation = Some(example::evaluation(0.5));
    let mut third = example::with_outcome(example::record("beams", THIRD, 1), Outcome::AgentFault);
    third.agent.name = aec_base::name::Name::parse("other").unwrap();
    third.agent.model = None;
    third.cost.estimated_cost_usd = None;
    example::write_session(&ledger, "1", &[example::record("beams", FIRST, 1), failed, second, third]);
    let mut pipe = example::record("pipes", "pipe", 1);
    pipe.task.task_id = "civil.pipe".into();
    pipe.task.domain = "civil".into();
    example::write_session(&ledger, "1", &[pipe]);
    env
}

fn ledger(env: &TestEnv) -> Ledger {
    Ledger::new(env.path("artefacts/ledger"))
}

fn run(env: &TestEnv, line: &str) -> Run {
    env.run(line.split_whitespace())
}

fn json(env: &TestEnv, line: &str) -> Run {
    env.run(["--json"].into_iter().chain(line.split_whitespace()))
}

fn ids(data: &Value) -> Vec<String> {
    let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
    let rows = data["records"].as_array().unwrap();
    rows.iter()
        .map(|row| format!("{}/{}.{}", text(row, "experiment_id"), text(row, "trial_id"), row["attempt"]))
        .collect()
}

/// The problems of a run that reported findings.
fn found(run: &Run) -> Vec<String> {
    assert_eq!(run.code, Some(1), "{run:?}");
    run.errors().into_iter().map(|(id, _)| id).collect()
}

#[test]
fn records_are_listed_with_their_denominators() {
    let env = project();
    insta::assert_snapshot!("ledger_list", run(&env, "ledger list").snapshot());
    insta::assert_snapshot!("ledger_list_json", json(&env, "ledger list --limit 1").snapshot());
    let empty = empty_project();
    let none = run(&empty, "ledger list");
    assert_eq!((none.code, none.stdout.as_str()), (Some(0), ""));
    assert!(none.stderr.starts_with("No records in artefacts/ledger"), "{none:?}");
    let all = run(&env, "ledger list --all-attempts --limit 2");
    assert!(all.stdout.ends_with("5 attempts: 3 scored, 1 agent_fault, 1 infra_fault; mean reward 0.500 of 4; $0.0492 and 1 unpriced\n"), "{all:?}");
    assert!(all.stderr.contains("The newest 2 are shown"), "{all:?}");
}

#[test]
fn every_filter_narrows_the_list() {
    let env = project();
    let list = |flags: &str| ids(&json(&env, &format!("ledger list {flags}")).data());
    let (first, second, third) =
        (format!("beams/{FIRST}.1"), format!("beams/{SECOND}.2"), format!("beams/{THIRD}.1"));
    assert_eq!(list("").len(), 4);
    assert_eq!(list("--all-attempts").len(), 5);
    for flag in ["-e", "--experiment-id", "--experiment"] {
        assert_eq!(list(&format!("{flag} pipes")), ["pipes/pipe.1"]);
    }
    assert_eq!(list("-e pipes -e beams").len(), 4);
    assert_eq!(list("--task-prefix civil/"), ["pipes/pipe.1"]);
    assert_eq!(list("--task-prefix structural.beam -e beams --outcome scored"), [second, first]);
    assert_eq!(list("--agent other"), [third.as_str()]);
    assert_eq!(list("--adapter direct").len(), 4);
    assert_eq!(list("--harness tool_loop"), [""; 0]);
    assert_eq!(list("--model openai/gpt-4.1").len(), 3);
    assert_eq!(list("--filter model=unknown"), [third.as_str()]);
    assert_eq!(list("--filter domain=civil --filter difficulty=easy"), ["pipes/pipe.1"]);
    assert_eq!(list("--filter fault=harness"), [third]);
    assert_eq!(list("--ledger-root elsewhere"), [""; 0]);
    assert!(!env.path("elsewhere").exists());
    assert_eq!(run(&env, "ledger list --outcome won").code, Some(2));
    let unknown = json(&env, "ledger list --filter rewards=1");
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    let typo = json(&env, "ledger list -e baems");
    assert_eq!((typo.code, typo.errors()[0].0.as_str()), (Some(3), "L025"), "{typo:?}");
    assert!(typo.stdout.contains("did you mean `beams`?"), "{typo:?}");
}

#[test]
fn a_record_is_shown_with_its_reasons() {
    let env = project();
    env.write(format!("jobs/beams/{FIRST}/workspace/output.json"), "{}");
    insta::assert_snapshot!("ledger_show", run(&env, &format!("ledger show beams/{FIRST}")).snapshot());
    insta::assert_snapshot!("ledger_show_fault", run(&env, &format!("ledger show {THIRD}")).snapshot());
    let data = json(&env, "ledger show 7777").data();
    let record: TrialRecord = serde_json::from_value(data["record"].clone()).unwrap();
    assert_eq!(record.trial_id.as_str(), THIRD);
    // A number names an attempt; without one it is the latest.
    assert_eq!(json(&env, &format!("ledger show {SECOND}")).data()["record"]["attempt"], 2);
    assert_eq!(json(&env, &format!("ledger show beams/{SECOND}.2")).data()["attempts"], 2);
    let several = json(&env, "ledger show 0f1e");
    assert_eq!((several.code, several.errors()[0].0.as_str()), (Some(3), "L027"), "{several:?}");
    assert!(several.stdout.contains(FIRST) && several.stdout.contains(SECOND), "{several:?}");
    for none in ["nothing", "beams/nothing", "../../x", "beams/pipe"] {
        let none = json(&env, &format!("ledger show {none}"));
        assert_eq!((none.code, none.errors()[0].0.as_str()), (Some(3), "L026"), "{none:?}");
    }
}

#[test]
fn records_follow_their_schema() {
    let env = project();
    let schema: Value = serde_json::from_str(&run(&env, "schema record").stdout).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let text = env.read(format!("artefacts/ledger/beams/{THIRD}.json"));
    assert!(validator.is_valid(&serde_json::from_str(&text).unwrap()));
    let wrong = text.replace("agent_fault", "lost");
    assert!(!validator.is_valid(&serde_json::from_str(&wrong).unwrap()));
}

#[test]
fn records_are_exported_in_three_formats() {
    let env = project();
    let csv = run(&env, "ledger export --output - --format csv");
    insta::assert_snapshot!("ledger_export_csv", csv.snapshot());
    let lines = run(&env, "ledger export -o - --format jsonl -e beams --latest-attempts").stdout;
    let trials: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<_> = trials.iter().map(|record| record["trial_id"].as_str().unwrap()).collect();
    assert_eq!(names, [FIRST, SECOND, THIRD]);
    let written = json(&env, "ledger export -o out/records.jsonl").data();
    assert_eq!((&written["records"], &written["format"]), (&5.into(), &"jsonl".into()));
    assert_eq!(env.read("out/records.jsonl").lines().count(), 5);
    assert_eq!(json(&env, "ledger export -o records.parquet").data()["records"], 5);
    assert!(std::fs::read(env.path("records.parquet")).unwrap().starts_with(b"PAR1"));
    let again = json(&env, "ledger export -o records.parquet");
    assert_eq!((again.code, again.errors()[0].0.as_str()), (Some(3), "L040"), "{again:?}");
    assert_eq!(run(&env, "ledger export -o records.parquet --force").code, Some(0));
    for usage in ["-o records.txt", "-o -", "-o - --format parquet", "", "-o x.csv --format xml"] {
        assert_eq!(run(&env, &format!("ledger export {usage}")).code, Some(2), "{usage}");
    }
    assert_eq!(json(&env, "ledger export -o - --format csv").code, Some(2));
}

#[test]
fn secrets_in_records_are_not_printed() {
    let mut env = project();
    let mut record = example::record("beams", "leak", 1);
    record.inputs.instruction = "the key is sk-canary-1234567890".to_owned();
    example::write(&ledger(&env), &record);
    env.set("OPENAI_API_KEY", "sk-canary-1234567890");
    for line in ["ledger export -o - --format jsonl", "--json ledger show leak"] {
        let shown = run(&env, line);
        assert_eq!(shown.code, Some(0), "{shown:?}");
        assert!(!shown.stdout.contains("canary") && shown.stdout.contains("redacted"), "{shown:?}");
    }
    let note = ["ledger", "annotate", "leak", "--judgment", "defer", "--note", "saw sk-canary-1234567890"];
    assert_eq!(env.run(note).code, Some(0));
    assert!(!env.read("artefacts/feedback/annotations/beams/leak.jsonl").contains("canary"));
}

#[test]
fn one_bad_file_never_blocks_the_rest() {
    let env = project();
    let place = |name: &str| env.path(format!("artefacts/ledger/beams/{name}"));
    std::fs::write(place("binary.json"), [0, 159, 146, 150]).unwrap();
    std::fs::write(place("torn.json"), "{\"schema_version\": 1, \"tri").unwrap();
    std::fs::write(place("newer.json"), "{\"schema_version\": 2}").unwrap();
    std::fs::File::create(place("huge.json")).unwrap().set_len(65 * 1024 * 1024).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", place("link.json")).unwrap();
    std::fs::create_dir(place("directory.json")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, place("pipe.json"), rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .unwrap();
    std::fs::write(place("two words.json"), "{}").unwrap();
    let expected = ["L001", "L001", "L001", "L001", "L002", "L002", "L021", "L024"];
    let listed = json(&env, "ledger list");
    let mut told = found(&listed);
    told.sort();
    assert_eq!(told, expected);
    assert_eq!(ids(&listed.envelope()["data"]).len(), 4);
    // A query for another experiment does not report the problem.
    assert_eq!(ids(&json(&env, "ledger list -e pipes").data()), ["pipes/pipe.1"]);
    let shown = json(&env, "ledger show beams/torn");
    assert_eq!((shown.code, shown.errors()[0].0.as_str()), (Some(3), "L002"), "{shown:?}");
    let exported = json(&env, "ledger export -o all.csv");
    assert_eq!(found(&exported).len(), expected.len());
    assert_eq!(exported.envelope()["data"]["records"], 5);
    assert_eq!(json(&env, "ledger verify -e pipes").code, Some(0));
    insta::assert_snapshot!("ledger_list_broken", run(&env, "ledger list").snapshot());
}

#[test]
fn an_index_of_any_kind_is_put_right_on_the_way() {
    let env = project();
    let before = run(&env, "ledger list").stdout;
    for content in ["", "garbage", &"SQLite format 3\0".repeat(1000)] {
        env.write("artefacts/ledger/_index.sqlite", content);
        let listed = run(&env, "ledger list");
        assert_eq!((listed.code, listed.stdout.as_str()), (Some(0), before.as_str()), "{listed:?}");
    }
    std::fs::remove_file(env.path("artefacts/ledger/_index.sqlite")).unwrap();
    std::fs::create_dir(env.path("artefacts/ledger/_index.sqlite")).unwrap();
    assert_eq!(run(&env, "ledger list").stdout, before);
    let kept = run(&env, "ledger reindex");
    assert!(kept.stderr.contains("the index cannot be kept"), "{kept:?}");
    std::fs::remove_dir(env.path("artefacts/ledger/_index.sqlite")).unwrap();
    insta::assert_snapshot!("ledger_reindex", run(&env, "ledger reindex").snapshot());
    let data = json(&env, "ledger reindex").data();
    assert_eq!((&data["records"], &data["experiments"][0]["attempts"]), (&5.into(), &4.into()));
}

#[test]
fn several_processes_share_the_index() {
    let env = project();
    for round in 0..3 {
        example::write(&ledger(&env), &example::record("beams", &format!("more-{round}"), 1));
        let lines = ["ledger reindex", "ledger list", "ledger list", "ledger reindex"];
        let started: Vec<_> = lines.iter().map(|line| env.start(line.split(' '))).collect();
        for mut process in started {
            assert_eq!(process.wait().unwrap().code(), Some(0));
        }
        assert_eq!(json(&env, "ledger list").data()["totals"]["count"], 5 + round);
    }
}

#[test]
fn a_ledger_that_nobody_may_write_to_is_still_read() {
    let mut env = project();
    let before = run(&env, "ledger list").stdout;
    let root = env.path("artefacts/ledger");
    std::fs::remove_file(env.path(".env")).unwrap();
    for name in ["_index.sqlite", "_index.sqlite-wal", "_index.sqlite-shm"] {
        std::fs::remove_file(root.join(name)).ok();
    }
    std::fs::set_permissions(&root, std::fs::Permissions::from_mode(0o555)).unwrap();
    if rustix::process::geteuid().is_root() {
        env.become_ordinary_user();
    }
    let listed = run(&env, "ledger list");
    assert_eq!((listed.code, listed.stdout.as_str()), (Some(0), before.as_str()), "{listed:?}");
    assert!(!root.join("_index.sqlite").exists());
    assert_eq!(run(&env, "ledger verify").code, Some(0));
    std::fs::set_permissions(&root, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_sound_ledger_is_verified_with_its_heads() {
    let env = project();
    insta::assert_snapshot!("ledger_verify", run(&env, "ledger verify").snapshot());
    let data = json(&env, "ledger verify").data();
    let head = data["experiments"][0]["head"].as_str().unwrap().to_owned();
    assert_eq!(run(&env, &format!("ledger verify -e beams --head {head}")).code, Some(0));
    let other = json(&env, &format!("ledger verify -e pipes --head {head} --quick"));
    assert_eq!(found(&other), ["L039"]);
    assert_eq!(run(&env, &format!("ledger verify --head {head}")).code, Some(2));
    assert_eq!(run(&env, "ledger verify -e beams --head abc").code, Some(2));
    assert_eq!(json(&env, "ledger verify -e none").errors()[0].0, "L025");
    assert_eq!(run(&empty_project(), "ledger verify").code, Some(0));
}

#[test]
fn tampering_is_found() {
    let tampered = |attack: &dyn Fn(&TestEnv)| {
        let env = project();
        attack(&env);
        let verified = json(&env, "ledger verify -e beams");
        (found(&verified), env)
    };
    let at = |env: &TestEnv, name: &str| env.path(format!("artefacts/ledger/beams/{name}"));
    let edit = |path: std::path::PathBuf, from: &str, to: &str| {
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(from));
        std::fs::write(path, text.replacen(from, to, 1)).unwrap();
    };
    // A better reward.
    let (ids, env) =
        tampered(&|env| edit(at(env, &format!("{SECOND}.2.json")), "\"reward\": 0.5", "\"reward\": 1.0"));
    assert_eq!(ids, ["L030"]);
    insta::assert_snapshot!("ledger_verify_found", run(&env, "ledger verify -e beams").snapshot());
    // A bad trial removed.
    let (ids, _) = tampered(&|env| std::fs::remove_file(at(env, &format!("{THIRD}.json"))).unwrap());
    assert_eq!(ids, ["L032"]);
    // Lines of the chain in another order.
    let (ids, _) = tampered(&|env| {
        let path = at(env, "_run/chain-1.jsonl");
        let text = std::fs::read_to_string(&path).unwrap();
        let mut lines: Vec<&str> = text.lines().collect();
        lines.swap(1, 2);
        std::fs::write(path, lines.join("\n") + "\n").unwrap();
    });
    assert!(ids.iter().all(|id| id == "L012"), "{ids:?}");
    // An old good record under another name, and in place of a bad one.
    let replay = |to: String| {
        move |env: &TestEnv| {
            std::fs::copy(at(env, &format!("{FIRST}.json")), at(env, &to)).unwrap();
        }
    };
    assert_eq!(tampered(&replay("new.json".to_owned())).0, ["L022"]);
    assert_eq!(tampered(&replay(format!("{THIRD}.json"))).0, ["L022"]);
    // The same attempt again, with a better reward.
    let (ids, _) = tampered(&|env| {
        let mut better = example::record("beams", FIRST, 1);
        better.evaluation = Some(example::evaluation(1.0));
        example::write_session(&ledger(env), "2", &[better]);
    });
    assert_eq!(ids, ["L033"]);
    // A changed artefact.
    let (ids, _) = tampered(&|env| {
        let note = ledger(env).contents();
        let digest = aec_base::digest::Digest::of(format!("notes of {FIRST}\n").as_bytes());
        std::fs::remove_file(note.path(digest)).unwrap();
        std::fs::write(note.path(digest), "better notes").unwrap();
    });
    assert_eq!(ids, ["L035"]);
}

#[test]
fn what_a_crash_leaves_is_repaired_and_the_rest_told() {
    let env = project();
    let at = |name: &str| env.path(format!("artefacts/ledger/beams/{name}"));
    let chain = std::fs::read_to_string(at("_run/chain-1.jsonl")).unwrap();
    std::fs::write(at("_run/chain-1.jsonl"), format!("{chain}{{\"sequence\":5,")).unwrap();
    std::fs::write(at(&format!("{THIRD}.json")), "{ torn").unwrap();
    let leftover = std::fs::File::create(at(".new-abc")).unwrap();
    let long_ago = std::time::SystemTime::UNIX_EPOCH;
    leftover.set_times(std::fs::FileTimes::new().set_modified(long_ago)).unwrap();
    assert_eq!(found(&json(&env, "ledger verify -e beams")), ["L010", "L002"]);

    insta::assert_snapshot!("ledger_repair_dry_run", run(&env, "ledger repair --dry-run").snapshot());
    assert!(at(".new-abc").exists());
    insta::assert_snapshot!("ledger_repair", run(&env, "ledger repair -e beams").snapshot());
    assert_eq!(std::fs::read_to_string(at("_run/chain-1.jsonl")).unwrap(), chain);
    assert_eq!(env.read(format!("artefacts/ledger/_damaged/beams/{THIRD}.json")), "{ torn");
    assert!(!at(".new-abc").exists());
    // The list is complete again, and the missing record is still reported.
    assert_eq!(json(&env, "ledger list").data()["totals"]["count"], 3);
    assert_eq!(found(&json(&env, "ledger verify -e beams")), ["L032"]);
    assert!(run(&env, "ledger repair").stderr.starts_with("There was nothing to repair."));
}

#[test]
fn annotations_are_kept_beside_the_ledger() {
    let env = project();
    let record = env.read(format!("artefacts/ledger/beams/{FIRST}.json"));
    let line = format!(
        "ledger annotate {FIRST} --judgment fail --category units --category rounding --reviewer ada --discipline structural"
    );
    let note = ["--note", "kN and kNm\nare not the same"];
    assert_eq!(env.run(line.split(' ').chain(note)).code, Some(0));
    assert_eq!(run(&env, &format!("ledger annotate beams/{FIRST} --judgment pass")).code, Some(0));
    insta::assert_snapshot!(
        "annotations",
        env.read(format!("artefacts/feedback/annotations/beams/{FIRST}.jsonl"))
    );
    insta::assert_snapshot!(
        "ledger_annotate_list",
        run(&env, &format!("ledger annotate {FIRST} --list")).snapshot()
    );
    let data = json(&env, &format!("ledger show {FIRST}")).data();
    assert_eq!(data["annotations"].as_array().unwrap().len(), 2);
    let shown = run(&env, &format!("ledger show {FIRST}")).stdout;
    assert!(shown.contains("Annotations\n2026-04-12T00:00:00Z fail by ada (structural) [units, rounding]\n  kN and kNm\n  are not"), "{shown}");
    // The record is unchanged, and so are the annotations before a torn line.
    assert_eq!(env.read(format!("artefacts/ledger/beams/{FIRST}.json")), record);
    let path = format!("artefacts/feedback/annotations/beams/{FIRST}.jsonl");
    env.write(&path, format!("{}{{\"torn", env.read(&path)));
    let torn = json(&env, &format!("ledger annotate {FIRST} --judgment defer"));
    assert_eq!(found(&torn), ["L050"]);
    assert_eq!(torn.envelope()["data"]["annotations"].as_array().unwrap().len(), 3);
    let none = run(&env, "ledger annotate pipe --list");
    assert_eq!((none.code, none.stdout.as_str()), (Some(0), ""));
    for usage in ["pipe", "pipe --judgment maybe", "pipe --list --judgment pass", "--judgment pass"] {
        assert_eq!(run(&env, &format!("ledger annotate {usage}")).code, Some(2), "{usage}");
    }
    assert_eq!(
        env.run(["ledger", "annotate", "pipe", "--judgment", "pass", "--category", "a\x1b[2J"]).code,
        Some(2)
    );
}
