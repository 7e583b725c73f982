//! Attacks on a ledger, and what `verify` reports.

use super::verify as verify_in;
use super::*;
use crate::example;

fn verify(ledger: &Ledger, experiment: &Name, depth: Depth) -> io::Result<Verified> {
    verify_in(&Scope { ledger, jobs: &ledger.root().join("jobs") }, None, experiment, depth)
}

fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

/// A ledger with an experiment of four attempts at three trials.
fn ledger() -> (tempfile::TempDir, Ledger) {
    let directory = tempfile::tempdir().unwrap();
    let ledger = Ledger::new(directory.path());
    let failed = example::with_outcome(example::record("exp", "c", 1), Outcome::AgentFault);
    let records = [
        example::record("exp", "a", 1),
        example::record("exp", "b", 1),
        example::record("exp", "b", 2),
        failed,
    ];
    example::write_session(&ledger, "20260412-1", &records);
    (directory, ledger)
}

fn at(ledger: &Ledger, file: &str) -> PathBuf {
    ledger.root().join("exp").join(file)
}

fn ids_at(ledger: &Ledger, depth: Depth) -> Vec<String> {
    let verified = verify(ledger, &name("exp"), depth).unwrap();
    verified.problems.iter().map(|problem| problem.id.clone().unwrap()).collect()
}

fn ids(ledger: &Ledger) -> Vec<String> {
    ids_at(ledger, Depth::Full)
}

fn edit(path: &PathBuf, from: &str, to: &str) {
    let text = fs_err::read_to_string(path).unwrap();
    assert!(text.contains(from), "{from}");
    fs_err::write(path, text.replace(from, to)).unwrap();
}

#[test]
fn a_ledger_that_nobody_touched() {
    let (_directory, ledger) = ledger();
    let verified = verify(&ledger, &name("exp"), Depth::Full).unwrap();
    assert_eq!(verified.problems, []);
    assert_eq!((verified.records, verified.chains, verified.links, verified.contents), (4, 1, 4, 3));
    assert_eq!(verified.outcomes, BTreeMap::from([(Outcome::Scored, 3), (Outcome::AgentFault, 1)]));
    let head = ledger.experiment(&name("exp")).head().unwrap().unwrap();
    assert_eq!(verified.head, Some(head));
    assert_eq!(check_head(&verified, head), None);
    assert_eq!(check_head(&verified, Digest::of(b"x")).unwrap().id.as_deref(), Some("L039"));
    assert!(verify(&ledger, &name("none"), Depth::Full).is_err());
}

#[test]
fn an_edited_record() {
    let (_directory, ledger) = ledger();
    edit(&at(&ledger, "a.json"), "0.75", "1.0");
    assert_eq!(ids(&ledger), ["L030"]);
    assert_eq!(ids_at(&ledger, Depth::Quick), ["L030"]);
    // Rewriting its link as well breaks the chain.
    let changed = Digest::of(&fs_err::read(at(&ledger, "a.json")).unwrap());
    let path = at(&ledger, "_run/chain-20260412-1.jsonl");
    let recorded = Chain::read(&path).unwrap().links[0].record;
    edit(&path, &recorded.to_string(), &changed.to_string());
    assert_eq!(ids(&ledger), ["L012"]);
}

#[test]
fn a_deleted_record() {
    let (_directory, ledger) = ledger();
    fs_err::remove_file(at(&ledger, "c.json")).unwrap();
    assert_eq!(ids(&ledger), ["L032"]);
    // If the last line of its chain is removed too, only a head kept elsewhere reveals it.
    let head = ledger.experiment(&name("exp")).head().unwrap().unwrap();
    let path = at(&ledger, "_run/chain-20260412-1.jsonl");
    let text = fs_err::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    fs_err::write(&path, format!("{}\n", lines[..3].join("\n"))).unwrap();
    let verified = verify(&ledger, &name("exp"), Depth::Full).unwrap();
    assert_eq!(verified.problems, []);
    assert_eq!(check_head(&verified, head).unwrap().id.as_deref(), Some("L039"));
    // The same if the whole chain is removed.
    fs_err::remove_file(&path).unwrap();
    assert_eq!(ids(&ledger), ["L038"]);
}

#[test]
fn reordered_and_missing_lines_of_a_chain() {
    let (_directory, ledger) = ledger();
    let path = at(&ledger, "_run/chain-20260412-1.jsonl");
    let text = fs_err::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    fs_err::write(&path, format!("{}\n{}\n{}\n{}\n", lines[1], lines[0], lines[2], lines[3])).unwrap();
    assert!(ids(&ledger).iter().all(|id| id == "L012") && !ids(&ledger).is_empty());
    // Without its line, a record counts as inserted.
    fs_err::write(&path, format!("{}\n{}\n{}\n", lines[0], lines[2], lines[3])).unwrap();
    assert_eq!(ids(&ledger), ["L012", "L031"]);
    fs_err::write(&path, &text[..text.len() - 9]).unwrap();
    assert_eq!(ids(&ledger), ["L010", "L031"]);
}

