//! `runs export`, `runs import` and `runs keygen`: the same bytes every time, nothing lost, nothing overwritten.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use aec_base::content::ContentStore;
use aec_base::digest::Digest;
use aec_base::name::Name;
use aec_ledger::chain::Link;
use aec_xtest::TestEnv;
use serde_json::{Value, json};

use crate::cli::archive::{Archive, Member};
use crate::cli::dataset_archive::tree;
use crate::cli::dataset_commands::{json, run};
use crate::cli::empty_project;

pub(crate) const EXPERIMENT: &str = "artefacts/ledger/exp-1";
pub(crate) const PLAN: &str = "0000000000000000000000000000000000000000000000000000000000000001";

/// A record of `exp-1` as JSON, with its contents in the ledger.
pub(crate) fn record(
    store: &ContentStore,
    trial: &str,
    attempt: u32,
    outcome: &str,
    files: &[(&str, &str)],
) -> String {
    let zero = format!("sha256:{:064}", 0);
    let artefacts: Vec<Value> = files
        .iter()
        .map(|(path, content)| {
            let digest = store.put(content.as_bytes()).unwrap();
            json!({"path": path, "digest": digest, "size": content.len()})
        })
        .collect();
    let submitted = store.put(b"submitted").unwrap();
    let judged =
        (outcome == "scored").then(|| aec_ledger::example::record("exp-1", trial, attempt).evaluation);
    let value = json!({
        "schema_version": 1,
        "trial_id": trial,
        "experiment_id": "exp-1",
        "timestamp": "2026-04-12T00:00:00Z",
        "attempt": attempt,
        "repetition": 1,
        "key": zero,
        "plan": format!("sha256:{PLAN}"),
        "outcome": outcome,
        "evaluation": judged,
        "task": {"task_id": "civil/a", "task_revision": zero, "domain": "civil", "family": "civil/a"},
        "agent": {"name": "oracle", "adapter": "oracle", "configuration": {}, "digest": zero},
        "environment": {
            "runtime_image": "local",
            "compute_backend": "local",
            "limits": {"cpus": 1, "memory_mb": 512, "storage_mb": 512, "pids": 64},
            "timeout_sec": 60,
            "network": false,
            "tool_versions": {},
        },
        "inputs": {"instruction": "Write the answer.", "input_files": []},
        "outputs": {"agent_result": {}, "submission": {
            "digest": zero,
            "files": {"output.md": {"digest": submitted, "size": 9, "executable": false}},
            "refused": [],
        }},
        "cost": {},
        "artefacts": artefacts,
        "completeness": "complete",
        "timing": {},
    });
    format!("{}\n", serde_json::to_string_pretty(&value).unwrap())
}

/// Writes records and their chain.
pub(crate) fn write_records(env: &TestEnv, records: &[(&str, u32, String)]) {
    let mut previous = Digest::try_from(format!("sha256:{PLAN}")).unwrap();
    let mut chain = String::new();
    for (index, (trial, attempt, text)) in records.iter().enumerate() {
        let name = Name::parse(trial).unwrap();
        let stem = aec_ledger::layout::stem(&name, *attempt);
        env.write(format!("{EXPERIMENT}/{stem}.json"), text);
        let link = Link::after(previous, index as u64 + 1, &name, *attempt, Digest::of(text.as_bytes()));
        previous = link.link;
        chain.push_str(&format!("{}\n", serde_json::to_string(&link).unwrap()));
    }
    env.write(format!("{EXPERIMENT}/_run/chain-s1.jsonl"), chain);
}

pub(crate) fn store(env: &TestEnv) -> ContentStore {
    ContentStore::new(env.path("artefacts/ledger/_artefacts"))
}

