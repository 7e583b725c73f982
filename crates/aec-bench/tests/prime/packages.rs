//! What `prime export` writes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use aec_base::digest::Digest;
use aec_package::manifest::PackagedSide;
use aec_xtest::Run;
use aec_xtest::files::files_below;
use serde_json::{Value, json};

use crate::prime::world::{Project, public};

/// A project with one task for every reason to need a workspace, and one that needs none.
fn lanes() -> Project {
    let project = Project::new();
    let tool =
        "\n[[environment.tools]]\nname = \"calc\"\nsource = \"tools/calc.py\"\ndescription = \"Sums\"\n";
    let outputs = "\n[agent]\noutputs = [\"a.json\", \"plots\"]\n";
    let easy = public("easy");
    project.task("civil/plain", &easy, &[]);
    project.task("civil/data", &public("hard"), &[("environment/survey/levels.csv", "1,2\n")]);
    project.task("civil/tool", &format!("{easy}{tool}"), &[("tools/calc.py", "print(1)\n")]);
    project.task("civil/services", &easy, &[("environment/docker-compose.yaml", "services: {}\n")]);
    project.task("civil/outputs", &format!("{easy}{outputs}"), &[]);
    // `null`, as the manual prints it.
    let policy = "[guardrails]\nmax_iterations = 7\ntoken_budget = 5000\n[execution]\nsubcall_model = null\n";
    project.task(
        "civil/policy",
        "version = \"1.0\"\n\n[metadata]\nvisibility = \"public\"\n",
        &[("rlm.toml", policy)],
    );
    project
}

/// Output in which values that change with every edit of the runtime are replaced by fixed words.
fn stable(run: &Run) -> String {
    let mut envelope = run.envelope();
    for key in ["digest", "bytes", "files"] {
        envelope["data"][key] = json!(format!("[{key}]"));
    }
    for task in envelope["data"]["tasks"].as_array_mut().unwrap() {
        for key in ["task_revision", "verifier"] {
            assert!(task[key].as_str().unwrap().starts_with("sha256:"));
            task[key] = json!(format!("[{key}]"));
        }
    }
    serde_json::to_string_pretty(&envelope).unwrap()
}

#[test]
fn a_package_too_small_to_be_split_says_that_both_sides_have_it() {
    let project = lanes();
    let line = "prime export --name aec-few --task civil/plain civil/data --output-dir packages";
    let run = project.run(line);
    assert!(run.stderr.contains("2 tasks: too few to be split, so both sides have them all."), "{run:?}");
    assert!(run.stdout.contains(" both "), "{run:?}");
    let data = project.run(&format!("--json {line}")).data();
    assert_eq!((&data["train"], &data["eval"], &data["overlap"]), (&json!(2), &json!(2), &json!(true)));
    let readme = std::fs::read_to_string(project.package("aec_few").join("README.md")).unwrap();
    assert!(readme.contains("`train` (2 tasks), `eval` (2)") && readme.contains("| both |"), "{readme}");
}

#[test]
fn lanes_and_their_reasons_are_told() {
    let project = lanes();
    let line = "prime export --name aec-lanes --output-dir packages";
    insta::assert_snapshot!("export", project.run(line).snapshot());
    insta::assert_snapshot!("export_json", stable(&project.export("--name aec-lanes --version 1.2")));
    let manifest = project.manifest("aec_lanes");
    let policy = manifest.tasks.iter().find(|task| task.task_id == "civil/policy").unwrap();
    assert_eq!((policy.limits.max_turns, policy.limits.max_total_tokens), (7, Some(5000)));
    let outputs = manifest.tasks.iter().find(|task| task.task_id == "civil/outputs").unwrap();
    assert_eq!(outputs.outputs.as_deref(), Some(["a.json".to_owned(), "plots".to_owned()].as_slice()));
    let tool = manifest.tasks.iter().find(|task| task.task_id == "civil/tool").unwrap();
    assert!(tool.prompts.stateful.contains("submit_answer, calc."), "{}", tool.prompts.stateful);
    let offered = &tool.tools[0];
    assert_eq!((offered.name.as_str(), offered.path.as_str()), ("calc", "tools/calc.py"));
}

