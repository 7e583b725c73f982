//! One attempt of a call over HTTP: send, receive, decode. It never retries.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use aec_base::env::Env;
use aec_http::{Proxies, USER_AGENT, Way, Ways, causes};
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Method, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use url::Url;

use crate::bill::Sent;
use crate::dialect::{LimitKey, StreamReader, Wire, refusal};
use crate::endpoint::{Credential, Endpoint, Format, KeyPlacement};
use crate::failure::{Failure, FailureKind, excerpt};
use crate::message::{Reply, Request};
use crate::sign;

/// In bytes.
const LONGEST_ANSWER: usize = 64 * 1024 * 1024;

/// How long a connection may take to open.
const CONNECT_TIME: Duration = Duration::from_secs(10);

/// In bytes.
const LONGEST_ERROR: usize = 64 * 1024;

/// How long reading an error may take.
const ERROR_TIME: Duration = Duration::from_secs(10);

/// How long to wait for the end of a body whose content is complete.
const LAST_BYTES: Duration = Duration::from_millis(20);

/// Phrases by which a server demands a stream.
const WANTS_STREAM: [&str; 6] = [
    "streaming_required",
    "only supports streaming",
    "streaming is required",
    "stream=true",
    "\"stream\": true",
    "'stream': true",
];

/// Phrases by which a server refuses a stream.
const WANTS_NO_STREAM: [&str; 3] =
    ["stream_options", "streaming is not supported", "does not support streaming"];

/// Connections, shared by all endpoints.
#[derive(Debug)]
pub struct Transport(Ways<Full<Bytes>>);

/// How to write a request. Some servers reveal their needs only by refusing a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manner {
    pub stream: bool,
    pub limit_key: LimitKey,
}

impl Transport {
    /// Opens nothing yet. The environment may name proxies.
    pub fn new(env: &Env) -> Self {
        Self(Ways::new(Proxies::of(env), CONNECT_TIME))
    }

    /// Sends a request once and reads its answer.
    pub async fn attempt(
        &self,
        line: &Line,
        request: &Request,
        manner: Manner,
        sent: &Sent,
    ) -> Result<Reply, Failure> {
        let message = line.message(request, manner)?;
        let way = line.way.get_or_init(|| self.0.to(&line.uri, line.endpoint.is_loopback()));
        let timeouts = line.endpoint.timeouts;
        let started = tokio::time::Instant::now();
        sent.yes();
        let response = match tokio::time::timeout(timeouts.answer, way.send(message)).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => {
                if error.is_connect() {
                    sent.no();
                }
                return Err(Failure::passing(FailureKind::Network, excerpt(&causes(&error))));
            }
            Err(_) => return Err(silence("no answer", timeouts.answer)),
        };
        let status = response.status();
        if !status.is_success() {
            sent.no();
            let (head, body) = response.into_parts();
            let body = tokio::time::timeout(ERROR_TIME, read(body, LONGEST_ERROR, ERROR_TIME)).await;
            let body = body.map_or_else(|_| Bytes::new(), |body| body.unwrap_or_else(|(partial, _)| partial));
            return Err(refusal::refused(status, &head.headers, &body, SystemTime::now()));
        }
        if is_stream(response.headers()) {
            let reader = line.endpoint.format.dialect().reader();
            let left = timeouts.stream.saturating_sub(started.elapsed());
            return match tokio::time::timeout(left, follow(response.into_body(), reader, timeouts.idle)).await
            {
                Ok(ended) => ended,
                Err(_) => Err(silence("the stream did not end", timeouts.stream)),
            };
        }
        let left = timeouts.answer.saturating_sub(started.elapsed());
        let body = match tokio::time::timeout(left, read(response.into_body(), LONGEST_ANSWER, left)).await {
            Ok(body) => body.map_err(|(_, failure)| failure)?,
            Err(_) => return Err(silence("no complete answer", timeouts.answer)),
        };
        line.endpoint.format.dialect().decode(&body)
    }
}

/// An endpoint prepared for calls, and the manner that it was found to need.
#[derive(Debug)]
pub struct Line {
    pub endpoint: Endpoint,
    url: Url,
    uri: Uri,
    stream_uri: Uri,
    headers: HeaderMap,
    way: OnceLock<Way<Full<Bytes>>>,
    lesson: Mutex<Lesson>,
}

/// What a server was found to need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lesson {
    stream: Option<bool>,
    limit_key: Option<LimitKey>,
}

