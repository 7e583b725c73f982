//! Asks a model for a change: one question, one repair if the answer cannot be parsed, and a limit on every answer.

use aec_base::text;
use aec_model::client::{Model, Scope as CallScope};
use aec_model::failure::{Failure, FailureKind};
use aec_model::message::{Message, Request, Role, Sampling};
use serde_json::Value;

use crate::config::Voice;

/// In letters; the rest is ignored.
const LONGEST_ANSWER: usize = 256 * 1024;
/// In letters; the rest of a reason or a note is cut.
const LONGEST_REASON: usize = 2_000;
const LONGEST_NOTE: usize = 400;

#[derive(Clone, Debug, PartialEq)]
pub struct Proposal {
    /// Changes, not yet checked.
    pub actions: Vec<Value>,
    pub reasoning: String,
    /// For other agents.
    pub note: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum NoProposal {
    Unreadable(String),
    Model(Failure),
}

pub async fn ask(
    model: &Model,
    voice: &Voice,
    temperature: f64,
    program: &str,
    brief: &str,
    scope: &CallScope,
) -> Result<Proposal, NoProposal> {
    let mut messages =
        vec![Message::text(Role::System, program.to_owned()), Message::text(Role::User, brief.to_owned())];
    let mut why = String::new();
    for _ in 0..2 {
        let request = Request {
            messages: messages.clone(),
            sampling: Sampling {
                temperature: Some(temperature),
                max_tokens: Some(voice.max_tokens),
                ..Sampling::default()
            },
            ..Request::default()
        };
        let reply = match model.call(&request, scope).await.outcome {
            Ok(reply) => reply.text(),
            // A model that answers nothing is asked once more, like one whose answer cannot be parsed.
            Err(failure) if failure.kind == FailureKind::Empty => String::new(),
            Err(failure) => return Err(NoProposal::Model(failure)),
        };
        match parse(&reply) {
            Ok(proposal) => return Ok(proposal),
            Err(reason) => {
                let said =
                    if reply.trim().is_empty() { "(nothing)".to_owned() } else { clipped(&reply, 4_000) };
                messages.push(Message::text(Role::Assistant, said));
                messages.push(Message::text(
                    Role::User,
                    format!(
                        "That cannot be read: {reason}. Answer with the one JSON object that was asked for."
                    ),
                ));
                why = reason;
            }
        }
    }
    Err(NoProposal::Unreadable(why))
}

/// Parses an answer: an object, perhaps in a fenced block, perhaps with words around it.
pub fn parse(reply: &str) -> Result<Proposal, String> {
    let reply = reply.trim();
    if reply.is_empty() {
        return Err("it is empty".to_owned());
    }
    if reply.len() > LONGEST_ANSWER {
        return Err("it is too long".to_owned());
    }
    let mut why = "there is no JSON object in it".to_owned();
    for piece in pieces(reply) {
        let value: Value = match aec_base::json::from_str(piece) {
            Ok(value) => value,
            Err(error) => {
                why = format!("it is not JSON: {error}");
                continue;
            }
        };
        let Value::Object(mut object) = value else { continue };
        match object.remove("actions") {
            Some(Value::Array(actions)) => {
                let mut word = |key: &str, longest: usize| {
                    let said = object.remove(key);
                    said.as_ref().and_then(Value::as_str).map(|said| clipped(said.trim(), longest))
                };
                return Ok(Proposal {
                    actions,
                    reasoning: word("reasoning", LONGEST_REASON).unwrap_or_default(),
                    note: word("note", LONGEST_NOTE).filter(|note| !note.is_empty()),
                });
            }
            Some(_) => "`actions` is not a list".clone_into(&mut why),
            None => "it has no `actions`".clone_into(&mut why),
        }
    }
    Err(text::printable(&why).into_owned())
}

/// The parts of an answer that may be the object: all of it, fenced blocks, and from the first brace to the last.
fn pieces(reply: &str) -> Vec<&str> {
    let mut pieces = vec![reply];
    let mut rest = reply;
    while let Some(start) = rest.find("```") {
        let inside = &rest[start + 3..];
        let inside = inside.split_once('\n').map_or(inside, |(_, inside)| inside);
        let Some(end) = inside.find("```") else { break };
        pieces.push(inside[..end].trim());
        rest = &inside[end + 3..];
    }
    if let (Some(start), Some(end)) = (reply.find('{'), reply.rfind('}'))
        && start < end
    {
        pieces.push(&reply[start..=end]);
    }
    pieces
}

fn clipped(text: &str, longest: usize) -> String {
    text.chars().take(longest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_found_wherever_it_stands() {
        let object =
            r#"{"actions": [{"type": "delete_skill", "name": "a"}], "reasoning": "r", "note": " n "}"#;
        for reply in [
            object.to_owned(),
            format!("```json\n{object}\n```"),
            format!("Here it is:\n\n```\n{object}\n```\nDone."),
            format!("I think {object} is best."),
            format!("```python\nprint(1)\n```\n```json\n{object}\n```"),
        ] {
            let proposal = parse(&reply).unwrap();
            assert_eq!(proposal.actions.len(), 1, "{reply}");
            assert_eq!((proposal.reasoning.as_str(), proposal.note.as_deref()), ("r", Some("n")));
        }
        assert!(parse(r#"{"actions": []}"#).unwrap().actions.is_empty());
    }

    #[test]
    fn nonsense_is_named() {
        for (reply, why) in [
            ("", "empty"),
            ("   \n", "empty"),
            ("I cannot help.", "not JSON"),
            ("{\"actions\": \"all\"}", "not a list"),
            ("{\"reasoning\": \"x\"}", "no `actions`"),
            ("[1, 2]", "no JSON object"),
            ("{\"actions\": [", "not JSON"),
            ("```json\n{\n```", "not JSON"),
        ] {
            let reason = parse(reply).unwrap_err();
            assert!(reason.contains(why), "{reply}: {reason}");
        }
        assert!(parse(&"x".repeat(LONGEST_ANSWER + 1)).unwrap_err().contains("too long"));
    }

    proptest::proptest! {
        #[test]
        fn nothing_makes_it_stumble(reply in ".{0,200}") {
            let _parsed = parse(&reply);
        }
    }
}
