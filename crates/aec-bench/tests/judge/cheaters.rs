//! Every cheater, really run, against the judge, and against a judge without one of its defences.

use std::path::{Path, PathBuf};
use std::process::Command;

use aec_base::content::ContentStore;
use aec_judge::cheat::{CHEATERS, Cheater, cheat};
use aec_judge::golden::submission_with_output;
use aec_task::id::TaskId;
use aec_task::task::Task;
use aec_xtest::TestEnv;
use aec_xtest::lock::{self, HOST_PLACES};
use serde_json::{Value, json};

use crate::judge::naive::{Weakness, answer_in_sight_of, naive_reward};
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
        assert!(result.reward() <= 0.0, "{} earned {}: {result:?}", cheater.name, result.reward());
        assert!(result.counts(), "{}: {result:?}", cheater.name);
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
        ("40", &[Weakness::SameRoom, Weakness::IgnoreExit, Weakness::KeepProcesses]),
    ] {
        // An attack that is a race (03) loses some rounds: the reward may be read while it is being rewritten. Winning
        // one round is enough to show that the attack is real.
        let won = (0..20).any(|_| naive_reward(&judge, &task, cheater(name), weaknesses) > 0.0);
        assert!(won, "{name} should have worked without its defence");
    }
}

/// A generated task, and the directory that it is in.
fn generated_task(env: &TestEnv) -> Task {
    for line in ["init --no-example --quiet", "generate task voltage-drop --instances 1"] {
        let run = env.run(line.split(' '));
        assert_eq!(run.code, Some(0), "{run:?}");
    }
    let files = aec_xtest::files::files_below(&env.path("tasks"));
    let (place, _) = files.iter().find(|(path, _)| path.ends_with("task.toml")).unwrap();
    let id = place.trim_end_matches("/task.toml");
    Task::load(TaskId::parse(id).unwrap(), &env.path("tasks").join(id)).unwrap().task
}

/// What is seen of the host decides: with a copy of the task, or with the whole program, these earn everything.
#[test]
fn what_rooms_do_not_show_would_be_the_answer() {
    let env = TestEnv::new(env!("CARGO_BIN_EXE_aec-bench"));
    let task = generated_task(&env);
    let (judge, store) = (judge(), ContentStore::new(env.path("store")));
    // Rooms have a /tmp of their own; and beside the programs that are built, one of them can be linked.
    let elsewhere = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (tool, copy) = (elsewhere.path().join("tool"), elsewhere.path().join("kept/somewhere/task"));
    std::fs::write(&tool, "").unwrap();
    for (name, content) in aec_xtest::files::files_below(&task.path) {
        let path = copy.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    let program = elsewhere.path().join("program");
    std::fs::hard_link(env!("CARGO_BIN_EXE_aec-bench"), &program).unwrap();
    let earned = |name: &str, places: &[PathBuf]| {
        let answer = answer_in_sight_of(&judge, &task, cheater(name), places)?;
        let submission = submission_with_output(&task, &answer, &store).unwrap();
        judge.verdict(&task, &submission).reward
    };
    assert_eq!(earned("37", &[tool.clone(), elsewhere.path().join("kept")]), Some(1.0));
    // The program as it is built for tests reads the library from the working copy, by way of the crate that has it.
    let sources = ["../../library", "../author"]
        .map(|place| Path::new(env!("CARGO_MANIFEST_DIR")).join(place).canonicalize().unwrap());
    assert_eq!(earned("38", &[&[program], sources.as_slice()].concat()), Some(1.0));
    for name in ["37", "38"] {
        let reward = earned(name, std::slice::from_ref(&tool));
        assert!(reward.is_none_or(|reward| reward <= 0.0), "{name} earned {reward:?}");
    }
}

/// Runs a program with a session keyring of its own, as the commands of one user have one in common.
const IN_ONE_SESSION: &str = r#"
import ctypes, os, platform, subprocess, sys
number = {"x86_64": 250, "aarch64": 219}[platform.machine()]
assert ctypes.CDLL(None).syscall(number, 1, None) > 0
for output in sys.argv[2:]:
    subprocess.run(["bash", "-c", sys.argv[1]], check=True, env={**os.environ, "OUTPUT": output})
"#;

/// On the host the second attempt gets what the first one had. In rooms it gets nothing.
#[test]
fn a_key_is_a_message_for_others_only_outside_of_rooms() {
    let dir = tempfile::tempdir().unwrap();
    let task = write_task(&dir.path().join("task"));
    let (script, judge) = (cheater("36"), judge());
    let (first, second) = (dir.path().join("first.json"), dir.path().join("second.json"));
    std::fs::write(&first, GOLDEN).unwrap();
    // The user's own keyring outlives the session, so the message must be about this run of the test.
    let instruction = format!("{} {}", task.instruction().unwrap(), dir.path().display());
    let done = Command::new("python3")
        .args(["-I", "-c", IN_ONE_SESSION, script.script])
        .args([&first, &second])
        .env("INSTRUCTION", &instruction)
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(std::fs::read_to_string(&second).unwrap(), GOLDEN);
    // The first agent gets the answer with its task, and would leave it.
    let given = task.path.join("environment/output.json");
    std::fs::write(&given, GOLDEN).unwrap();
    let read = |task: &Task| answer_in_sight_of(&judge, task, script, &[]);
    assert_eq!(read(&task).as_deref(), Some(GOLDEN.as_bytes()));
    std::fs::remove_file(&given).unwrap();
    assert_eq!(read(&task), None);
}

/// The whole command, by an ordinary user and in a project of that user. `blame.rs` has each verdict.
#[test]
#[cfg_attr(not(ordinary_user), ignore = "needs root, and a working copy that other users can read")]
fn an_audit_by_an_ordinary_user_holds_against_every_cheater() {
    let mut env = TestEnv::new(env!("CARGO_BIN_EXE_aec-bench"));
    let standard = generated_task(&env).id.to_string();
    let own = write_task(&env.path("tasks/civil/channel")).id.to_string();
    env.set("PATH", "/usr/bin:/bin");
    env.become_ordinary_user();
    let owned = Command::new("chown").args(["-R", "65534:65534"]).arg(env.dir()).arg(env.home()).status();
    assert!(owned.unwrap().success());
    // The fast tier has a verifier of the task's own, as this user, in `blame.rs`.
    let tasks = if aec_xtest::full() { vec![standard, own] } else { vec![standard] };
    let start = |task: &String| env.start_piped(["--json", "audit", task, "--cheat"]);
    for (task, child) in tasks.iter().zip(tasks.iter().map(start).collect::<Vec<_>>()) {
        let output = child.wait_with_output().unwrap();
        let envelope: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
        let audit = &envelope["data"]["audits"][0];
        assert_eq!(audit["task_id"], **task);
        assert_eq!(audit["cheaters"], json!({ "good": CHEATERS.len(), "all": CHEATERS.len() }), "{envelope}");
        let errors = envelope["errors"].as_array().unwrap().iter();
        let found: Vec<&Value> =
            errors.filter(|error| error["id"].as_str().is_some_and(|id| id.starts_with("A06"))).collect();
        assert!(found.is_empty(), "{task}: {found:?}");
    }
}

#[test]
fn secrets_of_the_host_are_not_in_the_room() {
    let dir = tempfile::tempdir().unwrap();
    let task = write_task(&dir.path().join("task"));
    let store = ContentStore::new(dir.path().join("store"));
    // The canary is in the environment of the program that opens the rooms.
    let output = Command::new(std::env::current_exe().unwrap())
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
