//! Token counts as OpenAI-like servers report them. Their totals include the details; ours are disjoint.

use serde_json::Value;

use super::node::{Node, Object};
use crate::message::Usage;

const PROMPT_DETAILS: &str = "prompt_tokens_details";
const COMPLETION_DETAILS: &str = "completion_tokens_details";

const CACHE_HITS: [&str; 2] = ["prompt_cache_hit_tokens", "cached_tokens"];
const CACHE_MISSES: &str = "prompt_cache_miss_tokens";

/// An invalid count.
struct Nonsense;

/// The counts, and further fields that the provider sent. If the counts are invalid, everything is left over.
pub(super) fn read(raw: Node<'_>) -> (Option<Usage>, Option<Value>) {
    let Node::Object(mut object) = raw else {
        return (None, (!raw.is_null()).then(|| raw.into()));
    };
    let usage = counts(&object).unwrap_or_default();
    if let Some(usage) = &usage {
        take_counts(&mut object, usage);
    }
    (usage, (!object.is_empty()).then(|| Node::Object(object).into()))
}

fn counts(raw: &Object<'_>) -> Result<Option<Usage>, Nonsense> {
    let total = count(raw, "total_tokens")?;
    let (Some(prompt), Some(completion)) = (count(raw, "prompt_tokens")?, count(raw, "completion_tokens")?)
    else {
        return Ok(None);
    };
    let mut cached = count_within(raw, PROMPT_DETAILS, "cached_tokens")?;
    let written = count_within(raw, PROMPT_DETAILS, "cache_write_tokens")?.unwrap_or(0);
    count(raw, CACHE_MISSES)?;
    // DeepSeek and Moonshot report cache reads outside the prompt details.
    for key in CACHE_HITS {
        let hits = count(raw, key)?;
        cached = cached.or(hits);
    }
    let cached = cached.unwrap_or(0);
    let reasoning = count_within(raw, COMPLETION_DETAILS, "reasoning_tokens")?.unwrap_or(0);
    // If details exceed their total, the remainder is zero and the details are kept, so that no token goes unpaid.
    let input = prompt.saturating_sub(cached).saturating_sub(written);
    // If the total shows that thoughts were counted separately, as xAI does, they are not subtracted.
    let spoken = prompt.saturating_add(completion);
    let on_top = reasoning > 0 && total == Some(spoken.saturating_add(reasoning));
    let output = if on_top { completion } else { completion.saturating_sub(reasoning) };
    Ok(Some(Usage { input, cache_read: cached, cache_write: written, output, reasoning }))
}

fn count(raw: &Object<'_>, key: &str) -> Result<Option<u64>, Nonsense> {
    raw.get(key).map(|value| value.as_u64().ok_or(Nonsense)).transpose()
}

fn count_within(raw: &Object<'_>, details: &str, key: &str) -> Result<Option<u64>, Nonsense> {
    match raw.get(details) {
        None => Ok(None),
        Some(Node::Object(details)) => count(details, key),
        Some(_) => Err(Nonsense),
    }
}

/// Removes everything that the counts express.
fn take_counts(raw: &mut Object<'_>, usage: &Usage) {
    let number = |key: &str| raw.get(key).and_then(Node::as_u64).unwrap_or(0);
    let spoken = number("prompt_tokens").saturating_add(number("completion_tokens"));
    raw.retain(|key, value| match key {
        "prompt_tokens" | "completion_tokens" => false,
        "total_tokens" => value.as_u64().is_some_and(|total| total != spoken),
        CACHE_MISSES => value.as_u64().is_some_and(|misses| misses != usage.input),
        key if CACHE_HITS.contains(&key) => false,
        PROMPT_DETAILS => holds_more(value, &["cached_tokens", "cache_write_tokens"]),
        COMPLETION_DETAILS => holds_more(value, &["reasoning_tokens"]),
        _ => !value.is_null(),
    });
}

