//! The only way to call a model: routing, limits, retries, money and cassettes around each attempt.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aec_base::secret::Redactor;
use serde::Serialize;
use tokio::time::Instant;

use crate::bill::{self, Bill, Size};
use crate::cassette::{Call, Lookup, Played};
use crate::dialect::refusal;
use crate::endpoint::{Endpoint, Limits};
use crate::event::{CallEvent, Charged};
use crate::failure::{Failure, FailureKind};
use crate::gate::Share;
use crate::message::{Reply, Request, Usage};
use crate::meter::{Account, Quote};
use crate::offline::Offline;
use crate::price::{Missing, Price, PriceList};
use crate::replicas::{Replica, Replicas};
use crate::retry::{History, RetryPolicy};
use crate::routing::{ClientTable, RouteError, Routes, Target};
use crate::tape::Tape;
use crate::transport::{Manner, Transport};

/// The label of models inside this program.
const OFFLINE: &str = "offline";

pub struct Setup {
    pub routes: Routes,
    pub prices: PriceList,
    pub retry: RetryPolicy,
    /// Whether calls are live, recorded, or replayed.
    pub tape: Tape,
    pub redactor: Redactor,
}

/// Calls models. Cheap to clone; all clones share limits and connections.
#[derive(Clone)]
pub struct Client(Arc<Shared>);

struct Shared {
    transport: Transport,
    routes: Routes,
    prices: PriceList,
    retry: RetryPolicy,
    redactor: Redactor,
    tape: Tape,
    share: Share,
    destinations: Mutex<HashMap<String, Arc<Destination>>>,
}

#[derive(Debug)]
enum Destination {
    Replicas(Replicas),
    Offline(Offline, Option<Price>),
}

impl From<Replicas> for Destination {
    fn from(replicas: Replicas) -> Self {
        Self::Replicas(replicas)
    }
}

#[derive(Clone)]
pub struct Model {
    client: Client,
    name: Arc<str>,
    destination: Arc<Destination>,
}

/// The context of a call.
#[derive(Clone)]
pub struct Scope {
    /// Distinguishes calls of one trial from equal calls of another on cassettes.
    pub label: String,
    /// The account that pays.
    pub account: Account,
    /// When the answer is no longer useful.
    pub deadline: Option<Instant>,
    pub observer: Option<Observer>,
}

/// Receives events as they happen.
pub type Observer = Arc<dyn Fn(&CallEvent) + Send + Sync>;

impl Scope {
    /// A scope without deadline and observer.
    pub fn new(label: impl Into<String>, account: Account) -> Self {
        Self { label: label.into(), account, deadline: None, observer: None }
    }
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Called {
    pub source: Source,
    pub outcome: Result<Reply, Failure>,
    /// All events, in order.
    pub events: Vec<CallEvent>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// From the model, just now.
    Live,
    /// From a recording that replaces the model: it is charged as if it were live.
    Replay,
    /// From the cache: it is free.
    Cache,
}

impl Client {
    /// Creates a client. It opens nothing before the first call.
    pub fn new(setup: Setup) -> Self {
        let Setup { routes, prices, retry, tape, redactor } = setup;
        Self(Arc::new(Shared {
            transport: Transport::new(&routes.env),
            routes,
            prices,
            retry,
            redactor,
            tape,
            share: Share::default(),
            destinations: Mutex::default(),
        }))
    }

    /// The model with this name or endpoint id.
    pub fn model(&self, name: &str, client: Option<&ClientTable>) -> Result<Model, RouteError> {
        let key = format!("{name}\n{client:?}");
        let mut known = self.0.destinations.lock().unwrap_or_else(PoisonError::into_inner);
        let destination = match known.get(&key) {
            Some(destination) => Arc::clone(destination),
            None => {
                let destination = match self.open(name, client) {
                    // A replayed model needs no address and no key.
                    Err(_) if matches!(self.0.tape, Tape::Replay(_)) => self.ready(Vec::new())?.into(),
                    opened => opened?,
                };
                let destination = Arc::new(destination);
                known.insert(key, Arc::clone(&destination));
                destination
            }
        };
        drop(known);
        Ok(Model { client: self.clone(), name: name.into(), destination })
    }

    /// The number of processes among which the limits of its endpoints are divided.
    pub fn share(&self) -> &Share {
        &self.0.share
    }

