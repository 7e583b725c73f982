//! Experiments on many machines. A plan is frozen in a folder that all machines share, together with everything that
//! workers need to know; each worker carries out one shard of it with the ordinary dispatcher. Slurm and Kubernetes
//! only start workers. The document is `docs/scale-out.md`.
//!
//! Nothing here knows how a trial runs, prints, or keeps a process of its own.

pub mod contract;
pub mod environment;
pub mod kubernetes;
pub mod merge;
pub mod overview;
pub mod process;
pub mod queue;
pub mod sbatch;
pub mod segment;
pub mod shell;
pub mod slurm;

use aec_base::document::Family;

/// Problems of clusters are `J…`.
pub const FAMILY: Family = Family('J');
