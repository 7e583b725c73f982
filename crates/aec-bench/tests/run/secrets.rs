//! No secret reaches a file, wherever a model or a program puts it and whatever it is encoded in.

use aec_xtest::files::files_below;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use crate::run::world::{Project, RIGHT};

const SECRET: &str = "sk-Canary-4711-of-the-project";

/// The secret in every encoding that a model can write.
fn spellings() -> Vec<String> {
    let each = |form: fn(u8) -> String| SECRET.bytes().map(form).collect::<String>();
    let mut spellings = vec![
        SECRET.to_owned(),
        SECRET.to_uppercase(),
        SECRET.to_lowercase(),
        SECRET.chars().rev().collect(),
        each(|byte| format!("{byte:02x}")),
        each(|byte| format!("{byte:02X}")),
        each(|byte| format!("%{byte:02x}")),
        each(|byte| format!("\\u{byte:04x}")),
        each(|byte| format!("\\x{byte:02x}")),
        SECRET.replacen('a', "%61", 1),
        SECRET.replacen("-4711", "\n-4711", 1),
    ];
    for lead in ["", "x", "xy"] {
        spellings.push(STANDARD.encode(format!("{lead}{SECRET}tail")));
        spellings.push(URL_SAFE_NO_PAD.encode(format!("{lead}{SECRET}")));
    }
    spellings
}

fn answer(number: usize, message: &Value, leak: &str) -> Value {
    json!({
        "id": format!("answer-{number}-{leak}"), "model": format!("model {leak}"), "system_fingerprint": leak,
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 5},
    })
}

/// Before, the id and name of a tool call, the keys of its arguments, the model's name and every encoding reached the
/// trajectory, the conversation, the record and the cassette.
#[test]
fn no_field_and_no_encoding_carries_a_secret_to_disk() {
    let mut bodies = Vec::new();
    for (number, leak) in spellings().iter().enumerate() {
        let arguments =
            json!({"command": format!("echo '{leak}'"), leak.as_str(): {leak.as_str(): [leak]}}).to_string();
        bodies.push(answer(
            number,
            &json!({
                "role": "assistant", "content": format!("It is {leak}."), "reasoning_content": leak,
                "tool_calls": [
                    {"id": format!("call-{leak}"), "type": "function", "function": {"name": "bash", "arguments": arguments}},
                    {"id": format!("other-{leak}"), "type": "function",
                     "function": {"name": format!("tool_{leak}"), "arguments": leak}},
                    {"id": format!("said-{number}"), "type": "function",
                     "function": {"name": "bash", "arguments": json!({"command": format!("echo '{leak}' >&2; exit 3")}).to_string()}},
                ],
            }),
            leak,
        ));
    }
    let last = json!({"role": "assistant", "content": "", "tool_calls": [{"id": "end", "type": "function",
        "function": {"name": "submit_answer", "arguments": json!({"content": RIGHT}).to_string()}}]});
    bodies.push(answer(bodies.len(), &last, SECRET));
    let turns = bodies.len() + 1;
    let url = aec_xtest::fixed::provider(bodies);
    let project = Project::with_tasks(1);
    project.env.write(".env", format!("ANTHROPIC_API_KEY={SECRET}\n"));
    project.endpoints(&url, &["leaky"]);
    let data = project.data(&format!(
        "run civil --model leaky --harness tool_loop --parameter max_turns={turns} -e x --record tape --events events.jsonl"
    ));
    assert_eq!(data["recorded"], 1, "{data}");
    let exported = project.run("export sft -e x --output sft.jsonl");
    assert!(matches!(exported.code, Some(0 | 1)), "{exported:?}");
    let report = project.run("report traces -e x --output traces.json");
    assert!(matches!(report.code, Some(0 | 1)), "{report:?}");
    // Everything below the project but the file that holds the secret.
    let redactor = aec_base::secret::Redactor::default().with([("KEY", SECRET)]);
    let mut read = 0;
    for (path, content) in files_below(&project.env.dir()) {
        if path == ".env" {
            continue;
        }
        let mut search = redactor.search();
        search.feed(&content);
        assert!(
            !search.found(),
            "{path}: {}",
            redactor.scrub(String::from_utf8_lossy(&content).into_owned())
        );
        for spelling in spellings() {
            let text = String::from_utf8_lossy(&content);
            assert!(!text.contains(&spelling), "{path} has {spelling}");
            assert!(!path.contains(&spelling), "{path}");
        }
        read += 1;
    }
    assert!(read > 10, "{read}");
    let record = project.record("x");
    let trajectory = project.job_file(&record, "trajectory.jsonl");
    assert!(
        trajectory.matches("[ANTHROPIC_API_KEY redacted]").count() > 4 * spellings().len(),
        "{trajectory}"
    );
    // The files are still what their readers expect.
    for line in trajectory.lines() {
        serde_json::from_str::<Value>(line).unwrap();
    }
    project.assert_sound("x");
}
