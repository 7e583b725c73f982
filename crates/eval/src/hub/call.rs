//! Calls of the hub: one request, one answer, repeated a few times when the hub is busy or the connection breaks.
//!
//! Every call here may be repeated: creating what exists is fine, and the same upload or commit twice leaves the same
//! files. The token goes to the hub's own address and nowhere else.

use std::time::{Duration, SystemTime};

use aec_base::secret::Redactor;
use bytes::{Bytes, BytesMut};
use reqwest::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER,
};
use reqwest::redirect::Policy;
use reqwest::{Method, Response, StatusCode};
use serde_json::Value;
use url::Url;

use super::HubOptions;
use super::account::Account;
use super::error::HubError;
use super::source::Payload;
use aec_prime::connections::{Clients, causes, excerpt};

/// How many redirects within the hub are followed; a renamed dataset has one.
const MOST_REDIRECTS: usize = 3;

/// Longest answer that is read.
const LONGEST_ANSWER: usize = 8 * 1024 * 1024;

/// Bytes that the slowest upload sends in a second.
const SLOWEST_UPLOAD: u64 = 32 * 1024;

/// Whether the token goes along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Authority {
    /// Yes: an address of the hub.
    Token,
    /// No: an address that the hub handed out, whose query or headers say enough.
    Address,
}

/// A request, ready to be sent any number of times.
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
    /// A request without a body.
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

    /// With a JSON body.
    pub(super) fn json(mut self, body: &Value) -> Self {
        self.payload = Payload::text(body.to_string());
        self
    }

    /// The call in messages. Queries of addresses that were handed out are signatures and are not shown.
    pub(super) fn shown(&self) -> String {
        match self.authority {
            Authority::Token => format!("{} {}", self.method, self.url.path()),
            Authority::Address => {
                format!("{} {}", self.method, self.url.host_str().unwrap_or_default())
            }
        }
    }
}

/// An answer that is no failure of the connection or of the hub itself.
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
    /// The answer as JSON.
    pub(super) fn json(&self) -> Result<Value, HubError> {
        serde_json::from_slice(&self.body).map_err(|error| {
            let reason = format!("not JSON (line {}, column {})", error.line(), error.column());
            HubError::Malformed { call: self.call.clone(), reason }
        })
    }

    /// An answer that lacks something.
    pub(super) fn malformed(&self, reason: impl Into<String>) -> HubError {
        HubError::Malformed { call: self.call.clone(), reason: reason.into() }
    }

    /// What the hub said about a refusal.
    pub(super) fn detail(&self) -> String {
        self.detail.clone()
    }
}

/// A hub with one account.
#[derive(Debug)]
pub(super) struct Connection<'a> {
    clients: Clients,
    pub(super) account: &'a Account,
    options: &'a HubOptions,
}

impl<'a> Connection<'a> {
    /// Connects to nothing yet.
    pub(super) fn new(account: &'a Account, options: &'a HubOptions) -> Result<Self, HubError> {
        let clients = Clients::new(options.connect_timeout, options.proxy.as_deref(), Policy::none);
        let clients = clients.map_err(|reason| HubError::Network { call: "client".to_owned(), reason })?;
        Ok(Self { clients, account, options })
    }

    /// An address of the hub, with every part escaped.
    pub(super) fn address(&self, path: &[&str]) -> Url {
        let mut url = self.account.endpoint.clone();
        url.set_query(None);
        url.set_fragment(None);
        // Addresses with a host always take a path, and the endpoint was checked to have a host.
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        url
    }

    /// Sends a call until it is answered, and takes only success for an answer.
    pub(super) async fn succeed(&self, call: &Call) -> Result<Answer, HubError> {
        let answer = self.send(call).await?;
        if answer.status.is_success() { Ok(answer) } else { Err(self.refusal(&answer)) }
    }

    /// Sends a call until it is answered. Refusals are answers; a busy hub and a broken connection are not.
    pub(super) async fn send(&self, call: &Call) -> Result<Answer, HubError> {
        let mut pauses = Pauses::new(self.options);
        loop {
            let error = match self.send_once(call).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            // A file that cannot be read breaks the connection, and that is not the network's doing.
            if let Some(failure) = call.payload.failure() {
                return Err(failure);
            }
            let Some(wait) = pauses.after(&error) else { return Err(error) };
            tokio::time::sleep(wait).await;
        }
    }

    /// What a refusal means.
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
        match tokio::time::timeout(timeout, self.exchange(call)).await {
            Ok(outcome) => outcome,
            Err(_) => {
                let reason = format!("nothing within {} seconds", timeout.as_secs_f64());
                Err(HubError::Network { call: call.shown(), reason })
            }
        }
    }

    async fn exchange(&self, call: &Call) -> Result<Answer, HubError> {
        let mut url = call.url.clone();
        for _ in 0..=MOST_REDIRECTS {
            let mut request = self.clients.of(&url).request(call.method.clone(), url.clone());
            request = request.headers(self.headers(call)?);
            if call.method != Method::GET {
                request = request.body(call.payload.body());
            }
            let broken = |error| HubError::Network { call: call.shown(), reason: causes(&error) };
            let response = request.send().await.map_err(broken)?;
            if !response.status().is_redirection() {
                return self.read(call, response).await;
            }
            url = next_address(call, &url, &response)?;
        }
        Err(HubError::Redirect { call: call.shown(), to: "itself again and again".to_owned() })
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

    async fn read(&self, call: &Call, response: Response) -> Result<Answer, HubError> {
        let status = response.status();
        let retry_after = retry_after(response.headers(), SystemTime::now());
        let retry_after = retry_after.or_else(|| limit_reset(response.headers()));
        let header = |name: HeaderName| {
            response.headers().get(name).and_then(|value| value.to_str().ok()).map(ToOwned::to_owned)
        };
        let etag = header(ETAG);
        let said = header(HeaderName::from_static("x-error-message"));
        let body = limited(call, response).await?;
        let detail = if status.is_success() { String::new() } else { said.unwrap_or_else(|| said_in(&body)) };
        let detail = self.scrubbed(&detail);
        // 412 is a commit that came in between; the same commit works after it. An account makes one dataset at a time.
        let in_turn =
            status == StatusCode::CONFLICT && detail.contains("conflicting operation is in progress");
        if status.is_server_error() || in_turn || matches!(status.as_u16(), 408 | 412 | 429) {
            let status = status.as_u16();
            return Err(HubError::Busy { call: call.shown(), status, retry_after, detail });
        }
        Ok(Answer { call: call.shown(), authority: call.authority, status, etag, body, detail })
    }

    /// One line of what the hub said, without the token should it be repeated there.
    pub(super) fn scrubbed(&self, text: &str) -> String {
        let redactor = Redactor::default().with([("token", self.account.token.reveal())]);
        excerpt(&redactor.scrub(text.to_owned()))
    }
}

