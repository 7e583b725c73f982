//! Answers as bytes, with their common headers.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use aec_base::decimal::rounded;
use bytes::Bytes;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName,
    HeaderValue, LOCATION, REFERRER_POLICY, SET_COOKIE, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use http::{Response, StatusCode};
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::mpsc;

/// Pages run only the scripts of this server.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
    form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// Files of agents are shown without any rights, whatever type a browser assumes.
const ARTEFACT_POLICY: &str = "sandbox; default-src 'none'; frame-ancestors 'none'";

pub(crate) enum Content {
    Whole(Bytes),
    Stream(mpsc::Receiver<Bytes>),
}

pub(crate) type Answer = Response<Content>;

impl Body for Content {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match &mut *self {
            Self::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Self::Stream(pieces) => {
                pieces.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Stream(_) => SizeHint::default(),
        }
    }
}

/// Why there is no page, and what to do.
#[derive(Clone, Debug)]
pub(crate) struct Trouble {
    pub(crate) status: StatusCode,
    pub(crate) what: String,
    pub(crate) fix: String,
}

impl Trouble {
    pub(crate) fn missing(what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { status: StatusCode::NOT_FOUND, what: what.into(), fix: fix.into() }
    }

    /// The request makes no sense.
    pub(crate) fn senseless(what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, what: what.into(), fix: fix.into() }
    }

    /// This machine is the cause.
    pub(crate) fn internal(what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { status: StatusCode::INTERNAL_SERVER_ERROR, what: what.into(), fix: fix.into() }
    }

    /// Too many requests at once.
    pub(crate) fn busy(what: impl Into<String>) -> Self {
        let fix = "wait for the others, or close pages that you do not need".to_owned();
        Self { status: StatusCode::SERVICE_UNAVAILABLE, what: what.into(), fix }
    }
}

fn answer(status: StatusCode, kind: &'static str, policy: &'static str, content: Content) -> Answer {
    let mut answer = Response::new(content);
    *answer.status_mut() = status;
    for (name, value) in [
        (CONTENT_TYPE, kind),
        (CONTENT_SECURITY_POLICY, policy),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "private, no-cache"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    answer
}

fn set(answer: &mut Answer, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        answer.headers_mut().insert(name, value);
    }
}

pub(crate) fn page(status: StatusCode, html: String) -> Answer {
    let mut answer = answer(status, "text/html; charset=utf-8", PAGE_POLICY, Content::Whole(html.into()));
    match status {
        StatusCode::METHOD_NOT_ALLOWED => set(&mut answer, ALLOW, "GET, HEAD"),
        StatusCode::UNAUTHORIZED => set(&mut answer, WWW_AUTHENTICATE, "Bearer"),
        _ => {}
    }
    answer
}

/// One of our files with a fixed address.
pub(crate) fn picture(kind: &'static str, bytes: &'static [u8]) -> Answer {
    answer(StatusCode::OK, kind, PAGE_POLICY, Content::Whole(Bytes::from_static(bytes)))
}

/// One of our files, at an address that contains its digest.
pub(crate) fn asset(kind: &'static str, bytes: &'static [u8]) -> Answer {
    let mut answer = picture(kind, bytes);
    set(&mut answer, CACHE_CONTROL, "private, max-age=31536000, immutable");
    answer
}

/// Gives a cookie to a browser that showed the token.
pub(crate) fn keep(cookie: &str, address: &str) -> Answer {
    let mut answer = page(StatusCode::SEE_OTHER, String::new());
    set(&mut answer, SET_COOKIE, cookie);
    set(&mut answer, LOCATION, address);
    answer
}

/// A file of a trial: text as text, everything else as a download. It is never a page.
pub(crate) fn artefact(name: &str, bytes: Vec<u8>) -> Answer {
    let is_text = std::str::from_utf8(&bytes).is_ok_and(|text| !text.contains('\0'));
    let (kind, how) = if is_text {
        ("text/plain; charset=utf-8", "inline")
    } else {
        ("application/octet-stream", "attachment")
    };
    let plain: String = name
        .rsplit('/')
        .next()
        .unwrap_or_default()
        .chars()
        .map(|character| {
            if character.is_ascii_alphanumeric() || matches!(character, '.' | '_' | '-') {
                character
            } else {
                '_'
            }
        })
        .take(100)
        .collect();
    let mut answer = answer(StatusCode::OK, kind, ARTEFACT_POLICY, Content::Whole(bytes.into()));
    set(&mut answer, CONTENT_DISPOSITION, &format!("{how}; filename=\"{plain}\""));
    answer
}

pub(crate) fn stream(pieces: mpsc::Receiver<Bytes>) -> Answer {
    let mut answer = answer(StatusCode::OK, "text/event-stream", PAGE_POLICY, Content::Stream(pieces));
    set(&mut answer, CACHE_CONTROL, "no-store");
    answer
}

/// Adds the duration of the request.
pub(crate) fn timed(mut answer: Answer, started: Instant) -> Answer {
    let milliseconds = started.elapsed().as_secs_f64() * 1000.0;
    set(
        &mut answer,
        HeaderName::from_static("server-timing"),
        &format!("page;dur={}", rounded(milliseconds, 1)),
    );
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_agents_left_is_never_a_page() {
        let header = |answer: &Answer, name: &str| answer.headers()[name].to_str().unwrap().to_owned();
        let html = artefact("a/<b>\"\r\n.html", b"<script>alert(1)</script>".to_vec());
        assert_eq!(header(&html, "content-type"), "text/plain; charset=utf-8");
        assert_eq!(header(&html, "content-disposition"), "inline; filename=\"_b____.html\"");
        assert!(header(&html, "content-security-policy").starts_with("sandbox;"));
        assert_eq!(header(&html, "x-content-type-options"), "nosniff");
        let binary = artefact("x.svg", vec![0, 1, 2]);
        assert_eq!(header(&binary, "content-type"), "application/octet-stream");
        assert!(header(&binary, "content-disposition").starts_with("attachment;"));
    }
}