    /// Whether the user has set limits for an endpoint of a model used so far.
    pub fn is_limited(&self) -> bool {
        let known = self.0.destinations.lock().unwrap_or_else(PoisonError::into_inner);
        known.values().any(|destination| match &**destination {
            Destination::Offline(..) => false,
            Destination::Replicas(replicas) => {
                replicas.list().iter().any(|replica| replica.line.endpoint.limits != Limits::default())
            }
        })
    }

    pub fn routes(&self) -> &Routes {
        &self.0.routes
    }

    fn open(&self, name: &str, client: Option<&ClientTable>) -> Result<Destination, RouteError> {
        match self.0.routes.resolve(name, client)? {
            Target::Offline(model) => {
                Ok(Destination::Offline(model, self.0.prices.find("offline", name, None)))
            }
            Target::Endpoints(endpoints) => self.ready(endpoints).map(Destination::from),
        }
    }

    pub(crate) fn ready(&self, endpoints: Vec<Endpoint>) -> Result<Replicas, RouteError> {
        Replicas::new(endpoints, &self.0.prices, &self.0.share).map_err(|failure| RouteError {
            what: self.scrub(failure).message,
            fix: "correct the endpoint's address and key".to_owned(),
        })
    }

    pub(crate) fn scrub(&self, mut failure: Failure) -> Failure {
        failure.message = self.0.redactor.scrub(failure.message);
        // The message of a miss is a comparison whose length is already bounded.
        if failure.kind == FailureKind::Replay { failure } else { failure.shorten() }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Scope").field(&self.label).finish()
    }
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Model").field(&self.name).finish()
    }
}

impl Model {
    /// A model that uses only this endpoint, with separate limits.
    pub(crate) fn alone(client: &Client, name: &str, endpoint: Endpoint) -> Result<Self, RouteError> {
        let destination = Destination::from(client.ready(vec![endpoint])?);
        Ok(Self { client: client.clone(), name: name.into(), destination: Arc::new(destination) })
    }

    /// Another model of the same client.
    pub fn other(&self, name: &str) -> Result<Self, RouteError> {
        self.client.model(name, None)
    }

    /// The name by which the caller requested it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The prices of its endpoints, if known.
    pub fn prices(&self) -> Vec<Option<&Price>> {
        match &*self.destination {
            Destination::Offline(_, price) => vec![price.as_ref()],
            Destination::Replicas(replicas) => {
                replicas.list().iter().map(|replica| replica.price.as_ref()).collect()
            }
        }
    }

    /// The first of its endpoints without a price, as price lists name it.
    pub fn missing_price(&self) -> Option<Missing> {
        match &*self.destination {
            Destination::Offline(_, Some(_)) => None,
            Destination::Offline(_, None) => {
                let model = self.name.strip_prefix("offline/").unwrap_or(&self.name).to_owned();
                Some(Missing { provider: OFFLINE.to_owned(), model })
            }
            Destination::Replicas(replicas) => replicas.missing_price(),
        }
    }

    /// The most that a call with this request can take, at the most expensive endpoint.
    pub fn quote(&self, request: &Request) -> Quote {
        let size = Size::of(request);
        let price = match &*self.destination {
            Destination::Offline(_, price) => price.as_ref(),
            Destination::Replicas(replicas) => replicas.dearest(|price| size.cost(price)),
        };
        size.quote(&self.name, price)
    }

    /// The most tokens that one call may read and write together: the least of its endpoints, if the price list has it.
    pub fn context_window(&self) -> Option<u64> {
        self.prices().into_iter().flatten().filter_map(|price| price.context_window).min()
    }

    /// Calls the model. Dropping the future ends the call and settles its cost.
    pub async fn call(&self, request: &Request, scope: &Scope) -> Called {
        let mut journal = Journal { events: Vec::new(), observer: scope.observer.as_ref() };
        let (outcome, source) = match &self.client.0.tape {
            Tape::Live => (self.live(request, scope, &mut journal).await.0, Source::Live),
            Tape::Replay(player) => {
                let outcome = match player.play(&scope.label, &self.name, request) {
                    Ok(played) => self.replayed(played, scope, &mut journal).await,
                    Err(miss) => Err(Failure::lasting(FailureKind::Replay, miss.to_string())),
                };
                (outcome.map_err(|failure| self.client.scrub(failure)), Source::Replay)
            }
            Tape::Record(recorder) => {
                let ticket = recorder.begin(&scope.label, &self.name, request);
                let (outcome, endpoint) = self.live(request, scope, &mut journal).await;
                let call = Call { endpoint: &endpoint, events: &journal.events, outcome: &outcome, request };
                (kept(recorder.record(ticket, &call), outcome), Source::Live)
            }
            Tape::Cache(cache) => match cache.look_up(&scope.label, &self.name, request) {
                Lookup::Found(played) => {
                    played.events.into_iter().for_each(|event| journal.add(event));
                    (played.outcome, Source::Cache)
                }
                Lookup::Ask(ticket) => {
                    let (outcome, endpoint) = self.live(request, scope, &mut journal).await;
                    let call =
                        Call { endpoint: &endpoint, events: &journal.events, outcome: &outcome, request };
                    (kept(cache.record(ticket, &call), outcome), Source::Live)
                }
            },
        };
        Called { source, outcome, events: journal.events }
    }

