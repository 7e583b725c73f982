//! Slurm's programs: submit, query, cancel. Each failure is a problem that says what to do.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use aec_base::problem::Problem;
use aec_base::text;

use crate::FAMILY;
use crate::process::{self, Answer};
use crate::queue::{self, Entry};

/// How long `sbatch` may take: a busy controller answers late.
const SUBMITTING: Duration = Duration::from_mins(1);

/// How long a query may take.
const ASKING: Duration = Duration::from_secs(20);

/// Slurm on this machine.
#[derive(Clone, Debug)]
pub struct Slurm {
    sbatch: PathBuf,
    squeue: PathBuf,
    scancel: PathBuf,
    scontrol: PathBuf,
    /// Variables that Slurm's programs do not inherit.
    secrets: Vec<String>,
}

impl Slurm {
    /// Finds Slurm's programs. They do not inherit the variables with these names: jobs are submitted with
    /// `--export=NONE`, so keys never reach Slurm.
    pub fn find(search_path: Option<&OsStr>, secrets: Vec<String>) -> Result<Self, Problem> {
        let found = |name: &str| {
            process::find(name, search_path).ok_or_else(|| {
                Problem::error(format!("there is no `{name}` on PATH"))
                    .id(FAMILY.number(10))
                    .why("`--engine slurm` submits through the programs of Slurm")
                    .fix("run it on a login node of the cluster, or write the scripts only with --render")
            })
        };
        Ok(Self {
            sbatch: found("sbatch")?,
            squeue: found("squeue")?,
            scancel: found("scancel")?,
            scontrol: found("scontrol")?,
            secrets,
        })
    }

    fn ask(
        &self,
        program: &Path,
        arguments: &[OsString],
        directory: Option<&Path>,
        patience: Duration,
    ) -> io::Result<Answer> {
        process::ask(program, arguments, directory, &self.secrets, patience)
    }

    /// The version that Slurm reports.
    pub fn version(&self) -> Result<String, Problem> {
        let answer = self.ask(&self.squeue, &["--version".into()], None, ASKING);
        let said = answer.map_err(|error| unreachable(&error.to_string()))?;
        let text = String::from_utf8_lossy(&said.stdout).trim().trim_start_matches("slurm ").to_owned();
        if said.success && !text.is_empty() {
            Ok(text::printable(&text).into_owned())
        } else {
            Err(unreachable(&said.stderr))
        }
    }

    /// How many shards an array may have. Fails if the controller does not answer.
    pub fn most_shards(&self) -> Result<Option<usize>, Problem> {
        let arguments = ["show", "config"].map(OsString::from);
        let said = self
            .ask(&self.scontrol, &arguments, None, ASKING)
            .map_err(|error| unreachable(&error.to_string()))?;
        if !said.success {
            return Err(unreachable(&said.stderr));
        }
        let text = String::from_utf8_lossy(&said.stdout);
        let size = text.lines().find_map(|line| {
            let (name, value) = line.split_once('=')?;
            (name.trim() == "MaxArraySize").then(|| value.trim().parse::<usize>().ok()).flatten()
        });
        // The highest index is one less than this size, and indices begin with 0.
        Ok(size)
    }

    /// Refuses more shards than an array of this cluster may have.
    pub fn check_shards(&self, shards: usize) -> Result<(), Problem> {
        match self.most_shards()? {
            Some(most) if shards > most => {
                let what = format!(
                    "an array of this cluster has at most {most} tasks, {shards} shards were asked for"
                );
                Err(Problem::error(what)
                    .id(FAMILY.number(12))
                    .why("MaxArraySize in slurm.conf bounds arrays")
                    .fix(format!(
                        "pass --shards {most} or fewer: each shard runs many trials at once (--concurrency)"
                    )))
            }
            _ => Ok(()),
        }
    }

    /// Submits a script and returns the id of the job.
    pub fn submit(&self, script: &Path, options: &[String]) -> Result<u64, Problem> {
        let mut arguments: Vec<OsString> = vec!["--parsable".into()];
        arguments.extend(options.iter().map(OsString::from));
        arguments.push(script.into());
        let refused = |why: String| {
            Problem::error("sbatch does not take the job")
                .id(FAMILY.number(11))
                .why(why)
                .fix("correct --partition, --time, --account and the like; `sinfo` lists what there is")
        };
        let said = self
            .ask(&self.sbatch, &arguments, script.parent(), SUBMITTING)
            .map_err(|error| refused(error.to_string()))?;
        if !said.success {
            return Err(refused(said.stderr));
        }
        let text = String::from_utf8_lossy(&said.stdout);
        // `ID` or `ID;CLUSTER`, perhaps after lines that the site adds.
        let id = text.lines().rev().find_map(|line| line.trim().split(';').next()?.parse().ok());
        id.ok_or_else(|| refused(format!("it answered `{}`", text::printable(text.trim()))))
    }

    /// The queue's entries of the given jobs. Slurm forgets jobs that ended a while ago.
    pub fn queue(&self, jobs: &[u64], shards: usize) -> Result<Vec<Entry>, Problem> {
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        let said = self
            .ask(&self.squeue, &["--json".into()], None, ASKING)
            .map_err(|error| unreachable(&error.to_string()))?;
        if !said.success {
            return Err(unreachable(&said.stderr));
        }
        queue::parse(&said.stdout, jobs, shards)
    }

    /// Cancels a job, or only those of its tasks that have not begun.
    pub fn cancel(&self, job: u64, which: Which) -> Result<(), Problem> {
        let mut arguments: Vec<OsString> = Vec::new();
        if which == Which::Waiting {
            arguments.push("--state=PENDING".into());
        }
        arguments.push(job.to_string().into());
        let problem = |why: &str| {
            let problem =
                Problem::error(format!("job {job} cannot be cancelled")).id(FAMILY.number(18)).why(why);
            problem.fix(format!("try `scancel {job}`"))
        };
        let said =
            self.ask(&self.scancel, &arguments, None, ASKING).map_err(|error| problem(&error.to_string()))?;
        // A finished job cannot be cancelled, and need not be.
        if said.success || said.stderr.contains("Invalid job id") {
            Ok(())
        } else {
            Err(problem(&said.stderr))
        }
    }
}

/// Which tasks of a job to cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    All,
    /// Only those that have not begun.
    Waiting,
}

fn unreachable(why: &str) -> Problem {
    Problem::error("Slurm does not answer")
        .id(FAMILY.number(13))
        .why(if why.is_empty() { "no reason was given".to_owned() } else { why.to_owned() })
        .fix("see `sinfo`; what is recorded is safe, and workers go on by themselves")
}
