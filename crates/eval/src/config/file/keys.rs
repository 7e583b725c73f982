//! The keys of a file of evaluations, and what each of them sets.

use std::path::{Path, PathBuf};

use aec_base::document::Shared;
use aec_base::problem::Problem;
use aec_base::text;

use super::layer::{Layer, mirrored};
use super::reader::{Item, Reader};
use super::tree::Entry;
use crate::config::environment::shown;
use crate::config::{Environment, FAMILY, check, headers};

/// Every key that an evaluation may have.
pub(super) const KEYS: [&str; 51] = [
    "env_id",
    "id",
    "name",
    "env_args",
    "args",
    "taskset",
    "harness",
    "extra_env_kwargs",
    "env_dir_path",
    "endpoints_path",
    "provider",
    "endpoint_id",
    "model",
    "api_client_type",
    "api_key_var",
    "api_base_url",
    "header",
    "headers",
    "header_from_state",
    "headers_from_state",
    "sampling",
    "sampling_args",
    "max_tokens",
    "temperature",
    "num_examples",
    "rollouts_per_example",
    "shuffle",
    "shuffle_seed",
    "seed",
    "max_concurrent",
    "max_concurrent_generation",
    "max_concurrent_scoring",
    "independent_scoring",
    "no_interleave_scoring",
    "max_retries",
    "num_workers",
    "disable_env_server",
    "timeout",
    "python",
    "verbose",
    "disable_tui",
    "heartbeat_url",
    "output_dir",
    "state_columns",
    "save_results",
    "resume",
    "resume_path",
    "save_to_hf_hub",
    "hf_hub_dataset_name",
    "ledger",
    "sweep",
];

/// Pairs of keys of which a table has one at most.
pub(super) const EXCLUSIVE: [(&str, &str); 3] =
    [("env_id", "id"), ("endpoint_id", "model"), ("sampling", "sampling_args")];

/// The table a key is in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    Global,
    Eval,
    Ablation,
    Sweep,
}

impl Scope {
    fn phrase(self) -> &'static str {
        match self {
            Self::Global => "at the top of the file",
            Self::Eval => "in `[[eval]]`",
            Self::Ablation => "in `[[ablation]]`",
            Self::Sweep => "in `[ablation.sweep]`",
        }
    }

    /// The keys known here; `eval` and `ablation` are read apart from the rest of the top level.
    fn knows(self, key: &str) -> bool {
        match key {
            "name" => self != Self::Global,
            "sweep" => self == Self::Ablation,
            "eval" | "ablation" => self == Self::Global,
            _ => KEYS.contains(&key),
        }
    }
}

