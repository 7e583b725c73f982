//! Reads requests of all wire formats, and reports errors in the provider's own words.

use serde_json::Value;

use crate::pairs;
use crate::prompt::Prompt;
use crate::route::Form;

pub(crate) struct Ask {
    pub(crate) model: String,
    pub(crate) stream: bool,
    /// Whether an OpenAI stream ends with a token count.
    pub(crate) include_usage: bool,
    pub(crate) most_tokens: Option<u64>,
    /// The first message of the user.
    pub(crate) first_text: String,
    /// The last text of the user.
    pub(crate) user_text: String,
    /// Number of assistant messages.
    pub(crate) turns: usize,
    pub(crate) tools: Vec<OfferedTool>,
    pub(crate) choice: Choice,
    pub(crate) stop_texts: Vec<String>,
    /// Whether the model should think first.
    pub(crate) thinks: bool,
    /// The schema that the answer must satisfy.
    pub(crate) schema: Option<Value>,
    pub(crate) prompt: Prompt,
}

pub(crate) struct OfferedTool {
    pub(crate) name: String,
    pub(crate) schema: Value,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    Auto,
    Never,
    Any,
    Named(String),
}

/// Why a request is refused, in the provider's words.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Invalid {
    pub(crate) message: String,
    pub(crate) param: Option<&'static str>,
    pub(crate) code: Option<&'static str>,
}

impl Invalid {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), param: None, code: None }
    }

    fn param(mut self, param: &'static str, code: Option<&'static str>) -> Self {
        self.param = Some(param);
        self.code = code;
        self
    }
}

/// Reads the body of a request. In some formats the path names the model and whether to stream.
pub(crate) fn parse(
    form: Form,
    path_model: Option<&str>,
    path_stream: bool,
    body: &[u8],
) -> Result<Ask, Invalid> {
    let mut body: Value = match serde_json::from_slice(body) {
        Ok(body @ Value::Object(_)) => body,
        _ => return Err(not_json(form)),
    };
    let model = match path_model {
        Some(model) => model.to_owned(),
        None => match body.get("model").and_then(Value::as_str) {
            Some(model) if !model.is_empty() => model.to_owned(),
            _ => return Err(missing(form, "model")),
        },
    };
    check_messages(form, &body)?;
    pairs::check(form, messages(&body))?;
    let prompt = Prompt::of(form, &model, &body);
    let mut said = messages(&body).iter().rev().filter(|message| is_users(message)).map(text_of);
    let mut ask = Ask {
        model,
        stream: path_stream || body.get("stream").and_then(Value::as_bool).unwrap_or(false),
        include_usage: body
            .pointer("/stream_options/include_usage")
            .and_then(Value::as_bool)
            .unwrap_or(false),
        most_tokens: None,
        first_text: messages(&body).iter().find(|message| is_users(message)).map(text_of).unwrap_or_default(),
        user_text: said.find(|text| !text.is_empty()).unwrap_or_default(),
        turns: messages(&body).iter().filter(|message| role(message) == "assistant").count(),
        tools: Vec::new(),
        choice: Choice::Auto,
        stop_texts: Vec::new(),
        thinks: false,
        schema: None,
        prompt,
    };
    match form {
        Form::OpenAi | Form::Azure => openai(&mut body, &mut ask)?,
        Form::Anthropic | Form::Invoke => anthropic(form, &mut body, &mut ask)?,
        Form::Converse => converse(&mut body, &mut ask),
    }
    if let Choice::Named(name) = &ask.choice
        && !ask.tools.iter().any(|tool| tool.name == *name)
    {
        return Err(
            Invalid::new(format!("Tool '{name}' not found in provided tools")).param("tool_choice", None)
        );
    }
    Ok(ask)
}

fn openai(body: &mut Value, ask: &mut Ask) -> Result<(), Invalid> {
    if body.get("n").and_then(Value::as_u64).is_some_and(|n| n != 1) {
        let message = "Unsupported value: 'n' must be 1 with this model.";
        return Err(Invalid::new(message).param("n", Some("unsupported_value")));
    }
    let limit = |key: &str| body.get(key).and_then(Value::as_u64);
    ask.most_tokens = limit("max_completion_tokens").or_else(|| limit("max_tokens"));
    ask.stop_texts = texts(body.get("stop"));
    ask.thinks = body.get("reasoning_effort").and_then(Value::as_str).is_some_and(|effort| effort != "none");
    ask.choice = match body.get("tool_choice") {
        Some(Value::String(word)) if word == "none" => Choice::Never,
        Some(Value::String(word)) if word == "required" => Choice::Any,
        Some(choice) => named(choice.pointer("/function/name")),
        None => Choice::Auto,
    };
    ask.schema = match body.pointer("/response_format/type").and_then(Value::as_str) {
        Some("json_object") => Some(Value::Object(serde_json::Map::new())),
        Some("json_schema") => body.pointer("/response_format/json_schema/schema").cloned(),
        _ => None,
    };
    ask.tools = offered(body, "/tools", "/function", "/parameters");
    Ok(())
}

