//! How long to wait before another attempt: one rule for calls and all other retries.
//!
//! [`Rule::wait`] is pure: its inputs are the number of failures, the wait that the server asked for and a random
//! number. Callers that only repeat until an attempt works use [`attempts`], which also sleeps. Callers that count
//! attempts themselves, such as model calls and rollouts, use [`Rule::wait`] with [`chance`].

use std::hash::{BuildHasher as _, RandomState};
use std::time::{Duration, SystemTime};

use http::HeaderMap;
use http::header::RETRY_AFTER;

/// Longest plausible wait; a header may hold any number.
const LONGEST_READ: f64 = 1e9;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Wait after the first failure. It doubles with each further one.
    pub first: Duration,
    /// Longest wait that we choose ourselves.
    pub longest: Duration,
    /// Longest wait that the server may ask for. If it asks for more, the caller gives up.
    pub longest_asked: Duration,
}

impl Rule {
    /// A rule that grants the server no longer waits than our own.
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, longest_asked: longest }
    }

    /// The wait after `failures` failures (at least one); `None` if the server asks for more than is granted.
    ///
    /// `chance` is a number from 0 to 1 that differs between callers, so that callers that failed together do not
    /// retry together: it shortens our own waits by up to a half and prolongs requested waits by up to a quarter.
    /// After the first failure the server's wait is used as it is; after later failures the wait is at least our own.
    pub fn wait(&self, failures: u32, asked: Option<Duration>, chance: f64) -> Option<Duration> {
        let Some(asked) = asked else { return Some(self.own_wait(failures, chance)) };
        if asked > self.longest_asked {
            return None;
        }
        let asked = if failures > 1 { asked.max(self.whole(failures)) } else { asked };
        Some(asked.saturating_add(scaled(asked.max(self.first), share(chance) * 0.25)))
    }

    /// The wait after `failures` failures if the server cannot ask for one.
    pub fn own_wait(&self, failures: u32, chance: f64) -> Duration {
        scaled(self.whole(failures), 0.5 + share(chance) * 0.5)
    }

    fn whole(&self, failures: u32) -> Duration {
        self.first.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(self.longest)
    }
}

fn share(chance: f64) -> f64 {
    if chance.is_finite() { chance.clamp(0.0, 1.0) } else { 1.0 }
}

fn scaled(wait: Duration, by: f64) -> Duration {
    // Rounding must not make a very long wait longer.
    Duration::try_from_secs_f64(wait.as_secs_f64() * by).map_or(wait, |scaled| scaled.min(wait))
}

/// Whether another attempt can help after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outlook {
    /// The same attempt would fail again.
    Final,
    /// A later attempt may work, perhaps after the time that the server asks for.
    Passing(Option<Duration>),
}

/// Makes attempts until one works, one fails finally, `most` were made, or the server asks for too long a wait.
pub async fn attempts<T, E, F: Future<Output = Result<T, E>>>(
    rule: &Rule,
    most: u32,
    mut attempt: impl FnMut() -> F,
    outlook: impl Fn(&E) -> Outlook,
) -> Result<T, E> {
    let mut failures = 0;
    loop {
        let error = match attempt().await {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        failures += 1;
        let wait = match outlook(&error) {
            Outlook::Passing(asked) if failures < most => rule.wait(failures, asked, chance()),
            Outlook::Passing(_) | Outlook::Final => None,
        };
        let Some(wait) = wait else { return Err(error) };
        tokio::time::sleep(wait).await;
    }
}

/// A number in [0, 1) that differs from call to call. It only spreads waits, so its quality does not matter.
pub fn chance() -> f64 {
    let bits = RandomState::new().hash_one(0u8) >> 11;
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    let fraction = bits as f64 / (1u64 << 53) as f64;
    fraction
}

/// How long the server asks to wait: `retry-after-ms` in milliseconds, or `retry-after` in seconds or as a date. A
/// date in the past asks for nothing; other values are ignored.
pub fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let number = |text: &str, scale: f64| {
        let value: f64 = text.parse().ok()?;
        let seconds = (value.is_finite() && value >= 0.0).then_some((value * scale).min(LONGEST_READ))?;
        Duration::try_from_secs_f64(seconds).ok()
    };
    if let Some(wait) = text("retry-after-ms").and_then(|value| number(value, 1e-3)) {
        return Some(wait);
    }
    let value = text(RETRY_AFTER.as_str())?;
    number(value, 1.0).or_else(|| {
        let date = httpdate::parse_http_date(value).ok()?;
        Some(date.duration_since(now).unwrap_or_default())
    })
}

#[cfg(test)]
mod tests {

    use std::cell::Cell;

    use http::{HeaderName, HeaderValue};
    use proptest::prelude::*;

    use super::*;

    const RULE: Rule = Rule {
        first: Duration::from_millis(500),
        longest: Duration::from_secs(30),
        longest_asked: Duration::from_mins(2),
    };

    fn own(chance: f64) -> Vec<u128> {
        (1..=8).map(|failures| RULE.own_wait(failures, chance).as_millis()).collect()
    }

