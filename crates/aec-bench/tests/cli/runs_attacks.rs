//! Manipulated packages: nothing is used of a package in which something was changed, left out, added or disguised.

use std::io::Write as _;

use aec_xtest::TestEnv;
use serde_json::{Value, json};

use crate::cli::archive::{Archive, Member, compress};
use crate::cli::dataset_archive::tree;
use crate::cli::dataset_commands::{json, run};
use crate::cli::runs_package::{PLAN, package, receiving, record, recorded, store, write_records};

/// Imports bytes that must be refused, checks that nothing was written, and returns the printed error.
fn refuse(env: &TestEnv, name: &str, bytes: &[u8], ids: &[&str]) -> String {
    env.write("in.tar.zst", bytes);
    let before = tree(env);
    let mut said = String::new();
    for flags in ["", " --dry-run"] {
        let run = json(env, &format!("runs import in.tar.zst{flags}"));
        assert_eq!(run.code, Some(3), "{name}: {run:?}");
        let id = &run.errors()[0].0;
        assert!(ids.contains(&id.as_str()), "{name}: {run:?}");
        assert_eq!(tree(env), before, "{name}");
        said = run.stdout;
    }
    said
}

const ZERO: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

/// A name, a change of a manifest, and the id of the resulting problem.
type Lie = (&'static str, fn(&mut Value), &'static str);

/// The package with another manifest, in the manifest's format.
fn with_manifest(archive: &Archive, change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut archive = archive.clone();
    let mut manifest: Value = serde_json::from_slice(&archive.members[0].content).unwrap();
    change(&mut manifest);
    let text = format!("{}\n", serde_json::to_string_pretty(&manifest).unwrap());
    archive.members[0] = Member::file("package.json", text.as_bytes());
    archive.bytes()
}

fn signed() -> Archive {
    let env = recorded();
    assert_eq!(run(&env, "runs keygen key").code, Some(0));
    Archive::read(&package(&env, "--sign key --annotations"))
}

#[test]
fn no_member_can_be_changed_removed_added_renamed_or_moved() {
    let to = receiving(b"");
    let archive = signed();
    let count = archive.members.len();
    assert_eq!(count, 16);
    let any = ["L080", "L083", "L084", "L085", "L086", "L087", "L088", "L089", "L090"];
    for at in 0..count {
        let name = archive.members[at].name();
        let content = archive.members[at].content.clone();
        let with = |content: &[u8]| {
            let mut changed = archive.clone();
            changed.members[at] = Member::file(&name, content);
            changed.bytes()
        };
        if !content.is_empty() {
            let mut flipped = content.clone();
            flipped[content.len() / 2] ^= 1;
            refuse(&to, &format!("{name} changed"), &with(&flipped), &any);
            refuse(&to, &format!("{name} shorter"), &with(&content[..content.len() - 1]), &any);
            refuse(&to, &format!("{name} emptied"), &with(b""), &any);
        }
        refuse(&to, &format!("{name} longer"), &with(&[content.as_slice(), b" "].concat()), &any);
        let mut renamed = archive.clone();
        renamed.members[at] = Member::file("contents/x", &content);
        refuse(&to, &format!("{name} renamed"), &renamed.bytes(), &any);
        let mut twice = archive.clone();
        twice.members.insert(at, archive.members[at].clone());
        refuse(&to, &format!("{name} twice"), &twice.bytes(), &any);
        let mut added = archive.clone();
        added.members.insert(at + 1, Member::file("records/t9.json", b"{}"));
        refuse(&to, &format!("one more behind {name}"), &added.bytes(), &["L085"]);
        if at + 1 < count {
            let mut moved = archive.clone();
            moved.members.swap(at, at + 1);
            refuse(&to, &format!("{name} later"), &moved.bytes(), &any);
            let mut fewer = archive.clone();
            fewer.members.remove(at);
            refuse(&to, &format!("{name} removed"), &fewer.bytes(), &any);
        }
    }
}

