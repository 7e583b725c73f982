//! Signatures of requests to Amazon Bedrock (AWS Signature Version 4).

use std::fmt;
use std::time::SystemTime;

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{
    PercentEncodingMode, SignableBody, SignableRequest, SigningSettings, sign as sign_request,
};
use aws_sigv4::sign::v4::SigningParams;

/// The service that signatures are for.
const SERVICE: &str = "bedrock";

/// A pair of keys, and the token that belongs to keys that expire.
#[derive(Clone, PartialEq, Eq)]
pub struct AwsCredentials {
    /// Names the key.
    pub access_key_id: String,
    /// The key.
    pub secret_access_key: String,
    /// Goes with temporary keys; an empty one counts as absent.
    pub session_token: Option<String>,
}

impl fmt::Debug for AwsCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AwsCredentials").finish_non_exhaustive()
    }
}

/// A request as it will be sent.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// Such as `POST`.
    pub method: &'a str,
    /// Complete, with its path escaped as it goes over the wire.
    pub url: &'a str,
    /// Headers to sign beside the host. What a proxy may change (`user-agent`, `transfer-encoding`) is left out.
    pub headers: &'a [(&'a str, &'a str)],
    /// The body.
    pub body: &'a [u8],
}

/// Why a request cannot be signed.
#[derive(Debug, thiserror::Error)]
#[error("the request to AWS cannot be signed: {0}")]
pub struct SignError(String);

/// The headers that make a request a signed one, names in lower case. Bedrock checks the path as it was sent, so it
/// is escaped once more for the signature.
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

/// An error with its cause, which its own text leaves out.
fn explain(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
