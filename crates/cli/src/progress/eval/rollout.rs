//! A rollout as text: the messages, calls and results, its reward and its timing.

use aec_base::decimal::rounded;
use aec_base::secret::Redactor;
use serde_json::Value;

use crate::progress::text::clean_line;

/// Most characters shown of a message.
const SHOWN: usize = 2_000;

pub(crate) fn lines(row: &[u8], environment: &str, redactor: &Redactor) -> Vec<String> {
    let Ok(row) = aec_base::json::from_slice::<Value>(row) else { return Vec::new() };
    let number = |key: &str| row.get(key).and_then(Value::as_i64).unwrap_or_default();
    let title =
        format!("{environment} example {} rollout {}", number("example_id"), number("rollout_number"));
    let mut lines = vec![format!("--- {title}")];
    for message in ["prompt", "completion"].iter().filter_map(|key| row[*key].as_array()).flatten() {
        lines.extend(message_lines(message, redactor));
    }
    let reward = row["reward"].as_f64().unwrap_or_default();
    let stop = row["stop_condition"].as_str().unwrap_or("-");
    lines.push(format!("reward: {reward}  stop: {stop}"));
    if let Some(metrics) = row["metrics"].as_object().filter(|metrics| !metrics.is_empty()) {
        let metrics: Vec<String> = metrics.iter().map(|(name, value)| format!("{name}={value}")).collect();
        lines.push(format!("metrics: {}", metrics.join(" ")));
    }
    if let Some(error) = row["error"]["error_chain_repr"].as_str() {
        lines.push(format!("error: {}", clean_line(error, redactor)));
    }
    let seconds = |key: &str| row["timing"][key]["duration"].as_f64().unwrap_or_default();
    lines.push(format!(
        "timing: {} s in all, model {} s, environment {} s, scoring {} s",
        rounded(row["timing"]["total"].as_f64().unwrap_or_default(), 3),
        rounded(seconds("model"), 3),
        rounded(seconds("env"), 3),
        rounded(seconds("scoring"), 3)
    ));
    lines
}

fn message_lines(message: &Value, redactor: &Redactor) -> Vec<String> {
    let role = message["role"].as_str().unwrap_or("unknown");
    let content = match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    let mut lines = Vec::new();
    let say = |what: &str, text: &str| {
        let shown: String = text.chars().take(SHOWN).collect();
        let more = if shown.len() < text.len() { " …" } else { "" };
        format!("{what}: {}{more}", clean_line(&shown, redactor))
    };
    if let Some(thoughts) = message["reasoning_content"].as_str() {
        lines.push(say(&format!("{role} thinks"), thoughts));
    }
    if !content.is_empty() {
        lines.push(say(role, &content));
    }
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        let call = match call.as_str().map(aec_base::json::from_str::<Value>) {
            Some(Ok(call)) => call,
            _ => call.clone(),
        };
        let name = call["name"].as_str().or_else(|| call["function"]["name"].as_str()).unwrap_or("unknown");
        let arguments = call["arguments"].as_str().or_else(|| call["function"]["arguments"].as_str());
        lines.push(say(&format!("{role} calls {name}"), arguments.unwrap_or_default()));
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn everything_that_happened_is_told() {
        let row = json!({
            "example_id": 3, "rollout_number": 1, "prompt": [{"role": "user", "content": "How long?"}],
            "completion": [
                {"role": "assistant", "content": "", "tool_calls": [r#"{"id": "c", "name": "read_file", "arguments": "{}"}"#]},
                {"role": "tool", "content": "7 m", "tool_call_id": "c"},
                {"role": "assistant", "content": "7\u{1b}[2J"},
            ],
            "reward": 0.5, "stop_condition": "no_tools_called", "metrics": {"num_turns": 2.0},
            "error": null, "timing": {"total": 1.5, "model": {"duration": 1.0}},
        });
        let lines = lines(row.to_string().as_bytes(), "my-env", &Redactor::default());
        assert_eq!(lines[0], "--- my-env example 3 rollout 1");
        assert_eq!(lines[2], "assistant calls read_file: {}");
        assert_eq!(lines[3], "tool: 7 m");
        assert!(!lines.iter().any(|line| line.contains('\u{1b}')), "{lines:?}");
        assert!(lines.iter().any(|line| line == "metrics: num_turns=2.0"), "{lines:?}");
    }
}