    #[test]
    fn waits_double_up_to_the_longest() {
        assert_eq!(own(1.0), [500, 1000, 2000, 4000, 8000, 16000, 30000, 30000]);
        assert_eq!(own(0.0), [250, 500, 1000, 2000, 4000, 8000, 15000, 15000]);
    }

    #[test]
    fn the_other_side_may_ask_for_more_but_not_for_too_much() {
        let asked = |failures, seconds, chance| {
            let asked = Some(Duration::from_secs(seconds));
            RULE.wait(failures, asked, chance).map(|wait| wait.as_millis())
        };
        assert_eq!(asked(1, 7, 0.0), Some(7000));
        assert_eq!(asked(1, 7, 1.0), Some(8750));
        assert_eq!(asked(1, 0, 1.0), Some(125), "even `now` is spread");
        assert_eq!(asked(2, 0, 0.0), Some(1000), "and not believed twice");
        assert_eq!(asked(1, 120, 0.0), Some(120_000));
        assert_eq!(asked(1, 121, 0.0), None);
    }

    fn duration() -> impl Strategy<Value = Duration> {
        prop_oneof![
            (0..100_000u64).prop_map(Duration::from_millis),
            any::<u64>().prop_map(Duration::from_secs),
            Just(Duration::ZERO),
            Just(Duration::MAX),
        ]
    }

    proptest! {
        #[test]
        fn waits_stay_within_their_bounds(
            (first, longest, longest_asked) in (duration(), duration(), duration()),
            failures in any::<u32>(),
            asked in proptest::option::of(duration()),
            chance in prop_oneof![0.0..1.0, any::<f64>()],
        ) {
            let rule = Rule { first, longest, longest_asked };
            match (asked, rule.wait(failures, asked, chance)) {
                (Some(asked), None) => prop_assert!(asked > longest_asked),
                (None, None) => prop_assert!(false, "our own waits never end the attempts"),
                (Some(asked), Some(wait)) => {
                    prop_assert!(asked <= longest_asked && asked <= wait);
                    let most = asked.max(longest);
                    prop_assert!(wait <= most.saturating_add(most.max(first)));
                }
                (None, Some(wait)) => {
                    prop_assert!(wait <= longest);
                    let more = rule.own_wait(failures.saturating_add(1), chance);
                    prop_assert!(more >= wait, "waits do not get shorter");
                }
            }
        }

        #[test]
        fn no_header_is_a_surprise(text in "\\PC*", seconds in any::<u64>()) {
            let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
            if let Ok(value) = HeaderValue::from_str(&text) {
                let mut headers = HeaderMap::new();
                headers.insert(RETRY_AFTER, value);
                retry_after(&headers, now);
            }
            prop_assert_eq!(read(&seconds.to_string()).unwrap().as_secs(), seconds.min(1_000_000_000));
            prop_assert_eq!(read(&format!("-{}", seconds.max(1))), None);
        }
    }

    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000)
    }

    fn read(text: &str) -> Option<Duration> {
        let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_str(text).unwrap())]);
        retry_after(&headers, now())
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        assert_eq!(read("12"), Some(Duration::from_secs(12)));
        assert_eq!(read(" 1.5 "), Some(Duration::from_millis(1500)));
        let date = |time| read(&httpdate::fmt_http_date(time));
        assert_eq!(date(now() + Duration::from_secs(30)), Some(Duration::from_secs(30)));
        assert_eq!(date(now() - Duration::from_secs(30)), Some(Duration::ZERO));
        for garbage in
            ["", "soon", "-1", "-0.5", "NaN", "inf", "1e999", "12 seconds", "0x10", "Mon, 99 Foo 2026"]
        {
            assert_eq!(read(garbage), None, "{garbage:?}");
        }
        assert_eq!(read("99999999999999999999999999"), Some(Duration::from_secs(1_000_000_000)));
        let milliseconds = HeaderName::from_static("retry-after-ms");
        let headers = HeaderMap::from_iter([
            (milliseconds, HeaderValue::from_static("250")),
            (RETRY_AFTER, HeaderValue::from_static("9")),
        ]);
        assert_eq!(retry_after(&headers, now()), Some(Duration::from_millis(250)));
        assert_eq!(retry_after(&HeaderMap::new(), now()), None);
    }

    #[tokio::test(start_paused = true)]
    async fn attempts_end_when_one_works_or_none_can() {
        let made = Cell::new(0);
        let count = async |outcome: Result<(), Outlook>, most| {
            made.set(0);
            let attempt = || {
                made.set(made.get() + 1);
                std::future::ready(outcome)
            };
            let ended = attempts(&RULE, most, attempt, |outlook| *outlook).await;
            (ended.is_ok(), made.get())
        };
        assert_eq!(count(Ok(()), 4).await, (true, 1));
        assert_eq!(count(Err(Outlook::Passing(None)), 4).await, (false, 4));
        assert_eq!(count(Err(Outlook::Passing(Some(Duration::from_secs(1)))), 2).await, (false, 2));
        assert_eq!(count(Err(Outlook::Passing(Some(Duration::from_hours(1)))), 4).await, (false, 1));
        assert_eq!(count(Err(Outlook::Final), 4).await, (false, 1));
        assert_eq!(
            count(Err(Outlook::Passing(None)), 0).await,
            (false, 1),
            "the first attempt is always made"
        );
    }
}
