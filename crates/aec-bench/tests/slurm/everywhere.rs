//! One experiment on every available engine: rooms of this machine, containers, a cluster, and containers on a cluster.

use aec_xtest::podman::Podman;

use crate::slurm::cluster::Cluster;
use crate::slurm::{assert_like_local, project_on};

/// The task's own verifier, so that no verdict is given without a room.
const VERIFY: &str = r#"import json, math, pathlib
output = pathlib.Path("/workspace/output.json")
answer = json.loads(output.read_text()) if output.exists() else {}
wanted = {"flow_m3_s": 3.2, "depth_m": 1.25}
close = [math.isclose(float(answer.get(key, "nan")), value, rel_tol=0.01) for key, value in wanted.items()]
pathlib.Path("/logs/verifier/reward.json").write_text(json.dumps({"reward": sum(close) / 2, "close": close}))
"#;

/// Right, empty and half right; the last one as a loop on this machine, and as the same loop inside the room.
const EXPERIMENT: &str = "name: everywhere\ntasks: {include_patterns: ['civil/*']}\nagents:\n\
    - {name: right, harness: oracle}\n\
    - {name: empty, harness: nop}\n\
    - {name: half, harness: tool_loop, model: 'offline/scripted:half.yaml'}\n\
    - {name: inside, harness: command, model: 'offline/scripted:half.yaml', parameters: {command: [aec-bench, agent-entry]}}\n";

const HALF: &str = "replies:\n\
    - tool_calls: [{name: bash, arguments: {command: \"cat survey.csv; echo '{\\\"flow_m3_s\\\": 3.2, \\\"depth_m\\\": 9}' > /workspace/output.json\"}}]\n\
    - text: done\n";

#[test]
#[cfg_attr(
    not(all(slurm, podman)),
    ignore = "needs Slurm and Podman as root: apt-get install slurm-wlm munge podman runc debootstrap"
)]
fn verdicts_are_equal_in_rooms_in_containers_and_on_a_cluster() {
    let (cluster, podman) = (Cluster::start(), Podman::get());
    let mut project = project_on(&cluster, 3);
    project.env.set("DOCKER_HOST", &podman.host());
    for index in 0..3 {
        let task = format!("tasks/civil/channel-{index:03}");
        for (name, text) in [
            ("environment/Dockerfile", "FROM python:3.12-slim\n"),
            ("tests/verify.py", VERIFY),
            ("tests/answers.json", "{}\n"),
            ("solution/answer.json", "{\"flow_m3_s\": 3.2, \"depth_m\": 1.25}\n"),
        ] {
            project.env.write(format!("{task}/{name}"), text);
        }
    }
    project.script("half", HALF);
    project.env.write("everywhere.yaml", EXPERIMENT);
    let run = |arguments: &str| project.data(&format!("run -c everywhere.yaml {arguments}"))["all"].clone();
    let here = run("-e here");
    assert_eq!((&here["executed"], &here["reward_sum"]), (&12.into(), &6.0.into()), "{here}");
    for (name, arguments) in [
        ("contained", "--backend docker"),
        ("spread", "--engine slurm --shards 3"),
        ("both", "--backend docker --engine slurm --shards 2"),
    ] {
        let there = run(&format!("-e {name} {arguments}"));
        assert_eq!((&there["executed"], &there["reward_sum"]), (&12.into(), &6.0.into()), "{name}: {there}");
        assert_like_local(&project, name, "here");
        podman.until_none(&format!("org.aec-bench.experiment={name}"));
    }
    for (experiment, wanted) in
        [("contained", "\"container\""), ("both", "\"container\""), ("spread", "\"room\"")]
    {
        let records = project.records(experiment);
        let told = serde_json::to_string(&records.values().collect::<Vec<_>>()).unwrap();
        assert!(told.contains(wanted), "{experiment}: {told}");
    }
}
