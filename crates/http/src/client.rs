//! One request and its answer. The client sends a request once; callers that may repeat it use
//! [`crate::pause::attempts`].

use std::fmt::Debug;
use std::io;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, AUTHORIZATION, LOCATION, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use url::Url;

use crate::pause;
use crate::ways::{Proxies, Ways};
use crate::{causes, excerpt, is_loopback};

const MOST_REDIRECTS: usize = 3;

/// Most bytes that are read of a refusal; the rest is cut off.
const LONGEST_REFUSAL: usize = 64 * 1024;

pub type Body = UnsyncBoxBody<Bytes, io::Error>;

/// The content of a request, which can be sent any number of times.
pub trait Content: Debug + Send + Sync {
    /// Makes the body anew each time that the request is sent.
    fn body(&self) -> Body;
}

impl Content for Bytes {
    fn body(&self) -> Body {
        Full::new(self.clone()).map_err(|never| match never {}).boxed_unsync()
    }
}

/// Which redirects are followed. A request with content is never redirected to one without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redirects {
    /// Only to the same scheme, host and port, so that no other server gets the key.
    SameOrigin,
    /// Only to the same host and not from https to http; for calls without a key.
    SameHost,
}

#[derive(Clone, Debug)]
pub struct Options {
    pub connect_timeout: Duration,
    /// Longest answer in bytes.
    pub longest_answer: usize,
    pub redirects: Redirects,
    /// Proxies; never used for addresses on this machine.
    pub proxies: Proxies,
}

#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    pub method: &'a Method,
    /// A user in the address becomes a header.
    pub url: &'a Url,
    /// Headers; they may hold a key only if this address may receive it.
    pub headers: &'a HeaderMap,
    pub content: &'a dyn Content,
    /// Time limit for the whole call, to the last byte of the answer.
    pub timeout: Duration,
}

#[derive(Debug)]
pub struct Answer {
    /// Never the status of a redirect.
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// The whole body, or the beginning of a refusal.
    pub body: Bytes,
}

impl Answer {
    /// How long the server asks us to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        pause::retry_after(&self.headers, SystemTime::now())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    #[error("{variable} is not the address of a proxy")]
    Proxy { variable: &'static str },
    #[error("{reason}")]
    Connection {
        /// The error of the network.
        reason: String,
    },
    #[error("no answer within {} seconds", after.as_secs_f64())]
    Timeout { after: Duration },
    #[error("the answer is longer than {limit} bytes")]
    TooLong { limit: usize },
    #[error("it redirects to {to}, which is not followed (status {status})")]
    Redirect {
        status: u16,
        /// Scheme and host of the other address.
        to: String,
    },
    #[error("status {status} without a usable address")]
    NoAddress { status: u16 },
}

#[derive(Debug)]
pub struct Client {
    ways: Ways<Body>,
    options: Options,
}

impl Client {
    /// Opens no connection yet.
    pub fn new(options: Options) -> Result<Self, Failure> {
        if let Some(variable) = options.proxies.unusable() {
            return Err(Failure::Proxy { variable });
        }
        Ok(Self { ways: Ways::new(options.proxies.clone(), options.connect_timeout), options })
    }

    /// Sends a request and reads its answer.
    ///
    /// The request is sent a second time only if it never left because the pooled connection had been closed.
    pub async fn send(&self, call: &Call<'_>) -> Result<Answer, Failure> {
        match tokio::time::timeout(call.timeout, self.exchange(call)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Failure::Timeout { after: call.timeout }),
        }
    }

    async fn exchange(&self, call: &Call<'_>) -> Result<Answer, Failure> {
        let mut url = call.url.clone();
        let mut redirects = 0;
        loop {
            let response = self.request(call, &url).await?;
            if !response.status().is_redirection() {
                return self.read(response).await;
            }
            let to = self.redirected(call, &url, &response, redirects)?;
            redirects += 1;
            url = to;
        }
    }

    async fn request(&self, call: &Call<'_>, url: &Url) -> Result<Response<Incoming>, Failure> {
        let mut plain = url.clone();
        // Both fail only for addresses without a host.
        let _ = plain.set_username("");
        let _ = plain.set_password(None);
        let unusable = |_| Failure::Connection { reason: "the address cannot be called".to_owned() };
        let uri: Uri = plain.as_str().parse().map_err(unusable)?;
        let way = self.ways.to(&uri, is_loopback(url));
        let mut request = Request::new(call.content.body());
        *request.method_mut() = call.method.clone();
        *request.uri_mut() = uri;
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
        headers.insert(USER_AGENT, HeaderValue::from_static(crate::USER_AGENT));
        headers.extend(user(url).map(|value| (AUTHORIZATION, value)));
        headers.extend(call.headers.clone());
        way.send(request).await.map_err(|error| Failure::Connection { reason: excerpt(&causes(&error)) })
    }

    /// The target of a redirect, if it may be followed.
    fn redirected(
        &self,
        call: &Call<'_>,
        from: &Url,
        response: &Response<Incoming>,
        followed: usize,
    ) -> Result<Url, Failure> {
        let status = response.status();
        let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        let Some(to) = location.and_then(|location| from.join(location).ok()) else {
            return Err(Failure::NoAddress { status: status.as_u16() });
        };
        let allowed = match self.options.redirects {
            Redirects::SameOrigin => to.origin() == from.origin(),
            Redirects::SameHost => {
                to.host() == from.host() && (to.scheme() == from.scheme() || to.scheme() == "https")
            }
        };
        let keeps_method = matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
        let refused = |to| Failure::Redirect { status: status.as_u16(), to };
        if !allowed || (call.method != Method::GET && !keeps_method) {
            Err(refused(to.origin().ascii_serialization()))
        } else if followed == MOST_REDIRECTS {
            Err(refused("itself again and again".to_owned()))
        } else {
            Ok(to)
        }
    }

    async fn read(&self, response: Response<Incoming>) -> Result<Answer, Failure> {
        let (head, mut from) = response.into_parts();
        let refused = !head.status.is_success();
        let limit = if refused { LONGEST_REFUSAL } else { self.options.longest_answer };
        let mut body = BytesMut::new();
        while let Some(frame) = from.frame().await {
            let piece = match frame {
                Ok(frame) => frame.into_data().unwrap_or_default(),
                // The status is enough.
                Err(_) if refused => break,
                Err(error) => return Err(Failure::Connection { reason: excerpt(&causes(&error)) }),
            };
            let room = limit - body.len();
            if piece.len() <= room {
                body.extend_from_slice(&piece);
            } else if refused {
                body.extend_from_slice(&piece[..room]);
                break;
            } else {
                return Err(Failure::TooLong { limit });
            }
        }
        Ok(Answer { status: head.status, headers: head.headers, body: body.freeze() })
    }
}

/// The `authorization` header for a user in an address.
fn user(url: &Url) -> Option<HeaderValue> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let mut pair = percent_decoded(url.username());
    pair.push(b':');
    pair.extend(percent_decoded(url.password().unwrap_or_default()));
    let mut value = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(pair))).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn percent_decoded(text: &str) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let hex = (*first == b'%').then(|| after.get(..2)).flatten();
        let byte = hex.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        decoded.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    decoded
}
