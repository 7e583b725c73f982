//! Classifies errors from providers, and answers that are unusable: the kind of failure, and whether it is temporary.

use std::time::SystemTime;

use http::{HeaderMap, StatusCode};
use serde_json::Value;

use crate::failure::{Failure, FailureKind, excerpt};
use crate::message::{Reply, Stop};

/// Phrases that mean that a request exceeds the context, in lower case.
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

/// Phrases that mean that the provider's filter intervened.
const FILTERED: [&str; 7] = [
    "content_filter",
    "content filtering policy",
    "content management policy",
    "responsibleaipolicyviolation",
    "content_policy",
    "violating our usage policy",
    "guardrail",
];

/// Phrases that mean that an account is empty. Some providers report it as a rate limit; waiting does not help.
const EXHAUSTED: [&str; 3] = ["insufficient_quota", "credit balance is too low", "billing_hard_limit"];

/// The failure of an answer whose status is not a success.
pub fn refused(status: StatusCode, headers: &HeaderMap, body: &[u8], now: SystemTime) -> Failure {
    let text = String::from_utf8_lossy(body);
    let said = error_text(&text);
    let message = format!("HTTP {}: {}", status.as_u16(), excerpt(&said));
    let (kind, mut retryable) = classify(status.as_u16(), &said.to_lowercase());
    match headers.get("x-should-retry").and_then(|value| value.to_str().ok()) {
        Some("false") => retryable = false,
        Some("true") if matches!(kind, FailureKind::Rate | FailureKind::Server) => retryable = true,
        _ => {}
    }
    Failure { retryable, ..Failure::lasting(kind, message) }
        .status(status.as_u16())
        .retry_after(aec_http::pause::retry_after(headers, now))
}

/// The failure of an error object that came with a success status: inside a body, or within a stream. The object may
/// name the status that it would have had; otherwise its words decide, and without clear words it is a temporary fault
/// of the provider.
pub fn refused_within(error: &Value) -> Failure {
    let said = error_words(error).unwrap_or_else(|| error.to_string());
    let lower = said.to_lowercase();
    let named = ["code", "status", "status_code"].into_iter().find_map(|key| {
        let value = error.get(key)?;
        let number = value.as_u64().or_else(|| value.as_str()?.parse().ok())?;
        u16::try_from(number).ok().filter(|status| (400..600).contains(status))
    });
    let status = named.unwrap_or_else(|| {
        let has = |phrases: &[&str]| contains_any(&lower, phrases);
        if has(&["rate_limit", "rate limit", "too many requests", "too_many_requests", "throttl"]) {
            429
        } else if has(&[
            "authentication",
            "api_key",
            "api key",
            "permission",
            "unauthorized",
            "access_denied",
        ]) {
            401
        } else if has(&["invalid_request", "bad_request", "badrequest", "not_found"])
            || has(&OVERLONG)
            || has(&FILTERED)
            || has(&EXHAUSTED)
        {
            400
        } else {
            500
        }
    });
    let (kind, retryable) = classify(status, &lower);
    let message = format!("an error in place of an answer: {}", excerpt(&said));
    Failure { retryable, ..Failure::lasting(kind, message) }
}

fn contains_any(text: &str, phrases: &[&str]) -> bool {
    phrases.iter().any(|phrase| text.contains(phrase))
}

/// The meaning of a status and the provider's words in lower case: the kind, and whether a retry can help.
fn classify(status: u16, lower: &str) -> (FailureKind, bool) {
    let has = |phrases: &[&str]| contains_any(lower, phrases);
    match status {
        400 | 403 | 422 if has(&FILTERED) => (FailureKind::ContentFilter, false),
        400 | 413 | 422 if has(&OVERLONG) || status == 413 => (FailureKind::Overlong, false),
        // Bedrock reports it with 400 or 429.
        400 if has(&["throttlingexception"]) => (FailureKind::Rate, true),
        400 | 429 if has(&EXHAUSTED) => (FailureKind::Auth, false),
        401..=403 => (FailureKind::Auth, false),
        // One request exceeds the limit of a whole minute: waiting does not make it smaller.
        429 if has(&["request too large", "must be reduced"]) => (FailureKind::Overlong, false),
        429 => (FailureKind::Rate, true),
        408 | 409 | 424 | 425 => (FailureKind::Server, true),
        500..=599 => (FailureKind::Server, status != 501),
        300..=399 => (FailureKind::Protocol, false),
        _ => (FailureKind::Request, false),
    }
}

/// The provider's message: the message and code inside an error object, or the text itself.
fn error_text(body: &str) -> String {
    let Ok(value) = aec_base::json::from_str::<Value>(body) else { return body.to_owned() };
    error_words(value.get("error").unwrap_or(&value)).unwrap_or_else(|| body.to_owned())
}

/// Message and codes of an error object, if it has any.
fn error_words(error: &Value) -> Option<String> {
    if let Some(text) = error.as_str() {
        return Some(text.to_owned());
    }
    let field = |name: &str| error.get(name).and_then(Value::as_str);
    let mut words: Vec<&str> = Vec::new();
    words.extend(field("message").or_else(|| field("Message")));
    words.extend(["code", "type", "__type"].into_iter().filter_map(field));
    if words.is_empty() {
        return None;
    }
    if let Some(inner) = error.pointer("/innererror/code").and_then(Value::as_str) {
        words.push(inner);
    }
    words.dedup();
    let (message, codes) = words.split_at(1);
    Some(if codes.is_empty() {
        message[0].to_owned()
    } else {
        format!("{} ({})", message[0], codes.join(", "))
    })
}

/// The fault of a successfully decoded answer, if it has one.
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
    fn errors_inside_a_success_have_their_kind() {
        use FailureKind as K;
        let cases = [
            (r#"{"message":"Provider returned error","code":502,"metadata":{}}"#, K::Server, true),
            (r#"{"message":"slow down","code":"429"}"#, K::Rate, true),
            (r#"{"message":"Key limit exceeded","code":403}"#, K::Auth, false),
            (r#"{"message":"This model's maximum context length is 4096","code":400}"#, K::Overlong, false),
            (r#"{"message":"prompt is too long","type":"invalid_request_error"}"#, K::Overlong, false),
            (r#"{"message":"The server had an error","type":"server_error","code":null}"#, K::Server, true),
            (
                r#"{"message":"Rate limit reached","type":"tokens","code":"rate_limit_exceeded"}"#,
                K::Rate,
                true,
            ),
            (r#"{"message":"no money","code":"insufficient_quota"}"#, K::Auth, false),
            (r#"{"type":"authentication_error","message":"bad key"}"#, K::Auth, false),
            (r#"{"type":"overloaded_error","message":"Overloaded"}"#, K::Server, true),
            (r#"{"type":"invalid_request_error","message":"no such parameter"}"#, K::Request, false),
            (r#"{"message":"x","code":"content_filter"}"#, K::ContentFilter, false),
            (r#"{"message":"x","code":99999999999}"#, K::Server, true),
            (r#""it broke""#, K::Server, true),
            (r"17", K::Server, true),
        ];
        for (error, kind, retryable) in cases {
            let failure = refused_within(&serde_json::from_str(error).unwrap());
            assert_eq!((failure.kind, failure.retryable), (kind, retryable), "{error}: {failure}");
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