fn anthropic(form: Form, body: &mut Value, ask: &mut Ask) -> Result<(), Invalid> {
    if form == Form::Invoke && body.get("anthropic_version").is_none() {
        return Err(missing(form, "anthropic_version"));
    }
    let Some(most) = body.get("max_tokens").and_then(Value::as_u64) else {
        return Err(Invalid::new("max_tokens: Field required"));
    };
    ask.most_tokens = Some(most);
    ask.stop_texts = texts(body.get("stop_sequences"));
    if let Some(thinking) = body.get("thinking") {
        ask.thinks = thinking.get("type").and_then(Value::as_str).is_some_and(|kind| kind != "disabled");
        if thinking.get("budget_tokens").and_then(Value::as_u64).is_some_and(|budget| budget >= most) {
            return Err(Invalid::new("`max_tokens` must be greater than `thinking.budget_tokens`."));
        }
    }
    ask.choice = match body.pointer("/tool_choice/type").and_then(Value::as_str) {
        Some("none") => Choice::Never,
        Some("any") => Choice::Any,
        Some("tool") => named(body.pointer("/tool_choice/name")),
        _ => Choice::Auto,
    };
    ask.schema = body.pointer("/output_config/format/schema").cloned();
    ask.tools = offered(body, "/tools", "", "/input_schema");
    Ok(())
}

fn converse(body: &mut Value, ask: &mut Ask) {
    ask.most_tokens = body.pointer("/inferenceConfig/maxTokens").and_then(Value::as_u64);
    ask.stop_texts = texts(body.pointer("/inferenceConfig/stopSequences"));
    let thinking = body.pointer("/additionalModelRequestFields/thinking/type").and_then(Value::as_str);
    ask.thinks = thinking.is_some_and(|kind| kind != "disabled");
    ask.choice = match body.pointer("/toolConfig/toolChoice") {
        Some(choice) if choice.get("any").is_some() => Choice::Any,
        Some(choice) => named(choice.pointer("/tool/name")),
        None => Choice::Auto,
    };
    ask.tools = offered(body, "/toolConfig/tools", "/toolSpec", "/inputSchema/json");
}

/// The tools of a request. The pointers select the list, the tool in an entry and the schema in a tool.
fn offered(body: &mut Value, list: &str, tool: &str, schema: &str) -> Vec<OfferedTool> {
    let Some(Value::Array(list)) = body.pointer_mut(list) else { return Vec::new() };
    let read = |entry: &mut Value| {
        let tool = entry.pointer_mut(tool)?;
        let name = tool.get("name").and_then(Value::as_str)?.to_owned();
        let schema = tool.pointer_mut(schema).map(Value::take).unwrap_or_default();
        Some(OfferedTool { name, schema })
    };
    list.iter_mut().filter_map(read).collect()
}

fn named(name: Option<&Value>) -> Choice {
    name.and_then(Value::as_str).map_or(Choice::Auto, |name| Choice::Named(name.to_owned()))
}

/// One text or a list of texts.
fn texts(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::String(text)) => vec![text.clone()],
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

