//! The cost of an attempt's model calls, derived from its events alone: after a crash there is no other source.

use aec_model::event::{CallEvent, Charged};
use aec_model::message::Usage;

use super::Event;
use crate::record::Cost;

#[expect(clippy::cast_precision_loss, reason = "dollars of one trial fit")]
pub fn cost(events: &[Event]) -> Cost {
    let mut open: Vec<(u32, Option<Charged>)> = Vec::new();
    let (mut calls, mut unbilled, mut unpriced) = (0_u64, 0_u64, 0_u64);
    let (mut usage, mut spent, mut unconfirmed, mut unconfirmed_tokens) =
        (Usage::default(), 0_u64, 0_u64, 0_u64);
    let mut take = |charged: Charged| {
        calls += 1;
        match charged.usage {
            Some(took) => usage = usage.plus(&took),
            None => unconfirmed_tokens += charged.tokens,
        }
        match charged.cost {
            Some(cost) => {
                spent += cost.0;
                unconfirmed += if charged.usage.is_none() { cost.0 } else { 0 };
            }
            None => unpriced += 1,
        }
    };
    for event in events.iter().filter_map(|event| event.call.as_ref()) {
        let ended = match event {
            CallEvent::Attempt { attempt, at_most, .. } => {
                open.push((*attempt, *at_most));
                continue;
            }
            CallEvent::Failed { attempt, charged, .. } => {
                match charged {
                    Some(charged) => take(*charged),
                    None => unbilled += 1,
                }
                *attempt
            }
            CallEvent::Answered { attempt, usage, cost, tokens_at_most, .. } => {
                take(Charged { usage: *usage, tokens: tokens_at_most.unwrap_or(0), cost: *cost });
                *attempt
            }
        };
        // Calls may overlap, and events do not name their call; any open call with this attempt number will do.
        if let Some(at) = open.iter().position(|(attempt, _)| *attempt == ended) {
            open.remove(at);
        }
    }
    // The cost of calls in flight is unknown: budgets assume the upper bound.
    for at_most in open.iter().filter_map(|(_, at_most)| *at_most) {
        let cost = at_most.cost.map_or(0, |cost| cost.0);
        spent += cost;
        unconfirmed += cost;
        unconfirmed_tokens += at_most.tokens;
    }
    let known = (unconfirmed_tokens == 0 && open.is_empty()).then_some(usage);
    Cost {
        model_calls: calls,
        unbilled_calls: unbilled,
        unpriced_calls: unpriced,
        unsettled_calls: open.len() as u64,
        tokens_in: known.map(|usage| usage.all_input()),
        tokens_out: known.map(|usage| usage.all_output()),
        cache_read_tokens: known.map(|usage| usage.cache_read),
        cache_write_tokens: known.map(|usage| usage.cache_write),
        reasoning_tokens: known.map(|usage| usage.reasoning),
        unconfirmed_tokens,
        estimated_cost_usd: (unpriced == 0).then(|| spent as f64 / 1e6),
        unconfirmed_cost_usd: unconfirmed as f64 / 1e6,
        ..Cost::default()
    }
}

#[cfg(test)]
mod tests {
    use aec_model::failure::{Failure, FailureKind};
    use aec_model::money::MicroDollars;

    use super::*;

    fn event(call: CallEvent) -> Event {
        Event { call: Some(call), ..Event::default() }
    }

    fn sent(attempt: u32) -> Event {
        let at_most = Some(Charged { usage: None, tokens: 1000, cost: Some(MicroDollars(40)) });
        event(CallEvent::Attempt { attempt, endpoint: "e".to_owned(), at_most })
    }

    #[test]
    fn calls_that_ended_are_counted_and_calls_under_way_are_unsettled() {
        let usage = Usage { input: 10, output: 5, ..Usage::default() };
        let answered = |cost| CallEvent::Answered {
            attempt: 1,
            elapsed_ms: 1,
            usage: Some(usage),
            cost,
            tokens_at_most: None,
            implausible: None,
        };
        let failed = |attempt, charged| CallEvent::Failed {
            attempt,
            failure: Failure::lasting(FailureKind::Server, "x"),
            elapsed_ms: 1,
            wait_ms: None,
            charged,
        };
        let lost = Charged { usage: None, tokens: 100, cost: Some(MicroDollars(7)) };
        let done = [sent(1), event(answered(Some(MicroDollars(3))))];
        let all = cost(&done);
        assert_eq!(
            (all.model_calls, all.unsettled_calls, all.tokens_in, all.tokens_out),
            (1, 0, Some(10), Some(5))
        );
        assert_eq!(all.estimated_cost_usd, Some(3e-6));
        let more = [sent(1), event(failed(1, None)), sent(2), event(failed(2, Some(lost))), sent(3)];
        let all = cost(&more);
        assert_eq!((all.model_calls, all.unbilled_calls, all.unsettled_calls), (1, 1, 1));
        assert_eq!((all.tokens_in, all.unconfirmed_tokens), (None, 1100), "one failed, one is under way");
        assert_eq!((all.estimated_cost_usd, all.unconfirmed_cost_usd), (Some(47e-6), 47e-6));
        let unpriced = cost(&[sent(1), event(answered(None))]);
        assert_eq!((unpriced.unpriced_calls, unpriced.estimated_cost_usd), (1, None));
    }
}