impl Line {
    /// Prepares an endpoint.
    pub fn new(endpoint: Endpoint) -> Result<Self, Failure> {
        let bad = |what: &str| Failure::lasting(FailureKind::Request, format!("{}: {what}", endpoint.label));
        let mut headers = HeaderMap::new();
        headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(http::header::USER_AGENT, HeaderValue::from_static(USER_AGENT));
        for (name, value) in endpoint.format.dialect().headers() {
            headers.insert(*name, HeaderValue::from_static(value));
        }
        if let Credential::Key { value, placement, variable } = &endpoint.credential {
            let (name, text) = match placement {
                KeyPlacement::Bearer => ("authorization", format!("Bearer {}", value.reveal().trim())),
                KeyPlacement::XApiKey => ("x-api-key", value.reveal().trim().to_owned()),
                KeyPlacement::ApiKey => ("api-key", value.reveal().trim().to_owned()),
            };
            let mut text = HeaderValue::from_str(&text).map_err(|_| {
                Failure::lasting(FailureKind::Auth, format!("{variable} has characters that no key has"))
            })?;
            text.set_sensitive(true);
            headers.insert(name, text);
        }
        for (name, value) in &endpoint.headers {
            headers.insert(name.clone(), value.clone());
        }
        let address = |stream| {
            let wire = Wire { model: endpoint.model.clone(), stream, ..Wire::default() };
            let path = endpoint.path.clone().unwrap_or_else(|| endpoint.format.dialect().path(&wire));
            address(&endpoint.base_url, &path).ok_or_else(|| bad("the address cannot have a path"))
        };
        let url = address(false)?;
        let uri = |url: &Url| url.as_str().parse::<Uri>().map_err(|_| bad("the address is not one"));
        Ok(Self {
            uri: uri(&url)?,
            stream_uri: uri(&address(true)?)?,
            url,
            headers,
            way: OnceLock::new(),
            lesson: Mutex::default(),
            endpoint,
        })
    }

    pub fn url(&self) -> &Url {
        &self.url
    }

    /// How to write a request, as far as known.
    pub fn manner(&self, request: &Request) -> Manner {
        let lesson = *self.lesson.lock().unwrap_or_else(PoisonError::into_inner);
        Manner {
            stream: lesson.stream.unwrap_or_else(|| self.endpoint.stream.streams(request)),
            limit_key: lesson.limit_key.unwrap_or(self.endpoint.limit_key),
        }
    }

    /// Another manner that a refusal suggests. It is tried once, and kept only if it works: the refusal's text may
    /// merely echo the request.
    pub fn other_manner(&self, failure: &Failure, manner: Manner) -> Option<Manner> {
        if failure.kind != FailureKind::Request {
            return None;
        }
        let said = failure.message.to_lowercase();
        let any = |phrases: &[&str]| phrases.iter().any(|phrase| said.contains(phrase));
        if !manner.stream && any(&WANTS_STREAM) {
            return Some(Manner { stream: true, ..manner });
        }
        if manner.stream && any(&WANTS_NO_STREAM) {
            return Some(Manner { stream: false, ..manner });
        }
        let (key, other) = match manner.limit_key {
            LimitKey::MaxTokens => ("max_tokens", LimitKey::MaxCompletionTokens),
            LimitKey::MaxCompletionTokens => ("max_completion_tokens", LimitKey::MaxTokens),
        };
        (self.endpoint.format == Format::OpenAiChat && said.contains(key))
            .then_some(Manner { limit_key: other, ..manner })
    }

    /// Remembers a manner that worked.
    pub fn keep(&self, manner: Manner) {
        let mut lesson = self.lesson.lock().unwrap_or_else(PoisonError::into_inner);
        *lesson = Lesson { stream: Some(manner.stream), limit_key: Some(manner.limit_key) };
    }

    fn message(&self, request: &Request, manner: Manner) -> Result<http::Request<Full<Bytes>>, Failure> {
        if let Credential::Missing { variables } = &self.endpoint.credential {
            let names = aec_base::text::one_of(&variables.iter().map(String::as_str).collect::<Vec<_>>());
            let message = format!("no key: set {names} in the shell or in .env");
            return Err(Failure::lasting(FailureKind::Auth, message));
        }
        let wire = Wire {
            model: self.endpoint.model.clone(),
            stream: manner.stream,
            cache_prompt: self.endpoint.cache_prompt,
            limit_key: manner.limit_key,
            model_in_body: self.endpoint.model_in_body,
        };
        let body = self.endpoint.format.dialect().encode(request, &wire).map_err(|error| {
            Failure::lasting(FailureKind::Request, format!("the request cannot be written: {error}"))
        })?;
        let mut headers = self.headers.clone();
        let uri = if manner.stream { &self.stream_uri } else { &self.uri };
        if let Credential::Aws { credentials, region } = &self.endpoint.credential {
            self.sign(&mut headers, uri, credentials, region, &body)?;
        }
        let mut message = http::Request::new(Full::new(Bytes::from(body)));
        *message.method_mut() = Method::POST;
        *message.uri_mut() = uri.clone();
        *message.headers_mut() = headers;
        Ok(message)
    }

