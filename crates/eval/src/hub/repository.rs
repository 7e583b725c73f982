//! Whose token it is, and the dataset that the results go to.

use http::Method;
use serde_json::{Value, json};

use super::Visibility;
use super::call::{Authority, Call, Connection};
use super::error::HubError;
use super::name::{Repository, WantedName};

/// The user that the token belongs to. A token that can only read is refused before anything is sent.
pub(super) async fn user(connection: &Connection<'_>, wanted: &WantedName) -> Result<String, HubError> {
    let call = Call::new(Method::GET, connection.address(&["api", "whoami-v2"]), Authority::Token);
    let answer = connection.send(&call).await?;
    // The hub answers a token that it does not like with either.
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

/// Makes the dataset unless it exists, and says who can see it. That is asked even of a new one: results that were to be
/// private must not depend on the hub having understood the wish.
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
        // A token may be allowed to write to a dataset that it could not make.
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
            // The token itself was accepted before.
            401 | 403 => super::no_write_right(connection, repository, answer.detail()),
            409 => HubError::OtherType { repository: repository.to_string(), detail: answer.detail() },
            200..=299 => answer.malformed("the dataset was made and is not there"),
            _ => connection.refusal(&answer),
        }),
    }
}

/// Who can see the dataset, if it is one that the token can see.
async fn existing(
    connection: &Connection<'_>,
    repository: &Repository,
) -> Result<Option<Visibility>, HubError> {
    let url = connection.address(&["api", "datasets", repository.owner(), repository.name()]);
    let answer = connection.send(&Call::new(Method::GET, url, Authority::Token)).await?;
    match answer.status.as_u16() {
        200..=299 => {}
        // The hub hides what a token may not see behind any of these.
        401 | 403 | 404 => return Ok(None),
        _ => return Err(connection.refusal(&answer)),
    }
    match answer.json()?.get("private").and_then(Value::as_bool) {
        Some(true) => Ok(Some(Visibility::Private)),
        Some(false) => Ok(Some(Visibility::Public)),
        None => Err(answer.malformed("`private` is missing")),
    }
}
