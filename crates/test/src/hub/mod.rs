//! A server on this machine that answers as the Hugging Face hub does for dataset repositories, for tests.
//!
//! It keeps state: datasets are made once, uploads are checked against their digests and sizes, and a commit may only
//! refer to what was uploaded. It records every request, and it fails where a test wants it to.

mod commit;
mod state;
mod storage;

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub use state::{Dataset, Failure, Hook, Outcome, RecordedRequest, StandInState};

/// Largest request that is read.
const LARGEST_REQUEST: usize = 512 * 1024 * 1024;

/// An answer before it is sent.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Answer {
    /// A success.
    pub fn json(value: &Value) -> Self {
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        Self { status: 200, headers, body: value.to_string() }
    }

    /// A refusal in the form of the hub.
    pub fn refusal(status: u16, error: &str) -> Self {
        Self { status, ..Self::json(&json!({"error": error})) }
    }
}

/// A running server. It ends when it is dropped.
#[derive(Debug)]
pub struct StandIn {
    address: SocketAddr,
    state: Arc<Mutex<StandInState>>,
    task: JoinHandle<()>,
}

impl StandIn {
    /// Starts a server on a free port of this machine.
    pub async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let state = Arc::new(Mutex::new(StandInState::new(format!("http://{address}"))));
        let task = tokio::spawn(accept(listener, Arc::clone(&state)));
        Ok(Self { address, state, task })
    }

    /// Root of the server.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Looks at or changes the state.
    pub fn with<T>(&self, change: impl FnOnce(&mut StandInState) -> T) -> T {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Makes something fail from now on.
    pub fn fail(&self, failure: Failure) {
        self.with(|state| state.failures.push(failure));
    }

    /// The requests so far as `METHOD path`, without their queries.
    pub fn calls(&self) -> Vec<String> {
        let shown = |request: &RecordedRequest| format!("{} {}", request.method, request.path);
        self.with(|state| state.requests.iter().map(shown).collect())
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, state: Arc<Mutex<StandInState>>) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let state = Arc::clone(&state);
        let service = service_fn(move |request| serve(Arc::clone(&state), request));
        let connection =
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        connections.spawn(async move {
            // An error here is a connection that was cut, by the client or on demand.
            drop(connection.await);
        });
    }
}

async fn serve(
    state: Arc<Mutex<StandInState>>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, io::Error> {
    let (head, body) = request.into_parts();
    let header = |(name, value): (&hyper::header::HeaderName, &hyper::header::HeaderValue)| {
        (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    let mut request = RecordedRequest {
        method: head.method.as_str().to_owned(),
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        headers: head.headers.iter().map(header).collect(),
        body: Bytes::new(),
    };
    let locked = || state.lock().unwrap_or_else(PoisonError::into_inner);
    locked().run_hooks(&request);
    let failure = locked().take_failure(&request);
    if matches!(failure, Some(Outcome::Cut)) {
        locked().requests.push(request);
        return Err(io::Error::other("cut on demand"));
    }
    let body = Limited::new(body, LARGEST_REQUEST).collect().await;
    request.body = body.map_err(|error| io::Error::other(error.to_string()))?.to_bytes();
    let mut state = locked();
    let answer = match failure {
        Some(Outcome::Refused(answer)) => answer,
        Some(Outcome::Cut) | None => dispatch(&mut state, &request),
    };
    state.requests.push(request);
    let mut response = Response::builder().status(answer.status);
    for (name, value) in answer.headers {
        response = response.header(name, value);
    }
    response.body(Full::new(answer.body.into())).map_err(io::Error::other)
}

fn dispatch(state: &mut StandInState, request: &RecordedRequest) -> Answer {
    let segments: Vec<&str> = request.path.trim_start_matches('/').split('/').collect();
    if let ["storage", rest @ ..] = segments.as_slice() {
        return storage::answer(state, request, rest);
    }
    if request.header("authorization") != Some(format!("Bearer {}", state.token).as_str()) {
        return Answer::refusal(401, "Invalid credentials in Authorization header");
    }
    match (request.method.as_str(), segments.as_slice()) {
        ("GET", ["api", "whoami-v2"]) => Answer::json(&json!({
            "type": "user",
            "name": state.user,
            "auth": {"type": "access_token", "accessToken": {"displayName": "test", "role": state.role}},
        })),
        ("POST", ["api", "repos", "create"]) => state.create(&request.json()),
        ("GET", ["api", "datasets", owner, name]) => match state.datasets.get(&format!("{owner}/{name}")) {
            Some(dataset) => {
                Answer::json(&json!({"id": format!("{owner}/{name}"), "private": dataset.private}))
            }
            None => Answer::refusal(404, "Repository not found"),
        },
        ("POST", ["api", "datasets", owner, name, "preupload", "main"]) => {
            commit::preupload(state, &format!("{owner}/{name}"), &request.json())
        }
        ("POST", ["api", "datasets", owner, name, "commit", "main"]) => {
            commit::commit(state, &format!("{owner}/{name}"), request)
        }
        ("POST", ["datasets", owner, name, "info", "lfs", "objects", step]) => {
            let name = name.strip_suffix(".git").unwrap_or_default();
            storage::protocol(state, request, &format!("{owner}/{name}"), step)
        }
        _ => Answer::refusal(404, "Not Found"),
    }
}
