//! The cost of one attempt: reserved before it is sent, settled when it is over, however it ends.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::event::{CallEvent, Charged};
use crate::failure::Failure;
use crate::message::{Part, Reply, Request, Usage};
use crate::meter::{Account, Charge, Quote, Refusal, Reservation};
use crate::money::MicroDollars;
use crate::price::{Bound, DEFAULT_IMAGE_TOKENS, Price, input_bound, output_bound};

/// A usage may exceed the bound of its request, because providers add prompts and thoughts of their own. This many times
/// the bound is not more tokens, but a mistake.
const MOST_TIMES: u64 = 16;

/// Tokens that one call may always report, however small its request is: more than a model takes in.
const MOST_PLAUSIBLE: u64 = 2_000_000;

/// Upper bounds of a request's tokens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    input: Bound,
    output: u64,
}

impl Size {
    pub(crate) fn of(request: &Request) -> Self {
        Self { input: input_bound(request), output: output_bound(&request.sampling) }
    }

    /// A rough estimate of its tokens, for limits per minute.
    pub(crate) fn expected_tokens(&self) -> u64 {
        // A token is about four bytes, and few answers use their whole limit.
        const USUAL_ANSWER: u64 = 1024;
        self.input.tokens / 4 + self.output.min(USUAL_ANSWER)
    }

    /// Takes a usage that cannot be true away from a reply, and returns it: it would be booked as money that nobody was
    /// asked for. The call is then charged as one whose provider reports no usage.
    pub(crate) fn doubt(&self, reply: &mut Reply) -> Option<Usage> {
        let images = self.input.images.saturating_mul(DEFAULT_IMAGE_TOKENS);
        let most = self.input.tokens.saturating_add(images).saturating_add(self.output);
        let plausible = most.saturating_mul(MOST_TIMES).max(MOST_PLAUSIBLE);
        if reply.usage?.total() > plausible { reply.usage.take() } else { None }
    }

    /// The most that it can take.
    pub(crate) fn quote(&self, model: &str, price: Option<&Price>) -> Quote {
        Quote::new(model, price, self.input, self.output)
    }

    /// The most that it can cost.
    pub(crate) fn cost(&self, price: &Price) -> MicroDollars {
        price.worst_case(self.input.tokens, self.output, self.input.images)
    }
}

/// Whether a provider may charge for an attempt. It stays readable when the attempt is abandoned halfway.
#[derive(Debug, Default)]
pub struct Sent(AtomicBool);

impl Sent {
    /// From now on the provider may bill the request.
    pub(crate) fn yes(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// The request was not sent after all, or the provider refused it.
    pub(crate) fn no(&self) {
        self.0.store(false, Ordering::Release);
    }
}

/// An attempt that must be paid for. Dropping it settles what may have been billed so far.
#[derive(Debug)]
pub(crate) struct Bill<'a> {
    reservation: Option<Reservation>,
    price: Option<&'a Price>,
    size: Size,
    sent: Sent,
}

impl<'a> Bill<'a> {
    /// Reserves the most that the attempt can cost.
    pub(crate) async fn open(
        account: &Account,
        model: &str,
        price: Option<&'a Price>,
        size: Size,
    ) -> Result<Self, Refusal> {
        let reservation = Some(account.reserve(size.quote(model, price)).await?);
        Ok(Self { reservation, price, size, sent: Sent::default() })
    }

    /// Uses the price of the chosen endpoint, which is at most the reserved one.
    pub(crate) fn at(mut self, price: Option<&'a Price>) -> Self {
        self.price = price;
        self
    }

    /// The flag that the attempt sets when it may be billed.
    pub(crate) fn sent(&self) -> &Sent {
        &self.sent
    }

    /// Settles an attempt that has ended and returns its charge.
    pub(crate) fn close(mut self, outcome: Result<&Reply, &Failure>) -> Charged {
        let charge = match outcome {
            Ok(Reply { usage: Some(usage), .. }) => {
                Charge::Actual { usage: *usage, cost: self.price.map(|price| price.cost(usage)) }
            }
            // A token is at least one byte of the reply.
            Ok(reply) => self.at_most((spoken(reply) as u64).min(self.size.output)),
            Err(_) => self.unknown(),
        };
        self.settle(charge)
    }

    /// The most that the attempt can take, however it ends.
    pub(crate) fn most(&self) -> Charged {
        let most = self.size.quote("", self.price);
        Charged { usage: None, tokens: most.tokens, cost: most.money }
    }

    /// What may have been billed for an answer whose end did not arrive. Hidden thoughts leave no trace in a stream, so
    /// the length of what arrived is no bound: the charge is all or nothing.
    fn unknown(&self) -> Charge {
        if self.sent.0.load(Ordering::Acquire) { self.at_most(self.size.output) } else { Charge::Nothing }
    }

    fn at_most(&self, output: u64) -> Charge {
        let most = Quote::new("", self.price, self.size.input, output);
        Charge::Bound { tokens: most.tokens, cost: most.money }
    }

    fn settle(&mut self, charge: Charge) -> Charged {
        let charged = match &charge {
            Charge::Actual { usage, cost } => {
                Charged { usage: Some(*usage), tokens: usage.total(), cost: *cost }
            }
            Charge::Bound { tokens, cost } => Charged { usage: None, tokens: *tokens, cost: *cost },
            Charge::Nothing => {
                Charged { usage: None, tokens: 0, cost: self.price.map(|_| MicroDollars::ZERO) }
            }
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
            let charge = self.unknown();
            self.settle(charge);
        }
    }
}

/// Charges a replayed attempt like the live one, and reserves exactly that. Whether it fitted the budget was decided
/// then: a cassette also holds refusals.
pub(crate) async fn replay(account: &Account, model: &str, event: &CallEvent) -> Result<(), Refusal> {
    let charged = match event {
        CallEvent::Attempt { .. } => return Ok(()),
        CallEvent::Failed { charged: Some(charged), .. } => *charged,
        CallEvent::Failed { charged: None, .. } => {
            let nothing = Quote { model: model.into(), money: Some(MicroDollars::ZERO), tokens: 0 };
            account.reserve(nothing).await?.settle(Charge::Nothing);
            return Ok(());
        }
        CallEvent::Answered { usage, cost, tokens_at_most, .. } => {
            let tokens = usage.map(|usage| usage.total()).or(*tokens_at_most).unwrap_or(0);
            Charged { usage: *usage, tokens, cost: *cost }
        }
    };
    let Charged { usage, tokens, cost } = charged;
    let reservation = account.reserve(Quote { model: model.into(), money: cost, tokens }).await?;
    reservation.settle(match usage {
        Some(usage) => Charge::Actual { usage, cost },
        None => Charge::Bound { tokens, cost },
    });
    Ok(())
}

/// The length of a reply in bytes.
fn spoken(reply: &Reply) -> usize {
    let length = |part: &Part| match part {
        Part::Text { text } | Part::Reasoning { text, .. } => text.len(),
        Part::ToolCall(call) => call.name.len() + call.arguments.len(),
        Part::Image { .. } | Part::ToolResult { .. } => 0,
    };
    reply.parts.iter().map(length).sum()
}
