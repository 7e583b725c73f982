//! Limits an endpoint's concurrent calls and calls per minute.
//!
//! Concurrency adapts: it doubles with every round of answers until the endpoint first signals overload, shrinks by
//! three tenths each time it does, and then grows by one with every round of answers.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::endpoint::Limits;

/// Complaints within this time count as one: all calls in flight meet the same limit.
const ONE_COMPLAINT: Duration = Duration::from_secs(1);

/// Longest pause that a provider can impose; after it the gate lets calls through again.
const LONGEST_PAUSE: Duration = Duration::from_mins(2);

/// The number of processes among which the limits of endpoints are divided. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Share(Arc<AtomicU32>);

impl Share {
    pub fn divide_among(&self, processes: u32) {
        self.0.store(processes, Ordering::Relaxed);
    }

    pub fn processes(&self) -> u32 {
        self.0.load(Ordering::Relaxed).max(1)
    }
}

/// Limits the calls to one endpoint.
#[derive(Debug)]
pub struct Gate {
    semaphore: Arc<Semaphore>,
    limits: Limits,
    share: Share,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Concurrent calls allowed now.
    limit: u32,
    /// Permits to withhold when they return, because the limit fell while they were in use.
    debt: u32,
    /// Answers since the limit last grew.
    answers: u32,
    /// True until the first complaint.
    doubling: bool,
    last_complaint: Option<Instant>,
    /// No call goes through before this.
    closed_until: Option<Instant>,
    requests: Option<Allowance>,
    tokens: Option<Allowance>,
}

/// The permit of a call in flight. Dropping it returns the permit, and any rate allowance that was not used.
#[derive(Debug)]
pub struct Pass {
    gate: Arc<Gate>,
    permit: Option<OwnedSemaphorePermit>,
    /// Requests and tokens counted against the limits per minute.
    counted: (u64, u64),
    /// The factor by which they count: the number of processes that share the limits.
    weight: u64,
    sent: bool,
}

impl Gate {
    pub fn new(limits: Limits) -> Arc<Self> {
        Self::shared(limits, Share::default())
    }

