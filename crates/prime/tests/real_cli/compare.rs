//! Compares Prime's program with this crate on the same tasks.

use std::io::Cursor;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use aec_prime::rollouts::rows::Rows;
use aec_prime::rollouts::run::Run;
use aec_prime::service::adapters;
use aec_prime::service::client::{Client, ClientOptions};
use aec_prime::service::evaluations::{self, HostedEvaluation};
use aec_prime::service::hub::{self, EnvironmentName, Package, PushOptions};
use aec_prime::service::secrets::Secrets;
use aec_prime::service::train_config::{Difficulties, DifficultyFiltering, Target, TrainOptions};
use aec_prime::service::training::{self, EnvironmentCheck, TrainConfig};
use aec_prime::service::watch::WatchOptions;
use aec_xtest::prime::{StandIn, TrainingRun};
use serde_json::{Value, json};

use crate::real_cli::cli::{Prime, Version};
use crate::real_cli::with_each;

const BOTH: [Version; 2] = [Version::Described, Version::Newest];

const PROJECT: &str = r#"[project]
name = "aec-demo"
version = "0.1.0"
description = "A demo with ünïcode"
readme = "README.md"
requires-python = ">=3.10"
dependencies = ["verifiers>=0.1.14", "datasets >= 4.0"]

[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[tool.hatch.build.targets.wheel]
packages = ["aec_demo"]
"#;

/// Ignored files, files that only one of the archives has, unusual names.
pub(crate) fn write_package(directory: &Path) {
    let files = [
        ("pyproject.toml", PROJECT),
        ("README.md", "# Demo\n"),
        ("data.json", "{}"),
        (
            ".gitignore",
            "# notes\n*.log\n!keep.log\nignored/\n/top.py\n**/deep/*.tmp\na[0-9]?.txt\nout**put\n",
        ),
        ("helper.py", "X = 1\n"),
        ("top.py", "ignored\n"),
        ("aec_demo/__init__.py", "def load_environment():\n    return 'loaded'\n"),
        ("aec_demo/top.py", "kept\n"),
        ("aec_demo/tasks/ä b/task.toml", "x = 1\n"),
        ("aec_demo/tasks/build/input.txt", "only in the wheel\n"),
        ("aec_demo/.hidden", "hidden\n"),
        ("aec_demo/run.log", "ignored\n"),
        ("aec_demo/keep.log", "kept\n"),
        ("aec_demo/deep/a.tmp", "ignored\n"),
        ("aec_demo/a1x.txt", "ignored\n"),
        ("aec_demo/ab.txt", "kept\n"),
        ("aec_demo/outxput", "ignored\n"),
        ("aec_demo/ignored/x.py", "ignored\n"),
        ("aec_demo/__pycache__/a.pyc", "x"),
        ("aec_demo/demo.egg-info/PKG-INFO", "x"),
        ("aec_demo/Z.py", "1\n"),
        ("aec_demo/_a.py", "1\n"),
        ("ignored/x.py", "x"),
        ("notes/plan.md", "plan\n"),
    ];
    for (name, text) in files {
        let path = directory.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

/// A server, and a runtime that keeps it running while a program runs.
struct Service {
    runtime: tokio::runtime::Runtime,
    stand_in: StandIn,
}

impl Service {
    fn start() -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let stand_in = runtime.block_on(StandIn::start()).unwrap();
        Self { runtime, stand_in }
    }

    fn client(&self) -> Client {
        Client::new(crate::real_cli::settings(&self.stand_in), ClientOptions::default()).unwrap()
    }

    fn with_environment(self) -> Self {
        self.stand_in.with(|state| state.add_environment("me", "aec-demo"));
        self
    }

    /// Requests as `METHOD path`, with their bodies, without content that depends on the packer.
    fn sent(&self) -> Vec<(String, Value)> {
        let sent = self.stand_in.requests().into_iter().map(|request| {
            let path = request.path.split("/storage/").next().unwrap_or_default().to_owned();
            let mut body = request.json();
            if let Value::Object(body) = &mut body {
                for packed in ["sha256", "size"] {
                    body.remove(packed);
                }
            }
            (format!("{} {path}", request.method), body)
        });
        sent.collect()
    }
}

fn prime(prime: &Prime, service: &Service, directory: &Path, arguments: &[&str]) -> String {
    prime.run(&service.stand_in, directory, arguments).unwrap_or_else(|output| {
        panic!("prime {} {arguments:?}: {output}", prime.version.number());
    })
}

#[test]
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
fn whoami_and_models() {
    with_each(&BOTH, |program| {
        let service = Service::start();
        let output = prime(program, &service, Path::new("/"), &["--plain", "whoami"]);
        assert!(output.contains("t@example.com"), "{output}");
        let output = prime(program, &service, Path::new("/"), &["--plain", "inference", "models"]);
        assert!(output.contains("Qwen/Qwen3.5-4B"), "{output}");
        assert_eq!(service.stand_in.calls(), ["GET /api/v1/user/whoami", "GET /inference/v1/models"]);
    });
}

#[test]
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
fn env_push() {
    with_each(&BOTH, |program| {
        let directory = tempfile::tempdir().unwrap();
        write_package(directory.path());
        let ours = Service::start();
        let package = Package::build(directory.path()).unwrap();
        let options = PushOptions { owner: Some("me".to_owned()), ..PushOptions::default() };
        ours.runtime.block_on(hub::push(&ours.client(), &package, &options)).unwrap();

        let theirs = Service::start();
        let arguments = ["env", "push", "--visibility", "PRIVATE", "--plain", "--owner", "me"];
        let output = prime(program, &theirs, directory.path(), &arguments);
        assert!(output.contains("Successfully pushed me/aec-demo"), "{output}");
        let mut expected = theirs.sent();
        if !program.is_newest() {
            // The older program does not know runtimes.
            for (call, body) in &mut expected {
                if call.ends_with("/wheels") || call.ends_with("/versions") {
                    body["runtime_hint"] = json!("VERIFIERS_V0");
                }
            }
        }
        assert_eq!(ours.sent(), expected, "prime {}", program.version.number());

        same_archives(program, &ours, &theirs);

        // The note is where the program looks for it, and the program accepts ours.
        let note = std::fs::read_to_string(directory.path().join(".prime/.env-metadata.json")).unwrap();
        let theirs: Value = serde_json::from_str(&note).unwrap();
        let pushed = hub::Pushed {
            environment_id: "env1".to_owned(),
            owner: "me".to_owned(),
            name: "aec-demo".to_owned(),
            version: "0.1.0".to_owned(),
            content_hash: package.content_hash,
            wheel_sha256: package.wheel_sha256,
            runtime: None,
            created: true,
        };
        let fresh = tempfile::tempdir().unwrap();
        let path = hub::record_push(fresh.path(), &pushed, "2026-11-16T00:00:00").unwrap();
        let ours: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let keys = |note: &Value| {
            let mut keys: Vec<String> = note.as_object().unwrap().keys().cloned().collect();
            keys.sort_unstable();
            keys
        };
        assert_eq!(keys(&ours), keys(&theirs), "prime {}", program.version.number());
    });
}

/// Compares wheels and source archives: the same files with the same content, and the same metadata.
const SAME_ARCHIVES: &str = r#"
import sys, tarfile, zipfile
from email.parser import BytesParser
def wheel(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}
def source(path):
    with tarfile.open(path) as archive:
        return {member.name: archive.extractfile(member).read() for member in archive}
def facts(files):
    metadata = next(content for name, content in files.items() if name.endswith("/METADATA"))
    message = BytesParser().parsebytes(metadata)
    keys = ["Name", "Version", "Summary", "Requires-Python", "Description-Content-Type"]
    return [message[key] for key in keys], sorted(message.get_all("Requires-Dist")), message.get_payload().strip()
ours, theirs = wheel(sys.argv[1]), wheel(sys.argv[2])
package = lambda files: {name: content for name, content in files.items() if ".dist-info/" not in name}
assert package(ours) == package(theirs), set(ours) ^ set(theirs)
assert facts(ours) == facts(theirs), (facts(ours), facts(theirs))
assert source(sys.argv[3]) == source(sys.argv[4])
"#;

fn same_archives(program: &Prime, ours: &Service, theirs: &Service) {
    let directory = tempfile::tempdir().unwrap();
    let mut paths = Vec::new();
    for kind in [".whl", ".tar.gz"] {
        for (owner, service) in [("ours", ours), ("theirs", theirs)] {
            let path = directory.path().join(format!("{owner}{kind}"));
            std::fs::write(&path, service.stand_in.with(|state| state.stored(kind).cloned()).unwrap())
                .unwrap();
            paths.push(path);
        }
    }
    program.python(SAME_ARCHIVES, &paths).unwrap();
}

#[test]
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
fn hosted_evaluation() {
    with_each(&BOTH, |program| {
        let theirs = Service::start().with_environment();
        let env_args = r#"{"split": "eval", "difficulty": ["easy", "medium"], "seed": 7}"#;
        let arguments = [
            "--plain",
            "eval",
            "run",
            "me/aec-demo",
            "--model",
            "Qwen/Qwen3.5-4B:ad1",
            "--env-args",
            env_args,
            "--num-examples",
            "5",
            "--rollouts-per-example",
            "3",
            "--max-tokens",
            "4096",
            "--max-concurrent",
            "5",
            "--hosted",
            "--timeout-minutes",
            "120",
            "--follow",
            "--eval-name",
            "demo",
            "--poll-interval",
            "0.05",
        ];
        let output = prime(program, &theirs, Path::new("/"), &arguments);
        assert!(output.contains("line 6") && output.contains("COMPLETED"), "{output}");

        let ours = Service::start().with_environment();
        let client = ours.client();
        let evaluation = HostedEvaluation {
            model: "Qwen/Qwen3.5-4B:ad1".to_owned(),
            env_args: serde_json::from_str(env_args).unwrap(),
            num_examples: 5,
            rollouts_per_example: 3,
            max_tokens: Some(4096),
            max_concurrent: Some(5),
            timeout_minutes: Some(120),
            name: Some("demo".to_owned()),
            allow_sandbox_access: program.is_newest(),
            allow_tunnel_access: program.is_newest(),
            ..HostedEvaluation::default()
        };
        ours.runtime.block_on(async {
            let name: EnvironmentName = "me/aec-demo".parse().unwrap();
            let id = hub::details(&client, &name).await.unwrap().id;
            let evaluation = HostedEvaluation { environment_ids: vec![id], ..evaluation };
            let started = evaluations::start(&client, &evaluation).await.unwrap();
            let watch = WatchOptions { interval: Duration::from_millis(1), ..WatchOptions::default() };
            evaluations::follow(&client, &started.ids[0], &watch, |_| ControlFlow::Continue(()))
                .await
                .unwrap();
        });
        assert_eq!(ours.sent(), theirs.sent(), "prime {}", program.version.number());
    });
}

#[test]
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
fn evaluation_queries() {
    with_each(&BOTH, |program| {
        let service = Service::start().with_environment();
        let client = service.client();
        let evaluation = HostedEvaluation {
            environment_ids: vec!["env1".to_owned()],
            model: "m".to_owned(),
            num_examples: 5,
            rollouts_per_example: 3,
            ..HostedEvaluation::default()
        };
        service.runtime.block_on(evaluations::start(&client, &evaluation)).unwrap();
        let run = |arguments: &[&str]| prime(program, &service, Path::new("/"), arguments);
        let output = run(&["eval", "samples", "eval_1", "--plain", "-n", "10", "-p", "2", "-o", "json"]);
        let page: Value = serde_json::from_str(&output).unwrap();
        assert_eq!(page["samples"].as_array().unwrap().len(), 5);
        // The program's output can be imported as saved samples.
        let rows = Rows::document(Cursor::new(output.into_bytes()), Path::new("samples.json"));
        let rollouts: Vec<_> = rows.map(|row| row.unwrap().rollouts.remove(0)).collect();
        assert_eq!(rollouts.len(), 5);
        assert!(rollouts.iter().all(|rollout| rollout.sample_id.is_some() && rollout.reward.is_some()));
        let output = run(&["eval", "get", "eval_1", "--plain", "-o", "json"]);
        let evaluation: Value = serde_json::from_str(&output).unwrap();
        assert_eq!(evaluation["evaluation_id"], "eval_1");
        assert_eq!(Run::from_evaluation(&evaluation).evaluation_id.as_deref(), Some("eval_1"));
        assert!(run(&["--plain", "eval", "list"]).contains("eval_1"));
        run(&["--plain", "eval", "stop", "eval_1"]);
        let status = service.runtime.block_on(evaluations::get(&client, "eval_1")).unwrap().status;
        assert_eq!(status.to_string(), "CANCELLED");
    });
}

fn train_options() -> TrainOptions {
    TrainOptions {
        model: "Qwen/Qwen3.5-4B".to_owned(),
        difficulties: Difficulties::Ratios(vec![("easy".to_owned(), 0.6), ("medium".to_owned(), 0.4)]),
        harness: Some("stateful".to_owned()),
        num_examples: Some(50),
        filtering: Some(DifficultyFiltering { easy_fraction: 0.25, ..DifficultyFiltering::default() }),
        ..TrainOptions::new("me/aec-demo".parse().unwrap())
    }
}

/// Starts a run from a file with this crate and returns the body of the request.
fn our_start(path: &Path, arguments: &[String]) -> Value {
    let service = Service::start().with_environment();
    let config = TrainConfig::read(path).unwrap();
    let secrets = Secrets::collect(&config.secret_files().unwrap(), arguments, |_| None).unwrap();
    let check = EnvironmentCheck::Required;
    service.runtime.block_on(training::start(&service.client(), &config, &secrets, check)).unwrap();
    service.stand_in.requests().pop().unwrap().json()
}

#[test]
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
fn shared_training() {
    with_each(&[Version::Described, Version::LastShared, Version::Newest], |program| {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("train.toml");
        std::fs::write(&path, train_options().write(Target::SharedLora).unwrap().text).unwrap();
        let service = Service::start().with_environment();
        let arguments = ["train", "train.toml", "--plain", "--yes", "-e", "A=1"];
        let outcome = program.run(&service.stand_in, directory.path(), &arguments);
        if program.is_newest() {
            let output = outcome.unwrap_err();
            assert!(output.contains("no longer accepts new runs"), "{output}");
            assert!(service.stand_in.requests().is_empty());
            return;
        }
        let output = outcome.unwrap();
        assert!(output.contains("Run created"), "{output}");
        let theirs = service.stand_in.requests().pop().unwrap();
        assert_eq!(theirs.path, "/api/v1/rft/runs");
        let mut ours = our_start(&path, &["A=1".to_owned()]);
        if program.version == Version::LastShared {
            // The new version dropped the buffer and renamed the first evaluation.
            ours.as_object_mut().unwrap().remove("buffer");
            let eval = ours["eval"].as_object_mut().unwrap();
            let before = eval.remove("eval_base_model").unwrap().as_bool().unwrap();
            eval.insert("skip_first_step".to_owned(), json!(!before));
        }
        assert_eq!(ours, theirs.json(), "prime {}", program.version.number());
    });
}

#[test]
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
fn dedicated_training() {
    with_each(&[Version::Newest], |program| {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("train.toml");
        let text = train_options().write(Target::PrimeRl).unwrap().text;
        let text = format!("name = \"demo\"\nimage_tag = \"main\"\ngpu_type = \"H100_80GB\"\n{text}");
        std::fs::write(&path, text).unwrap();
        let service = Service::start();
        let arguments = ["train", "train.toml", "--plain", "--yes", "-e", "HF_TOKEN=hf"];
        prime(program, &service, directory.path(), &arguments);
        let theirs = service.stand_in.requests().pop().unwrap();
        assert_eq!(theirs.path, "/api/v1/training/runs");
        assert_eq!(our_start(&path, &["HF_TOKEN=hf".to_owned()]), theirs.json());
    });
}

#[test]
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
fn training_queries() {
    with_each(&BOTH, |program| {
        let service = Service::start();
        let mut run = TrainingRun::new(json!({"model": {"name": "Qwen/Qwen3.5-4B"}}), false);
        run.checkpoints = vec![json!({"id": "cp1", "rftRunId": "run_1", "step": 10, "status": "READY",
            "storageUrl": "s3://x", "sizeBytes": 5, "createdAt": "2026-11-15T00:00:00Z"})];
        service.stand_in.with(|state| state.runs.insert("run_1".to_owned(), run));
        let run = |arguments: &[&str]| prime(program, &service, Path::new("/"), arguments);
        assert!(run(&["--plain", "train", "get", "run_1", "-o", "json"]).contains("QUEUED"));
        assert!(run(&["--plain", "train", "list"]).contains("run_1"));
        assert!(run(&["--plain", "train", "logs", "run_1"]).contains("reward 0.3"));
        assert!(run(&["--plain", "train", "metrics", "run_1"]).contains("reward/mean"));
        assert!(run(&["--plain", "train", "progress", "run_1"]).contains("latest_step"));
        assert!(run(&["--plain", "train", "checkpoints", "run_1", "-o", "json"]).contains("cp1"));
        run(&["--plain", "train", "stop", "run_1", "--force"]);
        let stopped = service.runtime.block_on(training::get(&service.client(), "run_1")).unwrap();
        assert_eq!(stopped.status, "STOPPED");
    });
}

#[test]
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
fn deployments() {
    with_each(&[Version::Described], |program| {
        let service = Service::start();
        let rows = (0..45).map(|index| {
            json!({"id": format!("ad{index}"), "displayName": "d", "userId": "u1", "teamId": null, "rftRunId": "r",
                   "baseModel": "m", "step": index, "status": "READY", "deploymentStatus": "DEPLOYED",
                   "createdAt": "2026-11-15T00:00:00Z", "updatedAt": "2026-11-15T00:00:00Z"})
        });
        service.stand_in.with(|state| state.adapters = rows.collect());
        let output =
            prime(program, &service, Path::new("/"), &["--plain", "deployments", "list", "--output", "json"]);
        let theirs: Value = serde_json::from_str(&output).unwrap();
        assert_eq!(theirs["models"].as_array().unwrap().len(), 20, "the program shows one page");
        let ours = service.runtime.block_on(adapters::list(&service.client())).unwrap();
        assert_eq!(ours.len(), 45);
    });
}
