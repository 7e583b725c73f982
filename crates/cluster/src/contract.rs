//! The shard contract: a folder below the experiment's `_run` with everything that a worker on another machine needs.
//!
//! ```text
//! _run/cluster/0001/contract.json     how to execute the plan; no secrets
//! _run/cluster/0001/plan.json         the frozen plan
//! _run/cluster/0001/environment.json  variables that workers need; mode 600, removed when everything is recorded
//! _run/cluster/0001/shards.sbatch     the script for Slurm, or job.json for Kubernetes
//! _run/cluster/0001/merge.sbatch
//! _run/cluster/0001/jobs.json         ids of the jobs
//! _run/cluster/0001/logs/             output of the workers
//! _run/cluster/0001/shards/           the progress that each shard reports
//! _run/cluster/0001/book/             what all shards together have spent, if there is a budget
//! _run/cluster/0001/stop              the user's request that the shards stop
//! _run/cluster/0001/summary.json      the result of the merge
//! ```
//!
//! Every submission has its own folder; the latest one counts.

use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use aec_base::digest::Digest;
use aec_base::file::write_atomic;
use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_base::timestamp::Timestamp;
use aec_ledger::layout::ExperimentDirectory;
use aec_run::control::Wish;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::FAMILY;

pub const CONTRACT_VERSION: u32 = 1;

/// The system that starts the workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// A Slurm job array.
    Slurm,
    /// An indexed Kubernetes job.
    K8s,
}

impl Engine {
    pub fn name(self) -> &'static str {
        match self {
            Self::Slurm => "slurm",
            Self::K8s => "k8s",
        }
    }
}

/// How workers on other machines execute a plan. It holds no secrets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Contract {
    pub schema_version: u32,
    pub engine: Engine,
    pub experiment_id: Name,
    pub plan: Digest,
    pub shards: usize,
    pub trials: usize,
    /// Number of trials without a result at the time of submission.
    pub to_run: usize,
    pub created_at: Timestamp,
    pub tool_version: String,
    /// The program that workers run.
    pub program: String,
    /// The directory in which workers start: the root of the project.
    pub project: String,
    pub ledger: String,
    pub jobs: String,
    /// Flags of `run` that every worker receives.
    pub flags: Vec<String>,
    /// Trials to run again although they have a record, each with the attempt that does not suffice.
    #[serde(default)]
    pub rerun: Vec<Again>,
    /// What the experiment had spent before, if it has a budget.
    #[serde(default)]
    pub spent_before: Option<Spent>,
    /// Names of the variables that workers receive. `environment.json` holds their values.
    #[serde(default)]
    pub variables: Vec<String>,
}

/// A trial to run again. Any attempt after this one suffices, so a restarted worker does not run it once more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Again {
    pub trial: Name,
    /// The latest attempt when the run was submitted.
    pub attempt: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    pub usd: f64,
    pub tokens: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Jobs {
    pub array: Option<u64>,
    pub merge: Option<u64>,
}

impl Jobs {
    pub fn ids(&self) -> Vec<u64> {
        self.array.into_iter().chain(self.merge).collect()
    }
}

/// The folder of one submission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// An existing folder.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Creates the folder of a new submission, which only its owner can read.
    pub fn create(directory: &ExperimentDirectory) -> io::Result<Self> {
        let root = root(directory);
        fs_err::create_dir_all(&root)?;
        let mut number = numbers(&root)?.last().map_or(1, |last| last + 1);
        loop {
            let path = root.join(format!("{number:04}"));
            match std::fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {
                    for name in ["logs", "shards"] {
                        fs_err::create_dir(path.join(name))?;
                    }
                    return Ok(Self { path });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => {
                    return Err(io::Error::new(error.kind(), format!("{}: {error}", path.display())));
                }
            }
        }
    }

    /// The folder of the latest submission, if there is one.
    pub fn latest(directory: &ExperimentDirectory) -> io::Result<Option<Self>> {
        let root = root(directory);
        let last = match numbers(&root) {
            Ok(numbers) => numbers.last().copied(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        Ok(last.map(|number| Self { path: root.join(format!("{number:04}")) }))
    }

    /// Removes the folder after a submission failed.
    pub fn remove(self) -> io::Result<()> {
        fs_err::remove_dir_all(self.path)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn plan(&self) -> PathBuf {
        self.path.join("plan.json")
    }

    pub fn environment(&self) -> PathBuf {
        self.path.join("environment.json")
    }

    /// The Slurm script of the shards.
    pub fn shards_script(&self) -> PathBuf {
        self.path.join("shards.sbatch")
    }

    /// The Slurm script of the merge.
    pub fn merge_script(&self) -> PathBuf {
        self.path.join("merge.sbatch")
    }

    /// The Kubernetes manifest.
    pub fn manifest(&self) -> PathBuf {
        self.path.join("job.json")
    }

    /// Output of the workers.
    pub fn logs(&self) -> PathBuf {
        self.path.join("logs")
    }

    /// The progress that a shard reports.
    pub fn segment(&self, shard: usize) -> PathBuf {
        self.path.join("shards").join(format!("{shard}.json"))
    }

    /// What all shards together have spent.
    pub fn book(&self) -> PathBuf {
        self.path.join("book")
    }

    /// The result of the merge.
    pub fn summary(&self) -> PathBuf {
        self.path.join("summary.json")
    }

    pub fn write_contract(&self, contract: &Contract) -> io::Result<()> {
        self.write("contract.json", contract)
    }

    pub fn contract(&self) -> Result<Contract, Problem> {
        let path = self.path.join("contract.json");
        let contract: Contract = read_json(&path)?.ok_or_else(|| {
            Problem::error("there is no contract in this folder")
                .id(FAMILY.number(14))
                .why("a worker finds its plan in a folder that all machines share")
                .fix("put the ledger on a file system that every node mounts at the same path")
                .in_file(&path)
        })?;
        if contract.schema_version != CONTRACT_VERSION {
            let what = format!(
                "the contract has version {}, this program reads version {CONTRACT_VERSION}",
                contract.schema_version
            );
            let problem = Problem::error(what).id(FAMILY.number(20)).in_file(path);
            return Err(problem.fix("use the program that submitted the run"));
        }
        Ok(contract)
    }

    pub fn write_jobs(&self, jobs: &Jobs) -> io::Result<()> {
        self.write("jobs.json", jobs)
    }

    /// The ids of the jobs; empty when nothing was submitted yet.
    pub fn jobs(&self) -> Result<Jobs, Problem> {
        Ok(read_json(&self.path.join("jobs.json"))?.unwrap_or_default())
    }

    /// Asks all shards of this submission to stop, including those that have not begun.
    pub fn ask_to_stop(&self, wish: Wish) -> io::Result<()> {
        let text = if wish == Wish::GiveUp { "give up\n" } else { "finish\n" };
        write_atomic(&self.path.join("stop"), text.as_bytes())
    }

    /// What the user asked the shards to do.
    pub fn wish(&self) -> Wish {
        match fs_err::read_to_string(self.path.join("stop")).as_deref().map(str::trim) {
            Ok("finish") => Wish::Finish,
            Ok("give up") => Wish::GiveUp,
            _ => Wish::GoOn,
        }
    }

    fn write(&self, name: &str, value: &impl Serialize) -> io::Result<()> {
        write_json(&self.path.join(name), value)
    }
}

/// Writes a value as indented JSON, atomically.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    write_atomic(path, text.as_bytes())
}

/// Reads what [`write_json`] wrote; `None` when there is no file.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, Problem> {
    let bytes = match fs_err::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(path, &error)),
    };
    aec_base::json::from_slice(&bytes).map(Some).map_err(|error| unreadable(path, &error))
}

