//! Checks of options. Each fault names its option; a file adds the place, the command line has none.

use std::collections::HashSet;

use aec_base::document::Shared;
use aec_base::problem::Problem;
use serde_json::{Value, json};

use crate::config::environment::shown;
use crate::config::options::{EvalOptions, Object};
use crate::config::{Environment, FAMILY, check, headers};

/// Servers accept no more headers than about this many.
const MOST_HEADERS: usize = 100;

/// Sampling parameters that are also sent to chat templates.
const TEMPLATE_KEYS: [&str; 2] = ["reasoning_effort", "enable_thinking"];

/// Pairs of options of which one layer may set only one.
pub(super) const EXCLUSIVE: [(&str, &str); 3] =
    [("env_id", "id"), ("endpoint_id", "model"), ("sampling", "sampling_args")];

#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) key: &'static str,
    /// The item of the option's list or table that is wrong.
    pub(crate) item: Option<usize>,
    pub(crate) problem: Problem,
}

/// A check of a header: the option it is from, its name and its value.
type HeaderCheck = fn(&str, &str, &str) -> Result<(), Problem>;

#[derive(Default)]
struct Faults(Vec<Fault>);

impl Faults {
    fn note(&mut self, key: &'static str, checked: Result<(), Problem>) {
        self.0.extend(checked.err().map(|problem| Fault { key, item: None, problem }));
    }

    fn value<T>(
        &mut self,
        key: &'static str,
        value: Option<T>,
        check: impl Fn(&str, T) -> Result<(), Problem>,
    ) {
        self.note(key, value.map_or(Ok(()), |value| check(key, value)));
    }

    fn text(
        &mut self,
        key: &'static str,
        text: Option<&String>,
        check: impl Fn(&str, &str) -> Result<(), Problem>,
    ) {
        self.value(key, text, |key, text| check::not_empty(key, text).and_then(|()| check(key, text)));
    }

    fn headers<'a>(
        &mut self,
        key: &'static str,
        headers: impl Iterator<Item = Option<(&'a str, &'a str)>>,
        check: HeaderCheck,
    ) {
        let mut seen = HashSet::new();
        for (index, header) in headers.enumerate() {
            let checked = match header {
                // The line is not repeated: it may be a secret.
                None => Err(check::header_problem(
                    format!("a text in `{key}` is not of the form \"Name: Value\""),
                    "write the name, a colon and the value",
                )),
                Some(_) if index == MOST_HEADERS => Err(check::header_problem(
                    format!("`{key}` has more than {MOST_HEADERS} headers"),
                    "no service takes that many; remove some",
                )),
                Some((name, value)) => check(key, name, value).and_then(|()| {
                    let is_new = seen.insert(name.to_ascii_lowercase());
                    let what = format!("the header `{name}` is twice in `{key}`");
                    if is_new { Ok(()) } else { Err(check::header_problem(what, "keep one of them")) }
                }),
            };
            self.0.extend(checked.err().map(|problem| Fault { key, item: Some(index), problem }));
        }
    }
}