#[test]
fn a_signature_can_be_stripped_only_where_nobody_asks_for_one() {
    let to = receiving(b"");
    let env = recorded();
    assert_eq!(run(&env, "runs keygen key").code, Some(0));
    let mut archive = Archive::read(&package(&env, "--sign key"));
    let signature = archive.members.pop().unwrap();
    assert_eq!(signature.name(), "signature.json");
    let other = receiving(&archive.bytes());
    other.write("key.pub", env.read("key.pub"));
    let import = |flags: &str| json(&other, &format!("runs import in.tar.zst --dry-run {flags}"));
    assert_eq!(import("--expect-key key.pub").errors()[0].0, "L091");
    assert_eq!(import("").data()["key"], json!(null));
    // The signature of another package, and a signature whose key was replaced.
    let mut lent = Archive::read(&package(&env, "--withhold t2"));
    lent.members.push(signature.clone());
    let said = refuse(&to, "a lent signature", &lent.bytes(), &["L090"]);
    assert!(said.contains("signature of the package is not valid"), "{said}");
    let _made = run(&env, "runs keygen other");
    let mut value: Value = serde_json::from_slice(&signature.content).unwrap();
    value["key"] = json!(env.read("other.pub").trim());
    archive.members.push(Member::file("signature.json", value.to_string().as_bytes()));
    refuse(&to, "another key", &archive.bytes(), &["L090"]);
}

#[test]
fn members_that_are_not_plain_files_with_plain_names_are_refused() {
    let to = receiving(b"");
    let archive = Archive::read(&package(&recorded(), ""));
    for kind in [b'1', b'2', b'3', b'4', b'5', b'6', b'7', b'S', b'x', b'g', b'L', b'K', 0xff] {
        let mut link = Member::kind("contents/x", kind, if kind == b'5' { "" } else { "/etc/passwd" });
        if kind == b'5' {
            link.put(100, b"0000755\0");
        }
        let said = refuse(&to, &format!("kind {kind}"), &archive.with([link.clone()]), &["L082"]);
        assert!(said.contains("nothing of it was used"), "{said}");
        let mut first = archive.clone();
        first.members.insert(1, link);
        refuse(&to, &format!("kind {kind} before a file"), &first.bytes(), &["L082"]);
    }
    let mut runnable = archive.clone();
    runnable.members[1].put(100, b"0000755\0");
    refuse(&to, "a record that may be run", &runnable.bytes(), &["L082"]);
    for name in [
        "../evil",
        "/etc/evil",
        "records/../../evil",
        "records//t1.json",
        "./package.json",
        "a\\b",
        "a\x1b[2J",
        "",
    ] {
        let said = refuse(&to, name, &archive.with([Member::file(name, b"x")]), &["L083"]);
        assert!(!said.contains("\\u001b"), "{said:?}");
    }
    for name in ["RECORDS/t1.json", "records/T1.json", "records/t1.json", "run/lock", "x", "_index.sqlite"] {
        refuse(&to, name, &archive.with([Member::file(name, b"x")]), &["L085"]);
    }
}

#[test]
fn manifests_that_lie_are_refused() {
    let to = receiving(b"");
    let archive = Archive::read(&package(&recorded(), "--annotations"));
    let lies: [Lie; 25] = [
        ("a later format", |m| m["schema_version"] = json!(2), "L084"),
        ("no format", |m| m["schema_version"] = json!(null), "L084"),
        ("an unknown key", |m| m["more"] = json!(1), "L084"),
        ("a missing key", |m| drop(m.as_object_mut().unwrap().shift_remove("counts")), "L084"),
        ("an experiment that leads out", |m| m["experiment_id"] = json!("../x"), "L084"),
        ("another experiment", |m| m["experiment_id"] = json!("exp-2"), "L087"),
        ("another root", |m| m["root"] = json!(ZERO), "L088"),
        ("no attempts", |m| m["attempts"] = json!([]), "L083"),
        ("a trial that leads out", |m| m["attempts"][0]["trial_id"] = json!("../t1"), "L084"),
        ("another trial", |m| m["attempts"][0]["trial_id"] = json!("t0"), "L085"),
        ("another outcome", |m| m["attempts"][0]["outcome"] = json!("scored"), "L088"),
        ("no such outcome", |m| m["attempts"][0]["outcome"] = json!("won"), "L084"),
        ("the same trial twice", |m| m["attempts"][1] = m["attempts"][0].clone(), "L083"),
        ("trials that differ in case", |m| m["attempts"][0]["trial_id"] = json!("T2"), "L083"),
        ("another count", |m| m["counts"]["outcomes"]["scored"] = json!(4), "L088"),
        ("another number of contents", |m| m["counts"]["contents"] = json!(9), "L088"),
        ("another head", |m| m["chains"][0]["head"] = json!(ZERO), "L088"),
        ("another plan", |m| m["plans"] = json!([ZERO]), "L088"),
        (
            "a record that is withheld as well",
            |m| m["withheld"] = json!([{"trial_id": "t1", "attempt": 1, "leaf": ZERO}]),
            "L083",
        ),
        (
            "a trial that never was",
            |m| m["withheld"] = json!([{"trial_id": "t7", "attempt": 1, "leaf": ZERO}]),
            "L088",
        ),
        ("a run file that leads out", |m| m["run"][0]["name"] = json!("../../x.json"), "L083"),
        ("a run file of another kind", |m| m["run"][0]["name"] = json!("lock"), "L083"),
        ("an annotation that leads out", |m| m["annotations"][0]["name"] = json!("../t1.jsonl"), "L083"),
        ("an annotation of nothing", |m| m["annotations"][0]["name"] = json!("t9.jsonl"), "L083"),
        ("another size", |m| m["contents"][0]["size"] = json!(1_000_000_000), "L086"),
    ];
    for (name, lie, id) in lies {
        refuse(&to, name, &with_manifest(&archive, lie), &[id]);
    }
    let with_text = |text: &[u8]| {
        let mut changed = archive.clone();
        changed.members[0] = Member::file("package.json", text);
        changed.bytes()
    };
    let text = String::from_utf8(archive.members[0].content.clone()).unwrap();
    let twice = text.replacen("\"root\"", "\"tool_version\": \"9\",\n  \"root\"", 1);
    for (name, text) in [
        ("not JSON", &b"{"[..]),
        ("not text", b"\xff\xfe"),
        ("deep nesting", "[".repeat(100_000).as_bytes()),
        ("a key twice", twice.as_bytes()),
        ("another spelling", text.replace("  ", "\t").as_bytes()),
        ("a byte-order mark", format!("\u{feff}{text}").as_bytes()),
    ] {
        refuse(&to, name, &with_text(text), &["L084"]);
    }
    let mut later = archive.clone();
    later.members.rotate_left(1);
    refuse(&to, "a manifest that comes last", &later.bytes(), &["L084"]);
    refuse(&to, "nothing", &Archive { members: Vec::new() }.bytes(), &["L084"]);
}

