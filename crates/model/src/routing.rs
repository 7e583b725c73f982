//! Finds the endpoints for a model name: the endpoints file first, then the rules about names.

use std::path::PathBuf;

use aec_base::env::Env;
use aec_base::problem::Problem;
use aec_base::secret::Secret;
use aec_base::text::percent_encoded;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::dialect::LimitKey;
use crate::endpoint::{Credential, Endpoint, Format, KeyPlacement, Provider, StreamMode};
use crate::offline::Offline;
use crate::registry::Registry;
use crate::sign::AwsCredentials;

/// The default version of Azure's interface.
pub const AZURE_API_VERSION: &str = "2024-10-21";

/// Everything that determines the endpoints of a model.
#[derive(Clone, Debug, Default)]
pub struct Routes {
    pub env: Env,
    pub registry: Registry,
    /// The base of relative paths of scripts.
    pub directory: PathBuf,
}

/// The destination of a model name.
#[derive(Clone, Debug)]
pub enum Target {
    /// Any of these endpoints.
    Endpoints(Vec<Endpoint>),
    /// A model inside this program.
    Offline(Offline),
}

/// How to call an agent's model when its name alone does not determine it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ClientTable {
    /// The interface.
    pub kind: Option<ClientKind>,
    /// Its settings.
    pub settings: ClientSettings,
}

/// The interface through which a model is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClientKind {
    /// Amazon Bedrock.
    Bedrock,
    /// Anthropic.
    AnthropicApi,
    /// Azure.
    #[serde(rename = "azure_openai_chat")]
    AzureOpenAiChat,
    /// `OpenAI`.
    #[serde(rename = "openai_chat")]
    OpenAiChat,
    /// Together.
    TogetherChat,
}

/// Settings of an interface. Addresses and keys are not allowed here: they belong in the endpoints file, since a shared
/// experiment must not decide where keys are sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ClientSettings {
    /// Azure deployment; by default the model's name.
    pub deployment: Option<String>,
    /// Version of Azure's interface.
    pub api_version: Option<String>,
    /// AWS region.
    pub region: Option<String>,
    /// Whether answers are streamed.
    pub stream_mode: Option<StreamMode>,
}

/// Why a model cannot be called.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct RouteError {
    pub what: String,
    pub fix: String,
}

impl RouteError {
    fn new(what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { what: what.into(), fix: fix.into() }
    }
}

impl From<RouteError> for Problem {
    fn from(error: RouteError) -> Self {
        Self::error(error.what).fix(error.fix)
    }
}

impl Routes {
    /// Resolves a model name. An endpoint id comes before every rule about names.
    pub fn resolve(&self, model: &str, client: Option<&ClientTable>) -> Result<Target, RouteError> {
        let model = model.trim();
        if model.is_empty() {
            return Err(RouteError::new("the model has no name", "name a model or an endpoint id"));
        }
        let client = client.filter(|client| client.kind.is_some());
        if client.is_none() {
            if let Some(replicas) = self.registry.find(model) {
                return Ok(Target::Endpoints(replicas.to_vec()));
            }
            if let Some(name) = model.strip_prefix("offline/") {
                return Offline::open(name, &self.directory).map(Target::Offline);
            }
        }
        let settings = client.map(|client| client.settings.clone()).unwrap_or_default();
        if let Some(kind) = client.and_then(|client| client.kind) {
            settings.check(kind)?;
        }
        let (provider, name) = match client.and_then(|client| client.kind) {
            Some(kind) => (kind.provider(), without_prefix(model)),
            None => self.provider(model)?,
        };
        let mut endpoint = match provider {
            Provider::Bedrock => self.bedrock(name, &settings)?,
            Provider::Azure => self.azure(name, &settings)?,
            Provider::Together => self.plain(
                Provider::Together,
                "https://api.together.ai/v1",
                ("TOGETHER_BASE_URL", "TOGETHER_API_KEY"),
                name,
            )?,
            Provider::Anthropic => self.plain(
                Provider::Anthropic,
                "https://api.anthropic.com",
                ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"),
                name,
            )?,
            _ => self.plain(
                Provider::OpenAi,
                "https://api.openai.com/v1",
                ("OPENAI_BASE_URL", "OPENAI_API_KEY"),
                name,
            )?,
        };
        if let Some(stream) = settings.stream_mode {
            endpoint.stream = stream;
        }
        Ok(Target::Endpoints(vec![endpoint]))
    }

