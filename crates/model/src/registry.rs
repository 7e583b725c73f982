//! `configs/endpoints.toml`: names for the addresses of models. Several rows with one id are replicas.

use std::path::Path;
use std::time::Duration;

use aec_base::document::{Document, Family, Shared, Syntax};
use aec_base::env::Env;
use aec_base::problem::{Problem, Severity};
use aec_base::secret::{Secret, is_secret_name, reference};
use http::{HeaderName, HeaderValue};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::endpoint::{Credential, Endpoint, Format, KeyPlacement, Provider, StreamMode};
use crate::routing::{aws_credential, bedrock_format, region_of};

/// Problems of endpoint files are `W…`.
pub const FAMILY: Family = Family('W');

/// URL parameters that carry credentials.
const SIGNED: [&str; 4] = ["code", "sig", "signature", "access"];

/// Headers that the connection sets.
const RULED: [&str; 5] = ["host", "content-length", "content-type", "transfer-encoding", "connection"];

/// `configs/endpoints.toml`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EndpointsFile {
    /// The rows.
    pub endpoint: Vec<EndpointTable>,
}

/// One row: the address of a model.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EndpointTable {
    /// The name that selects the model; rows that share it are replicas.
    pub endpoint_id: Option<String>,
    /// The model as the provider names it.
    pub model: Option<String>,
    /// The address to which the wire format's path is appended.
    pub url: Option<String>,
    /// Another spelling of `url`.
    pub api_base_url: Option<String>,
    /// Name of the variable that holds the key; absent when no key is needed. Never the key itself.
    pub key: Option<String>,
    /// Another spelling of `key`.
    pub api_key_var: Option<String>,
    /// The wire format (default `openai_chat_completions`).
    pub api_client_type: Option<ClientType>,
    /// Another spelling of `api_client_type`.
    #[serde(rename = "type")]
    pub client_type: Option<ClientType>,
    /// Further headers; a value may refer to variables as `${NAME}`.
    pub headers: IndexMap<String, String>,
    /// Another spelling of `headers`.
    pub extra_headers: IndexMap<String, String>,
    /// Version of an Azure resource's interface (default 2024-10-21).
    pub api_version: Option<String>,
    /// Region of a Bedrock endpoint whose address does not name it.
    pub region: Option<String>,
    /// Whether answers are streamed (default `auto`).
    pub stream: StreamMode,
    /// Whether to ask for prompt caching (default true).
    pub prompt_cache: Option<bool>,
    /// Most concurrent calls.
    pub max_concurrency: Option<u32>,
    /// Calls per minute.
    pub requests_per_minute: Option<u32>,
    /// Tokens per minute.
    pub tokens_per_minute: Option<u32>,
    /// Seconds until an answer begins, or is complete without streaming (default 600).
    pub timeout_sec: Option<u32>,
    /// Seconds between two pieces of a stream (default 300).
    pub idle_timeout_sec: Option<u32>,
}

/// The wire format of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClientType {
    /// `OpenAI` chat completions and compatible servers.
    #[default]
    #[serde(rename = "openai_chat_completions")]
    OpenAiChatCompletions,
    /// Anthropic messages.
    AnthropicMessages,
    /// A resource of Azure `OpenAI`, whose deployments are in the path.
    #[serde(rename = "azure_openai")]
    AzureOpenAi,
    /// Amazon Bedrock.
    Bedrock,
}

/// All endpoints by id.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    endpoints: IndexMap<String, Vec<Endpoint>>,
    secrets: Vec<(String, Secret)>,
}

