//! Calls of Prime's API: one request, one JSON answer.
//!
//! The key goes to the configured host and nowhere else: other hosts are not followed to, and plain HTTP is refused
//! except on this machine. Calls that may be repeated are repeated a few times when the service is busy or broken;
//! calls that create something are sent once, because an unclear failure must not create it twice.

mod error;
mod http;
mod pause;

use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use url::Url;

pub use crate::connections::is_loopback;
pub use error::{ApiError, ApiErrorKind, FieldProblem};
use http::{Http, Message};
pub(crate) use pause::Pause;

use crate::service::settings::{ApiKey, Settings};

/// Who is asking.
const USER_AGENT: &str = concat!("aec-bench/", env!("CARGO_PKG_VERSION"));

/// Whether addresses without encryption may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlainHttp {
    /// Only on this machine.
    #[default]
    LoopbackOnly,
    /// Everywhere. The key then travels readable.
    Allowed,
}

/// How calls are made.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// How long a connection may take to open.
    pub connect_timeout: Duration,
    /// How long an answer may take.
    pub answer_timeout: Duration,
    /// How long a call may take that starts something large.
    pub create_timeout: Duration,
    /// How long one upload may take.
    pub upload_timeout: Duration,
    /// How often a repeatable call is sent at most.
    pub attempts: u32,
    /// Pause before the first repetition; it doubles each time.
    pub first_pause: Duration,
    /// Longest pause. A service that asks for a longer one is not asked again.
    pub longest_pause: Duration,
    /// Longest answer in bytes.
    pub longest_answer: usize,
    /// Whether plain HTTP may leave this machine.
    pub plain_http: PlainHttp,
    /// Address of a proxy for all calls but those to this machine.
    pub proxy: Option<String>,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            answer_timeout: Duration::from_secs(30),
            create_timeout: Duration::from_mins(2),
            upload_timeout: Duration::from_mins(5),
            attempts: 4,
            first_pause: Duration::from_secs(1),
            longest_pause: Duration::from_mins(1),
            longest_answer: 64 * 1024 * 1024,
            plain_http: PlainHttp::LoopbackOnly,
            proxy: None,
        }
    }
}

/// A connection to Prime with one account.
#[derive(Debug)]
pub struct Client {
    http: Http,
    settings: Settings,
    base: Url,
    inference: Url,
    pub(crate) options: ClientOptions,
}

/// Parameters of an address.
pub type Query<'a> = [(&'a str, String)];

impl Client {
    /// Checks the addresses; connects to nothing yet.
    pub fn new(settings: Settings, options: ClientOptions) -> Result<Self, ApiError> {
        let base = http::checked_address(&settings.base_url, options.plain_http)?;
        let inference = http::checked_address(&settings.inference_url, options.plain_http)?;
        Ok(Self { http: Http::new(&options)?, settings, base, inference, options })
    }

    /// The settings in use.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Reads something. Repeated if the service is busy.
    pub async fn get(&self, path: &[&str], query: &Query<'_>) -> Result<Value, ApiError> {
        let message = self.message("GET", path, query, None)?;
        self.repeatable(&message, self.options.answer_timeout).await
    }

    /// Reads something as it was sent, for callers that read it themselves. Repeated if the service is busy.
    pub(crate) async fn get_bytes(&self, path: &[&str], query: &Query<'_>) -> Result<Bytes, ApiError> {
        let message = self.message("GET", path, query, None)?;
        self.repeated(&message, self.options.answer_timeout).await
    }

    /// Reads something once, for callers that ask again anyway.
    pub async fn get_once(&self, path: &[&str], query: &Query<'_>) -> Result<Value, ApiError> {
        let message = self.message("GET", path, query, None)?;
        self.once(&message, self.options.answer_timeout).await
    }

    /// Creates or changes something. Sent once.
    pub async fn post(&self, path: &[&str], body: Option<&Value>) -> Result<Value, ApiError> {
        let message = self.message("POST", path, &[], body)?;
        self.once(&message, self.options.answer_timeout).await
    }

