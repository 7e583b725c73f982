//! The same contract for Kubernetes: an indexed job, one pod for each shard. The manifest is rendered, not submitted.

use std::path::Path;

use aec_base::problem::Problem;
use aec_base::text::printable;
use serde_json::{Value, json};

use crate::FAMILY;
use crate::contract::{Contract, Folder};
use crate::sbatch::worker_arguments;
use crate::shell::kubernetes_argument;

/// What the pods need from the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pods {
    /// The image that has the program, bash and Python.
    pub image: String,
    /// The claim of the volume that all pods share.
    pub claim: String,
    /// The mount point of the volume: the same path as on this machine.
    pub mount: String,
    /// The secret with the variables that workers need.
    pub secret: Option<String>,
    pub namespace: Option<String>,
    pub cpus: Option<u32>,
    /// Memory of each pod, such as `16Gi`.
    pub memory: Option<String>,
}

/// How often a shard may fail before Kubernetes gives it up. Disruptions do not count.
const FAILURES: u32 = 3;

/// Seconds that a pod has to record its work after Kubernetes asks it to end.
const GRACE: u32 = 60;

impl Pods {
    /// Refuses what Kubernetes would refuse, and a mount that does not contain project, ledger and jobs.
    pub fn check(&self, roots: [&str; 3]) -> Result<(), Problem> {
        let names = [
            ("--volume-claim", Some(self.claim.as_str())),
            ("--secret", self.secret.as_deref()),
            ("--namespace", self.namespace.as_deref()),
        ];
        for (flag, name) in names {
            if let Some(name) = name.filter(|name| !is_name(name)) {
                let what = format!("`{flag} {}` is not a valid name in Kubernetes", printable(name));
                let fix = "write small letters, digits and dashes, a letter or digit at both ends";
                return Err(Problem::error(what).id(FAMILY.number(21)).fix(fix));
            }
        }
        if let Some(memory) = self.memory.as_deref().filter(|memory| !is_quantity(memory)) {
            let what =
                format!("`--memory-per-shard {}` is not a valid quantity in Kubernetes", printable(memory));
            return Err(Problem::error(what).id(FAMILY.number(21)).fix("write, say, 8Gi"));
        }
        let mount = Path::new(&self.mount);
        if !mount.is_absolute() || roots.iter().any(|root| !Path::new(root).starts_with(mount)) {
            let what = format!("`--mount-path {}` does not hold the run", printable(&self.mount));
            let problem = Problem::error(what).id(FAMILY.number(21));
            let why = "pods find project, ledger and jobs by the same paths as this machine";
            return Err(problem.why(why).fix("name a directory above all three, or leave it out"));
        }
        Ok(())
    }
}

/// Whether this is a valid object name.
fn is_name(name: &str) -> bool {
    let plain = |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    let bytes = name.as_bytes();
    bytes.len() <= 63
        && bytes.first().is_some_and(|first| plain(*first))
        && bytes.last().is_some_and(|last| plain(*last))
        && bytes.iter().all(|letter| plain(*letter) || *letter == b'-')
}

