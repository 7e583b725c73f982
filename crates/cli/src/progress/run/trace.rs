//! The latest events of a trial, as text that is safe to show. Bounded, because an agent may print without end.

use std::collections::VecDeque;
use std::time::Duration;

use aec_base::secret::Redactor;
use aec_ledger::transcript::{Event, EventRole};
use aec_model::event::CallEvent;
use aec_model::message::Usage;

use crate::progress::figures::{grouped, money, span};
use crate::progress::text::{clean, clean_line, clip};

/// Most events kept of one trial.
const EVENTS: usize = 200;

/// Most text kept of one event.
const TEXT: usize = 4 * 1024;

/// Most text of a head, which takes one or two lines on a screen.
const HEAD: usize = 400;

/// Most text kept of all trials together, shared among running ones.
const ALL_TEXT: usize = 32 * 1024 * 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) step: u32,
    pub(crate) kind: &'static str,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Entry {
    /// An event as shown. Secrets are removed before anything is cut.
    pub(crate) fn of(event: &Event, redactor: &Redactor) -> Self {
        let content = event.content.as_deref().unwrap_or_default();
        let (kind, head, body) = match event.role {
            EventRole::System => ("system", String::new(), content.to_owned()),
            EventRole::User => ("prompt", String::new(), content.to_owned()),
            EventRole::Assistant => ("agent", assistant_head(event), assistant_body(event)),
            EventRole::ToolCall => {
                let name = event.tool_name.as_deref().unwrap_or("a tool without a name");
                ("call", name.to_owned(), arguments(event))
            }
            EventRole::ToolResult => ("result", result_head(event), result_body(event)),
            EventRole::ModelCall => {
                ("model", event.call.as_ref().map(call).unwrap_or_default(), String::new())
            }
            EventRole::Note => ("note", content.to_owned(), metadata(event)),
        };
        let body = clip(clean(&body, redactor).trim_end(), TEXT);
        Self { step: event.step, kind, head: clip(&clean_line(&head, redactor), HEAD), body }
    }

    fn size(&self) -> usize {
        self.head.len() + self.body.len() + size_of::<Self>()
    }
}

fn assistant_head(event: &Event) -> String {
    let model = event.model.clone().unwrap_or_default();
    match event.usage {
        Some(usage) if model.is_empty() => usage_text(usage),
        Some(usage) => format!("{model}, {}", usage_text(usage)),
        None => model,
    }
}

fn assistant_body(event: &Event) -> String {
    let content = event.content.as_deref().unwrap_or_default();
    match event.reasoning.as_deref() {
        Some(thoughts) => format!("(thinks) {thoughts}\n{content}"),
        None => content.to_owned(),
    }
}

fn arguments(event: &Event) -> String {
    match (&event.command, &event.arguments) {
        (Some(command), Some(serde_json::Value::Object(all))) if all.len() > 1 => {
            let others: serde_json::Map<_, _> = all
                .iter()
                .filter(|(key, _)| *key != "command")
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect();
            format!("$ {command}\n{}", serde_json::Value::Object(others))
        }
        (Some(command), _) => format!("$ {command}"),
        (None, Some(serde_json::Value::String(text))) => text.clone(),
        (None, Some(value)) => value.to_string(),
        (None, None) => String::new(),
    }
}

fn result_head(event: &Event) -> String {
    let mut parts = vec![event.tool_name.clone().unwrap_or_default()];
    if let Some(code) = event.exit_code {
        parts.push(format!("exit code {code}"));
    }
    if let Some(time) = event.duration_ms {
        parts.push(span(Duration::from_millis(time)));
    }
    parts.retain(|part| !part.is_empty());
    parts.join(", ")
}

fn result_body(event: &Event) -> String {
    let mut body = event.stdout.clone().unwrap_or_default();
    if let Some(complaint) = event.stderr.as_deref().filter(|complaint| !complaint.trim().is_empty()) {
        if !body.is_empty() && !body.ends_with('\n') {
            body.push('\n');
        }
        body.push_str("(stderr) ");
        body.push_str(complaint);
    }
    for picture in &event.media {
        body.push_str(&format!("\n(picture) {picture}"));
    }
    body
}

fn metadata(event: &Event) -> String {
    if event.metadata.is_empty() {
        return String::new();
    }
    serde_json::to_string(&event.metadata).unwrap_or_default()
}

fn usage_text(usage: Usage) -> String {
    format!("{} tokens in, {} out", grouped(usage.all_input()), grouped(usage.all_output()))
}

