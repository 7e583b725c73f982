//! What the server says.

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use serde_json::{Value, json};

/// An answer before it is sent.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Bytes,
}

impl Answer {
    pub(super) fn json(value: &Value) -> Self {
        Self {
            status: 200,
            headers: vec![("content-type".to_owned(), "application/json".to_owned())],
            body: value.to_string().into(),
        }
    }

    /// An answer inside `data`.
    pub(super) fn data(value: &Value) -> Self {
        Self::json(&json!({"data": value}))
    }

    pub(super) fn bytes(body: Bytes) -> Self {
        Self { status: 200, headers: Vec::new(), body }
    }

    pub(super) fn refusal(status: u16, detail: &str) -> Self {
        Self { status, ..Self::json(&json!({"detail": detail})) }
    }

    /// The refusal of a field.
    pub(super) fn invalid(field: &[&str], message: &str) -> Self {
        let place: Vec<&str> = ["body"].iter().chain(field).copied().collect();
        Self {
            status: 422,
            ..Self::json(&json!({"detail": [{"loc": place, "msg": message, "type": "value_error"}]}))
        }
    }

    pub(super) fn into_response(self) -> Response {
        let mut response = Response::builder().status(self.status);
        for (name, value) in self.headers {
            response = response.header(name, value);
        }
        response.body(Body::from(self.body)).unwrap_or_else(|_| {
            let mut broken = Response::new(Body::empty());
            *broken.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            broken
        })
    }
}