/// Whether this is a valid amount of memory.
fn is_quantity(text: &str) -> bool {
    const UNITS: [&str; 13] = ["", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    let digits = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    number.parse::<f64>().is_ok_and(|number| number > 0.0) && UNITS.contains(&unit)
}

pub fn job(contract: &Contract, folder: &Folder, pods: &Pods) -> Value {
    let mut arguments = vec!["run".to_owned()];
    let told = worker_arguments(contract, folder);
    arguments.extend(told.iter().map(|argument| kubernetes_argument(argument)));
    // Kubernetes fills in the index, counting completions from 0.
    arguments.extend(["--shard".to_owned(), format!("$(JOB_COMPLETION_INDEX)/{}", contract.shards)]);
    let mut container = json!({
        "name": "worker",
        "image": pods.image,
        "command": [contract.program],
        "args": arguments,
        "workingDir": contract.project,
        "volumeMounts": [{ "name": "shared", "mountPath": pods.mount }],
    });
    if let Some(secret) = &pods.secret {
        container["envFrom"] = json!([{ "secretRef": { "name": secret } }]);
    }
    let mut wanted = serde_json::Map::new();
    wanted.extend(pods.cpus.map(|cpus| ("cpu".to_owned(), json!(cpus.to_string()))));
    wanted.extend(pods.memory.as_ref().map(|memory| ("memory".to_owned(), json!(memory))));
    if !wanted.is_empty() {
        // Memory is also a limit, so that Kubernetes ends a shard that needs more, and not its neighbours.
        let limits: serde_json::Map<String, Value> = wanted
            .iter()
            .filter(|(name, _)| *name == "memory")
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        container["resources"] = json!({ "requests": wanted, "limits": limits });
    }
    let labels = json!({ "app.kubernetes.io/name": "aec-bench", "aec-bench/experiment": label(contract) });
    let mut metadata = json!({
        "name": format!("aec-{}", object_name(contract.experiment_id.as_str(), folder)),
        "labels": labels,
    });
    if let Some(namespace) = &pods.namespace {
        metadata["namespace"] = json!(namespace);
    }
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {
            "completionMode": "Indexed",
            "completions": contract.shards,
            "parallelism": contract.shards,
            "backoffLimitPerIndex": FAILURES,
            "podFailurePolicy": { "rules": [
                // A pod that was preempted or evicted did not fail: its shard continues on another node.
                { "action": "Ignore", "onPodConditions": [{ "type": "DisruptionTarget", "status": "True" }] },
                // A wrong command line or configuration fails at every attempt.
                { "action": "FailIndex",
                  "onExitCodes": { "containerName": "worker", "operator": "In", "values": [2, 3] } },
            ]},
            "template": {
                "metadata": { "labels": labels },
                "spec": {
                    "restartPolicy": "Never",
                    "terminationGracePeriodSeconds": GRACE,
                    "containers": [container],
                    "volumes": [{ "name": "shared", "persistentVolumeClaim": { "claimName": pods.claim } }],
                },
            },
        },
    })
}

/// An object name: lower case letters, digits and hyphens, short enough for the names of pods.
fn object_name(experiment: &str, folder: &Folder) -> String {
    const MOST: usize = 40;
    let number = folder.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut name: String = experiment
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .take(MOST)
        .collect();
    if name != experiment {
        // The digest distinguishes experiments whose names were changed or cut to the same text.
        let digest = aec_base::digest::Digest::of(experiment.as_bytes()).hex();
        name =
            format!("{}-{}", name.chars().take(MOST - 9).collect::<String>().trim_matches('-'), &digest[..8]);
    }
    format!("{}-{number}", name.trim_matches('-'))
}

/// A label value: at most 63 letters, digits, hyphens, dots and underscores, with a letter or digit at both ends.
fn label(contract: &Contract) -> String {
    let text: String = contract.experiment_id.as_str().chars().take(63).collect();
    text.trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Engine;
    use crate::contract::tests::example;

    fn pods() -> Pods {
        Pods {
            image: "registry.example/aec-bench:0.1.0".to_owned(),
            claim: "runs".to_owned(),
            mount: "/srv".to_owned(),
            secret: Some("aec-keys".to_owned()),
            namespace: Some("lab".to_owned()),
            cpus: Some(8),
            memory: Some("16Gi".to_owned()),
        }
    }

    #[test]
    fn a_job_of_eight_shards() {
        let folder = Folder::at("/srv/project/artefacts/ledger/exp-1/_run/cluster/0001");
        let job = job(&example(Engine::K8s), &folder, &pods());
        insta::assert_snapshot!(serde_json::to_string_pretty(&job).unwrap());
    }

    #[test]
    fn what_is_hostile_stays_text() {
        let folder = Folder::at("/srv/$(JOB_COMPLETION_INDEX)/0001");
        let contract = example(Engine::K8s);
        let job = job(&contract, &folder, &pods());
        let arguments = job["spec"]["template"]["spec"]["containers"][0]["args"].as_array().unwrap();
        assert!(arguments.contains(&json!("/srv/$$(JOB_COMPLETION_INDEX)/0001")));
        for (experiment, name) in [("a", "a-0001"), ("A.b_c", "a-b-c-"), (&"x".repeat(100), "xxxx")] {
            let found = object_name(experiment, &folder);
            assert!(found.starts_with(name) && found.len() <= 48, "{found}");
            assert!(
                found.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'),
                "{found}"
            );
        }
        assert_ne!(object_name("A", &folder), object_name("a", &folder));
    }
}
