//! Tests of models from outside: wire formats, the client, cassettes and the gateway against real servers. They form
//! one executable, because linking takes longer than most tests.

mod anthropic;
mod bedrock;
mod cassette;
mod client;
mod gateway;
mod openai;
mod routes;
