//! Errors inside an answer whose status was a success, as in the middle of a stream.

use std::time::SystemTime;

use http::{HeaderMap, StatusCode};

use crate::dialect::refusal::refused;
use crate::failure::{Failure, excerpt};

/// The failure for an error type of Anthropic.
pub fn by_anthropic(kind: &str, message: &str) -> Failure {
    let status = match kind {
        "invalid_request_error" => StatusCode::BAD_REQUEST,
        "authentication_error" => StatusCode::UNAUTHORIZED,
        "billing_error" => StatusCode::PAYMENT_REQUIRED,
        "permission_error" => StatusCode::FORBIDDEN,
        "not_found_error" => StatusCode::NOT_FOUND,
        "request_too_large" => StatusCode::PAYLOAD_TOO_LARGE,
        "rate_limit_error" => StatusCode::TOO_MANY_REQUESTS,
        "timeout_error" => StatusCode::GATEWAY_TIMEOUT,
        // `api_error`, `overloaded_error` and unknown types.
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    as_if(status, kind, message)
}

/// The failure for a Bedrock exception.
pub fn by_bedrock(exception: &str, message: &str) -> Failure {
    // Names come in both spellings: `throttlingException` in streams, `ThrottlingException` elsewhere.
    let status = match exception.to_ascii_lowercase().trim_end_matches("exception") {
        "validation" => StatusCode::BAD_REQUEST,
        "unrecognizedclient" | "expiredtoken" | "invalidsignature" => StatusCode::UNAUTHORIZED,
        "accessdenied" => StatusCode::FORBIDDEN,
        "resourcenotfound" => StatusCode::NOT_FOUND,
        "throttling" | "modelnotready" | "servicequotaexceeded" => StatusCode::TOO_MANY_REQUESTS,
        // `internalServer`, `serviceUnavailable`, `modelStreamError`, `modelTimeout`, `modelError` and unknown ones.
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    as_if(status, exception, message)
}

/// Classifies the failure as if it had come with this status.
fn as_if(status: StatusCode, kind: &str, message: &str) -> Failure {
    let failure = refused(status, &HeaderMap::new(), message.as_bytes(), SystemTime::UNIX_EPOCH);
    Failure { message: format!("the provider reports {kind}: {}", excerpt(message)), status: None, ..failure }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::FailureKind as K;

    #[test]
    fn each_error_type_has_its_kind() {
        let cases = [
            ("overloaded_error", "Overloaded", K::Server, true),
            ("api_error", "Internal server error", K::Server, true),
            ("timeout_error", "Request timed out", K::Server, true),
            ("rate_limit_error", "Number of request tokens has exceeded your limit", K::Rate, true),
            ("authentication_error", "invalid x-api-key", K::Auth, false),
            ("permission_error", "not allowed", K::Auth, false),
            ("billing_error", "pay", K::Auth, false),
            ("not_found_error", "model: claude-9", K::Request, false),
            ("request_too_large", "Request exceeds the maximum size", K::Overlong, false),
            ("invalid_request_error", "max_tokens: must be positive", K::Request, false),
            (
                "invalid_request_error",
                "prompt is too long: 210000 tokens > 200000 maximum",
                K::Overlong,
                false,
            ),
            ("invalid_request_error", "Your credit balance is too low", K::Auth, false),
            (
                "invalid_request_error",
                "Output blocked by content filtering policy (content_policy)",
                K::ContentFilter,
                false,
            ),
            ("unheard_of", "?", K::Server, true),
        ];
        for (kind, message, expected, retryable) in cases {
            let failure = by_anthropic(kind, message);
            assert_eq!(
                (failure.kind, failure.retryable, failure.status),
                (expected, retryable, None),
                "{kind}"
            );
            assert_eq!(failure.message, format!("the provider reports {kind}: {message}"));
        }
    }
}
