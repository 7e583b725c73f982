//! Every cheater in an exported package, under two generations of `verifiers`: a model whose one call runs its script.

use std::collections::BTreeMap;

use aec_judge::cheat::{CHEATERS, Cheater};
use aec_model::script::ScriptedReply;
use aec_xtest::venv::with_verifiers;
use serde_json::{Value, json};

use crate::eval::doors::{Behaviour, Expected, RIGHT, World, task_name};
use crate::eval::world::{calls, rows, says};
use crate::judge::VERIFY;

/// Seconds that a command may take: a cheater that waits for ever has done all that it does.
const PATIENCE: u32 = 5;
/// The same for one that has a whole machine to search.
const MORE_PATIENCE: u32 = 20;

/// A conversation of one command and a last word.
fn runs(name: &str, command: &str) -> Behaviour {
    let replies: Vec<ScriptedReply> = vec![calls("bash", json!({ "command": command })), says("done")];
    let (name, expected, unless) = (name.to_owned(), Expected::default(), BTreeMap::new());
    Behaviour { name, replies, given: false, expected, unless }
}

/// A cheater with what the audit gives it.
fn cheats(cheater: &Cheater, number: usize) -> Behaviour {
    let title = task_name(number);
    let instruction =
        format!("# {title}\n\nWrite `flow_m3_s` and `depth_m` as JSON to `/workspace/output.json`.");
    // Without confinement a package puts other paths for those of rooms, also in this text, if it recognises them.
    let instruction = instruction.replace("/workspace", "/work''space");
    let given = format!("export OUTPUT=/workspace/output.json INSTRUCTION='{instruction}'\n");
    runs(cheater.name, &format!("{given}{}", cheater.script))
}

/// A project in which agents do nothing, work honestly, and cheat. Every other task has a verifier of its own, the others
/// the standard one.
fn world<'a>(cheaters: impl IntoIterator<Item = &'a Cheater>, own: usize) -> World {
    let honest = format!("cat > output.json <<'E'\n{RIGHT}\nE");
    let mut behaviours = vec![
        runs("nothing", "true"),
        runs("nothing", "true"),
        runs("honest", &honest),
        runs("honest", &honest),
    ];
    for cheater in cheaters {
        behaviours.push(cheats(cheater, behaviours.len()));
    }
    let world = World::new(behaviours, 120);
    for number in (0..world.behaviours.len()).filter(|number| number % 2 == own) {
        let tests = format!("tasks/civil/{}/tests", task_name(number));
        world.env.write(format!("{tests}/verify.py"), VERIFY);
        std::fs::remove_file(world.env.path(format!("{tests}/answers.json"))).unwrap();
    }
    world
}

/// The result of each behaviour, in order. Each was played once, and none ended with an error.
fn played(world: &World, python: &str, confinement: &str, patience: u32) -> Vec<Expected> {
    world.export();
    let arguments =
        json!({ "split": "all", "confinement": confinement, "command_timeout_sec": patience }).to_string();
    let line =
        ["eval", "run", "doors", "-n", "-1", "-r", "1", "-s", "-o", "out", "-c", "6", "--max-retries", "2"];
    world.json(&[line.as_slice(), &["-a", &arguments, "--python", python]].concat());
    let saved = world.saved("out");
    let lost: Vec<Value> = rows(&saved).into_iter().filter(|row| !row["error"].is_null()).collect();
    assert!(lost.is_empty(), "{lost:?}");
    assert_eq!(rows(&saved).len(), world.behaviours.len());
    let mut found = world.in_rows(&saved);
    let asked: Vec<String> =
        world.server.requests().iter().map(|kept| String::from_utf8_lossy(&kept.body).into_owned()).collect();
    let of_each = world.behaviours.iter().enumerate().map(|(number, behaviour)| {
        let title = format!("# {}", task_name(number));
        let turns = asked.iter().filter(|body| body.contains(&title)).count();
        assert_eq!(turns, behaviour.replies.len(), "{}: it was tried again, or lost", behaviour.name);
        found.remove(&task_name(number)).unwrap_or_else(|| panic!("{} is missing", behaviour.name))
    });
    of_each.collect()
}

fn check(version: &str, own: usize) {
    let python = with_verifiers(version);
    let python = python.to_str().unwrap();
    // A rollout takes half a second; the long version plays all of them.
    let share = CHEATERS.iter().enumerate().filter(|(at, _)| aec_xtest::full() || at % 3 == own);
    let world = world(share.map(|(_, cheater)| cheater), own);
    let found = played(&world, python, "required", PATIENCE);
    for (at, (behaviour, played)) in world.behaviours.iter().zip(&found).enumerate() {
        // The first two do nothing, with each kind of verifier.
        let nothing = found[at % 2].reward.unwrap();
        let earned = played.reward.unwrap_or(0.0);
        assert!(
            matches!(played.outcome.as_str(), "scored" | "agent_fault"),
            "{}: {played:?}",
            behaviour.name
        );
        assert_eq!(earned > nothing, behaviour.name == "honest", "{}: {played:?}", behaviour.name);
    }
    // The same can fail: without confinement, one that searches finds the package and takes its answers.
    let thief = CHEATERS.iter().find(|cheater| cheater.name == "37-search-the-host");
    let world = self::world(thief, own);
    let found = played(&world, python, "none", MORE_PATIENCE);
    assert_eq!(found.last().unwrap().reward, Some(1.0), "{found:?}");
}

#[test]
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
fn no_cheater_gains_in_the_package_under_verifiers_0_1_14() {
    check("0.1.14", 0);
}

#[test]
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
fn no_cheater_gains_in_the_package_under_verifiers_0_4_0() {
    check("0.4.0", 1);
}
