//! Timestamps in UTC as text: `2026-04-12T00:00:00Z`.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A moment in UTC. What was read is kept as it was written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(extend("format" = "date-time"))]
pub struct Timestamp(String);

/// The last second of the year 9999.
const LATEST: u64 = 253_402_300_799;

impl Timestamp {
    /// The time `seconds` after the beginning of 1970, at most the end of the year 9999.
    pub fn from_seconds(seconds: u64) -> Self {
        let seconds = seconds.min(LATEST);
        let (year, month, day) = date(seconds / 86_400);
        let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
        Self(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"))
    }

    pub fn now() -> Self {
        Self::from_seconds(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()))
    }

    pub fn now_in_milliseconds() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut text = Self::from_seconds(since.as_secs()).0;
        text.truncate(text.len() - 1);
        text.push_str(&format!(".{:03}Z", since.subsec_millis()));
        Self(text)
    }

    /// Milliseconds since the beginning of 1970; negative before it.
    pub fn to_milliseconds(&self) -> i64 {
        let digits = |from: usize, to: usize| {
            let digits = self.0.as_bytes().get(from..to).unwrap_or_default();
            digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit.wrapping_sub(b'0') % 10))
        };
        // The inverse of `date`: years begin in March and are grouped into eras of 400.
        let (month, day) = (digits(5, 7), digits(8, 10));
        let year = digits(0, 4) - i64::from(month <= 2);
        let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
        let year_of_era = year.rem_euclid(400);
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        let days = year.div_euclid(400) * 146_097 + day_of_era - 719_468;
        let seconds = digits(11, 13) * 3600 + digits(14, 16) * 60 + digits(17, 19);
        let fraction = self.0.get(19..).and_then(|rest| rest.strip_prefix('.')).unwrap_or_default();
        let thousandths =
            fraction.bytes().take_while(u8::is_ascii_digit).chain(std::iter::repeat(b'0')).take(3);
        let thousandths = thousandths.fold(0, |number, digit| number * 10 + i64::from(digit - b'0'));
        (days * 86_400 + seconds) * 1000 + thousandths
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Converts days since the beginning of 1970 to year, month and day. The calendar repeats every 400 years; years
/// begin in March here, so that the leap day is the last day of a year.
fn date(days: u64) -> (u64, u64, u64) {
    const DAYS_TO_1970: u64 = 719_468;
    const DAYS_OF_400_YEARS: u64 = 146_097;
    let days = days + DAYS_TO_1970;
    let era = days / DAYS_OF_400_YEARS;
    let day_of_era = days % DAYS_OF_400_YEARS;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

impl TryFrom<String> for Timestamp {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        const WRONG: &str = "is not a moment in UTC such as 2026-04-12T00:00:00Z";
        let shape = |byte: u8| if byte.is_ascii_digit() { b'0' } else { byte };
        let head = text.as_bytes().get(..19).ok_or(WRONG)?;
        if !head.iter().map(|byte| shape(*byte)).eq(*b"0000-00-00T00:00:00") {
            return Err(WRONG);
        }
        let number = |from: usize| u32::from(head[from] - b'0') * 10 + u32::from(head[from + 1] - b'0');
        let fits = (1..=12).contains(&number(5))
            && (1..=31).contains(&number(8))
            && number(11) < 24
            && number(14) < 60
            && number(17) <= 60;
        let rest = &text[19..];
        let zone = match rest.strip_prefix('.') {
            Some(fraction) => {
                let zone = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
                if zone.len() == fraction.len() {
                    return Err(WRONG);
                }
                zone
            }
            None => rest,
        };
        if fits && text.len() <= 40 && matches!(zone, "Z" | "+00:00") { Ok(Self(text)) } else { Err(WRONG) }
    }
}

impl From<Timestamp> for String {
    fn from(timestamp: Timestamp) -> Self {
        timestamp.0
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_and_milliseconds_are_two_ways_to_say_it() {
        // `date -u -d TEXT +%s%3N`
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1969-12-31T23:59:59.5Z", -500),
            ("2000-02-29T12:34:56.789Z", 951_827_696_789),
            ("2026-11-16T10:00:00Z", 1_794_823_200_000),
            ("9999-12-31T23:59:59.123456Z", 253_402_300_799_123),
        ] {
            assert_eq!(Timestamp::try_from(text.to_owned()).unwrap().to_milliseconds(), expected, "{text}");
        }
        for seconds in (0..LATEST).step_by(987_654_321) {
            assert_eq!(
                Timestamp::from_seconds(seconds).to_milliseconds(),
                i64::try_from(seconds * 1000).unwrap()
            );
        }
    }

    #[test]
    fn known_moments() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_775_952_000, "2026-04-12T00:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (u64::MAX, "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(Timestamp::from_seconds(seconds).as_str(), text);
            assert_eq!(Timestamp::try_from(text.to_owned()).unwrap().as_str(), text);
        }
        let now = Timestamp::now_in_milliseconds();
        assert_eq!(now.as_str().len(), "2026-04-12T00:00:00.000Z".len());
        assert!(Timestamp::try_from(now.as_str().to_owned()).is_ok());
    }

    #[test]
    fn only_moments_in_utc_are_read() {
        for good in ["2026-04-12T00:00:00.123456Z", "2026-04-12T00:00:00+00:00"] {
            assert!(Timestamp::try_from(good.to_owned()).is_ok(), "{good}");
        }
        for bad in [
            "",
            "2026-04-12",
            "2026-04-12T00:00:00",
            "2026-04-12T00:00:00+01:00",
            "2026-13-12T00:00:00Z",
            "2026-04-12T24:00:00Z",
            "2026-04-12T00:00:00.Z",
            "2026-04-12T00:00:00Zü",
            "２026-04-12T00:00:00Z",
        ] {
            assert!(Timestamp::try_from(bad.to_owned()).is_err(), "{bad}");
        }
    }
}
