//! Exact decimal numbers.

/// A number: its digits without zeros at either end, and a power of ten. Equal numbers of any size are equal values,
/// however they were written.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Decimal {
    negative: bool,
    digits: String,
    exponent: i64,
}

impl Decimal {
    /// `digits` (ASCII) times ten to the power of `exponent`.
    pub fn new(negative: bool, digits: &str, exponent: i64) -> Self {
        let kept = digits.trim_end_matches('0');
        let dropped = i64::try_from(digits.len() - kept.len()).unwrap_or_default();
        let kept = kept.trim_start_matches('0');
        if kept.is_empty() {
            return Self { negative: false, digits: String::new(), exponent: 0 };
        }
        Self { negative, digits: kept.to_owned(), exponent: exponent.saturating_add(dropped) }
    }

    /// `units` times ten to the power of minus `places`.
    pub fn of_units(units: i128, places: u32) -> Self {
        Self::new(units < 0, &units.unsigned_abs().to_string(), -i64::from(places))
    }

    /// Reads a plain number: sign, digits, fraction, exponent, and nothing else.
    pub fn parse(text: &str) -> Option<Self> {
        let (negative, text) = match text.strip_prefix(['-', '−']) {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.len() + fraction.len() == 0 || !all_digits(whole) || !all_digits(fraction) {
            return None;
        }
        let exponent = i64::from(exponent) - i64::try_from(fraction.len()).ok()?;
        Some(Self::new(negative, &format!("{whole}{fraction}"), exponent))
    }

    /// The shortest decimal that reads back as this number, which is what the author wrote if it had at most fifteen
    /// digits; `None` for NaN and infinities.
    pub fn of(number: f64) -> Option<Self> {
        number.is_finite().then(|| Self::parse(&format!("{number:e}"))).flatten()
    }

    /// The nearest floating-point number; infinite if the decimal is too large.
    pub fn to_f64(&self) -> f64 {
        let digits = if self.is_zero() { "0" } else { &self.digits };
        let sign = if self.negative { "-" } else { "" };
        format!("{sign}{digits}e{}", self.exponent).parse().unwrap_or(f64::INFINITY)
    }

    #[must_use]
    pub fn absolute(&self) -> Self {
        Self { negative: false, ..self.clone() }
    }

    #[must_use]
    pub fn negated(&self) -> Self {
        Self { negative: !self.negative && !self.is_zero(), ..self.clone() }
    }

    pub fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// The digits of a whole number that ends in at most `most_zeros` zeros; `None` for others.
    pub fn whole_text(&self, most_zeros: usize) -> Option<String> {
        let zeros = usize::try_from(self.exponent).ok().filter(|zeros| *zeros <= most_zeros)?;
        let digits = if self.is_zero() { "0" } else { &self.digits };
        Some(format!("{}{digits}{}", if self.negative { "-" } else { "" }, "0".repeat(zeros)))
    }

    /// The number of digits after the decimal point.
    pub fn places(&self) -> u32 {
        u32::try_from(self.exponent.saturating_neg()).unwrap_or(if self.exponent < 0 { u32::MAX } else { 0 })
    }

    /// The number as a count of units of ten to the power of minus `places`; `None` if it has more decimals or is too
    /// large.
    pub fn in_units(&self, places: u32) -> Option<i128> {
        (self.places() <= places).then(|| self.units_towards_zero(places)).flatten()
    }

    /// Like [`Self::in_units`], but drops further decimals; `None` only if the number is too large.
    pub fn units_towards_zero(&self, places: u32) -> Option<i128> {
        let shift = self.exponent.checked_add(i64::from(places))?;
        let units = match u32::try_from(shift) {
            Ok(zeros) => {
                self.digits_as_number(self.digits.len())?.checked_mul(10_i128.checked_pow(zeros)?)?
            }
            Err(_) => {
                let dropped = usize::try_from(shift.unsigned_abs()).unwrap_or(usize::MAX);
                self.digits_as_number(self.digits.len().saturating_sub(dropped))?
            }
        };
        Some(if self.negative { -units } else { units })
    }

    fn digits_as_number(&self, count: usize) -> Option<i128> {
        if count == 0 { Some(0) } else { self.digits.get(..count)?.parse().ok() }
    }

    /// Equal numbers, and only these, give the same text.
    pub fn canonical(&self) -> String {
        format!("{}{}e{}", if self.negative { "-" } else { "" }, self.digits, self.exponent)
    }
}

/// The cost of what has no price. It is not known, and it is not nothing.
pub const UNPRICED: &str = "unpriced";

/// Dollars for display: cents, or four decimals below one dollar.
pub fn dollars(amount: f64) -> String {
    match amount {
        0.0 => "$0".to_owned(),
        small if small.abs() < 1.0 => format!("${}", rounded(small, 4)),
        large => format!("${}", rounded(large, 2)),
    }
}

/// A number for display, rounded to decimal places. A number that rounds to zero has no sign: `-0.000` would look like
/// a loss.
pub fn rounded(number: f64, places: usize) -> String {
    let text = format!("{number:.places$}");
    match text.strip_prefix('-') {
        Some(zero) if zero.bytes().all(|byte| matches!(byte, b'0' | b'.')) => zero.to_owned(),
        _ => text,
    }
}

/// A share in percent, rounded to one decimal; a half is rounded up. It is computed from counts, because the nearest
/// binary fraction of a half may be on either side of it.
pub fn percent(part: usize, whole: usize) -> String {
    let (part, whole) = (part as u128, whole as u128);
    let tenths = (2000 * part + whole).checked_div(2 * whole).unwrap_or(0);
    format!("{}.{} %", tenths / 10, tenths % 10)
}

/// A rounded difference for display: with its sign, also if it is not negative.
pub fn signed(difference: f64, places: usize) -> String {
    let text = rounded(difference, places);
    if text.starts_with('-') || difference.is_nan() { text } else { format!("+{text}") }
}

/// What was spent for display, and how many attempts or calls had no price.
pub fn cost(spent: f64, unpriced: usize) -> String {
    sum_of_priced(dollars(spent), spent <= 0.0, unpriced as u64)
}

/// A sum of prices as text, and how many attempts or calls had none.
pub fn sum_of_priced(sum: String, is_nothing: bool, unpriced: u64) -> String {
    match known_sum(sum, is_nothing, unpriced) {
        None => UNPRICED.to_owned(),
        Some(sum) if unpriced == 0 => sum,
        Some(sum) => format!("{sum} and {unpriced} {UNPRICED}"),
    }
}

/// A sum of prices, for people and for programs: if nothing had a price, the sum says nothing, and it is not zero.
pub fn known_sum<T>(sum: T, is_nothing: bool, unpriced: u64) -> Option<T> {
    (unpriced == 0 || !is_nothing).then_some(sum)
}

#[cfg(test)]
mod tests {

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn equal_numbers_are_equal() {
        for (left, right) in [
            ("1250", "1.25e3"),
            ("0", "-0.000"),
            ("+007.50", "7.5"),
            ("−3", "-3"),
            (".5", "5e-1"),
            ("1.", "1"),
            ("123456789012345678901234567890", "1.2345678901234567890123456789e29"),
        ] {
            assert_eq!(Decimal::parse(left).unwrap(), Decimal::parse(right).unwrap(), "{left} {right}");
        }
        for text in [
            "",
            ".",
            "-",
            "e5",
            "1e",
            "1e99999999999",
            "1,5",
            "0x1",
            "NaN",
            "inf",
            "1_0",
            "1.2.3",
            " 1",
            "--1",
        ] {
            assert_eq!(Decimal::parse(text), None, "{text}");
        }
        assert_ne!(Decimal::parse("10000000000000000000001"), Decimal::parse("10000000000000000000002"));
    }

