//! Records for tests.

use aec_base::content::ContentStore;
use serde_json::json;

use crate::record::{Artefact, TrialRecord};

/// A scored attempt of the experiment `exp` with these files, whose contents are kept.
pub(crate) fn record_with(
    contents: &ContentStore,
    trial: &str,
    attempt: u32,
    files: &[(&str, &[u8])],
) -> TrialRecord {
    let digest = format!("sha256:{:064}", 0);
    let mut record: TrialRecord = serde_json::from_value(json!({
        "schema_version": 1,
        "trial_id": trial,
        "experiment_id": "exp",
        "timestamp": "2026-04-12T00:00:00Z",
        "attempt": attempt,
        "repetition": 1,
        "key": digest,
        "plan": digest,
        "outcome": "scored",
        "task": {"task_id": "civil/a", "task_revision": digest, "domain": "civil", "family": "civil/a"},
        "agent": {"name": "oracle", "adapter": "oracle", "configuration": {}, "digest": digest},
        "environment": {
            "runtime_image": "local",
            "compute_backend": "local",
            "limits": {"cpus": 1, "memory_mb": 512, "storage_mb": 512, "pids": 64},
            "timeout_sec": 60,
            "network": false,
            "tool_versions": {},
        },
        "inputs": {"instruction": "Write the answer.", "input_files": []},
        "outputs": {"agent_result": {}},
        "cost": {},
        "artefacts": [],
        "completeness": "complete",
        "timing": {},
    }))
    .unwrap();
    record.artefacts = files
        .iter()
        .map(|(path, content)| Artefact {
            path: (*path).to_owned(),
            digest: contents.put(content).unwrap(),
            size: content.len() as u64,
        })
        .collect();
    record
}
