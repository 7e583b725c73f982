//! Translates Harbor's `task.toml` to ours. A key without a counterpart is an error if the task would not be the same
//! without it, a warning if it would be harder or easier, and a note if nothing depends on it.

use aec_base::problem::Problem;
use aec_task::file::Difficulty;
use toml::{Table, Value};

use crate::FAMILY;

/// Harbor's default limit of the verifier, in seconds.
const VERIFIER_SECONDS: f64 = 600.0;
/// Our default limit of the agent, in seconds; Harbor has none by default.
const AGENT_SECONDS: f64 = 600.0;
/// The longest limit that a task may ask for.
const WEEK: f64 = 604_800.0;

/// Our `task.toml`, and what else follows from Harbor's.
pub(super) struct TaskFile {
    pub(super) text: String,
    /// The image, if the task names one instead of a Dockerfile.
    pub(super) image: Option<String>,
    /// The agent's working directory, if the file names it.
    pub(super) workdir: Option<String>,
    /// The id that this program once gave it.
    pub(super) task_id: Option<String>,
    pub(super) problems: Vec<Problem>,
}

/// Translates a parsed file.
pub(super) fn translate(mut harbor: Table) -> TaskFile {
    let mut told = Told::default();
    let mut ours = Table::new();
    ours.insert("version".to_owned(), "1.0".into());
    for key in ["schema_version", "version"] {
        harbor.remove(key);
    }
    let mut metadata = told.table(harbor.remove("metadata"), "metadata");
    let task_id = take_text(&mut metadata, "aec_bench_task");
    let mut tags = words(metadata.remove("tags"));
    if let Some(package) = harbor.remove("task") {
        let mut package = told.table(Some(package), "task");
        tags.extend(words(package.remove("keywords")));
        told.rest("task", &package, |_| Weight::Note);
    }
    told.metadata(&mut ours, metadata, tags);
    let artifacts = words(harbor.remove("artifacts"));
    if artifacts.iter().any(|artifact| artifact != "/workspace") {
        told.add("artifacts", Weight::Note, "the submission here is always the content of /workspace");
    }
    let agent = told.table(harbor.remove("agent"), "agent");
    let mut environment = told.table(harbor.remove("environment"), "environment");
    let internet = told.internet(&agent, &mut environment);
    told.agent(&mut ours, agent);
    let verifier = told.table(harbor.remove("verifier"), "verifier");
    told.verifier(&mut ours, verifier);
    let (image, workdir) = told.environment(&mut ours, environment, internet);
    let solution = told.table(harbor.remove("solution"), "solution");
    told.rest("solution", &solution, |_| Weight::Warning);
    told.rest("", &harbor, |key| match key {
        "steps" | "multi_step_reward_strategy" => Weight::Error,
        "source" => Weight::Note,
        _ => Weight::Warning,
    });
    let text = toml::to_string(&ours).unwrap_or_default();
    TaskFile { text, image, workdir, task_id, problems: told.0 }
}

/// How important a key is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Weight {
    /// The task would not be the same without it.
    Error,
    /// The task would be harder or easier without it.
    Warning,
    Note,
}

/// What could not be translated.
#[derive(Default)]
struct Told(Vec<Problem>);

impl Told {
    fn add(&mut self, key: &str, weight: Weight, why: &str) {
        let problem = match weight {
            Weight::Error => Problem::error(format!("`{key}` has no counterpart here"))
                .id(FAMILY.number(40))
                .fix("change the task so that it does without, then import it again"),
            Weight::Warning => Problem::warning(format!("`{key}` was not taken over"))
                .id(FAMILY.number(41))
                .fix("look at the imported task before you trust its rewards"),
            Weight::Note => Problem::note(format!("`{key}` was left out")).id(FAMILY.number(42)),
        };
        self.0.push(problem.why(why));
    }

    /// Reports keys that are left over.
    fn rest(&mut self, table: &str, keys: &Table, weigh: impl Fn(&str) -> Weight) {
        for (key, value) in keys.iter().filter(|(_, value)| !is_empty(value)) {
            let dotted = if table.is_empty() { key.clone() } else { format!("{table}.{key}") };
            let shown: String = value.to_string().chars().take(120).collect();
            self.add(&dotted, weigh(key), &format!("it says {}", aec_base::text::printable(&shown)));
        }
    }

    fn table(&mut self, value: Option<Value>, key: &str) -> Table {
        match value {
            None => Table::new(),
            Some(Value::Table(table)) => table,
            Some(_) => {
                self.add(key, Weight::Error, "it is not a table");
                Table::new()
            }
        }
    }

    fn number(&mut self, table: &mut Table, name: &str, key: &str) -> Option<f64> {
        let value = table.remove(key)?;
        #[expect(clippy::cast_precision_loss, reason = "limits of tasks are small")]
        let number = value.as_float().or_else(|| value.as_integer().map(|number| number as f64));
        let number = number.filter(|number| number.is_finite() && *number > 0.0);
        if number.is_none() {
            self.add(&format!("{name}.{key}"), Weight::Error, "it is not a number above 0");
        }
        number
    }

