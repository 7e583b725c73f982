//! Keys reach workers through one file of mode 600 and are nowhere else.

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use aec_model_server::{Options, Range};
use aec_xtest::files::files_below;
use serde_json::Value;

use crate::run::world::{Server, right};
use crate::slurm::cluster::{Cluster, command_line, processes, wait_until};
use crate::slurm::project_on;

const SECRET: &str = "sk-very-secret-value-4711";

#[test]
#[cfg_attr(not(slurm), ignore = "needs Slurm as root: apt-get install slurm-wlm munge")]
fn keys_are_in_one_file_and_nowhere_else() {
    let cluster = Cluster::start();
    let mut project = project_on(&cluster, 6);
    project.env.set("LAB_MODEL_KEY", SECRET);
    project.env.set("OTHER_API_KEY", "sk-nobody-asked-for-this");
    let latency = Range::only(Duration::from_millis(400));
    let server = Server::start(Options { latency, key: Some(SECRET.to_owned()), ..right() });
    project.env.write(
        "configs/endpoints.toml",
        format!(
            "[[endpoint]]\nendpoint_id = \"m\"\nmodel = \"test-model\"\nurl = \"{}/v1\"\nkey = \"LAB_MODEL_KEY\"\n",
            server.url()
        ),
    );
    let line = "run civil --model m --harness direct -n 4 -e x --engine slurm --shards 3 --concurrency 1";
    let submitted = project.data(&format!("{line} --detach"));
    let folder = project.ledger("x").join("_run/cluster/0001");
    let file = folder.join("environment.json");
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(&file)), (0o700, 0o600));
    let kept: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(kept["LAB_MODEL_KEY"], SECRET);
    assert_eq!(kept.get("OTHER_API_KEY"), None, "only what the plan needs: {kept}");
    wait_until("workers ask the model", || server.count() >= 3);
    let shown = cluster.tell("scontrol", &["show", "job", "-dd", &submitted["array_job"].to_string()]);
    assert!(shown.contains("JobName=aec-x") && !shown.contains(SECRET), "{shown}");
    let script =
        cluster.tell("scontrol", &["write", "batch_script", &submitted["array_job"].to_string(), "-"]);
    assert!(script.contains("--contract") && !script.contains(SECRET), "{script}");
    for pid in processes() {
        assert!(!command_line(pid).contains(SECRET), "{}", command_line(pid));
    }
    for (name, bytes) in files_below(&folder) {
        let holds = bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes());
        assert_eq!(holds, name == "environment.json", "{name}");
    }
    cluster.wait_until_idle();
    let status = project.data("runs status x");
    assert_eq!(status["state"], "complete", "{status}");
    assert!(!file.exists(), "no worker needs keys after the end");
    for root in ["artefacts", "jobs"] {
        for (name, bytes) in files_below(&project.env.path(root)) {
            assert!(!bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes()), "{root}/{name}");
        }
    }
    // A worker refuses a key file that other users can read.
    let rendered = project.data(&format!("{} --render", line.replace("-e x", "-e y")));
    let folder = project.env.path(rendered["folder"].as_str().unwrap());
    std::fs::set_permissions(folder.join("environment.json"), std::fs::Permissions::from_mode(0o640))
        .unwrap();
    let plan = folder.join("plan.json");
    let arguments = [
        "--json",
        "run",
        "--plan",
        plan.to_str().unwrap(),
        "--shard",
        "0/3",
        "--contract",
        folder.to_str().unwrap(),
    ];
    let refused = project.env.run(arguments);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert_eq!(refused.errors()[0].0, "J015");
}