    #[test]
    fn units_are_whole_or_none() {
        let units = |text: &str, places| Decimal::parse(text).unwrap().in_units(places);
        assert_eq!(units("0.075", 6), Some(75_000));
        assert_eq!(units("-2.5", 1), Some(-25));
        assert_eq!(units("0.0000001", 6), None);
        assert_eq!(units("1e30", 6), Some(10_i128.pow(36)));
        assert_eq!(units("1e39", 0), None);
        assert_eq!(units("0", 0), Some(0));
        let cut = |text: &str, places| Decimal::parse(text).unwrap().units_towards_zero(places);
        assert_eq!((cut("8.2", 6), cut("-1.29", 1), cut("0.009", 2)), (Some(8_200_000), Some(-12), Some(0)));
        let whole = |text: &str| Decimal::parse(text).unwrap().whole_text(3);
        assert_eq!((whole("-1.2e4").as_deref(), whole("-0").as_deref()), (Some("-12000"), Some("0")));
        assert_eq!((whole("1e4"), whole("0.5")), (None, None));
        assert_eq!(Decimal::parse("-5").unwrap().negated(), Decimal::parse("5").unwrap());
        assert!(Decimal::parse("0").unwrap().negated().is_zero());
        assert_eq!(Decimal::parse("0.0250").unwrap().places(), 3);
        assert_eq!(Decimal::parse("2500").unwrap().places(), 0);
    }

