//! An endpoint of a model: address, wire format, credentials, limits. Vendors differ only in this data.

use std::time::Duration;

use aec_base::secret::Secret;
use http::{HeaderName, HeaderValue};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::dialect::{Dialect, LimitKey, anthropic, bedrock, converse, openai};
use crate::message::Request;

#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Its name in events and messages, such as `openai` or `qwen3#2`.
    pub label: String,
    /// The provider whose prices apply.
    pub provider: Provider,
    /// Its id in the endpoints file.
    pub endpoint_id: Option<String>,
    pub format: Format,
    /// The address to which the format's path is appended.
    pub base_url: Url,
    /// Path to use instead of the format's own.
    pub path: Option<String>,
    /// The model as the provider names it.
    pub model: String,
    /// Whether the body names the model.
    pub model_in_body: bool,
    pub limit_key: LimitKey,
    pub credential: Credential,
    /// Further headers. Their values are never printed.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub stream: StreamMode,
    pub cache_prompt: bool,
    pub limits: Limits,
    pub timeouts: Timeouts,
}

impl Endpoint {
    /// An endpoint with defaults.
    pub fn new(provider: Provider, format: Format, base_url: Url, model: impl Into<String>) -> Self {
        Self {
            label: provider.name().to_owned(),
            provider,
            endpoint_id: None,
            format,
            base_url,
            path: None,
            model: model.into(),
            model_in_body: matches!(format, Format::OpenAiChat | Format::AnthropicMessages),
            limit_key: match provider {
                Provider::OpenAi | Provider::Azure => LimitKey::MaxCompletionTokens,
                _ => LimitKey::MaxTokens,
            },
            credential: Credential::None,
            headers: Vec::new(),
            stream: StreamMode::Auto,
            cache_prompt: true,
            limits: Limits::default(),
            timeouts: Timeouts::default(),
        }
    }

    /// The address without possible secrets.
    pub fn shown_url(&self) -> String {
        let mut url = self.base_url.clone();
        url.set_query(None);
        url.set_fragment(None);
        // Addresses with a user are already refused when they are read; this is a second safeguard.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.to_string()
    }

    /// Whether it is on this machine.
    pub fn is_loopback(&self) -> bool {
        aec_http::is_loopback(&self.base_url)
    }
}

/// Whose service it is, for prices and for the rules of its wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    /// `OpenAI`.
    OpenAi,
    /// Azure `OpenAI` and Azure AI Foundry.
    Azure,
    Anthropic,
    /// Amazon Bedrock.
    Bedrock,
    /// Together AI.
    Together,
    /// Prime Intellect.
    Prime,
    /// Part of this program.
    Offline,
    /// Any other provider.
    Other,
}

impl Provider {
    /// The name in the price file.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Azure => "azure",
            Self::Anthropic => "anthropic",
            Self::Bedrock => "bedrock",
            Self::Together => "together",
            Self::Prime => "prime",
            Self::Offline => "offline",
            Self::Other => "other",
        }
    }

    /// The provider that owns a host.
    pub fn of_host(host: &str) -> Self {
        let host = host.to_ascii_lowercase();
        let below = |domain: &str| host == domain || host.ends_with(&format!(".{domain}"));
        if below("api.openai.com") {
            Self::OpenAi
        } else if below("api.anthropic.com") {
            Self::Anthropic
        } else if below("openai.azure.com")
            || below("services.ai.azure.com")
            || below("cognitiveservices.azure.com")
        {
            Self::Azure
        } else if below("api.together.ai") || below("api.together.xyz") {
            Self::Together
        } else if below("pinference.ai") {
            Self::Prime
        } else if host.starts_with("bedrock-runtime") && below("amazonaws.com") {
            Self::Bedrock
        } else {
            Self::Other
        }
    }
}

/// A wire format by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// `OpenAI` chat completions.
    #[serde(rename = "openai_chat_completions")]
    OpenAiChat,
    AnthropicMessages,
    /// Bedrock with Anthropic bodies.
    BedrockInvoke,
    /// Bedrock's own format.
    BedrockConverse,
}

impl Format {
    pub fn dialect(self) -> &'static dyn Dialect {
        match self {
            Self::OpenAiChat => &openai::OpenAiChat,
            Self::AnthropicMessages => &anthropic::AnthropicMessages,
            Self::BedrockInvoke => &bedrock::BedrockInvoke,
            Self::BedrockConverse => &converse::BedrockConverse,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai_chat_completions",
            Self::AnthropicMessages => "anthropic_messages",
            Self::BedrockInvoke => "bedrock_invoke",
            Self::BedrockConverse => "bedrock_converse",
        }
    }
}

/// How an endpoint lets us in.
#[derive(Clone, Debug)]
pub enum Credential {
    /// No credentials are required.
    None,
    /// A header with a key.
    Key {
        /// The variable that holds the key.
        variable: String,
        value: Secret,
        placement: KeyPlacement,
    },
    /// Requests are signed.
    Aws {
        credentials: crate::sign::AwsCredentials,
        /// Part of the signature.
        region: String,
    },
    /// None of these variables is set.
    Missing {
        /// Any one of them suffices.
        variables: Vec<String>,
    },
}

/// The header of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyPlacement {
    /// `authorization: Bearer …`
    Bearer,
    /// `x-api-key: …`
    XApiKey,
    /// `api-key: …`
    ApiKey,
}

impl Credential {
    /// The variables that supply it.
    pub fn variables(&self) -> Vec<String> {
        match self {
            Self::None => Vec::new(),
            Self::Key { variable, .. } => vec![variable.clone()],
            Self::Aws { .. } => vec!["AWS_ACCESS_KEY_ID".to_owned(), "AWS_SECRET_ACCESS_KEY".to_owned()],
            Self::Missing { variables } => variables.clone(),
        }
    }
}

/// Whether answers are streamed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StreamMode {
    /// When the answer may be long, or the server insists.
    #[default]
    Auto,
    /// Every time.
    Always,
    /// Never.
    Never,
}

impl StreamMode {
    /// Whether to stream the answer to this request. A long answer without streaming is silent for minutes and looks
    /// like a dead connection.
    pub fn streams(self, request: &Request) -> bool {
        const LONG: u32 = 4096;
        match self {
            Self::Auto => request.sampling.output_limit() > LONG,
            Self::Always => true,
            Self::Never => false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most concurrent calls.
    pub max_concurrency: u32,
    /// Concurrent calls at the start.
    pub first_concurrency: u32,
    pub requests_per_minute: Option<u32>,
    pub tokens_per_minute: Option<u32>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_concurrency: 4096,
            first_concurrency: 64,
            requests_per_minute: None,
            tokens_per_minute: None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Until the first byte of an answer, or all of it without streaming.
    pub answer: Duration,
    /// Between two pieces of a stream.
    pub idle: Duration,
    /// Until the end of a stream.
    pub stream: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            answer: Duration::from_mins(10),
            // Some models think for minutes without output.
            idle: Duration::from_mins(5),
            stream: Duration::from_hours(1),
        }
    }
}
