//! Finds the endpoint of an evaluation's model, from the endpoints file and from what flags and files add to it.

use aec_base::env::Env;
use aec_base::problem::Problem;
use aec_base::text::{near_or, printable};
use aec_model::endpoint::{Credential, Endpoint, KeyPlacement};
use aec_model::registry::{ClientType, EndpointTable, Registry};
use aec_model::routing::{Routes, Target};
use http::{HeaderName, HeaderValue};

use crate::FAMILY;
use crate::config::{EvalSettings, ModelChoice};

/// A service that needs no row in the endpoints file: name, address, variable of its key, format.
struct Service {
    name: &'static str,
    url: &'static str,
    key: &'static str,
    client_type: ClientType,
}

const fn service(name: &'static str, url: &'static str, key: &'static str) -> Service {
    Service { name, url, key, client_type: ClientType::OpenAiChatCompletions }
}

const SERVICES: [Service; 9] = [
    service("prime", "https://api.pinference.ai/api/v1", "PRIME_API_KEY"),
    service("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    service("openai", "https://api.openai.com/v1", "OPENAI_API_KEY"),
    Service {
        name: "anthropic",
        url: "https://api.anthropic.com",
        key: "ANTHROPIC_API_KEY",
        client_type: ClientType::AnthropicMessages,
    },
    service("minimax", "https://api.minimax.chat/v1", "MINIMAX_API_KEY"),
    service("deepseek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    service("glm", "https://open.bigmodel.cn/api/paas/v4", "GLM_API_KEY"),
    service("local", "http://localhost:8000/v1", "VLLM_API_KEY"),
    service("vllm", "http://localhost:8000/v1", "VLLM_API_KEY"),
];

/// The name under which to ask for the model of an evaluation. Settings that go beyond the endpoints file become a row
/// of the registry, under a separate name if `others` of this run use the model's name.
pub fn choose(
    settings: &EvalSettings,
    registry: &mut Registry,
    env: &Env,
    others: Option<usize>,
) -> Result<String, Vec<Problem>> {
    let name = match &settings.model {
        ModelChoice::Model(name) => name.clone(),
        ModelChoice::Endpoint(id) if registry.find(id).is_some() => id.clone(),
        ModelChoice::Endpoint(id) => return Err(vec![unknown_endpoint(id, registry)]),
    };
    let service = settings.said.provider.as_deref().map(find_service).transpose().map_err(one)?;
    let client_type =
        settings.said.api_client_type.as_deref().map(parse_client_type).transpose().map_err(one)?;
    let says_where = settings.said.api_base_url.is_some() || service.is_some();
    if !says_where
        && settings.said.api_key_var.is_none()
        && client_type.is_none()
        && settings.headers.is_empty()
    {
        return Ok(name);
    }
    let id = others.map_or_else(|| name.clone(), |number| format!("{name}#{}", number + 1));
    if says_where {
        let known = registry.find(&name).and_then(<[Endpoint]>::first);
        let key = settings.said.api_key_var.clone().or_else(|| match (service, known) {
            (Some(service), _) => env.get(service.key).map(|_| service.key.to_owned()),
            (None, Some(known)) => known.credential.variables().into_iter().next(),
            (None, None) => None,
        });
        let url = settings.said.api_base_url.clone();
        let table = EndpointTable {
            endpoint_id: Some(id.clone()),
            model: Some(known.map_or_else(|| name.clone(), |known| known.model.clone())),
            url: url.or_else(|| service.map(|service| service.url.to_owned())),
            key,
            api_client_type: client_type.or_else(|| service.map(|service| service.client_type)),
            headers: settings.headers.clone(),
            ..EndpointTable::default()
        };
        registry.add(&table, env)?;
        return Ok(id);
    }
    let routes = Routes { env: env.clone(), registry: registry.clone(), ..Routes::default() };
    let target = routes.resolve(&name, None).map_err(|error| one(error.into()))?;
    let Target::Endpoints(mut endpoints) = target else {
        let problem =
            Problem::error(format!("`{name}` is a model inside this program: it has no key and no headers"));
        return Err(one(problem.id(FAMILY.number(90)).fix("leave out -k and --header")));
    };
    for endpoint in &mut endpoints {
        change(endpoint, settings, env).map_err(one)?;
    }
    registry.insert(&id, endpoints);
    Ok(id)
}

fn one(problem: Problem) -> Vec<Problem> {
    vec![problem]
}

fn change(endpoint: &mut Endpoint, settings: &EvalSettings, env: &Env) -> Result<(), Problem> {
    for (name, value) in &settings.headers {
        let pair = HeaderName::try_from(name.as_str()).ok().zip(HeaderValue::try_from(value.as_str()).ok());
        let Some((name, mut value)) = pair else {
            let problem = Problem::error(format!("`{}` cannot be sent as a header", printable(name)));
            return Err(problem.id(FAMILY.number(14)).fix("write NAME: VALUE"));
        };
        value.set_sensitive(true);
        endpoint.headers.retain(|(known, _)| *known != name);
        endpoint.headers.push((name, value));
    }
    if let Some(variable) = &settings.said.api_key_var {
        let Some(value) = env.get(variable) else {
            let problem = Problem::error(format!("the variable {variable} is not set"));
            return Err(problem.id(FAMILY.number(91)).fix("set it to the key of the service"));
        };
        let placement = match &endpoint.credential {
            Credential::Key { placement, .. } => *placement,
            _ => KeyPlacement::Bearer,
        };
        endpoint.credential = Credential::Key {
            variable: variable.clone(),
            value: aec_base::secret::Secret::new(value),
            placement,
        };
    }
    Ok(())
}

fn find_service(name: &str) -> Result<&'static Service, Problem> {
    SERVICES.iter().find(|service| service.name == name).ok_or_else(|| {
        let names: Vec<&str> = SERVICES.iter().map(|service| service.name).collect();
        let problem =
            Problem::error(format!("`{}` is not a provider", printable(name))).id(FAMILY.number(92));
        problem.fix(format!("name one of {}", names.join(", ")))
    })
}

fn parse_client_type(text: &str) -> Result<ClientType, Problem> {
    serde_json::from_value(serde_json::Value::from(text)).map_err(|_| {
        let problem = Problem::error(format!("`{}` is not a supported format", printable(text)));
        let fix = "write openai_chat_completions, anthropic_messages, azure_openai or bedrock";
        problem.id(FAMILY.number(93)).fix(fix)
    })
}

fn unknown_endpoint(id: &str, registry: &Registry) -> Problem {
    let ids: Vec<&str> = registry.ids().collect();
    let problem = Problem::error(format!("the endpoints file has no endpoint `{}`", printable(id)));
    problem.id(FAMILY.number(94)).fix(near_or(id, &ids, "add it to the file, or name a `model`"))
}
