//! Describes how two requests differ, briefly and with bounded length.

use aec_base::digest::Digest;
use serde_json::Value;
use similar::{Algorithm, ChangeTag, DiffOp, TextDiff};

use super::canonical::{self, json};
use crate::message::{Message, Part, Request, Role};

/// Lines of a text to compare, from a little before the first difference.
const MOST_LINES: usize = 400;
/// Further messages to list.
const MOST_LISTED: usize = 10;
/// Lines of a comparison to show.
const MOST_SHOWN: usize = 24;
/// Characters of a line to show.
const MOST_CHARACTERS: usize = 160;
/// Equal lines or characters shown before a difference.
const LINES_AROUND: usize = 2;
const CHARACTERS_BEFORE: usize = 40;

/// The differences between a recorded request and the present one, one per paragraph.
pub(super) fn between(recorded: (&str, &Request), asked: (&str, &Request)) -> String {
    let mut text = String::new();
    if recorded.0 != asked.0 {
        put(&mut text, &format!("model: recorded `{}`, asked `{}`", recorded.0, asked.0));
    }
    let (recorded, asked) = (recorded.1, asked.1);
    compare_settings(&mut text, recorded, asked);
    compare_tools(&mut text, recorded, asked);
    compare_messages(&mut text, recorded, asked);
    if text.is_empty() {
        put(&mut text, "in nothing but the redacted secrets or the canonical form");
    }
    text.truncate(text.trim_end().len());
    text
}

fn put(text: &mut String, line: &str) {
    text.push_str("  ");
    text.push_str(line);
    text.push('\n');
}

fn compare_settings(text: &mut String, recorded: &Request, asked: &Request) {
    let settings = |request: &Request| canonical::settings(&request.tool_choice, &request.sampling);
    let (recorded, asked) = (settings(recorded), settings(asked));
    compare_values(text, "", &recorded, &asked);
}

/// Names each differing key, down to values that are not objects.
fn compare_values(text: &mut String, name: &str, recorded: &Value, asked: &Value) {
    if recorded == asked {
        return;
    }
    if let (Value::Object(one), Value::Object(other)) = (recorded, asked) {
        let mut keys: Vec<&String> = one.keys().chain(other.keys()).collect();
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
            let name = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
            match (one.get(key), other.get(key)) {
                (Some(one), Some(other)) => compare_values(text, &name, one, other),
                (one, other) => {
                    put(text, &format!("{name}: recorded {}, asked {}", shown(one), shown(other)));
                }
            }
        }
        return;
    }
    put(text, &format!("{name}: recorded {}, asked {}", shown(Some(recorded)), shown(Some(asked))));
}

fn shown(value: Option<&Value>) -> String {
    value.map_or_else(|| "nothing".to_owned(), |value| clip(&json(value), 0))
}

fn compare_tools(text: &mut String, recorded: &Request, asked: &Request) {
    let (one, other) = (canonical::tools_text(&recorded.tools), canonical::tools_text(&asked.tools));
    if one == other {
        return;
    }
    let names = |request: &Request| {
        let names: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    };
    let (before, after) = (names(recorded), names(asked));
    if before == after {
        put(text, "tools");
        compare_texts(text, &pretty(&one), &pretty(&other));
    } else {
        put(text, &format!("tools: recorded {}, asked {}", clip(&before, 0), clip(&after, 0)));
    }
}

fn pretty(json: &str) -> String {
    let value: Value = aec_base::json::from_str(json).unwrap_or_default();
    serde_json::to_string_pretty(&value).unwrap_or_default()
}

fn compare_messages(text: &mut String, recorded: &Request, asked: &Request) {
    let (before, after) = (recorded.messages.len(), asked.messages.len());
    if before != after {
        put(text, &format!("messages: {before} recorded, {after} asked"));
    }
    let differing: Vec<usize> = (0..before.min(after))
        .filter(|index| {
            canonical::message_text(&recorded.messages[*index])
                != canonical::message_text(&asked.messages[*index])
        })
        .collect();
    if let Some((first, others)) = differing.split_first() {
        let (one, other) = (&recorded.messages[*first], &asked.messages[*first]);
        let roles = if one.role == other.role {
            role(one.role).to_owned()
        } else {
            format!("recorded {}, asked {}", role(one.role), role(other.role))
        };
        put(text, &format!("message {} of {after} ({roles})", first + 1));
        // A line about parts helps only if there are several.
        match (only_text(one), only_text(other)) {
            (Some(one), Some(other)) => compare_texts(text, one, other),
            _ => compare_texts(text, &rendered(one), &rendered(other)),
        }
        if !others.is_empty() {
            let listed: Vec<String> =
                others.iter().take(MOST_LISTED).map(|index| (index + 1).to_string()).collect();
            let more = if others.len() > MOST_LISTED { ", …" } else { "" };
            put(text, &format!("also different: message {}{more}", listed.join(", ")));
        }
    } else if let Some(message) = asked.messages.get(before) {
        put(text, &format!("first new message: {} of {after} ({})", before + 1, role(message.role)));
        compare_texts(text, "", &rendered(message));
    } else if let Some(message) = recorded.messages.get(after) {
        put(text, &format!("first missing message: {} of {before} ({})", after + 1, role(message.role)));
        compare_texts(text, &rendered(message), "");
    }
}

