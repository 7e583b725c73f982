//! Publishing an evaluation, against a server that behaves like the hub.

#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that is not as it should be")]

mod account;
mod card;
mod failures;
mod names;
mod publish;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use aec_base::secret::Redactor;
use aec_eval::hub::{Account, HubError, HubOptions, Publication, Published, Visibility, publish};
use aec_http::pause::Rule;
use aec_xtest::hub::StandIn;
use tempfile::TempDir;

/// Metadata as an evaluation leaves them.
const METADATA: &str = r#"{"env_id": "tiny-single", "env_args": {}, "model": "openai/gpt-4.1-mini",
    "num_examples": 2, "rollouts_per_example": 3, "sampling_args": {"n": 1}, "time": 0.36, "avg_reward": 0.5,
    "avg_metrics": {"exact": 0.5, "num_turns": 1.0}, "avg_error": 0.0, "pass_at_k": {"1": 0.5, "2": 0.66667},
    "pass_all_k": {"1": 0.5, "2": 0.25}, "pass_threshold": 0.5,
    "usage": {"input_tokens": 43.0, "output_tokens": 1.25, "final_input_tokens": 43.0},
    "version_info": {"vf_version": "0.1.14", "env_version": "0.1.0"}, "state_columns": [], "tools": null}"#;

/// An evaluation on disk and a hub to publish it on.
struct Stage {
    hub: StandIn,
    directory: TempDir,
}

impl Stage {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let rows = "{\"example_id\": 0, \"reward\": 0.5}\n".repeat(6);
        std::fs::write(directory.path().join("results.jsonl"), rows).unwrap();
        std::fs::write(directory.path().join("metadata.json"), METADATA).unwrap();
        Self { hub: StandIn::start().await.unwrap(), directory }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    fn account(&self) -> Account {
        let endpoint = self.hub.base_url();
        Account::load(Path::new("/nowhere"), |name| match name {
            "HF_TOKEN" => Some("hf_test_token".to_owned()),
            "HF_ENDPOINT" => Some(endpoint.clone()),
            _ => None,
        })
        .unwrap()
    }

    fn publication(&self, dataset: Option<&str>) -> Publication {
        Publication {
            results: self.path("results.jsonl"),
            metadata: self.path("metadata.json"),
            dataset: dataset.map(ToOwned::to_owned),
            visibility: Visibility::Private,
            secrets: Arc::new(Redactor::default()),
        }
    }

    async fn publish(&self, dataset: Option<&str>) -> Result<Published, HubError> {
        publish(&self.account(), &self.publication(dataset), &options()).await
    }

    /// The content of a dataset's file on the hub.
    fn file(&self, dataset: &str, path: &str) -> bytes::Bytes {
        self.hub.with(|state| state.datasets[dataset].files[path].clone())
    }
}

fn options() -> HubOptions {
    HubOptions {
        attempts: 3,
        pauses: Rule::new(Duration::from_millis(1), Duration::from_secs(1)),
        ..HubOptions::default()
    }
}

/// The problem of an error: its id and its whole text, checked to contain no secret.
fn said(error: &HubError) -> (String, String) {
    let problem = error.problem();
    let text = format!(
        "{problem} {} {} {error:?}",
        problem.why.clone().unwrap_or_default(),
        problem.fix.clone().unwrap_or_default()
    );
    assert!(!text.contains("hf_test_token"), "{text}");
    assert!(!text.contains("s3cret"), "{text}");
    (problem.id.unwrap(), text)
}