    #[test]
    fn dollars_are_short() {
        assert_eq!([0.0, 0.25, -0.5, 12.345].map(dollars), ["$0", "$0.2500", "$-0.5000", "$12.35"]);
        assert_eq!([cost(0.0, 0), cost(0.0, 2), cost(1.5, 2)], ["$0", "unpriced", "$1.50 and 2 unpriced"]);
    }

    #[test]
    fn what_rounds_to_zero_has_no_sign() {
        let shown = [-0.0004, -0.0, 0.0, -0.0006, 2.5].map(|number| rounded(number, 3));
        assert_eq!(shown, ["0.000", "0.000", "0.000", "-0.001", "2.500"]);
        assert_eq!([-0.4, -0.6, f64::NAN].map(|number| rounded(number, 0)), ["0", "-1", "NaN"]);
        let shown = [-0.0004, 0.0, 0.0006, -1.0, f64::NAN].map(|number| signed(number, 3));
        assert_eq!(shown, ["+0.000", "+0.000", "+0.001", "-1.000", "NaN"]);
        assert_eq!(dollars(-0.000_01), "$0.0000");
    }

    #[test]
    fn percentages_are_rounded_not_cut() {
        let shown = [(13, 16), (2, 3), (1, 16), (1, 3), (999, 1000), (9_996, 10_000), (3, 3), (0, 3), (0, 0)];
        let shown = shown.map(|(part, whole)| percent(part, whole));
        let expected =
            ["81.3 %", "66.7 %", "6.3 %", "33.3 %", "99.9 %", "100.0 %", "100.0 %", "0.0 %", "0.0 %"];
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_sum_without_any_price_is_not_known() {
        assert_eq!(
            [known_sum(0, true, 0), known_sum(0, true, 1), known_sum(5, false, 1)],
            [Some(0), None, Some(5)]
        );
    }

    proptest! {
        #[test]
        fn numbers_survive(number in any::<f64>()) {
            match Decimal::of(number) {
                Some(decimal) => prop_assert_eq!((decimal.to_f64() + 0.0).to_bits(), (number + 0.0).to_bits()),
                None => prop_assert!(!number.is_finite()),
            }
        }

        #[test]
        fn units_are_exact(units in any::<i64>(), places in 0..12_u32) {
            let text = format!("{units}e-{places}");
            let decimal = Decimal::parse(&text).unwrap();
            prop_assert_eq!(decimal.in_units(places), Some(units.into()));
            prop_assert_eq!(&Decimal::of_units(units.into(), places), &decimal);
            prop_assert!(decimal.places() <= places);
            prop_assert!(decimal.in_units(decimal.places()).is_some());
            prop_assert_eq!(Decimal::parse(&decimal.canonical()), (units != 0).then_some(decimal));
        }
    }
}
