//! A second model that gives advice: a few times, briefly, knowing the most recent events.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use aec_model::client::Model;
use aec_model::message::{Message, Request, Role, Sampling};
use aec_task::long_documents::settings::Advisor as Settings;
use serde_json::{Map, Value, json};

use super::guard::{Guard, Plane, refusal, told};
use super::tools::cut_text;
use super::{End, TrialContext};

/// Bytes of one entry of the history that the advisor gets.
const ENTRY: usize = 2000;

const ROLE: &str = "You advise another model that works on an engineering task. Say in a few sentences what it should do next \
                    and why. Do not do the work and do not write its output.";

/// An advisor and how much it was used.
pub(super) struct Advisor {
    settings: Settings,
    model: Model,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    uses: u32,
    /// The most recent messages and actions, oldest first.
    latest: VecDeque<String>,
}

impl Advisor {
    /// The advisor in the settings, if there is one and it is not switched off.
    pub(super) fn open(settings: Option<&Settings>, main: &Model) -> Result<Option<Self>, End> {
        let Some(settings) = settings.filter(|settings| settings.enabled) else { return Ok(None) };
        let model = main.other(&settings.model).map_err(|error| End::Task(error.what))?;
        Ok(Some(Self { settings: settings.clone(), model, state: Mutex::default() }))
    }

    /// Adds to the history, up to its window.
    pub(super) fn remember(&self, entry: &str) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.latest.push_back(cut_text(entry, ENTRY));
        while state.latest.len() > self.settings.context_window as usize {
            state.latest.pop_front();
        }
    }

    /// Advice on a question with `goal`, `problem` and `attempt`.
    pub(super) async fn ask(
        &self,
        context: &TrialContext,
        guard: &Guard,
        question: &Map<String, Value>,
    ) -> Result<Value, String> {
        let (mut said, left) = self.begin()?;
        guard.enter(Plane::Advisor).map_err(refusal)?;
        for (key, value) in question.iter().filter(|(_, value)| !value.is_null()) {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            said.push_str(&format!("<{key}>\n{text}\n</{key}>\n"));
        }
        let request = Request {
            messages: vec![Message::text(Role::System, ROLE), Message::text(Role::User, said)],
            sampling: Sampling { max_tokens: Some(self.settings.max_response_tokens), ..Sampling::default() },
            ..Request::default()
        };
        let reply = guard.ask(context, Plane::Advisor, &self.model, &request).await;
        let result = reply.map_err(|failure| told(&failure)).map(|reply| {
            let usage = reply.usage.unwrap_or_default();
            json!({
                "response": reply.text(),
                "input_tokens": usage.all_input(),
                "output_tokens": usage.all_output(),
                "uses_left": left,
            })
        });
        Guard::note(context, Plane::Advisor, "advisor", &Value::Object(question.clone()), &result);
        result
    }

    /// Counts one use; returns the history for the advisor, and the number of uses left.
    fn begin(&self) -> Result<(String, u32), String> {
        let most = self.settings.max_uses;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.uses >= most {
            return Err(format!("all {most} uses of the advisor are used up; go on without it"));
        }
        state.uses += 1;
        let mut said = String::new();
        for entry in &state.latest {
            said.push_str(&format!("<recent>\n{entry}\n</recent>\n"));
        }
        Ok((said, most - state.uses))
    }
}
