//! The Python executor, for environments that `verifiers` loads: sends groups of rollouts to Python workers, whose
//! model calls come back here.

use std::sync::Arc;

use aec_model::client::{Model, Scope};
use aec_model::failure::{Failure, FailureKind};
use aec_model::message::{Message, Part, Reply, Request, Role, Stop, Tool, ToolCall};
use aec_model::meter::Account;
use aec_run::campaign::faults::{Meaning, meaning};
use serde_json::{Map, Value, json};

use crate::describe::sampling;
use crate::engine::{Environment, Finished, Group, Trouble};
use crate::results::payers::Payers;
use crate::results::row::adopt;
use crate::worker::{self, ModelCaller, ModelFuture, WorkerError, WorkerPool};

pub struct PythonExecutor {
    pub pool: WorkerPool,
    pub model: Model,
    /// The name of the model as the environment sees it.
    pub model_name: String,
    /// The sampling arguments as the environment sees them.
    pub sampling_args: Map<String, Value>,
    pub payers: Payers,
    /// Tells this evaluation apart from others of the same run, on cassettes.
    pub label: String,
    pub independent: bool,
}

impl std::fmt::Debug for PythonExecutor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PythonExecutor").field("label", &self.label).finish_non_exhaustive()
    }
}

/// A group that a worker generated, or why it did not.
pub struct GeneratedGroup {
    group: Group,
    generated: Result<worker::Generated, WorkerError>,
    calls: Arc<GroupCalls>,
}

impl Environment for PythonExecutor {
    type Generated = GeneratedGroup;

    async fn generate(&self, group: Group) -> GeneratedGroup {
        let id = self.pool.loaded().example_ids.get(group.example).copied().unwrap_or_default();
        let calls = Arc::new(GroupCalls {
            model: self.model.clone(),
            label: format!("{}/{id}", self.label),
            rollouts: group
                .rollouts
                .iter()
                .map(|(number, _)| (*number, self.payers.begin(id, *number)))
                .collect(),
            refused: std::sync::OnceLock::new(),
        });
        let job = worker::Job {
            members: group
                .rollouts
                .iter()
                .map(|(number, _)| worker::Member { example: group.example, rollout: *number as usize })
                .collect(),
            independent: self.independent,
            model: self.model_name.clone(),
            sampling_args: self.sampling_args.clone(),
        };
        let generated = self.pool.generate(job, Arc::clone(&calls) as Arc<dyn ModelCaller>).await;
        GeneratedGroup { group, generated, calls }
    }

    fn scores_at_once(&self) -> bool {
        false
    }

    async fn score(&self, generated: GeneratedGroup) -> Vec<Finished> {
        let GeneratedGroup { group, generated, calls } = generated;
        let rows = match generated {
            Ok(generated) => self.pool.score(generated).await,
            Err(error) => Err(error),
        };
        let id = self.pool.loaded().example_ids.get(group.example).copied().unwrap_or_default();
        match rows {
            Ok(rows) => {
                let pairs = rows.into_iter().zip(&group.rollouts);
                pairs.map(|(row, rollout)| finished(&row.text, *rollout, id, &calls)).collect()
            }
            // Rollouts of a failed worker get rows too, so that the user sees what happened to them.
            Err(error) => group.rollouts.iter().map(|rollout| lost(&error, *rollout, id, &calls)).collect(),
        }
    }
}

/// Converts a row of the library to one of ours.
fn finished(text: &str, (number, attempt): (u32, u32), id: i64, calls: &GroupCalls) -> Finished {
    let mut line = Vec::with_capacity(text.len() + 64);
    match adopt(text.as_bytes(), number, attempt, &mut line) {
        Ok(facts) => {
            let trouble = calls.refused.get().cloned().map(Trouble::Model).or_else(|| {
                let error = facts.error.as_ref()?;
                is_infra(&error.class).then(|| Trouble::Infra(error.chain.clone()))
            });
            Finished { line, facts, trouble }
        }
        Err(problem) => lost_because("InvalidRowError", &problem.what, (number, attempt), id, calls),
    }
}

