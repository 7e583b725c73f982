//! Every cheater, really run, against the judge, and against a judge without one of its defences.

use std::path::{Path, PathBuf};

use aec_base::content::ContentStore;
use aec_judge::cheat::{CHEATERS, Cheater, cheat};
use aec_judge::golden::submission_with_output;
use aec_judge::verdict::Outcome;
use aec_xtest::lock::{self, HOST_PLACES};

use crate::judge::naive::{Weakness, naive_reward};
use crate::judge::{GOLDEN, judge, write_task};

fn cheater(name: &str) -> &'static Cheater {
    CHEATERS.iter().find(|cheater| cheater.name.starts_with(name)).unwrap()
}

/// Properties of this host that a cheater might have changed.
fn host_facts(task: &Path) -> Vec<String> {
    let mut facts: Vec<String> = ["/tests", "/workspace", "/logs", "/etc/ld.so.preload"]
        .map(|path| format!("{path} {}", Path::new(path).exists()))
        .to_vec();
    let mut open = vec![task.to_path_buf()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else {
                let digest = aec_base::digest::Digest::of(&std::fs::read(&path).unwrap());
                facts.push(format!("{} {digest}", path.display()));
            }
        }
    }
    facts.sort();
    facts
}

#[test]
fn no_cheater_earns_more_than_doing_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let task = write_task(&dir.path().join("task"));
    let store = ContentStore::new(dir.path().join("store"));
    let judge = judge();
    let clock = std::time::SystemTime::now();
    // The facts include places where other tests let a judge work without a room.
    let _places = lock::hold(HOST_PLACES);
    let before = host_facts(&task.path);
    for cheater in CHEATERS {
        let result =
            cheat(&judge, &task, cheater, &store).unwrap_or_else(|error| panic!("{}: {error}", cheater.name));
        let outcome = result.verdict.as_ref().map_or(Outcome::AgentFault, |verdict| verdict.outcome);
        assert!(result.reward() <= 0.0, "{} earned {}: {result:?}", cheater.name, result.reward());
        assert!(matches!(outcome, Outcome::Scored | Outcome::AgentFault), "{}: {result:?}", cheater.name);
        assert_eq!(host_facts(&task.path), before, "{}", cheater.name);
    }
    assert!(clock.elapsed().is_ok(), "the clock goes forward");
    let honest = submission_with_output(&task, GOLDEN.as_bytes(), &store).unwrap();
    let verdict = judge.verdict(&task, &honest);
    assert_eq!(verdict.reward, Some(1.0), "the honest answer still gets everything: {verdict:?}");
}

#[test]
fn each_attack_works_on_a_judge_without_its_defence() {
    let dir = tempfile::tempdir().unwrap();
    let task = write_task(&dir.path().join("task"));
    let judge = judge();
    for (name, weaknesses) in [
        ("01", &[Weakness::SameRoom, Weakness::IgnoreExit][..]),
        ("02", &[Weakness::SameRoom, Weakness::IgnoreExit]),
        ("03", &[Weakness::SameRoom, Weakness::IgnoreExit, Weakness::KeepProcesses]),
        ("04", &[Weakness::SameRoom, Weakness::IgnoreExit, Weakness::PreferText]),
        ("06", &[Weakness::SameRoom, Weakness::PythonPath]),
        ("07", &[Weakness::SameRoom, Weakness::UserSite]),
        ("09", &[Weakness::SameRoom, Weakness::TestsWritable]),
        ("10", &[Weakness::SameRoom, Weakness::TestsWritable, Weakness::TestsPresent]),
        ("11", &[Weakness::SameRoom, Weakness::TestsPresent]),
        ("13", &[Weakness::SameRoom, Weakness::WorkspaceFirstInPath]),
        ("15", &[Weakness::SameRoom, Weakness::TestsPresent, Weakness::FollowLinks]),
    ] {
        // An attack that is a race (03) loses some rounds: the reward may be read while it is being rewritten. Winning
        // one round is enough to show that the attack is real.
        let won = (0..20).any(|_| naive_reward(&judge, &task, cheater(name), weaknesses) > 0.0);
        assert!(won, "{name} should have worked without its defence");
    }
}

#[test]
fn secrets_of_the_host_are_not_in_the_room() {
    let dir = tempfile::tempdir().unwrap();
    let task = write_task(&dir.path().join("task"));
    let store = ContentStore::new(dir.path().join("store"));
    // The canary is in the environment of the program that opens the rooms.
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "judge::cheaters::leak_probe", "--nocapture", "--include-ignored"])
        .env("CANARY_API_KEY", "canary-in-the-coal-mine")
        .env("AEC_LEAK_PROBE", dir.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let contents = all_files(store.root());
    assert!(!contents.is_empty());
    let leaked = contents
        .iter()
        .any(|path| String::from_utf8_lossy(&std::fs::read(path).unwrap()).contains("canary-in"));
    assert!(!leaked);
    drop(task);
}

fn all_files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { all_files(&path) } else { vec![path] }).collect()
}

/// The inner half of the test above.
#[test]
#[ignore = "the test above starts it"]
fn leak_probe() {
    let directory = PathBuf::from(std::env::var_os("AEC_LEAK_PROBE").unwrap());
    let task = write_task(&directory.join("task"));
    for name in ["35", "12", "11"] {
        cheat(&judge(), &task, cheater(name), &ContentStore::new(directory.join("store"))).unwrap();
    }
}
