//! Every model call of the program: wire dialects, routing, retries, limits, one meter for tokens and money,
//! cassettes, and the local gateway.

pub mod breaker;
pub mod cassette;
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
pub mod price;
pub mod retry;
pub mod sign;
pub mod test_server;
