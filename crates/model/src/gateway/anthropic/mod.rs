//! The server side of Anthropic's messages format: requests of agents come in, replies go out.
//!
//! An agent is not trusted. What it asks is translated key by key; a key without a meaning here is refused by name,
//! and so is everything that would make the provider fetch, run or remember something: server tools, URLs, files,
//! containers, MCP servers. Markers for prompt caching are dropped, since the client sets its own.

mod reply;
mod request;

pub use reply::{encode_failure, encode_reply, encode_stream};
pub use request::decode_request;
