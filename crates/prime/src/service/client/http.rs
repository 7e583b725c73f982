//! One request and its answer over HTTP. Nothing here tries again.

use std::time::{Duration, SystemTime};

use bytes::{Bytes, BytesMut};
use reqwest::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION, RETRY_AFTER, USER_AGENT,
};
use reqwest::redirect::Policy;
use reqwest::{Method, Response, StatusCode};
use url::Url;

use super::{ApiError, ApiErrorKind, ClientOptions, PlainHttp, Query};
use crate::connections::{Clients, causes, excerpt, is_loopback};
use crate::service::settings::ApiKey;

/// How many redirects within the same host are followed.
const MOST_REDIRECTS: usize = 3;

/// Longest error that is read.
const LONGEST_ERROR: usize = 64 * 1024;

/// Connections to one service.
#[derive(Debug)]
pub(super) struct Http {
    clients: Clients,
    longest_answer: usize,
}

/// A request, ready to be sent any number of times.
#[derive(Debug)]
pub(super) struct Message<'a> {
    pub(super) method: &'static str,
    pub(super) url: Url,
    pub(super) body: Bytes,
    pub(super) content_type: &'static str,
    pub(super) team_id: Option<String>,
    key: Option<&'a ApiKey>,
    call: String,
}

impl<'a> Message<'a> {
    /// A request without a body. `shown` stands for the address in errors.
    pub(super) fn new(
        method: &'static str,
        url: Url,
        shown: impl AsRef<str>,
        key: Option<&'a ApiKey>,
    ) -> Self {
        Self {
            call: format!("{method} {}", shown.as_ref()),
            method,
            url,
            body: Bytes::new(),
            content_type: "application/json",
            team_id: None,
            key,
        }
    }

    pub(super) fn fail(&self, kind: ApiErrorKind) -> ApiError {
        ApiError::new(self.call.clone(), kind)
    }

    fn headers(&self) -> Result<HeaderMap, ApiError> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static(super::USER_AGENT));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        if let Some(key) = self.key {
            let mut value = HeaderValue::from_str(&format!("Bearer {}", key.reveal()))
                .map_err(|_| self.fail(ApiErrorKind::NoKey))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        if let Some(team) = &self.team_id {
            let bad = |_| ApiErrorKind::BadName { what: "team id".to_owned(), name: excerpt(team) };
            let value = HeaderValue::from_str(team).map_err(|error| self.fail(bad(error)))?;
            headers.insert("x-prime-team-id", value);
        }
        Ok(headers)
    }
}

impl Http {
    pub(super) fn new(options: &ClientOptions) -> Result<Self, ApiError> {
        let clients = Clients::new(options.connect_timeout, options.proxy.as_deref(), Policy::none);
        let unusable = |reason| ApiError::new("client", ApiErrorKind::Connection { reason });
        Ok(Self { clients: clients.map_err(unusable)?, longest_answer: options.longest_answer })
    }

    /// Sends a request and reads its answer; no content counts as an empty object.
    pub(super) async fn send(&self, message: &Message<'_>, timeout: Duration) -> Result<Bytes, ApiError> {
        match tokio::time::timeout(timeout, self.exchange(message)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(message.fail(ApiErrorKind::Timeout { after: timeout })),
        }
    }

    async fn exchange(&self, message: &Message<'_>) -> Result<Bytes, ApiError> {
        let mut url = message.url.clone();
        for _ in 0..=MOST_REDIRECTS {
            let response = self.request(message, url.clone()).await?;
            if !response.status().is_redirection() {
                return self.read(message, response).await;
            }
            url = next_address(message, &url, &response)?;
        }
        Err(message.fail(ApiErrorKind::Redirect { to: "itself again and again".to_owned() }))
    }

    async fn request(&self, message: &Message<'_>, url: Url) -> Result<Response, ApiError> {
        let client = self.clients.of(&url);
        let method = Method::from_bytes(message.method.as_bytes()).unwrap_or(Method::GET);
        let mut request = client.request(method, url).headers(message.headers()?);
        if !message.body.is_empty() {
            request = request.body(message.body.clone());
        }
        let broken =
            |error: reqwest::Error| message.fail(ApiErrorKind::Connection { reason: causes(&error) });
        request.send().await.map_err(broken)
    }

    async fn read(&self, message: &Message<'_>, response: Response) -> Result<Bytes, ApiError> {
        let status = response.status();
        let retry_after = retry_after(response.headers(), SystemTime::now());
        if !status.is_success() {
            let body = limited(message, response, LONGEST_ERROR).await.unwrap_or_default();
            return Err(ApiError::of_status(&message.call, status.as_u16(), retry_after, &body));
        }
        let body = limited(message, response, self.longest_answer).await?;
        // Storage answers uploads in its own words, and nobody reads them.
        if message.key.is_none() || body.iter().all(u8::is_ascii_whitespace) {
            return Ok(Bytes::from_static(b"{}"));
        }
        Ok(body)
    }
}

