//! What a rollout measures: its times and its tokens.

use std::time::{Instant, SystemTime};

use aec_model::message::Usage;

use crate::results::{Finite, Span, TokenUsage};

/// Seconds since 1970, monotonic.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    epoch: f64,
    started: Instant,
}

impl Clock {
    pub(super) fn start() -> Self {
        let epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self { epoch: epoch.as_secs_f64(), started: Instant::now() }
    }

    pub(super) fn now(&self) -> Finite {
        finite(self.epoch + self.started.elapsed().as_secs_f64())
    }

    pub(super) fn start_time(&self) -> Finite {
        finite(self.epoch)
    }

    pub(super) fn since(&self, start: Finite) -> Span {
        Span { start, end: self.now() }
    }
}

pub(super) fn finite(number: f64) -> Finite {
    Finite::new(number).unwrap_or_default()
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tokens {
    pub(super) seen: bool,
    pub(super) input: u64,
    pub(super) output: u64,
    pub(super) last_total: u64,
}

impl Tokens {
    pub(super) fn add(&mut self, usage: &Usage) {
        self.seen = true;
        self.input += usage.all_input();
        self.output += usage.all_output();
        self.last_total = usage.total();
    }

    pub(super) fn row(&self) -> Option<TokenUsage> {
        self.seen.then(|| TokenUsage {
            input_tokens: self.input,
            output_tokens: self.output,
            final_output_tokens: self.output,
            final_input_tokens: self.last_total.saturating_sub(self.output),
        })
    }
}
