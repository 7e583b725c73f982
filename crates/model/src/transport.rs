//! One attempt of a call over HTTP: send, receive, decode. Nothing here tries again.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Method};
use reqwest::Url;

use crate::dialect::{LimitKey, StreamReader, Wire, refusal};
use crate::endpoint::{Credential, Endpoint, KeyPlacement};
use crate::failure::{Failure, FailureKind, excerpt};
use crate::message::{Reply, Request};
use crate::sign;

/// Longest answer that is read.
const LONGEST_ANSWER: usize = 64 * 1024 * 1024;

/// Longest error that is read.
const LONGEST_ERROR: usize = 64 * 1024;

/// How long to wait for the end of a body whose content is complete.
const LAST_BYTES: Duration = Duration::from_millis(20);

/// Connections, shared by all endpoints.
#[derive(Clone, Debug)]
pub struct Transport {
    remote: reqwest::Client,
    /// Never through a proxy.
    local: reqwest::Client,
}

/// How far an attempt has come. Whoever pays for it looks here, also when the attempt is given up half way.
#[derive(Debug, Default)]
pub struct Progress {
    stage: AtomicU8,
    received: AtomicUsize,
}

/// What a provider may charge for an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Billed {
    /// Nothing: the request was not sent, or was refused.
    Nothing,
    /// Nobody knows: it was sent, and its answer has not arrived.
    Unknown,
    /// As much as has arrived, and perhaps a little more: the answer came piece by piece.
    Received(usize),
}

impl Progress {
    fn set(&self, billed: Billed) {
        let (stage, received) = match billed {
            Billed::Nothing => (0, 0),
            Billed::Unknown => (1, 0),
            Billed::Received(bytes) => (2, bytes),
        };
        self.received.store(received, Ordering::Relaxed);
        self.stage.store(stage, Ordering::Release);
    }

    /// What may have been billed so far.
    pub fn billed(&self) -> Billed {
        match self.stage.load(Ordering::Acquire) {
            0 => Billed::Nothing,
            1 => Billed::Unknown,
            _ => Billed::Received(self.received.load(Ordering::Relaxed)),
        }
    }
}

impl Transport {
    /// Opens nothing yet.
    pub fn new() -> Result<Self, Failure> {
        let build = || {
            let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
            // Another part of the program may have installed the same one.
            drop(rustls::crypto::CryptoProvider::install_default((*provider).clone()));
            reqwest::Client::builder()
                .http1_only()
                // A redirect would carry the key to an address that nobody wrote down.
                .redirect(reqwest::redirect::Policy::none())
                .connect_timeout(Duration::from_secs(10))
                .tcp_nodelay(true)
                .pool_max_idle_per_host(8192)
                .pool_idle_timeout(Duration::from_secs(60))
                .user_agent(concat!("aec-bench/", env!("CARGO_PKG_VERSION")))
        };
        let broken = |error: reqwest::Error| {
            Failure::lasting(FailureKind::Network, format!("no HTTP client can be made: {}", explain(&error)))
        };
        Ok(Self {
            remote: build().build().map_err(broken)?,
            local: build().no_proxy().build().map_err(broken)?,
        })
    }

