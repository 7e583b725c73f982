//! `scripted`: plays a file of actions, with the same tools that models have. For demonstrations, tests, and for trying
//! a verifier on a given course of work.

use std::path::Path;

use aec_base::document::{Document, Shared, Syntax};
use aec_base::problem::Problem;
use aec_judge::settle::order::{Submitted, last_word};
use aec_model::message::{Part, Reply, Stop, ToolCall};
use aec_task::id::TaskId;
use aec_task::selection::Pattern;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::tool_loop::allowed;
use super::tools::{SUBMIT, Toolset};
use super::turns::Toolbox;
use super::{End, Limit, Rollout, TrialContext};
use crate::experiment::FAMILY;

/// A file of actions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Script {
    /// Actions for tasks that match no other entry.
    pub actions: Vec<Action>,
    /// Actions for some tasks; the first whose `when` matches is played.
    pub tasks: Vec<TaskActions>,
}

/// Actions for some tasks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TaskActions {
    /// A task id, or a pattern over task ids such as `electrical/*`.
    pub when: String,
    /// The actions.
    pub actions: Vec<Action>,
}

/// One action: exactly one of `tool`, `write`, `say` and `submit`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Action {
    /// Calls a tool.
    pub tool: Option<String>,
    /// Its arguments; a text is used unchanged, so that arguments can be invalid.
    pub arguments: Option<Value>,
    /// Writes a file of the workspace.
    pub write: Option<WriteAction>,
    /// A message; the last one is the final text.
    pub say: Option<String>,
    /// Submits an answer, and ends.
    pub submit: Option<String>,
}

/// A file to write.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteAction {
    /// Path in the workspace.
    pub path: String,
    /// Its content.
    pub content: String,
}

/// Reads a file of actions: YAML, TOML or JSON by its extension. Every problem is reported.
pub fn check(bytes: &[u8], path: &Path) -> Result<Script, Vec<Problem>> {
    let syntax = match path.extension().and_then(|ending| ending.to_str()) {
        Some("toml") => Syntax::Toml,
        Some("yaml" | "yml") => Syntax::Yaml,
        _ => Syntax::Json,
    };
    let Ok(text) = std::str::from_utf8(bytes) else {
        let problem = Problem::error("the file of actions is not UTF-8 text").id(FAMILY.number(40));
        return Err(vec![problem.fix("write it as YAML, TOML or JSON").in_file(path)]);
    };
    let document = Document::parse(path, text.to_owned(), syntax, FAMILY)?;
    let decoded = document.decode::<Script>();
    let mut problems = decoded.problems;
    let script = decoded.value.unwrap_or_default();
    if problems.is_empty() {
        problems = complaints(&script, &document);
    }
    if problems.is_empty() { Ok(script) } else { Err(problems) }
}

fn complaints(script: &Script, document: &Document) -> Vec<Problem> {
    let mut problems = Vec::new();
    if script.actions.is_empty() && script.tasks.is_empty() {
        let problem = document.problem(Shared::MissingKey, "actions", "there are no actions");
        problems.push(problem.id(FAMILY.number(41)).fix("add a list `actions` with at least one action"));
    }
    for (index, action) in script.actions.iter().enumerate() {
        problems.extend(complaint(action).map(|p| p.at(document.place_in_list("actions", index))));
    }
    for (index, entry) in script.tasks.iter().enumerate() {
        let place = || document.place_in_list("tasks", index);
        if let Err(problem) = Pattern::parse(&entry.when) {
            problems.push(problem.id(FAMILY.number(44)).at(place()));
        }
        problems.extend(entry.actions.iter().filter_map(complaint).map(|problem| problem.at(place())));
    }
    problems
}

fn complaint(action: &Action) -> Option<Problem> {
    let given =
        [action.tool.is_some(), action.write.is_some(), action.say.is_some(), action.submit.is_some()];
    match given.into_iter().filter(|given| *given).count() {
        1 if action.arguments.is_some() && action.tool.is_none() => {
            let problem = Problem::error("`arguments` belong to a `tool`").id(FAMILY.number(43));
            Some(problem.fix("remove them, or name the tool"))
        }
        1 => None,
        _ => Some(
            Problem::error("an action is exactly one of `tool`, `write`, `say` and `submit`")
                .id(FAMILY.number(42))
                .fix("write one action for each"),
        ),
    }
}

impl Script {
    /// The actions for a task.
    pub fn actions_for(&self, task: &TaskId) -> &[Action] {
        let claims = |entry: &&TaskActions| Pattern::parse(&entry.when).is_ok_and(|when| when.matches(task));
        self.tasks.iter().find(claims).map_or(&self.actions, |entry| &entry.actions)
    }
}

