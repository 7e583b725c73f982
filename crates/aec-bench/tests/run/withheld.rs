//! What a package leaves out stays in every denominator, and what it claims counts only for tasks that are here.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::run::Project;
use crate::run::world::RIGHT;
use crate::web::world::{Project as Site, Web};

const HALF: &str = r#"{"flow_m3_s": 3.217, "depth_m": 9.9}"#;
const WRONG: &str = r#"{"flow_m3_s": 1.0, "depth_m": 9.9}"#;

/// An experiment of six tasks: `honest` earns 0.5 with each; `picker` earns 1, 0.5, 0.5 and then nothing, 0.333 of 6.
fn source() -> Project {
    let project = Project::with_tasks(6);
    let script = |answers: [&str; 6]| {
        let when = |(at, answer): (usize, &&str)| {
            format!("- {{when: channel-{at:03}, replies: [{{text: '{answer}'}}]}}\n")
        };
        let conversations: String = answers.iter().enumerate().map(when).collect();
        format!("conversations:\n{conversations}")
    };
    let honest = project.script("honest", &script([HALF; 6]));
    let picker = project.script("picker", &script([RIGHT, HALF, HALF, WRONG, WRONG, WRONG]));
    project.env.write(
        "e.yaml",
        format!(
            "experiment_id: x\nagents:\n- {{name: honest, harness: direct, model: '{honest}'}}\n\
             - {{name: picker, harness: direct, model: '{picker}'}}\n"
        ),
    );
    let run = project.json("run --config e.yaml");
    assert_eq!(run.code, Some(0), "{run:?}");
    project
}

/// The trials of an agent, best first.
fn trials(project: &Project, agent: &str) -> Vec<String> {
    let listed = project.data(&format!("ledger list -e x --agent {agent}"));
    let mut rows = listed["records"].as_array().unwrap().clone();
    rows.sort_by(|a, b| b["reward"].as_f64().unwrap().total_cmp(&a["reward"].as_f64().unwrap()));
    rows.iter().map(|row| row["trial_id"].as_str().unwrap().to_owned()).collect()
}

/// Takes the package of a project into another one.
fn received(from: &Project, to: Project, flags: &str) -> Project {
    std::fs::copy(from.env.path("p.tar.zst"), to.env.path("p.tar.zst")).unwrap();
    let run = to.json(&format!("runs import p.tar.zst {flags}"));
    assert_eq!(run.code, Some(0), "{run:?}");
    to
}

/// A project with the picker's four worst trials withheld by a signed package.
fn picked() -> Project {
    let project = source();
    let worst = trials(&project, "picker")[2..].join(" ");
    assert_eq!(project.run("runs keygen key").code, Some(0));
    project.data(&format!("runs export x -o p.tar.zst --sign key --withhold {worst}"));
    received(&project, Project::with_tasks(6), "")
}

fn close(value: &Value, expected: f64) -> bool {
    value.as_f64().is_some_and(|value| (value - expected).abs() < 1e-9)
}

