//! The user's terms for an experiment: how many concurrent trials, how long, for how much. Nothing here changes what
//! the trials are.
//!
//! Terms belong to the experiment. They are stored in `_run/terms.json`, and a session that continues the experiment
//! uses them, except for those that the user sets anew.

use std::io;
use std::str::FromStr;
use std::time::Duration;

use aec_base::file::write_atomic;
use aec_base::problem::Problem;
use aec_base::settings::NO_LIMIT;
use aec_ledger::layout::ExperimentDirectory;
use aec_model::meter::{Budget, Unpriced};
use aec_model::money::MicroDollars;
use clap::{Args, Parser};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::experiment::FAMILY;

/// The file of an experiment's terms, in its `_run`.
const FILE: &str = "terms.json";

/// How to run an experiment. Absent terms were not set.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Terms {
    /// Most trials at the same time [default: 32]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// Most trials at the same time that use the same model, or `none` [default: none]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_concurrency: Option<Limit<u32>>,
    /// Start no trial after this time, such as 90, 15m or 2h; each session has this time again
    #[arg(long, value_name = "TIME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_time: Option<Limit<Duration>>,
    /// Most attempts at a trial whose faults are temporary and not the agent's [default: 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    /// Stop after this many faults in a row that agents did not cause [default: 50]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_faults: Option<u32>,
    /// The budget. `plan` has these flags too, so the plan's arguments contain them.
    #[arg(skip)]
    #[serde(flatten)]
    pub caps: Caps,
}

/// Limits of all model calls together.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Caps {
    /// Most dollars that all calls together may cost, or `none`
    #[arg(long, value_name = "USD")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<Limit<MicroDollars>>,
    /// Most tokens that all calls together may use, or `none`
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_total_tokens: Option<Limit<u64>>,
    /// Call models without a price even with a budget in dollars, which does not limit them
    #[arg(long, value_name = "false", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_unpriced: Option<bool>,
}

/// A limit as the user wrote it; `none` lifts it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String", bound = "T: Quantity")]
pub struct Limit<T> {
    said: String,
    most: Option<T>,
}

/// A quantity that can be limited.
pub trait Quantity: Copy {
    /// The expected form, for messages.
    const SHAPE: &'static str;

    /// Parses the quantity.
    fn read(text: &str) -> Option<Self>;
}

impl Quantity for MicroDollars {
    const SHAPE: &'static str = "an amount of dollars such as 2.50";

    fn read(text: &str) -> Option<Self> {
        text.parse().ok().and_then(Self::from_dollars)
    }
}

impl Quantity for Duration {
    const SHAPE: &'static str = "a time such as 90, 15m or 2h";

    fn read(text: &str) -> Option<Self> {
        let unit = match text.bytes().last()? {
            b'm' => 60.0,
            b'h' => 3600.0,
            _ => 1.0,
        };
        let number: f64 = text.strip_suffix(['s', 'm', 'h']).unwrap_or(text).parse().ok()?;
        Self::try_from_secs_f64(number * unit).ok().filter(|time| !time.is_zero())
    }
}

impl Quantity for u64 {
    const SHAPE: &'static str = "a number";

    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

impl Quantity for u32 {
    const SHAPE: &'static str = "a number from 1";

    fn read(text: &str) -> Option<Self> {
        text.parse().ok().filter(|number| *number > 0)
    }
}

impl<T: Quantity> Limit<T> {
    /// The limit; absent when it is lifted.
    pub fn most(&self) -> Option<T> {
        self.most
    }

    /// The limit as the user wrote it.
    pub fn said(&self) -> &str {
        &self.said
    }
}

impl<T: Quantity> FromStr for Limit<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let said = text.strip_prefix('$').unwrap_or(text).to_owned();
        let most = T::read(&said);
        if most.is_none() && said != NO_LIMIT {
            return Err(format!("this is not {}; write that, or {NO_LIMIT}", T::SHAPE));
        }
        Ok(Self { said, most })
    }
}

