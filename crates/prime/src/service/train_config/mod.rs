//! Writes training configuration files from a few options.
//!
//! There are two targets. [`Target::SharedLora`] is the file of Prime's former shared training, with one `[[env]]` for
//! each view of the tasks. [`Target::PrimeRl`] is the current file of prime-rl, for Prime's dedicated machines and for
//! the user's own. The same options always give the same text.

mod prime_rl;
mod shared_lora;
mod text;

use crate::service::hub::EnvironmentName;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Target {
    /// Prime's shared `LoRA` training, up to `prime` 0.12.
    #[default]
    SharedLora,
    /// prime-rl from 0.8 on.
    PrimeRl,
}

impl std::str::FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "shared-lora" => Ok(Self::SharedLora),
            "prime-rl" => Ok(Self::PrimeRl),
            _ => Err(format!("{text:?} is not a target: use shared-lora or prime-rl")),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Difficulties {
    /// One view that allows these, or all if the list is empty.
    Together(Vec<String>),
    /// One view for each, sampled in this ratio.
    Ratios(Vec<(String, f64)>),
}

/// Keeps examples that are neither solved nor hopeless.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DifficultyFiltering {
    /// Mean reward from which an example is easy.
    pub easy_threshold: f64,
    /// Mean reward up to which an example is hard.
    pub hard_threshold: f64,
    /// Share of easy examples to keep.
    pub easy_fraction: f64,
    /// Share of hard examples to keep.
    pub hard_fraction: f64,
}

