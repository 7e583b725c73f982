//! Uploads of large files: the hub tells where a file goes, whole or in parts, and checks that it arrived.

use http::Method;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value, json};
use url::Url;

use super::REVISION;
use super::account::checked_address;
use super::call::{Answer, Authority, Call, Connection};
use super::error::HubError;
use super::name::Repository;
use super::source::{Payload, Segment, Source};

/// The media type of this protocol.
const LFS_JSON: &str = "application/vnd.git-lfs+json";

/// Most parts of an upload; the storage accepts no more.
const MOST_PARTS: u64 = 10_000;

#[derive(Debug)]
enum Upload {
    Whole(Action),
    /// In parts of equal size, which a last request joins.
    Parts {
        size: u64,
        addresses: Vec<Url>,
        completion: Url,
    },
}

/// An address with the headers that it requires.
#[derive(Debug)]
struct Action {
    url: Url,
    headers: HeaderMap,
}

/// Uploads a file unless the hub has it already.
pub(super) async fn upload(
    connection: &Connection<'_>,
    repository: &Repository,
    source: &Source,
) -> Result<(), HubError> {
    let answer = batch(connection, repository, source).await?;
    let object = object(connection, &answer, source)?;
    let actions = match object.get("actions") {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Object(actions)) => actions,
        Some(_) => return Err(answer.malformed("`actions` is not an object")),
    };
    if let Some(action) = actions.get("upload") {
        match upload_of(&answer, action, source)? {
            Upload::Whole(action) => put_whole(connection, action, source).await?,
            Upload::Parts { size, addresses, completion } => {
                put_parts(connection, source, size, &addresses, completion).await?;
            }
        }
    }
    match actions.get("verify") {
        Some(action) => verify(connection, action_of(&answer, action)?, source).await,
        None => Ok(()),
    }
}

async fn batch(
    connection: &Connection<'_>,
    repository: &Repository,
    source: &Source,
) -> Result<Answer, HubError> {
    let name = format!("{}.git", repository.name());
    let path = ["datasets", repository.owner(), &name, "info", "lfs", "objects", "batch"];
    let mut call = Call::new(Method::POST, connection.address(&path), Authority::Token).json(&json!({
        "operation": "upload",
        "transfers": ["basic", "multipart"],
        "hash_algo": "sha256",
        "ref": {"name": REVISION},
        "objects": [{"oid": source.digest.hex(), "size": source.size}],
    }));
    (call.content_type, call.accept) = (LFS_JSON, LFS_JSON);
    let answer = connection.send(&call).await?;
    if answer.status.is_success() {
        return Ok(answer);
    }
    if answer.status.as_u16() == 403 {
        return Err(super::no_write_right(connection, repository, answer.detail()));
    }
    Err(connection.refusal(&answer))
}

fn object(
    connection: &Connection<'_>,
    answer: &Answer,
    source: &Source,
) -> Result<Map<String, Value>, HubError> {
    let value = answer.json()?;
    let objects = value.get("objects").and_then(Value::as_array);
    let objects = objects.ok_or_else(|| answer.malformed("`objects` is missing"))?;
    let oid = source.digest.hex();
    let object = objects
        .iter()
        .find(|object| object.get("oid").and_then(Value::as_str) == Some(&oid))
        .and_then(Value::as_object)
        .ok_or_else(|| answer.malformed(format!("`objects` says nothing about {}", source.path)))?;
    if let Some(error) = object.get("error") {
        let said = error.get("message").and_then(Value::as_str).unwrap_or_default();
        let detail = connection.scrubbed(said);
        return Err(match error.get("code").and_then(Value::as_u64) {
            Some(413) => HubError::TooLarge { what: source.path.to_owned(), detail },
            _ => answer.malformed(format!("{} cannot be uploaded: {detail}", source.path)),
        });
    }
    Ok(object.clone())
}

