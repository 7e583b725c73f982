//! Improves prompts and skills by measured selection.
//!
//! A run makes candidates from candidates, runs them on the same tasks, and accepts one only if a sequential test shows
//! that it is better on tasks that no agent learns from. Everything that happens is an event in a log; the state of a
//! run is the sum of its events, so a killed run can be resumed, and its archive can be rebuilt from the log.
//!
//! - [`workspace`]: what is improved, versioned with git.
//! - [`config`]: `evolution.yaml` and `swarm.yaml`.
//! - [`event`], [`log`], [`state`], [`journal`]: events, their storage, and their sum.
//! - [`archive`], [`gate`], [`strategy`]: which candidates are kept, which one is the best, and where to continue.
//! - [`edit`], [`guard`], [`analyse`], [`brief`], [`propose`]: from failures to a new candidate.
//! - [`division`], [`supply`], [`arena`]: tasks by purpose, and agents at work on them.
//! - [`step`], [`cycle`], [`evolution`], [`swarm`]: the next step, one cycle, a run of cycles, many agents at once.
//! - [`view`]: a run as users see it.

pub mod analyse;
pub mod archive;
pub mod arena;
pub mod brief;
pub mod config;
pub mod cycle;
pub mod division;
pub mod edit;
pub mod event;
pub mod evolution;
pub mod gate;
pub mod guard;
pub mod journal;
pub mod log;
pub mod propose;
pub mod run;
pub mod state;
pub mod step;
pub mod strategy;
pub mod supply;
pub mod swarm;
pub mod view;
mod voices;
pub mod workspace;

use aec_base::document::Family;

/// Problems of evolution are `X…`.
pub const FAMILY: Family = Family('X');
