//! Options of the server: its answers, speed and faults.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use aec_model::script::Script;

use crate::fault::Fault;

/// Options of a test server. With the defaults it answers every request at once.
#[derive(Clone)]
pub struct Options {
    /// Port on 127.0.0.1; 0 means any free one.
    pub port: u16,
    /// Seed of answers and faults.
    pub seed: u64,
    pub answers: Answers,
    /// Tokens of a drawn answer.
    pub output_tokens: Range<u32>,
    /// Share of the requests with tools whose drawn answer calls one.
    pub tool_calls: f64,
    /// Time until the answer begins.
    pub latency: Range<Duration>,
    /// Speed of a stream; unlimited when absent.
    pub tokens_per_second: Option<f64>,
    /// Faults and their probabilities, which add up to at most 1.
    pub faults: Vec<Fault>,
    /// The wait that a rate limit asks for.
    pub retry_after: Duration,
    /// Requests above this many at a time are refused.
    pub limit_in_flight: Option<usize>,
    /// A bucket of this many requests that refills within a minute.
    pub requests_per_minute: Option<u32>,
    /// The key that requests must carry; any key when absent.
    pub key: Option<String>,
    /// The keys with which Bedrock requests must be signed; any signature of the right shape when absent.
    pub aws: Option<AwsKeys>,
    /// How many requests to keep for [`crate::TestServer::requests`]; the oldest are dropped first.
    pub keep_requests: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            port: 0,
            seed: 0,
            answers: Answers::Drawn,
            output_tokens: Range { least: 16, most: 64 },
            tool_calls: 0.0,
            latency: Range::only(Duration::ZERO),
            tokens_per_second: None,
            faults: Vec::new(),
            retry_after: Duration::from_secs(1),
            limit_in_flight: None,
            requests_per_minute: None,
            key: None,
            aws: None,
            keep_requests: 0,
        }
    }
}

/// Without the keys.
impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("port", &self.port)
            .field("seed", &self.seed)
            .field("latency", &self.latency)
            .field("faults", &self.faults)
            .finish_non_exhaustive()
    }
}

impl Options {
    /// Reports the first contradiction between options.
    pub fn check(&self) -> Result<(), String> {
        let sum: f64 = self.faults.iter().map(|fault| fault.probability).sum();
        if !(0.0..=1.0 + 1e-9).contains(&sum) {
            return Err(format!("the probabilities of the faults add up to {sum}, which is more than 1"));
        }
        if !(0.0..=1.0).contains(&self.tool_calls) {
            return Err(format!("the share of tool calls is {}, not a number from 0 to 1", self.tool_calls));
        }
        if self.tokens_per_second.is_some_and(|speed| !speed.is_finite() || speed <= 0.0) {
            return Err("tokens per second must be more than 0".to_owned());
        }
        if self.requests_per_minute == Some(0) || self.limit_in_flight == Some(0) {
            return Err("a limit of 0 refuses everything; leave it out or make it at least 1".to_owned());
        }
        Ok(())
    }
}

#[derive(Clone, Debug, Default)]
pub enum Answers {
    /// Words derived from the seed and the request.
    #[default]
    Drawn,
    /// The last text of the user.
    Echo,
    /// Reply k for a request with k assistant turns; the last reply for any further turn.
    Script(Arc<Script>),
}

/// Keys with which requests to Bedrock are signed.
#[derive(Clone)]
pub struct AwsKeys {
    pub access_key_id: String,
    pub secret_access_key: String,
    /// The token of temporary keys.
    pub session_token: Option<String>,
}

impl fmt::Debug for AwsKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AwsKeys").field("access_key_id", &self.access_key_id).finish_non_exhaustive()
    }
}

/// A range with both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range<T> {
    pub least: T,
    pub most: T,
}

impl<T: Copy + PartialOrd> Range<T> {
    /// A range of one value.
    pub fn only(value: T) -> Self {
        Self { least: value, most: value }
    }

    fn parse(text: &str, one: impl Fn(&str) -> Result<T, String>) -> Result<Self, String> {
        let range = match text.split_once("..") {
            Some((least, most)) => Self { least: one(least.trim())?, most: one(most.trim())? },
            None => Self::only(one(text.trim())?),
        };
        if range.least > range.most {
            return Err(format!("`{text}` goes backwards"));
        }
        Ok(range)
    }
}

impl FromStr for Range<u32> {
    type Err = String;

    /// `40` or `16..64`.
    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse(text, |number| {
            number.parse().map_err(|_| format!("`{number}` is not a whole number such as 40"))
        })
    }
}

impl FromStr for Range<Duration> {
    type Err = String;

    /// `50ms` or `20ms..2s`.
    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse(text, duration)
    }
}

/// Parses a duration such as `50ms`, `1.5s`, `2m`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a duration such as 50ms, 1.5s or 2m");
    let digits = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let scale = match unit {
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        _ if number == "0" && unit.is_empty() => 0.0,
        _ => return Err(wrong()),
    };
    let number: f64 = number.parse().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(number * scale)
        .ok()
        .filter(|duration| duration.as_secs() <= 86_400)
        .ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::FaultKind;

    #[test]
    fn durations_and_ranges_as_written() {
        let milliseconds = Duration::from_millis;
        assert_eq!(duration("50ms"), Ok(milliseconds(50)));
        assert_eq!(duration("1.5s"), Ok(milliseconds(1500)));
        assert_eq!(duration("2m"), Ok(milliseconds(120_000)));
        assert_eq!(duration("0"), Ok(Duration::ZERO));
        for wrong in ["", "5", "ms", "-1s", "1h", "1e9s", "NaNs", "infs", "5 s", "100000s"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
        let range = Range { least: milliseconds(20), most: milliseconds(2000) };
        assert_eq!("20ms..2s".parse(), Ok(range));
        assert_eq!("7".parse(), Ok(Range::only(7_u32)));
        assert_eq!("1..9".parse(), Ok(Range { least: 1_u32, most: 9 }));
        for wrong in ["9..1", "..", "1..", "-1", "1...3", "a"] {
            assert!(wrong.parse::<Range<u32>>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn contradictions_are_found() {
        assert_eq!(Options::default().check(), Ok(()));
        let share = |probability| Fault { kind: FaultKind::Rate, probability };
        let wrong = [
            Options { faults: vec![share(0.6), share(0.6)], ..Options::default() },
            Options { tool_calls: 1.5, ..Options::default() },
            Options { tokens_per_second: Some(0.0), ..Options::default() },
            Options { tokens_per_second: Some(f64::NAN), ..Options::default() },
            Options { requests_per_minute: Some(0), ..Options::default() },
            Options { limit_in_flight: Some(0), ..Options::default() },
        ];
        for options in wrong {
            assert!(options.check().is_err(), "{options:?}");
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        let keys = AwsKeys {
            access_key_id: "AKIA".to_owned(),
            secret_access_key: "hidden".to_owned(),
            session_token: Some("hidden".to_owned()),
        };
        assert!(!format!("{keys:?}").contains("hidden"));
        let options = Options { key: Some("hidden".to_owned()), aws: Some(keys), ..Options::default() };
        assert!(!format!("{options:?}").contains("hidden"));
    }

    proptest::proptest! {
        #[test]
        fn no_text_is_too_strange(text in "\\PC{0,20}") {
            drop(duration(&text));
            drop(text.parse::<Range<u32>>());
            drop(text.parse::<Range<Duration>>());
            drop(text.parse::<Fault>());
        }
    }
}