/// A project with a ledger of four attempts.
pub(crate) fn recorded() -> TestEnv {
    let mut env = empty_project();
    env.set("SOURCE_DATE_EPOCH", "1775952000");
    let store = store(&env);
    let large = "beam ".repeat(50_000);
    write_records(
        &env,
        &[
            ("t1", 1, record(&store, "t1", 1, "infra_fault", &[("log.txt", "it failed\n")])),
            ("t1", 2, record(&store, "t1", 2, "scored", &[("workspace/output.md", "42\n"), ("empty", "")])),
            ("t2", 1, record(&store, "t2", 1, "agent_fault", &[("log.txt", "only of t2\n")])),
            (
                "t3",
                1,
                record(&store, "t3", 1, "scored", &[("workspace/output.md", "42\n"), ("large", &large)]),
            ),
        ],
    );
    env.write(format!("{EXPERIMENT}/_run/plans/{PLAN}.json"), "{\"plan\": 1}\n");
    env.write(format!("{EXPERIMENT}/_run/session-s1.json"), "{\"session\": 1}\n");
    for other in ["journal-s1.bin", "lock", "notes.txt", "plans/x.json", "chain-.jsonl"] {
        env.write(format!("{EXPERIMENT}/_run/{other}"), "no part of a package");
    }
    env.write("artefacts/feedback/annotations/exp-1/t1.2.jsonl", "{\"note\": \"good\"}\n");
    env.write("artefacts/feedback/annotations/exp-1/t9.jsonl", "{\"note\": \"of nothing\"}\n");
    env
}

/// The bytes of the project's package, made with further flags.
pub(crate) fn package(env: &TestEnv, flags: &str) -> Vec<u8> {
    let made = run(env, &format!("runs export exp-1 --force -o p.tar.zst {flags}"));
    assert_eq!(made.code, Some(0), "{made:?}");
    std::fs::read(env.path("p.tar.zst")).unwrap()
}

/// An empty project with the package `in.tar.zst`.
pub(crate) fn receiving(bytes: &[u8]) -> TestEnv {
    let mut env = empty_project();
    env.set("SOURCE_DATE_EPOCH", "1775952000");
    env.write("in.tar.zst", bytes);
    env
}

pub(crate) fn manifest(bytes: &[u8]) -> Value {
    serde_json::from_slice(&Archive::read(bytes).members[0].content).unwrap()
}

fn same_files(one: &Path, other: &Path) -> bool {
    let status = std::process::Command::new("diff").arg("-rq").arg(one).arg(other).output().unwrap();
    status.status.success()
}

#[test]
fn a_package_goes_out_in_and_out_again() {
    let env = recorded();
    insta::assert_snapshot!("runs_export", run(&env, "runs export exp-1").snapshot());
    let bytes = std::fs::read(env.path("exp-1.tar.zst")).unwrap();
    assert!(package(&env, "") == bytes, "the same bytes");
    let archive = Archive::read(&bytes);
    let names: Vec<String> = archive.members.iter().map(Member::name).collect();
    assert_eq!(
        names[..5],
        ["package.json", "records/t1.json", "records/t1.2.json", "records/t2.json", "records/t3.json"]
    );
    let plan = format!("run/plans/{PLAN}.json");
    assert_eq!(names[5..8], ["run/chain-s1.jsonl", &plan, "run/session-s1.json"]);
    assert!(names[8..].iter().all(|name| name.starts_with("contents/")) && names[8..].is_sorted());
    assert_eq!(names.len(), 8 + 6);
    assert!(archive.tar() == zstd::decode_all(bytes.as_slice()).unwrap(), "nothing is left to chance");
    insta::assert_snapshot!(
        "runs_package_manifest",
        String::from_utf8(archive.members[0].content.clone()).unwrap()
    );

    let other = receiving(&bytes);
    insta::assert_snapshot!("runs_import", run(&other, "runs import in.tar.zst").snapshot());
    assert!(package(&other, "") == bytes, "the same bytes again");
    for path in ["t1.json", "t1.2.json", "_run/chain-s1.jsonl", "_run/session-s1.json"] {
        assert_eq!(other.read(format!("{EXPERIMENT}/{path}")), env.read(format!("{EXPERIMENT}/{path}")));
    }
    let contents = "artefacts/ledger/_artefacts/sha256";
    assert!(same_files(&env.path(contents), &other.path(contents)));
    let root = manifest(&bytes)["root"].as_str().unwrap().to_owned();
    let note: Value =
        serde_json::from_str(&other.read(format!("{EXPERIMENT}/_run/import-{}.json", &root[7..15]))).unwrap();
    assert_eq!((&note["root"], &note["key"]), (&json!(root), &json!(null)));
    assert_eq!(note["package"], json!(Digest::of(&bytes)));
    assert_eq!(note["imported_at"], "2026-04-12T00:00:00Z");
}

