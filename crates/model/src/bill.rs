//! The money side of one attempt: reserved before it is sent, settled when it is over, whatever becomes of it.

use crate::event::{CallEvent, Charged};
use crate::failure::Failure;
use crate::message::{Part, Reply, Request};
use crate::meter::{Account, Charge, Quote, Refusal, Reservation};
use crate::money::MicroDollars;
use crate::price::{Bound, Price, input_bound, output_bound};
use crate::transport::{Billed, Progress};

/// Tokens that a provider may have produced, beyond what arrived, before it noticed that nobody listens.
const UNDER_WAY: u64 = 1024;

/// An attempt that will have to be paid. Dropping it settles what may have been billed so far.
#[derive(Debug)]
pub(crate) struct Bill<'a> {
    reservation: Option<Reservation>,
    price: Option<&'a Price>,
    bound: Bound,
    output_limit: u64,
    progress: Progress,
}

/// Tokens that a request will roughly take, for limits per minute.
pub(crate) fn expected_tokens(request: &Request) -> u64 {
    // A token is about four bytes, and few answers use their whole limit.
    const USUAL_ANSWER: u64 = 1024;
    input_bound(request).tokens / 4 + u64::from(request.sampling.output_limit()).min(USUAL_ANSWER)
}

impl<'a> Bill<'a> {
    /// Reserves what the attempt can cost at most.
    pub(crate) async fn open(
        account: &Account,
        model: &str,
        price: Option<&'a Price>,
        request: &Request,
    ) -> Result<Self, Refusal> {
        let bound = input_bound(request);
        let output_limit = output_bound(&request.sampling);
        let quote = Quote::new(model, price, bound, output_limit);
        let reservation = Some(account.reserve(quote).await?);
        Ok(Self { reservation, price, bound, output_limit, progress: Progress::default() })
    }

    /// Where the attempt says how far it has come.
    pub(crate) fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Settles an attempt that has ended; what it took.
    pub(crate) fn close(mut self, outcome: Result<&Reply, &Failure>) -> Charged {
        let charge = match outcome {
            Ok(reply) => match reply.usage {
                Some(usage) => Charge::Actual { usage, cost: self.price.map(|price| price.cost(&usage)) },
                None => self.at_most(Billed::Received(spoken(reply))),
            },
            Err(_) => self.at_most(self.progress.billed()),
        };
        self.settle(charge)
    }

    /// Settles an attempt that was replayed, as it was settled when it was live.
    pub(crate) fn close_replayed(mut self, event: &CallEvent) {
        let charge = match event {
            CallEvent::Answered { usage: Some(usage), cost, .. } => {
                Charge::Actual { usage: *usage, cost: *cost }
            }
            CallEvent::Failed { charged: Some(Charged { tokens, cost }), .. } => {
                Charge::Bound { tokens: *tokens, cost: *cost }
            }
            _ => Charge::Nothing,
        };
        self.settle(charge);
    }

    /// The most that can have been billed.
    fn at_most(&self, billed: Billed) -> Charge {
        let output = match billed {
            Billed::Nothing => return Charge::Nothing,
            Billed::Unknown => self.output_limit,
            // A token is at least one byte.
            Billed::Received(bytes) => (bytes as u64).saturating_add(UNDER_WAY).min(self.output_limit),
        };
        let most = Quote::new("", self.price, self.bound, output);
        Charge::Bound { tokens: most.tokens, cost: most.money }
    }

    fn settle(&mut self, charge: Charge) -> Charged {
        let charged = match &charge {
            Charge::Actual { usage, cost } => Charged { tokens: usage.total(), cost: *cost },
            Charge::Bound { tokens, cost } => Charged { tokens: *tokens, cost: *cost },
            Charge::Nothing => Charged { tokens: 0, cost: self.price.map(|_| MicroDollars::ZERO) },
        };
        if let Some(reservation) = self.reservation.take() {
            reservation.settle(charge);
        }
        charged
    }
}

impl Drop for Bill<'_> {
    fn drop(&mut self) {
        if self.reservation.is_some() {
            let charge = self.at_most(self.progress.billed());
            self.settle(charge);
        }
    }
}

/// Bytes that a reply says.
fn spoken(reply: &Reply) -> usize {
    let length = |part: &Part| match part {
        Part::Text { text } | Part::Reasoning { text, .. } => text.len(),
        Part::ToolCall(call) => call.name.len() + call.arguments.len(),
        Part::Image { .. } | Part::ToolResult { .. } => 0,
    };
    reply.parts.iter().map(length).sum()
}
