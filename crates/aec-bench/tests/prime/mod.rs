//! Environment packages from outside: what `prime export` writes, which tasks the Python runtime then offers, and how
//! the released versions of `verifiers` run them.

#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that is not as it should be")]

mod packages;
mod refusals;
mod runtime;
mod selection;
mod smoke;
mod venv;
mod world;
