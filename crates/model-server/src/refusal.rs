//! Refusals in the words, bodies and headers of each provider.

use std::time::{Duration, SystemTime};

use aec_base::timestamp::Timestamp;
use aec_model::script::Ending;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::{Value, json};

use crate::ask::Invalid;
use crate::limits::Level;
use crate::openai::filter_results;
use crate::route::Form;

/// Why a request gets no answer.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// Too many requests; how long to wait.
    Rate(Wait),
    Server,
    Unavailable,
    Overloaded,
    Filter,
    /// The prompt's tokens, which are too many.
    Overlong(u64),
    WrongKey,
    NoKey,
    /// A wrong signature, and why.
    BadSignature(&'static str),
    Invalid(Invalid),
    TooLarge,
    /// Azure rejects a path without a version.
    NoVersion,
}

/// How the answer states the wait.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wait {
    For(Duration),
    Until(SystemTime),
}

/// A status, headers and a body.
pub(crate) struct Told {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

/// Renders a refusal in a provider's form. `id` consists of letters and digits.
pub(crate) fn tell(form: Form, refusal: &Refusal, model: &str, id: &str) -> Told {
    let (status, value, kind) = match form {
        Form::OpenAi | Form::Azure => {
            let (status, value) = openai(form, refusal, model);
            (status, value, None)
        }
        Form::Anthropic => {
            let (status, value) = anthropic(refusal, id);
            (status, value, None)
        }
        Form::Invoke | Form::Converse => {
            let (status, kind, message) = bedrock(refusal);
            (status, json!({"message": message}), Some(kind))
        }
    };
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(kind) = kind {
        let origin = "http://internal.amazon.com/coral/com.amazon.bedrock/";
        put(&mut headers, "x-amzn-errortype", &format!("{kind}:{origin}"));
    }
    if form == Form::Anthropic {
        let again = status == 429 || status >= 500;
        put(&mut headers, "x-should-retry", if again { "true" } else { "false" });
    }
    if let Refusal::Rate(wait) = refusal {
        tell_wait(form, *wait, &mut headers);
    }
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    Told { status, headers, body: value.to_string().into_bytes() }
}

/// Adds headers with the remaining requests of a limit, as providers do with every answer.
pub(crate) fn tell_level(form: Form, level: &Level, headers: &mut HeaderMap) {
    let (limit, remaining) = (level.limit.to_string(), level.remaining.to_string());
    match form {
        Form::OpenAi | Form::Azure => {
            put(headers, "x-ratelimit-limit-requests", &limit);
            put(headers, "x-ratelimit-remaining-requests", &remaining);
            put(headers, "x-ratelimit-reset-requests", &short_time(level.reset));
        }
        Form::Anthropic => {
            put(headers, "anthropic-ratelimit-requests-limit", &limit);
            put(headers, "anthropic-ratelimit-requests-remaining", &remaining);
            put(headers, "anthropic-ratelimit-requests-reset", &moment(level.reset));
        }
        Form::Invoke | Form::Converse => {}
    }
}

/// Adds a header of ASCII text.
pub(crate) fn put(headers: &mut HeaderMap, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(HeaderName::from_static(name), value);
    }
}

/// Bedrock never states a wait; it only gets a date, which a proxy in front of it might send.
fn tell_wait(form: Form, wait: Wait, headers: &mut HeaderMap) {
    let span = match wait {
        Wait::Until(date) => {
            if let Ok(value) = HeaderValue::from_str(&httpdate::fmt_http_date(date)) {
                headers.insert(RETRY_AFTER, value);
            }
            return;
        }
        Wait::For(span) => span,
    };
    if matches!(form, Form::Invoke | Form::Converse) {
        return;
    }
    // This header holds whole seconds; a finer wait needs the newer header.
    let seconds = span.as_secs() + u64::from(span.subsec_nanos() > 0);
    headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    if span.subsec_nanos() > 0 {
        put(headers, "retry-after-ms", &span.as_millis().to_string());
    }
    let level = Level { limit: 60, remaining: 0, wait: span, reset: span };
    let known = ["x-ratelimit-limit-requests", "anthropic-ratelimit-requests-limit"];
    if !known.iter().any(|name| headers.contains_key(*name)) {
        tell_level(form, &level, headers);
    }
}

