//! Prime's REST API without Prime's command line program.
//!
//! [`settings`] reads what `prime login` wrote, [`client`] sends the calls, and each other module is one thing that
//! users do there: [`hub`] publishes an environment package, [`evaluations`] runs hosted evaluations and reads their
//! samples, [`adapters`] finds deployed adapters, [`training`] starts training runs, [`train_config`] writes their
//! configuration files, [`account`] asks who and what is available. [`watch`] and [`log`] serve what takes long.
//!
//! Nothing here prints, reads the environment or looks for a home directory: callers pass these in.

pub mod account;
pub mod adapters;
pub mod client;
pub mod evaluations;
pub mod hub;
pub mod log;
pub mod secrets;
pub mod settings;
pub mod train_config;
pub mod training;
pub mod watch;
