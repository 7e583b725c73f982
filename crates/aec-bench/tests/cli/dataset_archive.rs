//! `dataset export` and `dataset import`: the same bytes every time, and manipulated archives are refused.

use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt, symlink};

use aec_xtest::TestEnv;
use aec_xtest::tree::{TASK_TOML, write_task};
use serde_json::{Value, json};

use crate::cli::archive::{Archive, Member, compress};
use crate::cli::dataset_commands::{json, project, run};
use crate::cli::empty_project;

/// A project with `set@1.0.0`, and its archive.
fn exported() -> (TestEnv, Vec<u8>) {
    let env = project();
    env.write("tasks/civil/manning/data/Zürich.csv", "1,2\n");
    let script = env.path("tasks/civil/manning/tests/test.sh");
    std::fs::set_permissions(script, PermissionsExt::from_mode(0o755)).unwrap();
    assert_eq!(run(&env, "dataset create --name set --version 1.0.0 --domain civil").code, Some(0));
    assert_eq!(run(&env, "dataset export set --output set.tar.zst").code, Some(0));
    let bytes = std::fs::read(env.path("set.tar.zst")).unwrap();
    (env, bytes)
}

/// The archive with another manifest.
fn with_manifest(archive: &Archive, change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut archive = archive.clone();
    let mut manifest: Value = serde_json::from_slice(&archive.members[0].content).unwrap();
    change(&mut manifest);
    archive.members[0] = Member::file("manifest.json", manifest.to_string().as_bytes());
    archive.bytes()
}

/// Everything below the project except the archive, as one text.
pub(crate) fn tree(env: &TestEnv) -> String {
    let script = "find . -path ./in.tar.zst -prune -o -printf '%P %M %s\\n' | sort";
    let output =
        std::process::Command::new("bash").args(["-c", script]).current_dir(env.dir()).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn an_export_is_the_same_bytes_every_time_and_everywhere() {
    let (env, bytes) = exported();
    insta::assert_snapshot!("dataset_export", run(&env, "dataset export set -o again.tar.zst").snapshot());
    // Times, other permissions, and files that are no part of a task do not matter.
    env.write("tasks/civil/manning/tests/__pycache__/x.pyc", "x");
    let file = env.path("tasks/civil/manning/instruction.md");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    std::fs::File::options().write(true).open(file).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    assert_eq!(run(&env, "dataset export set@1.0.0 -o again.tar.zst").code, Some(0));
    assert!(std::fs::read(env.path("again.tar.zst")).unwrap() == bytes);
    let archive = Archive::read(&bytes);
    let names: Vec<String> = archive.members.iter().map(Member::name).collect();
    assert_eq!(names[0], "manifest.json");
    assert!(names[1..].is_sorted());
    assert!(archive.bytes() != bytes, "another level of compression");
    assert!(
        archive.tar() == zstd::decode_all(bytes.as_slice()).unwrap(),
        "nothing in a header is left to chance"
    );

    // Imported into another project with another tasks root, and exported again.
    let other = empty_project();
    other.write("aec-bench.toml", "[paths]\ntasks = \"catalogue/of tasks\"\n");
    other.write("in.tar.zst", &bytes);
    insta::assert_snapshot!("dataset_import", run(&other, "dataset import in.tar.zst").snapshot());
    assert_eq!(run(&other, "dataset verify --all").code, Some(0));
    assert_eq!(run(&other, "dataset export set -o out.tar.zst").code, Some(0));
    assert!(std::fs::read(other.path("out.tar.zst")).unwrap() == bytes);
    let mode = |path: &str| other.path(path).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("catalogue/of tasks/civil/manning/tests/test.sh"), 0o755);
    assert_eq!(mode("catalogue/of tasks/civil/manning/task.toml"), 0o644);
    assert_eq!(other.read("catalogue/of tasks/civil/manning/data/Zürich.csv"), "1,2\n");
}

#[test]
fn an_export_that_fails_leaves_what_was_there() {
    let (env, bytes) = exported();
    env.write("tasks/civil/manning/new", "");
    assert_eq!(run(&env, "dataset export set --output set.tar.zst").code, Some(3));
    assert!(std::fs::read(env.path("set.tar.zst")).unwrap() == bytes);
    assert_eq!(run(&env, "dataset export none --output x").code, Some(3));
    assert_eq!(run(&env, "dataset export set").code, Some(2));
    env.write("file", "");
    std::fs::remove_file(env.path("tasks/civil/manning/new")).unwrap();
    assert_eq!(run(&env, "dataset export set --output file/x.tar.zst").code, Some(4));
}