/// Errors of the library after which a rollout may be retried.
fn is_infra(class: &str) -> bool {
    const CLASSES: [&str; 6] = [
        "InfraError",
        "SandboxError",
        "TunnelError",
        "BrowserSandboxError",
        "InvalidModelResponseError",
        "EmptyModelResponseError",
    ];
    CLASSES.contains(&class)
}

fn lost(error: &WorkerError, rollout: (u32, u32), id: i64, calls: &GroupCalls) -> Finished {
    let class = match error {
        WorkerError::TimedOut { .. } => "TimeoutError",
        WorkerError::Job { error, .. } => error.as_str(),
        _ => "WorkerError",
    };
    lost_because(class, &error.to_string(), rollout, id, calls)
}

/// The row of a rollout for which the worker returned nothing.
fn lost_because(
    class: &str,
    what: &str,
    (number, attempt): (u32, u32),
    id: i64,
    calls: &GroupCalls,
) -> Finished {
    let row = json!({
        "example_id": id, "prompt": [], "completion": [], "reward": 0.0,
        "error": {"error": class, "error_chain_repr": format!("{class}({what:?})"), "error_chain_str": class},
        "is_completed": false, "is_truncated": false, "stop_condition": "has_error", "metrics": {}, "tool_defs": [],
    });
    let mut line = Vec::new();
    let facts = adopt(row.to_string().as_bytes(), number, attempt, &mut line).unwrap_or_default();
    let trouble = match calls.refused.get() {
        Some(failure) => Trouble::Model(failure.clone()),
        None => Trouble::Infra(what.to_owned()),
    };
    Finished { line, facts, trouble: Some(trouble) }
}

struct GroupCalls {
    model: Model,
    label: String,
    /// The number of each rollout, and the account that pays for it.
    rollouts: Vec<(u32, Account)>,
    /// A failure after which no other call can succeed.
    refused: std::sync::OnceLock<Failure>,
}

impl ModelCaller for GroupCalls {
    fn call(&self, call: worker::ModelCall) -> ModelFuture<'_> {
        Box::pin(async move {
            let provider = |message| worker::ModelFailure::new(worker::FailureKind::Provider, message);
            let named = call.rollout.and_then(|at| self.rollouts.get(at));
            let (number, account) = named
                .or_else(|| self.rollouts.first())
                .ok_or_else(|| provider("a group without rollouts calls a model".to_owned()))?;
            let label = format!("{}#{number}", self.label);
            let request = request(call).map_err(provider)?;
            let scope = Scope::new(label, account.clone());
            match self.model.call(&request, &scope).await.outcome {
                Ok(reply) => Ok(answer(&reply)),
                Err(failure) => {
                    if meaning(&failure) == Meaning::Fatal {
                        // Only the first refusal is kept.
                        self.refused.set(failure.clone()).ok();
                    }
                    Err(refusal(&failure))
                }
            }
        })
    }
}

/// Converts an environment's model call to a request of ours.
fn request(call: worker::ModelCall) -> Result<Request, String> {
    let mut messages: Vec<Message> = Vec::with_capacity(call.messages.len());
    for message in call.messages {
        if message.role == "tool" {
            let result = Part::ToolResult {
                call_id: message.tool_call_id.unwrap_or_default(),
                parts: parts(&message.content)?,
                is_error: false,
            };
            // Tool results of one turn belong in one message.
            match messages.last_mut() {
                Some(last) if last.role == Role::User && is_results(last) => last.parts.push(result),
                _ => messages.push(Message { role: Role::User, parts: vec![result] }),
            }
            continue;
        }
        let role = match message.role.as_str() {
            "system" | "developer" => Role::System,
            "assistant" => Role::Assistant,
            _ => Role::User,
        };
        let mut own = Vec::new();
        if let Some(text) = message.reasoning_content.filter(|_| role == Role::Assistant) {
            own.push(Part::Reasoning { text, opaque: message.thinking_blocks });
        }
        own.extend(parts(&message.content)?);
        own.extend(message.tool_calls.into_iter().map(|call| {
            Part::ToolCall(ToolCall { id: call.id, name: call.name, arguments: call.arguments })
        }));
        messages.push(Message { role, parts: own });
    }
    let tools = call.tools.into_iter().map(|tool| Tool {
        name: tool.name,
        description: tool.description,
        parameters: tool.parameters,
    });
    Ok(Request {
        messages,
        tools: tools.collect(),
        sampling: sampling(&call.sampling_args).map_err(|problem| problem.what)?,
        ..Request::default()
    })
}

