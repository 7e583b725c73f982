//! The user that a token belongs to, and the dataset that the results go to.

use http::Method;
use serde_json::{Value, json};

use super::Visibility;
use super::call::{Authority, Call, Connection};
use super::error::HubError;
use super::name::{Repository, WantedName};

/// The user that the token belongs to. A read-only token is refused before anything is sent.
pub(super) async fn user(connection: &Connection<'_>, wanted: &WantedName) -> Result<String, HubError> {
    let call = Call::new(Method::GET, connection.address(&["api", "whoami-v2"]), Authority::Token);
    let answer = connection.send(&call).await?;
    // The hub answers an invalid token with either status.
    if matches!(answer.status.as_u16(), 401 | 403) {
        let origin = connection.account.origin.clone();
        return Err(HubError::TokenRefused { origin, detail: answer.detail() });
    }
    if !answer.status.is_success() {
        return Err(connection.refusal(&answer));
    }
    let value = answer.json()?;
    let name = value.get("name").and_then(Value::as_str);
    let name = name.ok_or_else(|| answer.malformed("`name` is missing"))?;
    let role = value.pointer("/auth/accessToken/role").and_then(Value::as_str);
    if role == Some("read") {
        return Err(HubError::NoWriteRight {
            origin: connection.account.origin.clone(),
            repository: wanted.owned_by(name)?.to_string(),
            detail: "the token is for reading only".to_owned(),
        });
    }
    Ok(name.to_owned())
}

/// Creates the dataset unless it exists, and returns who can see it. The hub is asked even about a new one: private
/// results must not depend on the hub having understood the request.
pub(super) async fn create(
    connection: &Connection<'_>,
    repository: &Repository,
    wanted: Visibility,
) -> Result<Visibility, HubError> {
    let url = connection.address(&["api", "repos", "create"]);
    let call = Call::new(Method::POST, url, Authority::Token).json(&json!({
        "type": "dataset",
        "organization": repository.owner(),
        "name": repository.name(),
        "visibility": match wanted {
            Visibility::Private => "private",
            Visibility::Public => "public",
        },
    }));
    let answer = connection.send(&call).await?;
    match answer.status.as_u16() {
        // A token may be allowed to write to a dataset that it may not create.
        200..=299 | 401..=403 | 409 => {}
        400 | 422 => {
            return Err(HubError::Name { name: repository.to_string(), reason: answer.detail() });
        }
        _ => return Err(connection.refusal(&answer)),
    }
    match (existing(connection, repository).await?, wanted) {
        (Some(Visibility::Public), Visibility::Private) => {
            Err(HubError::AlreadyPublic { repository: repository.to_string() })
        }
        (Some(found), _) => Ok(found),
        (None, _) => Err(match answer.status.as_u16() {
            // The hub has already accepted the token itself.
            401 | 403 => super::no_write_right(connection, repository, answer.detail()),
            409 => HubError::OtherType { repository: repository.to_string(), detail: answer.detail() },
            200..=299 => answer.malformed("the dataset was created but does not exist"),
            _ => connection.refusal(&answer),
        }),
    }
}

/// Who can see the dataset; absent if the token cannot see it.
async fn existing(
    connection: &Connection<'_>,
    repository: &Repository,
) -> Result<Option<Visibility>, HubError> {
    let url = connection.address(&["api", "datasets", repository.owner(), repository.name()]);
    let answer = connection.send(&Call::new(Method::GET, url, Authority::Token)).await?;
    match answer.status.as_u16() {
        200..=299 => {}
        // The hub answers with any of these for a dataset that the token may not see.
        401 | 403 | 404 => return Ok(None),
        _ => return Err(connection.refusal(&answer)),
    }
    match answer.json()?.get("private").and_then(Value::as_bool) {
        Some(true) => Ok(Some(Visibility::Private)),
        Some(false) => Ok(Some(Visibility::Public)),
        None => Err(answer.malformed("`private` is missing")),
    }
}
