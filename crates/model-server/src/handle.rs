//! Handles one request from its arrival to its answer.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use aec_base::digest::Digest;
use aec_model::script::Ending;
use bytes::{Bytes, BytesMut};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use serde_json::{Value, json};

use crate::answer::compose;
use crate::ask::{self, Ask, Invalid};
use crate::auth;
use crate::body::{Body, Broken, ConnectionState, Midway, Stream, Whole};
use crate::draw::{Draws, Prefixes, Repetitions, mix};
use crate::fault::{self, FaultKind};
use crate::limits::{Bucket, Level};
use crate::options::Options;
use crate::refusal::{Refusal, Told, Wait, put, tell, tell_level};
use crate::route::{Form, Route};
use crate::stats::{Counters, Passage};
use crate::voice::{Reply, voice};
use crate::{anthropic, openai};

/// In bytes; larger requests are refused.
const LARGEST_REQUEST: usize = 64 * 1024 * 1024;

/// The models that the server lists; it answers for any other name as well.
const MODELS: [&str; 1] = ["test-model"];

/// A request as received.
#[derive(Clone, Debug)]
pub struct KeptRequest {
    /// Path and query.
    pub path: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) counters: Arc<Counters>,
    repetitions: Repetitions,
    prefixes: Prefixes,
    bucket: Option<Bucket>,
    kept: Mutex<VecDeque<KeptRequest>>,
}

/// How the server treats a request.
enum Plan {
    Answer {
        wait: Duration,
        response: Response<Body>,
    },
    /// Does not answer until the client disconnects.
    Hang(Passage),
    /// Closes the connection without an answer.
    Reset(Passage),
}

/// A request apart from its body.
struct Target<'a> {
    form: Form,
    parts: &'a Parts,
    /// The model, if the path names it.
    model: Option<&'a str>,
    /// Whether the path asks for a stream.
    stream: bool,
    connection: &'a Arc<ConnectionState>,
}

/// A request and its random seeds.
struct Arrival<'a> {
    target: Target<'a>,
    /// Equal for equal requests.
    draw: u64,
    /// Different for each repetition of a request.
    occasion: u64,
    repetition: u32,
    digest: u64,
}

