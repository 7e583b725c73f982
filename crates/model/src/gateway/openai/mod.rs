//! The server side of the chat-completions format, as pure functions.

mod reply;
mod request;
mod thoughts;

pub use reply::{encode_failure, encode_reply, encode_stream};
pub use request::decode_request;