    fn metadata(&mut self, ours: &mut Table, mut theirs: Table, mut tags: Vec<String>) {
        let mut table = Table::new();
        if let Some(word) = take_text(&mut theirs, "difficulty") {
            let key = if Difficulty::parse(&word).is_some() { "difficulty" } else { "generation_difficulty" };
            table.insert(key.to_owned(), word.into());
        }
        for key in ["category", "domain", "standard", "generation_difficulty"] {
            if let Some(text) = take_text(&mut theirs, key) {
                table.entry(key.to_owned()).or_insert_with(|| text.into());
            }
        }
        if let Some(word) =
            take_text(&mut theirs, "visibility").filter(|word| ["public", "holdout"].contains(&word.as_str()))
        {
            table.insert("visibility".to_owned(), word.into());
        }
        let mut seen = std::collections::BTreeSet::new();
        tags.retain(|tag| seen.insert(tag.clone()));
        if !tags.is_empty() {
            table.insert("tags".to_owned(), Value::Array(tags.into_iter().map(Value::from).collect()));
        }
        self.rest("metadata", &theirs, |_| Weight::Note);
        if !table.is_empty() {
            ours.insert("metadata".to_owned(), Value::Table(table));
        }
    }

    fn agent(&mut self, ours: &mut Table, mut agent: Table) {
        let seconds = self.number(&mut agent, "agent", "timeout_sec");
        let seconds = seconds.unwrap_or_else(|| {
            let why = format!("Harbor then has no limit; here an agent gets {AGENT_SECONDS} seconds");
            self.add("agent.timeout_sec is absent: it", Weight::Note, &why);
            AGENT_SECONDS
        });
        for key in ["network_mode", "allowed_hosts"] {
            agent.remove(key);
        }
        self.rest("agent", &agent, |_| Weight::Warning);
        ours.insert("agent".to_owned(), table([("timeout_sec", seconds.min(WEEK).into())]));
    }

    fn verifier(&mut self, ours: &mut Table, mut verifier: Table) {
        let seconds = self.number(&mut verifier, "verifier", "timeout_sec").unwrap_or(VERIFIER_SECONDS);
        if verifier.remove("environment_mode").is_some_and(|mode| mode.as_str() == Some("separate")) {
            let why = "verifiers here always run in a separate room, on the content of /workspace";
            self.add("verifier.environment_mode", Weight::Note, why);
        }
        self.rest("verifier", &verifier, |key| match key {
            "env" | "environment" | "collect" => Weight::Error,
            _ => Weight::Warning,
        });
        ours.insert("verifier".to_owned(), table([("timeout_sec", seconds.min(WEEK).into())]));
    }

    /// Whether the agent has internet access: according to its own phase, else to the environment, else yes.
    fn internet(&mut self, agent: &Table, environment: &mut Table) -> bool {
        let hosts = environment.remove("allowed_hosts").is_some_and(|hosts| !is_empty(&hosts))
            || agent.get("allowed_hosts").is_some_and(|hosts| !is_empty(hosts));
        let old = environment.remove("allow_internet").and_then(|value| value.as_bool());
        let mode = environment.remove("network_mode");
        let mode = agent.get("network_mode").cloned().or(mode);
        match mode.as_ref().map(|mode| mode.as_str().unwrap_or_default()) {
            Some("public") => true,
            Some("no-network") => false,
            None if hosts => {
                self.add(
                    "environment.allowed_hosts",
                    Weight::Error,
                    "access to some hosts only is not supported here",
                );
                false
            }
            None => old.unwrap_or(true),
            Some(_) => {
                let why = "a task here has either full internet access or none";
                self.add("environment.network_mode", Weight::Error, why);
                false
            }
        }
    }

    /// The image and the working directory.
    fn environment(
        &mut self,
        ours: &mut Table,
        mut theirs: Table,
        internet: bool,
    ) -> (Option<String>, Option<String>) {
        let name = "environment";
        let mut table = Table::new();
        let mut put = |key: &str, value: Value| drop(table.insert(key.to_owned(), value));
        if let Some(seconds) = self.number(&mut theirs, name, "build_timeout_sec") {
            put("build_timeout_sec", seconds.min(WEEK).into());
        }
        for (key, old) in [("memory_mb", "memory"), ("storage_mb", "storage")] {
            let size = theirs.remove(old).and_then(|size| size.as_str().and_then(mebibytes));
            if let Some(number) = self.number(&mut theirs, name, key).or(size) {
                put(key, whole(number));
            } else {
                let why = "Harbor then has no limit; here the default holds";
                self.add(&format!("environment.{key} is absent: it"), Weight::Note, why);
            }
        }
        match self.number(&mut theirs, name, "cpus") {
            Some(cpus) => put("cpus", whole(cpus)),
            None => {
                let why = "Harbor then has no limit; here the default holds";
                self.add("environment.cpus is absent: it", Weight::Note, why);
            }
        }
        put("allow_internet", internet.into());
        ours.insert(name.to_owned(), Value::Table(table));
        let image = take_text(&mut theirs, "docker_image");
        let workdir = take_text(&mut theirs, "workdir");
        if theirs.get("os").and_then(Value::as_str) == Some("linux") {
            theirs.remove("os");
        }
        self.rest(name, &theirs, |key| match key {
            "gpus" | "gpu_types" | "tpu" | "mcp_servers" | "env" | "os" | "healthcheck" => Weight::Error,
            _ => Weight::Warning,
        });
        (image, workdir)
    }
}

