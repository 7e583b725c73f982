//! Calls of the hub: one request, one answer, repeated a few times when the hub is busy or the connection breaks.
//!
//! Every call here may be repeated: creating something that exists is fine, and the same upload or commit twice leaves
//! the same files. The token is sent only to the hub's own address.

use std::time::Duration;

use aec_base::secret::Redactor;
use aec_http::pause::attempts;
use aec_http::{Client, Options, Redirects, excerpt};
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, ETAG};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde_json::Value;
use url::Url;

use super::HubOptions;
use super::account::Account;
use super::error::HubError;
use super::source::Payload;

/// Longest answer that is read.
const LONGEST_ANSWER: usize = 8 * 1024 * 1024;

/// Bytes per second that the slowest upload is expected to send.
const SLOWEST_UPLOAD: u64 = 32 * 1024;

/// Whether the token is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Authority {
    /// Yes: the address belongs to the hub.
    Token,
    /// No: the hub handed out this address, with authorisation in its query or headers.
    Address,
}

/// A request that can be sent any number of times.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) payload: Payload,
    pub(super) content_type: &'static str,
    pub(super) accept: &'static str,
    pub(super) headers: HeaderMap,
    pub(super) authority: Authority,
}

impl Call {
    pub(super) fn new(method: Method, url: Url, authority: Authority) -> Self {
        Self {
            method,
            url,
            payload: Payload::default(),
            content_type: "application/json",
            accept: "application/json",
            headers: HeaderMap::new(),
            authority,
        }
    }

    pub(super) fn json(mut self, body: &Value) -> Self {
        self.payload = Payload::text(body.to_string());
        self
    }

    /// The call as messages show it. Queries of addresses that the hub handed out are signatures and are left out.
    pub(super) fn shown(&self) -> String {
        match self.authority {
            Authority::Token => format!("{} {}", self.method, self.url.path()),
            Authority::Address => {
                format!("{} {}", self.method, self.url.host_str().unwrap_or_default())
            }
        }
    }
}

/// An answer, which may be a refusal. Failures of the connection or of the hub itself are errors instead.
#[derive(Debug)]
pub(super) struct Answer {
    call: String,
    authority: Authority,
    pub(super) status: StatusCode,
    pub(super) etag: Option<String>,
    body: Bytes,
    detail: String,
}

impl Answer {
    pub(super) fn json(&self) -> Result<Value, HubError> {
        aec_base::json::from_slice(&self.body).map_err(|error| {
            let reason = format!("not JSON (line {}, column {})", error.line(), error.column());
            HubError::Malformed { call: self.call.clone(), reason }
        })
    }

    pub(super) fn malformed(&self, reason: impl Into<String>) -> HubError {
        HubError::Malformed { call: self.call.clone(), reason: reason.into() }
    }

    /// The hub's reason for a refusal.
    pub(super) fn detail(&self) -> String {
        self.detail.clone()
    }
}

#[derive(Debug)]
pub(super) struct Connection<'a> {
    client: Client,
    pub(super) account: &'a Account,
    options: &'a HubOptions,
}

impl<'a> Connection<'a> {
    /// Opens no connection yet.
    pub(super) fn new(account: &'a Account, options: &'a HubOptions) -> Result<Self, HubError> {
        let client = Client::new(Options {
            connect_timeout: options.connect_timeout,
            longest_answer: LONGEST_ANSWER,
            redirects: Redirects::SameOrigin,
            proxies: options.proxies.clone(),
        });
        let client = client.map_err(|failure| HubError::of("client".to_owned(), failure))?;
        Ok(Self { client, account, options })
    }

    /// An address of the hub, with every part escaped.
    pub(super) fn address(&self, path: &[&str]) -> Url {
        aec_http::below(&self.account.endpoint, path)
    }

    /// Sends a call until the hub answers; anything but success is an error.
    pub(super) async fn succeed(&self, call: &Call) -> Result<Answer, HubError> {
        let answer = self.send(call).await?;
        if answer.status.is_success() { Ok(answer) } else { Err(self.refusal(&answer)) }
    }

    /// Sends a call until the hub answers. Refusals are answers; a busy hub and a broken connection are not.
    pub(super) async fn send(&self, call: &Call) -> Result<Answer, HubError> {
        let attempt = || async move {
            // An unreadable file breaks the connection, but the error must name the file, not the network.
            self.send_once(call).await.map_err(|error| call.payload.failure().unwrap_or(error))
        };
        attempts(&self.options.pauses, self.options.attempts, attempt, HubError::outlook).await
    }