/// A duration as OpenAI writes it: `1s`, `20ms`, `6m0s`.
fn short_time(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0 => format!("{}ms", span.as_millis()),
        1..60 => format!("{}s", span.as_secs_f64()),
        _ => format!("{}m{}s", seconds / 60, seconds % 60),
    }
}

fn moment(span: Duration) -> String {
    let at = SystemTime::now() + span;
    let seconds = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    Timestamp::from_seconds(seconds).as_str().to_owned()
}

fn openai(form: Form, refusal: &Refusal, model: &str) -> (u16, Value) {
    let error = |message: &str, kind: &str, code: Option<&str>| json!({"error": {"message": message, "type": kind, "param": null, "code": code}});
    let azure = |code: &str, message: &str| json!({"error": {"code": code, "message": message}});
    let is_azure = form == Form::Azure;
    match refusal {
        Refusal::Rate(_) if is_azure => (
            429,
            azure(
                "429",
                "Requests to the ChatCompletions_Create Operation have exceeded the call rate limit of your current pricing tier. Please retry later.",
            ),
        ),
        Refusal::Rate(_) => {
            let message =
                format!("Rate limit reached for {model} on requests per min (RPM). Please try again later.");
            (429, error(&message, "requests", Some("rate_limit_exceeded")))
        }
        Refusal::Server => (
            500,
            error(
                "The server had an error while processing your request. Sorry about that!",
                "server_error",
                None,
            ),
        ),
        Refusal::Unavailable => (
            503,
            error(
                "The service is temporarily unavailable.",
                "service_unavailable",
                Some("service_unavailable"),
            ),
        ),
        Refusal::Overloaded => (
            503,
            error(
                "The server is currently overloaded. Please try again later.",
                "server_error",
                Some("server_error"),
            ),
        ),
        Refusal::Filter if is_azure => {
            let message = "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please modify your prompt and retry.";
            let inner = json!({"code": "ResponsibleAIPolicyViolation", "content_filter_result": filter_results(Ending::ContentFilter)});
            (
                400,
                json!({"error": {"message": message, "type": null, "param": "prompt", "code": "content_filter", "status": 400, "innererror": inner}}),
            )
        }
        Refusal::Filter => (
            400,
            error(
                "Invalid prompt: your prompt was flagged as potentially violating our usage policy. Please try again with a different prompt.",
                "invalid_request_error",
                Some("invalid_prompt"),
            ),
        ),
        Refusal::Overlong(tokens) => {
            let message = format!(
                "This model's maximum context length is {} tokens. However, your messages resulted in {tokens} tokens. Please reduce the length of the messages.",
                context(*tokens)
            );
            let mut value = error(&message, "invalid_request_error", Some("context_length_exceeded"));
            value["error"]["param"] = json!("messages");
            (400, value)
        }
        Refusal::WrongKey | Refusal::NoKey | Refusal::BadSignature(_) if is_azure => (
            401,
            azure(
                "401",
                "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key for an active subscription and use a correct regional API endpoint for your resource.",
            ),
        ),
        Refusal::WrongKey | Refusal::BadSignature(_) => {
            (401, error("Incorrect API key provided.", "invalid_request_error", Some("invalid_api_key")))
        }
        Refusal::NoKey => (
            401,
            error(
                "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth.",
                "invalid_request_error",
                None,
            ),
        ),
        Refusal::Invalid(invalid) => {
            let mut value = error(&invalid.message, "invalid_request_error", invalid.code);
            value["error"]["param"] = json!(invalid.param);
            (400, value)
        }
        Refusal::TooLarge => (413, error("Request body is too large.", "invalid_request_error", None)),
        Refusal::NoVersion => (404, azure("404", "Resource not found")),
    }
}