    /// Sends a request once and reads its answer.
    pub async fn attempt(
        &self,
        line: &Line,
        request: &Request,
        progress: &Progress,
    ) -> Result<Reply, Failure> {
        let message = line.message(request, line.streams(request))?;
        let client = if line.loopback { &self.local } else { &self.remote };
        let timeouts = line.endpoint.timeouts;
        let started = tokio::time::Instant::now();
        progress.set(Billed::Unknown);
        let response = match tokio::time::timeout(timeouts.answer, client.execute(message)).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => {
                if error.is_connect() {
                    progress.set(Billed::Nothing);
                }
                return Err(Failure::passing(FailureKind::Network, explain(&error)));
            }
            Err(_) => return Err(silence("no answer", timeouts.answer)),
        };
        let status = response.status();
        if !status.is_success() {
            progress.set(Billed::Nothing);
            let headers = response.headers().clone();
            let body = read(response, LONGEST_ERROR, timeouts.idle).await;
            let body = body.unwrap_or_else(|(partial, _)| partial);
            let failure = refusal::refused(status, &headers, &body, SystemTime::now());
            line.learn(&failure);
            return Err(failure);
        }
        if is_stream(response.headers()) {
            let reader = line.endpoint.format.dialect().reader();
            return follow(response, reader, timeouts.idle, progress).await;
        }
        let left = timeouts.answer.saturating_sub(started.elapsed());
        let body = match tokio::time::timeout(left, read(response, LONGEST_ANSWER, left)).await {
            Ok(body) => body.map_err(|(_, failure)| failure)?,
            Err(_) => return Err(silence("no complete answer", timeouts.answer)),
        };
        line.endpoint.format.dialect().decode(&body)
    }
}

/// An endpoint made ready for calls, and what its answers taught us.
#[derive(Debug)]
pub struct Line {
    /// The endpoint.
    pub endpoint: Endpoint,
    url: Url,
    stream_url: Url,
    headers: HeaderMap,
    loopback: bool,
    must_stream: AtomicBool,
    must_not_stream: AtomicBool,
    other_limit_key: AtomicBool,
}

impl Line {
    /// Makes an endpoint ready.
    pub fn new(endpoint: Endpoint) -> Result<Self, Failure> {
        let bad = |what: &str| Failure::lasting(FailureKind::Request, format!("{}: {what}", endpoint.label));
        let mut headers = HeaderMap::new();
        headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
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
        Ok(Self {
            url: address(false)?,
            stream_url: address(true)?,
            headers,
            loopback: endpoint.is_loopback(),
            must_stream: AtomicBool::new(false),
            must_not_stream: AtomicBool::new(false),
            other_limit_key: AtomicBool::new(false),
            endpoint,
        })
    }

    /// The address that calls go to.
    pub fn url(&self) -> &Url {
        &self.url
    }

    fn streams(&self, request: &Request) -> bool {
        if self.must_stream.load(Ordering::Relaxed) {
            return true;
        }
        !self.must_not_stream.load(Ordering::Relaxed) && self.endpoint.stream.streams(request)
    }

    fn message(&self, request: &Request, stream: bool) -> Result<reqwest::Request, Failure> {
        if let Credential::Missing { variables } = &self.endpoint.credential {
            let names = aec_base::text::one_of(&variables.iter().map(String::as_str).collect::<Vec<_>>());
            let message = format!("no key: set {names} in the shell or in .env");
            return Err(Failure::lasting(FailureKind::Auth, message));
        }
        let limit_key = match (self.endpoint.limit_key, self.other_limit_key.load(Ordering::Relaxed)) {
            (LimitKey::MaxTokens, false) | (LimitKey::MaxCompletionTokens, true) => LimitKey::MaxTokens,
            _ => LimitKey::MaxCompletionTokens,
        };
        let wire = Wire {
            model: self.endpoint.model.clone(),
            stream,
            cache_prompt: self.endpoint.cache_prompt,
            limit_key,
            model_in_body: self.endpoint.model_in_body,
        };
        let body = self.endpoint.format.dialect().encode(request, &wire);
        let body = serde_json::to_vec(&body).map_err(|error| {
            Failure::lasting(FailureKind::Request, format!("the request cannot be written: {error}"))
        })?;
        let url = if stream { &self.stream_url } else { &self.url };
        let mut message = reqwest::Request::new(Method::POST, url.clone());
        message.headers_mut().clone_from(&self.headers);
        if let Credential::Aws { credentials, region } = &self.endpoint.credential {
            self.sign(&mut message, credentials, region, &body)?;
        }
        *message.body_mut() = Some(Bytes::from(body).into());
        Ok(message)
    }