impl Registry {
    /// Reads an endpoints file; returns the registry with warnings, or every problem.
    pub fn read(path: &Path, env: &Env) -> Result<(Self, Vec<Problem>), Vec<Problem>> {
        let document = Document::read(path, Syntax::Toml, FAMILY)?;
        let mut decoded = document.decode::<EndpointsFile>();
        let mut reader = Reader {
            document: Some(&document),
            env,
            row: 0,
            problems: std::mem::take(&mut decoded.problems),
        };
        let faulty: Vec<bool> = (0..decoded.value.as_ref().map_or(0, |file| file.endpoint.len()))
            .map(|index| decoded.is_faulty(&format!("endpoint[{index}]")))
            .collect();
        let mut registry = Self::default();
        for (index, table) in decoded.value.unwrap_or_default().endpoint.iter().enumerate() {
            reader.row = index;
            if let Some((id, endpoint)) = reader.endpoint(table, &mut registry.secrets)
                && !faulty[index]
            {
                reader.add(&mut registry, &id, endpoint);
            }
        }
        let problems = reader.problems;
        if problems.iter().any(|problem| problem.severity == Severity::Error) {
            return Err(problems);
        }
        Ok((registry, problems))
    }

    /// Adds a row from another source than the file, such as the command line. It replaces the rows with its id and is
    /// checked like those of the file.
    pub fn add(&mut self, table: &EndpointTable, env: &Env) -> Result<Vec<Problem>, Vec<Problem>> {
        let mut reader = Reader { document: None, env, row: 0, problems: Vec::new() };
        let endpoint = reader.endpoint(table, &mut self.secrets);
        let problems = reader.problems;
        match endpoint {
            Some((id, endpoint)) if problems.iter().all(|problem| problem.severity != Severity::Error) => {
                self.insert(&id, vec![endpoint]);
                Ok(problems)
            }
            _ => Err(problems),
        }
    }

    /// Replaces the endpoints of an id.
    pub fn insert(&mut self, id: &str, endpoints: Vec<Endpoint>) {
        self.endpoints.insert(id.to_owned(), endpoints);
    }

    pub(crate) fn of_one(id: &str, mut endpoint: Endpoint) -> Self {
        id.clone_into(&mut endpoint.label);
        endpoint.endpoint_id = Some(id.to_owned());
        Self { endpoints: IndexMap::from([(id.to_owned(), vec![endpoint])]), secrets: Vec::new() }
    }

    /// The replicas of an endpoint.
    pub fn find(&self, id: &str) -> Option<&[Endpoint]> {
        self.endpoints.get(id).map(Vec::as_slice)
    }

    /// Every id, in the order of the file.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.endpoints.keys().map(String::as_str)
    }

    /// Names and values of the variables that the file uses as keys or in headers: they are secrets, whatever their
    /// names.
    pub fn secrets(&self) -> impl Iterator<Item = (&str, &str)> {
        self.secrets.iter().map(|(name, value)| (name.as_str(), value.reveal()))
    }
}