#[test]
fn an_old_good_record_replayed() {
    let (_directory, ledger) = ledger();
    // A copy under another name.
    fs_err::copy(at(&ledger, "a.json"), at(&ledger, "d.json")).unwrap();
    assert_eq!(ids(&ledger), ["L022"]);
    fs_err::remove_file(at(&ledger, "d.json")).unwrap();
    // A copy as another attempt at the same trial.
    let mut record: TrialRecord =
        serde_json::from_str(&fs_err::read_to_string(at(&ledger, "a.json")).unwrap()).unwrap();
    record.attempt = 2;
    example::write(&ledger, &record);
    assert_eq!(ids(&ledger), ["L031"]);
    fs_err::remove_file(at(&ledger, "a.2.json")).unwrap();
    // A copy in place of a bad record.
    fs_err::copy(at(&ledger, "a.json"), at(&ledger, "c.json")).unwrap();
    assert_eq!(ids(&ledger), ["L022"]);
    // A record from another experiment.
    example::write_session(&ledger, "1", &[example::record("old", "c", 1)]);
    fs_err::copy(ledger.root().join("old/c.json"), at(&ledger, "c.json")).unwrap();
    assert_eq!(ids(&ledger), ["L023"]);
}

#[test]
fn the_same_attempt_recorded_twice() {
    let (_directory, ledger) = ledger();
    let mut better = example::record("exp", "a", 1);
    better.evaluation = Some(example::evaluation(1.0));
    example::write_session(&ledger, "20260412-2", &[better]);
    assert_eq!(ids(&ledger), ["L033"]);
    // A duplicate chain is allowed: importing existing records leaves one.
    let (_directory, ledger) = self::ledger();
    fs_err::copy(at(&ledger, "_run/chain-20260412-1.jsonl"), at(&ledger, "_run/chain-20260413-1.jsonl"))
        .unwrap();
    assert_eq!(ids(&ledger), [""; 0]);
}

#[test]
fn torn_writes() {
    let (_directory, ledger) = ledger();
    let text = fs_err::read_to_string(at(&ledger, "b.2.json")).unwrap();
    fs_err::write(at(&ledger, "b.2.json"), &text[..text.len() / 2]).unwrap();
    fs_err::write(at(&ledger, "c.json"), "").unwrap();
    assert_eq!(ids(&ledger), ["L002", "L002"]);
}

#[test]
fn a_crash_between_artefact_and_record() {
    let (_directory, ledger) = ledger();
    // An artefact without a record is no problem: no record refers to it.
    ledger.contents().put(b"left behind").unwrap();
    fs_err::write(at(&ledger, ".new-1"), "half").unwrap();
    assert_eq!(ids(&ledger), [""; 0]);
    // A record whose artefact is missing or changed.
    let note = ledger.contents().path(Digest::of(b"notes of a\n"));
    fs_err::remove_file(&note).unwrap();
    let other = ledger.contents().path(Digest::of(b"notes of c\n"));
    fs_err::remove_file(&other).unwrap();
    fs_err::write(&other, "nothing").unwrap();
    let found = verify(&ledger, &name("exp"), Depth::Full).unwrap().problems;
    let told: Vec<_> = found
        .iter()
        .map(|problem| (problem.id.as_deref().unwrap(), problem.about.as_deref().unwrap()))
        .collect();
    assert_eq!(told, [("L034", "exp/a"), ("L035", "exp/c")]);
    assert_eq!(ids_at(&ledger, Depth::Quick), [""; 0]);
    std::os::unix::fs::symlink("/etc/hostname", &note).unwrap();
    assert_eq!(ids(&ledger), ["L001", "L035"]);
}

#[test]
fn rules_that_no_trial_breaks() {
    let directory = tempfile::tempdir().unwrap();
    let ledger = Ledger::new(directory.path());
    let mut records = ["a", "b", "c", "d"].map(|trial| example::record("exp", trial, 1));
    records[0].evaluation = Some(example::evaluation(1.5));
    records[1].outcome = Outcome::AgentFault;
    records[2].evaluation = None;
    records[3].plan = Digest::of(b"another plan");
    example::write_session(&ledger, "1", &records);
    assert_eq!(ids(&ledger), ["L037", "L037", "L037", "L036"]);
    // Without plans there is nothing to compare with.
    fs_err::remove_dir_all(at(&ledger, "_run/plans")).unwrap();
    assert_eq!(ids(&ledger), ["L037", "L037", "L037"]);
}