fn upload_of(answer: &Answer, action: &Value, source: &Source) -> Result<Upload, HubError> {
    let header = action.get("header").and_then(Value::as_object);
    let Some(size) = header.and_then(|header| header.get("chunk_size")) else {
        return Ok(Upload::Whole(action_of(answer, action)?));
    };
    // The hub writes the size as a string.
    let size = size.as_u64().or_else(|| size.as_str().and_then(|text| text.parse().ok()));
    let size = size.filter(|size| *size > 0).ok_or_else(|| answer.malformed("`chunk_size` is not a size"))?;
    let mut parts: Vec<(u64, &Value)> = header
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| key.parse().ok().map(|number| (number, value)))
        .collect();
    parts.sort_by_key(|(number, _)| *number);
    let expected = source.size.div_ceil(size);
    if expected > MOST_PARTS || parts.len() as u64 != expected {
        let reason = format!("{} parts of {size} bytes for a file of {} bytes", parts.len(), source.size);
        return Err(answer.malformed(reason));
    }
    let addresses = parts.iter().map(|(_, value)| address(answer, value)).collect::<Result<Vec<_>, _>>()?;
    Ok(Upload::Parts { size, addresses, completion: action_of(answer, action)?.url })
}

fn address(answer: &Answer, value: &Value) -> Result<Url, HubError> {
    let text = value.as_str().ok_or_else(|| answer.malformed("an address for the upload is not a text"))?;
    checked_address("an upload", text)
}

fn action_of(answer: &Answer, action: &Value) -> Result<Action, HubError> {
    let url = match action.get("href") {
        Some(href) => address(answer, href)?,
        None => return Err(answer.malformed("an action has no `href`")),
    };
    let mut headers = HeaderMap::new();
    for (name, value) in action.get("header").and_then(Value::as_object).into_iter().flatten() {
        // The hub lists the parts of an upload among its headers.
        if name == "chunk_size" || name.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        let name = HeaderName::from_bytes(name.as_bytes());
        let value = value.as_str().and_then(|value| HeaderValue::from_str(value).ok());
        let (Ok(name), Some(mut value)) = (name, value) else {
            return Err(answer.malformed("an action has a header that cannot be sent"));
        };
        // The HTTP client sets these itself.
        if !matches!(name.as_str(), "content-length" | "transfer-encoding" | "host" | "connection") {
            value.set_sensitive(true);
            headers.insert(name, value);
        }
    }
    Ok(Action { url, headers })
}

async fn put_whole(connection: &Connection<'_>, action: Action, source: &Source) -> Result<(), HubError> {
    let mut call = Call::new(Method::PUT, action.url, Authority::Address);
    call.headers = action.headers;
    call.content_type = "application/octet-stream";
    let whole = Segment::Raw { source: source.clone(), from: 0, length: source.size };
    call.payload = Payload::new(vec![whole]);
    connection.succeed(&call).await.map(drop)
}

async fn put_parts(
    connection: &Connection<'_>,
    source: &Source,
    size: u64,
    addresses: &[Url],
    completion: Url,
) -> Result<(), HubError> {
    let mut parts = Vec::with_capacity(addresses.len());
    let mut from = 0;
    for (index, address) in addresses.iter().enumerate() {
        let length = size.min(source.size - from);
        let mut call = Call::new(Method::PUT, address.clone(), Authority::Address);
        call.content_type = "application/octet-stream";
        call.payload = Payload::new(vec![Segment::Raw { source: source.clone(), from, length }]);
        let answer = connection.succeed(&call).await?;
        let Some(etag) = answer.etag.as_deref().filter(|etag| !etag.is_empty()) else {
            return Err(answer.malformed(format!("part {} was taken without an ETag", index + 1)));
        };
        parts.push(json!({"partNumber": index + 1, "etag": etag}));
        from += length;
    }
    let mut call = Call::new(Method::POST, completion, Authority::Address)
        .json(&json!({"oid": source.digest.hex(), "parts": parts}));
    (call.content_type, call.accept) = (LFS_JSON, LFS_JSON);
    connection.succeed(&call).await.map(drop)
}

async fn verify(connection: &Connection<'_>, action: Action, source: &Source) -> Result<(), HubError> {
    let is_hub = action.url.origin() == connection.account.endpoint.origin();
    let authority = if is_hub { Authority::Token } else { Authority::Address };
    let mut call = Call::new(Method::POST, action.url, authority)
        .json(&json!({"oid": source.digest.hex(), "size": source.size}));
    call.headers = action.headers;
    (call.content_type, call.accept) = (LFS_JSON, LFS_JSON);
    connection.succeed(&call).await.map(drop)
}