#[test]
fn a_package_has_the_documented_files() {
    let project = lanes();
    let data = project.export("--name aec-lanes").data();
    let written = files_below(&project.package("aec_lanes"));
    let mut wanted: BTreeSet<String> = [
        "README.md",
        "pyproject.toml",
        "aec_lanes/filter.json",
        "aec_lanes/pyproject.toml",
        "aec_lanes/tasks.json",
        "aec_lanes/tools.json",
    ]
    .into_iter()
    .map(ToOwned::to_owned)
    .collect();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/environment");
    for (name, text) in files_below(&sources).into_iter().filter(|(name, _)| name.ends_with(".py")) {
        assert_eq!(written.get(&format!("aec_lanes/{name}")), Some(&text), "{name}");
        wanted.insert(format!("aec_lanes/{name}"));
    }
    let manifest = project.manifest("aec_lanes");
    for file in manifest.tasks.iter().flat_map(|task| task.workspace.iter().chain(&task.verifier.files)) {
        let path = format!("aec_lanes/files/{}", file.sha256);
        assert_eq!(Digest::of(&written[&path]).hex(), file.sha256, "{}", file.path);
        wanted.insert(path);
    }
    assert_eq!(written.keys().cloned().collect::<BTreeSet<_>>(), wanted);
    assert_eq!(written["pyproject.toml"], written["aec_lanes/pyproject.toml"]);
    assert_eq!(data["files"], json!(written.len()));
    assert_eq!(data["bytes"], json!(written.values().map(Vec::len).sum::<usize>()));
    let pyproject: toml::Table =
        String::from_utf8(written["pyproject.toml"].clone()).unwrap().parse().unwrap();
    assert_eq!(pyproject["project"]["name"].as_str(), Some("aec-lanes"));
    assert_eq!(pyproject["tool"]["verifiers"]["eval"]["num_examples"].as_integer(), Some(5));
}

#[test]
fn the_same_tasks_give_the_same_bytes() {
    let project = lanes();
    let exported = |line: &str| {
        let data = project.export(&format!("--name aec-lanes {line}")).data();
        (data["digest"].as_str().unwrap().to_owned(), files_below(&project.package("aec_lanes")))
    };
    let first = exported("");
    assert!(exported("") == first, "the second export differs");
    std::fs::rename(project.package("aec_lanes"), project.env.path("first")).unwrap();
    assert!(exported("") == first, "the export into an empty directory differs");
    let second = exported("--version 0.1.1");
    assert_ne!(first.0, second.0);
}

#[test]
fn a_package_is_replaced_at_once() {
    let project = lanes();
    assert_eq!(project.export("--name aec-lanes").data()["replaced"], json!(false));
    let tasks_json = project.package("aec_lanes").join("aec_lanes/tasks.json");
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut versions = BTreeSet::new();
            while !ended.load(Ordering::Relaxed) {
                let manifest: Value = serde_json::from_slice(&std::fs::read(&tasks_json).unwrap()).unwrap();
                versions.insert(manifest["version"].as_str().unwrap().to_owned());
            }
            versions
        });
        for version in ["1.0.0", "1.0.1", "1.0.2", "1.0.3"] {
            let data = project.export(&format!("--name aec-lanes --version {version}")).data();
            assert_eq!(data["replaced"], json!(true));
        }
        ended.store(true, Ordering::Relaxed);
        assert!(!reader.join().unwrap().is_empty());
    });
    let before = files_below(&project.package("aec_lanes"));
    project.ok("prime export --name aec-lanes --output-dir packages --task civil/plain");
    let after = files_below(&project.package("aec_lanes"));
    let contents =
        |tree: &BTreeMap<String, Vec<u8>>| tree.keys().filter(|path| path.contains("/files/")).count();
    assert!(contents(&after) < contents(&before), "what the package no longer needs is gone");
    let beside: Vec<_> = std::fs::read_dir(project.env.path("packages")).unwrap().collect();
    assert_eq!(beside.len(), 1, "{beside:?}");
}

