//! Shortens a conversation: a summary replaces its middle. The instruction, the system prompt and the last turn stay
//! unchanged; variables and notes are listed again.

use aec_model::message::{Message, Part, Request, Role, Sampling};

use super::cell_requests::{CellRequests, lock};
use super::session::Variable;
use crate::harness::guard::Plane;
use crate::harness::tools::cut_text;

/// Messages at the beginning that always stay: system prompt and instruction.
const KEPT: usize = 2;

/// Most tokens of a summary.
const SUMMARY: u32 = 4096;

/// Bytes of one message that the summarising model reads.
const READ: usize = 6000;

/// Bytes of the list of variables, and of that of notes.
const INVENTORY: usize = 16_000;

const ROLE: &str = "You summarise the work of another model so that it can go on without the conversation. Say in short \
                    paragraphs: what was read, what was found (with numbers, units and places), what was done, what is \
                    left, which way was taken, what went wrong. Invent nothing.";

/// The result of a compaction.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Compacted {
    pub(super) messages: usize,
    pub(super) summary: String,
    /// Why no model summarised, if so.
    pub(super) fault: Option<String>,
}

/// Shortens a conversation for a window in tokens. Without a model's answer the summary is variables and notes.
pub(super) async fn compact(
    requests: &CellRequests<'_>,
    messages: &mut Vec<Message>,
    variables: &[Variable],
    window: u64,
) -> Compacted {
    let last = last_turn(messages);
    let middle = &messages[KEPT.min(last)..last];
    // Two bytes for each token of the window leave enough for the rest, in any language.
    let share = usize::try_from(window.saturating_mul(2)).unwrap_or(usize::MAX) / middle.len().max(1);
    let told: Vec<String> = middle.iter().map(|message| cut_text(&said(message), READ.min(share))).collect();
    let inventory = inventory(requests, variables);
    let before = messages.len();
    let asked = format!("{}\n\n{inventory}", told.join("\n"));
    let request = Request {
        messages: vec![Message::text(Role::System, ROLE), Message::text(Role::User, asked)],
        sampling: Sampling { max_tokens: Some(requests.guard.output_limit(SUMMARY)), ..Sampling::default() },
        ..Request::default()
    };
    let answered = match requests.guard.enter(Plane::Compaction) {
        Ok(()) => requests
            .ask(Plane::Compaction, &requests.models.compaction, &request)
            .await
            .map_err(|error| error.to_string()),
        Err(limit) => Err(limit.name().to_owned()),
    };
    let (summary, fault) = match answered {
        Ok(reply) if !reply.text().trim().is_empty() => (reply.text(), None),
        Ok(_) => ("(there is no summary)".to_owned(), Some("the answer is empty".to_owned())),
        Err(error) => ("(there is no summary)".to_owned(), Some(error)),
    };
    let text = format!(
        "[The conversation was shortened here. What happened so far:]\n{}\n\n{inventory}\n[Go on from here; RECALL() \
         shows your notes.]",
        summary.trim()
    );
    let kept = messages.split_off(last);
    messages.truncate(KEPT);
    messages.push(Message::text(Role::User, text));
    messages.extend(kept);
    Compacted { messages: before, summary, fault }
}

/// The start of the last turn: calls and their results must stay together.
fn last_turn(messages: &[Message]) -> usize {
    messages.iter().rposition(|message| message.role == Role::Assistant).unwrap_or(messages.len()).max(KEPT)
}

fn inventory(requests: &CellRequests<'_>, variables: &[Variable]) -> String {
    let variables: Vec<String> = variables
        .iter()
        .map(|one| format!("- {}: {}{} {}", one.name, one.r#type, one.size, one.preview))
        .collect();
    let mut text = format!("Variables of the session:\n{}\n", cut_text(&variables.join("\n"), INVENTORY));
    let notes = lock(&requests.state.notes);
    if !notes.is_empty() {
        let lines: Vec<String> = notes
            .iter()
            .map(|(key, value)| format!("- {key}: {}", cut_text(&value.to_string(), 300)))
            .collect();
        text.push_str(&format!("Notes:\n{}\n", cut_text(&lines.join("\n"), INVENTORY)));
    }
    drop(notes);
    if let Some(report) = &requests.state.report {
        let status = lock(report).status();
        text.push_str(&format!(
            "Report: {} of {} sections are filled; open: {}\n",
            status.completed.len(),
            status.total,
            status.unlocked.join(", ")
        ));
    }
    text
}

/// A message as text.
fn said(message: &Message) -> String {
    let who = match message.role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "model",
    };
    let parts = message.parts.iter().map(|part| match part {
        Part::Text { text } => text.clone(),
        Part::ToolCall(call) => call.arguments.clone(),
        Part::ToolResult { parts, .. } => aec_model::message::join_text(parts).into_owned(),
        Part::Image { .. } | Part::Reasoning { .. } => String::new(),
    });
    format!("{who}: {}", parts.collect::<Vec<_>>().join("\n"))
}
