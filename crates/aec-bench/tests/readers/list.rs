//! The readers of foreign text, each with a sound input. `crates/xtest/tests/tidy.rs` keeps parsers out of the rest of
//! the program, so a new reader of a new format is a call of one of these parts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use aec_base::archive;
use aec_base::document::{Document, Family, Syntax, toml_table};
use aec_base::env::Env;
use aec_base::json::{Strict, repaired};
use aec_model::dialect::anthropic::AnthropicMessages;
use aec_model::dialect::bedrock::BedrockInvoke;
use aec_model::dialect::converse::BedrockConverse;
use aec_model::dialect::openai::OpenAiChat;
use aec_model::dialect::{Dialect, Wire};
use aec_task::id::TaskId;
use bytes::Bytes;
use serde_json::{Value, json};

pub(super) struct Reader {
    pub(super) name: &'static str,
    pub(super) seed: fn() -> Vec<u8>,
    pub(super) read: fn(&[u8]),
}

macro_rules! readers {
    ($($name:literal, $seed:expr, $read:expr;)*) => {
        pub(super) const READERS: &[Reader] = &[$(Reader { name: $name, seed: || $seed.into(), read: $read },)*];
    };
}

readers! {
    "document-toml", TASK, |bytes| document(bytes, Syntax::Toml);
    "document-yaml", EXPERIMENT, |bytes| document(bytes, Syntax::Yaml);
    "document-json", manifest(), |bytes| document(bytes, Syntax::Json);
    "toml-of-others", TASK, |bytes| drop(toml_table(&text(bytes)));
    "json-value", manifest(), |bytes| drop(aec_base::json::from_slice::<Value>(bytes));
    "json-strict", manifest(), |bytes| drop(aec_base::json::from_slice::<Strict>(bytes));
    "json-of-python", r#"{"a": NaN, "b": [-Infinity, "\ud800"]}"#, |bytes| {
        let text = text(bytes);
        drop(aec_base::json::from_str::<Value>(&repaired(&text).text));
    };
    "json-in-text", "So {\"a\": [1, {\"b\": 2}]} it is.", |bytes| {
        let text = text(bytes);
        for (at, _) in text.match_indices('{').take(100) {
            drop(aec_base::json::values::<Value>(&text[at..]).next());
        }
    };
    "json-lines", "{\"a\":1}\n{\"b\":[2]}\n", |bytes| {
        let mut lines = aec_base::jsonl::Reader::new(bytes);
        while let Some(line) = lines.next_line(1 << 20).unwrap() {
            drop(aec_base::json::from_slice::<Value>(line.bytes));
        }
    };
    "archive", archive(), |bytes| {
        let limits = archive::Limits { total: 64 << 20, file: 16 << 20 };
        drop(archive::unpack(bytes, limits, |_, content| content.bytes().map(drop)));
    };
    "dotenv", "A_KEY=\"sk-1\\n2\"\nexport B='x'\n# c\n", |bytes| {
        let path = put(".env", bytes);
        drop(Env::from_shell([]).load_dotenv(path.parent().unwrap()));
    };
    "project-file", "[settings]\ntasks_root = \"tasks\"\n", |bytes| {
        drop(aec_base::project::ProjectFile::read(&put("aec-bench.toml", bytes)));
    };
    "user-file", r#"{"tasks_root": "tasks"}"#, |bytes| {
        drop(aec_base::user::UserConfig::read(&put("user.json", bytes)));
    };
    "task", TASK, |bytes| {
        put("t/instruction.md", b"Do it.");
        let path = put("t/task.toml", bytes);
        drop(aec_task::task::Task::load(TaskId::parse("civil/beam").unwrap(), path.parent().unwrap()));
    };
    "dataset-manifest", manifest(), |bytes| {
        drop(aec_task::dataset::manifest::Manifest::parse(Path::new("m"), text(bytes)));
    };
    "dataset-archive", archive(), |bytes| {
        let limits = archive::Limits { total: 64 << 20, file: 16 << 20 };
        drop(archive::unpack(bytes, limits, |_, content| {
            let bytes = content.bytes()?;
            drop(aec_task::dataset::manifest::Manifest::parse(Path::new("m"), text(&bytes)));
            Ok::<(), archive::ArchiveError>(())
        }));
    };
    "suite", "name = \"s\"\n[output]\npath = \"x\"\n[[templates]]\nname = \"a\"\n", |bytes| {
        drop(aec_task::suite::SuiteFile::read(&put("s.toml", bytes)));
    };
    "seed-note", r#"{"name": "a", "files": ["x"], "tags": []}"#, |bytes| {
        drop(aec_task::seed::Seed::read(put("seed/seed.json", bytes).parent().unwrap()));
    };
    "compose", "services:\n  db:\n    image: postgres:16\n    environment: {A: b}\n    command: [\"run\", \"it\"]\n", |bytes| {
        let path = put("c/docker-compose.yaml", bytes);
        drop(aec_task::compose::Compose::read(path.parent().unwrap()));
    };
    "generation-manifest", r#"{"schema_version": 1, "suite": {"name": "a"}, "instances": [{"task": "a/b"}]}"#, |bytes| {
        drop(aec_author::manifest::Manifest::read(&put("generation-manifest.json", bytes)));
    };
    "template", "name = \"a\"\ntitle = \"b\"\n[params.span]\nkind = \"float\"\nmin = 1.0\nmax = 2.0\n[outputs.m]\nunit = \"kNm\"\n", |bytes| {
        let file = |name: &str, text: String| (name.to_owned(), text);
        let files = BTreeMap::from([
            file("template.toml", text(bytes)),
            file("instruction.md.j2", "{{ span }}".to_owned()),
            file("engine.py", "def solve(p):\n    return p\n".to_owned()),
        ]);
        drop(aec_author::template::Template::from_files(files, aec_author::template::Origin::Library));
    };
    "experiment", EXPERIMENT, |bytes| {
        drop(aec_run::experiment::Experiment::read(&put("e.yaml", bytes), &Env::from_shell([])));
    };
    "plan", r#"{"schema_version": 1, "experiment_id": "x", "tasks": [{"id": "a/b"}], "agents": [{"name": "a"}]}"#, |bytes| {
        drop(aec_run::plan::Plan::read(&put("plan.json", bytes)));
    };
    "scripted", r#"{"tasks": {"a/b": [{"write": {"path": "x", "content": "y"}}]}}"#, |bytes| {
        drop(aec_run::harness::scripted::check(bytes, Path::new("s.json")));
    };
    "script-of-replies", r#"{"replies": [{"text": "a", "tool_calls": [{"name": "bash", "arguments": {"command": "ls"}}]}]}"#, |bytes| {
        drop(aec_model::script::Script::read(&put("script.json", bytes)));
    };
    "endpoints", "[[endpoint]]\nid = \"a\"\nmodel = \"b\"\nurl = \"http://x\"\nkey = \"$K\"\n", |bytes| {
        drop(aec_model::registry::Registry::read(&put("endpoints.toml", bytes), &Env::from_shell([])));
    };
    "prices", "[[price]]\nprovider = \"a\"\nmodel = \"b\"\ninput = 1.0\noutput = 2.0\n", |bytes| {
        drop(aec_model::price::PriceList::with_user_file(&put("prices.toml", bytes)));
    };
    "cassette", CASSETTE, |bytes| {
        let path = put("cassette/calls-000001.jsonl", bytes);
        drop(aec_model::cassette::Player::open(path.parent().unwrap()));
    };
    "openai-answer", openai().to_string(), |bytes| answer(&OpenAiChat, bytes);
    "openai-stream", stream(&[json!({"choices": [{"index": 0, "delta": {"content": "x"}}]}),
        json!({"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}]}, "finish_reason": "stop"}]})]),
        |bytes| pieces(&OpenAiChat, bytes);
    "anthropic-answer", anthropic().to_string(), |bytes| answer(&AnthropicMessages, bytes);
    "anthropic-stream", stream(&[json!({"type": "message_start", "message": {"id": "m", "model": "c", "usage": {"input_tokens": 3}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}),
        json!({"type": "message_stop"})]), |bytes| pieces(&AnthropicMessages, bytes);
    "converse-answer", r#"{"output": {"message": {"role": "assistant", "content": [{"text": "x"}]}}, "stopReason": "end_turn", "usage": {"inputTokens": 1, "outputTokens": 2}}"#,
        |bytes| answer(&BedrockConverse, bytes);
    "converse-stream", b"\x00\x00\x00\x10\x00\x00\x00\x00\x05\xc2\x48\xeb\x7d\x98\xc8\xff".to_vec(), |bytes| pieces(&BedrockConverse, bytes);
    "bedrock-answer", anthropic().to_string(), |bytes| answer(&BedrockInvoke, bytes);
    "refusal", r#"{"error": {"type": "rate_limit", "message": "slow down", "details": [{"a": 1}]}}"#, |bytes| {
        drop(aec_base::json::from_slice::<Value>(bytes).map(|value| aec_model::dialect::refusal::refused_within(&value)));
    };
    "gateway-openai", r#"{"model": "m", "messages": [{"role": "user", "content": "x"}], "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}]}"#,
        |bytes| drop(aec_model::gateway::openai::decode_request(bytes));
    "gateway-anthropic", r#"{"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]}"#,
        |bytes| drop(aec_model::gateway::anthropic::decode_request(bytes));
    "record", serde_json::to_vec(&aec_ledger::example::record("x", "t", 1)).unwrap(), |bytes| {
        let name = |name: &str| aec_base::name::Name::parse(name).unwrap();
        let file = aec_ledger::read::RecordFile { experiment: name("x"), trial: name("t"), attempt: 1 };
        let ledger = aec_ledger::layout::Ledger::new(PathBuf::from("no-ledger"));
        drop(file.parse(&ledger, Path::new("t.json"), bytes));
    };
    "transcript", "{\"step\":1,\"role\":\"assistant\",\"text\":\"x\"}\n{\"step\":2,\"role\":\"tool\",\"tool_call\":{\"name\":\"f\",\"arguments\":{\"a\":1}}}\n",
        |bytes| drop(aec_ledger::transcript::read(bytes));
    "reply-with-facts", "```json\n{\"facts\": [{\"a\": 1}]}\n```\nor {\"b\": [2]}", |bytes| {
        drop(aec_rlm::reply::Reply::read(&text(bytes)));
    };
    "answers", ANSWERS, |bytes| drop(aec_judge::scorer::Answers::parse(bytes));
    "submission", "Here: ```json\n{\"moment\": \"12.5 kNm\", // yes\n 'ok': true,}\n```", |bytes| {
        static EXPECTED: OnceLock<aec_judge::scorer::Answers> = OnceLock::new();
        let answers = EXPECTED.get_or_init(|| aec_judge::scorer::Answers::parse(ANSWERS.as_bytes()).unwrap());
        let _score = aec_judge::scorer::score(answers, bytes);
    };
    "reward", r#"{"reward": 0.5, "details": {"a": [1]}}"#, |bytes| drop(aec_judge::reward::from_json(bytes));
    "proposal", r#"{"actions": [{"kind": "edit", "file": "prompts/system.md", "text": "x"}], "reasoning": "y"}"#, |bytes| {
        drop(aec_evolve::propose::parse(&text(bytes)));
    };
    "agent-manifest", "schema_version: 1\nname: a\nagent_harness: tool_loop\nevolvable_layers: [prompts]\n", |bytes| {
        drop(aec_evolve::workspace::manifest::Manifest::parse(Path::new("m"), &text(bytes)));
    };
    "skill", "---\nname: a\ndescription: b\n---\nDo it.\n", |bytes| {
        drop(aec_evolve::workspace::skill::Skill::parse(Path::new("s"), "a", &text(bytes)));
    };
    "evolution", "agent: a\ntasks: {include: ['*']}\nbudget: {max_cost_usd: 5.0}\n", |bytes| {
        drop(aec_evolve::config::Evolution::read(&put("e.yaml", bytes), Path::new("/"), &Env::from_shell([])));
    };
    "swarm", "task: {task_path: a}\nagents: {count: 2}\nbudget: {max_cost_usd: 5.0}\n", |bytes| {
        drop(aec_evolve::config::Swarm::read(&put("s.yaml", bytes), Path::new("/"), &Env::from_shell([])));
    };
    "log-of-evolution", "{\"sequence\":0,\"at\":\"2026-01-01T00:00:00Z\",\"event\":\"x\"}\n", |bytes| {
        drop(aec_evolve::log::entries(put("log/events.jsonl", bytes).parent().unwrap()));
    };
    "row-of-evaluation", ROW, |bytes| drop(aec_eval::results::facts::RowFacts::parse(bytes));
    "metadata-of-evaluation", r#"{"env_id": "a", "model": "m", "num_examples": 3, "date": "2026-01-01"}"#, |bytes| {
        drop(aec_eval::results::metadata::Metadata::read(&put("metadata.json", bytes)));
    };
    "file-of-evaluations", "[[eval]]\nenv_id = \"a\"\n[eval.env_args]\nx = 1\n[[ablation]]\n[ablation.sweep]\ny = [1, 2]\n", |bytes| {
        drop(aec_eval::config::parse_eval_file(Path::new("e.toml"), &text(bytes)));
    };
    "arguments-of-evaluation", r#"{"a": {"b": [1]}}"#, |bytes| drop(aec_eval::config::parse_json_object("-a", &text(bytes)));
    "package", r#"{"schema_version": 1, "tasks": [{"id": "a/b"}]}"#, |bytes| {
        drop(aec_eval::native::PackageSource::read(put("package/tasks.json", bytes).parent().unwrap()));
    };
    "result-of-harbor", r#"{"trial_name": "a", "task_name": "b", "verifier_result": {"rewards": {"reward": 1.0}}}"#, |bytes| {
        drop(aec_harbor::result::Trial::read(put("trial/result.json", bytes).parent().unwrap()));
    };
    "rows-of-rollouts", ROW, |bytes| aec_prime::rollouts::rows::Rows::lines(bytes, Path::new("r.jsonl")).for_each(drop);
    "pages-of-rollouts", r#"{"samples": [{"example_id": 1, "prompt": "x", "completion": "y", "reward": 1.0}]}"#, |bytes| {
        aec_prime::rollouts::rows::Rows::document(bytes, Path::new("r.json")).for_each(drop);
    };
    "training-config", "model = \"m\"\n[[env]]\nid = \"a\"\n[sampling]\nmax_tokens = 5\n", |bytes| {
        drop(aec_prime::service::training::TrainConfig::parse(&text(bytes), Path::new("t.toml")));
    };
    "queue", r#"{"jobs": [{"job_id": 1, "array_task_id": {"set": true, "number": 0}, "job_state": ["RUNNING"]}]}"#, |bytes| {
        drop(aec_cluster::queue::parse(bytes, &[1], 10));
    };
    "variables-of-workers", r#"{"A": "b"}"#, |bytes| drop(aec_cluster::environment::read(&put("env.json", bytes)));
    "floors", r#"{"data": {"audits": [{"task": "a/b", "cheats": [{"name": "x", "reward": 0.0}]}]}}"#, |bytes| {
        drop(aec_report::floors::Floors::parse(&text(bytes)));
    };
}

