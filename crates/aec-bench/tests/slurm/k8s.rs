//! The manifest for Kubernetes is valid: it is checked against the published schemas.

use std::path::PathBuf;
use std::process::Command;

use aec_xtest::venv;

use crate::run::world::Project;

/// A project with a rendered job, and the path of the job's manifest.
fn rendered() -> (Project, PathBuf) {
    let project = Project::with_tasks(3);
    let line = "run civil --harness oracle -n 4 -e Big.Run_1 --engine k8s --shards 6 --render \
                --image registry.example/aec-bench:1 --volume-claim runs --secret keys --namespace lab \
                --cpus-per-shard 4 --memory-per-shard 8Gi";
    let rendered = project.run(line);
    assert_eq!(rendered.code, Some(0), "{rendered:?}");
    assert!(
        rendered.stderr.contains("kubectl apply -f") && rendered.stderr.contains("runs merge Big.Run_1"),
        "{rendered:?}"
    );
    let manifest = project.ledger("Big.Run_1").join("_run/cluster/0001/job.json");
    (project, manifest)
}

#[test]
fn the_manifest_has_a_part_for_every_shard_and_no_keys() {
    let (_project, manifest) = rendered();
    let job: serde_json::Value = serde_json::from_slice(&std::fs::read(&manifest).unwrap()).unwrap();
    assert_eq!((&job["spec"]["completions"], &job["spec"]["parallelism"]), (&6.into(), &6.into()));
    let arguments = job["spec"]["template"]["spec"]["containers"][0]["args"].as_array().unwrap();
    assert_eq!(arguments.last().unwrap(), "$(JOB_COMPLETION_INDEX)/6");
    assert!(!manifest.with_file_name("environment.json").exists(), "keys come from the cluster's own secret");
}

#[test]
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
fn the_manifest_is_valid_in_the_published_schemas() {
    let (_project, manifest) = rendered();
    let environment = venv::install("kubernetes-validate-1.37.0");
    for version in ["1.29", "1.31", "1.33", "1.37"] {
        let check = "import json, sys, kubernetes_validate\n\
                     manifest = json.load(open(sys.argv[1]))\n\
                     kubernetes_validate.validate(manifest, sys.argv[2], strict=True)\n\
                     manifest['spec']['completionsX'] = 1\n\
                     try:\n    kubernetes_validate.validate(manifest, sys.argv[2], strict=True)\n\
                     except kubernetes_validate.ValidationError:\n    print('strict')\n";
        let said = venv::run(
            Command::new(environment.join("bin/python"))
                .args(["-I", "-c", check])
                .arg(&manifest)
                .arg(version),
        );
        assert_eq!(said.as_deref().map(str::trim), Ok("strict"), "{version}");
    }
}
