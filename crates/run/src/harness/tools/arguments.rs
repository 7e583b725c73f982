//! Arguments of tool calls. A model writes them, so mistakes are reported to the model and have no other effect.

use aec_base::text::printable;
use aec_model::message::ToolCall;
use serde_json::{Map, Value};

/// Most characters of the arguments that a message quotes.
const QUOTED: usize = 200;

pub(crate) struct Given {
    values: Map<String, Value>,
    expected: String,
}

impl Given {
    /// The arguments, if they are an object with only these keys.
    pub(crate) fn read(call: &ToolCall, keys: &[(&str, &str)]) -> Result<Self, String> {
        let shapes: Vec<String> = keys.iter().map(|(name, kind)| format!("\"{name}\": {kind}")).collect();
        let expected = format!("`{}` takes {{{}}}", printable(&call.name), shapes.join(", "));
        let Some(values) = call.object() else {
            let given: String = call.arguments.chars().take(QUOTED).collect();
            return Err(format!("the arguments are not a JSON object; {expected}. They were: {given}"));
        };
        if let Some(unknown) = values.keys().find(|key| !keys.iter().any(|(name, _)| name == key)) {
            return Err(format!("there is no argument `{}`; {expected}", printable(unknown)));
        }
        Ok(Self { values, expected })
    }

    /// A required text.
    pub(crate) fn text(&mut self, name: &str) -> Result<String, String> {
        let text = self.optional_text(name)?;
        text.ok_or_else(|| self.complain(&format!("`{name}` is missing")))
    }

    /// An optional text.
    pub(crate) fn optional_text(&mut self, name: &str) -> Result<Option<String>, String> {
        match self.values.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.complain(&format!("`{name}` must be a string"))),
        }
    }

    /// An optional whole number, at least 1.
    pub(crate) fn optional_count(&self, name: &str) -> Result<Option<usize>, String> {
        match self.values.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => value
                .as_u64()
                .filter(|count| *count > 0)
                .map(|count| Some(usize::try_from(count).unwrap_or(usize::MAX)))
                .ok_or_else(|| self.complain(&format!("`{name}` must be a whole number above 0"))),
        }
    }

    /// A message with the mistake and the expected arguments.
    pub(crate) fn complain(&self, what: &str) -> String {
        format!("{what}; {}", self.expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [(&str, &str); 3] = [("path", "string"), ("offset", "integer?"), ("note", "string?")];

    fn given(arguments: &str) -> Result<Given, String> {
        let call = ToolCall { id: "1".into(), name: "read_file".into(), arguments: arguments.into() };
        Given::read(&call, &KEYS)
    }

    #[test]
    fn good_arguments_are_read() {
        let mut good = given(r#"{"path": "a", "offset": 3, "note": null}"#).unwrap();
        assert_eq!(good.text("path").unwrap(), "a");
        assert_eq!(good.optional_count("offset").unwrap(), Some(3));
        assert_eq!(good.optional_text("note").unwrap(), None);
        assert!(given("").unwrap().text("path").unwrap_err().contains("`path` is missing"));
    }

    #[test]
    fn mistakes_say_what_was_expected() {
        for wrong in ["[]", "ls", "{", "\"a\"", "{\"path\": \"a\"} x", "\u{0}"] {
            let error = given(wrong).err().unwrap();
            assert!(error.contains("\"path\": string"), "{wrong}: {error}");
        }
        assert!(given(r#"{"pth": "a"}"#).err().unwrap().contains("`pth`"));
        assert!(given(r#"{"path": 3}"#).unwrap().text("path").unwrap_err().contains("must be a string"));
        for offset in ["0", "-1", "1.5", "\"3\"", "true", "1e99"] {
            let read = given(&format!(r#"{{"path": "a", "offset": {offset}}}"#)).unwrap();
            assert!(read.optional_count("offset").unwrap_err().contains("above 0"), "{offset}");
        }
    }
}
