//! Errors of calls, with messages that tell the user what to do.

use std::fmt;
use std::time::Duration;

use aec_http::excerpt;
use aec_http::pause::Outlook;
use serde_json::Value;

#[derive(Debug, thiserror::Error)]
#[error("{call}: {kind}")]
pub struct ApiError {
    /// The call, such as `GET /api/v1/user/whoami`.
    pub call: String,
    pub kind: ApiErrorKind,
}

#[derive(Debug, thiserror::Error)]
pub enum ApiErrorKind {
    #[error("no Prime API key; run `prime login`, or set PRIME_API_KEY")]
    NoKey,
    #[error("{address:?} is not an address of a service: {reason}")]
    BadAddress {
        /// The address without its query.
        address: String,
        reason: &'static str,
    },
    #[error("{name:?} cannot be the {what}: letters, digits and `._-@+` are allowed, at most 200 of them")]
    BadName {
        what: String,
        /// The beginning of the name.
        name: String,
    },
    #[error("{reason}; correct or remove it")]
    Proxy { reason: String },
    #[error("no answer from the service: {reason}")]
    Connection { reason: String },
    #[error("no answer within {} seconds", after.as_secs_f64())]
    Timeout { after: Duration },
    #[error(
        "Prime does not accept the API key; run `prime login`, or set PRIME_API_KEY to a valid key{}",
        Said(detail)
    )]
    Unauthorized { detail: String },
    #[error("the account does not have enough credit; add some on Prime's billing page{}", Said(detail))]
    PaymentRequired { detail: String },
    #[error(
        "the API key may not do this; give it the permission on Prime's key page, or check the team{}",
        Said(detail)
    )]
    Forbidden { detail: String },
    #[error("not found; check the name, and whether it belongs to this account or team{}", Said(detail))]
    NotFound { detail: String },
    #[error(
        "the service does not know this call; it may have changed since this version was made{}",
        Said(detail)
    )]
    MethodNotAllowed { detail: String },
    #[error("the service refused the request:{}", Listed(problems))]
    Invalid { problems: Vec<FieldProblem> },
    #[error("too many requests{}; try again later", Later(*retry_after))]
    RateLimited {
        /// How long the service asks to wait.
        retry_after: Option<Duration>,
    },
    #[error("the service itself failed (status {status}); try again later{}", Said(detail))]
    Server {
        status: u16,
        /// How long the service asks to wait.
        retry_after: Option<Duration>,
        detail: String,
    },
    #[error("refused with status {status}{}", Said(detail))]
    Refused { status: u16, detail: String },
    #[error(
        "the service redirects to {to}, where the API key is not sent; correct the base URL in the settings"
    )]
    Redirect {
        /// Scheme and host of the other address.
        to: String,
    },
    #[error("the answer is longer than {limit} bytes")]
    TooLong { limit: usize },
    #[error("the answer does not have the expected form: {reason}")]
    Malformed { reason: String },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldProblem {
    /// Path of the field in the request, such as `eval_config.num_examples`.
    pub field: String,
    pub message: String,
}

impl ApiError {
    pub(crate) fn new(call: impl Into<String>, kind: ApiErrorKind) -> Self {
        Self { call: call.into(), kind }
    }

    pub(crate) fn malformed(call: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::new(call, ApiErrorKind::Malformed { reason: reason.into() })
    }

    /// The error of a status with its body.
    pub(crate) fn of_status(call: &str, status: u16, retry_after: Option<Duration>, body: &[u8]) -> Self {
        let detail = detail(body);
        let kind = match status {
            401 => ApiErrorKind::Unauthorized { detail },
            402 => ApiErrorKind::PaymentRequired { detail },
            403 => ApiErrorKind::Forbidden { detail },
            404 => ApiErrorKind::NotFound { detail },
            405 => ApiErrorKind::MethodNotAllowed { detail },
            422 => match problems(body) {
                problems if problems.is_empty() => ApiErrorKind::Refused { status, detail },
                problems => ApiErrorKind::Invalid { problems },
            },
            429 => ApiErrorKind::RateLimited { retry_after },
            500..=599 => ApiErrorKind::Server { status, retry_after, detail },
            _ => ApiErrorKind::Refused { status, detail },
        };
        Self::new(call, kind)
    }

    /// Whether the same call may work a little later.
    pub fn is_passing(&self) -> bool {
        use ApiErrorKind::{Connection, RateLimited, Server, Timeout};
        matches!(self.kind, Connection { .. } | RateLimited { .. } | Server { .. } | Timeout { .. })
    }

    pub(super) fn outlook(&self) -> Outlook {
        if self.is_passing() { Outlook::Passing(self.retry_after()) } else { Outlook::Final }
    }

    pub fn is_not_found(&self) -> bool {
        matches!(self.kind, ApiErrorKind::NotFound { .. })
    }

    /// How long the service asks to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        match &self.kind {
            ApiErrorKind::RateLimited { retry_after } | ApiErrorKind::Server { retry_after, .. } => {
                *retry_after
            }
            _ => None,
        }
    }

    /// The service's explanation, if it gave one.
    pub fn detail(&self) -> &str {
        use ApiErrorKind::{
            Forbidden, MethodNotAllowed, NotFound, PaymentRequired, Refused, Server, Unauthorized,
        };
        match &self.kind {
            Unauthorized { detail }
            | PaymentRequired { detail }
            | Forbidden { detail }
            | NotFound { detail }
            | MethodNotAllowed { detail }
            | Server { detail, .. }
            | Refused { detail, .. } => detail,
            _ => "",
        }
    }
}

