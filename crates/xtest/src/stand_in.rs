//! What all stand-in servers share: they listen on this machine, record every request, and fail where a test asks them
//! to.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Largest request that is read, in bytes.
const LARGEST_REQUEST: usize = 512 * 1024 * 1024;

#[derive(Clone, Debug)]
pub struct RecordedRequest {
    pub method: String,
    pub path: String,
    pub query: String,
    /// Headers, names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
}

impl RecordedRequest {
    fn without_body(head: &hyper::http::request::Parts) -> Self {
        let header = |(name, value): (&hyper::header::HeaderName, &hyper::header::HeaderValue)| {
            (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        Self {
            method: head.method.as_str().to_owned(),
            path: head.uri.path().to_owned(),
            query: head.uri.query().unwrap_or_default().to_owned(),
            headers: head.headers.iter().map(header).collect(),
            body: Bytes::new(),
        }
    }

    /// `METHOD path`.
    pub fn shown(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// A header by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn parameter(&self, name: &str) -> Option<String> {
        let mut all = url::form_urlencoded::parse(self.query.as_bytes());
        all.find(|(known, _)| known == name).map(|(_, value)| value.into_owned())
    }

    /// A numeric parameter of the query.
    pub(crate) fn number(&self, name: &str, default: u64) -> u64 {
        self.parameter(name).and_then(|value| value.parse().ok()).unwrap_or(default)
    }

    /// The body as JSON, or null.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
}

impl Answer {
    pub fn json(value: &Value) -> Self {
        Self::with_status(200, value)
    }

    pub fn with_status(status: u16, value: &Value) -> Self {
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        Self { status, headers, body: value.to_string().into() }
    }
}

#[derive(Clone, Debug)]
pub enum Outcome {
    Refused(Answer),
    /// The connection is cut instead of an answer.
    Cut,
}

/// A service that a stand-in server replaces.
pub trait Service: Send + 'static {
    /// Its state at the beginning; `root` is its address.
    fn new(root: String) -> Self;
    /// The requests so far.
    fn requests(&mut self) -> &mut Vec<RecordedRequest>;
    /// Called before the body of a request is read. Returns the failure of this request, if one is due.
    fn arrive(&mut self, request: &RecordedRequest) -> Option<Outcome>;
    fn answer(&mut self, request: &RecordedRequest) -> Answer;
}

/// A running server. It ends when it is dropped.
#[derive(Debug)]
pub struct StandIn<S> {
    address: SocketAddr,
    state: Arc<Mutex<S>>,
    task: JoinHandle<()>,
}

impl<S: Service> StandIn<S> {
    /// Starts a server on a free local port.
    pub async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let state = Arc::new(Mutex::new(S::new(format!("http://{address}"))));
        let task = tokio::spawn(accept(listener, Arc::clone(&state)));
        Ok(Self { address, state, task })
    }

    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Reads or changes the state.
    pub fn with<T>(&self, change: impl FnOnce(&mut S) -> T) -> T {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.with(|state| state.requests().clone())
    }

    /// The requests so far as `METHOD path`, without their queries.
    pub fn calls(&self) -> Vec<String> {
        self.with(|state| state.requests().iter().map(RecordedRequest::shown).collect())
    }
}

impl<S> Drop for StandIn<S> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept<S: Service>(listener: TcpListener, state: Arc<Mutex<S>>) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let state = Arc::clone(&state);
        let service = service_fn(move |request| serve(Arc::clone(&state), request));
        let connection =
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        connections.spawn(async move {
            // An error here is a connection that was cut, by the client or by a test.
            drop(connection.await);
        });
    }
}

async fn serve<S: Service>(
    state: Arc<Mutex<S>>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, io::Error> {
    let (head, body) = request.into_parts();
    let mut request = RecordedRequest::without_body(&head);
    let locked = || state.lock().unwrap_or_else(PoisonError::into_inner);
    let failure = locked().arrive(&request);
    if matches!(failure, Some(Outcome::Cut)) {
        locked().requests().push(request);
        return Err(io::Error::other("cut on demand"));
    }
    let body = Limited::new(body, LARGEST_REQUEST).collect().await;
    request.body = body.map_err(|error| io::Error::other(error.to_string()))?.to_bytes();
    let mut state = locked();
    let answer = match failure {
        Some(Outcome::Refused(answer)) => answer,
        Some(Outcome::Cut) | None => state.answer(&request),
    };
    state.requests().push(request);
    let mut response = Response::builder().status(answer.status);
    for (name, value) in answer.headers {
        response = response.header(name, value);
    }
    response.body(Full::new(answer.body)).map_err(io::Error::other)
}