    /// The provider of a model, and the model's name there.
    fn provider<'a>(&self, model: &'a str) -> Result<(Provider, &'a str), RouteError> {
        let lower = model.to_ascii_lowercase();
        if let Some((prefix, _)) = lower.split_once(':') {
            let provider = match prefix {
                "bedrock" => Some(Provider::Bedrock),
                "together" => Some(Provider::Together),
                "openai" => Some(Provider::OpenAi),
                "azure" => Some(Provider::Azure),
                "anthropic" => Some(Provider::Anthropic),
                _ => None,
            };
            if let Some(provider) = provider {
                return Ok((provider, without_prefix(model)));
            }
        }
        if is_bedrock(&lower) {
            return Ok((Provider::Bedrock, model));
        }
        if lower.starts_with("claude-") {
            return Ok((Provider::Anthropic, model));
        }
        let azure = self.env.get("AZURE_OPENAI_ENDPOINT").is_some();
        let azure_key = self.env.get("AZURE_OPENAI_API_KEY").is_some();
        if is_openai(&lower) {
            // With half of Azure's settings and no other key, the user needs to hear about the missing half.
            let openai = self.env.get("OPENAI_API_KEY").is_some();
            let use_azure = azure && azure_key || (azure || azure_key) && !openai;
            return Ok((if use_azure { Provider::Azure } else { Provider::OpenAi }, model));
        }
        // Deployments may have any name.
        if azure && azure_key && !model.contains(':') {
            return Ok((Provider::Azure, model));
        }
        Err(self.unknown(model))
    }

    fn unknown(&self, model: &str) -> RouteError {
        let ids: Vec<&str> = self.registry.ids().collect();
        let otherwise = "add it to configs/endpoints.toml with its address, or say whose it is with a prefix: openai:, \
                         azure:, anthropic:, bedrock: or together:";
        let fix = aec_base::text::near_or(model, &ids, otherwise);
        RouteError::new(format!("nothing says where the model `{model}` answers"), fix)
    }

    /// An endpoint with its key in one variable and an address that another variable may replace.
    pub(crate) fn plain(
        &self,
        provider: Provider,
        address: &str,
        (address_variable, key_variable): (&str, &str),
        model: &str,
    ) -> Result<Endpoint, RouteError> {
        let url = match self.env.get(address_variable) {
            Some(text) => parse_address(text, address_variable)?,
            None => parse_address(address, "the built-in address")?,
        };
        let (format, placement) = match provider {
            Provider::Anthropic => (Format::AnthropicMessages, KeyPlacement::XApiKey),
            _ => (Format::OpenAiChat, KeyPlacement::Bearer),
        };
        let mut endpoint = Endpoint::new(provider, format, url, model);
        endpoint.credential = self.key(&[key_variable], placement);
        Ok(endpoint)
    }

    fn key(&self, variables: &[&str], placement: KeyPlacement) -> Credential {
        let found = variables.iter().find_map(|name| Some((*name, self.env.get(name)?)));
        match found {
            Some((name, value)) => {
                Credential::Key { variable: name.to_owned(), value: Secret::new(value), placement }
            }
            None => {
                Credential::Missing { variables: variables.iter().map(|name| (*name).to_owned()).collect() }
            }
        }
    }

    fn azure(&self, model: &str, settings: &ClientSettings) -> Result<Endpoint, RouteError> {
        const VARIABLE: &str = "AZURE_OPENAI_ENDPOINT";
        let Some(address) = self.env.get(VARIABLE) else {
            let what = format!("`{model}` is called through Azure, and {VARIABLE} is not set");
            return Err(RouteError::new(
                what,
                "set it to the resource's address, or set OPENAI_API_KEY instead",
            ));
        };
        let mut url = parse_address(address, VARIABLE)?;
        let path = url.path().trim_end_matches('/').to_owned();
        url.set_path(&path);
        let deployment = settings.deployment.as_deref().unwrap_or(model);
        let mut endpoint = Endpoint::new(Provider::Azure, Format::OpenAiChat, url, deployment);
        endpoint.credential = self.key(&["AZURE_OPENAI_API_KEY"], KeyPlacement::ApiKey);
        let version = settings
            .api_version
            .as_deref()
            .or_else(|| self.env.get("AZURE_OPENAI_API_VERSION"))
            .or_else(|| self.env.get("AGENT_API_VERSION"));
        azure_resource(&mut endpoint, version);
        Ok(endpoint)
    }

    fn bedrock(&self, model: &str, settings: &ClientSettings) -> Result<Endpoint, RouteError> {
        let explicit = self
            .env
            .get("AWS_BEDROCK_ENDPOINT")
            .map(|address| parse_address(address, "AWS_BEDROCK_ENDPOINT"))
            .transpose()?;
        let region = settings
            .region
            .clone()
            .or_else(|| self.env.get("AWS_REGION").map(str::to_owned))
            .or_else(|| self.env.get("AWS_DEFAULT_REGION").map(str::to_owned))
            .or_else(|| explicit.as_ref().and_then(region_of));
        let bearer = self.key(&["AWS_BEARER_TOKEN", "AWS_BEARER_TOKEN_BEDROCK"], KeyPlacement::Bearer);
        let has_bearer = matches!(bearer, Credential::Key { .. });
        let no_region = || {
            let what = format!("`{model}` is called through Bedrock, and the region is not known");
            RouteError::new(what, "set AWS_REGION, or AWS_BEDROCK_ENDPOINT with a bearer token")
        };
        let url = match (explicit, &region) {
            (Some(url), _) => url,
            (None, Some(region)) => {
                let plain = region.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
                if !plain || region.is_empty() {
                    let what = "the AWS region is not valid: letters, digits and - are allowed";
                    return Err(RouteError::new(what, "set AWS_REGION to a region such as ap-southeast-2"));
                }
                parse_address(&format!("https://bedrock-runtime.{region}.amazonaws.com"), "AWS_REGION")?
            }
            (None, None) => return Err(no_region()),
        };
        let mut endpoint = Endpoint::new(Provider::Bedrock, bedrock_format(model), url, model);
        endpoint.credential = match region {
            _ if has_bearer => bearer,
            Some(region) => aws_credential(&self.env, &region),
            None => return Err(no_region()),
        };
        Ok(endpoint)
    }
}