#[test]
fn a_forger_who_changes_digests_too_is_found_by_chain_and_root() {
    let to = receiving(b"");
    let archive = Archive::read(&package(&recorded(), ""));
    let at = archive.members.iter().position(|member| member.name() == "records/t2.json").unwrap();
    let text =
        String::from_utf8(archive.members[at].content.clone()).unwrap().replace("agent_fault", "infra_fault");
    let mut forged = archive.clone();
    forged.members[at] = Member::file("records/t2.json", text.as_bytes());
    let value: Value = serde_json::from_str(&text).unwrap();
    let submitted = value["outputs"]["submission"]["files"]["output.md"]["digest"].clone();
    let mut contents = [value["artefacts"][0]["digest"].to_string(), submitted.to_string()];
    contents.sort();
    let digest = aec_base::digest::Digest::of(text.as_bytes());
    let leaf = format!("{{\"trial\":\"t2\",\"record\":\"{digest}\",\"contents\":[{}]}}", contents.join(","));
    let leaf = aec_ledger::package::merkle::leaf(leaf.as_bytes());
    let changed = |m: &mut Value| {
        m["attempts"][2]["record"] = json!(digest);
        m["attempts"][2]["leaf"] = json!(leaf);
        m["attempts"][2]["size"] = json!(text.len());
        m["attempts"][2]["outcome"] = json!("infra_fault");
        m["counts"]["outcomes"] = json!({"scored": 2, "infra_fault": 2});
    };
    refuse(&to, "an outcome that leaves the mean", &with_manifest(&forged, changed), &["L089"]);
    // Without any chain, the root reveals it.
    let env = recorded();
    std::fs::remove_dir_all(env.path("artefacts/ledger/exp-1/_run")).unwrap();
    let unchained = Archive::read(&package(&env, ""));
    let mut forged = unchained;
    forged.members[at] = Member::file("records/t2.json", text.as_bytes());
    let said = refuse(&to, "the same without a chain", &with_manifest(&forged, changed), &["L088"]);
    assert!(said.contains("the root is another one"), "{said}");
    // A record that refers to a missing content, and a content to which no record refers.
    let digest = archive.members.last().unwrap().name().replace("contents/", "sha256:");
    let mut fewer = archive.clone();
    fewer.members.pop();
    let without = |m: &mut Value| drop(m["contents"].as_array_mut().unwrap().pop());
    refuse(&to, &format!("without {digest}"), &with_manifest(&fewer, without), &["L088"]);
    let extra = aec_base::digest::Digest::of(b"extra");
    let mut more = archive;
    let contents = more.members.iter().position(|member| member.name().starts_with("contents/")).unwrap();
    more.members.truncate(contents);
    more.members.push(Member::file(&format!("contents/{}", extra.hex()), b"extra"));
    let only = |m: &mut Value| m["contents"] = json!([{"digest": extra, "size": 5}]);
    refuse(&to, "with another content", &with_manifest(&more, only), &["L088"]);
}