    pub fn shared(limits: Limits, share: Share) -> Arc<Self> {
        let limit = limits.first_concurrency.clamp(1, most(&limits, &share));
        Arc::new(Self {
            semaphore: Arc::new(Semaphore::new(limit as usize)),
            limits,
            share,
            state: Mutex::new(State {
                limit,
                debt: 0,
                answers: 0,
                doubling: true,
                last_complaint: None,
                closed_until: None,
                requests: limits.requests_per_minute.map(|rate| Allowance::new(rate.into())),
                tokens: limits.tokens_per_minute.map(|rate| Allowance::new(rate.into())),
            }),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Concurrent calls allowed now.
    pub fn limit(&self) -> u32 {
        self.state().limit
    }

    /// The fraction of permits in use, from 0 to 1, or above 1 when the limit fell.
    pub fn load(&self) -> f64 {
        let state = self.state();
        let taken = f64::from(state.limit + state.debt);
        #[expect(clippy::cast_precision_loss, reason = "a few thousand at most")]
        let free = self.semaphore.available_permits() as f64;
        (taken - free) / f64::from(state.limit)
    }

    #[cfg(test)]
    fn free(&self) -> usize {
        self.semaphore.available_permits()
    }

    /// Waits for a permit, for the rate limits, and for the end of a pause that the provider imposed. If pauses exceed
    /// `patience`, returns their length as an error.
    pub async fn enter(self: &Arc<Self>, expected_tokens: u64, patience: Duration) -> Result<Pass, Duration> {
        self.make_room();
        // The semaphore is never closed; if it were, letting the call through is better than blocking forever.
        let permit = Arc::clone(&self.semaphore).acquire_owned().await.ok();
        let weight = u64::from(self.share.processes());
        let counted = (weight, expected_tokens.saturating_mul(weight));
        let pass = Pass { gate: Arc::clone(self), permit, counted, weight, sent: false };
        let at = self.state().appointment(counted);
        if let Some(at) = at {
            tokio::time::sleep_until(at).await;
        }
        // Further pauses may be imposed while waiting.
        let began = Instant::now();
        loop {
            let closed_until = self.state().closed_until;
            match closed_until {
                Some(until) if until > Instant::now() => {
                    if until - began > patience {
                        return Err(until - began);
                    }
                    tokio::time::sleep_until(until).await;
                }
                _ => return Ok(pass),
            }
        }
    }

    /// Lowers the limit when other processes have joined.
    fn make_room(&self) {
        let most = most(&self.limits, &self.share);
        let mut state = self.state();
        if state.limit > most {
            self.lower(&mut state, most);
        }
    }

    fn lower(&self, state: &mut State, limit: u32) {
        let taken_away = (state.limit - limit) as usize;
        state.limit = limit;
        let idle = self.semaphore.forget_permits(taken_away);
        state.debt += u32::try_from(taken_away - idle).unwrap_or(0);
    }

    /// Reports a success, which may raise the limit.
    pub fn answered(&self) {
        let most = most(&self.limits, &self.share);
        let mut state = self.state();
        state.answers += 1;
        if state.answers < state.limit || state.limit >= most {
            return;
        }
        state.answers = 0;
        let more = if state.doubling { state.limit } else { 1 };
        let limit = state.limit.saturating_add(more).min(most);
        let mut added = limit - state.limit;
        state.limit = limit;
        let forgiven = added.min(state.debt);
        state.debt -= forgiven;
        added -= forgiven;
        self.semaphore.add_permits(added as usize);
    }

    /// Reports that the endpoint is overloaded, and the pause that it asks for.
    pub fn complained(&self, pause: Option<Duration>) {
        let now = Instant::now();
        let mut state = self.state();
        if let Some(pause) = pause {
            let until = now + pause.min(LONGEST_PAUSE);
            state.closed_until = Some(state.closed_until.map_or(until, |known| known.max(until)));
        }
        if state.last_complaint.is_some_and(|last| now - last < ONE_COMPLAINT) {
            return;
        }
        state.last_complaint = Some(now);
        state.doubling = false;
        state.answers = 0;
        let limit = (state.limit * 7 / 10).max(1);
        self.lower(&mut state, limit);
    }
}

/// This process's share of the concurrent calls.
fn most(limits: &Limits, share: &Share) -> u32 {
    (limits.max_concurrency / share.processes()).max(1)
}

impl Pass {
    /// Marks the request as sent, so that it counts.
    pub fn send(&mut self) {
        self.sent = true;
    }

    /// Corrects the estimated tokens to the actual number.
    pub fn used_tokens(&mut self, tokens: u64) {
        let mut state = self.gate.state();
        if let Some(allowance) = &mut state.tokens {
            allowance.correct(self.counted.1, tokens.saturating_mul(self.weight));
        }
        drop(state);
        self.counted.1 = 0;
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut state = self.gate.state();
        if let Some(allowance) = &mut state.tokens {
            allowance.correct(self.counted.1, 0);
        }
        if let Some(allowance) = state.requests.as_mut().filter(|_| !self.sent) {
            allowance.correct(self.counted.0, 0);
        }
        if state.debt > 0
            && let Some(permit) = self.permit.take()
        {
            state.debt -= 1;
            permit.forget();
        }
    }
}

impl State {
    /// When a call of this size may go, if not at once.
    fn appointment(&mut self, (requests, tokens): (u64, u64)) -> Option<Instant> {
        let now = Instant::now();
        let requests = self.requests.as_mut().and_then(|allowance| allowance.take(requests, now));
        let tokens = self.tokens.as_mut().and_then(|allowance| allowance.take(tokens, now));
        requests.max(tokens)
    }
}

/// A rate per minute, spread evenly, with a burst of a tenth of a minute.
#[derive(Debug)]
struct Allowance {
    seconds_each: f64,
    burst: Duration,
    /// When everything granted so far will be earned.
    earned_at: Option<Instant>,
}

impl Allowance {
    fn new(per_minute: u64) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "limits are far below 2^53")]
        let seconds_each = 60.0 / per_minute.max(1) as f64;
        Self { seconds_each, burst: Duration::from_secs(6), earned_at: None }
    }