#[test]
fn an_import_can_be_tried_and_repeated() {
    let (_, bytes) = exported();
    let env = empty_project();
    env.write("in.tar.zst", &bytes);
    let before = tree(&env);
    let tried = json(&env, "dataset import in.tar.zst --dry-run").data();
    assert_eq!(
        (&tried["dry_run"], &tried["is_new"], &tried["added"]),
        (&json!(true), &json!(true), &json!(["civil/manning"]))
    );
    assert_eq!(tree(&env), before, "a trial writes nothing");
    assert_eq!(json(&env, "dataset import in.tar.zst").data()["is_new"], true);
    let after = tree(&env);
    let again = json(&env, "dataset import in.tar.zst").data();
    assert_eq!((&again["is_new"], &again["kept"]), (&json!(false), &json!(["civil/manning"])));
    assert_eq!(tree(&env), after);
    // A lost task is restored.
    std::fs::remove_dir_all(env.path("tasks/civil")).unwrap();
    assert_eq!(json(&env, "dataset import in.tar.zst").data()["added"], json!(["civil/manning"]));
    assert_eq!(tree(&env), after);
}

#[test]
fn an_import_changes_nothing_that_is_here() {
    let (_, bytes) = exported();
    let refused = |arrange: &dyn Fn(&TestEnv), id: &str| {
        let env = empty_project();
        env.write("in.tar.zst", &bytes);
        arrange(&env);
        let before = tree(&env);
        for flags in ["", " --dry-run"] {
            let run = json(&env, &format!("dataset import in.tar.zst{flags}"));
            assert_eq!((run.code, run.errors()[0].0.as_str()), (Some(3), id), "{run:?}");
            assert_eq!(tree(&env), before);
        }
    };
    refused(&|env| write_task(&env.path("tasks/civil/manning"), TASK_TOML), "D048");
    refused(&|env| env.write("tasks/civil/manning", "a file"), "D048");
    refused(&|env| env.write("tasks/civil", "a file"), "D048");
    refused(&|env| symlink("/", env.path("tasks/civil")).unwrap(), "D048");
    refused(&|env| symlink("/nowhere", env.path("tasks/civil")).unwrap(), "D048");
    refused(&|env| write_task(&env.path("tasks/civil"), TASK_TOML), "D048");
    let other_set = |env: &TestEnv| {
        write_task(&env.path("tasks/civil/x"), TASK_TOML);
        assert_eq!(run(env, "dataset create --name set --version 1.0.0").code, Some(0));
    };
    refused(&other_set, "D049");
    refused(&|env| env.write("artefacts/datasets/set/1.0.0/manifest.json", "{"), "D002");
    let env = empty_project();
    env.write("in.tar.zst", &bytes);
    std::fs::create_dir(env.path("../outside")).unwrap();
    let outside = json(&env, "dataset import in.tar.zst --tasks-root ../outside");
    assert_eq!((outside.code, outside.errors()[0].0.as_str()), (Some(3), "D035"));
}

#[test]
fn all_conflicts_are_listed() {
    let env = project();
    assert_eq!(run(&env, "dataset create --name set --version 1.0.0").code, Some(0));
    assert_eq!(run(&env, "dataset export set -o in.tar.zst").code, Some(0));
    for task in ["civil/manning", "ground/pile"] {
        env.write(format!("tasks/{task}/instruction.md"), "changed");
    }
    std::fs::remove_dir_all(env.path("tasks/electrical")).unwrap();
    insta::assert_snapshot!("dataset_import_conflicts", run(&env, "dataset import in.tar.zst").snapshot());
    assert!(!env.path("tasks/electrical").exists());
}

/// Imports bytes that must be refused, checks that nothing was written, and returns the printed error.
fn refuse(name: &str, bytes: &[u8], id: &str) -> String {
    let env = empty_project();
    env.write("in.tar.zst", bytes);
    let before = tree(&env);
    for flags in ["", " --dry-run"] {
        let run = json(&env, &format!("dataset import in.tar.zst{flags}"));
        assert_eq!(run.code, Some(3), "{name}: {run:?}");
        assert_eq!(run.errors()[0].0, id, "{name}: {run:?}");
        assert_eq!(tree(&env), before, "{name}");
    }
    run(&env, "dataset import in.tar.zst").stderr
}

