//! Sub-calls: the requests behind `extract`, `verify` and so on, and the results that cells get.

use aec_model::message::{Message, Reply, Request, Role, Sampling, Tool, ToolChoice};
use serde_json::{Map, Value, json};

use super::session::Subcall;

/// A built-in sub-call.
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) parameters: &'static [&'static str],
    /// Required parameters.
    needs: &'static [&'static str],
    /// The description for the model that drives the session.
    pub(super) about: &'static str,
    /// The role of the model that answers.
    role: &'static str,
}

/// The built-in sub-calls. `ask_model` is for functions of tasks.
const KINDS: [Kind; 7] = [
    Kind {
        name: "extract",
        parameters: &["text", "fields", "context", "section"],
        needs: &["text"],
        about: "values stated in a text, as `.values` (a dict); `fields` names them, or `section` says for which section of the report",
        role: "You read engineering documents and give back what they state. Reply with one JSON object of the asked \
               names and their values, null where the text states none. Never infer, convert or complete a value.",
    },
    Kind {
        name: "calculate",
        parameters: &["expression", "parameters"],
        needs: &["expression"],
        about: "a calculation described in words, as `.values` (a dict); plain arithmetic is better done in Python",
        role: "You carry out engineering calculations step by step and with units. Reply with one JSON object of the \
               results, numbers as numbers.",
    },
    Kind {
        name: "verify",
        parameters: &["value", "criterion", "standard"],
        needs: &["value", "criterion"],
        about: "whether a value meets a criterion: `.passed`, `.confidence`, `.explanation`",
        role: "You check one value against one criterion. Reply with one JSON object: passed (true or false), \
               confidence (0 to 1), explanation (one sentence).",
    },
    Kind {
        name: "summarise",
        parameters: &["content", "focus", "max_length"],
        needs: &["content"],
        about: "a summary of at most `max_length` characters (500), as `.summary`",
        role: "You shorten technical text without losing numbers, units, clause numbers and names. Reply with the \
               summary alone.",
    },
    Kind {
        name: "reason",
        parameters: &["question", "context", "options"],
        needs: &["question"],
        about: "a question of judgement: `.conclusion`, `.confidence`, `.rationale`",
        role: "You answer one question of engineering judgement from what you are given. Reply with one JSON object: \
               conclusion, confidence (0 to 1), rationale (at most three sentences).",
    },
    Kind {
        name: "review",
        parameters: &["section_content", "writing_guidance", "extracted_data"],
        needs: &["section_content", "writing_guidance"],
        about: "a check of written text against its guidance: `.status` (`pass` or `needs_work`), `.gaps`, `.risks`",
        role: "You check a section of a report against each rule of its guidance and against the data. Reply with one \
               JSON object: status (pass or needs_work), gaps (list of rules that are not met), risks (list of \
               statements that the data do not support).",
    },
    Kind {
        name: "ask_model",
        parameters: &["prompt", "system"],
        needs: &["prompt"],
        about: "any question, as `.text`",
        role: "",
    },
];

pub(super) fn kind(name: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name)
}

/// A sub-call as the session sees it.
pub(super) fn offer(name: &str, description: &str) -> Option<Subcall> {
    let kind = kind(name)?;
    let about = if description.is_empty() { kind.about } else { description };
    Some(Subcall {
        name: kind.name.to_owned(),
        parameters: kind.parameters.iter().map(|parameter| (*parameter).to_owned()).collect(),
        description: about.to_owned(),
    })
}

