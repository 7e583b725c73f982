//! Signatures of requests to Amazon Bedrock (AWS Signature Version 4).

use std::fmt;
use std::time::SystemTime;

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{
    PercentEncodingMode, SignableBody, SignableRequest, SigningSettings, sign as sign_request,
};
use aws_sigv4::sign::v4::SigningParams;

const SERVICE: &str = "bedrock";

/// A key pair, and the session token of temporary keys.
#[derive(Clone, PartialEq, Eq)]
pub struct AwsCredentials {
    pub access_key_id: String,
    pub secret_access_key: String,
    /// For temporary keys; an empty one counts as absent.
    pub session_token: Option<String>,
}

impl fmt::Debug for AwsCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AwsCredentials").finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// Such as `POST`.
    pub method: &'a str,
    /// Complete, with its path escaped as sent.
    pub url: &'a str,
    /// Headers to sign besides the host, without those that a proxy may change (`user-agent`, `transfer-encoding`).
    pub headers: &'a [(&'a str, &'a str)],
    pub body: &'a [u8],
}

/// Why a request cannot be signed.
#[derive(Debug, thiserror::Error)]
#[error("the request to AWS cannot be signed: {0}")]
pub struct SignError(String);

/// The headers that sign a request, with names in lower case. Bedrock checks the path as sent, so it is escaped once
/// more for the signature.
pub fn sign(
    credentials: &AwsCredentials,
    region: &str,
    request: &Outgoing<'_>,
    time: SystemTime,
) -> Result<Vec<(String, String)>, SignError> {
    let identity = Credentials::new(
        &credentials.access_key_id,
        &credentials.secret_access_key,
        credentials.session_token.clone().filter(|token| !token.is_empty()),
        None,
        "aec-bench",
    )
    .into();
    let mut settings = SigningSettings::default();
    settings.percent_encoding_mode = PercentEncodingMode::Double;
    let parameters = SigningParams::builder()
        .identity(&identity)
        .region(region)
        .name(SERVICE)
        .time(time)
        .settings(settings)
        .build()
        .map_err(|error| SignError(error.to_string()))?
        .into();
    let headers = request.headers.iter().copied();
    let body = SignableBody::Bytes(request.body);
    let signable = SignableRequest::new(request.method, request.url, headers, body)
        .map_err(|error| SignError(explain(&error)))?;
    let (instructions, _) =
        sign_request(signable, &parameters).map_err(|error| SignError(explain(&error)))?.into_parts();
    Ok(instructions.headers().map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect())
}