/// Before: the picker showed 0.750 of 2, ranked first, and nothing said that anything was missing.
#[test]
fn withheld_trials_stay_in_every_denominator() {
    let project = picked();
    let data = project.data("evaluate -e x");
    let picker = data["by"]["agent"].as_array().unwrap().iter().find(|row| row["name"] == "picker").unwrap();
    assert_eq!((&picker["counted"], &picker["mean_reward"]), (&json!(2), &json!(0.75)));
    assert_eq!(picker["unknown"]["withheld"], 4, "{picker}");
    assert!(
        close(&picker["unknown"]["low"], 0.25) && close(&picker["unknown"]["high"], 5.5 / 6.0),
        "{picker}"
    );
    assert!(close(&picker["denominators"]["worst_case"], 0.25), "{picker}");
    assert_eq!(picker["missing"], 0, "they were run");
    assert!(data["notes"].to_string().contains("4 trials withheld"), "{data}");
    let board = project.data("report leaderboard");
    let order: Vec<&str> =
        board["rows"].as_array().unwrap().iter().map(|row| row["agent"].as_str().unwrap()).collect();
    assert_eq!(order, ["honest", "picker"], "what is unknown counts as 0 in a rank");
    assert_eq!(board["rows"][1]["ranks"], json!([1, 2]), "and its interval allows both");
    let listed = project.data("ledger list -e x --agent picker");
    assert_eq!(listed["totals"]["unknown"]["withheld"], 4, "{listed}");
    assert_eq!(listed["withheld"].as_array().unwrap().len(), 4, "{listed}");
    assert!(listed["withheld"][0]["planned"]["task_id"].as_str().unwrap().starts_with("civil/"), "{listed}");
    let runs = project.data("runs list");
    assert_eq!(runs["runs"][0]["all"]["unknown"]["withheld"], 4, "{runs}");
    for line in [
        "evaluate -e x",
        "report summary",
        "report leaderboard",
        "ledger list",
        "runs list",
        "runs status x",
        "ledger reindex",
    ] {
        let text = project.run(line);
        assert!(text.stdout.contains("4 trials withheld"), "{line}: {text:?}");
        assert!(text.stdout.contains('*'), "{line}: {text:?}");
    }
    for line in ["report traces -e x", "report fields -e x", "report behavioral -e x"] {
        assert!(project.json(line).stdout.contains("4 trials were withheld"), "{line}");
    }
    project.data("evaluate -e x --report page.html");
    assert!(project.env.read("page.html").contains("0.750*"), "the page marks the mean");
    project.data("ledger export -e x --agent picker -o all.csv");
    let csv = project.env.read("all.csv");
    assert_eq!(csv.lines().filter(|line| line.contains(",withheld,")).count(), 4, "{csv}");
    project.data("ledger export -e x -o all.jsonl");
    let lines = project.env.read("all.jsonl");
    assert_eq!(lines.lines().count(), 12, "every trial that was run has a line");
    let verified = project.json("ledger verify -e x");
    assert_eq!(verified.code, Some(0), "{verified:?}");
}

#[test]
fn a_comparison_with_withheld_trials_decides_nothing_that_they_could_change() {
    let project = picked();
    let run = project.json("report compare x/honest x/picker --allow-different-frame");
    let data = &run.envelope()["data"];
    assert_eq!((&data["unknown"]["base"], &data["unknown"]["other"]), (&json!(0), &json!(4)), "{data}");
    assert!(close(&data["unknown"]["low"], 0.25 - 0.5), "{data}");
    assert_eq!((&data["verdict"]["kind"], run.code), (&json!("undecided"), Some(1)), "{data}");
    assert!(data["verdict"]["sentence"].as_str().unwrap().contains("4 trials are unknown"), "{data}");
}

#[test]
fn pages_show_withheld_trials() {
    let site = Site { env: picked().env };
    let web = Web::start(&site);
    for (path, words) in [
        ("/", ["8 of 12", "*"]),
        ("/experiment/x", ["4 trials withheld", "0.750*"]),
        ("/leaderboard", ["4 trials withheld", "0.750*"]),
        ("/compare?base=x/honest&other=x/picker", ["4 trials are unknown", "undecided"]),
    ] {
        let page = web.page(path);
        assert!(words.iter().all(|word| page.contains(word)), "{path}: {page}");
    }
    web.end(Signal::TERM);
}

/// A publisher can also leave out the last attempt at a trial and show the one before it.
#[test]
fn an_earlier_attempt_does_not_stand_for_one_that_is_withheld() {
    let project = source();
    let good = trials(&project, "picker")[0].clone();
    project.data(&format!("run --config e.yaml --rerun {good}"));
    let root = project.env.path("artefacts/ledger/x");
    std::fs::remove_file(root.join("_run/head.json")).unwrap();
    project.data("runs export x -o p.tar.zst");
    let to = received(&project, Project::with_tasks(6), "");
    let before = to.data("evaluate -e x --agent picker")["overall"].clone();
    assert!(before.get("unknown").is_none(), "{before}");
    // What a package that withholds only the second attempt leaves here.
    let run = to.ledger("x").join("_run");
    let note = aec_xtest::files::names_in(&run).into_iter().find(|name| name.starts_with("import-")).unwrap();
    let mut told: Value = serde_json::from_str(&std::fs::read_to_string(run.join(&note)).unwrap()).unwrap();
    told["withheld"] =
        json!([{"trial_id": good, "attempt": 2, "leaf": format!("sha256:{}", "0".repeat(64))}]);
    std::fs::write(run.join(&note), told.to_string()).unwrap();
    std::fs::remove_file(to.ledger("x").join(format!("{good}.2.json"))).unwrap();
    to.data("ledger reindex");
    let after = to.data("evaluate -e x --agent picker")["overall"].clone();
    assert_eq!((&after["unknown"]["withheld"], &after["counted"]), (&json!(1), &json!(5)), "{after}");
}

