//! Prices of tokens. A price comes from a list, never from a guess: a model without one is unpriced, which is not free.

mod bound;
mod file;
mod list;
mod missing;
mod pattern;
mod rate;

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

pub use bound::{Bound, input_bound, output_bound};
pub use file::{PriceFile, PriceTable, TierTable};
pub use list::{Entry, PriceList, Subject};
pub use missing::Missing;
pub use rate::Rate;

use crate::message::Usage;
use crate::money::MicroDollars;

/// Tokens of one picture if its price has no number: more than the most expensive known method, which counts 2833 and
/// 5667 for each of at most eight tiles.
pub const DEFAULT_IMAGE_TOKENS: u64 = 50_000;

/// Pico-dollars in a micro-dollar.
const PICO_PER_MICRO: u128 = 1_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Rates {
    /// Input that was not cached.
    pub input: Rate,
    /// Output, including thoughts.
    pub output: Rate,
    /// Input read from the cache.
    pub cache_read: Rate,
    /// Input written to the cache.
    pub cache_write: Rate,
}

impl Rates {
    /// Pico-dollars of a call. Five products of 64 and 40 bits cannot overflow.
    fn of(&self, usage: &Usage) -> u128 {
        product(usage.input, self.input)
            + product(usage.cache_read, self.cache_read)
            + product(usage.cache_write, self.cache_write)
            + product(usage.output, self.output)
            + product(usage.reasoning, self.output)
    }

    /// Pico-dollars of the most expensive call with at most these tokens, all input at the highest rate.
    fn most(&self, input: u64, output: u64) -> u128 {
        let dearest = self.input.max(self.cache_read).max(self.cache_write);
        product(input, dearest) + product(output, self.output)
    }
}

fn product(tokens: u64, rate: Rate) -> u128 {
    u128::from(tokens) * u128::from(rate.pico_dollars())
}

/// Rounds up, once.
fn to_micro(pico: u128) -> MicroDollars {
    MicroDollars(u64::try_from(pico.div_ceil(PICO_PER_MICRO)).unwrap_or(u64::MAX))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Tier {
    /// Input tokens above which the rates apply to the whole call.
    pub context_above: u64,
    #[serde(flatten)]
    pub rates: Rates,
}

/// What a model costs at a provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Price {
    #[serde(flatten)]
    pub rates: Rates,
    /// Rates for long inputs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub above: Option<Tier>,
    /// Most tokens of one picture.
    pub image_tokens: u64,
    /// Tokens of one call, read and written together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// The source of the figures, in the words of the list.
    pub source: Option<String>,
    /// When the figures were checked.
    pub checked: Option<String>,
    pub origin: Origin,
}

impl Price {
    /// What a call cost, rounded up to the next micro-dollar.
    pub fn cost(&self, usage: &Usage) -> MicroDollars {
        let rates = match &self.above {
            Some(tier) if usage.all_input() > tier.context_above => &tier.rates,
            _ => &self.rates,
        };
        to_micro(rates.of(usage))
    }

    /// The most that a call can cost with at most `input_bound` tokens of text, `output_bound` tokens of answer and
    /// `images` pictures.
    pub fn worst_case(&self, input_bound: u64, output_bound: u64, images: u64) -> MicroDollars {
        let input = self.all_input(input_bound, images);
        let most = match &self.above {
            // The call may stay below the limit after all, and the rates above it may be lower.
            Some(tier) if input > tier.context_above => {
                self.rates.most(tier.context_above, output_bound).max(tier.rates.most(input, output_bound))
            }
            _ => self.rates.most(input, output_bound),
        };
        to_micro(most)
    }

    /// Input tokens of text and pictures together.
    pub fn all_input(&self, input_bound: u64, images: u64) -> u64 {
        input_bound.saturating_add(images.saturating_mul(self.image_tokens))
    }
}

