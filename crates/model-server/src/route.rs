//! Finds the wire format of a request from its path alone. Any prefix may precede the known ends of paths.

use http::Method;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// OpenAI chat completions.
    OpenAi,
    /// The same, for a deployment of an Azure resource.
    Azure,
    /// Anthropic messages.
    Anthropic,
    /// Anthropic messages on Bedrock.
    Invoke,
    /// Bedrock's own format.
    Converse,
}

/// The destination of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Model {
        form: Form,
        /// The kind under which the server counts it.
        kind: Kind,
        /// The model, if the path names it.
        model: Option<String>,
        /// Whether the path asks for a stream.
        stream: bool,
    },
    Models,
    Stats,
    Unknown,
}

/// Kinds of paths that are counted separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Kind {
    Chat,
    AzureChat,
    Messages,
    Invoke,
    InvokeStream,
    Converse,
    ConverseStream,
    Models,
    Stats,
    Unknown,
}

impl Kind {
    /// Names in the order of the variants.
    pub(crate) const NAMES: [&str; 10] = [
        "chat_completions",
        "azure_chat_completions",
        "messages",
        "invoke",
        "invoke_with_response_stream",
        "converse",
        "converse_stream",
        "models",
        "stats",
        "unknown",
    ];
}

impl Route {
    pub(crate) fn of(method: &Method, path: &str) -> Self {
        let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        let model = |form, kind, model: Option<&str>, stream| Self::Model {
            form,
            kind,
            model: model.map(percent_decoded),
            stream,
        };
        match (method, segments.as_slice()) {
            (&Method::GET, ["stats"]) => Self::Stats,
            (&Method::GET, [.., "models"]) => Self::Models,
            (&Method::POST, [.., "openai", "deployments", name, "chat", "completions"]) => {
                model(Form::Azure, Kind::AzureChat, Some(name), false)
            }
            (&Method::POST, [.., "chat", "completions"]) => model(Form::OpenAi, Kind::Chat, None, false),
            (&Method::POST, [.., "v1", "messages"]) => model(Form::Anthropic, Kind::Messages, None, false),
            (&Method::POST, [.., "model", id, "invoke"]) => {
                model(Form::Invoke, Kind::Invoke, Some(id), false)
            }
            (&Method::POST, [.., "model", id, "invoke-with-response-stream"]) => {
                model(Form::Invoke, Kind::InvokeStream, Some(id), true)
            }
            (&Method::POST, [.., "model", id, "converse"]) => {
                model(Form::Converse, Kind::Converse, Some(id), false)
            }
            (&Method::POST, [.., "model", id, "converse-stream"]) => {
                model(Form::Converse, Kind::ConverseStream, Some(id), true)
            }
            _ => Self::Unknown,
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Model { kind, .. } => *kind,
            Self::Models => Kind::Models,
            Self::Stats => Kind::Stats,
            Self::Unknown => Kind::Unknown,
        }
    }
}

/// Replaces `%XX` escapes; leaves invalid ones unchanged.
fn percent_decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escape = bytes.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        let byte = escape.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        decoded.push(byte.unwrap_or(bytes[at]));
        at += if byte.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_below_any_prefix() {
        let form = |path: &str| match Route::of(&Method::POST, path) {
            Route::Model { form, model, stream, .. } => Some((form, model, stream)),
            _ => None,
        };
        assert_eq!(form("/v1/chat/completions"), Some((Form::OpenAi, None, false)));
        assert_eq!(form("/chat/completions"), Some((Form::OpenAi, None, false)));
        assert_eq!(form("/openai/v1/chat/completions"), Some((Form::OpenAi, None, false)));
        let azure = form("/openai/deployments/my%20gpt/chat/completions");
        assert_eq!(azure, Some((Form::Azure, Some("my gpt".to_owned()), false)));
        assert_eq!(form("/anthropic/v1/messages"), Some((Form::Anthropic, None, false)));
        let id = Some("a.b-v1:0".to_owned());
        assert_eq!(form("/model/a.b-v1%3A0/invoke"), Some((Form::Invoke, id.clone(), false)));
        assert_eq!(form("/x/model/a.b-v1:0/converse-stream"), Some((Form::Converse, id, true)));
        assert_eq!(form("/v1/completions"), None);
        assert_eq!(Route::of(&Method::GET, "/v1/chat/completions"), Route::Unknown);
        assert_eq!(Route::of(&Method::GET, "/v1/models"), Route::Models);
        assert_eq!(Route::of(&Method::GET, "/stats"), Route::Stats);
    }

    #[test]
    fn every_kind_has_a_name() {
        assert_eq!(Kind::NAMES[Kind::Chat as usize], "chat_completions");
        assert_eq!(Kind::NAMES[Kind::Unknown as usize], "unknown");
        assert_eq!(Kind::NAMES.len(), Kind::Unknown as usize + 1);
    }

    proptest::proptest! {
        #[test]
        fn escapes_of_any_text_are_undone(text in "\\PC{0,20}") {
            let mut escaped = String::new();
            for byte in text.bytes() {
                escaped.push_str(&format!("%{byte:02X}"));
            }
            drop(percent_decoded(&text));
            proptest::prop_assert_eq!(percent_decoded(&escaped), text);
        }
    }
}
