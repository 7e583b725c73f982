//! Experiments that `runs export` refuses to pack.

use aec_base::digest::Digest;
use aec_xtest::TestEnv;

use crate::cli::dataset_archive::tree;
use crate::cli::dataset_commands::{json, run};
use crate::cli::runs_package::{EXPERIMENT, record, recorded, store};

/// The error for a ledger that was changed so that it cannot be packed.
fn refused(name: &str, arrange: &dyn Fn(&TestEnv), id: &str) -> String {
    let env = recorded();
    arrange(&env);
    let before = tree(&env);
    let made = json(&env, "runs export exp-1 -o x.tar.zst");
    assert_eq!((made.code, made.errors()[0].0.as_str()), (Some(3), id), "{name}: {made:?}");
    assert_eq!(tree(&env), before, "{name}");
    run(&env, "runs export exp-1 -o x.tar.zst").snapshot()
}

fn at(path: &str) -> String {
    format!("{EXPERIMENT}/{path}")
}

#[test]
fn records_that_cannot_be_packed_are_told_and_nothing_is_written() {
    let remove = |env: &TestEnv, path: &str| std::fs::remove_file(env.path(at(path))).unwrap();
    refused("no record", &|env| std::fs::remove_dir_all(env.path(EXPERIMENT)).unwrap(), "L025");
    refused(
        "nothing",
        &|env| {
            std::fs::remove_dir_all(env.path(EXPERIMENT)).unwrap();
            std::fs::create_dir(env.path(EXPERIMENT)).unwrap();
        },
        "L095",
    );
    let said = refused("a record that a chain names", &|env| remove(env, "t2.json"), "L089");
    insta::assert_snapshot!("runs_export_missing_record", said);
    refused(
        "a changed record",
        &|env| {
            let text = env.read(at("t2.json")).replace("agent_fault", "infra_fault");
            env.write(at("t2.json"), text);
        },
        "L089",
    );
    for (name, text) in
        [("empty", &b""[..]), ("torn", b"{\"schema_version\": 1"), ("binary", b"\xff\xfe"), ("a list", b"[]")]
    {
        refused(name, &|env| env.write(at("t2.json"), text), "L096");
    }
    refused(
        "a record of another experiment",
        &|env| {
            let text = env.read(at("t2.json")).replace("exp-1", "exp-2");
            env.write(at("t2.json"), text);
        },
        "L096",
    );
    refused(
        "a record under another name",
        &|env| {
            std::fs::rename(env.path(at("t2.json")), env.path(at("t7.json"))).unwrap();
        },
        "L096",
    );
    refused(
        "a later record",
        &|env| {
            let text = env.read(at("t2.json")).replace("\"schema_version\": 1", "\"schema_version\": 2");
            env.write(at("t2.json"), text);
        },
        "L096",
    );
    refused(
        "a link",
        &|env| {
            std::fs::rename(env.path(at("t2.json")), env.path("t2.json")).unwrap();
            std::os::unix::fs::symlink(env.path("t2.json"), env.path(at("t2.json"))).unwrap();
        },
        "L096",
    );
    refused(
        "a torn chain",
        &|env| {
            let text = env.read(at("_run/chain-s1.jsonl"));
            env.write(at("_run/chain-s1.jsonl"), &text[..text.len() - 3]);
        },
        "L010",
    );
}

#[test]
fn contents_and_names_that_cannot_be_packed_are_told() {
    let content = Digest::of(b"only of t2\n");
    refused("a missing content", &|env| std::fs::remove_file(store(env).path(content)).unwrap(), "L097");
    let replace = |env: &TestEnv, text: &str| {
        std::fs::remove_file(store(env).path(content)).unwrap();
        std::fs::write(store(env).path(content), text).unwrap();
    };
    refused("a shorter content", &|env| replace(env, "only"), "L097");
    refused("another content", &|env| replace(env, "only of t3\n"), "L102");
    let long = "x".repeat(120);
    refused(
        "a long name",
        &|env| {
            env.write(at(&format!("{long}.json")), record(&store(env), &long, 1, "scored", &[]));
        },
        "L103",
    );
    refused(
        "names that differ in case",
        &|env| {
            env.write(at("T2.json"), record(&store(env), "T2", 1, "scored", &[]));
        },
        "L103",
    );
}

#[test]
fn a_file_that_exists_stays_unless_forced() {
    let env = recorded();
    env.write("x.tar.zst", "mine");
    assert_eq!(json(&env, "runs export exp-1 -o x.tar.zst").errors()[0].0, "L099");
    assert_eq!(env.read("x.tar.zst"), "mine");
    assert_eq!(run(&env, "runs export exp -o x.tar.zst --force").code, Some(0), "a beginning is enough");
    assert_eq!(json(&env, "runs export other").errors()[0].0, "L025");
    assert_eq!(json(&env, "runs export ../exp-1").errors()[0].0, "L025");
    // A record that no chain names is packed and reported.
    env.write(at("t8.json"), record(&store(&env), "t8", 1, "scored", &[]));
    assert_eq!(json(&env, "runs export exp-1 -o y.tar.zst").data()["counts"]["unchained"], 1);
}