/// Where a redirect leads. The token and the results stay with the hub, and a request with content is not turned into
/// one without.
fn next_address(call: &Call, from: &Url, response: &Response) -> Result<Url, HubError> {
    let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
    let Some(to) = location.and_then(|location| from.join(location).ok()) else {
        let reason = format!("status {} without a usable address", response.status());
        return Err(HubError::Malformed { call: call.shown(), reason });
    };
    let keeps_method =
        matches!(response.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
    if to.origin() != from.origin() || (call.method != Method::GET && !keeps_method) {
        return Err(HubError::Redirect { call: call.shown(), to: to.origin().ascii_serialization() });
    }
    Ok(to)
}

async fn limited(call: &Call, mut response: Response) -> Result<Bytes, HubError> {
    let mut body = BytesMut::new();
    loop {
        match response.chunk().await {
            Ok(None) => return Ok(body.freeze()),
            Ok(Some(piece)) if body.len() + piece.len() <= LONGEST_ANSWER => body.extend_from_slice(&piece),
            Ok(Some(_)) => {
                let reason = format!("it is longer than {LONGEST_ANSWER} bytes");
                return Err(HubError::Malformed { call: call.shown(), reason });
            }
            Err(error) => {
                return Err(HubError::Network { call: call.shown(), reason: causes(&error) });
            }
        }
    }
}

/// What a refusal says: `error` or `message` of a JSON answer, else the text unless it is a page for people.
fn said_in(body: &[u8]) -> String {
    match serde_json::from_slice::<Value>(body) {
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

/// Seconds or a date.
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

/// When a limit that is used up begins anew: `"api";r=0;t=55` has none left and 55 seconds to go.
fn limit_reset(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("ratelimit")?.to_str().ok()?;
    let value = |name: &str| {
        let mut fields = text.split(';').filter_map(|field| field.trim().split_once('='));
        fields.find(|(known, _)| known.trim() == name).and_then(|(_, value)| value.trim().parse::<u64>().ok())
    };
    // The seconds are rounded down.
    (value("r")? == 0).then_some(Duration::from_secs(value("t")?.saturating_add(1)))
}

/// Pauses of one call.
#[derive(Debug)]
struct Pauses {
    left: u32,
    next: Duration,
    longest: Duration,
}

impl Pauses {
    fn new(options: &HubOptions) -> Self {
        Self {
            left: options.attempts.saturating_sub(1),
            next: options.first_pause,
            longest: options.longest_pause,
        }
    }

    /// The pause after an error, or nothing if there is no point in another attempt.
    fn after(&mut self, error: &HubError) -> Option<Duration> {
        if self.left == 0 || !error.is_passing() {
            return None;
        }
        self.left -= 1;
        let own = self.next.min(self.longest);
        self.next = self.next.saturating_mul(2);
        match error.retry_after() {
            Some(asked) if asked > self.longest => None,
            Some(asked) => Some(asked.max(own)),
            None => Some(own),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy(retry_after: Option<u64>) -> HubError {
        let retry_after = retry_after.map(Duration::from_secs);
        HubError::Busy { call: String::new(), status: 429, retry_after, detail: String::new() }
    }

    #[test]
    fn pauses_double_and_end() {
        let mut pauses = Pauses::new(&HubOptions { attempts: 4, ..HubOptions::default() });
        let waits: Vec<_> =
            std::iter::from_fn(|| pauses.after(&busy(None))).map(|wait| wait.as_secs()).collect();
        assert_eq!(waits, [1, 2, 4]);
    }

    #[test]
    fn the_hub_may_ask_for_more_but_not_for_too_much() {
        let mut pauses = Pauses::new(&HubOptions::default());
        assert_eq!(pauses.after(&busy(Some(7))), Some(Duration::from_secs(7)));
        assert_eq!(pauses.after(&busy(Some(0))), Some(Duration::from_secs(2)));
        assert_eq!(pauses.after(&busy(Some(3600))), None, "longer than the hub's own limits last");
        let mut pauses = Pauses::new(&HubOptions::default());
        assert_eq!(pauses.after(&HubError::NoToken), None, "a refusal is final");
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let of = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, HeaderValue::from_str(text).unwrap());
            retry_after(&headers, now)
        };
        assert_eq!(of("12"), Some(Duration::from_secs(12)));
        let date = |time| of(&httpdate::fmt_http_date(time));
        assert_eq!(date(now + Duration::from_secs(30)), Some(Duration::from_secs(30)));
        assert_eq!(date(now - Duration::from_secs(30)), Some(Duration::ZERO));
        assert_eq!(of("soon"), None);
        assert_eq!(of("-1"), None);
    }

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