    /// Replays a recorded call. It is charged like the live call, so that budgets end where they ended then.
    async fn replayed(
        &self,
        played: Played,
        scope: &Scope,
        journal: &mut Journal<'_>,
    ) -> Result<Reply, Failure> {
        for event in played.events {
            bill::replay(&scope.account, &self.name, &event).await?;
            journal.add(event);
        }
        played.outcome
    }

    /// Makes a live call; returns its outcome and the label of the endpoint that was called last.
    async fn live(
        &self,
        request: &Request,
        scope: &Scope,
        journal: &mut Journal<'_>,
    ) -> (Result<Reply, Failure>, String) {
        match &*self.destination {
            Destination::Offline(model, price) => {
                let outcome = self.offline(model, price.as_ref(), request, scope, journal).await;
                (outcome, OFFLINE.to_owned())
            }
            Destination::Replicas(replicas) => {
                let mut label = String::new();
                let outcome = self.remote(replicas, request, scope, journal, &mut label).await;
                (outcome, label)
            }
        }
    }

    async fn offline(
        &self,
        model: &Offline,
        price: Option<&Price>,
        request: &Request,
        scope: &Scope,
        journal: &mut Journal<'_>,
    ) -> Result<Reply, Failure> {
        let opened = Bill::open(&scope.account, &self.name, price, Size::of(request));
        let bill = within(scope.deadline, opened)
            .await?
            .map_err(|refusal| refusal.naming(|| self.missing_price()))?;
        journal.add(CallEvent::Attempt {
            attempt: 1,
            endpoint: OFFLINE.to_owned(),
            at_most: Some(bill.most()),
        });
        let mut outcome = model.answer(request);
        let implausible = outcome.as_mut().ok().and_then(|reply| Size::of(request).doubt(reply));
        let charged = bill.close(outcome.as_ref());
        let outcome = outcome.and_then(inspected);
        journal.ended((1, 0), &outcome, charged, implausible, None);
        outcome
    }

    async fn remote(
        &self,
        replicas: &Replicas,
        request: &Request,
        scope: &Scope,
        journal: &mut Journal<'_>,
        label: &mut String,
    ) -> Result<Reply, Failure> {
        let shared = &self.client.0;
        let size = Size::of(request);
        let mut course = Course { history: History::default(), manner: None, failovers: 0 };
        for attempt in 1.. {
            // Reserves money first: a call that waits for money must not block others.
            let price = replicas.dearest(|price| size.cost(price));
            let opened = Bill::open(&scope.account, &self.name, price, size);
            let bill = within(scope.deadline, opened)
                .await?
                .map_err(|refusal| refusal.naming(|| self.missing_price()))?;
            let chosen = replicas.choose().ok_or_else(nowhere)?;
            let replica = chosen.replica;
            let bill = bill.at(replica.price.as_ref());
            label.clone_from(&replica.line.endpoint.label);
            let patience = course.history.patience_left(&shared.retry);
            let entered = replica.gate.enter(size.expected_tokens(), patience);
            let mut pass = within(scope.deadline, entered).await?.map_err(paused)?;
            journal.add(CallEvent::Attempt { attempt, endpoint: label.clone(), at_most: Some(bill.most()) });
            let manner = course.manner.unwrap_or_else(|| replica.line.manner(request));
            let started = Instant::now();
            pass.send();
            let sending = shared.transport.attempt(&replica.line, request, manner, bill.sent());
            let mut outcome = within(scope.deadline, sending).await.and_then(|outcome| outcome);
            let elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
            let implausible = outcome.as_mut().ok().and_then(|reply| size.doubt(reply));
            let charged = bill.close(outcome.as_ref());
            pass.used_tokens(charged.tokens);
            drop(pass);
            let outcome = outcome.and_then(inspected).map_err(|failure| self.client.scrub(failure));
            let Err(failure) = &outcome else {
                chosen.worked();
                replicas.retries.earn();
                if course.manner.is_some() {
                    replica.line.keep(manner);
                }
                journal.ended((attempt, elapsed_ms), &outcome, charged, implausible, None);
                return outcome;
            };
            let has_other = replicas.has_other(replica);
            chosen.failed(failure, has_other);
            let wait = course.next(failure, replicas, replica, manner, has_other, &shared.retry);
            journal.ended((attempt, elapsed_ms), &outcome, charged, implausible, wait);
            let Some(wait) = wait else { return outcome };
            within(scope.deadline, tokio::time::sleep(wait)).await?;
        }
        Err(nowhere())
    }
}

