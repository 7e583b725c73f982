//! How long the parts of a rollout took.

use crate::results::json::{push_key, push_number};
use crate::results::number::Finite;

/// A time span, in seconds since the beginning of 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Span {
    pub start: Finite,
    pub end: Finite,
}

impl Span {
    pub fn seconds(self) -> f64 {
        self.end.get() - self.start.get()
    }

    fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"start\":");
        push_number(out, self.start);
        push_key(out, "end");
        push_number(out, self.end);
        push_key(out, "duration");
        push_seconds(out, self.seconds());
        out.push(b'}');
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timing {
    pub start_time: Finite,
    /// Preparing its state.
    pub setup: Span,
    /// All turns, including the setup.
    pub generation: Span,
    /// Computing its reward.
    pub scoring: Span,
    /// Waiting for the model, once per request.
    pub model: Vec<Span>,
    /// Waiting for the environment, once per turn.
    pub env: Vec<Span>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seconds {
    /// From the beginning of the generation to the end of the scoring.
    pub total: f64,
    /// Preparing the state.
    pub setup: f64,
    /// All turns.
    pub generation: f64,
    /// Waiting for the model.
    pub model: f64,
    /// Waiting for the environment.
    pub env: f64,
    /// Computing the reward.
    pub scoring: f64,
    /// The total without setup, model, environment and scoring.
    pub overhead: f64,
}

impl Timing {
    pub fn seconds(&self) -> Seconds {
        let sum = |spans: &[Span]| spans.iter().fold(0.0, |sum, span| sum + span.seconds());
        let (setup, scoring) = (self.setup.seconds(), self.scoring.seconds());
        let (model, env) = (sum(&self.model), sum(&self.env));
        let total = self.scoring.end.get() - self.generation.start.get();
        Seconds {
            total,
            setup,
            generation: self.generation.seconds(),
            model,
            env,
            scoring,
            overhead: total - setup - model - env - scoring,
        }
    }

    pub fn write(&self, out: &mut Vec<u8>) {
        let seconds = self.seconds();
        out.extend_from_slice(b"{\"start_time\":");
        push_number(out, self.start_time);
        for (key, span) in [("setup", self.setup), ("generation", self.generation), ("scoring", self.scoring)]
        {
            push_key(out, key);
            span.write(out);
        }
        for (key, spans, sum) in [("model", &self.model, seconds.model), ("env", &self.env, seconds.env)] {
            push_key(out, key);
            write_spans(out, spans, sum);
        }
        push_key(out, "total");
        push_seconds(out, seconds.total);
        push_key(out, "overhead");
        push_seconds(out, seconds.overhead);
        out.push(b'}');
    }
}

fn write_spans(out: &mut Vec<u8>, spans: &[Span], sum: f64) {
    out.extend_from_slice(b"{\"spans\":[");
    for (index, span) in spans.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        span.write(out);
    }
    out.push(b']');
    push_key(out, "duration");
    if spans.is_empty() {
        // Python's sum of an empty list.
        out.push(b'0');
    } else {
        push_seconds(out, sum);
    }
    out.push(b'}');
}

/// Differences of finite numbers are infinite only for absurd clocks, so 0 will do.
fn push_seconds(out: &mut Vec<u8>, seconds: f64) {
    push_number(out, Finite::new(seconds).unwrap_or_default());
}
