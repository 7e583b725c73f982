//! Models from outside: wire formats, the client, cassettes and the gateway against real servers. One executable: linking takes longer than most tests.

mod anthropic;
mod bedrock;
mod cassette;
mod client;
mod gateway;
mod openai;
mod routes;
