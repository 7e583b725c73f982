//! Calls of Prime's API: one request, one JSON answer.
//!
//! The key is sent only to the configured host: redirects to other hosts are not followed, and plain HTTP is refused
//! except on this machine. Calls that may be repeated are repeated a few times when the service is busy or broken;
//! calls that create something are sent once, because after an unclear failure a repetition could create it twice.

mod error;

use std::time::Duration;

use aec_http::pause::{Rule, attempts};
use aec_http::{Answer, Call, Options, Proxies, Redirects};
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method};
use serde_json::Value;
use url::Url;

pub use error::{ApiError, ApiErrorKind, FieldProblem};

use crate::service::settings::{ApiKey, Settings};

#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// How long a connection may take to open.
    pub connect_timeout: Duration,
    pub answer_timeout: Duration,
    /// How long a call may take that starts something large.
    pub create_timeout: Duration,
    pub upload_timeout: Duration,
    /// How often a repeatable call is sent at most.
    pub attempts: u32,
    /// Pauses before repetitions.
    pub pauses: Rule,
    /// In bytes.
    pub longest_answer: usize,
    /// Proxies for all calls except those to this machine.
    pub proxies: Proxies,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            answer_timeout: Duration::from_secs(30),
            create_timeout: Duration::from_mins(2),
            upload_timeout: Duration::from_mins(5),
            attempts: 4,
            pauses: Rule::new(Duration::from_secs(1), Duration::from_mins(1)),
            longest_answer: 64 * 1024 * 1024,
            proxies: Proxies::default(),
        }
    }
}

/// A connection to Prime with one account.
#[derive(Debug)]
pub struct Client {
    http: aec_http::Client,
    settings: Settings,
    base: Url,
    inference: Url,
    pub(crate) options: ClientOptions,
}

pub type Query<'a> = [(&'a str, String)];