impl Default for DifficultyFiltering {
    fn default() -> Self {
        Self { easy_threshold: 0.8, hard_threshold: 0.2, easy_fraction: 0.0, hard_fraction: 0.0 }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct TrainOptions {
    /// The environment, `owner/name`.
    pub environment: EnvironmentName,
    pub model: String,
    pub split: String,
    pub difficulties: Difficulties,
    pub harness: Option<String>,
    /// Examples of each view; all if absent.
    pub num_examples: Option<u32>,
    pub max_steps: u32,
    /// Rollouts per step.
    pub batch_size: u32,
    pub rollouts_per_example: u32,
    /// Most tokens of an answer.
    pub max_tokens: u32,
    /// Steps between evaluations.
    pub eval_interval: u32,
    pub eval_num_examples: u32,
    pub eval_rollouts_per_example: u32,
    /// Whether the model is evaluated before training.
    pub eval_base_model: bool,
    pub filtering: Option<DifficultyFiltering>,
    /// How many adapters or checkpoints are kept.
    pub keep_last: u32,
}

impl TrainOptions {
    pub fn new(environment: EnvironmentName) -> Self {
        Self {
            environment,
            model: "Qwen/Qwen3.5-0.8B".to_owned(),
            split: "train".to_owned(),
            difficulties: Difficulties::Together(Vec::new()),
            harness: None,
            num_examples: None,
            max_steps: 20,
            batch_size: 32,
            rollouts_per_example: 4,
            max_tokens: 2048,
            eval_interval: 10,
            eval_num_examples: 10,
            eval_rollouts_per_example: 1,
            eval_base_model: true,
            filtering: None,
            keep_last: 3,
        }
    }
}

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TrainOptionsError {
    #[error(
        "--difficulty and --difficulty-ratio exclude each other: one view of several difficulties, or one view each"
    )]
    DifficultyTwice,
    #[error("{text:?} is not a ratio: write DIFFICULTY=RATIO, such as easy=0.45")]
    Ratio { text: String },
    #[error("the ratio of {difficulty} must be a positive number, not {ratio}")]
    RatioRange { difficulty: String, ratio: f64 },
    #[error("the difficulty {difficulty} is given twice")]
    Repeated { difficulty: String },
    #[error("{what} must not be empty")]
    Empty { what: &'static str },
    #[error("{what} must be positive")]
    Zero { what: &'static str },
    #[error("--batch-size {batch_size} is not a multiple of --rollouts-per-example {rollouts}")]
    Batch { batch_size: u32, rollouts: u32 },
    #[error("{what} must be from 0 to 1, not {value}")]
    Fraction { what: &'static str, value: f64 },
    #[error("--easy-threshold {easy} must be above --hard-threshold {hard}")]
    Thresholds { easy: f64, hard: f64 },
}

impl Difficulties {
    /// Reads the flags `--difficulty` and `--difficulty-ratio`.
    pub fn from_flags(together: &[String], ratios: &[String]) -> Result<Self, TrainOptionsError> {
        if ratios.is_empty() {
            return Ok(Self::Together(together.to_vec()));
        }
        if !together.is_empty() {
            return Err(TrainOptionsError::DifficultyTwice);
        }
        let ratio = |text: &String| {
            let bad = || TrainOptionsError::Ratio { text: text.clone() };
            let (difficulty, number) = text.split_once('=').ok_or_else(bad)?;
            let number = number.trim().parse().map_err(|_| bad())?;
            Ok((difficulty.trim().to_owned(), number))
        };
        ratios.iter().map(ratio).collect::<Result<_, _>>().map(Self::Ratios)
    }

    fn check(&self) -> Result<(), TrainOptionsError> {
        let names: Vec<&String> = match self {
            Self::Together(names) => names.iter().collect(),
            Self::Ratios(ratios) if ratios.is_empty() => {
                return Err(TrainOptionsError::Empty { what: "the list of ratios" });
            }
            Self::Ratios(ratios) => ratios.iter().map(|(name, _)| name).collect(),
        };
        for (index, name) in names.iter().enumerate() {
            if name.trim().is_empty() {
                return Err(TrainOptionsError::Empty { what: "a difficulty" });
            }
            if names[..index].contains(name) {
                return Err(TrainOptionsError::Repeated { difficulty: (*name).clone() });
            }
        }
        if let Self::Ratios(ratios) = self
            && let Some((difficulty, ratio)) =
                ratios.iter().find(|(_, ratio)| !ratio.is_finite() || *ratio <= 0.0)
        {
            return Err(TrainOptionsError::RatioRange { difficulty: difficulty.clone(), ratio: *ratio });
        }
        Ok(())
    }
}

impl DifficultyFiltering {
    fn check(&self) -> Result<(), TrainOptionsError> {
        for (what, value) in [
            ("--easy-threshold", self.easy_threshold),
            ("--hard-threshold", self.hard_threshold),
            ("--easy-fraction", self.easy_fraction),
            ("--hard-fraction", self.hard_fraction),
        ] {
            if !(0.0..=1.0).contains(&value) {
                return Err(TrainOptionsError::Fraction { what, value });
            }
        }
        if self.easy_threshold <= self.hard_threshold {
            return Err(TrainOptionsError::Thresholds {
                easy: self.easy_threshold,
                hard: self.hard_threshold,
            });
        }
        Ok(())
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenConfig {
    pub text: String,
    /// Remarks for the user.
    pub notes: Vec<String>,
}

struct View {
    /// Suffix of the name, which makes views distinct.
    suffix: String,
    ratio: Option<f64>,
    difficulties: Vec<String>,
}

impl TrainOptions {
    pub fn write(&self, target: Target) -> Result<WrittenConfig, TrainOptionsError> {
        self.check()?;
        let mut notes = Vec::new();
        if self.split == "all" || self.split == "eval" {
            notes.push(format!(
                "split {:?} trains on the tasks that the evaluation uses; choose `train` to keep them apart",
                self.split
            ));
        }
        let text = match target {
            Target::SharedLora => {
                notes.push(
                    "Prime no longer starts shared LoRA runs; this file is for services that still do"
                        .to_owned(),
                );
                shared_lora::write(self)
            }
            Target::PrimeRl => prime_rl::write(self, &mut notes),
        };
        Ok(WrittenConfig { text, notes })
    }

    fn check(&self) -> Result<(), TrainOptionsError> {
        for (what, text) in [("--model", &self.model), ("--split", &self.split)] {
            if text.trim().is_empty() {
                return Err(TrainOptionsError::Empty { what });
            }
        }
        for (what, number) in [
            ("--max-steps", self.max_steps),
            ("--batch-size", self.batch_size),
            ("--rollouts-per-example", self.rollouts_per_example),
            ("--max-tokens", self.max_tokens),
            ("--num-examples", self.num_examples.unwrap_or(1)),
            ("--eval-interval", self.eval_interval),
            ("--eval-num-examples", self.eval_num_examples),
            ("--eval-rollouts-per-example", self.eval_rollouts_per_example),
            ("--adapters-keep-last", self.keep_last),
        ] {
            if number == 0 {
                return Err(TrainOptionsError::Zero { what });
            }
        }
        if !self.batch_size.is_multiple_of(self.rollouts_per_example) {
            let (batch_size, rollouts) = (self.batch_size, self.rollouts_per_example);
            return Err(TrainOptionsError::Batch { batch_size, rollouts });
        }
        self.difficulties.check()?;
        self.filtering.as_ref().map_or(Ok(()), DifficultyFiltering::check)
    }

    fn views(&self) -> Vec<View> {
        match &self.difficulties {
            Difficulties::Together(names) => {
                vec![View { suffix: String::new(), ratio: None, difficulties: names.clone() }]
            }
            Difficulties::Ratios(ratios) => ratios
                .iter()
                .map(|(name, ratio)| View {
                    suffix: format!("-{name}"),
                    ratio: Some(*ratio),
                    difficulties: vec![name.clone()],
                })
                .collect(),
        }
    }

    fn arguments(&self, view: &View, split: &str, num_examples: Option<u32>) -> Vec<(&'static str, String)> {
        let mut arguments = vec![("split", text::quoted(split))];
        match view.difficulties.as_slice() {
            [] => {}
            [one] => arguments.push(("difficulty", text::quoted(one))),
            several => arguments.push(("difficulty", text::list(several))),
        }
        if let Some(harness) = &self.harness {
            arguments.push(("harness", text::quoted(harness)));
        }
        if let Some(number) = num_examples {
            arguments.push(("num_examples", number.to_string()));
        }
        arguments
    }
}

#[cfg(test)]
mod tests;
