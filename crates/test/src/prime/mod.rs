//! A server on this machine that answers as Prime's does, for tests of this crate and of Prime's own program.
//!
//! It keeps state: what is uploaded is stored and checked, evaluations and training runs go on as they are asked
//! about, lists come in pages. It records every request, and it fails where a test wants it to.

mod answer;
mod evaluations;
mod hub;
mod request;
mod state;
mod training;

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::{Request, State as Shared};
use axum::response::Response;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use answer::Answer;
pub use evaluations::{HostedRun, SampleSource};
pub use request::RecordedRequest;
pub use state::{Failure, SharedTraining, StandInState};
pub use training::TrainingRun;

/// Largest request that is read.
const LARGEST_REQUEST: usize = 512 * 1024 * 1024;

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
        let router = Router::new().fallback(serve).with_state(Arc::clone(&state));
        let task = tokio::spawn(async move {
            // The listener only fails when the runtime ends.
            drop(axum::serve(listener, router).await);
        });
        Ok(Self { address, state, task })
    }

    /// Root of the server.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Root of its model API.
    pub fn inference_url(&self) -> String {
        format!("http://{}/inference/v1", self.address)
    }

    /// Environment variables that lead a client here, as its user.
    pub fn variables(&self) -> [(&'static str, String); 4] {
        [
            ("PRIME_API_KEY", self.with(|state| state.key.clone())),
            ("PRIME_API_BASE_URL", self.base_url()),
            ("PRIME_FRONTEND_URL", self.base_url()),
            ("PRIME_INFERENCE_URL", self.inference_url()),
        ]
    }

    /// Looks at or changes the state.
    pub fn with<T>(&self, change: impl FnOnce(&mut StandInState) -> T) -> T {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.with(|state| state.requests.clone())
    }

    /// The requests so far as `METHOD path`, without their queries.
    pub fn calls(&self) -> Vec<String> {
        self.requests().iter().map(|request| format!("{} {}", request.method, request.path)).collect()
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(Shared(state): Shared<Arc<Mutex<StandInState>>>, request: Request) -> Response {
    let request = match RecordedRequest::read(request, LARGEST_REQUEST).await {
        Ok(request) => request,
        Err(reason) => return Answer::refusal(413, &reason).into_response(),
    };
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    state.requests.push(request.clone());
    let answer = match state.take_failure(&request) {
        Some(answer) => answer,
        None => dispatch(&mut state, &request),
    };
    answer.into_response()
}

fn dispatch(state: &mut StandInState, request: &RecordedRequest) -> Answer {
    let segments: Vec<&str> = request.path.trim_start_matches('/').split('/').collect();
    if let ["storage", name] = segments.as_slice() {
        return hub::storage(state, request, name);
    }
    if request.header("authorization") != Some(format!("Bearer {}", state.key).as_str()) {
        return Answer::refusal(401, "Invalid or missing API key");
    }
    match (request.method.as_str(), segments.as_slice()) {
        ("GET", ["inference", "v1", "models"]) => Answer::json(&state.models),
        ("GET", ["api", "v1", "user", "whoami"]) => Answer::data(&state.user),
        ("GET", ["api", "v1", "user", "teams"]) => Answer::json(&serde_json::json!({"data": []})),
        (method, ["api", "v1", "environmentshub", rest @ ..]) => hub::answer(state, request, method, rest),
        (method, ["api", "v1", "evaluations", rest @ ..]) => {
            evaluations::answer(state, request, method, rest)
        }
        (method, ["api", "v1", "hosted-evaluations", rest @ ..]) => {
            evaluations::answer_hosted(state, request, method, rest)
        }
        (method, ["api", "v1", "rft", rest @ ..]) => training::answer(state, request, method, rest),
        ("POST", ["api", "v1", "training", "runs"]) => training::create_dedicated(state, request),
        _ => Answer::refusal(404, "Not Found"),
    }
}
