//! `oracle`, `sim` and `scripted`: answers without a model.

use aec_ledger::transcript::EventRole;
use aec_run::experiment::Harness;
use aec_run::harness::{AgentFile, End, Limit};
use serde_json::{Value, json};

use crate::harness::{ANSWER, Bench};

#[tokio::test(flavor = "multi_thread")]
async fn the_oracle_leaves_what_the_solution_writes() {
    let bench = Bench::new(Harness::Oracle, json!({}));
    let solution = "set -e\ntouch /solution/x 2>/dev/null && exit 9\necho solving\n\
                    cat /solution/answer.json > output.json\n";
    bench.task_file("solution/solve.sh", solution);
    let left = bench.run().await;
    assert!(matches!(left.rollout.end, End::Done), "{:?}", left.rollout);
    assert_eq!(left.file("output.json").await.as_deref(), Some(ANSWER));
    assert_eq!(left.stdout(0), "solving\n");
    let call = left.events.iter().find(|event| event.role == EventRole::ToolCall).unwrap();
    assert_eq!(call.command.as_deref(), Some("bash /solution/solve.sh"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_solution_can_be_python_fail_hang_or_be_missing() {
    let python = Bench::new(Harness::Oracle, json!({}));
    std::fs::remove_file(python.directory.path().join("task/solution/solve.sh")).unwrap();
    python.task_file("solution/solve.py", "open('output.json', 'w').write('{}')\n");
    assert_eq!(python.run().await.file("output.json").await.as_deref(), Some("{}"));
    let failing = Bench::new(Harness::Oracle, json!({}));
    failing.task_file("solution/solve.sh", "echo it broke >&2; exit 4\n");
    let End::Agent(what) = failing.run().await.rollout.end else { panic!() };
    assert_eq!(what, "the reference solution ended with exit code 4: it broke");
    let mut hanging = Bench::new(Harness::Oracle, json!({}));
    hanging.task_file("solution/solve.sh", "sleep 600\n");
    hanging.time = std::time::Duration::from_secs(1);
    assert!(matches!(hanging.run().await.rollout.end, End::Limit(Limit::Time)));
    let missing = Bench::new(Harness::Oracle, json!({}));
    std::fs::remove_dir_all(missing.directory.path().join("task/solution")).unwrap();
    assert!(matches!(missing.run().await.rollout.end, End::Task(_)));
}

#[tokio::test(flavor = "multi_thread")]
async fn sim_is_the_oracle_with_mistakes_that_repeat() {
    let best = Bench::new(Harness::Sim, json!({ "skill": 1 })).run().await;
    assert_eq!(best.file("output.json").await.as_deref(), Some(ANSWER));
    assert_eq!(best.result("faults"), &json!([]));
    let mut answers = Vec::new();
    for seed in [1, 1, 2, 3] {
        let mut bench = Bench::new(Harness::Sim, json!({ "skill": 0, "seed": 5 }));
        bench.seed = seed;
        let left = bench.run().await;
        assert!(matches!(left.rollout.end, End::Done), "{:?}", left.rollout);
        let faults = left.result("faults").as_array().unwrap().clone();
        assert!(!faults.is_empty());
        let note = left.events.iter().find(|event| event.role == EventRole::Note).unwrap();
        assert_eq!(note.metadata["faults"], Value::from(faults));
        let answer = left.file("output.json").await;
        assert_ne!(answer.as_deref(), Some(ANSWER));
        answers.push(answer);
    }
    assert_eq!(answers[0], answers[1]);
    assert!(answers[0] != answers[2] || answers[0] != answers[3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn sim_has_the_skill_that_its_prompt_gives_it() {
    let lessons = json!({ "check the units": 1, "round early": -0.5 });
    let taught = |prompt: Option<&str>, lessons: &Value| {
        let mut bench = Bench::new(Harness::Sim, json!({ "skill": 0, "seed": 5, "lessons": lessons }));
        bench.system_prompt = prompt.map(str::to_owned);
        bench
    };
    let best = taught(Some("Check  the\nUNITS.\n"), &lessons).run().await;
    assert_eq!(best.file("output.json").await.as_deref(), Some(ANSWER));
    assert_eq!((best.result("skill"), best.result("lessons")), (&json!(1.0), &json!(["check the units"])));
    let heard = best.events.iter().find(|event| event.role == EventRole::System).unwrap();
    assert_eq!(heard.content.as_deref(), Some("Check  the\nUNITS.\n"));
    // The random numbers are those of an agent with that skill.
    let plain = Bench::new(Harness::Sim, json!({ "skill": 0.5, "seed": 5 })).run().await;
    let both = taught(Some("Check the units. Round early."), &lessons).run().await;
    assert_eq!(both.result("skill"), &json!(0.5));
    assert_eq!(both.file("output.json").await, plain.file("output.json").await);
    // Without lessons a prompt has no effect on this harness, and the result stays the same.
    let worst = Bench::new(Harness::Sim, json!({ "skill": 0, "seed": 5 })).run().await;
    for deaf in [taught(None, &lessons), taught(Some("Check the units."), &json!({}))] {
        let left = deaf.run().await;
        assert!(left.events.iter().all(|event| event.role != EventRole::System));
        assert_eq!(left.file("output.json").await, worst.file("output.json").await);
    }
    let keys: Vec<&String> = worst.rollout.result.keys().collect();
    assert_eq!(keys, ["skill", "faults"]);
}

fn scripted(script: &str) -> Bench {
    let mut bench = Bench::new(Harness::Scripted, json!({ "script": "play/it.yaml", "command_timeout": 5 }));
    bench.files =
        vec![AgentFile { path: "play/it.yaml".into(), content: script.as_bytes().into(), executable: false }];
    bench
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_is_played_with_the_tools_of_models() {
    let left = scripted(
        "actions: [{say: not this}]\ntasks:\n- when: civil/*\n  actions:\n  - {say: I begin.}\n\
         \x20 - {tool: bash, arguments: {command: 'cat survey.csv; sleep 60'}}\n\
         \x20 - {tool: nothing}\n  - {write: {path: output.json, content: '{}'}}\n  - {say: That is all.}\n",
    )
    .run()
    .await;
    assert!(matches!(left.rollout.end, End::Done), "{:?}", left.rollout);
    assert_eq!(left.rollout.final_text.as_deref(), Some("That is all."));
    assert_eq!((left.stdout(0), left.stderr(0)), ("x,z\n0,1\n", "\n[timed out after 5 s]"));
    assert!(left.stderr(1).contains("there is no tool `nothing`"));
    assert_eq!(left.file("output.json").await.as_deref(), Some("{}"));
    assert_eq!((left.result("actions"), left.result("tool_calls")), (&json!(5), &json!(3)));
    let submitted = scripted("actions: [{say: a}, {submit: '42'}, {tool: bash}]").run().await;
    assert_eq!(submitted.submitted(), Some("42"));
    assert_eq!((submitted.rollout.final_text.as_deref(), submitted.result("actions")), (None, &json!(2)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_that_cannot_be_played_is_the_agents_fault() {
    let End::Agent(what) = scripted("actions: [{sya: a}]").run().await.rollout.end else { panic!() };
    assert!(what.contains("play/it.yaml cannot be played") && what.contains("sya"), "{what}");
    let mut missing = scripted("actions: [{say: a}]");
    missing.files.clear();
    assert!(matches!(missing.run().await.rollout.end, End::Agent(_)));
}