impl<T: Quantity> TryFrom<String> for Limit<T> {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl<T> From<Limit<T>> for String {
    fn from(limit: Limit<T>) -> Self {
        limit.said
    }
}

impl Caps {
    /// The budget: from the flags, else from the settings.
    pub fn budget(&self, settings: Budget) -> Budget {
        Budget {
            money: self.max_cost.as_ref().map_or(settings.money, Limit::most),
            tokens: self.max_total_tokens.as_ref().map_or(settings.tokens, Limit::most),
        }
    }

    /// How to treat models without a price.
    pub fn unpriced(&self) -> Unpriced {
        if self.allow_unpriced == Some(true) { Unpriced::Allow } else { Unpriced::Refuse }
    }
}

/// Stored terms are parsed as flags, so that they cannot contain anything that no flag allows.
#[derive(Parser)]
#[command(no_binary_name = true)]
struct AsFlags {
    #[command(flatten)]
    terms: Terms,
    #[command(flatten)]
    caps: Caps,
}

impl Terms {
    /// Concurrent trials.
    pub fn concurrency(&self) -> usize {
        self.concurrency.unwrap_or(32) as usize
    }

    /// Concurrent trials that use the same model.
    pub fn model_concurrency(&self) -> usize {
        self.model_concurrency.as_ref().and_then(Limit::most).map_or(usize::MAX, |most| most as usize)
    }

    /// The time after which no trial is started.
    pub fn max_time(&self) -> Option<Duration> {
        self.max_time.as_ref().and_then(Limit::most)
    }

    /// Attempts at a trial in one session, if its faults are temporary and not the agent's.
    pub fn max_attempts(&self) -> u32 {
        self.max_attempts.unwrap_or(2)
    }

    /// Consecutive faults not caused by agents after which the run stops.
    pub fn max_faults(&self) -> usize {
        self.max_faults.unwrap_or(50) as usize
    }