impl Client {
    /// Checks the addresses; opens no connection yet.
    pub fn new(settings: Settings, options: ClientOptions) -> Result<Self, ApiError> {
        let base = address(&settings.base_url)?;
        let inference = address(&settings.inference_url)?;
        let http = aec_http::Client::new(Options {
            connect_timeout: options.connect_timeout,
            longest_answer: options.longest_answer,
            redirects: Redirects::SameOrigin,
            proxies: options.proxies.clone(),
        });
        let http = http.map_err(|failure| ApiError::new("client", failure.into()))?;
        Ok(Self { http, settings, base, inference, options })
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Reads something. Repeated if the service is busy.
    pub async fn get(&self, path: &[&str], query: &Query<'_>) -> Result<Value, ApiError> {
        let message = self.message(Method::GET, path, query, None)?;
        self.repeatable(&message, self.options.answer_timeout).await
    }

    /// Returns the raw bytes, for callers that parse them. Repeated if the service is busy.
    pub(crate) async fn get_bytes(&self, path: &[&str], query: &Query<'_>) -> Result<Bytes, ApiError> {
        let message = self.message(Method::GET, path, query, None)?;
        self.repeated(&message, self.options.answer_timeout).await
    }

    /// Sends the request once, for callers that ask again anyway.
    pub async fn get_once(&self, path: &[&str], query: &Query<'_>) -> Result<Value, ApiError> {
        let message = self.message(Method::GET, path, query, None)?;
        self.once(&message, self.options.answer_timeout).await
    }

    /// Creates or changes something. Sent once.
    pub async fn post(&self, path: &[&str], body: Option<&Value>) -> Result<Value, ApiError> {
        let message = self.message(Method::POST, path, &[], body)?;
        self.once(&message, self.options.answer_timeout).await
    }

    /// Creates something that takes the service long. Sent once.
    pub async fn post_slow(&self, path: &[&str], body: &Value) -> Result<Value, ApiError> {
        let message = self.message(Method::POST, path, &[], Some(body))?;
        self.once(&message, self.options.create_timeout).await
    }

    /// Sets a state. Repeated if the service is busy.
    pub async fn put(&self, path: &[&str]) -> Result<Value, ApiError> {
        let message = self.message(Method::PUT, path, &[], None)?;
        self.repeatable(&message, self.options.answer_timeout).await
    }

    /// Changes something. Sent once.
    pub async fn patch(&self, path: &[&str]) -> Result<Value, ApiError> {
        let message = self.message(Method::PATCH, path, &[], None)?;
        self.once(&message, self.options.answer_timeout).await
    }

    /// Reads from the model API. Repeated if the service is busy.
    pub async fn get_inference(&self, path: &[&str]) -> Result<Value, ApiError> {
        let url = aec_http::below(&self.inference, path);
        let mut message = Message::new(Method::GET, url, &shown_path("", path), Some(self.key()?))?;
        if let Some(team) = &self.settings.team_id {
            let bad = || ApiErrorKind::BadName { what: "team id".to_owned(), name: aec_http::excerpt(team) };
            let value = HeaderValue::from_str(team).map_err(|_| message.fail(bad()))?;
            message.headers.insert("x-prime-team-id", value);
        }
        self.repeatable(&message, self.options.answer_timeout).await
    }

    /// Stores bytes at an address that the service handed out, without the key. Repeated if the storage is busy.
    pub async fn upload(&self, address: &str, bytes: &Bytes) -> Result<(), ApiError> {
        let url = self::address(address)?;
        // The query of such an address is a signature and is not shown.
        let shown = format!("{}{}", url.host_str().unwrap_or_default(), url.path());
        let mut message = Message::new(Method::PUT, url, &shown, None)?;
        message.body = bytes.clone();
        message.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
        self.repeatable(&message, self.options.upload_timeout).await.map(|_| ())
    }

    fn key(&self) -> Result<&ApiKey, ApiError> {
        let missing = || ApiError::new("settings", ApiErrorKind::NoKey);
        self.settings.api_key.as_ref().ok_or_else(missing)
    }

    fn message(
        &self,
        method: Method,
        path: &[&str],
        query: &Query<'_>,
        body: Option<&Value>,
    ) -> Result<Message, ApiError> {
        let full: Vec<&str> = ["api", "v1"].iter().chain(path).copied().collect();
        let mut url = aec_http::below(&self.base, &full);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let mut message = Message::new(method, url, &shown_path("/api/v1", path), Some(self.key()?))?;
        if let Some(body) = body {
            message.body = body.to_string().into();
        }
        Ok(message)
    }

    async fn once(&self, message: &Message, timeout: Duration) -> Result<Value, ApiError> {
        message.value(&self.sent(message, timeout).await?)
    }

    async fn repeatable(&self, message: &Message, timeout: Duration) -> Result<Value, ApiError> {
        message.value(&self.repeated(message, timeout).await?)
    }

    async fn repeated(&self, message: &Message, timeout: Duration) -> Result<Bytes, ApiError> {
        let attempt = || self.sent(message, timeout);
        attempts(&self.options.pauses, self.options.attempts, attempt, ApiError::outlook).await
    }

    /// Sends a request and returns the answer; no content counts as an empty object.
    async fn sent(&self, message: &Message, timeout: Duration) -> Result<Bytes, ApiError> {
        let Message { method, url, headers, body, .. } = message;
        let call = Call { method, url, headers, content: body, timeout };
        let answer = self.http.send(&call).await.map_err(|failure| message.fail(failure.into()))?;
        message.content(answer)
    }
}

/// A request that can be sent any number of times.
#[derive(Debug)]
struct Message {
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Bytes,
    call: String,
}

impl Message {
    /// A request without a body. Errors show `shown` in place of the address.
    fn new(method: Method, url: Url, shown: &str, key: Option<&ApiKey>) -> Result<Self, ApiError> {
        let call = format!("{method} {shown}");
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(key) = key {
            let value = HeaderValue::from_str(&format!("Bearer {}", key.reveal()));
            let mut value = value.map_err(|_| ApiError::new(&call, ApiErrorKind::NoKey))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        Ok(Self { method, url, headers, body: Bytes::new(), call })
    }

    fn fail(&self, kind: ApiErrorKind) -> ApiError {
        ApiError::new(&self.call, kind)
    }

    /// The content of a successful answer.
    fn content(&self, answer: Answer) -> Result<Bytes, ApiError> {
        let Answer { status, body, .. } = &answer;
        if !status.is_success() {
            return Err(ApiError::of_status(&self.call, status.as_u16(), answer.retry_after(), body));
        }
        // The answer of the storage to an upload is ignored.
        if !self.headers.contains_key(AUTHORIZATION) || body.iter().all(u8::is_ascii_whitespace) {
            return Ok(Bytes::from_static(b"{}"));
        }
        Ok(answer.body)
    }

    fn value(&self, content: &[u8]) -> Result<Value, ApiError> {
        aec_base::json::from_slice(content).map(unwrapped).map_err(|error| {
            let reason = format!("not JSON (line {}, column {})", error.line(), error.column());
            self.fail(ApiErrorKind::Malformed { reason })
        })
    }
}

/// An address to which the key may be sent.
fn address(text: &str) -> Result<Url, ApiError> {
    aec_http::checked(text).map_err(|bad| {
        let kind = ApiErrorKind::BadAddress { address: bad.address, reason: bad.reason };
        ApiError::new("settings", kind)
    })
}

/// Some answers come inside `{"data": …}`, some do not. Lists keep their wrapper, which contains the totals.
fn unwrapped(value: Value) -> Value {
    match value {
        Value::Object(mut object) if object.get("data").is_some_and(Value::is_object) => {
            object.remove("data").unwrap_or_default()
        }
        other => other,
    }
}

fn shown_path(prefix: &str, path: &[&str]) -> String {
    format!("{prefix}/{}", path.join("/"))
}

/// Checks a name that becomes part of an address. A name such as `..` would lead to another resource.
pub(crate) fn segment<'a>(what: &str, id: &'a str) -> Result<&'a str, ApiError> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-@+".contains(c);
    if id.is_empty() || id.len() > 200 || !id.chars().all(allowed) || id.chars().all(|c| c == '.') {
        let kind = ApiErrorKind::BadName { what: what.to_owned(), name: id.chars().take(80).collect() };
        return Err(ApiError::new("request", kind));
    }
    Ok(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_lead_to_another_resource() {
        for bad in ["", ".", "..", "...", "a/b", "a b", "a?b", "ä", "a\n"] {
            assert!(segment("id", bad).is_err(), "{bad:?}");
        }
        segment("id", "@latest").unwrap();
    }
}