const TASK: &str = "version = \"1.0\"\n[metadata]\ntitle = \"Beam\"\ntags = [\"a\", \"b\"]\n[agent]\ntimeout_sec = 600.0\n\
                    [verifier]\ntimeout_sec = 60\n[environment]\nmemory_mb = 512\n[[tools]]\nname = \"x\"\n";

const EXPERIMENT: &str = "name: &n trial run\ntasks: {include: ['civil/*']}\nagents:\n  - name: a\n    harness: tool_loop\n    \
                          model: m\n    parameters: {max_turns: 5, temperature: 0.5}\nrepetitions: 2\n";

const ANSWERS: &str = r#"{"version": 1, "output": "output.json", "fields": {"moment": {"type": "number", "value": 12.5, "unit": "kNm", "rel_tol": 0.01}, "ok": {"type": "boolean", "value": true}}}"#;

const ROW: &str = "{\"example_id\": 1, \"prompt\": [{\"role\": \"user\", \"content\": \"x\"}], \"completion\": [{\"role\": \
                   \"assistant\", \"content\": \"y\"}], \"answer\": \"z\", \"reward\": 1.0, \"metrics\": {\"a\": 0.5}, \"info\": \
                   {\"b\": 1}, \"timing\": {\"total_ms\": 5.0}}\n";

