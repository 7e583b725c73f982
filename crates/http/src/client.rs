//! One request and its answer. A request is sent once: whoever may repeat it says so with [`crate::pause::attempts`].

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

/// How many redirects are followed.
const MOST_REDIRECTS: usize = 3;

/// How much of a refusal is read; the rest is cut off.
const LONGEST_REFUSAL: usize = 64 * 1024;

/// The body of a request.
pub type Body = UnsyncBoxBody<Bytes, io::Error>;

/// What a request says, ready to be sent any number of times.
pub trait Content: Debug + Send + Sync {
    /// The body, made anew for each time that the request is sent.
    fn body(&self) -> Body;
}

impl Content for Bytes {
    fn body(&self) -> Body {
        Full::new(self.clone()).map_err(|never| match never {}).boxed_unsync()
    }
}

/// Which redirects are followed. A request with content is never turned into one without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redirects {
    /// Those to the same scheme, host and port: keys stay where they belong.
    SameOrigin,
    /// Those to the same host unless the connection becomes less safe; for calls without a key.
    SameHost,
}

/// How calls are made.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long a connection may take to open.
    pub connect_timeout: Duration,
    /// Longest answer in bytes.
    pub longest_answer: usize,
    /// Which redirects are followed.
    pub redirects: Redirects,
    /// Ways around, which are never taken to addresses on this machine.
    pub proxies: Proxies,
}

/// A request.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    pub method: &'a Method,
    /// The address. A user in it becomes a header.
    pub url: &'a Url,
    /// Headers, with a key only if the address may have it.
    pub headers: &'a HeaderMap,
    /// What is sent.
    pub content: &'a dyn Content,
    /// How long everything may take, to the last byte of the answer.
    pub timeout: Duration,
}

/// An answer, which may be a refusal.
#[derive(Debug)]
pub struct Answer {
    /// The status; never that of a redirect.
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// All of an answer, the beginning of a refusal.
    pub body: Bytes,
}

impl Answer {
    /// How long the server asks to be left alone.
    pub fn retry_after(&self) -> Option<Duration> {
        pause::retry_after(&self.headers, SystemTime::now())
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    #[error("{variable} is not the address of a proxy")]
    Proxy {
        /// Its name.
        variable: &'static str,
    },
    #[error("{reason}")]
    Connection {
        /// What the network said.
        reason: String,
    },
    #[error("no answer within {} seconds", after.as_secs_f64())]
    Timeout {
        /// The time that was allowed.
        after: Duration,
    },
    #[error("the answer is longer than {limit} bytes")]
    TooLong {
        /// What was allowed.
        limit: usize,
    },
    #[error("it redirects to {to}, where it is not followed (status {status})")]
    Redirect {
        status: u16,
        /// Scheme and host of the other address.
        to: String,
    },
    #[error("status {status} without a usable address")]
    NoAddress { status: u16 },
}

/// Makes calls.
#[derive(Debug)]
pub struct Client {
    ways: Ways<Body>,
    options: Options,
}

impl Client {
    /// Connects to nothing yet.
    pub fn new(options: Options) -> Result<Self, Failure> {
        if let Some(variable) = options.proxies.unusable() {
            return Err(Failure::Proxy { variable });
        }
        Ok(Self { ways: Ways::new(options.proxies.clone(), options.connect_timeout), options })
    }

    /// Sends a request and reads its answer.
    ///
    /// A request is sent a second time only if it did not leave: the connection that it was to go over had been closed.
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

    /// Where a redirect leads.
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
                // The status says enough.
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

/// The header that stands for a user in an address.
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