#[test]
fn members_that_are_not_plain_files_are_refused() {
    let archive = Archive::read(&exported().1);
    let inside = "tasks/civil/manning/x";
    for (name, kind) in [
        ("a hard link", b'1'),
        ("a symbolic link", b'2'),
        ("a character device", b'3'),
        ("a block device", b'4'),
        ("a named pipe", b'6'),
        ("a contiguous file", b'7'),
        ("an old sparse file", b'S'),
        ("an extended header", b'x'),
        ("a global header", b'g'),
        ("a long name", b'L'),
        ("a long link", b'K'),
        ("a volume header", b'V'),
        ("a dump directory", b'D'),
        ("a solaris header", b'X'),
        ("an unknown byte", 0xff),
    ] {
        let said = refuse(name, &archive.with([Member::kind(inside, kind, "/etc/passwd")]), "D043");
        assert!(said.contains("nothing of it was used"), "{name}: {said:?}");
    }
    let link = Member::kind("tasks/civil/manning/d", b'2', "/tmp");
    refuse(
        "a link and a file below it",
        &archive.with([link, Member::file("tasks/civil/manning/d/f", b"")]),
        "D043",
    );
    let mut disguised = Member::file(inside, b"x");
    disguised.put(157, b"/etc/passwd");
    refuse("a file with a target", &archive.with([disguised]), "D043");
    for mode in [b"0004755\0", b"0000777\0", b"0000600\0"] {
        let mut member = Member::file(inside, b"x");
        member.put(100, mode);
        refuse("a mode", &archive.with([member]), "D043");
    }
    let mut directory = Member::file("tasks/civil/manning/d/", b"x");
    directory.put(100, b"0000755\0");
    directory.put(156, b"5");
    refuse("a directory with content", &archive.with([directory]), "D043");
    let mut extended = Member::file("tasks/civil/manning/pax", b"30 path=../../../etc/passwd\n\n");
    extended.put(156, b"x");
    refuse("an extended header that renames", &archive.with([extended, Member::file(inside, b"x")]), "D043");
}

#[test]
fn names_that_are_not_plain_are_refused() {
    let archive = Archive::read(&exported().1);
    for name in [
        "../evil",
        "tasks/../evil",
        "tasks/civil/manning/../../../../evil",
        "/etc/evil",
        "//evil",
        "./tasks/civil/manning/x",
        "tasks//civil/manning/x",
        "tasks\\civil\\manning\\x",
        "tasks/civil/manning/a\\b",
        "tasks/civil/manning/a\nb",
        "tasks/civil/manning/\x1b[2J",
        "tasks/civil/manning/a\u{9b}b",
        "",
        "tasks/civil/manning/",
        "tasks/civil/manning/__pycache__/verify.pyc",
        "tasks/civil/manning/tests/a.pyc",
        "tasks/civil/manning/.DS_Store",
        "tasks/civil/manning/.x.swp",
    ] {
        let said = refuse(name, &archive.with([Member::file(name, b"x")]), "D044");
        assert!(!said.contains('\x1b'), "{said:?}");
    }
    let mut hidden = Member::file("tasks/civil/manning/a", b"x");
    hidden.put(30, b"../../evil");
    refuse("a name behind a NUL", &archive.with([hidden]), "D044");
    let mut prefix = Member::file("civil/manning/x", b"x");
    prefix.put(345, b"../tasks");
    refuse("a prefix that leads out", &archive.with([prefix]), "D044");
    let mut not_text = Member::file("tasks/civil/manning/a", b"x");
    not_text.put(20, b"\xff\xfe");
    refuse("a name that is not text", &archive.with([not_text]), "D044");
}

#[test]
fn names_that_could_be_taken_for_each_other_are_refused() {
    let archive = Archive::read(&exported().1);
    let at = |name: &str| Member::file(&format!("tasks/civil/manning/{name}"), b"x");
    for (case, names) in [
        ("a duplicate of what is there", &["task.toml"][..]),
        ("a duplicate", &["new", "new"]),
        ("case", &["Task.toml"]),
        ("case of a directory", &["Tests/new"]),
        ("Unicode forms", &["caf\u{e9}", "cafe\u{301}"]),
        ("Unicode form of what is there", &["data/Zu\u{308}rich.csv"]),
        ("sharp s", &["stra\u{df}e", "STRASSE"]),
        ("a file below a file", &["task.toml/x"]),
        ("a file in place of a directory", &["tests"]),
    ] {
        refuse(case, &archive.with(names.iter().map(|name| at(name))), "D045");
    }
}

