//! Directories and files that no recorder leaves.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use aec_base::problem::Severity;
use aec_model::cassette::{Cache, Player};

use crate::cassette::{lines, open, record, recorder, reply, request, text};

const FIRST: &str = "calls-000001.jsonl";

/// A directory with two calls of one conversation and one of another.
fn recorded() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let recorder = recorder(dir.path());
    record(&recorder, "s", &request(&["one"]), &Ok(reply("two")));
    record(&recorder, "s", &request(&["one", "two", "three"]), &Ok(reply("four")));
    record(&recorder, "s", &request(&["alone"]), &Ok(reply("here")));
    let path = dir.path().join(FIRST);
    (dir, path)
}

fn problems(directory: &Path) -> String {
    let problems = match Player::open(directory) {
        Ok((_, problems)) => problems,
        Err(problems) => {
            assert!(!problems.is_empty());
            problems
        }
    };
    lines(&problems, directory)
}

fn whole() -> String {
    let (_dir, path) = recorded();
    std::fs::read_to_string(path).unwrap()
}

/// The problems of a directory with this file, and which of the three calls remain.
fn with_content(change: impl FnOnce(&str) -> Vec<u8>) -> (String, Vec<String>) {
    static WHOLE: LazyLock<String> = LazyLock::new(whole);
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join(FIRST), change(&WHOLE)).unwrap();
    let mut left = Vec::new();
    let problems = match Player::open(dir.path()) {
        Ok((player, problems)) => {
            for texts in [&["one"][..], &["one", "two", "three"], &["alone"]] {
                left.extend(player.play("s", "m", &request(texts)).map(|played| text(&played)));
            }
            problems
        }
        Err(problems) => problems,
    };
    (lines(&problems, dir.path()), left)
}

/// The content with one line changed.
fn line(content: &str, number: usize, change: impl Fn(&str) -> String) -> Vec<u8> {
    let lines = content.split_inclusive('\n').enumerate();
    let changed = lines.map(|(index, line)| if index + 1 == number { change(line) } else { line.to_owned() });
    changed.collect::<String>().into_bytes()
}

#[test]
fn directories() {
    let dir = tempfile::tempdir().unwrap();
    insta::assert_snapshot!(problems(dir.path()), @"error K010 DIR: the directory holds no cassette");
    std::fs::write(dir.path().join("notes.txt"), "x").unwrap();
    assert!(problems(dir.path()).contains("K010"));
    insta::assert_snapshot!(problems(&dir.path().join("none")), @"error K001 DIR: cannot read the directory of cassettes: failed to read directory `DIR`: No such file or directory (os error 2)");
    let file = dir.path().join("notes.txt");
    insta::assert_snapshot!(problems(&file), @"error K001 DIR: cannot read the directory of cassettes: failed to read directory `DIR`: Not a directory (os error 20)");
    let Err(problems) = Cache::open(&file, std::sync::Arc::default()) else { panic!() };
    assert_eq!(problems[0].id.as_deref(), Some("K001"));
}

#[test]
fn a_recording_without_calls_is_a_cassette() {
    let dir = tempfile::tempdir().unwrap();
    drop(recorder(dir.path()));
    let (player, problems) = open(dir.path());
    assert!(player.is_empty() && problems.is_empty());
}

#[test]
fn files_that_are_none() {
    let (dir, path) = recorded();
    std::fs::rename(&path, dir.path().join("elsewhere")).unwrap();
    std::os::unix::fs::symlink(dir.path().join("elsewhere"), &path).unwrap();
    insta::assert_snapshot!(problems(dir.path()), @"error K001 DIR/calls-000001.jsonl: cannot read the cassette: it is a symbolic link, not a regular file");
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    insta::assert_snapshot!(problems(dir.path()), @"error K001 DIR/calls-000001.jsonl: cannot read the cassette: it is a directory, not a regular file");
}

#[test]
fn first_lines() {
    let header = "{\"format\":\"aec-bench cassette\",\"schema_version\":1}\n";
    let said = |content: &[u8]| with_content(|_| content.to_vec()).0;
    insta::assert_snapshot!(said(b""), @"note K015 DIR/calls-000001.jsonl: the cassette is empty");
    assert_eq!(said(&header.as_bytes()[..20]), said(b""));
    insta::assert_snapshot!(said(b"\x7fELF\x00\x01\xff\n\x00\n"), @"error K011 DIR/calls-000001.jsonl:1: this is not a cassette: its first line does not say so");
    insta::assert_snapshot!(said(header.replace('1', "2").as_bytes()), @"error K012 DIR/calls-000001.jsonl:1: the cassette has schema version 2; this aec-bench reads up to 1");
    for other in [
        "{}\n",
        "\n",
        "[]\n",
        "{\"format\":\"aec-bench cassette\"}\n",
        "x",
        "{\"format\":\"f\",\"schema_version\":1}\n",
    ] {
        assert!(said(other.as_bytes()).contains("K011"), "{other}");
    }
    assert_eq!(said(header.as_bytes()), "");
    assert_eq!(said(header.replace("1}", "1,\"more\":true}").as_bytes()), "", "further keys may come");
}