impl ClientSettings {
    /// Refuses a setting that the interface does not have.
    fn check(&self, kind: ClientKind) -> Result<(), RouteError> {
        let azure = kind == ClientKind::AzureOpenAiChat;
        let bedrock = kind == ClientKind::Bedrock;
        let given = [
            ("deployment", self.deployment.is_some(), azure),
            ("api_version", self.api_version.is_some(), azure),
            ("region", self.region.is_some(), bedrock),
        ];
        match given.into_iter().find(|(_, given, has_effect)| *given && !has_effect) {
            Some((name, ..)) => Err(RouteError::new(
                format!("`client.settings.{name}` has no effect with this `client.kind`"),
                "remove it, or choose another kind",
            )),
            None => Ok(()),
        }
    }
}

impl ClientKind {
    fn provider(self) -> Provider {
        match self {
            Self::Bedrock => Provider::Bedrock,
            Self::AnthropicApi => Provider::Anthropic,
            Self::AzureOpenAiChat => Provider::Azure,
            Self::OpenAiChat => Provider::OpenAi,
            Self::TogetherChat => Provider::Together,
        }
    }
}

fn without_prefix(model: &str) -> &str {
    const PREFIXES: [&str; 5] = ["bedrock", "together", "openai", "azure", "anthropic"];
    match model.split_once(':') {
        Some((prefix, rest)) if PREFIXES.contains(&prefix.to_ascii_lowercase().as_str()) => rest,
        _ => model,
    }
}