struct Reader<'a> {
    /// The document of the rows; absent for a row from another source.
    document: Option<&'a Document>,
    env: &'a Env,
    row: usize,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn complain(&mut self, severity: Severity, shared: Shared, what: impl Into<String>, fix: &str) {
        let problem = Problem::new(severity, what).id(FAMILY.id(shared)).fix(fix);
        self.problems.push(match self.document {
            Some(document) => problem.at(document.place_in_list("endpoint", self.row)),
            None => problem,
        });
    }

    fn error(&mut self, shared: Shared, what: impl Into<String>, fix: &str) {
        self.complain(Severity::Error, shared, what, fix);
    }

    fn add(&mut self, registry: &mut Registry, id: &str, mut endpoint: Endpoint) {
        let replicas = registry.endpoints.entry(id.to_owned()).or_default();
        if let Some(first) = replicas.first()
            && first.model != endpoint.model
        {
            let what =
                format!("rows of `{id}` name different models: `{}` and `{}`", first.model, endpoint.model);
            self.error(
                Shared::Conflict,
                what,
                "replicas answer for one model; give the other model its own id",
            );
            return;
        }
        if !replicas.is_empty() {
            endpoint.label = format!("{id}#{}", replicas.len() + 1);
        }
        replicas.push(endpoint);
    }

    /// The value of a key that has two spellings.
    fn either<T: Clone>(&mut self, first: (&str, Option<&T>), second: (&str, Option<&T>)) -> Option<T> {
        if first.1.is_some() && second.1.is_some() {
            let what = format!("`{}` and `{}` say the same thing", first.0, second.0);
            self.error(Shared::Conflict, what, &format!("keep `{}`", first.0));
        }
        first.1.or(second.1).cloned()
    }

    fn endpoint(
        &mut self,
        table: &EndpointTable,
        secrets: &mut Vec<(String, Secret)>,
    ) -> Option<(String, Endpoint)> {
        let id = table.endpoint_id.as_deref().map(str::trim).filter(|id| !id.is_empty()).map(str::to_owned);
        if id.is_none() {
            self.error(Shared::MissingKey, "`endpoint_id` is missing or empty", "name the endpoint");
        }
        let model =
            table.model.as_deref().map(str::trim).filter(|model| !model.is_empty()).map(str::to_owned);
        if model.is_none() {
            self.error(
                Shared::MissingKey,
                "`model` is missing or empty",
                "write the model as the provider names it",
            );
        }
        let url = self.either(("url", table.url.as_ref()), ("api_base_url", table.api_base_url.as_ref()));
        let key = self.either(("key", table.key.as_ref()), ("api_key_var", table.api_key_var.as_ref()));
        let client_type = self
            .either(("api_client_type", table.api_client_type.as_ref()), ("type", table.client_type.as_ref()))
            .unwrap_or_default();
        let headers = (!table.headers.is_empty()).then_some(&table.headers);
        let extra_headers = (!table.extra_headers.is_empty()).then_some(&table.extra_headers);
        let headers = self.either(("headers", headers), ("extra_headers", extra_headers)).unwrap_or_default();
        if url.is_none() {
            self.error(
                Shared::MissingKey,
                "`url` is missing",
                "write the address, such as https://api.openai.com/v1",
            );
        }
        let url = url.and_then(|url| self.url(&url, key.is_some()));
        let credential = key.map(|key| self.key(&key, client_type, secrets));
        self.check_numbers(table);
        let (id, model, url) = (id?, model?, url?);
        let mut endpoint = Endpoint::new(Provider::Other, Format::OpenAiChat, url, model);
        self.shape(&mut endpoint, client_type, table)?;
        endpoint.label.clone_from(&id);
        endpoint.endpoint_id = Some(id.clone());
        match credential {
            Some(credential) => endpoint.credential = credential?,
            None if client_type == ClientType::Bedrock => endpoint.credential = self.aws(&endpoint, table)?,
            None => {}
        }
        for (name, value) in &headers {
            self.header(&mut endpoint, name, value, secrets);
        }
        endpoint.stream = table.stream;
        endpoint.cache_prompt = table.prompt_cache.unwrap_or(true);
        if let Some(max) = table.max_concurrency {
            endpoint.limits.max_concurrency = max;
        }
        endpoint.limits.requests_per_minute = table.requests_per_minute;
        endpoint.limits.tokens_per_minute = table.tokens_per_minute;
        if let Some(seconds) = table.timeout_sec {
            endpoint.timeouts.answer = Duration::from_secs(seconds.into());
        }
        if let Some(seconds) = table.idle_timeout_sec {
            endpoint.timeouts.idle = Duration::from_secs(seconds.into());
        }
        Some((id, endpoint))
    }

    /// Applies what the wire format determines.
    fn shape(
        &mut self,
        endpoint: &mut Endpoint,
        client_type: ClientType,
        table: &EndpointTable,
    ) -> Option<()> {
        let provider = match client_type {
            ClientType::AzureOpenAi => Provider::Azure,
            ClientType::Bedrock => Provider::Bedrock,
            _ => Provider::of_host(endpoint.base_url.host_str().unwrap_or_default()),
        };
        let format = match client_type {
            ClientType::OpenAiChatCompletions | ClientType::AzureOpenAi => Format::OpenAiChat,
            ClientType::AnthropicMessages => Format::AnthropicMessages,
            ClientType::Bedrock => bedrock_format(&endpoint.model),
        };
        *endpoint = Endpoint::new(provider, format, endpoint.base_url.clone(), endpoint.model.clone());
        if client_type == ClientType::AzureOpenAi {
            crate::routing::azure_resource(endpoint, table.api_version.as_deref());
        } else if table.api_version.is_some() {
            let what = "`api_version` has no effect here";
            self.error(Shared::Conflict, what, "remove it, or set api_client_type = \"azure_openai\"");
            return None;
        }
        if table.region.is_some() && client_type != ClientType::Bedrock {
            let what = "`region` has no effect here";
            self.error(Shared::Conflict, what, "remove it, or set api_client_type = \"bedrock\"");
            return None;
        }
        Some(())
    }

    fn aws(&mut self, endpoint: &Endpoint, table: &EndpointTable) -> Option<Credential> {
        let region = table.region.clone().or_else(|| region_of(&endpoint.base_url));
        let Some(region) = region else {
            let fix = "add `region`, or `key` with the name of a variable that holds a bearer token";
            self.error(Shared::MissingKey, "the address does not name the region", fix);
            return None;
        };
        Some(aws_credential(self.env, &region))
    }

    fn check_numbers(&mut self, table: &EndpointTable) {
        let numbers = [
            ("max_concurrency", table.max_concurrency),
            ("requests_per_minute", table.requests_per_minute),
            ("tokens_per_minute", table.tokens_per_minute),
            ("timeout_sec", table.timeout_sec),
            ("idle_timeout_sec", table.idle_timeout_sec),
        ];
        for (name, _) in numbers.into_iter().filter(|(_, number)| *number == Some(0)) {
            self.error(
                Shared::BadValue,
                format!("`{name}` must be more than 0"),
                "remove the key, or raise it",
            );
        }
    }

    fn url(&mut self, text: &str, has_key: bool) -> Option<Url> {
        let url =
            Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let Some(url) = url else {
            self.error(
                Shared::BadValue,
                "`url` is not an http or https address",
                "write it like https://api.openai.com/v1",
            );
            return None;
        };
        let secret_query = url.query_pairs().any(|(name, value)| {
            is_secret_name(&name) || SIGNED.contains(&name.as_ref()) || looks_secret(&value)
        });
        if !url.username().is_empty() || url.password().is_some() || secret_query {
            // The message does not repeat the address, which contains a secret.
            let fix =
                "put the secret into a variable and name it in `key`, or refer to it in `headers` as ${NAME}";
            self.error(Shared::BadValue, "`url` holds a secret", fix);
            return None;
        }
        if url.scheme() == "http" && has_key && !aec_http::is_loopback(&url) {
            let what = "the key would travel unencrypted";
            self.complain(Severity::Warning, Shared::BadValue, what, "use an https address");
        }
        Some(url)
    }

    /// The credential in a variable. The text is never printed: it may be the key itself.
    fn key(
        &mut self,
        text: &str,
        client_type: ClientType,
        secrets: &mut Vec<(String, Secret)>,
    ) -> Option<Credential> {
        let name = reference(text).unwrap_or(text);
        if !is_variable(name, self.env) {
            let what = "`key` is not the name of a variable; it looks like the key itself";
            let fix = "put the key into .env or the shell, and write the variable's name here";
            self.error(Shared::BadValue, what, fix);
            return None;
        }
        let Some(value) = self.env.get(name) else {
            return Some(Credential::Missing { variables: vec![name.to_owned()] });
        };
        secrets.push((name.to_owned(), Secret::new(value)));
        let placement = match client_type {
            ClientType::OpenAiChatCompletions | ClientType::Bedrock => KeyPlacement::Bearer,
            ClientType::AnthropicMessages => KeyPlacement::XApiKey,
            ClientType::AzureOpenAi => KeyPlacement::ApiKey,
        };
        Some(Credential::Key { variable: name.to_owned(), value: Secret::new(value), placement })
    }

    fn header(
        &mut self,
        endpoint: &mut Endpoint,
        name: &str,
        value: &str,
        secrets: &mut Vec<(String, Secret)>,
    ) {
        let Ok(header) = name.parse::<HeaderName>() else {
            self.error(
                Shared::BadValue,
                "a name in `headers` cannot be a header",
                "use letters, digits and -",
            );
            return;
        };
        if RULED.contains(&header.as_str()) {
            let what = format!("the header `{header}` is not yours to set");
            self.error(Shared::BadValue, what, "remove it");
            return;
        }
        let Filled { text: filled, literal, has_reference } = fill_in(value, self.env, secrets);
        let names_a_secret = is_secret_name(header.as_str())
            || matches!(header.as_str(), "authorization" | "proxy-authorization" | "cookie");
        if !has_reference && names_a_secret || looks_secret(&literal) {
            let what = format!("the value of the header `{header}` is written out");
            self.error(Shared::BadValue, what, "put it into a variable and refer to it as ${NAME}");
            return;
        }
        match filled {
            Ok(filled) => match HeaderValue::from_str(&filled) {
                Ok(mut value) => {
                    value.set_sensitive(true);
                    endpoint.headers.push((header, value));
                }
                Err(_) => {
                    let what =
                        format!("the value of the header `{header}` has characters that headers cannot have");
                    self.error(Shared::BadValue, what, "use printable ASCII on one line");
                }
            },
            // This endpoint is unusable, but the others are not.
            Err(variable) => endpoint.credential = Credential::Missing { variables: vec![variable] },
        }
    }
}