fn anthropic(refusal: &Refusal, id: &str) -> (u16, Value) {
    let (status, kind, message) = match refusal {
        Refusal::Rate(_) => {
            (429, "rate_limit_error", "This request would exceed your organization's rate limit.".to_owned())
        }
        Refusal::Server => (500, "api_error", "Internal server error".to_owned()),
        Refusal::Unavailable => (503, "api_error", "Service temporarily unavailable".to_owned()),
        Refusal::Overloaded => (529, "overloaded_error", "Overloaded".to_owned()),
        Refusal::Filter => {
            (400, "invalid_request_error", "Output blocked by content filtering policy".to_owned())
        }
        Refusal::Overlong(tokens) => {
            let most = context(*tokens);
            (400, "invalid_request_error", format!("prompt is too long: {tokens} tokens > {most} maximum"))
        }
        Refusal::WrongKey | Refusal::BadSignature(_) => {
            (401, "authentication_error", "invalid x-api-key".to_owned())
        }
        Refusal::NoKey => (401, "authentication_error", "x-api-key header is required".to_owned()),
        Refusal::Invalid(invalid) => (400, "invalid_request_error", invalid.message.clone()),
        Refusal::TooLarge => {
            (413, "request_too_large", "Request exceeds the maximum allowed number of bytes.".to_owned())
        }
        Refusal::NoVersion => {
            (400, "invalid_request_error", "anthropic-version: header is required".to_owned())
        }
    };
    let error = json!({"type": kind, "message": message});
    (status, json!({"type": "error", "error": error, "request_id": format!("req_01{id}")}))
}

fn bedrock(refusal: &Refusal) -> (u16, &'static str, String) {
    let (status, kind, message) = match refusal {
        Refusal::Rate(_) => {
            (429, "ThrottlingException", "Too many requests, please wait before trying again.")
        }
        Refusal::Server => (
            500,
            "InternalServerException",
            "The system encountered an unexpected error during processing. Try your request again.",
        ),
        Refusal::Unavailable | Refusal::Overloaded => {
            (503, "ServiceUnavailableException", "Bedrock is unable to process your request.")
        }
        Refusal::Filter => (400, "ValidationException", "Output blocked by content filtering policy"),
        Refusal::Overlong(_) => (400, "ValidationException", "Input is too long for requested model."),
        Refusal::WrongKey => {
            (403, "UnrecognizedClientException", "The security token included in the request is invalid.")
        }
        Refusal::NoKey => (403, "MissingAuthenticationTokenException", "Missing Authentication Token"),
        Refusal::BadSignature(why) => (403, "InvalidSignatureException", *why),
        Refusal::Invalid(invalid) => return (400, "ValidationException", invalid.message.clone()),
        Refusal::TooLarge => (413, "RequestEntityTooLargeException", "The request body is too large."),
        Refusal::NoVersion => (400, "ValidationException", "anthropic_version: Field required"),
    };
    (status, kind, message.to_owned())
}

/// The size of a context that these tokens exceed.
fn context(tokens: u64) -> u64 {
    if tokens > 200_000 { 200_000 } else { tokens.saturating_sub(1).min(8_192) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(told: &Told, name: &str) -> Option<String> {
        told.headers.get(name).map(|value| value.to_str().unwrap().to_owned())
    }

    #[test]
    fn waits_in_every_spelling() {
        let told = |form, wait| tell(form, &Refusal::Rate(wait), "m", "x");
        let whole = told(Form::OpenAi, Wait::For(Duration::from_secs(2)));
        assert_eq!(header(&whole, "retry-after").as_deref(), Some("2"));
        assert_eq!(header(&whole, "retry-after-ms"), None);
        assert_eq!(header(&whole, "x-ratelimit-reset-requests").as_deref(), Some("2s"));
        let fine = told(Form::Anthropic, Wait::For(Duration::from_millis(20)));
        assert_eq!(header(&fine, "retry-after").as_deref(), Some("1"));
        assert_eq!(header(&fine, "retry-after-ms").as_deref(), Some("20"));
        assert_eq!(header(&fine, "anthropic-ratelimit-requests-remaining").as_deref(), Some("0"));
        let date = told(Form::Converse, Wait::Until(SystemTime::UNIX_EPOCH));
        assert_eq!(header(&date, "retry-after").as_deref(), Some("Thu, 01 Jan 1970 00:00:00 GMT"));
        let silent = told(Form::Converse, Wait::For(Duration::from_secs(2)));
        assert_eq!((silent.status.as_u16(), header(&silent, "retry-after")), (429, None));
    }

    #[test]
    fn durations_as_openai_writes_them() {
        let written = [20, 1_000, 1_500, 360_000].map(|millis| short_time(Duration::from_millis(millis)));
        assert_eq!(written, ["20ms", "1s", "1.5s", "6m0s"]);
    }

    #[test]
    fn a_context_is_always_smaller_than_what_does_not_fit() {
        for tokens in [1, 10, 8_193, 100_000, 200_001, u64::MAX] {
            assert!(context(tokens) < tokens);
        }
    }
}