#[test]
fn chains_that_are_broken_are_refused() {
    let to = receiving(b"");
    let archive = Archive::read(&package(&recorded(), ""));
    let at = archive.members.iter().position(|member| member.name() == "run/chain-s1.jsonl").unwrap();
    let chain = String::from_utf8(archive.members[at].content.clone()).unwrap();
    let lines: Vec<&str> = chain.lines().collect();
    let with = |text: &str| {
        let mut changed = archive.clone();
        changed.members[at] = Member::file("run/chain-s1.jsonl", text.as_bytes());
        with_manifest(&changed, |m| {
            m["run"][0]["digest"] = json!(aec_base::digest::Digest::of(text.as_bytes()));
            m["run"][0]["size"] = json!(text.len());
        })
    };
    refuse(
        &to,
        "reordered",
        &with(&format!("{}\n{}\n{}\n{}\n", lines[1], lines[0], lines[2], lines[3])),
        &["L012"],
    );
    refuse(&to, "torn", &with(&chain[..chain.len() - 3]), &["L010"]);
    refuse(&to, "nonsense", &with("nonsense\n"), &["L011"]);
    refuse(&to, "shorter", &with(&format!("{}\n", lines[0])), &["L088"]);
}

#[test]
fn what_is_not_a_whole_package_is_refused() {
    let to = receiving(b"");
    let bytes = package(&recorded(), "");
    let archive = Archive::read(&bytes);
    let tar = archive.tar();
    for (name, bytes) in [
        ("empty", &b""[..]),
        ("text", b"this is no package"),
        ("a compressed text", &compress(b"this is no package")),
        ("without its checksum", &bytes[..bytes.len() - 1]),
        ("bytes behind the frame", &[bytes.as_slice(), b"x"].concat()),
        ("a second frame", &[bytes.as_slice(), &bytes].concat()),
        ("another archive behind", &compress(&[tar.as_slice(), &tar].concat())),
        ("much padding", &compress(&[tar.as_slice(), &vec![0; 2 << 20]].concat())),
    ] {
        refuse(&to, name, bytes, &["L080"]);
    }
    for share in 1..40 {
        refuse(&to, "truncated", &bytes[..bytes.len() * share / 40], &["L080"]);
    }
    for share in 1..40 {
        refuse(&to, "truncated inside", &compress(&tar[..tar.len() * share / 40]), &["L080", "L085"]);
    }
    let env = receiving(&bytes);
    std::fs::create_dir(env.path("directory")).unwrap();
    for name in ["missing", "directory"] {
        let run = json(&env, &format!("runs import {name}"));
        assert_eq!((run.code, run.errors()[0].0.as_str()), (Some(3), "L080"), "{run:?}");
    }
}

#[test]
fn packages_that_hold_too_much_are_refused() {
    let to = receiving(b"");
    let env = recorded();
    let zeros = "\0".repeat(3 << 20);
    let one = record(&store(&env), "t1", 1, "scored", &[("zeros", &zeros)]);
    std::fs::remove_dir_all(env.path("artefacts/ledger/exp-1")).unwrap();
    write_records(&env, &[("t1", 1, one)]);
    let bytes = package(&env, "");
    assert!(bytes.len() < 10_000, "a small bomb");
    let other = receiving(&bytes);
    let before = tree(&other);
    for size in ["1MiB", "3MiB", "20000"] {
        let run = json(&other, &format!("runs import in.tar.zst --max-size {size}"));
        assert_eq!((run.code, run.errors()[0].0.as_str()), (Some(3), "L081"), "{run:?}");
        assert_eq!(tree(&other), before);
    }
    assert_eq!(run(&other, "runs import in.tar.zst --max-size 100").code, Some(3), "less than the file has");
    assert_eq!(run(&other, "runs import in.tar.zst --max-size x").code, Some(2));
    let archive = Archive::read(&bytes);
    let mut huge = archive.clone();
    huge.members[0].put(124, b"77777777777\0");
    refuse(&to, "a manifest of 8 GiB", &huge.bytes(), &["L081"]);
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(29).unwrap();
    encoder.write_all(&archive.tar()).unwrap();
    refuse(&to, "a window of half a gigabyte", &encoder.finish().unwrap(), &["L080"]);
    let bomb = archive.with([Member::file(&format!("run/plans/{PLAN}.json"), &vec![0; 100 << 20])]);
    refuse(&to, "a bomb that is not on the list", &bomb, &["L085"]);
    assert_eq!(run(&other, "runs import in.tar.zst --max-size 4MiB").code, Some(0));
}
