//! The environments hub: publishes packages and queries published ones.
//!
//! Publishing needs no Python. [`Package::build`] packs a directory, [`push`] uploads it, and [`record_push`] writes
//! the note that Prime's own program looks for.

mod files;
mod ignore;
mod note;
mod package;
mod project;
mod runtime;
mod wheel;
mod zip;

use serde_json::{Value, json};

pub use note::{NoteError, record_push, upstream};
pub use package::{LARGE_SOURCE, Package, PackageError};
pub use runtime::Runtime;

use crate::service::client::{ApiError, Client, segment};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Visibility {
    /// Only its owner.
    #[default]
    Private,
    Public,
}

impl Visibility {
    pub fn hub_name(self) -> &'static str {
        match self {
            Self::Private => "PRIVATE",
            Self::Public => "PUBLIC",
        }
    }
}

impl std::str::FromStr for Visibility {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.to_ascii_uppercase().as_str() {
            "PRIVATE" => Ok(Self::Private),
            "PUBLIC" => Ok(Self::Public),
            _ => Err(format!("{text:?} is not a visibility: use PRIVATE or PUBLIC")),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushOptions {
    /// Name on the hub, if it is not the package's.
    pub name: Option<String>,
    pub visibility: Visibility,
    pub owner: Option<String>,
    pub team: Option<String>,
    /// Generation of verifiers, if it is not the one of the requirements.
    pub runtime: Option<Runtime>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pushed {
    pub environment_id: String,
    pub owner: String,
    /// Name on the hub.
    pub name: String,
    pub version: String,
    /// Hash by which the hub identifies this version.
    pub content_hash: String,
    pub wheel_sha256: String,
    /// The declared generation of verifiers.
    pub runtime: Option<Runtime>,
    pub created: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum PushError {
    #[error("give either an owner or a team, not both")]
    TwoOwners,
    #[error(
        "the account has no username, which published environments need; choose one on Prime's profile page"
    )]
    NoUsername,
    #[error(
        "{owner}/{name} has a version with exactly this content; change something, or raise the version in \
         pyproject.toml ({source})"
    )]
    AlreadyPublished {
        owner: String,
        /// Name on the hub.
        name: String,
        source: ApiError,
    },
    #[error("the hub did not accept the version: {message}")]
    NotFinalized { message: String },
    #[error(transparent)]
    Api(#[from] ApiError),
}

/// Publishes a package: finds or creates the environment, then uploads wheel and source.
pub async fn push(client: &Client, package: &Package, options: &PushOptions) -> Result<Pushed, PushError> {
    let name = options.name.as_deref().unwrap_or(&package.name);
    let body = resolve_body(client, name, options)?;
    let resolved = client.post(&["environmentshub", "resolve"], Some(&body)).await.map_err(|error| {
        let no_name = error.to_string().to_lowercase().contains("missing a username");
        if no_name { PushError::NoUsername } else { PushError::Api(error) }
    })?;
    let call = "POST /api/v1/environmentshub/resolve";
    let environment_id = text(&resolved, "id", call)?;
    let owner = match resolved.get("owner").and_then(|owner| owner.get("name")).and_then(Value::as_str) {
        Some(owner) => owner.to_owned(),
        None => return Err(ApiError::malformed(call, "it names no owner").into()),
    };
    let runtime = options.runtime.or(package.runtime);
    let pushed = Pushed {
        environment_id,
        owner,
        name: name.to_owned(),
        version: package.version.clone(),
        content_hash: package.content_hash.clone(),
        wheel_sha256: package.wheel_sha256.clone(),
        runtime,
        created: resolved.get("created").and_then(Value::as_bool).unwrap_or(false),
    };
    let upload = Upload { client, pushed: &pushed };
    upload.file("wheels", "wheel_id", &package.wheel_body(runtime), &package.wheel).await?;
    let finalized =
        upload.file("versions", "version_id", &package.source_body(name, runtime), &package.source).await?;
    if finalized.get("success").and_then(Value::as_bool) == Some(false) {
        let message = finalized.get("message").and_then(Value::as_str).unwrap_or("no reason given");
        return Err(PushError::NotFinalized { message: message.to_owned() });
    }
    Ok(pushed)
}

struct Upload<'a> {
    client: &'a Client,
    pushed: &'a Pushed,
}

