//! Requests of cells to the harness: sub-calls, notes, the report, advice. Their state outlives the session.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use aec_model::client::Model;
use aec_model::failure::Failure;
use aec_model::message::{Reply, Request, Sampling};
use aec_rlm::report::ReportState;
use aec_task::long_documents::settings::RlmSettings;
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;

use super::ask;
use super::session::{Call, Host};
use crate::harness::TrialContext;
use crate::harness::advisor::Advisor;
use crate::harness::guard::{Guard, Plane, refusal, told};

pub(super) struct CellRequests<'a> {
    pub(super) context: &'a TrialContext,
    pub(super) guard: &'a Guard,
    pub(super) settings: &'a RlmSettings,
    pub(super) models: &'a Models,
    pub(super) state: &'a State,
}

pub(super) struct Models {
    pub(super) subcalls: Model,
    pub(super) compaction: Model,
    pub(super) advisor: Option<Advisor>,
}

/// State that must survive the loss of a session.
pub(super) struct State {
    pub(super) notes: Mutex<BTreeMap<String, Value>>,
    pub(super) report: Option<Mutex<ReportState>>,
    pub(super) submitted: Mutex<bool>,
    /// The nesting depth of calls of the task's functions.
    depths: Mutex<HashMap<u64, u32>>,
    permits: Semaphore,
}

impl State {
    pub(super) fn new(report: Option<ReportState>, workers: u32) -> Self {
        Self {
            notes: Mutex::default(),
            report: report.map(Mutex::new),
            submitted: Mutex::default(),
            depths: Mutex::default(),
            permits: Semaphore::new(workers.max(1) as usize),
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Host for CellRequests<'_> {
    async fn answer(&self, call: &Call) -> Result<Value, String> {
        let empty = Map::new();
        let arguments = call.arguments.as_object().unwrap_or(&empty);
        let text = |key: &str| arguments.get(key).and_then(Value::as_str).unwrap_or_default();
        match call.name.as_str() {
            "note" => {
                let value = arguments.get("value").cloned().unwrap_or_default();
                lock(&self.state.notes).insert(text("key").to_owned(), value);
                Ok(Value::Null)
            }
            "recall" => self.recall(arguments.get("key").and_then(Value::as_str)),
            "enter" => self.go_deeper(call),
            "advisor" => match &self.models.advisor {
                Some(advisor) => advisor.ask(self.context, self.guard, arguments).await,
                None => Err("there is no advisor here".to_owned()),
            },
            "report_fill" => self.fill(text("id"), arguments.get("content")),
            "report_status" => self.with_report(|report| Ok(json!(report.status()))),
            "report_section" => self.section(text("id")),
            "report_submit" => {
                let submission = self.with_report(|report| Ok(json!(report.submit())))?;
                *lock(&self.state.submitted) = true;
                Ok(submission)
            }
            _ => self.subcall(call, arguments).await,
        }
    }
}

impl CellRequests<'_> {
    fn recall(&self, key: Option<&str>) -> Result<Value, String> {
        let notes = lock(&self.state.notes);
        match key {
            None => Ok(json!(*notes)),
            Some(key) => notes.get(key).cloned().ok_or_else(|| {
                let known: Vec<&str> = notes.keys().map(String::as_str).collect();
                format!("there is no note `{key}`; there are {}", known.join(", "))
            }),
        }
    }

    /// Begins a function of the task: its requests are one level deeper.
    fn go_deeper(&self, call: &Call) -> Result<Value, String> {
        let depth = self.depth(call)?;
        lock(&self.state.depths).insert(call.id, depth);
        Ok(call.id.into())
    }

    /// The depth of a call, if it is allowed.
    fn depth(&self, call: &Call) -> Result<u32, String> {
        let above =
            call.parent.and_then(|parent| lock(&self.state.depths).get(&parent).copied()).unwrap_or(0);
        let most = self.guard.rules().max_subcall_depth;
        if above >= most {
            return Err(format!("sub-calls may be nested {most} deep, and this one would be deeper"));
        }
        Ok(above + 1)
    }

    async fn subcall(&self, call: &Call, arguments: &Map<String, Value>) -> Result<Value, String> {
        let is_offered =
            call.name == "ask_model" || self.settings.offered_subcalls().contains(&call.name.as_str());
        let kind = ask::kind(&call.name).filter(|_| is_offered);
        let kind = kind.ok_or_else(|| format!("there is no sub-call `{}` here", call.name))?;
        self.depth(call)?;
        let section = match arguments.get("section").and_then(Value::as_str) {
            Some(id) => Some(self.section(id)?.to_string()),
            None => None,
        };
        let sampling = Sampling {
            max_tokens: Some(self.guard.output_limit(self.context.agent.parameters.sampling.output_limit())),
            ..self.context.agent.parameters.sampling.clone()
        };
        let request = ask::request(kind, arguments, section.as_deref(), sampling)?;
        let _permit = self.state.permits.acquire().await.map_err(|error| error.to_string())?;
        self.guard.enter(Plane::Subcalls).map_err(refusal)?;
        let reply = self.ask(Plane::Subcalls, &self.models.subcalls, &request).await;
        let result = reply.as_ref().map(|reply| ask::result(kind, reply)).map_err(told);
        Guard::note(self.context, Plane::Subcalls, &call.name, &call.arguments, &result);
        result
    }

    /// Calls a model outside the conversation.
    pub(super) async fn ask(&self, plane: Plane, model: &Model, request: &Request) -> Result<Reply, Failure> {
        self.guard.ask(self.context, plane, model, request).await
    }

    fn with_report<T>(&self, work: impl FnOnce(&mut ReportState) -> Result<T, String>) -> Result<T, String> {
        match &self.state.report {
            Some(report) => work(&mut lock(report)),
            None => Err("this task has no report template".to_owned()),
        }
    }

    fn fill(&self, id: &str, content: Option<&Value>) -> Result<Value, String> {
        let content = match content {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Object(fields)) if fields.get("content").is_some_and(Value::is_string) => {
                fields["content"].as_str().unwrap_or_default().to_owned()
            }
            Some(other) => other.to_string(),
            None => String::new(),
        };
        self.with_report(|report| {
            let error = report.fill(id, content).err().map(|error| error.to_string());
            Ok(json!({"success": error.is_none(), "error": error, "unlocked": report.status().unlocked}))
        })
    }

    fn section(&self, id: &str) -> Result<Value, String> {
        self.with_report(|report| {
            let section =
                report.template().section(id).ok_or_else(|| format!("the report has no section `{id}`"))?;
            let written: Map<String, Value> = section
                .depends_on
                .iter()
                .filter_map(|id| Some((id.clone(), Value::from(report.content(id)?))))
                .collect();
            Ok(json!({
                "id": section.id,
                "report": report.template().meta,
                "title": section.title,
                "guidance": section.writing_guidance,
                "fields": section.fields,
                "sources": section.input_mapping,
                "depends_on": section.depends_on,
                "written": written,
                "content": report.content(id),
            }))
        })
    }
}