pub(crate) async fn handle(
    shared: Arc<Shared>,
    connection: Arc<ConnectionState>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Broken> {
    let (parts, incoming) = request.into_parts();
    let route = Route::of(&parts.method, parts.uri.path());
    shared.counters.request(route.kind());
    let Route::Model { form, model, stream, .. } = route else { return Ok(shared.aside(&route, &parts)) };
    let passage = shared.counters.enter();
    let body = match Limited::new(incoming, LARGEST_REQUEST).collect().await {
        Ok(body) => Some(body.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => None,
        Err(_) => return Err(Broken),
    };
    shared.keep(&parts, body.as_ref());
    let target = Target { form, parts: &parts, model: model.as_deref(), stream, connection: &connection };
    match shared.plan(target, body.as_deref(), passage) {
        Plan::Answer { wait, response } => {
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
            Ok(response)
        }
        Plan::Hang(waiting) => {
            connection.hung.store(true, Ordering::Relaxed);
            std::future::pending::<()>().await;
            drop(waiting);
            Err(Broken)
        }
        Plan::Reset(mut ended) => {
            ended.finish();
            connection.reset.store(true, Ordering::Relaxed);
            Err(Broken)
        }
    }
}

impl Shared {
    pub(crate) fn new(options: Options) -> Self {
        Self {
            bucket: options.requests_per_minute.map(Bucket::new),
            options,
            counters: Arc::new(Counters::new()),
            repetitions: Repetitions::new(),
            prefixes: Prefixes::new(),
            kept: Mutex::new(VecDeque::new()),
        }
    }

    pub(crate) fn kept(&self) -> Vec<KeptRequest> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    fn keep(&self, parts: &Parts, body: Option<&Bytes>) {
        let most = self.options.keep_requests;
        if most == 0 {
            return;
        }
        // A copy, since the bytes are part of a larger buffer.
        let body = Bytes::copy_from_slice(body.map_or(&[], |body| body));
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        let request = KeptRequest { path, headers: parts.headers.clone(), body };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= most {
            kept.pop_front();
        }
        kept.push_back(request);
    }

    /// Answers requests that do not go to the model.
    fn aside(&self, route: &Route, parts: &Parts) -> Response<Body> {
        let (status, value) = match route {
            Route::Stats => (StatusCode::OK, json!(self.counters.snapshot())),
            Route::Models if parts.headers.contains_key("anthropic-version") => {
                (StatusCode::OK, anthropic::models(&MODELS))
            }
            Route::Models => (StatusCode::OK, openai::models(&MODELS)),
            Route::Unknown | Route::Model { .. } => {
                let message = format!("Unknown request URL: {} {}.", parts.method, parts.uri.path());
                let error = json!({"message": message, "type": "invalid_request_error", "param": null, "code": "unknown_url"});
                (StatusCode::NOT_FOUND, json!({"error": error}))
            }
        };
        self.counters.status(status.as_u16());
        let mut response = Response::new(Whole::complete(value.to_string(), None));
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    }

    fn plan(&self, target: Target<'_>, body: Option<&[u8]>, passage: Passage) -> Plan {
        let digest = short(&Digest::of(body.unwrap_or_default()));
        let repetition = self.repetitions.count(digest);
        let draw = mix(self.options.seed, digest);
        let occasion = mix(draw, u64::from(repetition) + 1);
        let arrival = Arrival { target, draw, occasion, repetition, digest };
        let Some(body) = body else {
            return self.refuse(&arrival, &Refusal::TooLarge, None, passage);
        };
        if let Err(refusal) = auth::check(arrival.target.form, &self.options, arrival.target.parts, body) {
            return self.refuse(&arrival, &refusal, None, passage);
        }
        let level = match self.check_limits(&passage) {
            Ok(level) => level,
            Err((wait, level)) => {
                self.counters.limited();
                return self.refuse(&arrival, &Refusal::Rate(Wait::For(wait)), level.as_ref(), passage);
            }
        };
        match self.consider(&arrival, body) {
            Ok((ask, fault, latency)) => {
                self.carry_out(&arrival, ask, fault, latency, level.as_ref(), passage)
            }
            Err(invalid) => self.refuse(&arrival, &Refusal::Invalid(invalid), level.as_ref(), passage),
        }
    }

    /// Admits a request, or says how long it must wait.
    fn check_limits(&self, passage: &Passage) -> Result<Option<Level>, (Duration, Option<Level>)> {
        let too_many = |limit: usize| usize::try_from(passage.others).unwrap_or(usize::MAX) >= limit;
        if self.options.limit_in_flight.is_some_and(too_many) {
            return Err((self.options.retry_after, None));
        }
        match self.bucket.as_ref().map(Bucket::take) {
            Some(level) if !level.wait.is_zero() => Err((level.wait, Some(level))),
            level => Ok(level),
        }
    }

    /// Decides the answer, the fault and the latency.
    fn consider(
        &self,
        arrival: &Arrival<'_>,
        body: &[u8],
    ) -> Result<(Ask, Option<FaultKind>, Duration), Invalid> {
        let header = |name: &str| {
            arrival.target.parts.headers.get(name).map(|value| value.to_str().unwrap_or_default())
        };
        let ask = ask::parse(arrival.target.form, arrival.target.model, arrival.target.stream, body)?;
        let fault = match header("x-test-fault") {
            Some(name) => {
                Some(name.parse::<FaultKind>().map_err(|why| Invalid::new(format!("x-test-fault: {why}")))?)
            }
            None => fault::draw(&self.options.faults, self.options.seed, arrival.digest, arrival.repetition),
        };
        let latency = match header("x-test-latency-ms") {
            Some(number) => {
                let wrong = |_| Invalid::new("x-test-latency-ms: not a whole number of milliseconds");
                Duration::from_millis(number.parse::<u32>().map_err(wrong)?.into())
            }
            None => {
                let range = self.options.latency;
                let spread = range.most.saturating_sub(range.least);
                range.least + spread.mul_f64(Draws::new(!arrival.occasion).unit())
            }
        };
        Ok((ask, fault, latency))
    }

    fn carry_out(
        &self,
        arrival: &Arrival<'_>,
        ask: Ask,
        fault: Option<FaultKind>,
        latency: Duration,
        level: Option<&Level>,
        passage: Passage,
    ) -> Plan {
        if let Some(kind) = fault {
            self.counters.fault(kind);
        }
        let refusal = match fault {
            Some(FaultKind::Timeout) => return Plan::Hang(passage),
            Some(FaultKind::Reset) => return Plan::Reset(passage),
            Some(FaultKind::Rate) => Some(Refusal::Rate(Wait::For(self.options.retry_after))),
            Some(FaultKind::RateDate) => {
                // Dates are whole seconds, so the wait is at least one.
                let wait = self.options.retry_after.max(Duration::from_secs(1));
                Some(Refusal::Rate(Wait::Until(SystemTime::now() + wait)))
            }
            Some(FaultKind::Server) => Some(Refusal::Server),
            Some(FaultKind::Unavailable) => Some(Refusal::Unavailable),
            Some(FaultKind::Overloaded) if !ask.stream => Some(Refusal::Overloaded),
            Some(FaultKind::Filter) => Some(Refusal::Filter),
            Some(FaultKind::Overlong) => Some(Refusal::Overlong(ask.prompt.tokens())),
            Some(FaultKind::Auth) => Some(Refusal::WrongKey),
            _ => None,
        };
        if let Some(refusal) = refusal {
            return self.refuse(arrival, &refusal, level, passage);
        }
        let response = self.answer(arrival, ask, fault, latency, level, passage);
        Plan::Answer { wait: latency, response }
    }

    fn answer(
        &self,
        arrival: &Arrival<'_>,
        ask: Ask,
        fault: Option<FaultKind>,
        latency: Duration,
        level: Option<&Level>,
        passage: Passage,
    ) -> Response<Body> {
        let mut answer = compose(&self.options, &ask, arrival.draw);
        match fault {
            Some(FaultKind::Empty) => {
                answer.parts.clear();
                answer.ending = Ending::End;
            }
            Some(kind @ (FaultKind::FilterStop | FaultKind::Length)) => {
                answer.limit(answer.tokens() / 2);
                let filtered = kind == FaultKind::FilterStop;
                answer.ending = if filtered { Ending::ContentFilter } else { Ending::Length };
                answer.stop_text = None;
            }
            _ => {}
        }
        let input = ask.prompt.count(&self.prefixes);
        let output = answer.tokens();
        self.counters.tokens(input.all(), input.read, output);
        let reply = Reply {
            form: arrival.target.form,
            model: ask.model,
            id: Draws::new(arrival.occasion).letters(24),
            thoughts: answer.thought_tokens(),
            answer,
            output,
            input,
            include_usage: ask.include_usage,
            latency_ms: u64::try_from(latency.as_millis()).unwrap_or(u64::MAX),
            head: String::new(),
        };
        let midway = match fault {
            Some(FaultKind::Cut) => Some(Midway::Cut),
            Some(FaultKind::Broken) => Some(Midway::Break),
            Some(FaultKind::Stall) => Some(Midway::Stall),
            Some(FaultKind::Overloaded) => Some(Midway::Error),
            Some(FaultKind::Malformed) => Some(Midway::Malformed),
            Some(FaultKind::Garbage) => Some(Midway::Garbage),
            _ => None,
        };
        let mut headers = HeaderMap::with_capacity(8);
        success_headers(&reply, ask.stream, arrival.occasion, &mut headers);
        if let Some(level) = level {
            tell_level(arrival.target.form, level, &mut headers);
        }
        let body = if ask.stream {
            Stream::begin(
                reply,
                self.options.tokens_per_second,
                midway,
                passage,
                Arc::clone(arrival.target.connection),
            )
        } else {
            whole(&reply, midway, passage, arrival.target.connection)
        };
        self.counters.status(200);
        let mut response = Response::new(body);
        *response.headers_mut() = headers;
        response
    }

    fn refuse(
        &self,
        arrival: &Arrival<'_>,
        refusal: &Refusal,
        level: Option<&Level>,
        passage: Passage,
    ) -> Plan {
        let mut draws = Draws::new(arrival.occasion);
        let model = arrival.target.model.unwrap_or("the model");
        let Told { status, mut headers, body } =
            tell(arrival.target.form, refusal, model, &draws.letters(22));
        if let Some(level) = level {
            tell_level(arrival.target.form, level, &mut headers);
        }
        request_id(arrival.target.form, arrival.occasion, &mut headers);
        self.counters.status(status.as_u16());
        let mut response = Response::new(Whole::complete(body, Some(passage)));
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        Plan::Answer { wait: Duration::ZERO, response }
    }
}

fn whole(reply: &Reply, midway: Option<Midway>, passage: Passage, connection: &Arc<ConnectionState>) -> Body {
    let voice = voice(reply.form);
    let mut out = BytesMut::with_capacity(2048);
    voice.whole(reply, &mut out);
    match midway {
        None => Whole::complete(out, Some(passage)),
        Some(Midway::Garbage) => Whole::complete(&b"<html>\x00\xff upstream </html>"[..], Some(passage)),
        Some(Midway::Malformed) => {
            let mut value: Value = serde_json::from_slice(&out).unwrap_or_default();
            voice.spoil(&mut value);
            Whole::complete(value.to_string(), Some(passage))
        }
        Some(midway) => Whole::half(&out.freeze(), midway, passage, Arc::clone(connection)),
    }
}

fn success_headers(reply: &Reply, stream: bool, occasion: u64, headers: &mut HeaderMap) {
    let media_type = if stream { voice(reply.form).stream_type() } else { "application/json" };
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    request_id(reply.form, occasion, headers);
    match reply.form {
        Form::OpenAi | Form::Azure => {
            put(headers, "openai-version", "2020-10-01");
            put(headers, "openai-processing-ms", &reply.latency_ms.to_string());
        }
        Form::Invoke if stream => put(headers, "x-amzn-bedrock-content-type", "application/json"),
        Form::Invoke => {
            put(headers, "x-amzn-bedrock-input-token-count", &reply.input.fresh.to_string());
            put(headers, "x-amzn-bedrock-output-token-count", &reply.output.to_string());
            put(headers, "x-amzn-bedrock-invocation-latency", &reply.latency_ms.to_string());
        }
        Form::Anthropic | Form::Converse => {}
    }
    if stream {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    }
}

fn request_id(form: Form, occasion: u64, headers: &mut HeaderMap) {
    let mut draws = Draws::new(occasion);
    match form {
        Form::OpenAi | Form::Azure => {
            put(headers, "x-request-id", &format!("req_{}", draws.uuid().replace('-', "")));
        }
        Form::Anthropic => put(headers, "request-id", &format!("req_01{}", draws.letters(22))),
        Form::Invoke | Form::Converse => put(headers, "x-amzn-requestid", &draws.uuid()),
    }
}

/// The first bytes of a digest.
fn short(digest: &Digest) -> u64 {
    digest.bytes().iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}