impl Upload<'_> {
    /// Announces a file, uploads it and completes the upload. If the hub already has the file, it asks for no upload.
    async fn file(
        &self,
        collection: &str,
        id_key: &str,
        body: &Value,
        bytes: &bytes::Bytes,
    ) -> Result<Value, PushError> {
        let environment = segment("environment id", &self.pushed.environment_id)?;
        let path = ["environmentshub", environment, collection];
        let announced = self.client.post(&path, Some(body)).await.map_err(|error| self.explain(error))?;
        let call = format!("POST /api/v1/environmentshub/{environment}/{collection}");
        let id = text(&announced, id_key, &call)?;
        match announced.get("upload_url") {
            None | Some(Value::Null) => return Ok(json!({})),
            Some(Value::String(address)) => self.client.upload(address, bytes).await?,
            Some(_) => return Err(ApiError::malformed(call, "`upload_url` is not an address").into()),
        }
        let id = segment(id_key, &id)?;
        Ok(self.client.post(&["environmentshub", environment, collection, id, "finalize"], None).await?)
    }

    fn explain(&self, error: ApiError) -> PushError {
        let said = error.to_string().to_lowercase();
        if said.contains("content hash") && said.contains("already exists") {
            let (owner, name) = (self.pushed.owner.clone(), self.pushed.name.clone());
            return PushError::AlreadyPublished { owner, name, source: error };
        }
        PushError::Api(error)
    }
}

fn resolve_body(client: &Client, name: &str, options: &PushOptions) -> Result<Value, PushError> {
    let mut body = json!({"name": name, "visibility": options.visibility.hub_name()});
    match (&options.owner, &options.team) {
        (Some(_), Some(_)) => return Err(PushError::TwoOwners),
        (Some(owner), None) => body["owner_slug"] = json!(owner),
        (None, Some(team)) => body["team_slug"] = json!(team),
        (None, None) => {
            if let Some(team) = &client.settings().team_id {
                body[if is_team_id(team) { "team_id" } else { "team_slug" }] = json!(team);
            }
        }
    }
    Ok(body)
}

/// Ids of teams have 25 characters and begin with `c`; settings may contain the short name instead.
fn is_team_id(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.len() == 25 && text.starts_with('c') && text.bytes().all(plain)
}

/// An environment on the hub, `owner/name` with an optional `@version`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvironmentName {
    pub owner: String,
    pub name: String,
    /// Absent for the latest.
    pub version: Option<String>,
}

impl std::str::FromStr for EnvironmentName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("{text:?} is not an environment of the hub: write owner/name");
        let (owner, rest) = text.split_once('/').ok_or_else(bad)?;
        let (name, version) = match rest.split_once('@') {
            Some((name, version)) => (name, Some(version.to_owned())),
            None => (rest, None),
        };
        for part in [owner, name].into_iter().chain(version.as_deref()) {
            segment("environment", part).map_err(|_| bad())?;
        }
        Ok(Self { owner: owner.to_owned(), name: name.to_owned(), version })
    }
}

impl std::fmt::Display for EnvironmentName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}/{}", self.owner, self.name)?;
        self.version.iter().try_for_each(|version| write!(formatter, "@{version}"))
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct EnvironmentDetails {
    /// The id that hosted evaluations use.
    pub id: String,
    pub version: Option<String>,
    pub content_hash: Option<String>,
    pub visibility: Option<String>,
    /// The whole answer.
    pub raw: Value,
}

/// Details of a published version.
pub async fn details(client: &Client, name: &EnvironmentName) -> Result<EnvironmentDetails, ApiError> {
    let version = format!("@{}", name.version.as_deref().unwrap_or("latest"));
    let path = ["environmentshub", segment("owner", &name.owner)?, segment("name", &name.name)?, &version];
    let raw = client.get(&path, &[]).await?;
    let field = |key: &str| raw.get(key).and_then(Value::as_str).map(str::to_owned);
    Ok(EnvironmentDetails {
        id: text(&raw, "id", &format!("GET /api/v1/{}", path.join("/")))?,
        version: field("semantic_version"),
        content_hash: field("content_hash"),
        visibility: field("visibility"),
        raw,
    })
}

/// The result of the hub's own check of an environment.
#[derive(Clone, Debug, PartialEq)]
pub struct EnvironmentStatus {
    /// Absent if none was published.
    pub latest_version: Option<String>,
    /// State of the check, such as `SUCCESS` or `FAILED`.
    pub action: Option<String>,
    /// The whole answer.
    pub raw: Value,
}

pub async fn status(client: &Client, name: &EnvironmentName) -> Result<EnvironmentStatus, ApiError> {
    let path = ["environmentshub", segment("owner", &name.owner)?, segment("name", &name.name)?, "status"];
    let raw = client.get(&path, &[]).await?;
    let latest = raw.get("latest_version");
    let version = latest.and_then(|latest| match latest {
        Value::Object(version) => version.get("semantic_version").or_else(|| version.get("version")),
        other => Some(other),
    });
    Ok(EnvironmentStatus {
        latest_version: version.and_then(Value::as_str).map(str::to_owned),
        action: raw.get("action").and_then(|action| action.get("status")?.as_str()).map(str::to_owned),
        raw,
    })
}

fn text(value: &Value, key: &str, call: &str) -> Result<String, ApiError> {
    match value.get(key).and_then(Value::as_str) {
        Some(text) if !text.is_empty() => Ok(text.to_owned()),
        _ => Err(ApiError::malformed(call, format!("it has no `{key}`"))),
    }
}