#[test]
fn members_of_no_declared_task_are_refused() {
    let archive = Archive::read(&exported().1);
    for name in [
        "aec-bench.toml",
        ".env",
        "manifest.json",
        "tasks",
        "tasks/civil",
        "tasks/civil/manning",
        "tasks/civil/manning2/x",
        "tasks/civil/mannin/x",
        "Tasks/civil/manning/x",
        "artefacts/datasets/other/1.0.0/manifest.json",
        ".git/hooks/pre-commit",
    ] {
        refuse(name, &archive.with([Member::file(name, b"x")]), "D046");
    }
    let mut directory = Member::kind("elsewhere/", b'5', "");
    directory.put(100, b"0000755\0");
    refuse("a directory elsewhere", &archive.with([directory]), "D046");
    // Directories above and inside tasks are harmless.
    let env = empty_project();
    let directories =
        ["tasks/", "tasks/civil/", "tasks/civil/manning/", "tasks/civil/manning/tests/"].map(|name| {
            let mut directory = Member::kind(name, b'5', "");
            directory.put(100, b"0000755\0");
            directory
        });
    env.write("in.tar.zst", archive.with(directories));
    assert_eq!(run(&env, "dataset import in.tar.zst").code, Some(0));
    assert_eq!(run(&env, "dataset verify set").code, Some(0));
}

#[test]
fn content_that_is_not_what_the_hashes_say_is_refused() {
    let archive = Archive::read(&exported().1);
    let at = |name: &str| archive.members.iter().position(|member| member.name().ends_with(name)).unwrap();
    let mut changed = archive.clone();
    let verifier = changed.members[at("tests/verify.py")].name();
    changed.members[at("tests/verify.py")] = Member::file(&verifier, b"print('1.0')\n");
    refuse("another verifier", &changed.bytes(), "D047");
    let mut executable = archive.clone();
    executable.members[at("tests/verify.py")].put(100, b"0000755\0");
    refuse("an executable bit", &executable.bytes(), "D047");
    let mut fewer = archive.clone();
    fewer.members.remove(at("tests/verify.py"));
    refuse("a missing file", &fewer.bytes(), "D047");
    refuse("one more file", &archive.with([Member::file("tasks/civil/manning/new", b"")]), "D047");
    let nothing = Archive { members: archive.members[..1].to_vec() };
    refuse("no files", &nothing.bytes(), "D047");
    let said = refuse(
        "a manifest that was changed",
        &with_manifest(&archive, |m| m["tasks"][0]["content_hash"] = json!(format!("sha256:{:064}", 0))),
        "D012",
    );
    assert!(said.contains("in.tar.zst/manifest.json"), "{said:?}");
}