#[test]
fn an_import_can_be_tried_repeated_and_completed() {
    let bytes = package(&recorded(), "");
    let env = receiving(&bytes);
    let before = tree(&env);
    let tried = json(&env, "runs import in.tar.zst --dry-run").data();
    assert_eq!(
        (&tried["dry_run"], &tried["added"], &tried["duplicates"]),
        (&json!(true), &json!(4), &json!(0))
    );
    assert_eq!(tree(&env), before, "a trial writes nothing");
    let first = json(&env, "runs import in.tar.zst").data();
    assert_eq!(first["counts"]["outcomes"], json!({"scored": 2, "agent_fault": 1, "infra_fault": 1}));
    let after = tree(&env);
    let again = json(&env, "runs import in.tar.zst").data();
    assert_eq!((&again["added"], &again["duplicates"]), (&json!(0), &json!(4)));
    assert_eq!(tree(&env), after);
    // A lost content is restored, and so is one that was changed in place.
    let lost = store(&env).path(Digest::of(b"it failed\n"));
    std::fs::remove_file(env.path(format!("{EXPERIMENT}/t1.json"))).unwrap();
    std::fs::remove_file(env.path(format!("{EXPERIMENT}/_run/session-s1.json"))).unwrap();
    std::fs::remove_file(&lost).unwrap();
    std::fs::write(&lost, "it  passed").unwrap();
    let third = json(&env, "runs import in.tar.zst").data();
    assert_eq!((&third["added"], &third["duplicates"]), (&json!(1), &json!(3)));
    assert_eq!(tree(&env), after);
    assert!(package(&env, "") == bytes);
}

#[test]
fn an_import_changes_nothing_that_is_here() {
    let bytes = package(&recorded(), "");
    let refused = |arrange: &dyn Fn(&TestEnv)| {
        let env = receiving(&bytes);
        assert_eq!(run(&env, "runs import in.tar.zst").code, Some(0));
        std::fs::remove_file(env.path(format!("{EXPERIMENT}/t3.json"))).unwrap();
        arrange(&env);
        let before = tree(&env);
        for flags in ["", " --dry-run"] {
            let run = json(&env, &format!("runs import in.tar.zst{flags}"));
            assert_eq!((run.code, run.errors()[0].0.as_str()), (Some(3), "L093"), "{run:?}");
            assert_eq!(tree(&env), before);
        }
        run(&env, "runs import in.tar.zst").snapshot()
    };
    let said = refused(&|env| env.write(format!("{EXPERIMENT}/t1.2.json"), "{}"));
    insta::assert_snapshot!("runs_import_conflict", said);
    refused(&|env| env.write(format!("{EXPERIMENT}/_run/session-s1.json"), "{}"));
    refused(&|env| {
        std::fs::remove_file(env.path(format!("{EXPERIMENT}/t1.json"))).unwrap();
        std::fs::create_dir(env.path(format!("{EXPERIMENT}/t1.json"))).unwrap();
    });
    refused(&|env| {
        let place = env.path(format!("{EXPERIMENT}/t1.json"));
        std::fs::rename(&place, env.path("moved")).unwrap();
        std::os::unix::fs::symlink(env.path("moved"), place).unwrap();
    });
    refused(&|env| {
        std::fs::remove_dir_all(env.path(EXPERIMENT)).unwrap();
        env.write(EXPERIMENT, "a file");
    });
}

