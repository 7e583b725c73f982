//! The server side of Anthropic's messages format: decodes agents' requests and encodes replies.
//!
//! An agent is not trusted. Its request is translated key by key; unknown keys are refused by name, and so is
//! everything that would make the provider fetch, run or store something: server tools, URLs, files, containers, MCP
//! servers. Markers for prompt caching are dropped, since the client sets its own.

mod reply;
mod request;

pub use reply::{encode_failure, encode_reply, encode_stream};
pub use request::decode_request;
