//! The arguments of `load_environment` of our packages. Names, defaults and refusals are those of
//! `python/environment/core.py`.

use aec_base::problem::Problem;
use aec_base::text::printable;
use aec_judge::judge::Isolation;
use aec_package::interaction::HarnessMode;
use aec_package::manifest::PackagedSide;
use aec_package::select::Ask;
use aec_run::experiment::Harness;
use serde_json::{Map, Value};

use crate::FAMILY;

const NAMES: [&str; 9] = [
    "split",
    "difficulty",
    "num_examples",
    "seed",
    "harness",
    "max_turns",
    "max_total_tokens",
    "command_timeout_sec",
    "confinement",
];
/// Harnesses of `run` that can drive the rollouts of an evaluation.
const DRIVERS: [Harness; 2] = [Harness::Rlm, Harness::LambdaRlm];
const DIFFICULTIES: [&str; 3] = ["easy", "medium", "hard"];

#[derive(Clone, Debug)]
pub(super) struct Arguments {
    pub(super) split: String,
    pub(super) difficulty: Vec<String>,
    pub(super) num_examples: Option<i64>,
    pub(super) seed: Option<i64>,
    pub(super) harness: Option<HarnessMode>,
    /// A harness of `run` that drives the rollouts in place of the environment's own tools.
    pub(super) driver: Option<Harness>,
    pub(super) max_turns: Option<u32>,
    pub(super) max_total_tokens: Option<u64>,
    pub(super) command_timeout_sec: Option<f64>,
    pub(super) confinement: Confinement,
}

/// Whether commands run in rooms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Confinement {
    /// In a room if the task needs one.
    Auto,
    /// In a room, or the evaluation fails.
    Required,
    /// Directly on this machine.
    None,
}

impl Confinement {
    pub(super) fn isolation(self) -> Isolation {
        match self {
            Self::Auto | Self::Required => Isolation::Room,
            Self::None => Isolation::None,
        }
    }
}

impl Arguments {
    /// Reads arguments; `split` is the default split.
    pub(super) fn read(given: &Map<String, Value>, split: &str) -> Result<Self, Vec<Problem>> {
        let mut reader = Reader { given, problems: Vec::new() };
        for name in given.keys().filter(|name| !NAMES.contains(&name.as_str())) {
            let what = format!("unknown argument `{}` of the environment", printable(name));
            reader.refuse(what, format!("the arguments are {}", NAMES.join(", ")));
        }
        let positive = |number: Option<i64>, name: &str, reader: &mut Reader<'_>| {
            if number.is_some_and(|number| number < 1) {
                reader.refuse(format!("`{name}` is not a number from 1 up"), "write a number from 1 up");
            }
            number.and_then(|number| u64::try_from(number).ok())
        };
        let max_turns = reader.whole("max_turns");
        let max_turns = positive(max_turns, "max_turns", &mut reader);
        let max_total_tokens = reader.whole("max_total_tokens");
        let max_total_tokens = positive(max_total_tokens, "max_total_tokens", &mut reader);
        let modes = HarnessMode::ALL.map(HarnessMode::name);
        let allowed = modes.into_iter().chain(DRIVERS.map(Harness::name)).collect::<Vec<_>>();
        let harness = reader.one_of("harness", &allowed);
        let driver = DRIVERS.into_iter().find(|driver| harness.as_deref() == Some(driver.name()));
        let confinement = reader.one_of("confinement", &["auto", "required", "none"]);
        let arguments = Self {
            split: reader.one_of("split", &["train", "eval", "all"]).unwrap_or_else(|| split.to_owned()),
            difficulty: reader.difficulties(),
            num_examples: reader.whole("num_examples"),
            seed: reader.whole("seed"),
            harness: match driver {
                Some(_) => Some(HarnessMode::Stateful),
                None => harness
                    .and_then(|name| HarnessMode::ALL.into_iter().find(|harness| harness.name() == name)),
            },
            driver,
            max_turns: max_turns.map(|turns| u32::try_from(turns).unwrap_or(u32::MAX)),
            max_total_tokens,
            command_timeout_sec: reader.seconds("command_timeout_sec"),
            confinement: match confinement.as_deref() {
                Some("required") => Confinement::Required,
                Some("none") => Confinement::None,
                _ => Confinement::Auto,
            },
        };
        if reader.problems.is_empty() { Ok(arguments) } else { Err(reader.problems) }
    }

    pub(super) fn ask(&self) -> Ask {
        Ask {
            difficulty: self.difficulty.clone(),
            side: match self.split.as_str() {
                "train" => Some(PackagedSide::Train),
                "eval" => Some(PackagedSide::Eval),
                _ => None,
            },
            seed: self.seed,
            num_examples: self.num_examples.and_then(|number| usize::try_from(number).ok()),
        }
    }
}

