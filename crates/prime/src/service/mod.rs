//! Prime's REST API, used without Prime's command line program.
//!
//! [`settings`] reads what `prime login` wrote, [`client`] sends the calls, and each other module covers one task of
//! users: [`hub`] publishes an environment package, [`evaluations`] runs hosted evaluations and reads their samples,
//! [`adapters`] finds deployed adapters, [`training`] starts training runs, [`train_config`] writes their configuration
//! files, [`account`] queries the account and the models. [`watch`] and [`log`] help to follow long tasks.
//!
//! Nothing here prints, reads environment variables or looks for a home directory: callers pass these in.

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