#[test]
fn trials_can_be_withheld_and_the_root_stays() {
    let env = recorded();
    let full = package(&env, "");
    let exported = json(&env, "runs export exp-1 -o w.tar.zst --withhold t2").data();
    assert_eq!((&exported["root"], &exported["counts"]["withheld"]), (&manifest(&full)["root"], &json!(1)));
    let part = std::fs::read(env.path("w.tar.zst")).unwrap();
    let text = String::from_utf8_lossy(&Archive::read(&part).tar()).into_owned();
    assert!(!text.contains("only of t2") && !text.contains("agent_fault"), "nothing of it is told");
    assert!(text.contains("submitted"), "what others share stays");
    let names: Vec<String> = Archive::read(&part).members.iter().map(Member::name).collect();
    assert!(!names.contains(&"records/t2.json".to_owned()));
    // All attempts at a trial are withheld, and the unique beginning of a trial's id is enough.
    let both = manifest(&package(&env, "--withhold t1 t2"));
    assert_eq!((both["withheld"].as_array().unwrap().len(), &both["root"]), (3, &manifest(&full)["root"]));

    let other = receiving(&part);
    assert_eq!(run(&other, "runs import in.tar.zst").code, Some(0));
    assert!(!other.path(format!("{EXPERIMENT}/t2.json")).exists());
    assert!(!store(&other).has(Digest::of(b"only of t2\n")));
    assert!(package(&other, "") == part, "what was withheld stays so");
    other.write("in.tar.zst", &full);
    assert_eq!(json(&other, "runs import in.tar.zst").data()["added"], 1);
    assert!(package(&other, "") == full, "until it comes");
    for (given, what) in [("t9", "no trial"), ("t", "more than one")] {
        let run = json(&env, &format!("runs export exp-1 -o x.tar.zst --withhold {given}"));
        assert_eq!((run.code, run.errors()[0].0.as_str()), (Some(3), "L100"), "{run:?}");
        assert!(run.errors()[0].1.contains(what), "{run:?}");
    }
}