    /// The stored terms of an experiment.
    pub fn kept(directory: &ExperimentDirectory) -> Result<Self, Problem> {
        let path = directory.run().join(FILE);
        let cannot = |error: &dyn std::fmt::Display| {
            Problem::error(format!("the terms of the experiment cannot be read: {error}"))
                .id(FAMILY.number(53))
                .fix("restore the file, or remove it and name --max-cost and the other limits again")
                .in_file(&path)
        };
        match fs_err::read(&path) {
            Ok(text) => {
                let kept: Map<String, Value> =
                    aec_base::json::from_slice(&text).map_err(|error| cannot(&error))?;
                let read = AsFlags::try_parse_from(flags(&kept)).map_err(|error| {
                    let error = error.to_string();
                    cannot(&error.lines().next().unwrap_or_default().trim_start_matches("error: "))
                })?;
                Ok(Self { caps: read.caps, ..read.terms })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(cannot(&error)),
        }
    }

    /// Stores the terms for further sessions of an experiment.
    pub(crate) fn keep(&self, directory: &ExperimentDirectory) -> io::Result<()> {
        if Self::kept(directory).is_ok_and(|kept| kept == *self) {
            return Ok(());
        }
        let mut text = serde_json::to_string_pretty(&said(self))?;
        text.push('\n');
        write_atomic(&directory.run().join(FILE), text.as_bytes())
    }
}

/// The set terms, by the names of the flags with `_` for `-`.
fn said(terms: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(terms) {
        Ok(Value::Object(said)) => said,
        _ => Map::new(),
    }
}

/// The present terms, completed by the earlier ones.
pub fn over<T: Serialize + DeserializeOwned + Clone>(now: &T, earlier: &T) -> T {
    let mut all = said(earlier);
    all.extend(said(now));
    serde_json::from_value(Value::Object(all)).unwrap_or_else(|_| now.clone())
}

/// A note about earlier terms that still apply because they are not set now.
pub fn going_on<T: Serialize>(now: &T, earlier: &T) -> Option<Problem> {
    let mut kept = said(earlier);
    said(now).keys().for_each(|name| drop(kept.shift_remove(name)));
    let flags = flags(&kept);
    (!flags.is_empty()).then(|| {
        Problem::note(format!("going on with {} of the earlier session", flags.join(" ")))
            .id(FAMILY.number(54))
            .fix("name another value to change one, or `none` to lift a limit")
    })
}

/// The flags for these terms.
pub fn flags(terms: &impl Serialize) -> Vec<String> {
    let flag = |(name, value): (String, Value)| {
        let flag = format!("--{}", name.replace('_', "-"));
        match value {
            Value::Bool(true) => vec![flag],
            Value::Bool(false) => vec![format!("{flag}=false")],
            Value::String(text) => vec![flag, text],
            other => vec![flag, other.to_string()],
        }
    };
    said(terms).into_iter().flat_map(flag).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit<T: Quantity>(text: &str) -> Option<Limit<T>> {
        text.parse().ok()
    }

    #[test]
    fn what_is_said_now_holds_and_the_rest_stays() {
        let earlier = Terms {
            concurrency: Some(4),
            max_time: limit("15m"),
            caps: Caps { max_cost: limit("$1.00"), allow_unpriced: Some(true), ..Caps::default() },
            ..Terms::default()
        };
        let now = Terms {
            concurrency: Some(8),
            caps: Caps { max_cost: limit("none"), ..Caps::default() },
            ..Terms::default()
        };
        let all = over(&now, &earlier);
        let flags = flags(&all).join(" ");
        assert_eq!(flags, "--concurrency 8 --max-time 15m --max-cost none --allow-unpriced");
        assert_eq!((all.concurrency(), all.max_time()), (8, Some(Duration::from_mins(15))));
        assert_eq!(all.caps.budget(Budget::of_money(MicroDollars(7))), Budget::UNLIMITED);
        let note = going_on(&now, &earlier).unwrap();
        assert_eq!(note.what, "going on with --max-time 15m --allow-unpriced of the earlier session");
        assert_eq!(going_on(&all, &all), None);
        assert_eq!(over(&Terms::default(), &all), all);
    }

    #[test]
    fn limits_are_read_as_they_are_written() {
        assert_eq!(limit::<MicroDollars>("$2.50").unwrap().most(), Some(MicroDollars(2_500_000)));
        assert_eq!(limit::<Duration>("1.5h").unwrap().most(), Some(Duration::from_mins(90)));
        assert_eq!(limit::<u64>("none").unwrap().most(), None);
        for text in ["", "-1", "NaN", "soon", "inf", "0"] {
            assert_eq!(limit::<Duration>(text), None, "{text}");
            assert_eq!(limit::<u32>(text), None, "{text}");
        }
        assert_eq!(limit::<MicroDollars>("-1"), None);
    }

    #[test]
    fn what_no_flag_could_have_said_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let ledger = aec_ledger::layout::Ledger::new(directory.path());
        let experiment = ledger.experiment(&aec_base::name::Name::nearest("x"));
        let terms = Terms {
            concurrency: Some(4),
            caps: Caps { max_cost: limit("1.00"), ..Caps::default() },
            ..Terms::default()
        };
        fs_err::create_dir_all(experiment.run()).unwrap();
        terms.keep(&experiment).unwrap();
        assert_eq!(Terms::kept(&experiment).unwrap(), terms);
        for text in [
            r#"{"max_cots": "8"}"#,
            r#"{"concurrency": 0}"#,
            r#"{"concurrency": 10001}"#,
            r#"{"max_attempts": 0}"#,
            r#"{"max_faults": 0}"#,
            r#"{"max_cost": null}"#,
            r#"{"max_cost": "lots"}"#,
            "[4]",
            "",
        ] {
            fs_err::write(experiment.run().join(FILE), text).unwrap();
            assert_eq!(Terms::kept(&experiment).unwrap_err().id.as_deref(), Some("E053"), "{text}");
        }
    }
}