/// Which list a price is from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The built-in list, by its date.
    BuiltIn(String),
    /// A user's file.
    UserFile(PathBuf),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn(version) => write!(f, "built-in list of {version}"),
            Self::UserFile(path) => path.display().fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn price(rates: [u64; 4], above: Option<(u64, [u64; 4])>, image_tokens: u64) -> Price {
        let make = |[input, output, cache_read, cache_write]: [u64; 4]| Rates {
            input: Rate::from_pico_dollars(input).unwrap(),
            output: Rate::from_pico_dollars(output).unwrap(),
            cache_read: Rate::from_pico_dollars(cache_read).unwrap(),
            cache_write: Rate::from_pico_dollars(cache_write).unwrap(),
        };
        Price {
            rates: make(rates),
            above: above.map(|(context_above, rates)| Tier { context_above, rates: make(rates) }),
            image_tokens,
            context_window: None,
            source: None,
            checked: None,
            origin: Origin::BuiltIn("test".into()),
        }
    }

    #[test]
    fn each_counter_has_its_rate_and_is_counted_once() {
        let sonnet = price(
            [3_000_000, 15_000_000, 300_000, 3_750_000],
            Some((200_000, [6_000_000, 22_500_000, 600_000, 7_500_000])),
            1600,
        );
        let usage = Usage { input: 1000, cache_read: 10_000, cache_write: 2000, output: 500, reasoning: 100 };
        // 3000 + 3000 + 7500 + 7500 + 1500
        assert_eq!(sonnet.cost(&usage), MicroDollars(22_500));
        let at_limit = Usage { input: 100_000, cache_read: 100_000, ..Usage::default() };
        assert_eq!(sonnet.cost(&at_limit), MicroDollars(330_000));
        let above = Usage { input: 100_001, ..at_limit };
        assert_eq!(sonnet.cost(&above), MicroDollars(660_006));
        assert_eq!(sonnet.worst_case(200_000, 0, 0), MicroDollars(750_000));
        assert_eq!(sonnet.worst_case(198_399, 0, 1), MicroDollars(749_997));
        assert_eq!(sonnet.worst_case(200_001, 0, 0), MicroDollars(1_500_008));
    }

    #[test]
    fn a_fraction_of_a_micro_dollar_is_rounded_up_once() {
        let nano = price([50_000, 400_000, 5_000, 50_000], None, 1);
        let tokens = |input, output| Usage { input, output, ..Usage::default() };
        assert_eq!(nano.cost(&tokens(0, 0)), MicroDollars(0));
        assert_eq!(nano.cost(&tokens(1, 0)), MicroDollars(1));
        assert_eq!(nano.cost(&tokens(20, 0)), MicroDollars(1));
        assert_eq!(nano.cost(&tokens(12, 1)), MicroDollars(1));
        assert_eq!(nano.cost(&tokens(12, 2)), MicroDollars(2));
    }

    #[test]
    fn absurd_usage_is_absurdly_dear_and_nothing_wraps() {
        let dear = price([1_000_000_000_000; 4], None, u64::MAX);
        let all = u64::MAX;
        let usage = Usage { input: all, cache_read: all, cache_write: all, output: all, reasoning: all };
        assert_eq!(dear.cost(&usage), MicroDollars(u64::MAX));
        assert_eq!(dear.worst_case(all, all, all), MicroDollars(u64::MAX));
    }

    /// A part of `whole`, in thousandths.
    fn share(whole: u64, thousandths: u64) -> u64 {
        u64::try_from(u128::from(whole) * u128::from(thousandths) / 1000).unwrap()
    }

    fn rates() -> impl Strategy<Value = [u64; 4]> {
        prop_oneof![
            prop::array::uniform4(0u64..=100_000_000),
            prop::array::uniform4(0u64..=1_000_000_000_000),
            prop::array::uniform4(0u64..=3),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn worst_case_bounds_every_call_within_the_bounds(
            base in rates(),
            above in prop::option::of((1u64..400_000, rates())),
            image_tokens in 0u64..60_000,
            (input, output, images) in prop_oneof![
                (0u64..500_000, 0u64..200_000, 0u64..5),
                (0..=u64::MAX, 0..=u64::MAX, 0..=u64::MAX),
            ],
            cuts in prop::array::uniform4(0u64..=1000),
            fill in 0u64..=1000,
        ) {
            let price = price(base, above, image_tokens);
            let all = price.all_input(input, images);
            // Each kind gets a share of all input; the rest is unused.
            let used = share(all, fill);
            let cached = share(used, cuts[0]);
            let cache_read = share(cached, cuts[1]);
            let spoken = share(output, cuts[2]);
            let usage = Usage {
                input: used - cached,
                cache_read,
                cache_write: cached - cache_read,
                output: share(spoken, cuts[3]),
                reasoning: spoken - share(spoken, cuts[3]),
            };
            prop_assert!(usage.all_input() <= all && usage.all_output() <= output);
            prop_assert!(price.cost(&usage) <= price.worst_case(input, output, images));
        }

        #[test]
        fn cost_is_the_exact_sum_rounded_up(
            base in prop::array::uniform4(0u64..=100_000_000),
            tokens in prop::array::uniform5(0u64..=2_000_000),
        ) {
            let usage = Usage {
                input: tokens[0], cache_read: tokens[1], cache_write: tokens[2], output: tokens[3], reasoning: tokens[4],
            };
            let rate = [base[0], base[2], base[3], base[1], base[1]];
            let exact: u128 = tokens.iter().zip(rate).map(|(t, r)| u128::from(*t) * u128::from(r)).sum();
            let cost = u128::from(price(base, None, 1).cost(&usage).0);
            prop_assert!(cost * 1_000_000 >= exact && exact + 1_000_000 > cost * 1_000_000);
        }
    }
}