/// Whether details hold more than these counts, which are removed.
fn holds_more(details: &mut Node<'_>, counts: &[&str]) -> bool {
    let Node::Object(details) = details else { return false };
    details.retain(|key, value| !counts.contains(&key) && !value.is_null());
    !details.is_empty()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn usage(input: u64, cache_read: u64, cache_write: u64, output: u64, reasoning: u64) -> Usage {
        Usage { input, cache_read, cache_write, output, reasoning }
    }

    #[test]
    fn counters_are_disjoint() {
        let cases = [
            (json!({"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 14}), usage(10, 0, 0, 4, 0)),
            (
                json!({"prompt_tokens": 10, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 8},
                    "completion_tokens_details": {"reasoning_tokens": 3}}),
                usage(2, 8, 0, 1, 3),
            ),
            (
                json!({"prompt_tokens": 10, "completion_tokens": 4,
                    "prompt_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 5}}),
                usage(2, 3, 5, 4, 0),
            ),
            // Details that exceed the total.
            (
                json!({"prompt_tokens": 10, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 11},
                    "completion_tokens_details": {"reasoning_tokens": 5}}),
                usage(0, 11, 0, 0, 5),
            ),
            // DeepSeek.
            (
                json!({"prompt_tokens": 10, "completion_tokens": 4, "prompt_cache_hit_tokens": 6, "prompt_cache_miss_tokens": 4}),
                usage(4, 6, 0, 4, 0),
            ),
            // Moonshot.
            (json!({"prompt_tokens": 10, "completion_tokens": 4, "cached_tokens": 6}), usage(4, 6, 0, 4, 0)),
            // xAI.
            (
                json!({"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 314,
                    "completion_tokens_details": {"reasoning_tokens": 300}}),
                usage(10, 0, 0, 4, 300),
            ),
            (
                json!({"prompt_tokens": 10, "completion_tokens": 4, "prompt_tokens_details": null,
                    "completion_tokens_details": null, "total_tokens": null}),
                usage(10, 0, 0, 4, 0),
            ),
        ];
        for (raw, expected) in cases {
            assert_eq!(read(raw.clone().into()).0, Some(expected), "{raw}");
        }
    }

    #[test]
    fn nonsense_is_no_usage_and_is_kept() {
        let cases = [
            json!({"prompt_tokens": -1, "completion_tokens": 4}),
            json!({"prompt_tokens": 10, "completion_tokens": 4.5}),
            json!({"prompt_tokens": "10", "completion_tokens": 4}),
            json!({"prompt_tokens": 10}),
            json!({"prompt_tokens": 10, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": -3}}),
            json!({"prompt_tokens": 10, "completion_tokens": 4, "prompt_tokens_details": [1]}),
            json!({"prompt_tokens": 10, "completion_tokens": 4, "completion_tokens_details": {"reasoning_tokens": true}}),
            json!([1, 2]),
            json!(7),
        ];
        for raw in cases {
            assert_eq!(read(raw.clone().into()), (None, Some(raw)));
        }
        assert_eq!(read(Node::Null), (None, None));
        assert_eq!(read(json!({}).into()), (None, None));
    }

    #[test]
    fn what_is_said_beside_the_counts_is_left_over() {
        let raw = json!({"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 15, "cost": 0.25, "queue_time": null,
            "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0}});
        let (counts, rest) = read(raw.into());
        assert_eq!(counts, Some(usage(10, 0, 0, 4, 0)));
        assert_eq!(
            rest,
            Some(json!({"cost": 0.25, "prompt_tokens_details": {"audio_tokens": 0}, "total_tokens": 15}))
        );
    }

    proptest! {
        #[test]
        fn nothing_goes_uncounted(prompt: u64, completion: u64, cached: u64, written: u64, reasoning: u64, total: Option<u64>) {
            let raw = json!({"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total,
                "prompt_tokens_details": {"cached_tokens": cached, "cache_write_tokens": written},
                "completion_tokens_details": {"reasoning_tokens": reasoning}});
            let usage = read(raw.into()).0.unwrap();
            prop_assert!(usage.all_input() >= prompt);
            prop_assert!(usage.all_output() >= completion);
            prop_assert_eq!((usage.cache_read, usage.cache_write, usage.reasoning), (cached, written, reasoning));
        }
    }
}