    fn sign(
        &self,
        headers: &mut HeaderMap,
        uri: &Uri,
        credentials: &sign::AwsCredentials,
        region: &str,
        body: &[u8],
    ) -> Result<(), Failure> {
        let url = uri.to_string();
        let outgoing = sign::Outgoing {
            method: "POST",
            url: &url,
            headers: &[("content-type", "application/json")],
            body,
        };
        let signed = sign::sign(credentials, region, &outgoing, SystemTime::now());
        let broken = |what: String| Failure::lasting(FailureKind::Auth, what);
        for (name, value) in signed.map_err(|error| broken(error.to_string()))? {
            let name: http::HeaderName =
                name.parse().map_err(|_| broken("a signature has an odd header".to_owned()))?;
            let mut value = HeaderValue::from_str(&value).map_err(|_| {
                broken("the AWS credentials have characters that keys do not have".to_owned())
            })?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(())
    }
}

/// The format's path below an address. A `/v1` that the address already has is not repeated.
fn address(base: &Url, path: &str) -> Option<Url> {
    let mut url = base.clone();
    if url.cannot_be_a_base() {
        return None;
    }
    let below = base.path().trim_end_matches('/');
    let path = if below.ends_with("/v1") { path.strip_prefix("/v1").unwrap_or(path) } else { path };
    url.set_path(&format!("{below}{path}"));
    Some(url)
}

fn is_stream(headers: &HeaderMap) -> bool {
    let kind =
        headers.get(http::header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.starts_with("text/event-stream") || kind.starts_with("application/vnd.amazon.eventstream")
}

async fn follow(
    mut body: Incoming,
    mut reader: Box<dyn StreamReader>,
    idle: Duration,
) -> Result<Reply, Failure> {
    let mut length = 0;
    loop {
        let piece = next(&mut body, idle).await.map_err(|mut failure| {
            failure.message = format!("{}, after {} bytes of answer", failure.message, reader.received());
            failure
        });
        let Some(piece) = piece? else { break };
        length += piece.len();
        if length > LONGEST_ANSWER {
            return Err(endless(LONGEST_ANSWER));
        }
        reader.take(&piece)?;
        if reader.is_done() {
            // The end of the body usually follows at once; reading it lets the connection be reused.
            tokio::time::timeout(LAST_BYTES, body.frame()).await.ok();
            break;
        }
    }
    reader.finish()
}

/// Reads a whole body. An error comes with the bytes that arrived.
async fn read(mut from: Incoming, limit: usize, idle: Duration) -> Result<Bytes, (Bytes, Failure)> {
    // Most answers come in one piece, which then needs no copy.
    let mut first = Bytes::new();
    let mut body = BytesMut::new();
    loop {
        let failure = match next(&mut from, idle).await {
            Ok(None) => break,
            Ok(Some(piece)) if first.is_empty() => {
                first = piece;
                continue;
            }
            Ok(Some(piece)) => {
                if body.is_empty() {
                    body.extend_from_slice(&first);
                }
                body.extend_from_slice(&piece);
                if body.len() <= limit {
                    continue;
                }
                endless(limit)
            }
            Err(failure) => failure,
        };
        return Err((if body.is_empty() { first } else { body.freeze() }, failure));
    }
    Ok(if body.is_empty() { first } else { body.freeze() })
}

async fn next(body: &mut Incoming, idle: Duration) -> Result<Option<Bytes>, Failure> {
    loop {
        return match tokio::time::timeout(idle, body.frame()).await {
            Ok(None) => Ok(None),
            Ok(Some(Ok(frame))) => match frame.into_data() {
                Ok(piece) => Ok(Some(piece)),
                // Trailers are ignored.
                Err(_) => continue,
            },
            Ok(Some(Err(error))) => Err(Failure::passing(FailureKind::Network, excerpt(&causes(&error)))),
            Err(_) => Err(silence("nothing more came", idle)),
        };
    }
}

fn endless(limit: usize) -> Failure {
    Failure::lasting(FailureKind::Protocol, format!("the answer is longer than {limit} bytes"))
}

fn silence(what: &str, after: Duration) -> Failure {
    Failure::passing(FailureKind::Network, format!("{what} within {} seconds", after.as_secs_f64()))
}

/// Raises this process's limit of open files to the most that the system allows: a thousand concurrent calls need more
/// than the usual thousand files.
pub fn allow_many_connections() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // With the usual limit everything works, only with fewer connections.
    setrlimit(Resource::Nofile, limit).ok();
}
