//! The possible values of a parameter, and drawing one of them.
//!
//! Steps are counted in decimal arithmetic, so that 0.1 + 2 × 0.1 is 0.3 and is printed as 0.3.

use aec_base::decimal::Decimal;
use rand_chacha::ChaCha12Rng;
use rand_core::Rng as _;

use crate::value::Value;

/// Values between limits, on a grid, or from a list.
#[derive(Clone, Debug)]
pub(crate) enum Grid {
    /// One of these.
    Among(Vec<Value>),
    /// `base + k * step` within the limits.
    Step { base: Decimal, step: Decimal, min: Decimal, max: Decimal, whole: bool },
    /// Any number within the limits, rounded to `figures` significant figures.
    Figures { min: f64, max: f64, figures: usize },
}

/// A limit from an archetype or a tier.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Limit {
    /// Within these bounds.
    Range { min: f64, max: f64 },
    /// One of these.
    Among(Vec<Value>),
}

impl Grid {
    /// The part of the grid that is within a limit.
    pub(crate) fn within(&self, limit: &Limit) -> Self {
        let inside = |value: &Value, low: f64, high: f64| {
            value.number().is_some_and(|number| low <= number && number <= high)
        };
        match (self, limit) {
            (Self::Among(values), Limit::Among(allowed)) => Self::Among(
                values
                    .iter()
                    .filter(|value| allowed.iter().any(|other| value.is_same(other)))
                    .cloned()
                    .collect(),
            ),
            (Self::Among(values), Limit::Range { min, max }) => {
                Self::Among(values.iter().filter(|value| inside(value, *min, *max)).cloned().collect())
            }
            (_, Limit::Among(allowed)) => {
                let (low, high) = self.bounds();
                Self::Among(allowed.iter().filter(|value| inside(value, low, high)).cloned().collect())
            }
            (Self::Step { base, step, min, max, whole }, Limit::Range { min: low, max: high }) => {
                let narrower = |limit: f64, known: &Decimal, is_narrower: fn(&f64, &f64) -> bool| {
                    let limit = Decimal::of(limit).filter(|_| is_narrower(&limit, &known.to_f64()));
                    limit.unwrap_or_else(|| known.clone())
                };
                Self::Step {
                    base: base.clone(),
                    step: step.clone(),
                    min: narrower(*low, min, f64::gt),
                    max: narrower(*high, max, f64::lt),
                    whole: *whole,
                }
            }
            (Self::Figures { min, max, figures }, Limit::Range { min: low, max: high }) => {
                Self::Figures { min: min.max(*low), max: max.min(*high), figures: *figures }
            }
        }
    }

    fn bounds(&self) -> (f64, f64) {
        match self {
            Self::Among(_) => (f64::NEG_INFINITY, f64::INFINITY),
            Self::Step { min, max, .. } => (min.to_f64(), max.to_f64()),
            Self::Figures { min, max, .. } => (*min, *max),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Among(values) => values.is_empty(),
            Self::Step { base, step, min, max, .. } => steps(base, step, min, max).is_none(),
            Self::Figures { min, max, figures } => {
                let rounded = round_to_figures(*min, *figures);
                let next = round_to_figures(*max, *figures);
                min > max || !(*min..=*max).contains(&rounded) && !(*min..=*max).contains(&next)
            }
        }
    }

    /// The value, if there is exactly one.
    pub(crate) fn only(&self) -> Option<Value> {
        match self {
            Self::Among(values) if values.len() == 1 => values.first().cloned(),
            Self::Step { base, step, min, max, whole } => match steps(base, step, min, max) {
                Some((first, last)) if first == last => Some(at_step(base, step, first, *whole)),
                _ => None,
            },
            Self::Figures { min, max, figures } if (max - min).abs() == 0.0 => {
                Some(Value::Float(round_to_figures(*min, *figures)))
            }
            _ => None,
        }
    }

    /// Draws one of the values; `None` if there are none.
    pub(crate) fn draw(&self, random: &mut ChaCha12Rng) -> Option<Value> {
        match self {
            Self::Among(values) => {
                let index = below(random, u64::try_from(values.len()).ok().filter(|count| *count > 0)?);
                values.get(usize::try_from(index).ok()?).cloned()
            }
            Self::Step { base, step, min, max, whole } => {
                let (first, last) = steps(base, step, min, max)?;
                let count = u64::try_from(last - first + 1).ok()?;
                let index = first + i128::from(below(random, count));
                Some(at_step(base, step, index, *whole))
            }
            Self::Figures { min, max, figures } => {
                const TRIES: usize = 1000;
                (0..TRIES)
                    .map(|_| round_to_figures(min + (max - min) * unit_interval(random), *figures))
                    .find(|value| (*min..=*max).contains(value))
                    .map(Value::Float)
            }
        }
    }
}

/// First and last number of steps from the base that stay within the limits.
fn steps(base: &Decimal, step: &Decimal, min: &Decimal, max: &Decimal) -> Option<(i128, i128)> {
    let places = [base, step, min, max].iter().map(|number| number.places()).max()?;
    let [base, step, min, max] = [base, step, min, max].map(|number| number.in_units(places));
    let (base, step, min, max) = (base?, step?, min?, max?);
    let first = (min - base).div_euclid(step) + i128::from((min - base).rem_euclid(step) != 0);
    let last = (max - base).div_euclid(step);
    (first <= last).then_some((first, last))
}

