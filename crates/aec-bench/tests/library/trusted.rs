//! Instances of every template pass the audit, and their golden answers get the right verdicts.

use aec_xtest::TestEnv;
use serde_json::Value;

use crate::library::library;

fn suite(per_task: usize) -> String {
    format!(
        "name = \"all\"\nseed = 9\n[coverage]\ndifficulties = {{ easy = 0.34, medium = 0.33, hard = 0.33 }}\n\
         [visibility]\nmix = {{ all_given = 0.8, partial = 0.2 }}\n[tool_mode]\nmix = {{ with_tool = 0.5, no_tool = 0.5 }}\n\
         [instances]\nper_task = {per_task}\ntotal_max = 100000\n"
    )
}

#[test]
fn instances_of_every_template_can_be_trusted() {
    let env = TestEnv::new(env!("CARGO_BIN_EXE_aec-bench"));
    assert_eq!(env.run(["init", "--no-example"]).code, Some(0));
    let per_task = if aec_xtest::full() { 9 } else { 1 };
    env.write("suite.toml", suite(per_task));
    let made = env.run(["--json", "generate", "suite"]).data();
    let count = library().templates.len() * per_task;
    assert_eq!(made["instances_generated"], count);

    let checked = env.run(["task", "validate", "--all"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");

    let judged = env.run(["--json", "verify", "--all"]).data();
    assert_eq!((judged["judged"].as_u64(), judged["as_expected"].as_u64()), {
        let both = Some(2 * count as u64);
        (both, both)
    });

    let audited = env.run(["--json", "audit", "--all"]);
    let envelope = audited.envelope();
    let high: Vec<&Value> = envelope["errors"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|problem| problem["severity"] == "error")
        .collect();
    assert!(high.is_empty(), "{high:#?}");
    let audits = envelope["data"]["audits"].as_array().unwrap();
    assert_eq!(audits.len(), count);
    for audit in audits {
        // With its own verifier a template has no computable floor; the verdict on doing nothing is checked above.
        let has_own = library().templates.iter().any(|template| {
            template.file("verify.py").is_some()
                && audit["task_id"].as_str().is_some_and(|id| id.contains(template.name.as_str()))
        });
        assert!(has_own || audit["floor"].as_f64().unwrap() <= 0.2, "{audit}");
    }
}
