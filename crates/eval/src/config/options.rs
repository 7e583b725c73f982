//! The options of an evaluation: one list for the command line, files and packages. An option that was not given stays
//! empty, so that layers of options can be laid over each other.

use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use aec_base::json::Strict;
use clap::builder::{TypedValueParser, ValueParser};
use clap::{ArgAction, Args, ValueHint};
use indexmap::IndexMap;
use serde::de::{Error as _, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::config::faults::{Fault, faults, mirrored};
use crate::config::headers;
use crate::config::json::parse_json_object;

/// Names and values of headers, in order.
pub type Headers = IndexMap<String, String>;

pub type Object = Map<String, Value>;

/// How many processes run the environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workers {
    /// As many as the concurrency needs.
    Auto,
    Count(u32),
}

impl FromStr for Workers {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(Self::Auto),
            text => text.parse().map(Self::Count).map_err(|_| "it must be a whole number or auto"),
        }
    }
}

impl<'de> Deserialize<'de> for Workers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl Visitor<'_> for Reader {
            type Value = Workers;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number or \"auto\"")
            }

            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Workers, E> {
                let count = u32::try_from(number).map(Workers::Count);
                count.map_err(|_| E::invalid_value(Unexpected::Signed(number), &self))
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Workers, E> {
                let auto = (text == "auto").then_some(Workers::Auto);
                auto.ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

/// On, off, or not given. The command line can only turn it on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Switch(pub Option<bool>);

impl Switch {
    pub fn is_on(self) -> bool {
        self.0 == Some(true)
    }
}

impl From<bool> for Switch {
    /// On, or not given.
    fn from(on: bool) -> Self {
        Self(on.then_some(true))
    }
}

fn switch() -> ValueParser {
    clap::builder::BoolValueParser::new().map(Switch::from).into()
}

#[expect(clippy::unnecessary_wraps, reason = "a parser of values may fail")]
fn trimmed(text: &str) -> Result<String, Infallible> {
    Ok(text.trim().to_owned())
}

fn parse_object(text: &str) -> Result<Object, String> {
    parse_json_object("the flag", text)
        .map_err(|problem| format!("{}; fix: write an object, such as '{{\"key\": 1}}'", problem.what))
}

fn read_object<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Object>, D::Error> {
    let found = match Strict::deserialize(deserializer)?.0 {
        Value::Object(map) => return Ok(Some(map)),
        Value::Array(_) => Unexpected::Seq,
        Value::String(_) => Unexpected::Other("text"),
        _ => Unexpected::Other("one value"),
    };
    Err(D::Error::invalid_type(found, &"a table"))
}

/// What all types of option fields have in common.
trait Said {
    fn is_said(&self) -> bool;
    fn or(self, base: Self) -> Self;
}

impl<T> Said for Option<T> {
    fn is_said(&self) -> bool {
        self.is_some()
    }

    fn or(self, base: Self) -> Self {
        Self::or(self, base)
    }
}

impl Said for Switch {
    fn is_said(&self) -> bool {
        self.0.is_some()
    }

    fn or(self, base: Self) -> Self {
        Self(self.0.or(base.0))
    }
}

/// Declares the struct once, so that code which visits all fields cannot forget one.
macro_rules! eval_options {
    ($($(#[$attribute:meta])* $field:ident: $type:ty,)*) => {
        /// The options given for one evaluation. The fields are the keys of files; those without a flag have `skip`.
        #[derive(Clone, Debug, Default, PartialEq, Args, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct EvalOptions {
            $($(#[$attribute])* pub $field: $type,)*
        }

        impl EvalOptions {
            pub(crate) const KEYS: &'static [&'static str] = &[$(stringify!($field)),*];

            /// Names of the options that were given, in the order of their declaration.
            pub fn said(&self) -> Vec<&'static str> {
                let mut names = Vec::new();
                $(if Said::is_said(&self.$field) {
                    names.push(stringify!($field));
                })*
                names
            }

            /// Each option of `self`, or of `base` where `self` does not set it.
            fn or(self, base: Self) -> Self {
                Self { $($field: Said::or(self.$field, base.$field),)* }
            }
        }
    };
}

eval_options! {
    /// The environment: a name, `owner/name`, either with `@version`, or the path of a directory
    #[arg(skip)]
    env_id: Option<String>,
    /// Another spelling of `env_id`
    #[arg(skip)]
    id: Option<String>,
    /// Model or endpoint id [default: gpt-4.1-mini]
    #[arg(long, short, value_name = "MODEL")]
    model: Option<String>,
    /// An endpoint that the file of endpoints must have
    #[arg(skip)]
    endpoint_id: Option<String>,
    /// Examples; 0 or less for all [default: 5, or the package's default]
    #[arg(long, short, value_name = "N", allow_negative_numbers = true)]
    num_examples: Option<i64>,
    /// Rollouts of each example [default: 3, or the package's default]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rollouts_per_example: Option<u32>,
    /// Save results to disk as they come
    #[arg(long, short, action = ArgAction::SetTrue, value_parser = switch())]
    save_results: Switch,

    /// Endpoints file, or the directory of one [default: the configured one]
    #[arg(long, short = 'e', visible_alias = "endpoints", value_name = "FILE", value_hint = ValueHint::AnyPath)]
    #[arg(help_heading = "Model")]
    endpoints_path: Option<PathBuf>,
    /// Provider of the model: prime, openrouter, openai, anthropic, minimax, deepseek, glm, local or vllm
    #[arg(long, short, value_name = "NAME", help_heading = "Model")]
    provider: Option<String>,
    /// Address of the model's service
    #[arg(long, short = 'b', value_name = "URL", help_heading = "Model")]
    api_base_url: Option<String>,
    /// Environment variable that holds the key
    #[arg(long, short = 'k', value_name = "NAME", help_heading = "Model")]
    api_key_var: Option<String>,
    /// Format of the service, such as `openai_chat_completions` or `anthropic_messages`
    #[arg(long, value_name = "NAME", help_heading = "Model")]
    api_client_type: Option<String>,
    /// Header that is sent with every request
    #[arg(long, value_name = "NAME: VALUE", help_heading = "Model")]
    header: Option<Vec<String>>,
    /// Headers as a table; `header` takes precedence
    #[arg(skip)]
    headers: Option<Headers>,
    /// Headers whose values come from the rollout's state, as `Name: key`
    #[arg(skip)]
    header_from_state: Option<Vec<String>>,
    /// The same as a table; `header_from_state` takes precedence
    #[arg(skip)]
    headers_from_state: Option<Headers>,
    /// Randomness of answers
    #[arg(long, short = 'T', value_name = "NUMBER", help_heading = "Model")]
    temperature: Option<f64>,
    /// Most tokens in an answer
    #[arg(long, short = 't', value_name = "N", help_heading = "Model")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    max_tokens: Option<u32>,
    /// Sampling parameters, as a JSON object; its keys take precedence over -T and -t
    #[arg(long, short = 'S', value_name = "JSON", value_parser = parse_object, help_heading = "Model")]
    #[serde(deserialize_with = "read_object")]
    sampling_args: Option<Object>,
    /// Sampling parameters; those that chat templates know are sent to them as well
    #[arg(skip)]
    #[serde(deserialize_with = "read_object")]
    sampling: Option<Object>,

    /// Arguments of `load_environment`, as a JSON object
    #[arg(long, short = 'a', value_name = "JSON", value_parser = parse_object, help_heading = "Environment")]
    #[serde(deserialize_with = "read_object")]
    env_args: Option<Object>,
    /// Another spelling of `env_args`; both may have arguments
    #[arg(skip)]
    #[serde(deserialize_with = "read_object")]
    args: Option<Object>,
    /// Becomes `config.taskset` of `env_args`
    #[arg(skip)]
    #[serde(deserialize_with = "read_object")]
    taskset: Option<Object>,
    /// Becomes `config.harness` of `env_args`
    #[arg(skip)]
    #[serde(deserialize_with = "read_object")]
    harness: Option<Object>,
    /// Replacements for settings of the loaded environment, such as `{"max_turns": 20}`
    #[arg(long, short = 'x', value_name = "JSON", value_parser = parse_object, help_heading = "Environment")]
    #[serde(deserialize_with = "read_object")]
    extra_env_kwargs: Option<Object>,
    /// Directory of environments [default: ./environments, then those of this project]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Environment")]
    env_dir_path: Option<PathBuf>,
    /// Interpreter in which the environment is installed; it then loads packages of aec-bench too
    #[arg(long, value_name = "PYTHON", value_hint = ValueHint::FilePath, help_heading = "Environment")]
    python: Option<String>,
    /// Worker processes of a Python environment, or auto
    #[arg(long, short = 'w', value_name = "N", help_heading = "Environment")]
    num_workers: Option<Workers>,
    /// Use one worker process, however many rollouts run at once
    #[arg(long, conflicts_with = "num_workers", action = ArgAction::SetTrue, value_parser = switch())]
    #[arg(help_heading = "Environment")]
    disable_env_server: Switch,
    /// Shuffle the examples with a seed
    #[arg(long, action = ArgAction::SetTrue, value_parser = switch(), help_heading = "Environment")]
    shuffle: Switch,
    /// The seed of --shuffle [default: 0]
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Environment")]
    shuffle_seed: Option<i64>,
    /// Seed from which each rollout gets its own seed, for services that take one
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Environment")]
    seed: Option<i64>,

    /// Rollouts at once; 0 or less for no limit [default: 32]
    #[arg(long, short = 'c', value_name = "N", allow_negative_numbers = true, help_heading = "Pace")]
    max_concurrent: Option<i64>,
    /// Rollouts generated at once [default: --max-concurrent]
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Pace")]
    max_concurrent_generation: Option<i64>,
    /// Rollouts scored at once [default: --max-concurrent]
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Pace")]
    max_concurrent_scoring: Option<i64>,
    /// Score each rollout by itself, not together with the others of its example
    #[arg(long, short = 'i', action = ArgAction::SetTrue, value_parser = switch(), help_heading = "Pace")]
    independent_scoring: Switch,
    /// Score only after everything is generated
    #[arg(long, short = 'N', action = ArgAction::SetTrue, value_parser = switch(), help_heading = "Pace")]
    no_interleave_scoring: Switch,
    /// How often to retry a rollout that failed through no fault of the model [default: 0]
    #[arg(long, value_name = "N", help_heading = "Pace")]
    max_retries: Option<u32>,
    /// Seconds that a rollout may take
    #[arg(long, value_name = "SECONDS", help_heading = "Pace")]
    timeout: Option<f64>,
    /// Address of a monitor that is called whenever rollouts finish
    #[arg(long, value_name = "URL", help_heading = "Pace")]
    heartbeat_url: Option<String>,
    /// Plain lines instead of a progress bar
    #[arg(long = "debug", short = 'd', visible_alias = "disable-tui", help_heading = "Pace")]
    #[arg(action = ArgAction::SetTrue, value_parser = switch())]
    disable_tui: Switch,
    /// Whether details are logged
    #[arg(skip)]
    verbose: Switch,

    /// Whether to continue the newest incomplete evaluation
    #[arg(skip)]
    resume: Switch,
    /// The evaluation to continue
    #[arg(skip)]
    resume_path: Option<PathBuf>,
    /// Columns of the state to save with each rollout, separated by commas
    #[arg(long, short = 'C', value_name = "NAMES", value_delimiter = ',', value_parser = trimmed)]
    #[arg(help_heading = "Results")]
    state_columns: Option<Vec<String>>,
    /// Directory of results [default: outputs beside the package, else ./outputs]
    #[arg(long, short = 'o', value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Results")]
    output_dir: Option<PathBuf>,
    /// Name of the evaluation; names its directory instead of the environment
    #[arg(long, value_name = "NAME", help_heading = "Results")]
    name: Option<String>,
    /// Publish the results on the Hugging Face hub
    #[arg(long, short = 'H', action = ArgAction::SetTrue, value_parser = switch(), help_heading = "Results")]
    save_to_hf_hub: Switch,
    /// Name of the dataset on the hub [default: made from environment and model]
    #[arg(long, short = 'D', value_name = "OWNER/NAME", help_heading = "Results")]
    hf_hub_dataset_name: Option<String>,
    /// Bring the rollouts into the ledger as this experiment
    #[arg(long, value_name = "EXP", help_heading = "Results")]
    ledger: Option<String>,
}

impl EvalOptions {
    /// Lays these options over `base`: what is set here wins, field by field. Headers merge; any other map replaces the
    /// whole map below. `endpoint_id` and `model` exclude each other, so setting one here removes the other in `base`.
    #[must_use]
    pub fn over(mut self, mut base: Self) -> Self {
        if self.endpoint_id.is_some() {
            base.model = None;
        }
        if self.model.is_some() {
            base.endpoint_id = None;
        }
        // Likewise, a run to continue and `resume = false` exclude each other.
        if self.resume.0 == Some(false) {
            base.resume_path = None;
        }
        if self.resume_path.is_some() && base.resume.0 == Some(false) {
            base.resume = Switch::default();
        }
        // Within one layer `sampling_args` takes precedence over the two plain fields. An upper layer's plain field
        // still takes precedence over a lower layer's map, or an evaluation could not override the global options.
        if let Some(sampling) = &mut base.sampling_args {
            if self.max_tokens.is_some() {
                sampling.shift_remove("max_tokens");
            }
            if self.temperature.is_some() {
                sampling.shift_remove("temperature");
            }
        }
        self.headers = headers::merged(self.headers, base.headers.take());
        self.headers_from_state = headers::merged(self.headers_from_state, base.headers_from_state.take());
        self.or(base)
    }

    /// The options with alternative spellings (`id`, `args`, `sampling`, the lists of headers) folded into the main
    /// ones, or the faults of the options.
    pub(crate) fn normal(mut self) -> Result<Self, Vec<Fault>> {
        let faults = faults(&self);
        if !faults.is_empty() {
            return Err(faults);
        }
        self.env_id = self.env_id.or_else(|| self.id.take());
        if let Some(arguments) = self.args.take() {
            self.env_args.get_or_insert_default().extend(arguments);
        }
        if let Some(sampling) = self.sampling.take() {
            self.sampling_args = mirrored(sampling).ok();
        }
        for (lines, table) in [
            (&mut self.header, &mut self.headers),
            (&mut self.header_from_state, &mut self.headers_from_state),
        ] {
            let lines = lines.take().map(|lines| headers::from_lines(&lines));
            *table = headers::merged(lines, table.take());
        }
        Ok(self)
    }
}
