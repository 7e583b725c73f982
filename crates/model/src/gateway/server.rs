//! The gateway as a server: agents use it like a provider, and never see a key.
//!
//! An answer is always complete before it is sent, so that retries, cassettes and budgets work as everywhere else. A
//! client that requested a stream gets keep-alive comments until then, and then the answer as a stream.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aec_base::secret::Secret;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::{get, post};
use futures_util::stream;
use http::{HeaderMap, StatusCode, header};
use serde_json::{Value, json};

use super::connections::{self, Listener};
use super::grant::{Grant, Grants, Holder, InFlight, Witness};
use super::{Inbound, anthropic, openai};
use crate::client::Model;
use crate::failure::{Failure, FailureKind};
use crate::message::Reply;

/// In bytes; pictures need this much.
const LARGEST_REQUEST: usize = 32 * 1024 * 1024;

/// How long a request may take to arrive.
const BODY_TIME: Duration = Duration::from_mins(1);

/// How long an answer may take before a streaming client gets the first keep-alive. Earlier failures still have their
/// own status.
const FIRST_SIGN: Duration = Duration::from_secs(5);

/// Time between keep-alives.
const NEXT_SIGN: Duration = Duration::from_secs(10);

/// Lets the holders of tokens call the models of their grants.
#[derive(Clone, Debug, Default)]
pub struct Gateway(Arc<Grants>);

/// The format that a client uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speech {
    OpenAi,
    Anthropic,
}

impl Gateway {
    /// A gateway without tokens.
    pub fn new() -> Self {
        Self::default()
    }

    /// Issues a token for a grant.
    pub fn issue(&self, grant: Grant) -> io::Result<Secret> {
        self.0.issue(grant, None)
    }

    /// Issues a token for a grant, with an observer of its calls.
    pub fn issue_watched(&self, grant: Grant, witness: Witness) -> io::Result<Secret> {
        self.0.issue(grant, Some(witness))
    }

    /// Revokes a token; returns whether it existed.
    pub fn revoke(&self, token: &Secret) -> bool {
        self.0.revoke(token)
    }

    fn router(&self) -> Router {
        Router::new()
            .route("/health", get(async || "ok\n"))
            .route("/v1/models", get(models))
            .route("/models", get(models))
            .route("/v1/chat/completions", post(chat))
            .route("/chat/completions", post(chat))
            .route("/v1/messages", post(messages))
            .with_state(Arc::clone(&self.0))
    }

    /// Serves connections until `stop` completes, then lets calls in flight continue for a while. Of more than `most`
    /// connections at once, further ones wait to be accepted.
    pub async fn serve<L: Listener>(
        &self,
        listener: L,
        most: usize,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<()> {
        connections::serve(listener, self.router(), most, stop).await
    }
}

/// Variables by which common libraries find the gateway.
pub fn environment(address: std::net::SocketAddr, token: &Secret) -> Vec<(String, String)> {
    let own = |name: &str, value: String| (name.to_owned(), value);
    vec![
        own("OPENAI_BASE_URL", format!("http://{address}/v1")),
        own("OPENAI_API_KEY", token.reveal().to_owned()),
        own("ANTHROPIC_BASE_URL", format!("http://{address}")),
        own("ANTHROPIC_API_KEY", token.reveal().to_owned()),
    ]
}

/// The grant of a request's token, in whichever header its library puts keys.
fn holder(grants: &Grants, headers: &HeaderMap) -> Option<Arc<Holder>> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = text("authorization").and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
    });
    [bearer, text("x-api-key"), text("api-key")].into_iter().flatten().find_map(|token| grants.find(token))
}

async fn models(State(grants): State<Arc<Grants>>, headers: HeaderMap) -> Response {
    let Some(holder) = holder(&grants, &headers) else { return Speech::OpenAi.refuse(&no_token()) };
    let list: Vec<Value> = holder
        .grant
        .models
        .iter()
        .map(|model| json!({ "id": model.name(), "object": "model", "created": 0, "owned_by": "aec-bench" }))
        .collect();
    whole(StatusCode::OK, &json!({ "object": "list", "data": list }))
}

async fn chat(State(grants): State<Arc<Grants>>, request: Request) -> Response {
    answer(Speech::OpenAi, &grants, request).await
}

async fn messages(State(grants): State<Arc<Grants>>, request: Request) -> Response {
    answer(Speech::Anthropic, &grants, request).await
}

async fn answer(speech: Speech, grants: &Grants, request: Request) -> Response {
    // The token is checked first: a body is read only for holders of a token, and only a limited number at once.
    let Some(holder) = holder(grants, request.headers()) else { return speech.refuse(&no_token()) };
    let Some(in_flight) = holder.enter() else {
        let what = format!("more than {} calls at once", holder.grant.max_in_flight);
        let failure = Failure::passing(FailureKind::Rate, what);
        return speech.refuse(&failure.retry_after(Some(Duration::from_secs(1))));
    };
    let (inbound, model) = match read(speech, &holder, request.into_body()).await {
        Ok(read) => read,
        Err(failure) => return speech.refuse(&failure),
    };
    let reply = Answer { speech, model: inbound.model.clone(), include_usage: inbound.include_usage };
    let streaming = inbound.stream;
    let mut call: CallFuture = Box::pin(async move {
        let outcome = tokio::select! {
            called = model.call(&inbound.request, &holder.grant.scope) => {
                if let Some(witness) = &holder.witness {
                    witness(&inbound.request, &called.outcome);
                }
                called.outcome.map_err(discreet)
            }
            () = holder.revoked() => Err(Failure::lasting(FailureKind::Cancelled, "the token was taken back")),
        };
        drop::<InFlight>(in_flight);
        outcome
    });
    if !streaming {
        return reply.whole(call.await);
    }
    match tokio::time::timeout(FIRST_SIGN, &mut call).await {
        Ok(outcome) => reply.streamed(outcome),
        Err(_) => reply.patient(call),
    }
}

