//! How long packages and imports take, with the real binary: `cargo bench --bench prime`. The figures of
//! `docs/performance.md` come from here.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark that cannot measure stops and says what it saw"
)]

use std::fmt::Write as _;
use std::time::Duration;

use aec_xtest::bench::{Place, is_asked_for, milliseconds};
use serde_json::{Value, json};

/// The most that exporting 200 tasks may take.
const EXPORT: Duration = Duration::from_secs(1);
/// The most that importing 10,000 samples may take, and its memory in MB.
const IMPORT: Duration = Duration::from_secs(10);
const MEMORY: f64 = 200.0;

const TASKS: usize = 200;
const SAMPLES: usize = 10_000;

fn main() {
    if !is_asked_for() {
        return;
    }
    let place = Place::new(env!("CARGO_BIN_EXE_aec-bench"), "prime");
    place.run("init --no-example");
    let suite = format!(
        "name = \"bench\"\nseed = 1\n[coverage]\ndifficulties = {{ easy = 0.34, medium = 0.33, hard = 0.33 }}\n\
         min_tasks_per_discipline = 3\n[templates]\ninclude = [\"electrical/*\", \"civil/*\", \"structural/*\"]\n\
         [visibility]\nmix = {{ all_given = 1.0 }}\n[tool_mode]\nmix = {{ with_tool = 1.0 }}\n[instances]\nper_task = 20\n\
         total_max = {TASKS}\n[output]\ndir = \"tasks/bench\"\n"
    );
    std::fs::write(place.path().join("suite.toml"), suite).unwrap();
    place.run("generate suite");
    let line = "prime export --name aec-bench-suite --pattern bench/* --json";
    report("prime export of 200 tasks", place.median(9, |_| line.to_owned()), Some(EXPORT));
    let manifest = place.path().join("prime-rl/environments/aec_bench_suite/aec_bench_suite/tasks.json");
    let manifest: Value = serde_json::from_str(&std::fs::read_to_string(manifest).unwrap()).unwrap();
    let tasks = manifest["tasks"].as_array().unwrap();
    println!("  {:<52} {:9}", "tasks in the package", tasks.len());
    std::fs::write(place.path().join("samples.jsonl"), samples(tasks)).unwrap();
    let bytes = place.path().join("samples.jsonl").metadata().unwrap().len();
    println!("  {:<52} {:9.1} MB", "samples", f64::from(u32::try_from(bytes).unwrap()) / 1e6);
    for (what, more) in [("judged again", ""), ("as they are", " --no-verify")] {
        let line = |round: usize| {
            format!("import-prime-eval --file samples.jsonl -e run{round}{}{more}", more.len())
        };
        let mut times: Vec<Duration> = (0..3).map(|round| place.run(&line(round))).collect();
        times.sort();
        report(&format!("import of 10,000 samples, {what}"), times[1], Some(IMPORT));
    }
    let memory = place.peak_memory("import-prime-eval --file samples.jsonl -e memory");
    println!("  {:<52} {memory:9.1} MB  {:.2} of the limit", "its memory", memory / MEMORY);
    report(
        "the same again, all here already",
        place.run("import-prime-eval --file samples.jsonl -e memory"),
        None,
    );
}

fn report(what: &str, time: Duration, limit: Option<Duration>) {
    let ratio = limit.map(|limit| format!("  {:.2} of the limit", time.as_secs_f64() / limit.as_secs_f64()));
    println!("  {what:<52} {:9.1} ms{}", milliseconds(time), ratio.unwrap_or_default());
}

/// Samples of about 10 KB: a few turns with tools, then a submitted answer.
fn samples(tasks: &[Value]) -> String {
    let mut text = String::new();
    for number in 0..SAMPLES {
        let task = &tasks[number % tasks.len()];
        let mut completion = Vec::new();
        for turn in 0..4 {
            let id = format!("c{turn}");
            let command = format!("python3 tools/calc.py --case {number} --turn {turn}");
            let call = json!({"id": id, "name": "run_command", "arguments": json!({ "command": command }).to_string()});
            completion.push(
                json!({"role": "assistant", "content": "I calculate the next part.", "tool_calls": [call]}),
            );
            let output = format!("value {turn}: {}\n", number * turn).repeat(60);
            completion.push(json!({"role": "tool", "tool_call_id": id, "content": output}));
        }
        let call = json!({"id": "s", "name": "submit_answer", "arguments": "{\"content\": \"{}\"}"});
        completion.push(json!({"role": "assistant", "content": "", "tool_calls": [call]}));
        completion
            .push(json!({"role": "tool", "tool_call_id": "s", "content": "Submitted the final answer."}));
        let info = json!({
            "task_id": task["task_id"], "task_revision": task["task_revision"], "difficulty": task["difficulty"],
            "discipline": task["discipline"], "family": task["family"], "visibility": "public",
            "instruction": task["instruction"],
        });
        let sample = json!({
            "sample_id": format!("s{number}"), "example_id": number % tasks.len(), "rollout_number": number / tasks.len(),
            "prompt": [{"role": "user", "content": task["instruction"]}], "completion": completion, "reward": 0.0,
            "info": info, "stop_condition": "has_final_env_response", "is_completed": true,
            "token_usage": {"input_tokens": 4000, "output_tokens": 500}, "timing": {"total": 30.0},
        });
        writeln!(text, "{sample}").unwrap();
    }
    text
}