pub(crate) fn messages(body: &Value) -> &[Value] {
    body.get("messages").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

pub(crate) fn role(message: &Value) -> &str {
    message.get("role").and_then(Value::as_str).unwrap_or_default()
}

fn is_users(message: &Value) -> bool {
    role(message) == "user"
}

fn text_of(message: &Value) -> String {
    match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(blocks)) => {
            let texts: Vec<&str> =
                blocks.iter().filter_map(|block| block.get("text").and_then(Value::as_str)).collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

fn check_messages(form: Form, body: &Value) -> Result<(), Invalid> {
    let Some(messages) = body.get("messages").and_then(Value::as_array) else {
        return Err(missing(form, "messages"));
    };
    if messages.is_empty() {
        return Err(match form {
            Form::OpenAi | Form::Azure => Invalid::new(
                "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.",
            )
            .param("messages", Some("empty_array")),
            Form::Anthropic | Form::Invoke => Invalid::new("messages: at least one message is required"),
            Form::Converse => Invalid::new("The messages field is empty. Add a message and try again."),
        });
    }
    let known: &[&str] = match form {
        Form::OpenAi | Form::Azure => &["system", "developer", "user", "assistant", "tool", "function"],
        _ => &["user", "assistant"],
    };
    for (index, message) in messages.iter().enumerate() {
        let role = role(message);
        if !known.contains(&role) {
            return Err(match form {
                Form::OpenAi | Form::Azure => Invalid::new(format!(
                    "Invalid value: '{role}'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'."
                ))
                .param("messages", Some("invalid_value")),
                _ => Invalid::new(format!("messages.{index}.role: Input should be 'user' or 'assistant'")),
            });
        }
    }
    Ok(())
}

fn not_json(form: Form) -> Invalid {
    Invalid::new(match form {
        Form::OpenAi | Form::Azure => {
            "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON.)"
        }
        Form::Anthropic => "The request body is not valid JSON",
        Form::Invoke | Form::Converse => "Malformed input request, please reformat your input and try again.",
    })
}

fn missing(form: Form, param: &'static str) -> Invalid {
    match form {
        Form::OpenAi | Form::Azure if param == "model" => Invalid::new("you must provide a model parameter"),
        Form::OpenAi | Form::Azure => Invalid::new(format!("Missing required parameter: '{param}'."))
            .param(param, Some("missing_required_parameter")),
        _ => Invalid::new(format!("{param}: Field required")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ask(form: Form, body: &Value) -> Result<Ask, Invalid> {
        let model = matches!(form, Form::Invoke | Form::Converse).then_some("m");
        parse(form, model, false, body.to_string().as_bytes())
    }

    #[test]
    fn the_same_request_in_three_formats() {
        let schema = json!({"type": "object"});
        let openai = json!({"model": "m", "max_tokens": 9, "stop": "x", "reasoning_effort": "low",
            "tools": [{"type": "function", "function": {"name": "f", "parameters": schema}}],
            "tool_choice": {"type": "function", "function": {"name": "f"}},
            "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes"},
                {"role": "user", "content": [{"type": "text", "text": "more"}]}]});
        let anthropic = json!({"model": "m", "max_tokens": 9, "stop_sequences": ["x"], "thinking": {"type": "adaptive"},
            "tools": [{"name": "f", "input_schema": schema}], "tool_choice": {"type": "tool", "name": "f"},
            "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes"},
                {"role": "user", "content": [{"type": "text", "text": "more"}]}]});
        let converse = json!({"inferenceConfig": {"maxTokens": 9, "stopSequences": ["x"]},
            "additionalModelRequestFields": {"thinking": {"type": "enabled"}},
            "toolConfig": {"tools": [{"toolSpec": {"name": "f", "inputSchema": {"json": schema}}}],
                "toolChoice": {"tool": {"name": "f"}}},
            "messages": [{"role": "user", "content": [{"text": "hi"}]}, {"role": "assistant", "content": [{"text": "yes"}]},
                {"role": "user", "content": [{"text": "more"}]}]});
        for (form, body) in [(Form::OpenAi, openai), (Form::Anthropic, anthropic), (Form::Converse, converse)]
        {
            let ask = ask(form, &body).unwrap();
            assert_eq!((ask.model.as_str(), ask.most_tokens, ask.turns), ("m", Some(9), 1), "{form:?}");
            assert_eq!((ask.user_text.as_str(), ask.stop_texts), ("more", vec!["x".to_owned()]));
            assert_eq!((ask.tools[0].name.as_str(), &ask.tools[0].schema), ("f", &schema));
            assert_eq!(ask.choice, Choice::Named("f".to_owned()));
            assert!(ask.thinks && !ask.stream);
        }
    }

    #[test]
    fn incomplete_requests_are_refused_in_the_providers_words() {
        let message = |form, body| ask(form, &body).err().map(|invalid| invalid.message).unwrap_or_default();
        assert_eq!(message(Form::OpenAi, json!({"messages": []})), "you must provide a model parameter");
        assert_eq!(message(Form::OpenAi, json!({"model": "m"})), "Missing required parameter: 'messages'.");
        let user = json!([{"role": "user", "content": "x"}]);
        assert_eq!(
            message(Form::Anthropic, json!({"model": "m", "messages": user})),
            "max_tokens: Field required"
        );
        assert!(
            message(Form::Anthropic, json!({"model": "m", "max_tokens": 5, "messages": []}))
                .contains("at least one")
        );
        let odd = json!([{"role": "judge", "content": "x"}]);
        assert!(message(Form::OpenAi, json!({"model": "m", "messages": odd})).contains("'judge'"));
        assert!(message(Form::Converse, json!({"messages": odd})).contains("messages.0.role"));
        let thinking = json!({"type": "enabled", "budget_tokens": 5});
        let short = json!({"model": "m", "max_tokens": 5, "messages": user, "thinking": thinking});
        assert!(message(Form::Anthropic, short).contains("budget_tokens"));
        assert!(parse(Form::OpenAi, None, false, b"{").is_err());
        assert!(parse(Form::Converse, Some("m"), false, b"[]").is_err());
    }

    proptest::proptest! {
        #[test]
        fn no_body_is_too_strange(bytes: Vec<u8>) {
            for form in [Form::OpenAi, Form::Anthropic, Form::Converse] {
                proptest::prop_assert!(parse(form, None, false, &bytes).is_err());
            }
        }
    }
}
