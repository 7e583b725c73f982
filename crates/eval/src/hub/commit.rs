//! One commit with all files. The hub decides for each file whether it goes into the commit or is uploaded before.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use serde_json::{Value, json};

use super::REVISION;
use super::call::{Answer, Authority, Call, Connection};
use super::error::HubError;
use super::lfs;
use super::name::Repository;
use super::source::{Payload, Segment, Source};
use aec_http::excerpt;

#[derive(Debug)]
pub(super) struct Made {
    pub(super) id: String,
    pub(super) page: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Inside,
    /// As a large file that the commit refers to.
    Large,
}

/// Uploads the large files and commits everything.
pub(super) async fn send(
    connection: &Connection<'_>,
    repository: &Repository,
    summary: &str,
    sources: &[Source],
) -> Result<Made, HubError> {
    let modes = modes(connection, repository, sources).await?;
    let header = json!({"key": "header", "value": {"summary": excerpt(summary), "description": ""}});
    let mut segments = vec![line(&header)];
    for (source, mode) in sources.iter().zip(modes) {
        match mode {
            Mode::Inside => segments.extend(inside(source)),
            Mode::Large => {
                lfs::upload(connection, repository, source).await?;
                segments.push(line(&json!({"key": "lfsFile", "value": {
                    "path": source.path,
                    "algo": "sha256",
                    "oid": source.digest.hex(),
                    "size": source.size,
                }})));
            }
        }
    }
    let mut call = Call::new(Method::POST, address(connection, repository, "commit"), Authority::Token);
    call.content_type = "application/x-ndjson";
    call.payload = Payload::new(segments);
    let answer = allowed(connection, repository, connection.send(&call).await?)?;
    let value = answer.json()?;
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(ToOwned::to_owned);
    let id = text("commitOid").ok_or_else(|| answer.malformed("`commitOid` is missing"))?;
    Ok(Made { id: excerpt(&id), page: text("commitUrl").map(|page| excerpt(&page)) })
}

async fn modes(
    connection: &Connection<'_>,
    repository: &Repository,
    sources: &[Source],
) -> Result<Vec<Mode>, HubError> {
    let entry = |source: &Source| json!({"path": source.path, "sample": STANDARD.encode(&source.sample), "size": source.size});
    let url = address(connection, repository, "preupload");
    let call = Call::new(Method::POST, url, Authority::Token)
        .json(&json!({"files": sources.iter().map(entry).collect::<Vec<_>>()}));
    let answer = allowed(connection, repository, connection.send(&call).await?)?;
    let value = answer.json()?;
    let files = value.get("files").and_then(Value::as_array);
    let files = files.ok_or_else(|| answer.malformed("`files` is missing"))?;
    let mode = |source: &Source| {
        // The storage accepts no empty files.
        if source.size == 0 {
            return Ok(Mode::Inside);
        }
        let file = files.iter().find(|file| file.get("path").and_then(Value::as_str) == Some(source.path));
        match file.and_then(|file| file.get("uploadMode")).and_then(Value::as_str) {
            Some("regular") => Ok(Mode::Inside),
            Some("lfs") => Ok(Mode::Large),
            _ => Err(answer.malformed(format!("it does not say how {} is uploaded", source.path))),
        }
    };
    sources.iter().map(mode).collect()
}

/// A file inside the commit. Its content is not held in memory.
fn inside(source: &Source) -> [Segment; 3] {
    let path = Value::from(source.path);
    let start = format!(r#"{{"key":"file","value":{{"path":{path},"encoding":"base64","content":""#);
    [Segment::Text(start.into()), Segment::Encoded(source.clone()), Segment::Text("\"}}\n".into())]
}

fn line(value: &Value) -> Segment {
    Segment::Text(format!("{value}\n").into())
}

fn address(connection: &Connection<'_>, repository: &Repository, step: &str) -> url::Url {
    connection.address(&["api", "datasets", repository.owner(), repository.name(), step, REVISION])
}

/// The answer, or an error if the token may not write here.
fn allowed(connection: &Connection<'_>, repository: &Repository, answer: Answer) -> Result<Answer, HubError> {
    match answer.status.as_u16() {
        200..=299 => Ok(answer),
        // The hub answers 404 for a dataset that exists but is not writable with this token.
        403 | 404 => Err(super::no_write_right(connection, repository, answer.detail())),
        _ => Err(connection.refusal(&answer)),
    }
}