#[expect(clippy::cast_possible_truncation, reason = "the grid of an int is checked to be whole and small")]
fn at_step(base: &Decimal, step: &Decimal, index: i128, whole: bool) -> Value {
    let places = base.places().max(step.places());
    let units = match (base.in_units(places), step.in_units(places)) {
        (Some(base), Some(step)) => base + step * index,
        _ => 0,
    };
    let value = Decimal::of_units(units, places).to_f64();
    if whole { Value::Int(value as i64) } else { Value::Float(value) }
}

/// A number below `count`, all equally likely.
fn below(random: &mut ChaCha12Rng, count: u64) -> u64 {
    // Only a range that is a multiple of `count` is used; other numbers are drawn again.
    let usable = u64::MAX - (u64::MAX % count + 1) % count;
    loop {
        let number = random.next_u64();
        if number <= usable {
            return number % count;
        }
    }
}

pub(crate) fn index_below(random: &mut ChaCha12Rng, count: usize) -> usize {
    usize::try_from(below(random, count.max(1) as u64)).unwrap_or(0)
}

/// A number from 0 up to but not including 1, with 53 random bits.
#[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
fn unit_interval(random: &mut ChaCha12Rng) -> f64 {
    const BITS: f64 = 9_007_199_254_740_992.0;
    (random.next_u64() >> 11) as f64 / BITS
}

/// A number rounded to significant figures.
pub(crate) fn round_to_figures(value: f64, figures: usize) -> f64 {
    format!("{value:.*e}", figures.saturating_sub(1)).parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand_core::SeedableRng as _;

    use super::*;

    fn step(min: f64, max: f64, step: f64) -> Grid {
        let [low, high, step] = [min, max, step].map(|number| Decimal::of(number).unwrap());
        Grid::Step { base: low.clone(), step, min: low, max: high, whole: false }
    }

    fn all(grid: &Grid) -> Vec<String> {
        let mut random = ChaCha12Rng::seed_from_u64(1);
        let mut seen: Vec<f64> = (0..2000).filter_map(|_| grid.draw(&mut random)?.number()).collect();
        seen.sort_by(f64::total_cmp);
        seen.dedup();
        seen.into_iter().map(|value| value.to_string()).collect()
    }

    #[test]
    fn steps_are_decimal_and_start_at_the_minimum() {
        assert_eq!(all(&step(0.1, 0.5, 0.1)), ["0.1", "0.2", "0.3", "0.4", "0.5"]);
        assert_eq!(all(&step(7.5, 20.0, 5.0)), ["7.5", "12.5", "17.5"]);
        // A limit does not shift the grid.
        let narrowed = step(0.1, 0.5, 0.1).within(&Limit::Range { min: 0.15, max: 0.4 });
        assert_eq!(all(&narrowed), ["0.2", "0.3", "0.4"]);
        assert!(step(0.0, 1.0, 0.5).within(&Limit::Range { min: 0.6, max: 0.9 }).is_empty());
    }

    #[test]
    fn one_value_is_recognised() {
        let among = Grid::Among(vec![Value::Int(1), Value::Int(3)]);
        assert_eq!(among.within(&Limit::Among(vec![Value::Float(3.0)])).only(), Some(Value::Int(3)));
        assert_eq!(
            step(2.0, 8.0, 2.0).within(&Limit::Range { min: 3.0, max: 5.0 }).only(),
            Some(Value::Float(4.0))
        );
        let figures = Grid::Figures { min: 0.004, max: 0.004, figures: 3 };
        assert_eq!(figures.only(), Some(Value::Float(0.004)));
    }

    proptest! {
        #[test]
        fn drawn_values_lie_on_the_grid_and_print_exactly(
            low in -2000_i32..2000, span in 0_i32..3000, stride in 1_i32..500, scale in 0_i32..6, seed in any::<u64>(),
        ) {
            let unit = |n: i32| format!("{n}e-{scale}").parse::<f64>().unwrap();
            let grid = step(unit(low), unit(low + span), unit(stride));
            let value = grid.draw(&mut ChaCha12Rng::seed_from_u64(seed)).unwrap().number().unwrap();
            let steps = (value - unit(low)) / unit(stride);
            prop_assert!((steps - steps.round()).abs() < 1e-6 * steps.abs().max(1.0), "{value}");
            prop_assert!(value >= unit(low) && value <= unit(low + span));
            let text = crate::value::printed_number(value);
            prop_assert!(text.parse::<f64>().unwrap().to_bits() == value.to_bits());
            let fraction = text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
            prop_assert!(text.contains('e') || fraction <= usize::try_from(scale).unwrap(), "{text}");
        }

        #[test]
        fn figures_are_kept(min in 1e-6_f64..1e3, factor in 1.2_f64..100.0, figures in 1_usize..6, seed in any::<u64>()) {
            let grid = Grid::Figures { min, max: min * factor * 10.0, figures };
            if let Some(value) = grid.draw(&mut ChaCha12Rng::seed_from_u64(seed)) {
                let value = value.number().unwrap();
                prop_assert!(round_to_figures(value, figures).to_bits() == value.to_bits());
                prop_assert!(value >= min && value <= min * factor * 10.0);
            }
        }

        #[test]
        fn every_index_is_below_the_count(count in 1_u64..1000, seed in any::<u64>()) {
            prop_assert!(below(&mut ChaCha12Rng::seed_from_u64(seed), count) < count);
        }
    }
}