struct Reader<'a> {
    given: &'a Map<String, Value>,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn refuse(&mut self, what: impl Into<String>, fix: impl Into<String>) {
        self.problems.push(Problem::error(what).id(FAMILY.number(60)).fix(fix));
    }

    /// The value given; `null` and an empty string count as not given.
    fn value(&self, name: &str) -> Option<Value> {
        self.given.get(name).filter(|value| !value.is_null() && value.as_str() != Some("")).cloned()
    }

    fn one_of(&mut self, name: &str, allowed: &[&str]) -> Option<String> {
        let value = self.value(name)?;
        match value.as_str().filter(|text| allowed.contains(text)) {
            Some(text) => Some(text.to_owned()),
            None => {
                let what = format!("the argument `{name}` is {}", printable(&value.to_string()));
                self.refuse(what, format!("write one of {}", allowed.join(", ")));
                None
            }
        }
    }

    fn difficulties(&mut self) -> Vec<String> {
        let values = match self.value("difficulty") {
            None => return Vec::new(),
            Some(Value::Array(values)) => values,
            Some(value) => vec![value],
        };
        let known = |value: &Value| value.as_str().is_some_and(|text| DIFFICULTIES.contains(&text));
        if let Some(odd) = values.iter().find(|value| !known(value)) {
            let what = format!("the argument `difficulty` has {}", printable(&odd.to_string()));
            self.refuse(what, format!("write one of {}, or a list of them", DIFFICULTIES.join(", ")));
        }
        values.iter().filter_map(Value::as_str).map(ToOwned::to_owned).collect()
    }

    /// Numbers may be written as text, as command lines send them.
    fn whole(&mut self, name: &str) -> Option<i64> {
        let value = self.value(name)?;
        let number = match &value {
            Value::String(text) => text.parse().ok(),
            value => value.as_i64(),
        };
        if number.is_none() {
            let what =
                format!("the argument `{name}` is {}, not a whole number", printable(&value.to_string()));
            self.refuse(what, "write a whole number");
        }
        number
    }

    fn seconds(&mut self, name: &str) -> Option<f64> {
        let value = self.value(name)?;
        let number = match &value {
            Value::String(text) => text.parse().ok(),
            value => value.as_f64(),
        };
        let number = number.filter(|number: &f64| number.is_finite() && *number > 0.0);
        if number.is_none() {
            let what =
                format!("the argument `{name}` is {}, not a number above 0", printable(&value.to_string()));
            self.refuse(what, "write a number of seconds");
        }
        number
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: &Value) -> Result<Arguments, Vec<Problem>> {
        Arguments::read(value.as_object().unwrap(), "train")
    }

    #[test]
    fn types_of_command_lines_are_taken() {
        let read =
            read(&json!({"difficulty": ["hard"], "num_examples": "3", "seed": 7, "split": null})).unwrap();
        assert_eq!((read.num_examples, read.seed, read.split.as_str()), (Some(3), Some(7), "train"));
        assert_eq!(read.difficulty, ["hard"]);
    }

    #[test]
    fn what_could_only_fail_later_is_refused_at_once() {
        let found = read(&json!({
            "splitt": 1, "split": "test", "difficulty": ["odd"], "max_turns": 0, "seed": 1.5, "command_timeout_sec": -1
        }));
        assert_eq!(found.unwrap_err().len(), 6);
    }
}
