//! Experiments on many machines. A plan is frozen in a folder that all machines share, together with everything that
//! workers need; each worker runs one shard of it with the ordinary dispatcher. Slurm and Kubernetes only start
//! workers. See `docs/scale-out.md`.
//!
//! This crate does not know how a trial runs; it neither prints nor keeps a process running.

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
