//! The solvability proof: `prove.py` gets the prompts and the workspace files, and solves them.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Mutex;

use aec_author::generate::{Files, Order, generate};
use aec_author::params::ToolMode;
use aec_task::file::Visibility;
use serde_json::{Map, Value, json};

use crate::library::content::is_workspace;
use crate::library::{directory, engines, interpreter, library};

/// Instances of each template and tier; a twentieth of them without `AEC_TEST=full`.
const INSTANCES: u32 = 200;
/// Of those, instances that are also tried with each given removed in turn; a fiftieth of them without `AEC_TEST=full`.
const THOROUGH: u32 = 50;

#[test]
fn every_instance_is_solvable_from_its_prompt_and_from_nothing_less() {
    let library = library();
    let engines = engines();
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/library/prove.py");
    let mut prover = Command::new(interpreter().path)
        .args(["-s", "-S", "-B"])
        .arg(&script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = Mutex::new(std::io::BufWriter::new(prover.stdin.take().unwrap()));
    let (instances, thorough) = if aec_xtest::full() { (INSTANCES, THOROUGH) } else { (INSTANCES / 20, 1) };
    let mut orders = Vec::new();
    for template in &library.templates {
        for tier in template.tiers.values() {
            // Templates with many documents take a hundred times as long to solve.
            let is_long = template.file("rlm.toml").is_some() && !aec_xtest::full();
            for index in 0..if is_long { instances / 5 } else { instances } {
                // The first of each tier brings its calculator.
                let tool_mode = if index == 0 { template.tool_modes.usual() } else { ToolMode::NoTool };
                orders.push(Order {
                    template,
                    tier,
                    seed: 4,
                    index,
                    tool_mode,
                    visibility: Visibility::Public,
                });
            }
        }
    }
    let tools = library.templates.iter().filter(|template| !is_workspace(template)).count() * 3;
    let write = |path: &str, files: &Files| {
        let index: u32 = path.rsplit('-').next().unwrap().parse().unwrap();
        let template: Vec<&str> = path.split('/').collect();
        let line = evidence(path, &format!("{}/{}", template[0], template[2]), files, index < thorough);
        let mut lines = lines.lock().unwrap();
        serde_json::to_writer(&mut *lines, &line)?;
        lines.write_all(b"\n")
    };
    let generated = generate(&engines, &orders, &write).unwrap();
    assert_eq!(generated.made.len(), orders.len());
    drop(lines.into_inner().unwrap());
    let output = prover.wait_with_output().unwrap();
    assert!(output.status.success());
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["failures"], json!([]));
    assert_eq!(result["proved"], json!(orders.len()));
    assert_eq!(result["tools"], json!(tools));
}

/// What the prover gets: what an agent gets, and the expected answer for comparison.
fn evidence(path: &str, template: &str, files: &Files, thorough: bool) -> Value {
    let parsed = |name: &str| -> Value {
        files.get(name).map_or(Value::Null, |text| serde_json::from_str(text).unwrap())
    };
    let environment: Map<String, Value> = files
        .iter()
        .filter_map(|(name, text)| Some((name.strip_prefix("environment/")?, text)))
        .filter(|(name, _)| *name != "Dockerfile")
        .map(|(name, text)| (name.to_owned(), json!(text)))
        .collect();
    let tool = files.iter().find(|(name, _)| name.starts_with("tools/")).map(|(_, text)| text);
    json!({
        "task": path,
        "prompt": files["instruction.md"],
        "files": environment,
        "tool": tool,
        "fields": parsed("tests/answers.json")["fields"],
        // For templates with their own verifiers.
        "instance": parsed("tests/instance.json"),
        "template": directory().join(template).canonicalize().unwrap(),
        "thorough": thorough,
    })
}