    pub(super) fn refusal(&self, answer: &Answer) -> HubError {
        let (call, status, detail) = (answer.call.clone(), answer.status.as_u16(), answer.detail());
        match status {
            401 if answer.authority == Authority::Token => {
                HubError::TokenRefused { origin: self.account.origin.clone(), detail }
            }
            413 => HubError::TooLarge { what: format!("the request {call}"), detail },
            _ => HubError::Refused { call, status, detail },
        }
    }

    async fn send_once(&self, call: &Call) -> Result<Answer, HubError> {
        let seconds = call.payload.length() / SLOWEST_UPLOAD;
        let timeout = self.options.answer_timeout.saturating_add(Duration::from_secs(seconds));
        let headers = &self.headers(call)?;
        let Call { method, url, payload: content, .. } = call;
        let answer = self.client.send(&aec_http::Call { method, url, headers, content, timeout }).await;
        self.judged(call, answer.map_err(|failure| HubError::of(call.shown(), failure))?)
    }

    fn headers(&self, call: &Call) -> Result<HeaderMap, HubError> {
        let mut headers = call.headers.clone();
        headers.insert(ACCEPT, HeaderValue::from_static(call.accept));
        if call.method != Method::GET {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(call.content_type));
        }
        if call.authority == Authority::Token {
            let value = HeaderValue::from_str(&format!("Bearer {}", self.account.token.reveal()));
            let mut value = value.map_err(|_| HubError::BadToken {
                origin: self.account.origin.clone(),
                reason: "it has characters that no header can hold".to_owned(),
            })?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        Ok(headers)
    }

    /// Separates answers from temporary failures.
    fn judged(&self, call: &Call, answer: aec_http::Answer) -> Result<Answer, HubError> {
        let retry_after = answer.retry_after().or_else(|| limit_reset(&answer.headers));
        let aec_http::Answer { status, headers, body } = answer;
        let header =
            |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(ToOwned::to_owned);
        let etag = header(ETAG.as_str());
        let said = header("x-error-message");
        let detail = if status.is_success() { String::new() } else { said.unwrap_or_else(|| said_in(&body)) };
        let detail = self.scrubbed(&detail);
        // 412: another commit came first; the same commit works after it. An account creates one dataset at a time.
        let in_turn =
            status == StatusCode::CONFLICT && detail.contains("conflicting operation is in progress");
        if status.is_server_error() || in_turn || matches!(status.as_u16(), 408 | 412 | 429) {
            let status = status.as_u16();
            return Err(HubError::Busy { call: call.shown(), status, retry_after, detail });
        }
        Ok(Answer { call: call.shown(), authority: call.authority, status, etag, body, detail })
    }

    /// One line of the hub's text, with the token removed in case the hub repeats it.
    pub(super) fn scrubbed(&self, text: &str) -> String {
        let redactor = Redactor::default().with([("token", self.account.token.reveal())]);
        excerpt(&redactor.scrub(text.to_owned()))
    }
}

/// The reason in a refusal: `error` or `message` of a JSON answer, else the text unless it is a web page.
fn said_in(body: &[u8]) -> String {
    match aec_base::json::from_slice::<Value>(body) {
        Ok(Value::Object(object)) => match object.get("error").or_else(|| object.get("message")) {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => Value::Object(object).to_string(),
        },
        Ok(other) => other.to_string(),
        Err(_) if body.trim_ascii_start().starts_with(b"<") => String::new(),
        Err(_) => String::from_utf8_lossy(body).into_owned(),
    }
}

/// When an exhausted limit resets: `"api";r=0;t=55` has none left and 55 seconds to go.
fn limit_reset(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("ratelimit")?.to_str().ok()?;
    let value = |name: &str| {
        let mut fields = text.split(';').filter_map(|field| field.trim().split_once('='));
        fields.find(|(known, _)| known.trim() == name).and_then(|(_, value)| value.trim().parse::<u64>().ok())
    };
    // The hub rounds the seconds down.
    (value("r")? == 0).then_some(Duration::from_secs(value("t")?.saturating_add(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_is_used_up_says_when_it_ends() {
        let of = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("ratelimit", HeaderValue::from_str(text).unwrap());
            limit_reset(&headers)
        };
        assert_eq!(of("\"api\";r=0;t=55"), Some(Duration::from_secs(56)));
        assert_eq!(of("\"api\" ; r = 0 ; t = 0"), Some(Duration::from_secs(1)));
        assert_eq!(of("\"api\";r=3;t=55"), None, "not the reason for the refusal");
        for odd in ["", "api", "\"api\";r=0", "\"api\";r=0;t=x", "r;t", "r=0;t=-1"] {
            assert_eq!(of(odd), None, "{odd}");
        }
        assert_eq!(limit_reset(&HeaderMap::new()), None);
    }
}