fn call(call: &CallEvent) -> String {
    match call {
        CallEvent::Attempt { attempt, endpoint, .. } => format!("request {attempt} to {endpoint}"),
        CallEvent::Failed { attempt, failure, elapsed_ms, wait_ms, .. } => {
            let next = wait_ms.map(|wait| format!("; next in {}", span(Duration::from_millis(wait))));
            let time = span(Duration::from_millis(*elapsed_ms));
            format!("request {attempt} failed after {time}: {failure}{}", next.unwrap_or_default())
        }
        CallEvent::Answered { attempt, elapsed_ms, usage, cost, .. } => {
            let usage = usage.map(|usage| format!(", {}", usage_text(usage))).unwrap_or_default();
            let cost = cost.map_or_else(|| "no price".to_owned(), money);
            let time = span(Duration::from_millis(*elapsed_ms));
            format!("request {attempt} answered after {time}{usage}, {cost}")
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Trace {
    entries: VecDeque<Entry>,
    size: usize,
    forgotten: usize,
}

impl Trace {
    /// Adds an event. All `running` trials share the space for text.
    pub(crate) fn push(&mut self, entry: Entry, running: usize) {
        self.size += entry.size();
        self.entries.push_back(entry);
        let room = ALL_TEXT / running.max(1);
        while self.entries.len() > EVENTS || self.size > room && self.entries.len() > 1 {
            let Some(oldest) = self.entries.pop_front() else { break };
            self.size -= oldest.size();
            self.forgotten += 1;
        }
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    /// Number of earlier events that are no longer kept.
    pub(crate) fn forgotten(&self) -> usize {
        self.forgotten
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use aec_model::money::MicroDollars;
    use serde_json::json;

    use super::*;

    fn shown(event: &Event) -> String {
        let entry = Entry::of(event, &Redactor::default().with([("MY_KEY", "secret-value")]));
        format!("{} | {} | {}", entry.kind, entry.head, entry.body)
    }

    #[test]
    fn every_kind_of_event_says_what_happened() {
        let usage = Some(Usage { input: 1_200, output: 34, ..Usage::default() });
        let failure = aec_model::failure::Failure {
            status: Some(429),
            ..aec_model::failure::Failure::passing(aec_model::failure::FailureKind::Rate, "too many requests")
        };
        let events = [
            Event { role: EventRole::System, content: Some("be exact".to_owned()), ..Event::default() },
            Event {
                role: EventRole::User,
                content: Some("solve it with secret-value".to_owned()),
                ..Event::default()
            },
            Event {
                role: EventRole::Assistant,
                content: Some("I look first.\n".to_owned()),
                reasoning: Some("where is it".to_owned()),
                model: Some("m-1".to_owned()),
                usage,
                ..Event::default()
            },
            Event {
                role: EventRole::ToolCall,
                tool_name: Some("bash".to_owned()),
                command: Some("ls -l".to_owned()),
                arguments: Some(json!({"command": "ls -l", "timeout": 5})),
                ..Event::default()
            },
            Event {
                role: EventRole::ToolCall,
                tool_name: Some("read_file".to_owned()),
                arguments: Some(json!({"path": "a\u{1b}[0m"})),
                ..Event::default()
            },
            Event {
                role: EventRole::ToolResult,
                tool_name: Some("bash".to_owned()),
                stdout: Some("one\ntwo".to_owned()),
                stderr: Some("\u{1b}[31mno such file".to_owned()),
                exit_code: Some(2),
                duration_ms: Some(1_250),
                ..Event::default()
            },
            Event {
                role: EventRole::ModelCall,
                call: Some(CallEvent::Failed {
                    attempt: 1,
                    failure,
                    elapsed_ms: 120,
                    wait_ms: Some(2_000),
                    charged: None,
                }),
                ..Event::default()
            },
            Event {
                role: EventRole::ModelCall,
                call: Some(CallEvent::Answered {
                    attempt: 2,
                    elapsed_ms: 900,
                    usage,
                    cost: Some(MicroDollars(4_200)),
                    tokens_at_most: None,
                    implausible: None,
                }),
                ..Event::default()
            },
            Event { role: EventRole::Note, content: Some("the last turn".to_owned()), ..Event::default() },
        ];
        insta::assert_snapshot!(events.iter().map(shown).collect::<Vec<_>>().join("\n"));
    }

    #[test]
    fn a_trace_forgets_its_beginning() {
        let mut trace = Trace::default();
        let event = Event { role: EventRole::Note, content: Some("x".to_owned()), ..Event::default() };
        for step in 0..300 {
            trace.push(Entry { step, ..Entry::of(&event, &Redactor::default()) }, 1);
        }
        assert_eq!((trace.entries().count(), trace.forgotten()), (EVENTS, 100));
        assert_eq!(trace.entries().next().map(|entry| entry.step), Some(100));
    }

    #[test]
    fn text_is_bounded_for_one_event_and_for_all_trials_together() {
        let long = Event { role: EventRole::User, content: Some("ä".repeat(1 << 20)), ..Event::default() };
        let entry = Entry::of(&long, &Redactor::default());
        assert!(entry.body.len() <= TEXT + "…".len());
        let mut trace = Trace::default();
        for _ in 0..300 {
            trace.push(entry.clone(), 1_000);
        }
        assert!(trace.size <= ALL_TEXT / 1_000, "{}", trace.size);
        assert!(!trace.is_empty());
    }
}
