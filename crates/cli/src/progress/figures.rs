//! Numbers as text during a run: short, and never more precise than they are known.

use std::time::Duration;

pub(crate) use aec_base::decimal::UNPRICED;
use aec_base::decimal::{rounded, sum_of_priced};
use aec_model::money::MicroDollars;

/// Shown instead of a value that is not known yet.
pub(crate) const UNKNOWN: &str = "—";

/// Money, rounded up: cents, or two digits of less than a cent.
pub(crate) fn money(amount: MicroDollars) -> String {
    money_by(amount, u64::div_ceil)
}

/// What was spent, and how many calls or attempts had no price.
pub(crate) fn cost(spent: MicroDollars, unpriced: u64) -> String {
    sum_of_priced(money(spent), spent.0 == 0, unpriced)
}

/// Money that may still be spent, rounded down so that it promises no more than there is.
pub(crate) fn money_left(amount: MicroDollars) -> String {
    money_by(amount, |micro, unit| micro / unit)
}

fn money_by(amount: MicroDollars, rounded: fn(u64, u64) -> u64) -> String {
    match amount.0 {
        0 => "$0.00".to_owned(),
        micro @ 1..=99 => format!("$0.{micro:06}"),
        micro @ 100..=9_900 => format!("$0.{:04}", rounded(micro, 100)),
        micro => match rounded(micro, 10_000) {
            0 => format!("$0.{:04}", rounded(micro, 100)),
            cents => format!("${}.{:02}", grouped(cents / 100), cents % 100),
        },
    }
}

/// A duration in its two largest units.
pub(crate) fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0 => format!("{} ms", time.as_millis()),
        1..=9 => format!("{seconds}.{} s", time.subsec_millis() / 100),
        10..=59 => format!("{seconds} s"),
        60..=3_599 => format!("{} m {:02} s", seconds / 60, seconds % 60),
        3_600..=86_399 => format!("{} h {:02} m", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{} d {:02} h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

/// An estimated duration, rounded to a plausible precision.
pub(crate) fn guess(time: Duration) -> String {
    let step = match time.as_secs() {
        0..=9 => 1,
        10..=59 => 5,
        60..=599 => 10,
        600..=3_599 => 60,
        _ => 600,
    };
    let seconds = time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0));
    let rounded = seconds.div_ceil(step).saturating_mul(step);
    match rounded {
        0..=59 => format!("{rounded} s"),
        60.. if step == 60 && rounded < 3_600 => format!("{} m", rounded / 60),
        _ => span(Duration::from_secs(rounded)),
    }
}

/// A rate per second, minute or hour.
pub(crate) fn rate(per_second: f64) -> String {
    if per_second <= 0.0 {
        "0/s".to_owned()
    } else if per_second >= 100.0 {
        format!("{}/s", rounded(per_second, 0))
    } else if per_second >= 1.0 {
        format!("{}/s", rounded(per_second, 1))
    } else if per_second * 60.0 >= 1.0 {
        format!("{}/min", rounded(per_second * 60.0, 1))
    } else {
        format!("{}/h", rounded(per_second * 3_600.0, 1))
    }
}

/// A large count in thousands or millions.
#[expect(clippy::cast_precision_loss, reason = "three figures are shown")]
pub(crate) fn short(count: u64) -> String {
    match count {
        0..=9_999 => count.to_string(),
        10_000..=999_949 => format!("{}k", rounded(count as f64 / 1e3, 1)),
        _ => format!("{}M", rounded(count as f64 / 1e6, 1)),
    }
}

/// A count with separated thousands.
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 infra fault`, `2 infra faults`.
pub(crate) fn many(count: usize, noun: &str) -> String {
    format!("{} {noun}{}", grouped(count as u64), if count == 1 { "" } else { "s" })
}

/// A bar with this many cells.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share between 0 and 1 of a width on a screen"
)]
pub(crate) fn bar(share: f64, cells: usize) -> String {
    let full = (share.clamp(0.0, 1.0) * cells as f64).floor() as usize;
    let full = full.min(cells);
    format!("{}{}", "█".repeat(full), "░".repeat(cells - full))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_that_is_left_is_rounded_down() {
        let shown = |micro| money_left(MicroDollars(micro));
        assert_eq!(
            [0, 99, 101, 3_650, 9_901, 10_000, 13_900, 429_999].map(shown),
            ["$0.00", "$0.000099", "$0.0001", "$0.0036", "$0.0099", "$0.01", "$0.01", "$0.42"]
        );
    }

    #[test]
    fn money_is_rounded_up() {
        let shown = |micro| money(MicroDollars(micro));
        assert_eq!(
            [0, 7, 99, 100, 101, 4_242, 9_900, 9_901, 420_000, 420_001, 1_234_567_890].map(shown),
            [
                "$0.00",
                "$0.000007",
                "$0.000099",
                "$0.0001",
                "$0.0002",
                "$0.0043",
                "$0.0099",
                "$0.01",
                "$0.42",
                "$0.43",
                "$1,234.57"
            ]
        );
        assert_eq!(shown(u64::MAX), "$18,446,744,073,709.56");
    }

    #[test]
    fn spans_and_guesses() {
        let spans = [0, 999, 3_250, 59_999, 185_000, 7_440_000, 273_600_000];
        assert_eq!(
            spans.map(|ms| span(Duration::from_millis(ms))),
            ["0 ms", "999 ms", "3.2 s", "59 s", "3 m 05 s", "2 h 04 m", "3 d 04 h"]
        );
        assert_eq!(
            spans.map(|ms| guess(Duration::from_millis(ms))),
            ["0 s", "1 s", "4 s", "1 m 00 s", "3 m 10 s", "2 h 10 m", "3 d 04 h"]
        );
        assert_eq!(guess(Duration::from_secs(1_201)), "21 m");
        assert_eq!(guess(Duration::from_secs(3_599)), "1 h 00 m");
        assert!(!guess(Duration::MAX).is_empty());
    }

    #[test]
    fn rates_and_counts() {
        assert_eq!(
            [412.3, 12.34, 0.5, 0.01, 0.0].map(rate),
            ["412/s", "12.3/s", "30.0/min", "36.0/h", "0/s"]
        );
        assert_eq!(
            [0, 9_999, 12_345, 999_949, 999_950, 12_345_678].map(short),
            ["0", "9999", "12.3k", "999.9k", "1.0M", "12.3M"]
        );
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([many(1, "trial"), many(1_000, "trial")], ["1 trial", "1,000 trials"]);
        assert_eq!([bar(0.0, 4), bar(0.5, 4), bar(2.0, 4), bar(f64::NAN, 2)], ["░░░░", "██░░", "████", "░░"]);
    }
}
