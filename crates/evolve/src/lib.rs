//! Prompts and skills that improve by measured selection.
//!
//! A run makes candidates from candidates, lets them work on the same tasks, and accepts one only when a test that may
//! be looked at after every task says that it is better on tasks that nobody learns from. Everything that happens is an
//! event in a log; what a run knows is what its events add up to, so a run that was killed goes on where it was, and
//! its archive can be made again from the log.
//!
//! - [`workspace`]: what is improved, versioned with git.
//! - [`config`]: `evolution.yaml` and `swarm.yaml`.
//! - [`event`], [`log`], [`state`], [`journal`]: what happened, kept, and added up.
//! - [`archive`], [`gate`], [`strategy`]: what is kept of many candidates, what makes one the best, where to go on.
//! - [`edit`], [`guard`], [`analyse`], [`brief`], [`propose`]: from failures to a new candidate.
//! - [`division`], [`supply`], [`arena`]: tasks by what they are for, and agents at work on them.
//! - [`step`], [`cycle`], [`evolution`], [`swarm`]: what a cycle needs next, one cycle, a run of cycles, many agents at once.
//! - [`view`]: a run as it is shown.

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