/// The history of a call, and what it will try next.
struct Course {
    history: History,
    /// The change that a refusal suggested, until it is known whether it works.
    manner: Option<Manner>,
    /// How often another replica was called at once.
    failovers: usize,
}

impl Course {
    /// The wait before the next attempt, if there is one.
    fn next(
        &mut self,
        failure: &Failure,
        replicas: &Replicas,
        replica: &Replica,
        manner: Manner,
        has_other: bool,
        policy: &RetryPolicy,
    ) -> Option<Duration> {
        if self.manner.is_none() {
            self.manner = replica.line.other_manner(failure, manner);
            if self.manner.is_some() {
                return Some(Duration::ZERO);
            }
        }
        if failure.kind == FailureKind::Auth && has_other && self.failovers < replicas.list().len() {
            self.failovers += 1;
            return Some(Duration::ZERO);
        }
        // Rate limits state their own wait, and an empty answer tells nothing about a provider's health.
        let free = matches!(failure.kind, FailureKind::Rate | FailureKind::Empty);
        let wait = self.history.next(failure, policy, aec_http::pause::chance())?;
        (free || replicas.retries.spend()).then_some(wait)
    }
}

/// Ends a future at a deadline.
async fn within<T>(deadline: Option<Instant>, future: impl Future<Output = T>) -> Result<T, Failure> {
    match deadline {
        None => Ok(future.await),
        Some(deadline) => tokio::time::timeout_at(deadline, future)
            .await
            .map_err(|_| Failure::lasting(FailureKind::Cancelled, "the time for the call was up")),
    }
}

fn nowhere() -> Failure {
    Failure::lasting(FailureKind::Request, "the model has no address")
}

/// The failure of a call whose provider demands a longer wait than the call allows.
fn paused(wait: Duration) -> Failure {
    let message = format!("the provider asks for a pause of {} more seconds", wait.as_secs());
    Failure::passing(FailureKind::Rate, message).retry_after(Some(wait))
}

/// An answer that could not be recorded is a failure: gaps in a recording would show only when it is replayed.
fn kept(written: std::io::Result<()>, outcome: Result<Reply, Failure>) -> Result<Reply, Failure> {
    match written {
        Ok(()) => outcome,
        Err(error) => {
            Err(Failure::lasting(FailureKind::Replay, format!("the call cannot be recorded: {error}")))
        }
    }
}

fn inspected(reply: Reply) -> Result<Reply, Failure> {
    match refusal::inspect(&reply) {
        Some(failure) => Err(failure),
        None => Ok(reply),
    }
}

/// Keeps events and passes them to the observer.
struct Journal<'a> {
    events: Vec<CallEvent>,
    observer: Option<&'a Observer>,
}

impl Journal<'_> {
    fn add(&mut self, event: CallEvent) {
        if let Some(observer) = self.observer {
            observer(&event);
        }
        self.events.push(event);
    }

    /// Records the end of an attempt.
    fn ended(
        &mut self,
        (attempt, elapsed_ms): (u32, u64),
        outcome: &Result<Reply, Failure>,
        charged: Charged,
        implausible: Option<Usage>,
        wait: Option<Duration>,
    ) {
        self.add(match outcome {
            Ok(reply) => CallEvent::Answered {
                attempt,
                elapsed_ms,
                usage: reply.usage,
                cost: charged.cost,
                tokens_at_most: reply.usage.is_none().then_some(charged.tokens),
                implausible,
            },
            Err(failure) => CallEvent::Failed {
                attempt,
                failure: failure.clone(),
                elapsed_ms,
                wait_ms: wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
                charged: Some(charged).filter(|charged| charged.tokens > 0),
            },
        });
    }
}