/// The request of a sub-call. `section` is what the report says about its section.
pub(super) fn request(
    kind: &Kind,
    arguments: &Map<String, Value>,
    section: Option<&str>,
    sampling: Sampling,
) -> Result<Request, String> {
    for need in kind.needs {
        if arguments.get(*need).is_none_or(|value| value.as_str().is_some_and(|text| text.trim().is_empty()))
        {
            return Err(format!("{} needs `{need}`", kind.name));
        }
    }
    if kind.name == "extract" && arguments.get("fields").is_none() && section.is_none() {
        return Err("extract needs `fields`, or a `section` of the report".to_owned());
    }
    let mut said = String::new();
    for (name, value) in arguments.iter().filter(|(name, _)| *name != "section" && *name != "system") {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        said.push_str(&format!("<{name}>\n{text}\n</{name}>\n"));
    }
    if let Some(section) = section {
        said.push_str(&format!("<section>\n{section}\n</section>\n"));
    }
    if kind.name == "summarise" {
        let most = arguments.get("max_length").and_then(Value::as_u64).unwrap_or(500);
        said.push_str(&format!("Use at most {most} characters.\n"));
    }
    if let Some(prompt) = arguments.get("prompt").and_then(Value::as_str).filter(|_| kind.name == "ask_model")
    {
        prompt.clone_into(&mut said);
    }
    let role = arguments.get("system").and_then(Value::as_str).unwrap_or(kind.role);
    let mut messages = Vec::new();
    if !role.is_empty() {
        messages.push(Message::text(Role::System, role));
    }
    messages.push(Message::text(Role::User, said));
    let mut request = Request { messages, sampling, ..Request::default() };
    if let Some(tool) = fields_tool(arguments).filter(|_| kind.name == "extract") {
        request.tool_choice = ToolChoice::Tool(tool.name.clone());
        request.tools = vec![tool].into();
    }
    Ok(request)
}

/// A tool whose arguments are the requested fields, if their names allow that: providers enforce such a form.
fn fields_tool(arguments: &Map<String, Value>) -> Option<Tool> {
    let names: Vec<&str> = match arguments.get("fields")? {
        Value::Array(names) => names.iter().map(Value::as_str).collect::<Option<_>>()?,
        Value::Object(names) => names.keys().map(String::as_str).collect(),
        _ => return None,
    };
    let fits = |name: &&str| {
        (1..=64).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
    };
    if names.is_empty() || !names.iter().all(fits) {
        return None;
    }
    let properties: Map<String, Value> = names.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
    Some(Tool {
        name: "extraction_result".to_owned(),
        description: "What the text states, null for what it does not.".to_owned(),
        parameters: json!({"type": "object", "properties": properties, "required": names}),
    })
}

/// The result for the cell.
pub(super) fn result(kind: &Kind, reply: &Reply) -> Value {
    let text = reply.text();
    let mut fields = Map::new();
    match kind.name {
        "summarise" => drop(fields.insert("summary".to_owned(), text.trim().into())),
        "ask_model" => drop(fields.insert("text".to_owned(), text.into())),
        _ => {
            let object = match reply.tool_calls().next().and_then(aec_model::message::ToolCall::object) {
                Some(object) => Ok(object),
                None => object_in(&text),
            };
            let error = object.as_ref().err().cloned();
            let object = object.unwrap_or_default();
            match kind.name {
                "extract" | "calculate" => drop(fields.insert("values".to_owned(), Value::Object(object))),
                "verify" => take(&mut fields, &object, &["passed", "confidence", "explanation"]),
                "reason" => take(&mut fields, &object, &["conclusion", "confidence", "rationale"]),
                _ => take(&mut fields, &object, &["status", "gaps", "risks"]),
            }
            fields.insert("error".to_owned(), error.into());
        }
    }
    if let Some(usage) = &reply.usage {
        fields.insert("input_tokens".to_owned(), usage.all_input().into());
        fields.insert("output_tokens".to_owned(), usage.all_output().into());
    }
    Value::Object(fields)
}

fn take(fields: &mut Map<String, Value>, object: &Map<String, Value>, names: &[&str]) {
    for name in names {
        fields.insert((*name).to_owned(), object.get(*name).cloned().unwrap_or_default());
    }
}

/// The object in an answer. Keys without a value become null.
fn object_in(text: &str) -> Result<Map<String, Value>, String> {
    let reply = aec_rlm::reply::Reply::read(text).map_err(|error| error.to_string())?;
    let absent = reply.absent.into_iter().map(|key| (key, Value::Null));
    Ok(reply.values.into_iter().chain(absent).collect())
}