/// Where a redirect leads. The key stays with the host that it is for, and a request with content is not turned into
/// one without.
fn next_address(message: &Message<'_>, from: &Url, response: &Response) -> Result<Url, ApiError> {
    let status = response.status();
    let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
    let Some(to) = location.and_then(|location| from.join(location).ok()) else {
        let reason = format!("status {status} without a usable address");
        return Err(message.fail(ApiErrorKind::Malformed { reason }));
    };
    let keeps_method = matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
    if to.origin() != from.origin() || (message.method != "GET" && !keeps_method) {
        let to = to.origin().ascii_serialization();
        return Err(message.fail(ApiErrorKind::Redirect { to }));
    }
    Ok(to)
}

async fn limited(message: &Message<'_>, mut response: Response, limit: usize) -> Result<Bytes, ApiError> {
    let mut body = BytesMut::new();
    loop {
        match response.chunk().await {
            Ok(None) => return Ok(body.freeze()),
            Ok(Some(piece)) if body.len() + piece.len() <= limit => body.extend_from_slice(&piece),
            Ok(Some(_)) => return Err(message.fail(ApiErrorKind::TooLong { limit })),
            Err(error) => return Err(message.fail(ApiErrorKind::Connection { reason: causes(&error) })),
        }
    }
}

/// Seconds or a date.
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

/// An address with its parts checked.
pub(super) fn checked_address(text: &str, plain: PlainHttp) -> Result<Url, ApiError> {
    let shown = || text.split(['?', '#']).next().map(excerpt).unwrap_or_default();
    let bad = |reason| ApiError::new("settings", ApiErrorKind::BadAddress { address: shown(), reason });
    let url = Url::parse(text).map_err(|_| bad("it must look like https://host"))?;
    if url.host().is_none() {
        return Err(bad("it has no host"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(ApiError::new(
            "settings",
            ApiErrorKind::BadAddress {
                address: url.host_str().unwrap_or_default().to_owned(),
                reason: "it must not hold a user or password",
            },
        ));
    }
    match url.scheme() {
        "https" => Ok(url),
        "http" if plain == PlainHttp::Allowed || is_loopback(&url) => Ok(url),
        "http" => Err(bad("the API key is not sent without encryption; use https")),
        _ => Err(bad("it must begin with https://")),
    }
}

/// An address below another, with every part escaped.
pub(super) fn below(base: &Url, path: &[&str], query: &Query<'_>) -> Result<Url, ApiError> {
    let mut url = base.clone();
    {
        let unusable =
            ApiErrorKind::BadAddress { address: excerpt(base.as_str()), reason: "it cannot have a path" };
        let mut segments = url.path_segments_mut().map_err(|()| ApiError::new("settings", unusable))?;
        segments.pop_if_empty().extend(path);
    }
    url.set_query(None);
    if !query.is_empty() {
        url.query_pairs_mut().extend_pairs(query);
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_travels_encrypted_or_stays_here() {
        let plain = |text| checked_address(text, PlainHttp::LoopbackOnly);
        for good in ["https://a.test", "http://127.0.0.1:8/x", "http://[::1]:9", "http://localhost:7"] {
            plain(good).unwrap();
        }
        for bad in ["http://a.test", "http://127.0.0.1.a.test", "http://localhost.a.test", "http://0.0.0.0"] {
            let error = plain(bad).unwrap_err().to_string();
            assert!(error.contains("without encryption"), "{bad}: {error}");
        }
        for bad in ["", "a.test", "ftp://a.test", "https://", "https://user:pit_secret@a.test", "file:///etc"]
        {
            let error = plain(bad).unwrap_err().to_string();
            assert!(!error.contains("pit_secret"), "{error}");
        }
        checked_address("http://a.test", PlainHttp::Allowed).unwrap();
    }

    #[test]
    fn names_cannot_leave_their_place_in_an_address() {
        let base = Url::parse("https://a.test/root/").unwrap();
        let url = below(&base, &["x", "a/../b?c#d%2f", ""], &[("q", "1&2=3".to_owned())]).unwrap();
        assert_eq!(url.as_str(), "https://a.test/root/x/a%2F..%2Fb%3Fc%23d%252f/?q=1%262%3D3");
        for bad in ["", ".", "..", "...", "a/b", "a b", "a?b", "ä", "a\n"] {
            assert!(super::super::segment("id", bad).is_err(), "{bad:?}");
        }
        super::super::segment("id", "@latest").unwrap();
    }

    #[test]
    fn pauses_are_seconds_or_dates() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let of = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, HeaderValue::from_str(text).unwrap());
            retry_after(&headers, now)
        };
        assert_eq!(of("12"), Some(Duration::from_secs(12)));
        assert_eq!(
            of(&httpdate::fmt_http_date(now + Duration::from_secs(30))),
            Some(Duration::from_secs(30))
        );
        assert_eq!(of(&httpdate::fmt_http_date(now - Duration::from_secs(30))), Some(Duration::ZERO));
        assert_eq!(of("soon"), None);
        assert_eq!(of("-1"), None);
    }
}
