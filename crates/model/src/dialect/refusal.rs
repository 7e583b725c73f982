//! Errors as providers send them, and answers that are none: which kind of failure is it, and can it pass?

use std::time::{Duration, SystemTime};

use http::{HeaderMap, StatusCode};
use serde_json::Value;

use crate::failure::{Failure, FailureKind, excerpt};
use crate::message::{Reply, Stop};

/// Phrases by which providers say that a request exceeds the context, in lower case.
const OVERLONG: [&str; 12] = [
    "context_length_exceeded",
    "maximum context length",
    "context length",
    "maximum model length",
    "prompt_too_long",
    "prompt is too long",
    "input is too long",
    "too many input tokens",
    "exceeds the model's context",
    "exceed context limit",
    "exceeds the configured limit",
    "exceeded model token limit",
];

/// Phrases by which providers say that their filter stepped in.
const FILTERED: [&str; 5] = [
    "content_filter",
    "content management policy",
    "responsibleaipolicyviolation",
    "content_policy",
    "guardrail",
];

/// The failure behind an answer whose status is not a success.
pub fn refused(status: StatusCode, headers: &HeaderMap, body: &[u8], now: SystemTime) -> Failure {
    let text = String::from_utf8_lossy(body);
    let said = error_text(&text);
    let lower = said.to_lowercase();
    let has = |phrases: &[&str]| phrases.iter().any(|phrase| lower.contains(phrase));
    let message = format!("HTTP {}: {}", status.as_u16(), excerpt(&said));
    // An exhausted account is reported as a rate limit by some; waiting does not fill it.
    let exhausted = has(&["insufficient_quota", "credit balance is too low", "billing_hard_limit"]);
    let (kind, mut retryable) = match status.as_u16() {
        400 | 403 | 422 if has(&FILTERED) => (FailureKind::ContentFilter, false),
        400 | 413 | 422 if has(&OVERLONG) || status == StatusCode::PAYLOAD_TOO_LARGE => {
            (FailureKind::Overlong, false)
        }
        // Bedrock says so with 400 or 429.
        400 if has(&["throttlingexception"]) => (FailureKind::Rate, true),
        400 | 429 if exhausted => (FailureKind::Auth, false),
        401..=403 => (FailureKind::Auth, false),
        429 => (FailureKind::Rate, true),
        408 | 409 | 425 => (FailureKind::Server, true),
        500..=599 => (FailureKind::Server, status != StatusCode::NOT_IMPLEMENTED),
        300..=399 => (FailureKind::Protocol, false),
        _ => (FailureKind::Request, false),
    };
    match headers.get("x-should-retry").and_then(|value| value.to_str().ok()) {
        Some("false") => retryable = false,
        Some("true") if matches!(kind, FailureKind::Rate | FailureKind::Server) => retryable = true,
        _ => {}
    }
    Failure { kind, message, status: None, retryable, retry_after_ms: None }
        .status(status.as_u16())
        .retry_after(retry_after(headers, now))
}

/// The provider's own words: the message and code inside an error object, or the text as it is.
fn error_text(body: &str) -> String {
    let Ok(value) = serde_json::from_str::<Value>(body) else { return body.to_owned() };
    let error = value.get("error").unwrap_or(&value);
    if let Some(text) = error.as_str() {
        return text.to_owned();
    }
    let field = |name: &str| error.get(name).and_then(Value::as_str);
    let mut words: Vec<&str> = Vec::new();
    words.extend(field("message").or_else(|| field("Message")));
    words.extend(["code", "type", "__type"].into_iter().filter_map(field));
    if words.is_empty() {
        return body.to_owned();
    }
    if let Some(inner) = error.pointer("/innererror/code").and_then(Value::as_str) {
        words.push(inner);
    }
    words.dedup();
    let (message, codes) = words.split_at(1);
    if codes.is_empty() { message[0].to_owned() } else { format!("{} ({})", message[0], codes.join(", ")) }
}

/// How long the provider asks to wait: milliseconds, seconds or a date.
pub fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let number = |text: &str, scale: f64| {
        let value: f64 = text.parse().ok()?;
        (value.is_finite() && value >= 0.0).then(|| Duration::from_secs_f64((value * scale).min(1e6)))
    };
    if let Some(wait) = text("retry-after-ms").and_then(|value| number(value, 1e-3)) {
        return Some(wait);
    }
    let value = text("retry-after")?;
    number(value, 1.0).or_else(|| {
        let date = httpdate::parse_http_date(value).ok()?;
        Some(date.duration_since(now).unwrap_or_default())
    })
}