    /// Creates something that takes the service long. Sent once.
    pub async fn post_slow(&self, path: &[&str], body: &Value) -> Result<Value, ApiError> {
        let message = self.message("POST", path, &[], Some(body))?;
        self.once(&message, self.options.create_timeout).await
    }

    /// Brings something into a state. Repeated if the service is busy.
    pub async fn put(&self, path: &[&str]) -> Result<Value, ApiError> {
        let message = self.message("PUT", path, &[], None)?;
        self.repeatable(&message, self.options.answer_timeout).await
    }

    /// Changes something. Sent once.
    pub async fn patch(&self, path: &[&str]) -> Result<Value, ApiError> {
        let message = self.message("PATCH", path, &[], None)?;
        self.once(&message, self.options.answer_timeout).await
    }

    /// Reads from the model API. Repeated if the service is busy.
    pub async fn get_inference(&self, path: &[&str]) -> Result<Value, ApiError> {
        let url = http::below(&self.inference, path, &[])?;
        let mut message = Message::new("GET", url, shown_path("", path), Some(self.key()?));
        message.team_id.clone_from(&self.settings.team_id);
        self.repeatable(&message, self.options.answer_timeout).await
    }

    /// Stores bytes at an address that the service handed out. The key is not sent there. Repeated if it is busy.
    pub async fn upload(&self, address: &str, bytes: &Bytes) -> Result<(), ApiError> {
        let url = http::checked_address(address, self.options.plain_http)?;
        // The query of such an address is a signature and is not shown.
        let shown = format!("{}{}", url.host_str().unwrap_or_default(), url.path());
        let mut message = Message::new("PUT", url, shown, None);
        message.body = bytes.clone();
        message.content_type = "application/octet-stream";
        self.repeatable(&message, self.options.upload_timeout).await.map(|_| ())
    }

    fn key(&self) -> Result<&ApiKey, ApiError> {
        let missing = || ApiError::new("settings", ApiErrorKind::NoKey);
        self.settings.api_key.as_ref().ok_or_else(missing)
    }

    fn message<'a>(
        &'a self,
        method: &'static str,
        path: &[&str],
        query: &Query<'_>,
        body: Option<&Value>,
    ) -> Result<Message<'a>, ApiError> {
        let full: Vec<&str> = ["api", "v1"].iter().chain(path).copied().collect();
        let url = http::below(&self.base, &full, query)?;
        let mut message = Message::new(method, url, shown_path("/api/v1", path), Some(self.key()?));
        if let Some(body) = body {
            message.body = body.to_string().into();
        }
        Ok(message)
    }

    async fn once(&self, message: &Message<'_>, timeout: Duration) -> Result<Value, ApiError> {
        parsed(message, &self.http.send(message, timeout).await?)
    }

    async fn repeatable(&self, message: &Message<'_>, timeout: Duration) -> Result<Value, ApiError> {
        parsed(message, &self.repeated(message, timeout).await?)
    }

    async fn repeated(&self, message: &Message<'_>, timeout: Duration) -> Result<Bytes, ApiError> {
        let mut pause = Pause::new(&self.options);
        loop {
            let error = match self.http.send(message, timeout).await {
                Ok(body) => return Ok(body),
                Err(error) => error,
            };
            let Some(wait) = pause.after(&error) else { return Err(error) };
            tokio::time::sleep(wait).await;
        }
    }
}

fn parsed(message: &Message<'_>, body: &[u8]) -> Result<Value, ApiError> {
    serde_json::from_slice(body).map(unwrapped).map_err(|error| {
        let reason = format!("not JSON (line {}, column {})", error.line(), error.column());
        message.fail(ApiErrorKind::Malformed { reason })
    })
}

/// Some answers come inside `{"data": …}`, some do not. Lists keep their wrapper, which holds the totals.
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