/// Before: records of a package counted whatever tasks they were for.
#[test]
fn rewards_of_a_package_count_for_the_tasks_that_are_here() {
    let project = source();
    project.data("runs export x -o p.tar.zst");
    let to = received(&project, Project::empty(), "");
    let data = to.data("evaluate -e x");
    assert_eq!(
        (&data["overall"]["counted"], &data["overall"]["unknown"]["unverified"]),
        (&json!(0), &json!(12))
    );
    let rows = to.data("ledger list -e x");
    assert!(rows["records"].as_array().unwrap().iter().all(|row| row["outcome"] == "unverified"), "{rows}");
    let trial = rows["records"][0]["trial_id"].as_str().unwrap();
    let shown = to.data(&format!("ledger show x/{trial}"));
    assert_eq!(shown["record"]["outputs"]["agent_result"]["unverified_because"], "the task is not here");
    assert!(shown["record"]["outputs"]["agent_result"]["source_reward"].is_number(), "{shown}");
    assert_eq!(to.json("ledger verify").code, Some(0));
    // The records themselves are those of the package.
    to.data("runs export x -o again.tar.zst");
    let bytes = |project: &Project, name: &str| std::fs::read(project.env.path(name)).unwrap();
    assert!(bytes(&to, "again.tar.zst") == bytes(&project, "p.tar.zst"));
    let trusted = to.data("runs import p.tar.zst --trust-rewards");
    assert_eq!((&trusted["trusted"], &trusted["unverified"]), (&json!(12), &json!(0)), "{trusted}");
    let data = to.data("evaluate -e x");
    assert_eq!((&data["overall"]["counted"], data["overall"].get("unknown")), (&json!(12), None));
    assert!(data["notes"].to_string().contains("12 are trusted because of --trust-rewards"), "{data}");
    let board = to.data("report leaderboard");
    assert!(board["notes"].to_string().contains("12 are trusted"), "{board}");
    assert!(
        to.data("ledger list")["records"].as_array().unwrap().iter().all(|row| row["judged"] == "trusted")
    );
    assert_eq!(to.json("ledger verify").code, Some(0));
}

/// Instead of withholding them, a publisher can remove records and the chain that names them.
#[test]
fn trials_that_a_package_leaves_out_in_silence_are_withheld_too() {
    let project = source();
    let worst = trials(&project, "picker").split_off(2);
    let root = project.ledger("x");
    for trial in &worst {
        std::fs::remove_file(root.join(format!("{trial}.json"))).unwrap();
    }
    for name in aec_xtest::files::names_in(&root.join("_run")) {
        if name.starts_with("chain-") {
            std::fs::remove_file(root.join("_run").join(name)).unwrap();
        }
    }
    let counts = project.data("runs export x -o p.tar.zst")["counts"].clone();
    assert_eq!(counts["withheld"], 0, "{counts}");
    let to = received(&project, Project::with_tasks(6), "");
    let board = to.data("report leaderboard");
    assert_eq!(board["rows"][1]["unknown"]["withheld"], 4, "{board}");
    assert_eq!((&board["rows"][1]["agent"], &board["rows"][1]["missing"]), (&json!("picker"), &json!(0)));
    assert_eq!(to.data("ledger list -e x")["totals"]["unknown"]["withheld"], 4);
    assert!(board["notes"].to_string().contains("8 came with a package"), "{board}");
}