/// What is wrong with an answer that was read without trouble, if anything.
pub fn inspect(reply: &Reply) -> Option<Failure> {
    if reply.says_something() {
        return None;
    }
    Some(match reply.stop {
        Stop::ContentFilter => {
            Failure::lasting(FailureKind::ContentFilter, "the provider's filter withheld the answer")
        }
        Stop::Length => Failure::lasting(
            FailureKind::Truncated,
            "the limit of output tokens was reached before the model said anything",
        ),
        _ => Failure::passing(FailureKind::Empty, "the model answered with nothing"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(status: u16, body: &str) -> Failure {
        let status = StatusCode::from_u16(status).unwrap();
        refused(status, &HeaderMap::new(), body.as_bytes(), SystemTime::UNIX_EPOCH)
    }

    #[test]
    fn each_refusal_has_its_kind() {
        use FailureKind as K;
        let cases = [
            (401, r#"{"error":{"message":"Incorrect API key","code":"invalid_api_key"}}"#, K::Auth, false),
            (403, r#"{"message":"User is not authorized"}"#, K::Auth, false),
            (402, "pay", K::Auth, false),
            (
                400,
                r#"{"error":{"message":"This model's maximum context length is 8192 tokens","code":"context_length_exceeded"}}"#,
                K::Overlong,
                false,
            ),
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
                K::Overlong,
                false,
            ),
            (
                413,
                r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
                K::Overlong,
                false,
            ),
            (400, r#"{"message":"Input is too long for requested model."}"#, K::Overlong, false),
            (
                400,
                r#"{"error":{"message":"The response was filtered","code":"content_filter","innererror":{"code":"ResponsibleAIPolicyViolation"}}}"#,
                K::ContentFilter,
                false,
            ),
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low"}}"#,
                K::Auth,
                false,
            ),
            (
                429,
                r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota"}}"#,
                K::Auth,
                false,
            ),
            (429, r#"{"error":{"message":"Rate limit reached","type":"tokens"}}"#, K::Rate, true),
            (400, r#"{"__type":"ThrottlingException","message":"Too many requests"}"#, K::Rate, true),
            (
                404,
                r#"{"error":{"message":"The model `x` does not exist","code":"model_not_found"}}"#,
                K::Request,
                false,
            ),
            (422, r#"{"detail":"bad"}"#, K::Request, false),
            (500, "oops", K::Server, true),
            (501, "never", K::Server, false),
            (503, "", K::Server, true),
            (
                529,
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                K::Server,
                true,
            ),
            (408, "", K::Server, true),
            (302, "", K::Protocol, false),
        ];
        for (status, body, kind, retryable) in cases {
            let failure = failure(status, body);
            assert_eq!((failure.kind, failure.retryable), (kind, retryable), "{status} {body}: {failure}");
        }
    }

    #[test]
    fn waits_in_every_spelling() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let wait = |name: &'static str, value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            retry_after(&headers, now)
        };
        assert_eq!(wait("retry-after-ms", "250"), Some(Duration::from_millis(250)));
        assert_eq!(wait("retry-after", "2"), Some(Duration::from_secs(2)));
        assert_eq!(wait("retry-after", "0.5"), Some(Duration::from_millis(500)));
        assert_eq!(wait("retry-after", "Sun, 06 Nov 1994 08:49:47 GMT"), Some(Duration::from_secs(10)));
        assert_eq!(wait("retry-after", "Sun, 06 Nov 1994 08:49:27 GMT"), Some(Duration::ZERO));
        for nonsense in ["soon", "-1", "NaN", "inf", ""] {
            assert_eq!(wait("retry-after", nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn the_provider_may_forbid_and_allow_retries() {
        let with = |status: u16, value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("x-should-retry", value.parse().unwrap());
            let status = StatusCode::from_u16(status).unwrap();
            refused(status, &headers, b"", SystemTime::UNIX_EPOCH).retryable
        };
        assert!(!with(500, "false"));
        assert!(!with(429, "false"));
        assert!(with(501, "true"));
        assert!(!with(401, "true"), "a wrong key stays wrong");
    }
}