/// An error with its cause, which its own text omits.
fn explain(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const BODY: &[u8] = "{\"max_tokens\":16,\"messages\":[{\"role\":\"user\",\"content\":\"é\"}]}".as_bytes();
    const TYPE: (&str, &str) = ("content-type", "application/json");
    const TOKEN: &str = "IQoJb3JpZ2luX2VjEXAMPLE//////////wEaCXVz+token==";

    struct Case {
        region: &'static str,
        url: &'static str,
        headers: &'static [(&'static str, &'static str)],
        body: &'static [u8],
        token: Option<&'static str>,
        signed: &'static str,
        signature: &'static str,
    }

    impl Default for Case {
        fn default() -> Self {
            Self {
                region: "us-east-1",
                url: "",
                headers: &[TYPE],
                body: BODY,
                token: None,
                signed: "content-type;host;x-amz-date",
                signature: "",
            }
        }
    }

    fn headers(case: &Case) -> Vec<(String, String)> {
        let credentials = AwsCredentials {
            access_key_id: "AKIDEXAMPLE".to_owned(),
            secret_access_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".to_owned(),
            session_token: case.token.map(str::to_owned),
        };
        let request = Outgoing { method: "POST", url: case.url, headers: case.headers, body: case.body };
        // 2026-08-22 10:11:12 UTC.
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_787_393_472);
        sign(&credentials, case.region, &request, time).unwrap()
    }

    /// Signatures computed by botocore 1.44 and by our own implementation in Python, which agreed.
    #[test]
    fn signatures_are_those_of_other_implementations() {
        let cases = [
            Case {
                url: "https://bedrock-runtime.us-east-1.amazonaws.com/model/amazon.nova-lite-v1/converse",
                signature: "da5d8121bcfe0ea8252f1bb8f5dc3c9e79a78814c63c16ac38f44023419a09cd",
                ..Case::default()
            },
            Case {
                url: "https://bedrock-runtime.us-east-1.amazonaws.com/model/anthropic.claude-3-5-sonnet-20241022-v2%3A0/invoke",
                signature: "4e4e5e682b67513e8005a21c92d135277bf05d94ec3cfd6bdbd3f33231c4e1c4",
                ..Case::default()
            },
            Case {
                url: "https://bedrock-runtime.us-east-1.amazonaws.com/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Ainference-profile%2Fus.anthropic.claude-sonnet-4-20250514-v1%3A0/invoke-with-response-stream",
                signature: "2759bbdbeae998a8ad1e61e04bcd567a5519c2323fc88e29f01f2d367d66eced",
                ..Case::default()
            },
            Case {
                region: "eu-central-1",
                url: "https://bedrock-runtime.eu-central-1.amazonaws.com/model/meta.llama3-1-8b-instruct-v1%3A0/converse-stream",
                token: Some(TOKEN),
                signed: "content-type;host;x-amz-date;x-amz-security-token",
                signature: "48c73426feced931a1c9958f9a4bdea212d49bc9effd0d84d8b67fae1dbdb66a",
                ..Case::default()
            },
            Case {
                url: "https://bedrock-runtime.us-east-1.amazonaws.com/model/m/converse?b=2&a=1&a=0&space=x%20y",
                body: b"",
                signature: "882d52e6cc0da60a4c18645f1093926116aff883a29bf3b6702e5538803c467b",
                ..Case::default()
            },
            Case {
                region: "us-west-2",
                url: "http://127.0.0.1:8443/model/m%3A0/invoke",
                headers: &[TYPE, ("x-amzn-bedrock-accept", "application/json"), ("accept", "*/*")],
                signed: "accept;content-type;host;x-amz-date;x-amzn-bedrock-accept",
                signature: "a6a031a88799f23c3a9e4715ca83da29d36b3e64936345d6dcd2b02920723ef3",
                ..Case::default()
            },
        ];
        for case in cases {
            let mut expected = vec![("x-amz-date".to_owned(), "20260822T101112Z".to_owned())];
            expected.push((
                "authorization".to_owned(),
                format!(
                    "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260822/{}/bedrock/aws4_request, SignedHeaders={}, Signature={}",
                    case.region, case.signed, case.signature
                ),
            ));
            expected.extend(case.token.map(|token| ("x-amz-security-token".to_owned(), token.to_owned())));
            let mut found = headers(&case);
            found.sort();
            expected.sort();
            assert_eq!(found, expected, "{}", case.url);
        }
    }

    #[test]
    fn an_empty_token_is_none_and_what_proxies_change_is_not_signed() {
        let case = Case {
            url: "https://bedrock-runtime.us-east-1.amazonaws.com/model/amazon.nova-lite-v1/converse",
            token: Some(""),
            headers: &[TYPE, ("user-agent", "aec-bench"), ("transfer-encoding", "chunked")],
            ..Case::default()
        };
        let plain = Case { token: None, headers: &[TYPE], ..case };
        assert_eq!(headers(&case), headers(&plain));
    }

    #[test]
    fn a_request_that_is_none_is_an_error() {
        let credentials = AwsCredentials {
            access_key_id: "id".to_owned(),
            secret_access_key: "hush".to_owned(),
            session_token: Some("hush".to_owned()),
        };
        let request = Outgoing { method: "POST", url: "not a url", headers: &[], body: b"" };
        let error = sign(&credentials, "us-east-1", &request, SystemTime::UNIX_EPOCH).unwrap_err();
        assert!(error.to_string().starts_with("the request to AWS cannot be signed: "), "{error}");
        assert_eq!(format!("{credentials:?}"), "AwsCredentials { .. }");
    }
}
