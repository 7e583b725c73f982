//! A plain client and stream readers for these tests only.

use aec_model_server::{Options, TestServer};
use aws_smithy_eventstream::frame::{DecodedFrame, MessageFrameDecoder};
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// How to send requests in one provider's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) family: Family,
    pub(crate) stream: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Chat,
    Azure,
    Messages,
    Invoke,
    Converse,
}

impl Case {
    pub(crate) fn all() -> Vec<Self> {
        let families = [Family::Chat, Family::Azure, Family::Messages, Family::Invoke, Family::Converse];
        families.into_iter().flat_map(|family| [false, true].map(|stream| Self { family, stream })).collect()
    }

    pub(crate) fn is_bedrock(self) -> bool {
        matches!(self.family, Family::Invoke | Family::Converse)
    }

    pub(crate) fn path(self) -> &'static str {
        match (self.family, self.stream) {
            (Family::Chat, _) => "/v1/chat/completions",
            (Family::Azure, _) => "/openai/deployments/dep/chat/completions?api-version=2024-10-21",
            (Family::Messages, _) => "/v1/messages",
            (Family::Invoke, false) => "/model/anthropic.claude-v1%3A0/invoke",
            (Family::Invoke, true) => "/model/anthropic.claude-v1%3A0/invoke-with-response-stream",
            (Family::Converse, false) => "/model/anthropic.claude-v1%3A0/converse",
            (Family::Converse, true) => "/model/anthropic.claude-v1%3A0/converse-stream",
        }
    }

    pub(crate) fn headers(self) -> &'static [(&'static str, &'static str)] {
        match self.family {
            Family::Azure => &[("api-key", "k")],
            Family::Messages => &[("x-api-key", "k"), ("anthropic-version", "2023-06-01")],
            Family::Chat | Family::Invoke | Family::Converse => &[("authorization", "Bearer k")],
        }
    }

    /// A request with one user text, and further keys.
    pub(crate) fn body(self, text: &str, more: &Value) -> Value {
        let mut body = match self.family {
            Family::Chat | Family::Azure => {
                json!({"model": "m", "messages": [{"role": "user", "content": text}], "stream": self.stream})
            }
            Family::Messages => json!({"model": "m", "max_tokens": 1000, "stream": self.stream,
                "messages": [{"role": "user", "content": text}]}),
            Family::Invoke => json!({"anthropic_version": "bedrock-2023-05-31", "max_tokens": 1000,
                "messages": [{"role": "user", "content": text}]}),
            Family::Converse => json!({"messages": [{"role": "user", "content": [{"text": text}]}]}),
        };
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    }

    pub(crate) async fn ask(self, server: &TestServer, text: &str, more: &Value) -> Answer {
        let request = request(server, self.path(), self.headers(), &self.body(text, more));
        Answer::read(send(server, request).await.unwrap().response).await
    }

    /// A request for six tokens, with a fault for this request only.
    pub(crate) fn request_with_fault(self, server: &TestServer, fault: &str) -> Request<Full<Bytes>> {
        let headers = [self.headers(), &[("x-test-fault", fault)]].concat();
        request(server, self.path(), &headers, &self.body("one two three four five six", &json!({})))
    }

    pub(crate) async fn ask_for_fault(
        self,
        server: &TestServer,
        fault: &str,
    ) -> Result<Answer, hyper::Error> {
        Ok(Answer::read(send(server, self.request_with_fault(server, fault)).await?.response).await)
    }
}

pub(crate) async fn start(options: Options) -> TestServer {
    TestServer::start(options).await.unwrap()
}

pub(crate) fn request(
    server: &TestServer,
    path: &str,
    headers: &[(&str, &str)],
    body: &Value,
) -> Request<Full<Bytes>> {
    let host = server.url().strip_prefix("http://").unwrap().to_owned();
    let mut request = Request::post(path).header("host", host).header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Full::new(Bytes::from(body.to_string()))).unwrap()
}

/// An answer whose body is not yet read, and its connection.
pub(crate) struct Open {
    pub(crate) response: Response<Incoming>,
    pub(crate) connection: JoinHandle<()>,
}

/// Sends a request on a new connection.
pub(crate) async fn send(server: &TestServer, request: Request<Full<Bytes>>) -> Result<Open, hyper::Error> {
    let address = server.url().strip_prefix("http://").unwrap().to_owned();
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(async move { drop(connection.await) });
    Ok(Open { response: sender.send_request(request).await?, connection })
}

/// The part of an answer that arrived.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) ended: Ended,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Well,
    Broken,
}

impl Answer {
    pub(crate) async fn read(response: Response<Incoming>) -> Self {
        let (parts, mut incoming) = response.into_parts();
        let mut body = BytesMut::new();
        let ended = loop {
            match incoming.frame().await {
                None => break Ended::Well,
                Some(Err(_)) => break Ended::Broken,
                Some(Ok(frame)) => body.extend_from_slice(&frame.into_data().unwrap()),
            }
        };
        Self { status: parts.status.as_u16(), headers: parts.headers, body: body.freeze(), ended }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The server-sent events, as name and data.
    pub(crate) fn events(&self) -> Vec<(String, String)> {
        let text = std::str::from_utf8(&self.body).unwrap();
        assert!(text.is_empty() || text.ends_with("\n\n"), "{text}");
        let event = |block: &str| {
            let mut event = (String::new(), String::new());
            for line in block.lines() {
                match line.split_once(": ").unwrap() {
                    ("event", name) => name.clone_into(&mut event.0),
                    ("data", data) => data.clone_into(&mut event.1),
                    other => panic!("{other:?}"),
                }
            }
            event
        };
        text.split("\n\n").filter(|block| !block.is_empty()).map(event).collect()
    }

    /// The data of server-sent events, without the closing `[DONE]`.
    pub(crate) fn data(&self) -> Vec<Value> {
        let events = self.events();
        events
            .iter()
            .filter(|(_, data)| data != "[DONE]")
            .map(|(_, data)| serde_json::from_str(data).unwrap())
            .collect()
    }

    /// The frames of an Amazon stream: `:event-type` or `:exception-type`, and payload; an error ends the list.
    pub(crate) fn frames(&self) -> Result<Vec<(String, Value)>, String> {
        let mut decoder = MessageFrameDecoder::new();
        let mut buffer = self.body.clone();
        let mut frames = Vec::new();
        loop {
            match decoder.decode_frame(&mut buffer) {
                Ok(DecodedFrame::Complete(message)) => {
                    let header = |name: &str| {
                        let found = message.headers().iter().find(|header| header.name().as_str() == name);
                        found.map(|header| header.value().as_string().unwrap().as_str().to_owned())
                    };
                    assert_eq!(header(":content-type").as_deref(), Some("application/json"));
                    let name = match header(":message-type").as_deref() {
                        Some("event") => header(":event-type"),
                        Some("exception") => header(":exception-type"),
                        other => panic!("{other:?}"),
                    };
                    frames.push((name.unwrap(), serde_json::from_slice(message.payload()).unwrap()));
                }
                Ok(DecodedFrame::Incomplete) => return Ok(frames),
                Err(error) => return Err(error.to_string()),
            }
        }
    }
}

/// Yields until the condition holds.
pub(crate) async fn until(mut so: impl FnMut() -> bool) {
    while !so() {
        tokio::task::yield_now().await;
    }
}
