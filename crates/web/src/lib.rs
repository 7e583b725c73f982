//! The local web interface: ledger, reports, tasks, templates and datasets as pages, and live runs.
//!
//! It reads and never writes. Pages are rendered here and work without their script; everything that agents, tasks and
//! verifiers wrote reaches them only as text.

mod assets;
mod cache;
mod connections;
mod evolutions;
mod guard;
mod href;
mod html;
mod live;
mod pages;
mod records;
mod respond;
mod routes;
mod site;
mod trace;
mod words;

pub use connections::{BindError, Options, Server};
pub use pages::evolution::standalone as evolution_page;
pub use site::Places;