#[test]
fn sides_are_those_of_the_dataset_split() {
    let project = Project::new();
    for index in 0..30 {
        let generation =
            format!("\n[generation]\ntemplate = \"template-{}\"\nseed = 1\nindex = {index}\n", index % 10);
        let instruction = format!("Part {index}: {}\n", "word ".repeat(index));
        let files = [("instruction.md", instruction.as_str())];
        project.task(&format!("civil/i-{index}"), &format!("{}{generation}", public("easy")), &files);
    }
    project.ok("dataset create --name set --version 1.0.0");
    project.ok("dataset split set --seed 0");
    let data = project.export("--name aec-set --dataset set@1.0.0").data();
    let manifest = project.manifest("aec_set");
    assert_eq!(manifest.dataset.as_deref(), Some("set@1.0.0"));
    for (name, side) in [("train", PackagedSide::Train), ("eval", PackagedSide::Eval)] {
        let text = project.env.read(format!("artefacts/datasets/set-{name}/1.0.0/manifest.json"));
        let dataset: Value = serde_json::from_str(&text).unwrap();
        let split: BTreeSet<&str> = dataset["tasks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|task| task["task_id"].as_str().unwrap())
            .collect();
        let on_side = manifest.tasks.iter().filter(|task| task.side == side);
        // Datasets write ids with dots.
        let exported: BTreeSet<String> = on_side.map(|task| task.task_id.replace('/', ".")).collect();
        assert_eq!(split, exported.iter().map(String::as_str).collect(), "{name}");
        assert!(!exported.is_empty());
        assert_eq!(data[name], json!(exported.len()));
    }
}

#[test]
fn solutions_and_golden_answers_stay_at_home() {
    let project = Project::new();
    project.task(
        "civil/secret",
        &public("easy"),
        &[
            ("solution/solve.sh", "echo SECRET-SOLUTION\n"),
            ("solution/notes/working.md", "SECRET-WORKING\n"),
            ("tests/fixtures/golden_pass.json", "\"SECRET-GOLDEN\"\n"),
            ("tests/fixtures/golden_fail.json", "\"SECRET-WRONG\"\n"),
            ("tests/fixtures/table.csv", "KEPT-TABLE\n"),
        ],
    );
    project.ok("prime export --name aec-secret --output-dir packages");
    let written = files_below(&project.package("aec_secret"));
    let holds = |word: &str| {
        written.values().any(|content| content.windows(word.len()).any(|part| part == word.as_bytes()))
    };
    assert!(!holds("SECRET-"), "{:?}", written.keys());
    assert!(holds("KEPT-TABLE"), "a verifier keeps its other files");
}

#[test]
fn a_task_that_wants_a_network_is_exported_with_a_warning() {
    let project = Project::new();
    let online = format!("{}\n[environment]\nallow_internet = true\n", public("easy"));
    project.task("civil/online", &online, &[]);
    let run = project.export("--name aec-online");
    assert_eq!((run.code, run.errors()[0].0.as_str()), (Some(1), "H019"), "{run:?}");
    assert_eq!(project.manifest("aec_online").tasks.len(), 1);
}

#[test]
fn text_and_paths_survive() {
    let project = Project::new();
    let instruction = "Find 𝛼 = β² for 🏗️ (\u{7} \u{2028} \"\\) and write `/workspace/out/ünï.json`.\r\n";
    let places = [
        "build/a.txt",
        "dist/b.txt",
        ".hidden/c",
        "outputs/d",
        "__pycache__/e.pyc",
        "with space/ü 𝛼.txt",
        ".gitignore",
    ];
    let files: Vec<(String, String)> =
        places.iter().map(|place| (format!("environment/{place}"), format!("content of {place}"))).collect();
    let mut given: Vec<(&str, &str)> =
        files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    given.push(("instruction.md", instruction));
    project.task("civil/text", &public("easy"), &given);
    project.ok("prime export --name aec-text --output-dir packages");
    let task = &project.manifest("aec_text").tasks[0];
    assert_eq!(task.instruction, instruction);
    let text = std::fs::read_to_string(project.package("aec_text").join("aec_text/tasks.json")).unwrap();
    assert!(text.contains('𝛼') && text.contains('β'), "non-ASCII is written as it is");
    let packaged: BTreeMap<&str, String> = task
        .workspace
        .iter()
        .map(|file| {
            let path = project.package("aec_text").join("aec_text/files").join(&file.sha256);
            (file.path.as_str(), std::fs::read_to_string(path).unwrap())
        })
        .collect();
    let wanted: BTreeMap<&str, String> =
        places.iter().map(|place| (*place, format!("content of {place}"))).collect();
    assert_eq!(packaged, wanted);
}
