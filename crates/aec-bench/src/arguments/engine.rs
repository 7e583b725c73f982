//! Arguments of `aec-bench run` that say who carries a plan out: this process, or workers on a cluster.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

/// Who carries a plan out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineChoice {
    // This process. Doc comments would make the help twice as long.
    #[default]
    Local,
    // Workers in an array of Slurm.
    Slurm,
    // Workers in an indexed job of Kubernetes.
    K8s,
}

/// Flags of engines. All but `--engine` need one other than `local`.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Clusters")]
pub(crate) struct EngineArguments {
    /// Who carries the plan out: this process, an array of Slurm, or an indexed job of Kubernetes
    #[arg(long, value_enum, value_name = "NAME", default_value_t)]
    pub(crate) engine: EngineChoice,
    /// Into how many parts the plan is divided; each is one worker that runs many trials at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) shards: Option<u32>,
    /// Write what the cluster would be given and submit nothing
    #[arg(long, conflicts_with_all = ["detach", "dry_run"])]
    pub(crate) render: bool,
    /// Do not wait for the end
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) detach: bool,
    /// Partition (Slurm)
    #[arg(long, value_name = "NAME")]
    pub(crate) partition: Option<String>,
    /// Time limit of each worker, such as 04:00:00 (Slurm)
    #[arg(long, value_name = "TIME")]
    pub(crate) time: Option<String>,
    /// Account (Slurm)
    #[arg(long, value_name = "NAME")]
    pub(crate) account: Option<String>,
    /// Quality of service (Slurm)
    #[arg(long, value_name = "NAME")]
    pub(crate) qos: Option<String>,
    /// Further option of sbatch for the shards, such as --sbatch=--gres=gpu:1 (Slurm)
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    pub(crate) sbatch: Vec<String>,
    /// Processors of each worker
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) cpus_per_shard: Option<u32>,
    /// Memory of each worker, such as 16G (Slurm) or 16Gi (Kubernetes)
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory_per_shard: Option<String>,
    /// Image with aec-bench, bash and Python (Kubernetes)
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: Option<String>,
    /// Claim of the volume that all pods share (Kubernetes)
    #[arg(long, value_name = "NAME")]
    pub(crate) volume_claim: Option<String>,
    /// Where the volume is mounted, here and in pods [default: the directory above project, ledger and jobs] (Kubernetes)
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) mount_path: Option<String>,
    /// Secret with the variables that workers need (Kubernetes)
    #[arg(long, value_name = "NAME")]
    pub(crate) secret: Option<String>,
    /// Namespace (Kubernetes)
    #[arg(long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// Folder with the contract of a worker; engines pass it
    #[arg(
        long,
        value_name = "DIR",
        hide = true,
        requires = "locked",
        requires = "shard",
        conflicts_with = "engine"
    )]
    pub(crate) contract: Option<PathBuf>,
}

impl EngineArguments {
    /// Flags that only this engine understands, as far as they were given.
    pub(crate) fn given(&self) -> Vec<(&'static str, Option<EngineChoice>)> {
        let slurm = Some(EngineChoice::Slurm);
        let k8s = Some(EngineChoice::K8s);
        [
            ("--shards", None, self.shards.is_some()),
            ("--render", None, self.render),
            ("--detach", slurm, self.detach),
            ("--partition", slurm, self.partition.is_some()),
            ("--time", slurm, self.time.is_some()),
            ("--account", slurm, self.account.is_some()),
            ("--qos", slurm, self.qos.is_some()),
            ("--sbatch", slurm, !self.sbatch.is_empty()),
            ("--cpus-per-shard", None, self.cpus_per_shard.is_some()),
            ("--memory-per-shard", None, self.memory_per_shard.is_some()),
            ("--image", k8s, self.image.is_some()),
            ("--volume-claim", k8s, self.volume_claim.is_some()),
            ("--mount-path", k8s, self.mount_path.is_some()),
            ("--secret", k8s, self.secret.is_some()),
            ("--namespace", k8s, self.namespace.is_some()),
        ]
        .into_iter()
        .filter(|(_, _, given)| *given)
        .map(|(flag, engine, _)| (flag, engine))
        .collect()
    }
}