fn unreadable(path: &Path, error: &dyn std::fmt::Display) -> Problem {
    Problem::error(format!("a file of the run cannot be read: {error}"))
        .id(FAMILY.number(1))
        .fix("check the folder and its permissions, or submit the run again")
        .in_file(path)
}

fn root(directory: &ExperimentDirectory) -> PathBuf {
    directory.run().join("cluster")
}

/// The numbers of the submissions, sorted.
fn numbers(root: &Path) -> io::Result<Vec<u32>> {
    let mut found = Vec::new();
    for entry in fs_err::read_dir(root)? {
        found.extend(entry?.file_name().to_str().and_then(|name| name.parse::<u32>().ok()));
    }
    found.sort_unstable();
    Ok(found)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use aec_ledger::layout::Ledger;

    use super::*;

    pub(crate) fn example(engine: Engine) -> Contract {
        Contract {
            schema_version: CONTRACT_VERSION,
            engine,
            experiment_id: Name::parse("exp-1").unwrap(),
            plan: Digest::of(b"plan"),
            shards: 8,
            trials: 20_000,
            to_run: 20_000,
            created_at: Timestamp::from_seconds(0),
            tool_version: "0.1.0".to_owned(),
            program: "/opt/aec/aec-bench".to_owned(),
            project: "/srv/project".to_owned(),
            ledger: "/srv/project/artefacts/ledger".to_owned(),
            jobs: "/srv/project/jobs".to_owned(),
            flags: ["--concurrency", "32", "--max-cost", "2.50"].map(str::to_owned).to_vec(),
            rerun: Vec::new(),
            spent_before: None,
            variables: vec!["OPENAI_API_KEY".to_owned()],
        }
    }

    #[test]
    fn submissions_have_folders_of_their_own() {
        let directory = tempfile::tempdir().unwrap();
        let experiment = Ledger::new(directory.path()).experiment(&Name::parse("exp-1").unwrap());
        assert_eq!(Folder::latest(&experiment).unwrap(), None);
        let first = Folder::create(&experiment).unwrap();
        assert_eq!(first.path().metadata().unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(first.contract().unwrap_err().id.as_deref(), Some("J014"));
        let contract = example(Engine::Slurm);
        first.write_contract(&contract).unwrap();
        assert_eq!(first.contract().unwrap(), contract);
        assert_eq!(first.jobs().unwrap(), Jobs::default());
        first.write_jobs(&Jobs { array: Some(7), merge: Some(8) }).unwrap();
        assert_eq!(first.jobs().unwrap().ids(), [7, 8]);
        assert_eq!(first.wish(), Wish::GoOn);
        first.ask_to_stop(Wish::GiveUp).unwrap();
        assert_eq!(first.wish(), Wish::GiveUp);
        let second = Folder::create(&experiment).unwrap();
        assert!(second.path().ends_with("_run/cluster/0002"));
        assert_eq!(Folder::latest(&experiment).unwrap(), Some(second.clone()));
        assert_eq!(second.wish(), Wish::GoOn, "a new submission was not asked to stop");
        second.remove().unwrap();
        assert_eq!(Folder::latest(&experiment).unwrap(), Some(first.clone()));
        first.write_contract(&Contract { schema_version: 9, ..contract }).unwrap();
        assert_eq!(first.contract().unwrap_err().id.as_deref(), Some("J020"));
        for broken in ["", "{", "[]", "{\"schema_version\": \"x\"}"] {
            std::fs::write(first.path().join("contract.json"), broken).unwrap();
            assert_eq!(first.contract().unwrap_err().id.as_deref(), Some("J001"), "{broken}");
        }
    }
}
