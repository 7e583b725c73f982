//! The chat-completions format, which is `OpenAI`'s and which most other vendors and servers use as well, each a little
//! differently. Requests are plain; answers are accepted in every form that has one sensible meaning.

mod decode;
mod encode;
mod node;
pub(crate) mod reasoning;
mod stream;
mod usage;

use node::Node;

use super::{Dialect, StreamReader, Wire};
use crate::failure::{Failure, FailureKind};
use crate::message::{Reply, Request};

#[derive(Clone, Copy, Debug, Default)]
pub struct OpenAiChat;

impl Dialect for OpenAiChat {
    fn path(&self, _wire: &Wire) -> String {
        "/chat/completions".to_owned()
    }

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    fn encode(&self, request: &Request, wire: &Wire) -> serde_json::Result<Vec<u8>> {
        encode::body(request, wire)
    }

    fn decode(&self, body: &[u8]) -> Result<Reply, Failure> {
        match aec_base::json::from_slice(body) {
            Ok(Node::Object(body)) => decode::reply(body),
            Ok(_) => Err(malformed("the body", "an object")),
            Err(error) => {
                Err(Failure::passing(FailureKind::Protocol, format!("the answer is not JSON: {error}")))
            }
        }
    }

    fn reader(&self) -> Box<dyn StreamReader> {
        Box::<stream::Reader>::default()
    }
}

/// The failure of an answer whose field violates the format. A second answer may be valid.
fn malformed(field: &str, expected: &str) -> Failure {
    Failure::passing(FailureKind::Protocol, format!("malformed answer: {field} is not {expected}"))
}
