//! Routes for an agent inside a sandbox: its variables name the address of the model. The gateway chooses the model's
//! name, so no rule about names applies.

use aec_base::env::Env;

use crate::endpoint::Provider;
use crate::registry::Registry;
use crate::routing::{RouteError, Routes};

const OPENAI: (&str, &str) = ("OPENAI_BASE_URL", "OPENAI_API_KEY");
const ANTHROPIC: (&str, &str) = ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY");

impl Routes {
    /// The routes of an agent. An address in `OPENAI_BASE_URL` or `ANTHROPIC_BASE_URL` serves its model; with both, the
    /// latter serves models whose names begin with `claude-`. Without either, the rules about names apply.
    pub fn of_agent(env: Env, model: &str) -> Result<Self, RouteError> {
        let mut routes = Self { env, ..Self::default() };
        let (openai, anthropic) = (routes.env.get(OPENAI.0).is_some(), routes.env.get(ANTHROPIC.0).is_some());
        let endpoint = match (openai, anthropic) {
            (false, false) => return Ok(routes),
            (_, true) if !openai || model.starts_with("claude-") => {
                routes.plain(Provider::Anthropic, "", ANTHROPIC, model)?
            }
            _ => routes.plain(Provider::OpenAi, "", OPENAI, model)?,
        };
        routes.registry = Registry::of_one(model, endpoint);
        Ok(routes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::Format;
    use crate::routing::Target;

    fn endpoint(variables: &[(&str, &str)], model: &str) -> Option<(Format, String, String)> {
        let env = Env::from_shell(variables.iter().map(|(name, value)| ((*name).into(), (*value).into())));
        match Routes::of_agent(env, model).unwrap().resolve(model, None).unwrap() {
            Target::Endpoints(mut all) => {
                let one = all.remove(0);
                Some((one.format, one.base_url.to_string(), one.model))
            }
            Target::Offline(_) => None,
        }
    }

    #[test]
    fn an_address_in_the_variables_answers_for_any_name() {
        let both =
            [("OPENAI_BASE_URL", "http://127.0.0.1:1/v1"), ("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")];
        for model in ["mine", "openai:gpt-4o", "offline/echo", "anthropic.claude-3", "together:x"] {
            let (format, url, name) = endpoint(&both, model).unwrap();
            assert_eq!(
                (format, url.as_str(), name.as_str()),
                (Format::OpenAiChat, "http://127.0.0.1:1/v1", model)
            );
        }
        assert_eq!(endpoint(&both, "claude-x").unwrap().0, Format::AnthropicMessages);
        assert_eq!(endpoint(&both[1..], "mine").unwrap().0, Format::AnthropicMessages);
        assert_eq!(endpoint(&both[..1], "claude-x").unwrap().0, Format::OpenAiChat);
        assert!(endpoint(&[], "offline/echo").is_none());
        let wrong = Env::from_shell([("OPENAI_BASE_URL".to_owned(), "not an address".to_owned())]);
        assert!(Routes::of_agent(wrong, "x").is_err());
    }
}