const CASSETTE: &str = include_str!("../../../model/tests/cassette/version-1/calls-000001.jsonl");

fn openai() -> Value {
    json!({"id": "a", "model": "m", "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant",
        "content": "x", "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{\"a\": 1}"}}]}}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 1}}})
}

fn anthropic() -> Value {
    json!({"id": "a", "type": "message", "role": "assistant", "model": "m", "stop_reason": "tool_use",
        "content": [{"type": "text", "text": "x"}, {"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}}],
        "usage": {"input_tokens": 3, "output_tokens": 2}})
}

fn manifest() -> String {
    json!({"schema_version": 1, "name": "beams", "version": "1.0.0", "content_hash": format!("sha256:{}", "0".repeat(64)),
        "tasks": [{"id": "civil/beam", "path": "tasks/civil/beam", "hash": format!("sha256:{}", "1".repeat(64))}],
        "source": {"method": "manual"}})
    .to_string()
}

fn archive() -> Vec<u8> {
    super::outside::archive(&manifest())
}

fn stream(events: &[Value]) -> String {
    let named = |event: &Value| {
        let name = event["type"].as_str().map(|name| format!("event: {name}\n")).unwrap_or_default();
        format!("{name}data: {event}\n\n")
    };
    events.iter().map(named).collect::<String>() + "data: [DONE]\n\n"
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A file of this process with this content.
fn put(name: &str, bytes: &[u8]) -> PathBuf {
    static PLACE: OnceLock<tempfile::TempDir> = OnceLock::new();
    let path = PLACE.get_or_init(|| tempfile::tempdir().unwrap()).path().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, bytes).unwrap();
    path
}

fn document(bytes: &[u8], syntax: Syntax) {
    let Ok(document) = Document::parse(Path::new("f"), text(bytes), syntax, Family('X')) else { return };
    drop(document.decode::<BTreeMap<String, Value>>());
    drop(document.decode::<Fields>().value.map(|fields| (fields.name, fields.tasks)));
}

/// Fields as a format has them: everything else is a mistake with a place.
#[derive(Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Fields {
    name: Option<String>,
    tasks: Vec<u32>,
}

fn answer(dialect: &dyn Dialect, bytes: &[u8]) {
    let _unused = dialect.path(&Wire::default());
    if let Ok(reply) = dialect.decode(bytes) {
        let _failure = aec_model::dialect::refusal::inspect(&reply);
    }
}

fn pieces(dialect: &dyn Dialect, bytes: &[u8]) {
    let mut reader = dialect.reader();
    for piece in bytes.chunks(4096) {
        if reader.take(&Bytes::copy_from_slice(piece)).is_err() {
            return;
        }
    }
    drop(reader.finish());
}
