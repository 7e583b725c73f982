//! A request as it arrived.

use axum::extract::Request;
use bytes::Bytes;
use serde_json::Value;

/// A request that the server got.
#[derive(Clone, Debug)]
pub struct RecordedRequest {
    pub method: String,
    pub path: String,
    /// Parameters in order.
    pub query: Vec<(String, String)>,
    /// Headers, names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
}

impl RecordedRequest {
    pub(super) async fn read(request: Request, limit: usize) -> Result<Self, String> {
        let (head, body) = request.into_parts();
        let body = axum::body::to_bytes(body, limit).await.map_err(|error| error.to_string())?;
        let query = head.uri.query().unwrap_or_default();
        let header = |(name, value): (&axum::http::HeaderName, &axum::http::HeaderValue)| {
            (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        Ok(Self {
            method: head.method.as_str().to_owned(),
            path: head.uri.path().to_owned(),
            query: url::form_urlencoded::parse(query.as_bytes()).into_owned().collect(),
            headers: head.headers.iter().map(header).collect(),
            body,
        })
    }

    /// A header by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// A parameter that is a number.
    pub(super) fn number(&self, name: &str, default: u64) -> u64 {
        self.parameter(name).and_then(|value| value.parse().ok()).unwrap_or(default)
    }

    /// The body as JSON, or null.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}
