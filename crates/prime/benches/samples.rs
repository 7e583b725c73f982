//! Measures time and memory of reading rollouts: 10,000 hosted samples of ten messages and some 10 KB each, as one page
//! on one line, and the same as `results.jsonl`; then a hundred times as many almost empty rows.
//! `cargo bench --bench samples -- 1000` reads fewer.

#![expect(clippy::print_stdout, reason = "figures are what this program is for")]

use std::error::Error;
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let count = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(10_000);
    let directory = tempfile::tempdir()?;
    let page = directory.path().join("samples.json");
    let rows = directory.path().join("results.jsonl");
    let short = directory.path().join("short.jsonl");
    write(&page, count, sample, ["{\"samples\": [", ", ", "], \"page\": 1}"])?;
    write(&rows, count, sample, ["", "\n", "\n"])?;
    write(&short, count * 100, short_sample, ["", "\n", "\n"])?;
    println!(
        "{:<14} {:>8} {:>8} {:>8} {:>12} {:>12}",
        "file", "rollouts", "MB", "seconds", "CPU seconds", "peak RSS MB"
    );
    for (path, count) in [(&page, count), (&rows, count), (&short, count * 100)] {
        read(path, count)?;
    }
    Ok(())
}

fn write(
    path: &Path,
    count: usize,
    sample: fn(usize) -> Value,
    [begin, between, end]: [&str; 3],
) -> Result<(), Box<dyn Error>> {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
    file.write_all(begin.as_bytes())?;
    for number in 0..count {
        if number > 0 {
            file.write_all(between.as_bytes())?;
        }
        serde_json::to_writer(&mut file, &sample(number))?;
    }
    file.write_all(end.as_bytes())?;
    file.flush()?;
    Ok(())
}

fn sample(number: usize) -> Value {
    let text = "The \"cable\" runs 42 m; the drop is 3.1 % of 400 V.\\n\n".repeat(40);
    let mut completion = Vec::new();
    for turn in 0..4 {
        let name = if turn == 3 { "submit_answer" } else { "read_file" };
        let arguments = json!({"path": "output.md", "content": &text[..400]}).to_string();
        let call = json!({"id": format!("c{turn}"), "name": name, "arguments": arguments}).to_string();
        completion.push(json!({"role": "assistant", "content": &text[..300], "tool_calls": [call]}));
        completion
            .push(json!({"role": "tool", "tool_call_id": format!("c{turn}"), "content": &text[..1000]}));
    }
    json!({
        "sample_id": format!("sample-{number}"), "example_id": number / 3, "rollout_number": number % 3,
        "prompt": [{"role": "system", "content": "You are an engineer."}, {"role": "user", "content": text}],
        "completion": completion, "answer": "electrical/voltage-drop", "reward": 1.0,
        "metrics": {"aec_bench_reward": 1.0, "num_turns": 4.0, "total_tool_calls": 4.0},
        "timing": {"total": 1.5, "generation": {"start": 1.0, "end": 2.0, "duration": 1.0}, "scoring": {"duration": 0.5}},
        "token_usage": {"input_tokens": 1000.0, "output_tokens": 50.0}, "stop_condition": "has_final_env_response",
        "is_completed": true, "is_truncated": false, "created_at": "2026-11-15T00:00:00Z",
        "info": {"task_id": "electrical/voltage-drop", "difficulty": "easy"},
    })
}

fn short_sample(number: usize) -> Value {
    let call = json!({"id": "c", "name": "submit_answer", "arguments": "{}"});
    json!({"example_id": number, "prompt": "q", "completion": [{"role": "assistant", "tool_calls": [call]}]})
}

#[expect(clippy::cast_precision_loss, reason = "figures are rounded anyway")]
fn read(path: &Path, count: usize) -> Result<(), Box<dyn Error>> {
    let megabytes = std::fs::metadata(path)?.len() as f64 / 1e6;
    let (start, start_cpu) = (Instant::now(), cpu_seconds()?);
    let mut rollouts = 0;
    let mut submitted = 0;
    for row in aec_prime::rollouts::reader::open(path)?.rows {
        for rollout in row?.rollouts {
            rollouts += 1;
            submitted += usize::from(rollout.submitted().is_some());
        }
    }
    let (seconds, cpu) = (start.elapsed().as_secs_f64(), cpu_seconds()? - start_cpu);
    if (rollouts, submitted) != (count, count) {
        return Err(format!("{rollouts} rollouts and {submitted} answers instead of {count}").into());
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    println!("{name:<14} {rollouts:>8} {megabytes:>8.1} {seconds:>8.2} {cpu:>12.2} {:>12.1}", peak_memory()?);
    Ok(())
}

/// CPU time of this process, which does not depend on other programs on the machine.
fn cpu_seconds() -> Result<f64, Box<dyn Error>> {
    let statistics = std::fs::read_to_string("/proc/self/schedstat")?;
    let nanoseconds: f64 = statistics.split(' ').next().unwrap_or_default().parse()?;
    Ok(nanoseconds / 1e9)
}

/// Peak memory of this process, in megabytes.
fn peak_memory() -> Result<f64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no peak in /proc/self/status")?;
    let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kilobytes * 1024.0 / 1e6)
}
