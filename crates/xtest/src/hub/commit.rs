//! Uploads and commits.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Value, json};

use super::{Answer, RecordedRequest, StandInState, refusal};
use crate::sha256;

/// Answers for each file whether it is large.
pub(super) fn preupload(state: &StandInState, id: &str, body: &Value) -> Answer {
    if !state.datasets.contains_key(id) {
        return refusal(404, "Repository not found");
    }
    let Some(files) = body.get("files").and_then(Value::as_array) else {
        return refusal(400, "files must be a list");
    };
    let mut answers = Vec::new();
    for file in files {
        let path = file.get("path").and_then(Value::as_str);
        let size = file.get("size").and_then(Value::as_u64);
        let sample = file.get("sample").and_then(Value::as_str).and_then(|text| STANDARD.decode(text).ok());
        let (Some(path), Some(size), Some(sample)) = (path, size, sample) else {
            return refusal(400, "a file needs path, size and sample");
        };
        if sample.len() as u64 != size.min(512) {
            return refusal(400, "the sample must be the first 512 bytes");
        }
        let mode = if size >= state.large_from { "lfs" } else { "regular" };
        answers.push(json!({"path": path, "uploadMode": mode, "shouldIgnore": false}));
    }
    Answer::json(&json!({"files": answers}))
}

pub(super) fn commit(state: &mut StandInState, id: &str, request: &RecordedRequest) -> Answer {
    if request.header("content-type") != Some("application/x-ndjson") {
        return refusal(415, "Content-Type must be application/x-ndjson");
    }
    if !state.datasets.contains_key(id) {
        return refusal(404, "Repository not found");
    }
    match contents(state, &request.body) {
        Ok((summary, files)) => {
            let commit = sha256(&request.body)[..40].to_owned();
            let dataset = state.datasets.entry(id.to_owned()).or_default();
            dataset.files.extend(files);
            dataset.commits.push(summary);
            Answer::json(&json!({
                "success": true,
                "commitOid": commit,
                "commitUrl": format!("{}/datasets/{id}/commit/{commit}", state.root),
                "hookOutput": "",
            }))
        }
        Err(reason) => refusal(400, &reason),
    }
}

fn contents(state: &StandInState, body: &[u8]) -> Result<(String, BTreeMap<String, Bytes>), String> {
    let text = std::str::from_utf8(body).map_err(|error| error.to_string())?;
    let mut summary = None;
    let mut files = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        let line: Value = serde_json::from_str(line).map_err(|error| format!("line {index}: {error}"))?;
        let value = |key: &str| line.pointer(&format!("/value/{key}")).and_then(Value::as_str);
        let path = || value("path").map(ToOwned::to_owned).ok_or_else(|| format!("line {index}: no path"));
        match line.get("key").and_then(Value::as_str) {
            Some("header") if index == 0 => summary = value("summary").map(ToOwned::to_owned),
            Some("file") if value("encoding") == Some("base64") => {
                let content = STANDARD.decode(value("content").unwrap_or("?"));
                files.insert(path()?, content.map_err(|error| error.to_string())?.into());
            }
            Some("lfsFile") if value("algo") == Some("sha256") => {
                let oid = value("oid").unwrap_or_default();
                let object = state.objects.get(oid).filter(|_| state.verified.contains(oid));
                let object = object.ok_or_else(|| format!("line {index}: {oid} was not uploaded"))?;
                if line.pointer("/value/size").and_then(Value::as_u64) != Some(object.len() as u64) {
                    return Err(format!("line {index}: wrong size"));
                }
                files.insert(path()?, object.clone());
            }
            other => return Err(format!("line {index}: unexpected {other:?}")),
        }
    }
    let summary = summary.filter(|summary| !summary.is_empty()).ok_or("no summary")?;
    Ok((summary, files))
}