fn is_results(message: &Message) -> bool {
    message.parts.iter().all(|part| matches!(part, Part::ToolResult { .. }))
}

/// Content in the format of environments: a text, or a list of texts and images.
fn parts(content: &Value) -> Result<Vec<Part>, String> {
    let list = match content {
        Value::Null => return Ok(Vec::new()),
        Value::String(text) if text.is_empty() => return Ok(Vec::new()),
        Value::String(text) => return Ok(vec![Part::text(text.clone())]),
        Value::Array(list) => list,
        other => return Ok(vec![Part::text(other.to_string())]),
    };
    list.iter()
        .map(|part| {
            if let Some(text) = part.as_str().or_else(|| part["text"].as_str()) {
                return Ok(Part::text(text));
            }
            let url = part["image_url"]["url"].as_str().or_else(|| part["image_url"].as_str());
            let data = url.and_then(|url| url.strip_prefix("data:")?.split_once(";base64,"));
            let Some((media_type, data)) = data else {
                return Err(format!("a part of type {} cannot be sent to a model here", part["type"]));
            };
            Ok(Part::Image { media_type: media_type.to_owned(), data: data.to_owned() })
        })
        .collect()
}

fn answer(reply: &Reply) -> worker::ModelAnswer {
    let text = reply.text();
    let thoughts: Vec<&str> = reply
        .parts
        .iter()
        .filter_map(|part| match part {
            Part::Reasoning { text, .. } if !text.is_empty() => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let opaque = reply.parts.iter().find_map(|part| match part {
        Part::Reasoning { opaque, .. } => opaque.clone(),
        _ => None,
    });
    let tool_calls: Vec<worker::ToolCall> = reply
        .tool_calls()
        .map(|call| worker::ToolCall {
            id: call.id.clone(),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
        })
        .collect();
    worker::ModelAnswer {
        id: reply.id.clone().unwrap_or_default(),
        created: 0,
        model: reply.model.clone().unwrap_or_default(),
        content: if text.is_empty() && !tool_calls.is_empty() { Value::Null } else { text.into() },
        reasoning_content: (!thoughts.is_empty()).then(|| thoughts.join("\n")),
        thinking_blocks: opaque,
        finish_reason: Some(match &reply.stop {
            Stop::End | Stop::StopText => "stop".to_owned(),
            Stop::ToolCalls => "tool_calls".to_owned(),
            Stop::Length => "length".to_owned(),
            Stop::ContentFilter => "content_filter".to_owned(),
            Stop::Other(word) => word.clone(),
        }),
        usage: reply.usage.map(|usage| worker::Usage {
            prompt_tokens: usage.all_input(),
            completion_tokens: usage.all_output(),
            total_tokens: usage.total(),
            reasoning_tokens: usage.reasoning,
        }),
        tool_calls,
    }
}

fn refusal(failure: &Failure) -> worker::ModelFailure {
    let kind = match failure.kind {
        FailureKind::Overlong => worker::FailureKind::Overlong,
        kind if kind.is_silence() => worker::FailureKind::Empty,
        FailureKind::Protocol => worker::FailureKind::Invalid,
        FailureKind::Auth => worker::FailureKind::Refused,
        FailureKind::Rate => worker::FailureKind::RateLimited,
        FailureKind::Cancelled => worker::FailureKind::Timeout,
        FailureKind::Network => worker::FailureKind::Connection,
        FailureKind::Empty
        | FailureKind::Truncated
        | FailureKind::ContentFilter
        | FailureKind::Server
        | FailureKind::Request
        | FailureKind::Budget
        | FailureKind::Replay => worker::FailureKind::Provider,
    };
    let refused = worker::ModelFailure::new(kind, failure.message.clone());
    match failure.status {
        Some(status) => refused.status(status),
        None => refused,
    }
}
