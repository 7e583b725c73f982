//! Parses a reward: a number from 0 to 1, or an error. Nothing is guessed, converted or clamped.

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};

/// A reward file contains only one number.
pub const REWARD_LIMIT: u64 = 4096;

/// Why there is no reward.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RewardError {
    #[error("the verifier wrote neither reward.json nor reward.txt")]
    Missing,
    #[error("the verifier wrote both reward.json and reward.txt")]
    Two,
    #[error("the reward file cannot be read: {0}")]
    Unreadable(String),
    #[error("the reward file is not valid: {0}")]
    Invalid(String),
    #[error("the reward is {0}, not a number from 0 to 1")]
    OutOfRange(String),
}

/// The reward in `reward.json`: an object with the key `reward`; the verifier may add other keys.
pub fn from_json(bytes: &[u8]) -> Result<f64, RewardError> {
    let text = text(bytes)?;
    let RewardFile(reward) =
        aec_base::json::from_str(text).map_err(|error| RewardError::Invalid(error.to_string()))?;
    in_range(reward, text)
}

/// The reward in `reward.txt`: a decimal number and at most one line break.
pub fn from_text(bytes: &[u8]) -> Result<f64, RewardError> {
    let text = text(bytes)?;
    let text = text.strip_suffix('\n').unwrap_or(text);
    let text = text.strip_suffix('\r').unwrap_or(text);
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let reward = text.parse::<f64>().ok().filter(|_| plain);
    in_range(reward.ok_or_else(|| RewardError::Invalid("it is not a plain number".to_owned()))?, text)
}

fn text(bytes: &[u8]) -> Result<&str, RewardError> {
    if bytes.len() as u64 > REWARD_LIMIT {
        return Err(RewardError::Invalid(format!("it is longer than {REWARD_LIMIT} bytes")));
    }
    std::str::from_utf8(bytes).map_err(|_| RewardError::Invalid("it is not UTF-8".to_owned()))
}

fn in_range(reward: f64, text: &str) -> Result<f64, RewardError> {
    // A negative zero would be printed with its sign.
    if (0.0..=1.0).contains(&reward) && !reward.is_sign_negative() {
        return Ok(reward);
    }
    let shown: String = text.trim().chars().take(60).collect();
    Err(RewardError::OutOfRange(shown))
}

/// Exactly one key `reward`, whose value is a number. This is not [`aec_base::json::Strict`]: other keys are not
/// checked, not even for duplicates.
struct RewardFile(f64);

impl<'de> Deserialize<'de> for RewardFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FileVisitor;
        impl<'de> Visitor<'de> for FileVisitor {
            type Value = RewardFile;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object with the key `reward`")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<RewardFile, A::Error> {
                use serde::de::Error as _;
                let mut reward = None;
                while let Some(key) = access.next_key::<String>()? {
                    if key != "reward" {
                        access.next_value::<serde::de::IgnoredAny>()?;
                        continue;
                    }
                    let serde_json::Value::Number(number) = access.next_value()? else {
                        return Err(A::Error::custom("`reward` is not a number"));
                    };
                    let number = number.as_f64().filter(|number| number.is_finite());
                    let number = number.ok_or_else(|| A::Error::custom("`reward` is not a finite number"))?;
                    if reward.replace(number).is_some() {
                        return Err(A::Error::custom("`reward` occurs twice"));
                    }
                }
                reward.map(RewardFile).ok_or_else(|| A::Error::custom("there is no key `reward`"))
            }
        }
        deserializer.deserialize_map(FileVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rewards_from_zero_to_one_are_read() {
        for (text, reward) in [
            (r#"{"reward": 1}"#, 1.0),
            (r#"{"reward": 0.25, "note": [1, {}]}"#, 0.25),
            ("{\"reward\":0}\n", 0.0),
            (r#"{"reward": 1e-3}"#, 0.001),
        ] {
            assert_eq!(from_json(text.as_bytes()), Ok(reward), "{text}");
        }
        for (text, reward) in [("1", 1.0), ("0.5\n", 0.5), ("1.0\r\n", 1.0), ("0", 0.0)] {
            assert_eq!(from_text(text.as_bytes()), Ok(reward), "{text:?}");
        }
    }

    #[test]
    fn everything_else_is_no_reward() {
        let deep = format!(r#"{{"x": {}, "reward": 1}}"#, "[".repeat(100_000));
        let digits = format!(r#"{{"reward": {}}}"#, "9".repeat(1_000_000));
        let long_fraction = format!(r#"{{"reward": 0.{}}}"#, "3".repeat(10_000));
        for text in [
            "",
            "1",
            "null",
            "[1]",
            "{}",
            r#"{"reward": NaN}"#,
            r#"{"reward": Infinity}"#,
            r#"{"reward": -1}"#,
            r#"{"reward": -0.0}"#,
            r#"{"reward": 2}"#,
            r#"{"reward": 1.0000001}"#,
            r#"{"reward": 1e309}"#,
            r#"{"reward": true}"#,
            r#"{"reward": "1"}"#,
            r#"{"reward": [1]}"#,
            r#"{"reward": null}"#,
            r#"{"reward": 0, "reward": 1}"#,
            r#"{"reward": 1} {"reward": 1}"#,
            "\u{feff}{\"reward\": 1}",
            &deep,
            &digits,
            &long_fraction,
        ] {
            assert!(from_json(text.as_bytes()).is_err(), "{}", &text[..text.len().min(60)]);
        }
        assert!(from_json(b"{\"reward\": 1\xff}").is_err());
        for text in ["", "x", "1 ", " 1", "+1", "-0", "1\n\n", "nan", "inf", "1e0", "2", "0x1", "1,0", "１"]
        {
            assert!(from_text(text.as_bytes()).is_err(), "{text:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn whatever_is_read_is_a_reward(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..64)) {
            for reward in [from_json(&bytes), from_text(&bytes)].into_iter().flatten() {
                proptest::prop_assert!((0.0..=1.0).contains(&reward));
            }
        }

        #[test]
        fn any_number_is_read_exactly_or_refused(number in proptest::num::f64::ANY) {
            let text = format!("{{\"reward\": {number:?}}}");
            match from_json(text.as_bytes()) {
                Ok(reward) => proptest::prop_assert!(reward.to_bits() == number.to_bits()),
                Err(_) => proptest::prop_assert!(!(0.0..=1.0).contains(&number) || number.is_sign_negative()),
            }
        }
    }
}