/// Finds what is wrong with options, no matter which layer they are laid over.
pub(crate) fn faults(options: &EvalOptions) -> Vec<Fault> {
    let mut found = Faults::default();
    let any = |_: &str, _: &str| Ok(());
    for (key, id) in [("env_id", &options.env_id), ("id", &options.id)] {
        found.text(key, id.as_ref(), |_, text| Environment::parse(text).map(|_| ()));
    }
    found.text("model", options.model.as_ref(), any);
    found.text("endpoint_id", options.endpoint_id.as_ref(), any);
    found.text("provider", options.provider.as_ref(), any);
    found.text("api_client_type", options.api_client_type.as_ref(), any);
    found.text("python", options.python.as_ref(), any);
    found.text("hf_hub_dataset_name", options.hf_hub_dataset_name.as_ref(), any);
    found.text("api_key_var", options.api_key_var.as_ref(), check::variable);
    found.text("api_base_url", options.api_base_url.as_ref(), check::address);
    found.text("heartbeat_url", options.heartbeat_url.as_ref(), check::address);
    found.text("ledger", options.ledger.as_ref(), check::plain_name);
    found.text("name", options.name.as_ref(), check::plain_name);
    for (key, path) in [
        ("endpoints_path", &options.endpoints_path),
        ("env_dir_path", &options.env_dir_path),
        ("output_dir", &options.output_dir),
        ("resume_path", &options.resume_path),
    ] {
        found.value(key, path.as_ref(), |key, path| check::not_empty(key, &path.to_string_lossy()));
    }
    found.value("max_tokens", options.max_tokens, check::positive);
    found.value("rollouts_per_example", options.rollouts_per_example, check::positive);
    found.value("num_workers", options.num_workers, check::workers);
    found.value("temperature", options.temperature, check::temperature);
    found.value("timeout", options.timeout, |key, seconds| check::timeout(key, seconds).map(|_| ()));
    for (key, map) in [
        ("env_args", &options.env_args),
        ("args", &options.args),
        ("extra_env_kwargs", &options.extra_env_kwargs),
        ("sampling_args", &options.sampling_args),
        ("sampling", &options.sampling),
        ("taskset", &options.taskset),
        ("harness", &options.harness),
    ] {
        found.value(key, map.as_ref(), check::arguments);
    }
    found.value("sampling", options.sampling.clone(), |_, sampling| mirrored(sampling).map(|_| ()));
    let (fixed, stated): (HeaderCheck, HeaderCheck) = (check::header, check::header_from_state);
    for (key, lines, check) in
        [("header", &options.header, fixed), ("header_from_state", &options.header_from_state, stated)]
    {
        found.headers(key, lines.iter().flatten().map(|line| headers::parts(line)), check);
    }
    for (key, table, check) in
        [("headers", &options.headers, fixed), ("headers_from_state", &options.headers_from_state, stated)]
    {
        let pairs = table.iter().flatten().map(|(name, value)| Some((name.as_str(), value.as_str())));
        found.headers(key, pairs, check);
    }
    for problem in options.state_columns.iter().flat_map(|columns| check::columns("state_columns", columns)) {
        found.note("state_columns", Err(problem));
    }
    conflicts(options, &mut found);
    found.0
}

fn conflicts(options: &EvalOptions, found: &mut Faults) {
    let said = options.said();
    for (one, other) in EXCLUSIVE {
        if said.contains(&one) && said.contains(&other) {
            let what = format!("`{one}` and `{other}` exclude each other");
            found.note(other, Err(check::conflict(what, "keep one of them")));
        }
    }
    let arguments = options.env_args.iter().flat_map(Object::keys);
    for argument in
        arguments.filter(|name| options.args.as_ref().is_some_and(|args| args.contains_key(*name)))
    {
        let what = format!("the argument `{}` is in both `env_args` and `args`", shown(argument));
        found.note("args", Err(check::conflict(what, "keep one of them")));
    }
    if options.resume.0 == Some(false) && options.resume_path.is_some() {
        let what = "`resume_path` is given although `resume` is false".to_owned();
        found.note("resume_path", Err(check::conflict(what, "remove one of them")));
    }
}

/// The parameters of a `sampling` table. Those that chat templates take are sent to them as well.
pub(super) fn mirrored(mut sampling: Object) -> Result<Object, Problem> {
    let template: Vec<(&str, Value)> =
        TEMPLATE_KEYS.iter().filter_map(|key| Some((*key, sampling.get(*key)?.clone()))).collect();
    if template.is_empty() {
        return Ok(sampling);
    }
    let no_table = |name: &str| {
        Problem::error(format!("`sampling.{name}` must be a table"))
            .id(FAMILY.id(Shared::WrongType))
            .fix("write a table there")
    };
    let Value::Object(body) = sampling.entry("extra_body").or_insert_with(|| json!({})) else {
        return Err(no_table("extra_body"));
    };
    let Value::Object(arguments) = body.entry("chat_template_kwargs").or_insert_with(|| json!({})) else {
        return Err(no_table("extra_body.chat_template_kwargs"));
    };
    for (key, value) in template {
        arguments.insert(key.to_owned(), value);
    }
    Ok(sampling)
}