/// The request in a body, and its model.
async fn read(speech: Speech, holder: &Holder, body: Body) -> Result<(Inbound, Model), Failure> {
    let refuse = |what: &str| Failure::lasting(FailureKind::Request, what);
    let body = tokio::time::timeout(BODY_TIME, axum::body::to_bytes(body, LARGEST_REQUEST))
        .await
        .map_err(|_| refuse("the request took too long to arrive"))?
        .map_err(|_| refuse("the request is too large, or did not arrive whole"))?;
    let inbound = match speech {
        Speech::OpenAi => openai::decode_request(&body),
        Speech::Anthropic => anthropic::decode_request(&body),
    };
    let inbound = inbound.map_err(|what| refuse(&what))?;
    let Some(model) = holder.grant.model(&inbound.model).cloned() else {
        let known: Vec<&str> = holder.grant.models.iter().map(Model::name).collect();
        let what = format!("this token is for {}, not for another model", aec_base::text::one_of(&known));
        return Err(Failure::lasting(FailureKind::Auth, what).status(403));
    };
    Ok((inbound, model))
}

type CallFuture = Pin<Box<dyn Future<Output = Outcome> + Send>>;

type Outcome = Result<Reply, Failure>;

/// Hides a provider's messages about keys from the agent.
fn discreet(failure: Failure) -> Failure {
    match failure.kind {
        FailureKind::Auth => {
            Failure::lasting(FailureKind::Auth, "the provider refused the gateway's credentials").status(403)
        }
        _ => failure,
    }
}

fn no_token() -> Failure {
    Failure::lasting(FailureKind::Auth, "a token of this gateway is needed").status(401)
}

/// How to write a reply.
#[derive(Clone, Debug)]
struct Answer {
    speech: Speech,
    model: String,
    include_usage: bool,
}

impl Answer {
    fn whole(&self, outcome: Outcome) -> Response {
        match outcome {
            Ok(reply) => {
                let body = match self.speech {
                    Speech::OpenAi => openai::encode_reply(&reply, &self.model, now()),
                    Speech::Anthropic => anthropic::encode_reply(&reply, &self.model),
                };
                whole(StatusCode::OK, &body)
            }
            Err(failure) => self.speech.refuse(&failure),
        }
    }

    fn streamed(&self, outcome: Outcome) -> Response {
        match outcome {
            Err(failure) => self.speech.refuse(&failure),
            answered => events(Body::from(self.text(answered))),
        }
    }

    /// Sends keep-alives until the call has ended, then the answer. Dropping the response drops the call.
    fn patient(self, call: CallFuture) -> Response {
        let pieces = stream::unfold((Some(call), false), move |(call, begun)| {
            let answer = self.clone();
            async move {
                let mut call = call?;
                if !begun {
                    return Some((answer.sign_of_life(), (Some(call), true)));
                }
                match tokio::time::timeout(NEXT_SIGN, &mut call).await {
                    Ok(outcome) => Some((answer.text(outcome), (None, true))),
                    Err(_) => Some((answer.sign_of_life(), (Some(call), true))),
                }
            }
        });
        events(Body::from_stream(futures_util::StreamExt::map(pieces, |text| {
            Ok::<_, Infallible>(Bytes::from(text))
        })))
    }

    fn sign_of_life(&self) -> String {
        // A comment, which all readers of event streams skip.
        ": waiting for the model\n\n".to_owned()
    }

    fn text(&self, outcome: Outcome) -> String {
        match outcome {
            Ok(reply) => match self.speech {
                Speech::OpenAi => {
                    openai::encode_stream(&reply, &self.model, now(), self.include_usage).concat()
                }
                Speech::Anthropic => anthropic::encode_stream(&reply, &self.model).concat(),
            },
            Err(failure) => {
                let (_, body) = self.speech.failure(&failure);
                match self.speech {
                    Speech::OpenAi => format!("data: {body}\n\n"),
                    Speech::Anthropic => format!("event: error\ndata: {body}\n\n"),
                }
            }
        }
    }
}

impl Speech {
    fn failure(self, failure: &Failure) -> (u16, Value) {
        match self {
            Self::OpenAi => openai::encode_failure(failure),
            Self::Anthropic => anthropic::encode_failure(failure),
        }
    }

    fn refuse(self, failure: &Failure) -> Response {
        let (status, body) = self.failure(failure);
        // 401 means an unknown token; with a valid one the failure's own status applies.
        let status = if failure.status == Some(401) { 401 } else { status };
        let mut response = whole(StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY), &body);
        if let Some(wait) = failure.retry_after_ms {
            response.headers_mut().insert("retry-after-ms", wait.into());
            response.headers_mut().insert(header::RETRY_AFTER, wait.div_ceil(1000).into());
        }
        response
    }
}

fn whole(status: StatusCode, body: &Value) -> Response {
    respond(status, "application/json", Body::from(body.to_string()))
}

fn events(body: Body) -> Response {
    respond(StatusCode::OK, "text/event-stream", body)
}

fn respond(status: StatusCode, kind: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, http::HeaderValue::from_static(kind));
    response
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