    fn time_for(&self, count: u64) -> Duration {
        #[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^53")]
        Duration::from_secs_f64((self.seconds_each * count as f64).min(86_400.0))
    }

    /// Takes `count`; returns when they may be used, if not now.
    fn take(&mut self, count: u64, now: Instant) -> Option<Instant> {
        let earned_at = self.earned_at.filter(|at| *at > now).unwrap_or(now);
        self.earned_at = Some(earned_at + self.time_for(count));
        let ahead = earned_at - now;
        let wait = ahead.saturating_sub(self.burst);
        (!wait.is_zero()).then(|| now + wait)
    }

    fn correct(&mut self, expected: u64, actual: u64) {
        let Some(earned_at) = self.earned_at else { return };
        self.earned_at = if actual >= expected {
            Some(earned_at + self.time_for(actual - expected))
        } else {
            earned_at.checked_sub(self.time_for(expected - actual))
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(first: u32, max: u32) -> Limits {
        Limits { max_concurrency: max, first_concurrency: first, ..Limits::default() }
    }

    async fn enter(gate: &Arc<Gate>, tokens: u64) -> Pass {
        gate.enter(tokens, Duration::from_mins(1)).await.unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_used_is_given_back() {
        let mut limits = limits(1000, 1000);
        limits.requests_per_minute = Some(60);
        limits.tokens_per_minute = Some(60_000);
        let gate = Gate::new(limits);
        let before = Instant::now();
        for _ in 0..200 {
            drop(enter(&gate, 5000).await);
        }
        assert!(before.elapsed().is_zero(), "{:?}", before.elapsed());
        // Callers that give up while waiting use nothing.
        let waiting: Vec<_> = (0..50)
            .map(|_| {
                let gate = Arc::clone(&gate);
                tokio::spawn(async move {
                    tokio::time::timeout(Duration::from_secs(1), async {
                        let mut pass = enter(&gate, 6000).await;
                        pass.send();
                        std::future::pending::<()>().await;
                    })
                    .await
                })
            })
            .collect();
        for task in waiting {
            task.await.unwrap().unwrap_err();
        }
        let before = Instant::now();
        enter(&gate, 100).await;
        assert!(before.elapsed().as_secs() < 10, "{:?}", before.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn the_limit_doubles_until_the_first_complaint_and_then_creeps() {
        let gate = Gate::new(limits(2, 100));
        for _ in 0..2 {
            gate.answered();
        }
        assert_eq!((gate.limit(), gate.free()), (4, 4));
        for _ in 0..4 {
            gate.answered();
        }
        assert_eq!(gate.limit(), 8);
        gate.complained(None);
        assert_eq!((gate.limit(), gate.free()), (5, 5));
        gate.complained(None);
        assert_eq!(gate.limit(), 5, "calls in flight together complain once");
        tokio::time::advance(ONE_COMPLAINT).await;
        gate.complained(None);
        assert_eq!(gate.limit(), 3);
        for _ in 0..3 {
            gate.answered();
        }
        assert_eq!((gate.limit(), gate.free()), (4, 4));
        for _ in 0..20 {
            tokio::time::advance(ONE_COMPLAINT).await;
            gate.complained(None);
        }
        assert_eq!(gate.limit(), 1, "never nobody");
    }

    #[tokio::test(start_paused = true)]
    async fn places_that_are_out_are_withheld_when_they_come_back() {
        let gate = Gate::new(limits(10, 10));
        let mut passes = Vec::new();
        for _ in 0..10 {
            passes.push(enter(&gate, 0).await);
        }
        gate.complained(None);
        assert_eq!((gate.limit(), gate.free()), (7, 0));
        passes.truncate(7);
        assert_eq!(gate.free(), 0, "three of them are gone");
        passes.clear();
        assert_eq!(gate.free(), 7);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_passes_during_a_pause() {
        let gate = Gate::new(limits(10, 10));
        gate.complained(Some(Duration::from_secs(5)));
        let before = Instant::now();
        enter(&gate, 0).await;
        assert_eq!(before.elapsed().as_secs(), 5);
        gate.complained(Some(Duration::from_secs(50)));
        let refused = gate.enter(0, Duration::from_secs(10)).await;
        assert!(refused.is_err_and(|wait| wait.as_secs() >= 49), "nobody waits longer than they want");
        gate.complained(Some(Duration::from_hours(24)));
        let before = Instant::now();
        gate.enter(0, Duration::from_mins(5)).await.unwrap();
        assert_eq!(before.elapsed(), LONGEST_PAUSE, "a day is too long for anybody");
    }

    #[tokio::test(start_paused = true)]
    async fn so_many_per_minute() {
        let mut limits = limits(1000, 1000);
        limits.requests_per_minute = Some(60);
        let gate = Gate::new(limits);
        let before = Instant::now();
        for _ in 0..66 {
            enter(&gate, 0).await.send();
        }
        let elapsed = before.elapsed().as_secs_f64();
        assert!((58.9..=59.1).contains(&elapsed), "60 per minute after a burst of six: {elapsed}");
    }

    #[tokio::test(start_paused = true)]
    async fn limits_are_divided_among_processes() {
        let mut limits = limits(8, 100);
        limits.requests_per_minute = Some(240);
        limits.tokens_per_minute = Some(240_000);
        let share = Share::default();
        share.divide_among(4);
        let gate = Gate::shared(limits, share.clone());
        let before = Instant::now();
        for _ in 0..66 {
            enter(&gate, 10).await.send();
        }
        let elapsed = before.elapsed().as_secs_f64();
        assert!((58.9..=59.1).contains(&elapsed), "a quarter of 240 per minute after a burst: {elapsed}");
        tokio::time::advance(Duration::from_mins(1)).await;
        let before = Instant::now();
        for _ in 0..20 {
            let mut pass = enter(&gate, 60_000).await;
            pass.used_tokens(600);
        }
        assert!(before.elapsed().as_secs() <= 70, "what was not used is given back: {:?}", before.elapsed());
        for _ in 0..200 {
            gate.answered();
        }
        assert_eq!(gate.limit(), 25, "a quarter of the places");
        share.divide_among(10);
        drop(enter(&gate, 0).await);
        assert_eq!((gate.limit(), gate.free()), (10, 10), "others have come");
        share.divide_among(1);
        for _ in 0..1000 {
            gate.answered();
        }
        assert_eq!(gate.limit(), 100, "others have gone");
        share.divide_among(1000);
        drop(enter(&gate, 0).await);
        assert_eq!(gate.limit(), 1, "never nobody");
    }

    #[tokio::test(start_paused = true)]
    async fn tokens_per_minute_follow_what_was_really_used() {
        let mut limits = limits(1000, 1000);
        limits.tokens_per_minute = Some(60_000);
        let gate = Gate::new(limits);
        let before = Instant::now();
        for _ in 0..20 {
            let mut pass = enter(&gate, 6000).await;
            pass.used_tokens(600);
        }
        assert!(before.elapsed().as_secs() <= 7, "12,000 tokens, not 120,000: {:?}", before.elapsed());
        for _ in 0..10 {
            let mut pass = enter(&gate, 600).await;
            pass.used_tokens(12_000);
        }
        assert!(before.elapsed().as_secs() >= 100, "{:?}", before.elapsed());
    }
}