#[test]
fn a_torn_end_is_left_out() {
    let (said, left) = with_content(|content| content.as_bytes()[..content.len() - 1].to_vec());
    insta::assert_snapshot!(said, @"note K013 DIR/calls-000001.jsonl:14: the last line is not complete and is left out");
    assert_eq!(left, ["two", "four"]);
    // Wherever it is torn, all earlier complete calls remain and the worst problem is a note.
    let whole = whole();
    let dir = tempfile::tempdir().unwrap();
    for end in 1..whole.len() {
        std::fs::write(dir.path().join(FIRST), &whole[..end]).unwrap();
        let calls = whole[..end]
            .split_inclusive('\n')
            .filter(|line| line.starts_with("{\"call\"") && line.ends_with('\n'));
        let (player, problems) = open(dir.path());
        assert_eq!(player.len(), calls.count(), "{end}");
        assert!(problems.iter().all(|problem| problem.severity == Severity::Note), "{end} {problems:?}");
    }
}

#[test]
fn damage_in_the_middle_costs_one_call() {
    let content = whole();
    let call = content.lines().position(|line| line.starts_with("{\"call\"")).unwrap() + 1;
    for damage in [
        &b"not JSON\n"[..],
        b"\xff\xfe\n",
        b"\n",
        b"{}\n",
        b"{\"call\":{\"scope\":\"s\"}}\n",
        b"{\"new\":{}}\n",
    ] {
        let (said, left) = with_content(|content| {
            let before: usize = content.split_inclusive('\n').take(call - 1).map(str::len).sum();
            let after: usize = content.split_inclusive('\n').take(call).map(str::len).sum();
            [&content.as_bytes()[..before], damage, &content.as_bytes()[after..]].concat()
        });
        assert!(said.starts_with(&format!("warning K002 DIR/{FIRST}:{call}: ")), "{said}");
        assert_eq!(said.lines().count(), 1);
        assert_eq!(left, ["four", "here"]);
    }
}

#[test]
fn missing_references() {
    // The first message.
    let (said, left) = with_content(|content| line(content, 2, |_| "gone\n".to_owned()));
    insta::assert_snapshot!(said, @r"
    warning K002 DIR/calls-000001.jsonl:2: the line is damaged and left out: expected value at column 1
    warning K014 DIR/calls-000001.jsonl:3: the line is left out: it refers to message 1, which is not in the file
    warning K014 DIR/calls-000001.jsonl:5: the line is left out: it refers to turn 2, which is not in the file
    warning K014 DIR/calls-000001.jsonl:6: the line is left out: it refers to turn 2, which is not in the file
    warning K014 DIR/calls-000001.jsonl:8: the line is left out: it refers to turn 4, which is not in the file
    warning K014 DIR/calls-000001.jsonl:10: the line is left out: it refers to turn 6, which is not in the file
    ");
    assert_eq!(left, ["here"]);
    // References to itself and to later numbers, and numbers given twice.
    let (said, _) =
        with_content(|content| line(content, 3, |line| line.replace("\"number\"", "\"after\":2,\"number\"")));
    assert!(said.contains("K014") && said.contains("turn 2"), "{said}");
    let (said, _) =
        with_content(|content| line(content, 3, |line| line.replace("\"number\":2", "\"number\":1")));
    assert!(said.contains("number 1 was given before"), "{said}");
    let (said, left) = with_content(|content| {
        line(content, 3, |line| line.replace("\"number\":2", "\"number\":4294967295"))
    });
    assert!(said.contains("was given before"), "{said}");
    assert!(left.is_empty());
}

#[test]
fn calls_that_stand_there_twice() {
    let (said, left) = with_content(|content| {
        let last = content.lines().last().unwrap();
        format!("{content}{last}\n").into_bytes()
    });
    insta::assert_snapshot!(said, @"warning K018 DIR/calls-000001.jsonl: calls that are in the file twice, of which the first is used: 1");
    assert_eq!(left, ["two", "four", "here"]);
}

#[test]
fn many_damaged_lines_are_counted() {
    let (said, left) = with_content(|content| format!("{content}{}", "damaged\n".repeat(500)).into_bytes());
    assert_eq!(said.lines().count(), 21, "{said}");
    assert!(said.ends_with("480 more damaged lines"), "{said}");
    assert_eq!(left.len(), 3);
}

#[test]
fn a_huge_line_is_passed_over() {
    let (said, left) = with_content(|content| {
        line(content, 4, |line| format!("{}\n{line}", "x".repeat(64 * 1024 * 1024 + 1)))
    });
    assert!(said.starts_with(&format!("warning K002 DIR/{FIRST}:4: ")), "{said}");
    assert_eq!(left.len(), 3);
}

#[test]
fn texts_of_the_wrong_form_are_a_miss() {
    let (dir, path) = recorded();
    let content = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, content.replace("\"assistant\"", "\"nobody\"")).unwrap();
    let (player, _) = open(dir.path());
    let miss = player.play("s", "m", &request(&["one"])).unwrap_err().to_string();
    assert!(miss.contains("cannot be read") && miss.contains("nobody"), "{miss}");
    // A file that changes while the player has it open.
    std::fs::write(&path, "").unwrap();
    let miss = player.play("s", "m", &request(&["alone"])).unwrap_err().to_string();
    assert!(miss.contains("cannot be read"), "{miss}");
}

#[test]
fn recording_where_nothing_can_be_written() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let Err(error) = aec_model::cassette::Recorder::create(&file, std::sync::Arc::default()) else {
        panic!()
    };
    assert!(error.to_string().contains("file"), "{error}");
}