#[test]
fn packages_are_signed_and_signatures_demanded() {
    let env = recorded();
    let made = json(&env, "runs keygen key");
    let key = made.data()["key"].as_str().unwrap().to_owned();
    assert_eq!(env.read("key.pub").trim(), key);
    assert_eq!(env.path("key").metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let private = env.read("key");
    let secret = private.trim().rsplit(':').next().unwrap().to_owned();
    assert_eq!(json(&env, "runs keygen key").errors()[0].0, "L101", "a key is not overwritten");
    assert_eq!(env.read("key"), private);
    let said = run(&env, "runs keygen other");
    assert_eq!(said.stdout, env.read("other.pub"));
    let unsigned = package(&env, "");
    let exported = json(&env, "-v runs export exp-1 -o s.tar.zst --sign key");
    assert_eq!(exported.data()["key"], json!(key));
    let signed = std::fs::read(env.path("s.tar.zst")).unwrap();
    assert!(package(&env, "--sign key") == signed, "a signature is the same every time");
    for text in [&made.stdout, &exported.stdout, &exported.stderr] {
        assert!(!text.contains(&secret));
    }
    assert!(!String::from_utf8_lossy(&Archive::read(&signed).tar()).contains(&secret));

    let other = receiving(&signed);
    std::fs::copy(env.path("key.pub"), other.path("key.pub")).unwrap();
    let taken = json(&other, "runs import in.tar.zst --expect-key key.pub").data();
    assert_eq!(taken["key"], json!(key));
    let import = |flags: &str| json(&other, &format!("runs import in.tar.zst --dry-run {flags}"));
    assert_eq!(import(&format!("--expect-key {key}")).code, Some(0));
    assert_eq!(import("").data()["key"], json!(key), "a valid signature is told");
    let root = manifest(&signed)["root"].as_str().unwrap().to_owned();
    assert_eq!(import(&format!("--expect-root {root}")).code, Some(0));
    let zero = format!("sha256:{:064}", 0);
    assert_eq!(import(&format!("--expect-root {zero}")).errors()[0].0, "L092");
    assert_eq!(import("--expect-root x").code, Some(2));
    let wrong = env.read("other.pub");
    assert_eq!(import(&format!("--expect-key {wrong}")).errors()[0].0, "L091");
    for key in ["missing.pub", "in.tar.zst", "aec-bench-ed25519:AAAA"] {
        assert_eq!(import(&format!("--expect-key {key}")).errors()[0].0, "L101", "{key}");
    }
    other.write("in.tar.zst", &unsigned);
    assert_eq!(import("--expect-key key.pub").errors()[0].0, "L091", "unsigned");
    assert_eq!(import("").data()["key"], json!(null));
    std::fs::set_permissions(env.path("key"), PermissionsExt::from_mode(0o640)).unwrap();
    let open = json(&env, "runs export exp-1 -o x.tar.zst --sign key");
    assert_eq!((open.code, open.errors()[0].0.as_str()), (Some(3), "L101"));
    assert!(!env.path("x.tar.zst").exists());
}

#[test]
fn secrets_do_not_leave() {
    for place in ["record", "content", "session", "annotation"] {
        let env = recorded();
        let secret = "sk-very-secret-value";
        env.write(".env", format!("DEMO_API_KEY={secret}\n"));
        match place {
            "record" => {
                let text = env.read(format!("{EXPERIMENT}/t2.json")).replace("Write the answer.", secret);
                let store = store(&env);
                let others = [("t1", 1, record(&store, "t1", 1, "scored", &[])), ("t2", 1, text)];
                std::fs::remove_dir_all(env.path(EXPERIMENT)).unwrap();
                write_records(&env, &others);
            }
            "content" => {
                let content = format!("{}{secret}", "x".repeat(65_530));
                let one = record(&store(&env), "t1", 1, "scored", &[("log", &content)]);
                std::fs::remove_dir_all(env.path(EXPERIMENT)).unwrap();
                write_records(&env, &[("t1", 1, one)]);
            }
            "session" => env.write(format!("{EXPERIMENT}/_run/session-s1.json"), secret),
            _ => env.write("artefacts/feedback/annotations/exp-1/t1.jsonl", secret),
        }
        let run = json(&env, "runs export exp-1 -o x.tar.zst --annotations");
        assert_eq!((run.code, run.errors()[0].0.as_str()), (Some(3), "L098"), "{place}: {run:?}");
        assert!(!run.stdout.contains(secret));
        assert!(!env.path("x.tar.zst").exists(), "{place}");
        if place == "record" {
            insta::assert_snapshot!(
                "runs_export_secret",
                crate::cli::dataset_commands::run(&env, "runs export exp-1").snapshot()
            );
            assert_eq!(json(&env, "runs export exp-1 -o x.tar.zst --withhold t2").code, Some(0));
        }
    }
}

#[test]
fn annotations_go_along_on_request() {
    let env = recorded();
    let plain = package(&env, "");
    let bytes = package(&env, "--annotations");
    assert_eq!(manifest(&plain)["root"], manifest(&bytes)["root"], "they are not part of what was run");
    let names: Vec<String> = Archive::read(&bytes).members.iter().map(Member::name).collect();
    assert_eq!(names.last().unwrap(), "annotations/t1.2.jsonl", "those of attempts in the package");
    let other = receiving(&bytes);
    assert_eq!(json(&other, "runs import in.tar.zst").data()["annotations_added"], 1);
    let place = "artefacts/feedback/annotations/exp-1/t1.2.jsonl";
    assert_eq!(other.read(place), "{\"note\": \"good\"}\n");
    assert!(package(&other, "--annotations") == bytes);
    other.write(place, "{\"note\": \"mine\"}\n");
    assert_eq!(json(&other, "runs import in.tar.zst").data()["annotations_kept"], 1);
    assert_eq!(other.read(place), "{\"note\": \"mine\"}\n");
}

#[test]
fn files_of_attempts_are_made_on_request() {
    let env = recorded();
    let bytes = package(&env, "");
    let other = receiving(&bytes);
    assert_eq!(json(&other, "runs import in.tar.zst").data()["jobs"], 0);
    assert!(!other.path("jobs/exp-1").exists());
    assert_eq!(json(&other, "runs import in.tar.zst --jobs").data()["jobs"], 4);
    assert_eq!(other.read("jobs/exp-1/t1.2/workspace/output.md"), "42\n");
    // A record with paths that lead outside is imported like others, but its files are not written.
    let evil = record(&store(&env), "t4", 1, "scored", &[("../../evil", "x")]);
    write_records(
        &env,
        &[("t4", 1, evil), ("t5", 1, record(&store(&env), "t5", 1, "scored", &[("a", "x")]))],
    );
    for stem in ["t1", "t1.2", "t2", "t3"] {
        std::fs::remove_file(env.path(format!("{EXPERIMENT}/{stem}.json"))).unwrap();
    }
    let other = receiving(&package(&env, ""));
    let run = json(&other, "runs import in.tar.zst --jobs");
    assert_eq!((run.code, run.errors()[0].0.as_str()), (Some(1), "L104"), "{run:?}");
    assert_eq!(other.read("jobs/exp-1/t5/a"), "x");
    assert!(!other.path("jobs/evil").exists() && !other.path("jobs/exp-1/t4").exists());
}
