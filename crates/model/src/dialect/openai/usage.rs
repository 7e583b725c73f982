//! Token counts as OpenAI-like servers report them. Their totals include the details; ours are disjoint.

use serde_json::{Map, Value};

use crate::message::Usage;

/// A count that is no count.
struct Nonsense;

/// The counts, and what the provider said beside them. Counts that make no sense are no counts, and all that was
/// said is left over.
pub(super) fn read(raw: Value) -> (Option<Usage>, Option<Value>) {
    let Value::Object(object) = raw else {
        return (None, (!raw.is_null()).then_some(raw));
    };
    let mut rest = object.clone();
    let (usage, rest) = match counts(&mut rest) {
        Ok(Some(usage)) => (Some(usage), rest),
        Ok(None) | Err(Nonsense) => (None, object),
    };
    (usage, (!rest.is_empty()).then_some(Value::Object(rest)))
}

fn counts(raw: &mut Map<String, Value>) -> Result<Option<Usage>, Nonsense> {
    let total = count(raw, "total_tokens")?;
    let (Some(prompt), Some(completion)) = (count(raw, "prompt_tokens")?, count(raw, "completion_tokens")?)
    else {
        return Ok(None);
    };
    let mut cached = None;
    let mut written = None;
    with_details(raw, "prompt_tokens_details", |details| {
        cached = count(details, "cached_tokens")?;
        written = count(details, "cache_write_tokens")?;
        Ok(())
    })?;
    // DeepSeek and Moonshot count reads of the cache beside the prompt.
    let misses = count(raw, "prompt_cache_miss_tokens")?;
    for key in ["prompt_cache_hit_tokens", "cached_tokens"] {
        let hits = count(raw, key)?;
        cached = cached.or(hits);
    }
    let mut reasoning = None;
    with_details(raw, "completion_tokens_details", |details| {
        reasoning = count(details, "reasoning_tokens")?;
        Ok(())
    })?;
    let (cached, written, reasoning) = (cached.unwrap_or(0), written.unwrap_or(0), reasoning.unwrap_or(0));
    // What remains when details exceed their total is nothing; the details stand, so that no token goes unpaid.
    let input = prompt.saturating_sub(cached).saturating_sub(written);
    let spoken = prompt.saturating_add(completion);
    // Where the sum of all tokens shows that thoughts were counted on top, as xAI does, they are not taken off.
    let on_top = reasoning > 0 && total == Some(spoken.saturating_add(reasoning));
    let output = if on_top { completion } else { completion.saturating_sub(reasoning) };
    if let Some(total) = total.filter(|total| *total != spoken) {
        raw.insert("total_tokens".to_owned(), total.into());
    }
    if let Some(misses) = misses.filter(|misses| *misses != input) {
        raw.insert("prompt_cache_miss_tokens".to_owned(), misses.into());
    }
    raw.retain(|_, value| !value.is_null());
    Ok(Some(Usage { input, cache_read: cached, cache_write: written, output, reasoning }))
}

fn count(raw: &mut Map<String, Value>, key: &str) -> Result<Option<u64>, Nonsense> {
    match raw.shift_remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value.as_u64().map(Some).ok_or(Nonsense),
    }
}

/// Reads counts out of an object inside the counts and leaves what it holds beside them.
fn with_details(
    raw: &mut Map<String, Value>,
    key: &str,
    read: impl FnOnce(&mut Map<String, Value>) -> Result<(), Nonsense>,
) -> Result<(), Nonsense> {
    match raw.get_mut(key) {
        None | Some(Value::Null) => Ok(()),
        Some(Value::Object(details)) => {
            read(details)?;
            details.retain(|_, value| !value.is_null());
            if details.is_empty() {
                raw.shift_remove(key);
            }
            Ok(())
        }
        Some(_) => Err(Nonsense),
    }
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
            assert_eq!(read(raw.clone()).0, Some(expected), "{raw}");
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
            assert_eq!(read(raw.clone()), (None, Some(raw)));
        }
        assert_eq!(read(Value::Null), (None, None));
        assert_eq!(read(json!({})), (None, None));
    }

    #[test]
    fn what_is_said_beside_the_counts_is_left_over() {
        let raw = json!({"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 15, "cost": 0.25, "queue_time": null,
            "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0}});
        let (counts, rest) = read(raw);
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
            let usage = read(raw).0.unwrap();
            prop_assert!(usage.all_input() >= prompt);
            prop_assert!(usage.all_output() >= completion);
            prop_assert_eq!((usage.cache_read, usage.cache_write, usage.reasoning), (cached, written, reasoning));
        }
    }
}