impl Reader<'_> {
    /// Whether a key may be in a table; if not, that is noted.
    pub(super) fn is_known(&mut self, entry: &Entry, scope: Scope) -> bool {
        if scope.knows(&entry.key) {
            return true;
        }
        let here = scope.phrase();
        if entry.key == "name" {
            let what = "`name` cannot be said for all evaluations at once".to_owned();
            self.error(entry.offset, Shared::UnknownKey, what, "move it into the `[[eval]]` that it names");
            return false;
        }
        if entry.key == "sweep" {
            let what = format!("`sweep` has no meaning {here}");
            self.error(entry.offset, Shared::UnknownKey, what, "make the table an `[[ablation]]`");
            return false;
        }
        let known = KEYS.iter().copied().chain(["eval", "ablation"]).filter(|key| scope.knows(key));
        let known: Vec<&str> = known.collect();
        let key = shown(&entry.key);
        let fix = match text::nearest(&entry.key, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "remove the key".to_owned(),
        };
        let problem = Problem::error(format!("unknown key `{key}` {here}"))
            .id(FAMILY.id(Shared::UnknownKey))
            .why(format!("the keys known {here} are {}", known.join(", ")))
            .fix(fix);
        self.push(entry.offset, problem);
        false
    }

    /// The keys of a table as one layer.
    pub(super) fn layer(&mut self, entries: &[&Entry], scope: Scope) -> Layer {
        let mut layer = Layer::default();
        for (one, other) in EXCLUSIVE {
            let find = |key: &str| entries.iter().find(|entry| entry.key == key);
            if let (Some(one), Some(other)) = (find(one), find(other)) {
                let (first, second) = if one.offset < other.offset { (one, other) } else { (other, one) };
                let what = format!("`{}` and `{}` exclude each other", first.key, second.key);
                self.error(second.offset, Shared::Conflict, what, "keep one of them");
            }
        }
        // A list of headers beats a table of them wherever it stands.
        let is_list = |entry: &&&Entry| matches!(entry.key.as_str(), "header" | "header_from_state");
        let (lists, others): (Vec<_>, Vec<_>) = entries.iter().partition(is_list);
        for entry in others.into_iter().chain(lists) {
            if self.is_known(entry, scope) {
                self.set(&mut layer, &entry.key, Item { name: &entry.key, node: &entry.node });
            }
        }
        if layer.options.resume == Some(false) && layer.options.resume_path.is_some() {
            let path = entries.iter().find(|entry| entry.key == "resume_path");
            self.push(path.map_or(0, |entry| entry.offset), check::resume_conflict());
        }
        layer
    }

    /// Sets what a known key says.
    pub(super) fn set(&mut self, layer: &mut Layer, key: &str, item: Item<'_>) {
        self.set_environment(layer, key, item);
        self.set_model(layer, key, item);
        self.set_scope(layer, key, item);
        self.set_output(layer, key, item);
    }

    fn set_environment(&mut self, layer: &mut Layer, key: &str, item: Item<'_>) {
        let options = &mut layer.options;
        match key {
            "env_id" | "id" => {
                options.env_id = self.checked_text(item, |_, text| Environment::parse(text).map(|_| ()));
            }
            "name" => options.name = self.checked_text(item, check::plain_name),
            "env_args" | "args" => {
                let Some(arguments) = self.object(item) else { return };
                let known = options.env_args.get_or_insert_default();
                for (argument, value) in arguments {
                    if known.insert(argument.clone(), value).is_some() {
                        let what =
                            format!("the argument `{}` is in both `env_args` and `args`", shown(&argument));
                        self.error(item.node.offset, Shared::Conflict, what, "keep one of them");
                    }
                }
            }
            "taskset" | "harness" => {
                if let Some(section) = self.object(item) {
                    layer.sections.insert(key.to_owned(), section.into());
                }
            }
            "extra_env_kwargs" => options.extra_env_kwargs = self.object(item),
            "env_dir_path" => options.env_dir_path = self.text(item).map(PathBuf::from),
            "python" => options.python = self.text(item),
            "num_workers" => options.num_workers = self.workers(item),
            "disable_env_server" => options.disable_env_server = self.flag(item),
            _ => {}
        }
    }

    fn set_model(&mut self, layer: &mut Layer, key: &str, item: Item<'_>) {
        let options = &mut layer.options;
        match key {
            "endpoints_path" => {
                options.endpoints_path = self.text(item).map(|path| beside(self.path, Path::new(&path)));
            }
            "provider" => options.provider = self.text(item),
            "endpoint_id" => options.endpoint_id = self.text(item),
            "model" => options.model = self.text(item),
            "api_client_type" => options.api_client_type = self.text(item),
            "api_key_var" => options.api_key_var = self.checked_text(item, check::variable),
            "api_base_url" => options.api_base_url = self.checked_text(item, check::address),
            "headers" => options.headers = self.header_table(item, check::header),
            "header" => {
                let list = self.header_list(item, check::header);
                options.headers = headers::merged(list, options.headers.take());
            }
            "headers_from_state" => {
                options.headers_from_state = self.header_table(item, check::header_from_state);
            }
            "header_from_state" => {
                let list = self.header_list(item, check::header_from_state);
                options.headers_from_state = headers::merged(list, options.headers_from_state.take());
            }
            "sampling_args" => options.sampling_args = self.object(item),
            "sampling" => {
                if let Some(sampling) = self.object(item) {
                    options.sampling_args = self.passed(item, mirrored(item.name, sampling));
                }
            }
            "max_tokens" => options.max_tokens = self.positive(item),
            "temperature" => {
                if let Some(number) = self.number(item) {
                    options.temperature =
                        self.passed(item, check::temperature(item.name, number).map(|()| number));
                }
            }
            _ => {}
        }
    }

    fn set_scope(&mut self, layer: &mut Layer, key: &str, item: Item<'_>) {
        let options = &mut layer.options;
        match key {
            "num_examples" => options.num_examples = self.integer(item),
            "rollouts_per_example" => options.rollouts_per_example = self.positive(item),
            "shuffle" => options.shuffle = self.flag(item),
            "shuffle_seed" => options.shuffle_seed = self.integer(item),
            "seed" => options.seed = self.integer(item),
            "max_concurrent" => options.max_concurrent = self.integer(item),
            "max_concurrent_generation" => options.max_concurrent_generation = self.integer(item),
            "max_concurrent_scoring" => options.max_concurrent_scoring = self.integer(item),
            "independent_scoring" => options.independent_scoring = self.flag(item),
            "no_interleave_scoring" => options.no_interleave_scoring = self.flag(item),
            "max_retries" => options.max_retries = self.count(item),
            "timeout" => {
                if let Some(seconds) = self.number(item) {
                    options.timeout = self.passed(item, check::timeout(item.name, seconds).map(|_| seconds));
                }
            }
            _ => {}
        }
    }

    fn set_output(&mut self, layer: &mut Layer, key: &str, item: Item<'_>) {
        let options = &mut layer.options;
        match key {
            "verbose" => options.verbose = self.flag(item),
            "disable_tui" => options.disable_tui = self.flag(item),
            "heartbeat_url" => options.heartbeat_url = self.checked_text(item, check::address),
            "output_dir" => options.output_dir = self.text(item).map(PathBuf::from),
            "state_columns" => options.state_columns = self.columns(item),
            "save_results" => options.save_results = self.flag(item),
            "resume" => options.resume = self.resume(item),
            "resume_path" => options.resume_path = self.text(item).map(PathBuf::from),
            "save_to_hf_hub" => options.save_to_hf_hub = self.flag(item),
            "hf_hub_dataset_name" => options.hf_hub_dataset_name = self.text(item),
            "ledger" => options.ledger = self.checked_text(item, check::plain_name),
            _ => {}
        }
    }
}

/// A path that is relative to the file it is written in. The documentation's own example writes one relative to the
/// working directory, so that is where an existing file is found too.
fn beside(file: &Path, path: &Path) -> PathBuf {
    let joined = file.parent().unwrap_or_else(|| Path::new("")).join(path);
    if !joined.exists() && path.exists() { path.to_path_buf() } else { joined }
}