    fn sign(
        &self,
        message: &mut reqwest::Request,
        credentials: &sign::AwsCredentials,
        region: &str,
        body: &[u8],
    ) -> Result<(), Failure> {
        let outgoing = sign::Outgoing {
            method: "POST",
            url: message.url().as_str(),
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
            message.headers_mut().insert(name, value);
        }
        Ok(())
    }

    /// Some servers say what they want only by refusing what they do not.
    fn learn(&self, failure: &Failure) {
        if failure.kind != FailureKind::Request {
            return;
        }
        let said = failure.message.to_lowercase();
        let any = |phrases: &[&str]| phrases.iter().any(|phrase| said.contains(phrase));
        if any(&[
            "streaming_required",
            "only supports streaming",
            "streaming is required",
            "stream=true",
            "\"stream\": true",
            "'stream': true",
        ]) {
            self.must_stream.store(true, Ordering::Relaxed);
        } else if any(&["stream_options", "streaming is not supported", "does not support streaming"]) {
            self.must_not_stream.store(true, Ordering::Relaxed);
        } else if any(&["max_completion_tokens", "max_tokens"])
            && any(&[
                "unsupported",
                "not supported",
                "unrecognized",
                "unknown",
                "not permitted",
                "extra inputs",
                "unexpected",
            ])
        {
            self.other_limit_key.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the last refusal taught something, so that asking once more makes sense: what was learned so far.
    pub fn lessons(&self) -> u8 {
        u8::from(self.must_stream.load(Ordering::Relaxed))
            + u8::from(self.must_not_stream.load(Ordering::Relaxed))
            + u8::from(self.other_limit_key.load(Ordering::Relaxed))
    }
}

/// The format's path below an address. `/v1` is not doubled for those who write it into the address.
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
    mut response: reqwest::Response,
    mut reader: Box<dyn StreamReader>,
    idle: Duration,
    progress: &Progress,
) -> Result<Reply, Failure> {
    let mut length = 0;
    progress.set(Billed::Received(0));
    while let Some(piece) = next(&mut response, idle).await? {
        length += piece.len();
        if length > LONGEST_ANSWER {
            return Err(endless(LONGEST_ANSWER));
        }
        let taken = reader.take(&piece);
        progress.set(Billed::Received(reader.received()));
        taken?;
        if reader.is_done() {
            // The end of the body usually follows at once; seeing it keeps the connection.
            tokio::time::timeout(LAST_BYTES, response.chunk()).await.ok();
            break;
        }
    }
    reader.finish()
}

/// Reads a whole body. With an error comes what had arrived.
async fn read(
    mut response: reqwest::Response,
    limit: usize,
    idle: Duration,
) -> Result<Bytes, (Bytes, Failure)> {
    // Most answers come in one piece, which then needs no copy.
    let mut first = Bytes::new();
    let mut body = BytesMut::new();
    loop {
        let failure = match next(&mut response, idle).await {
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

async fn next(response: &mut reqwest::Response, idle: Duration) -> Result<Option<Bytes>, Failure> {
    match tokio::time::timeout(idle, response.chunk()).await {
        Ok(piece) => piece.map_err(|error| Failure::passing(FailureKind::Network, explain(&error))),
        Err(_) => Err(silence("nothing more came", idle)),
    }
}

fn endless(limit: usize) -> Failure {
    Failure::lasting(FailureKind::Protocol, format!("the answer is longer than {limit} bytes"))
}

fn silence(what: &str, after: Duration) -> Failure {
    Failure::passing(FailureKind::Network, format!("{what} within {} seconds", after.as_secs_f64()))
}

/// An error of the HTTP library with its causes, without the address, which may be long and is known.
fn explain(error: &reqwest::Error) -> String {
    let mut words = Vec::new();
    let mut cause: Option<&dyn std::error::Error> = std::error::Error::source(error);
    while let Some(error) = cause {
        let text = error.to_string();
        if words.last() != Some(&text) {
            words.push(text);
        }
        cause = error.source();
    }
    if words.is_empty() {
        return excerpt(&error.to_string());
    }
    excerpt(&words.join(": "))
}
