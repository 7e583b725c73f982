//! Checks that a request carries what its provider demands: keys, versions, signatures.

use std::time::{Duration, SystemTime};

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{
    PayloadChecksumKind, SignableBody, SignableRequest, SigningParams, SigningSettings, sign,
};
use aws_sigv4::sign::v4;
use aws_smithy_types::DateTime;
use aws_smithy_types::date_time::Format;
use http::HeaderMap;
use http::request::Parts;

use crate::options::{AwsKeys, Options};
use crate::refusal::Refusal;
use crate::route::Form;

/// How far the clock of a signature may be off.
const SKEW: Duration = Duration::from_mins(5);

pub(crate) fn check(form: Form, options: &Options, parts: &Parts, body: &[u8]) -> Result<(), Refusal> {
    let headers = &parts.headers;
    let bearer = text(headers, "authorization").and_then(|value| value.strip_prefix("Bearer "));
    match form {
        Form::OpenAi => match (&options.key, bearer.or_else(|| text(headers, "api-key"))) {
            (None, _) => Ok(()),
            (Some(_), None) => Err(Refusal::NoKey),
            (expected, Some(given)) => same(expected.as_deref(), given),
        },
        Form::Azure => {
            let query = parts.uri.query().unwrap_or_default();
            if !query
                .split('&')
                .any(|pair| pair.strip_prefix("api-version=").is_some_and(|it| !it.is_empty()))
            {
                return Err(Refusal::NoVersion);
            }
            let given = text(headers, "api-key").or(bearer).ok_or(Refusal::NoKey)?;
            same(options.key.as_deref(), given)
        }
        Form::Anthropic => {
            let given = text(headers, "x-api-key").or(bearer).ok_or(Refusal::NoKey)?;
            same(options.key.as_deref(), given)?;
            if headers.contains_key("anthropic-version") { Ok(()) } else { Err(Refusal::NoVersion) }
        }
        Form::Invoke | Form::Converse => match (bearer, text(headers, "authorization")) {
            (Some(given), _) => same(options.key.as_deref(), given),
            (None, Some(signature)) => check_signature(options.aws.as_ref(), signature, parts, body),
            (None, None) => Err(Refusal::NoKey),
        },
    }
}

fn same(expected: Option<&str>, given: &str) -> Result<(), Refusal> {
    match expected {
        Some(expected) if expected != given => Err(Refusal::WrongKey),
        _ if given.is_empty() => Err(Refusal::NoKey),
        _ => Ok(()),
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// The parts of `AWS4-HMAC-SHA256 Credential=…, SignedHeaders=…, Signature=…`.
struct Claim<'a> {
    access_key_id: &'a str,
    day: &'a str,
    region: &'a str,
    service: &'a str,
    signed: Vec<&'a str>,
    signature: &'a str,
}

fn claim(header: &str) -> Option<Claim<'_>> {
    let fields = header.strip_prefix("AWS4-HMAC-SHA256 ")?;
    let field =
        |name: &str| fields.split(',').find_map(|field| field.trim().strip_prefix(name)?.strip_prefix('='));
    let credential: Vec<&str> = field("Credential")?.split('/').collect();
    let [access_key_id, day, region, service, "aws4_request"] = credential.as_slice() else { return None };
    let signature = field("Signature")?;
    let is_hex = signature.len() == 64 && signature.bytes().all(|byte| byte.is_ascii_hexdigit());
    let signed: Vec<&str> = field("SignedHeaders")?.split(';').collect();
    (is_hex && signed.contains(&"host")).then_some(Claim {
        access_key_id,
        day,
        region,
        service,
        signed,
        signature,
    })
}