#[test]
fn manifests_in_archives_are_checked_like_any_other() {
    let archive = Archive::read(&exported().1);
    let path = |path: &'static str| move |m: &mut Value| m["tasks"][0]["task_path"] = json!(path);
    refuse("a path that leads out", &with_manifest(&archive, path("../../civil/manning")), "D015");
    refuse("an absolute path", &with_manifest(&archive, path("/tasks/civil/manning")), "D015");
    refuse("another directory", &with_manifest(&archive, path("artefacts/civil/manning")), "D015");
    refuse(
        "another id",
        &with_manifest(&archive, |m| m["tasks"][0]["task_id"] = json!("civil.other")),
        "D015",
    );
    refuse("a name that leads out", &with_manifest(&archive, |m| m["name"] = json!("../x")), "D005");
    refuse("an invalid version", &with_manifest(&archive, |m| m["version"] = json!("../../x")), "D005");
    refuse("build metadata", &with_manifest(&archive, |m| m["version"] = json!("1.0.0+x")), "D005");
    refuse("a newer format", &with_manifest(&archive, |m| m["schema_version"] = json!(9)), "D016");
    refuse(
        "the same task twice",
        &with_manifest(&archive, |m| {
            let task = m["tasks"][0].clone();
            m["tasks"].as_array_mut().unwrap().push(task);
        }),
        "D013",
    );
    let with_text = |text: &[u8]| {
        let mut changed = archive.clone();
        changed.members[0] = Member::file("manifest.json", text);
        changed.bytes()
    };
    refuse("not JSON", &with_text(b"{"), "D002");
    refuse("duplicate keys", &with_text(br#"{"name": "a", "name": "b"}"#), "D002");
    refuse("deep nesting", &with_text("[".repeat(100_000).as_bytes()), "D002");
    refuse("not text", &with_text(b"\xff\xfe"), "D001");
    let mut later = archive.clone();
    later.members.rotate_left(1);
    refuse("a manifest that comes last", &later.bytes(), "D042");
    let mut directory = archive.clone();
    directory.members[0] = Member::kind("manifest.json", b'5', "");
    directory.members[0].put(100, b"0000755\0");
    refuse("a manifest that is a directory", &directory.bytes(), "D042");
    refuse("nothing", &Archive { members: Vec::new() }.bytes(), "D042");
}

#[test]
fn what_is_not_a_whole_archive_is_refused() {
    let (_, bytes) = exported();
    let archive = Archive::read(&bytes);
    let tar = archive.tar();
    refuse("empty", b"", "D040");
    refuse("text", b"this is no archive", "D040");
    refuse("gzip", b"\x1f\x8b\x08\0\0\0\0\0\0\x03", "D040");
    refuse("a compressed text", &compress(b"this is no archive"), "D040");
    for share in 1..20 {
        refuse("truncated", &bytes[..bytes.len() * share / 20], "D040");
    }
    refuse("without its checksum", &bytes[..bytes.len() - 1], "D040");
    let mut flipped = bytes.clone();
    let last = flipped.len() - 1;
    flipped[last] ^= 1;
    refuse("another checksum", &flipped, "D040");
    refuse("truncated inside a file", &compress(&tar[..700]), "D040");
    let mut damaged = tar.clone();
    damaged[10] ^= 1;
    refuse("a damaged header", &compress(&damaged), "D040");
    refuse("bytes behind the frame", &[bytes.as_slice(), b"x"].concat(), "D040");
    refuse("a second frame", &[bytes.as_slice(), &compress(b"x")].concat(), "D040");
    refuse("bytes behind the archive", &compress(&[tar.as_slice(), b"x"].concat()), "D040");
    refuse("another archive behind the archive", &compress(&[tar.as_slice(), &tar].concat()), "D040");
    refuse("much padding", &compress(&[tar.as_slice(), &vec![0; 2 << 20]].concat()), "D040");
    let mut gnu = archive.clone();
    gnu.members[1].put(257, b"ustar  \0");
    refuse("another format", &gnu.bytes(), "D040");
    let mut negative = archive;
    negative.members[1].put(100, b"-000644\0");
    refuse("a mode that is no number", &negative.bytes(), "D040");

    let env = empty_project();
    for (name, arrange) in [
        ("missing", (|_| ()) as fn(&TestEnv)),
        ("directory", |env| std::fs::create_dir(env.path("directory")).unwrap()),
        ("loop", |env| symlink("loop", env.path("loop")).unwrap()),
        ("fifo", |env| {
            let kind = rustix::fs::FileType::Fifo;
            rustix::fs::mknodat(rustix::fs::CWD, env.path("fifo"), kind, 0o600.into(), 0).unwrap();
        }),
    ] {
        arrange(&env);
        let run = json(&env, &format!("dataset import {name}"));
        assert_eq!((run.code, run.errors()[0].0.as_str()), (Some(3), "D040"), "{run:?}");
    }
}

#[test]
fn archives_that_hold_too_much_are_refused() {
    let archive = Archive::read(&exported().1);
    let sized = |size: &[u8; 12]| {
        let mut member = Member::file("tasks/civil/manning/x", b"");
        member.put(124, size);
        archive.with([member])
    };
    refuse("300 MB", &sized(b"02260000000\0"), "D041");
    refuse("8 GiB", &sized(b"77777777777\0"), "D041");
    refuse("a size in binary", &sized(b"\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff"), "D041");
    let mut manifest = archive.clone();
    manifest.members[0].put(124, b"00500000000\0");
    refuse("a manifest of 80 MB", &manifest.bytes(), "D041");
    // A frame that requests a window of half a gigabyte.
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(29).unwrap();
    encoder.write_all(&archive.tar()).unwrap();
    refuse("a window", &encoder.finish().unwrap(), "D040");
    // A bomb: 200 MB of zeros in one file. The limits allow it, but the hash does not match.
    let bomb = archive.with([Member::file("tasks/civil/manning/zeros", &vec![0; 200 << 20])]);
    assert!(bomb.len() < 100_000);
    refuse("a bomb", &bomb, "D047");
}