/// Whether a text names a variable. Keys also consist of letters, digits and `_`; a text that is neither a known
/// variable nor spelled like one is taken for the key itself.
fn is_variable(text: &str, env: &Env) -> bool {
    let shape = !text.is_empty()
        && text.len() <= 100
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let spelled_like_one = !text.contains(|c: char| c.is_ascii_lowercase())
        && (text.contains('_') || text.len() < 16)
        && text.chars().filter(char::is_ascii_digit).count() <= 6;
    shape && (spelled_like_one || env.get(text).is_some())
}

/// Whether a literal text looks like a key: a known prefix, or a long run of letters and digits that no one would
/// choose.
fn looks_secret(text: &str) -> bool {
    const BEGINNINGS: [&str; 11] =
        ["sk-", "sk_", "pk-", "hf_", "gsk_", "xai-", "AKIA", "ghp_", "Basic ", "eyJ", "tgp_"];
    let is_run = |word: &str| {
        let has = |wanted: fn(&char) -> bool| word.chars().any(|c| wanted(&c));
        word.len() >= 24 && has(char::is_ascii_digit) && has(char::is_ascii_alphabetic)
    };
    let words = || text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-')));
    BEGINNINGS
        .iter()
        .any(|start| text.starts_with(start) || words().any(|word| word.starts_with(start.trim())))
        || words().any(is_run)
}