fn is_openai(lower: &str) -> bool {
    ["gpt-", "gpt4", "chatgpt-", "o1-", "o3-", "o4-", "ft:gpt-"].iter().any(|start| lower.starts_with(start))
        || ["o1", "o3", "o4"].contains(&lower)
}

/// Bedrock ids begin with a vendor, perhaps with regions before it (`au.anthropic.…`), or are ARNs.
fn is_bedrock(lower: &str) -> bool {
    const REGIONS: [&str; 9] = ["us", "eu", "au", "ap", "apac", "jp", "ca", "us-gov", "global"];
    const VENDORS: [&str; 10] = [
        "anthropic.claude",
        "amazon.",
        "meta.llama",
        "mistral.",
        "cohere.",
        "ai21.",
        "deepseek.",
        "qwen.",
        "openai.gpt-oss",
        "writer.",
    ];
    let id = match lower.split_once('.') {
        Some((region, rest)) if REGIONS.contains(&region) => rest,
        _ => lower,
    };
    lower.starts_with("arn:aws") && lower.contains(":bedrock:")
        || VENDORS.iter().any(|vendor| id.starts_with(vendor))
}

/// Claude has its own body on Bedrock; all other models use Converse.
pub(crate) fn bedrock_format(model: &str) -> Format {
    if model.contains("anthropic.") && !model.starts_with("arn:") {
        Format::BedrockInvoke
    } else {
        Format::BedrockConverse
    }
}

/// The region in the name of a Bedrock host.
pub(crate) fn region_of(url: &Url) -> Option<String> {
    let host = url.host_str()?;
    let region =
        host.strip_prefix("bedrock-runtime.").or_else(|| host.strip_prefix("bedrock-runtime-fips."))?;
    region.split('.').next().map(str::to_owned)
}

/// The AWS credential from the variables.
pub(crate) fn aws_credential(env: &Env, region: &str) -> Credential {
    match (env.get("AWS_ACCESS_KEY_ID"), env.get("AWS_SECRET_ACCESS_KEY")) {
        (Some(id), Some(secret)) => Credential::Aws {
            credentials: AwsCredentials {
                access_key_id: id.to_owned(),
                secret_access_key: secret.to_owned(),
                session_token: env.get("AWS_SESSION_TOKEN").map(str::to_owned),
            },
            region: region.to_owned(),
        },
        _ => Credential::Missing {
            variables: ["AWS_BEARER_TOKEN_BEDROCK", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]
                .map(str::to_owned)
                .to_vec(),
        },
    }
}

/// Turns an endpoint into one of an Azure resource: the deployment is in the path, not in the body. An address that
/// ends with `/openai/v1` is Foundry's and stays unchanged. A version in the address applies unless another is given.
pub(crate) fn azure_resource(endpoint: &mut Endpoint, version: Option<&str>) {
    if endpoint.base_url.path().trim_end_matches('/').ends_with("/openai/v1") {
        return;
    }
    let written = endpoint.base_url.query_pairs().find(|(name, _)| name == "api-version");
    let written = written.map(|(_, version)| version.into_owned());
    let version = version.map(str::to_owned).or(written).unwrap_or_else(|| AZURE_API_VERSION.to_owned());
    let deployment = percent_encoded(&endpoint.model);
    endpoint.path = Some(format!("/openai/deployments/{deployment}/chat/completions"));
    endpoint.base_url.query_pairs_mut().clear().append_pair("api-version", &version);
    endpoint.model_in_body = false;
    let lower = endpoint.model.to_ascii_lowercase();
    let reasons = ["o1", "o3", "o4", "gpt-5"].iter().any(|start| lower.starts_with(start));
    endpoint.limit_key = if reasons { LimitKey::MaxCompletionTokens } else { LimitKey::MaxTokens };
}

fn parse_address(text: &str, variable: &str) -> Result<Url, RouteError> {
    let url = Url::parse(text).ok().filter(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.username().is_empty()
            && url.password().is_none()
    });
    url.ok_or_else(|| {
        // The message does not repeat the value, which may contain a secret.
        RouteError::new(
            format!("{variable} is not an http or https address"),
            "set it to an address without a user in it",
        )
    })
}