fn check_signature(keys: Option<&AwsKeys>, header: &str, parts: &Parts, body: &[u8]) -> Result<(), Refusal> {
    const SHAPE: Refusal = Refusal::BadSignature(
        "Authorization header requires 'Credential', 'SignedHeaders' and 'Signature' parameters.",
    );
    const WRONG: Refusal = Refusal::BadSignature(
        "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method.",
    );
    let claim = claim(header).ok_or(SHAPE)?;
    let date = text(&parts.headers, "x-amz-date").ok_or(SHAPE)?;
    let time = moment(date).ok_or(SHAPE)?;
    if !date.starts_with(claim.day) {
        return Err(Refusal::BadSignature(
            "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP",
        ));
    }
    let Some(keys) = keys else { return Ok(()) };
    let now = SystemTime::now();
    let off = now.duration_since(time).or_else(|_| time.duration_since(now)).unwrap_or_default();
    if off > SKEW {
        return Err(Refusal::BadSignature(
            "Signature expired: the clock of the request is more than five minutes off",
        ));
    }
    if claim.access_key_id != keys.access_key_id
        || text(&parts.headers, "x-amz-security-token") != keys.session_token.as_deref()
    {
        return Err(Refusal::WrongKey);
    }
    let expected = expected_signature(&claim, keys, time, parts, body).ok_or(WRONG)?;
    if expected == claim.signature { Ok(()) } else { Err(WRONG) }
}

/// The expected signature of this request, over the headers that the request lists as signed.
fn expected_signature(
    claim: &Claim<'_>,
    keys: &AwsKeys,
    time: SystemTime,
    parts: &Parts,
    body: &[u8],
) -> Option<String> {
    // The signer adds these itself.
    const OWN: [&str; 3] = ["x-amz-date", "x-amz-security-token", "x-amz-content-sha256"];
    let mut settings = SigningSettings::default();
    settings.excluded_headers = None;
    if claim.signed.contains(&"x-amz-content-sha256") {
        settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
    }
    let identity = Credentials::new(
        &keys.access_key_id,
        &keys.secret_access_key,
        keys.session_token.clone(),
        None,
        "test",
    )
    .into();
    let params: SigningParams<'_> = v4::SigningParams::builder()
        .identity(&identity)
        .region(claim.region)
        .name(claim.service)
        .time(time)
        .settings(settings)
        .build()
        .ok()?
        .into();
    let host = text(&parts.headers, "host")?;
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let names = claim.signed.iter().filter(|name| !OWN.contains(name));
    let headers: Option<Vec<(&str, &str)>> =
        names.map(|name| Some((*name, text(&parts.headers, name)?))).collect();
    let payload = match text(&parts.headers, "x-amz-content-sha256") {
        Some("UNSIGNED-PAYLOAD") => SignableBody::UnsignedPayload,
        _ => SignableBody::Bytes(body),
    };
    let request = SignableRequest::new(
        parts.method.as_str(),
        format!("http://{host}{path}"),
        headers?.into_iter(),
        payload,
    )
    .ok()?;
    Some(sign(request, &params).ok()?.into_parts().1)
}

/// `20260102T030405Z`.
fn moment(text: &str) -> Option<SystemTime> {
    if text.len() != 16 || !text.is_ascii() {
        return None;
    }
    let (day, time) = text.split_once('T')?;
    let extended = format!(
        "{}-{}-{}T{}:{}:{}",
        day.get(..4)?,
        day.get(4..6)?,
        day.get(6..8)?,
        time.get(..2)?,
        time.get(2..4)?,
        time.get(4..)?
    );
    DateTime::from_str(&extended, Format::DateTime).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_as_signatures_write_them() {
        assert_eq!(moment("19700101T000010Z"), Some(SystemTime::UNIX_EPOCH + Duration::from_secs(10)));
        for wrong in ["", "19700101000010Z0", "1970-01-01T00:00Z", "19701301T000010Z", "ääääääää"] {
            assert_eq!(moment(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn claims_have_three_parts() {
        let signature = "0".repeat(64);
        let good = format!(
            "AWS4-HMAC-SHA256 Credential=AKIA/20260101/us-east-1/bedrock/aws4_request, SignedHeaders=host;x-amz-date, Signature={signature}"
        );
        let found = claim(&good).unwrap();
        assert_eq!((found.access_key_id, found.region, found.service), ("AKIA", "us-east-1", "bedrock"));
        assert_eq!(found.signed, ["host", "x-amz-date"]);
        for (from, to) in
            [("AWS4", "AWS5"), ("/aws4_request", ""), ("host;", ""), ("=0", "=g"), (", Sig", "; Sig")]
        {
            assert!(claim(&good.replacen(from, to, 1)).is_none(), "{from}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_header_is_too_strange(text in "\\PC{0,60}") {
            drop(claim(&format!("AWS4-HMAC-SHA256 {text}")));
            let _ = moment(&text);
        }
    }
}