fn role(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
    }
}

/// The text of a message that consists of nothing else.
fn only_text(message: &Message) -> Option<&str> {
    match message.parts.as_slice() {
        [Part::Text { text }] => Some(text),
        _ => None,
    }
}

/// A message as readable lines.
fn rendered(message: &Message) -> String {
    let mut text = String::new();
    render_parts(&mut text, &message.parts);
    text
}

fn render_parts(text: &mut String, parts: &[Part]) {
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        match part {
            Part::Text { text: said } => text.push_str(&format!("[text]\n{said}")),
            Part::Image { media_type, data } => {
                text.push_str(&format!("[image {media_type} {}]", Digest::of(data.as_bytes())));
            }
            Part::Reasoning { text: thought, opaque } => {
                text.push_str(&format!("[reasoning]\n{thought}"));
                if let Some(opaque) = opaque {
                    text.push_str(&format!("\n[opaque]\n{opaque}"));
                }
            }
            Part::ToolCall(call) => {
                text.push_str(&format!("[tool call {} {}]\n{}", call.name, call.id, call.arguments));
            }
            Part::ToolResult { call_id, parts, is_error } => {
                let state = if *is_error { " failed" } else { "" };
                text.push_str(&format!("[tool result {call_id}{state}]\n"));
                render_parts(text, parts);
            }
        }
    }
}

/// A unified diff of the first lines that differ.
fn compare_texts(text: &mut String, recorded: &str, asked: &str) {
    let lines = |text: &str| -> Vec<String> {
        if text.is_empty() { Vec::new() } else { text.split('\n').map(str::to_owned).collect() }
    };
    let (old, new) = (lines(recorded), lines(asked));
    let equal = old.iter().zip(&new).take_while(|(one, other)| one == other).count();
    let start = equal.saturating_sub(LINES_AROUND);
    let part =
        |lines: &[String]| -> Vec<String> { lines.iter().skip(start).take(MOST_LINES).cloned().collect() };
    let (old_part, new_part) = (part(&old), part(&new));
    let old_lines: Vec<&str> = old_part.iter().map(String::as_str).collect();
    let new_lines: Vec<&str> = new_part.iter().map(String::as_str).collect();
    let diff = TextDiff::configure().algorithm(Algorithm::Myers).diff_slices(&old_lines, &new_lines);
    let mut shown = 0;
    for group in diff.grouped_ops(LINES_AROUND) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let heading = format!(
            "@@ -{},{} +{},{} @@",
            start + first.old_range().start + 1,
            last.old_range().end - first.old_range().start,
            start + first.new_range().start + 1,
            last.new_range().end - first.new_range().start,
        );
        indent(text, &heading);
        for op in &group {
            for change in diff.iter_changes(op) {
                if shown == MOST_SHOWN {
                    indent(text, "…");
                    return;
                }
                shown += 1;
                let sign = match change.tag() {
                    ChangeTag::Equal => ' ',
                    ChangeTag::Delete => '-',
                    ChangeTag::Insert => '+',
                };
                let focus = focus(op, change.old_index(), change.new_index(), &old_lines, &new_lines);
                let line = format!("{sign}{}", clip(change.value(), focus));
                indent(text, if change.value().is_empty() { line.trim_end() } else { &line });
            }
        }
    }
}

fn indent(text: &mut String, line: &str) {
    // Trailing blanks would be invisible, and may be the only difference.
    let visible = line.trim_end_matches(' ');
    text.push_str("    ");
    text.push_str(visible);
    text.extend(std::iter::repeat_n('·', line.len() - visible.len()));
    text.push('\n');
}

/// The position, in characters, where a replaced line begins to differ.
fn focus(
    op: &DiffOp,
    old: Option<usize>,
    new: Option<usize>,
    old_lines: &[&str],
    new_lines: &[&str],
) -> usize {
    let DiffOp::Replace { old_index, new_index, .. } = *op else { return 0 };
    let row = match (old, new) {
        (Some(old), _) => old - old_index,
        (None, Some(new)) => new - new_index,
        (None, None) => return 0,
    };
    match (old_lines.get(old_index + row), new_lines.get(new_index + row)) {
        (Some(one), Some(other)) => {
            one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count()
        }
        _ => 0,
    }
}

/// A line without control characters, cut to the surroundings of a position.
fn clip(line: &str, focus: usize) -> String {
    let length = line.chars().count();
    let start = if length <= MOST_CHARACTERS { 0 } else { focus.saturating_sub(CHARACTERS_BEFORE) };
    let mut clipped = String::new();
    if start > 0 {
        clipped.push('…');
    }
    for character in line.chars().skip(start).take(MOST_CHARACTERS) {
        if character.is_control() && character != '\t' {
            clipped.extend(character.escape_default());
        } else {
            clipped.push(character);
        }
    }
    if length > start + MOST_CHARACTERS {
        clipped.push('…');
    }
    clipped
}