fn table<const N: usize>(pairs: [(&str, Value); N]) -> Value {
    Value::Table(pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

fn take_text(table: &mut Table, key: &str) -> Option<String> {
    let text = table.get(key)?.as_str()?.to_owned();
    table.remove(key);
    Some(text)
}

fn words(value: Option<Value>) -> Vec<String> {
    let Some(Value::Array(items)) = value else { return Vec::new() };
    items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Whether a value is empty.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Table(table) => table.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Integer(number) => *number == 0,
        _ => false,
    }
}

/// Parts of a core or of a mebibyte are rounded up.
#[expect(clippy::cast_possible_truncation, reason = "clamped")]
fn whole(number: f64) -> Value {
    Value::Integer(number.ceil().clamp(1.0, f64::from(u32::MAX)) as i64)
}

/// An older format of sizes: `2G`, `512M`.
fn mebibytes(text: &str) -> Option<f64> {
    let text = text.trim().trim_end_matches(['b', 'B']).trim_end_matches(['i', 'I']);
    let (number, factor) = match text.chars().last()?.to_ascii_uppercase() {
        'K' => (&text[..text.len() - 1], 1.0 / 1024.0),
        'M' => (&text[..text.len() - 1], 1.0),
        'G' => (&text[..text.len() - 1], 1024.0),
        'T' => (&text[..text.len() - 1], 1024.0 * 1024.0),
        _ => (text, 1.0 / 1024.0 / 1024.0),
    };
    number.trim().parse::<f64>().ok().map(|number| number * factor).filter(|size| *size > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(text: &str) -> (String, Vec<(Option<String>, String)>) {
        let file = translate(text.parse().unwrap());
        (file.text, file.problems.into_iter().map(|problem| (problem.id, problem.what)).collect())
    }

    #[test]
    fn defaults_of_harbor_are_said() {
        let (text, problems) = translated("");
        let table: Table = text.parse().unwrap();
        assert_eq!(table["environment"]["allow_internet"].as_bool(), Some(true));
        assert_eq!(table["verifier"]["timeout_sec"].as_float(), Some(600.0));
        assert_eq!(
            problems.len(),
            4,
            "agent time, memory, storage and cores have no limit there: {problems:?}"
        );
        assert!(problems.iter().all(|(id, _)| id.as_deref() == Some("Y042")));
    }

    #[test]
    fn what_changes_the_task_is_refused_and_what_does_not_is_told() {
        let (_, problems) = translated(
            "source = 'x'\n[task]\nname = 'a/b'\nkeywords = ['k']\n[environment]\nnetwork_mode = 'allowlist'\ngpus = 1\n\
             memory = '2G'\nstorage_mb = 5\ncpus = 1.5\n[verifier]\nuser = 'root'\n[verifier.env]\nA = 'b'\n\
             [agent]\ntimeout_sec = 5\n[[steps]]\nname = 'one'\n",
        );
        let of = |id: &str| -> Vec<&str> {
            problems
                .iter()
                .filter(|(found, _)| found.as_deref() == Some(id))
                .map(|(_, what)| what.as_str())
                .collect()
        };
        assert_eq!(
            of("Y040"),
            [
                "`environment.network_mode` has no counterpart here",
                "`verifier.env` has no counterpart here",
                "`environment.gpus` has no counterpart here",
                "`steps` has no counterpart here"
            ]
        );
        assert_eq!(of("Y041"), ["`verifier.user` was not taken over"]);
        assert_eq!(of("Y042"), ["`task.name` was left out", "`source` was left out"]);
    }

    #[test]
    fn numbers_and_tags_are_taken_over() {
        let (text, problems) = translated(
            "[task]\nname='a/b'\nkeywords=['x','y']\n[metadata]\ndifficulty='expert'\ntags=['x']\n[agent]\ntimeout_sec=90\n\
             [environment]\nmemory='1.5G'\nstorage_mb=100\ncpus=0.5\nallow_internet=false\n",
        );
        let table: Table = text.parse().unwrap();
        assert_eq!(table["environment"]["memory_mb"].as_integer(), Some(1536));
        assert_eq!(table["environment"]["cpus"].as_integer(), Some(1));
        assert_eq!(table["environment"]["allow_internet"].as_bool(), Some(false));
        assert_eq!(table["metadata"]["generation_difficulty"].as_str(), Some("expert"));
        assert_eq!(table["metadata"]["tags"].as_array().map(Vec::len), Some(2));
        assert_eq!(problems.len(), 1, "{problems:?}");
    }
}
