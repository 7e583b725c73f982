//! Every model call of the program: wire dialects, routing, retries, limits, one meter for tokens and money,
//! cassettes, and the local gateway.

mod agent_routes;
mod bill;
pub mod breaker;
pub mod cassette;
pub mod check;
pub mod client;
pub mod day;
pub mod dialect;
pub mod endpoint;
pub mod event;
pub mod failure;
pub mod gate;
pub mod gateway;
pub mod message;
pub mod meter;
pub mod money;
pub mod offline;
pub mod price;
pub mod registry;
pub mod replicas;
pub mod retry;
pub mod routing;
pub mod script;
pub mod sign;
pub mod tape;
pub mod transport;