pub async fn run(context: &mut TrialContext) -> Rollout {
    let instruction = context.task.instruction.clone();
    context.begin(None, &instruction);
    let path = context.agent.parameters.script.clone().unwrap_or_default();
    let file = context.agent.files.iter().find(|file| file.path == path);
    let script = match file.map(|file| check(&file.content, Path::new(&path))) {
        Some(Ok(script)) => script,
        Some(Err(problems)) => {
            let what = problems.first().map(ToString::to_string).unwrap_or_default();
            return Rollout::new(End::Agent(format!("{path} cannot be played: {what}")));
        }
        None => return Rollout::new(End::Agent(format!("the file of actions `{path}` is not there"))),
    };
    let mut played = Played::default();
    let actions = script.actions_for(&context.task.task.id).to_vec();
    let end = play(context, &actions, &mut played).await;
    let mut rollout = Rollout::new(end)
        .with("actions", played.actions)
        .with("tool_calls", played.tool_calls)
        .with("submitted", played.submitted.is_some());
    rollout.submitted = played.submitted;
    rollout.final_text = played.final_text;
    rollout
}

#[derive(Debug, Default)]
struct Played {
    actions: u32,
    tool_calls: u32,
    submitted: Option<Submitted>,
    final_text: Option<String>,
}

async fn play(context: &mut TrialContext, actions: &[Action], played: &mut Played) -> End {
    let set = Toolset::new(&context.task.tools);
    let mut toolbox = Toolbox::new(&set, allowed(&context.agent.parameters));
    for action in actions {
        if context.time_left().is_zero() {
            return End::Limit(Limit::Time);
        }
        played.actions += 1;
        context.trajectory.next_step();
        context.trajectory.assistant(&said(action.say.as_deref()));
        let call = call_of(action, played.actions);
        let said = action.say.as_deref().and_then(|text| last_word(text, call.is_some()));
        played.final_text = said.map(str::to_owned);
        let Some(call) = call else { continue };
        played.tool_calls += 1;
        match toolbox.call(context, &call, None).await {
            Ok(ran) if ran.submitted.is_some() => {
                played.submitted = ran.submitted;
                return End::Done;
            }
            Ok(_) => {}
            Err(end) => return end,
        }
    }
    End::Done
}

/// The text of an action as a model's reply.
fn said(text: Option<&str>) -> Reply {
    Reply {
        parts: text.map(Part::text).into_iter().collect(),
        stop: Stop::End,
        usage: None,
        model: None,
        id: None,
        extra: Map::new(),
    }
}

fn call_of(action: &Action, number: u32) -> Option<ToolCall> {
    let (name, arguments) = if let Some(tool) = &action.tool {
        let arguments = match &action.arguments {
            None => "{}".to_owned(),
            Some(Value::String(raw)) => raw.clone(),
            Some(value) => value.to_string(),
        };
        (tool.clone(), arguments)
    } else if let Some(write) = &action.write {
        ("write_file".to_owned(), json!({ "path": write.path, "content": write.content }).to_string())
    } else {
        (SUBMIT.to_owned(), json!({ "content": action.submit.as_ref()? }).to_string())
    };
    Some(ToolCall { id: format!("action_{number}"), name, arguments })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, text: &str) -> Result<Script, Vec<Problem>> {
        check(text.as_bytes(), Path::new(name))
    }

    #[test]
    fn the_same_script_in_every_notation() {
        let json = r#"{"actions": [{"tool": "bash", "arguments": {"command": "ls"}}, {"say": "done"}]}"#;
        let yaml = "actions:\n- tool: bash\n  arguments: {command: ls}\n- say: done\n";
        let toml =
            "[[actions]]\ntool = \"bash\"\narguments = {command = \"ls\"}\n[[actions]]\nsay = \"done\"\n";
        let script = read("a.json", json).unwrap();
        assert_eq!(read("a.yaml", yaml).unwrap(), script);
        assert_eq!(read("a.toml", toml).unwrap(), script);
    }

    #[test]
    fn the_first_pattern_that_matches_is_played() {
        let text = "actions: [{say: else}]\ntasks:\n- {when: civil/*, actions: [{say: civil}]}\n\
                    - {when: '*', actions: []}\n";
        let script = read("a.yaml", text).unwrap();
        let says = |id: &str| script.actions_for(&TaskId::parse(id).unwrap()).len();
        assert_eq!((says("civil/a/b"), says("ground/a")), (1, 0));
    }

    #[test]
    fn mistakes_are_named() {
        let ids = |text: &str| -> Vec<String> {
            read("a.yaml", text).unwrap_err().into_iter().filter_map(|problem| problem.id).collect()
        };
        assert_eq!(ids("{}"), ["E041"]);
        assert_eq!(
            ids("actions: [{}, {say: a, submit: b}, {say: a, arguments: {}}]"),
            ["E042", "E042", "E043"]
        );
        assert_eq!(ids("tasks: [{when: 'a[', actions: []}]"), ["E044"]);
        assert_eq!(ids("actions: [{sya: a}]"), ["E003"]);
        assert_eq!(ids("actions: [{write: {path: a}}]").len(), 1);
        assert_eq!(ids("actions: [{say: 1}]"), ["E004"]);
        assert_eq!(check(&[0xff, 0xfe], Path::new("a.yaml")).unwrap_err()[0].id.as_deref(), Some("E040"));
        assert!(read("a.json", "{").is_err());
    }
}