/// A text after substitution.
struct Filled {
    /// The text; the error names a variable without a value.
    text: Result<String, String>,
    /// The literal part.
    literal: String,
    has_reference: bool,
}

/// Substitutes every `${NAME}`, or a lone `$NAME`.
fn fill_in(text: &str, env: &Env, secrets: &mut Vec<(String, Secret)>) -> Filled {
    let lone = text.strip_prefix('$').filter(|_| reference(text).is_some() && !text.starts_with("${"));
    let braced = lone.map_or_else(|| text.to_owned(), |name| format!("${{{name}}}"));
    let mut filled = Filled { text: Ok(String::new()), literal: String::new(), has_reference: false };
    let mut missing = None;
    let mut whole = String::new();
    let mut rest = braced.as_str();
    while let Some(start) = rest.find("${") {
        let Some(length) = rest[start..].find('}') else { break };
        let Some(name) = reference(&rest[start..=start + length]) else { break };
        whole.push_str(&rest[..start]);
        filled.literal.push_str(&rest[..start]);
        filled.has_reference = true;
        match env.get(name) {
            Some(value) => {
                secrets.push((name.to_owned(), Secret::new(value)));
                whole.push_str(value);
            }
            None => missing = Some(name.to_owned()),
        }
        rest = &rest[start + length + 1..];
    }
    whole.push_str(rest);
    filled.literal.push_str(rest);
    filled.text = missing.map_or(Ok(whole), Err);
    filled
}