impl From<aec_http::Failure> for ApiErrorKind {
    fn from(failure: aec_http::Failure) -> Self {
        use aec_http::Failure as F;
        match failure {
            F::Connection { reason } => Self::Connection { reason },
            F::Timeout { after } => Self::Timeout { after },
            F::TooLong { limit } => Self::TooLong { limit },
            F::Redirect { to, .. } => Self::Redirect { to },
            F::NoAddress { .. } => Self::Malformed { reason: failure.to_string() },
            F::Proxy { .. } => Self::Proxy { reason: failure.to_string() },
        }
    }
}

/// The explanation of a refusal: `detail`, `message` or `error` of a JSON answer, else the beginning of its text.
fn detail(body: &[u8]) -> String {
    let text = match aec_base::json::from_slice::<Value>(body) {
        Ok(Value::Object(object)) => {
            let said = ["detail", "message", "error"].iter().find_map(|key| object.get(*key));
            match said {
                Some(Value::String(text)) => text.clone(),
                Some(Value::Object(inner)) => match inner.get("message").and_then(Value::as_str) {
                    Some(text) => text.to_owned(),
                    None => Value::Object(inner.clone()).to_string(),
                },
                Some(other) => other.to_string(),
                None => Value::Object(object).to_string(),
            }
        }
        Ok(other) => other.to_string(),
        // A web page contains no text that fits into a line.
        Err(_) if body.starts_with(b"<") => String::new(),
        Err(_) => String::from_utf8_lossy(body).into_owned(),
    };
    excerpt(&text)
}

/// The list of a 422: `detail[]` with `loc` and `msg`.
fn problems(body: &[u8]) -> Vec<FieldProblem> {
    let Ok(value) = aec_base::json::from_slice::<Value>(body) else { return Vec::new() };
    let Some(list) = value.get("detail").and_then(Value::as_array) else { return Vec::new() };
    let problem = |entry: &Value| {
        let place = entry.get("loc").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let parts = place.iter().map(|part| match part {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        let field = parts.filter(|part| part != "body").collect::<Vec<_>>().join(".");
        let message = entry.get("msg").and_then(Value::as_str).unwrap_or("not accepted");
        FieldProblem { field: excerpt(&field), message: excerpt(message) }
    };
    list.iter().map(problem).collect()
}

struct Said<'a>(&'a str);

impl fmt::Display for Said<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(formatter, " (it says: {})", self.0) }
    }
}

struct Listed<'a>(&'a [FieldProblem]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            let separator = if index == 0 { " " } else { "; " };
            let field = if problem.field.is_empty() { "request" } else { &problem.field };
            write!(formatter, "{separator}{field}: {}", problem.message)?;
        }
        Ok(())
    }
}

struct Later(Option<Duration>);

impl fmt::Display for Later {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(wait) => write!(formatter, ", the service asks to wait {} seconds", wait.as_secs()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(status: u16, body: &str) -> String {
        ApiError::of_status("GET /x", status, None, body.as_bytes()).to_string()
    }

    #[test]
    fn each_status_says_what_to_do() {
        assert!(shown(401, r#"{"detail":"bad token"}"#).contains("prime login"));
        assert!(shown(401, r#"{"detail":"bad token"}"#).contains("bad token"));
        assert!(shown(402, "{}").contains("credit"));
        assert!(shown(404, r#"{"message":"no such run"}"#).contains("no such run"));
        assert!(shown(405, "").contains("does not know this call"));
        assert!(shown(503, "<html>oops</html>").ends_with("try again later"));
        assert!(shown(409, r#"{"error":{"message":"taken"}}"#).contains("taken"));
    }

    #[test]
    fn refusals_are_final() {
        let outlook = |status, after| ApiError::of_status("GET /x", status, after, b"").outlook();
        for status in [400, 401, 402, 403, 404, 405, 409, 422] {
            assert_eq!(outlook(status, None), Outlook::Final, "{status}");
        }
        let asked = Some(Duration::from_secs(7));
        assert_eq!(outlook(429, asked), Outlook::Passing(asked));
        assert_eq!(outlook(503, None), Outlook::Passing(None));
    }

    #[test]
    fn a_validation_answer_names_the_fields() {
        let body = r#"{"detail":[{"loc":["body","eval_config","num_examples"],"msg":"must be positive"},
                      {"loc":["body",0],"msg":"odd"},{"msg":5},7]}"#;
        let text = shown(422, body);
        assert!(
            text.contains("eval_config.num_examples: must be positive; 0: odd; request: not accepted"),
            "{text}"
        );
        assert!(shown(422, r#"{"detail":"plain"}"#).contains("plain"));
    }

    #[test]
    fn long_and_binary_bodies_become_one_short_line() {
        let text = shown(400, &"a\n\u{7}b ".repeat(2000));
        assert!(text.chars().count() < 700 && !text.chars().any(char::is_control), "{text}");
        let error = ApiError::of_status("GET /x", 400, None, &[0xff, 0xfe, 0x00, b'x']);
        assert!(!error.to_string().chars().any(char::is_control));
    }
}
