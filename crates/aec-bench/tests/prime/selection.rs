//! Which tasks an environment offers: the package's runtime and `aec_prime` agree, and the sides never overlap.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Stdio};

use aec_package::manifest::PackagedSide;
use aec_package::select::{Ask, select};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::prime::venv::{interpreter, scripts};
use crate::prime::world::{Project, public};

const DIFFICULTIES: [&str; 3] = ["easy", "medium", "hard"];
const SEEDS: [Option<i64>; 6] = [None, Some(0), Some(1), Some(-7), Some(i64::MIN), Some(i64::MAX)];
const COUNTS: [Option<i64>; 7] = [None, Some(-3), Some(0), Some(1), Some(4), Some(7), Some(1000)];
const SPLITS: [(&str, Option<PackagedSide>); 3] =
    [("train", Some(PackagedSide::Train)), ("eval", Some(PackagedSide::Eval)), ("all", None)];

/// The runtime's answer to one combination of arguments.
#[derive(Debug, Deserialize)]
struct Answer {
    tasks: Vec<String>,
    overlap: bool,
    error: Option<String>,
}

/// Forty tasks of nine families: many easy ones, some medium ones, fewer hard ones than can be split, and some without
/// a difficulty.
fn project() -> Project {
    let project = Project::new();
    for index in 0..40 {
        let family = index % 9;
        let told = match index {
            0..20 => public("easy"),
            20..33 => public("medium"),
            33..37 => public("hard"),
            _ => "version = \"1.0\"\n\n[metadata]\nvisibility = \"public\"\n".to_owned(),
        };
        let task_toml =
            format!("{told}\n[generation]\ntemplate = \"template-{family}\"\nseed = 1\nindex = {index}\n");
        project.task(&format!("civil/template-{family}/i-{index}"), &task_toml, &[]);
    }
    project.ok("prime export --name aec-many --output-dir packages");
    project
}

/// Every combination, as arguments of the runtime and of `aec_prime`.
fn combinations() -> Vec<(Value, Ask)> {
    let mut all = Vec::new();
    for mask in 0..1_u32 << DIFFICULTIES.len() {
        let difficulty: Vec<String> = (0..DIFFICULTIES.len())
            .filter(|at| mask >> at & 1 == 1)
            .map(|at| DIFFICULTIES[at].to_owned())
            .collect();
        for (split, side) in SPLITS {
            for seed in SEEDS {
                for count in COUNTS {
                    let arguments = json!({ "difficulty": difficulty, "split": split, "seed": seed, "num_examples": count });
                    let num_examples = count.and_then(|count| usize::try_from(count).ok());
                    all.push((arguments, Ask { difficulty: difficulty.clone(), side, seed, num_examples }));
                }
            }
        }
    }
    all
}

/// Asks the runtime of a package, all at once.
fn ask_runtime(project: &Project, asked: &[&Value]) -> Vec<Answer> {
    let mut script = Command::new(interpreter())
        .arg("-B")
        .arg(scripts().join("select_tasks.py"))
        .arg(project.package("aec_many"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    script.stdin.take().unwrap().write_all(&serde_json::to_vec(asked).unwrap()).unwrap();
    let done = script.wait_with_output().unwrap();
    assert!(done.status.success());
    serde_json::from_slice(&done.stdout).unwrap()
}

#[test]
fn the_runtime_selects_as_the_program_does() {
    let project = project();
    let manifest = project.manifest("aec_many");
    let combinations = combinations();
    let asked: Vec<&Value> = combinations.iter().map(|(arguments, _)| arguments).collect();
    let answers = ask_runtime(&project, &asked);
    assert_eq!(answers.len(), combinations.len());
    for ((arguments, ask), answer) in combinations.iter().zip(&answers) {
        let slice = select(&manifest, ask);
        let ids: Vec<&str> = slice.tasks.iter().map(|task| task.task_id.as_str()).collect();
        assert_eq!(ids, answer.tasks, "{arguments}");
        // An environment without tasks is an error there.
        assert_eq!(ids.is_empty(), answer.error.is_some(), "{arguments}: {answer:?}");
        assert!(ids.is_empty() || slice.overlap == answer.overlap, "{arguments}: {answer:?}");
    }
}

#[test]
fn a_difficulty_that_is_all_on_one_side_stays_whole() {
    let project = project();
    let mut manifest = project.manifest("aec_many");
    for task in manifest.tasks.iter_mut().filter(|task| task.difficulty.as_deref() == Some("medium")) {
        task.side = PackagedSide::Train;
    }
    let place = project.package("aec_many").join("aec_many/tasks.json");
    std::fs::write(place, serde_json::to_vec(&manifest).unwrap()).unwrap();
    let asked = ["train", "eval"].map(|split| json!({ "difficulty": "medium", "split": split }));
    let answers = ask_runtime(&project, &asked.iter().collect::<Vec<_>>());
    for (answer, side) in answers.iter().zip([PackagedSide::Train, PackagedSide::Eval]) {
        assert_eq!((answer.tasks.len(), answer.overlap, &answer.error), (13, true, &None));
        let ask = Ask { difficulty: vec!["medium".to_owned()], side: Some(side), ..Ask::default() };
        let slice = select(&manifest, &ask);
        assert_eq!((slice.tasks.len(), slice.overlap), (13, true));
    }
}

#[test]
fn train_and_eval_never_meet_unless_they_say_so() {
    let project = project();
    let combinations = combinations();
    let asked: Vec<&Value> = combinations.iter().map(|(arguments, _)| arguments).collect();
    let answers = ask_runtime(&project, &asked);
    let mut told_overlap = 0;
    let mut on = |split: &str| -> BTreeSet<String> {
        let mut tasks = BTreeSet::new();
        for (arguments, answer) in
            asked.iter().zip(&answers).filter(|(arguments, _)| arguments["split"] == split)
        {
            if answer.overlap {
                assert_eq!(
                    arguments["difficulty"],
                    json!(["hard"]),
                    "only the hard ones are too few: {answer:?}"
                );
                told_overlap += 1;
            } else {
                tasks.extend(answer.tasks.iter().cloned());
            }
        }
        tasks
    };
    let (train, eval) = (on("train"), on("eval"));
    assert!(train.is_disjoint(&eval), "{:?}", train.intersection(&eval));
    assert_eq!(train.len() + eval.len(), 40);
    assert_eq!(told_overlap, 2 * SEEDS.len() * COUNTS.len());
}
