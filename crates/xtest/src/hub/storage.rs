//! Large files: their upload addresses, and the storage behind them.

use bytes::{Bytes, BytesMut};
use serde_json::{Map, Value, json};

use super::{Answer, RecordedRequest, StandInState, refusal};
use crate::sha256;

/// Stands in storage addresses in place of a token.
const SIGNATURE: &str = "signature=s3cret";

/// The protocol of large files: `batch` and `verify`.
pub(super) fn protocol(state: &mut StandInState, request: &RecordedRequest, id: &str, step: &str) -> Answer {
    if !state.datasets.contains_key(id) {
        return refusal(404, "Repository not found");
    }
    let body = request.json();
    if step == "verify" {
        return verify(state, &body);
    }
    if request.header("content-type") != Some("application/vnd.git-lfs+json") {
        return refusal(415, "Content-Type must be application/vnd.git-lfs+json");
    }
    if step != "batch" || body.get("operation").and_then(Value::as_str) != Some("upload") {
        return refusal(400, "expected a batch of uploads");
    }
    let objects = body.get("objects").and_then(Value::as_array).cloned().unwrap_or_default();
    let objects: Vec<Value> = objects.iter().map(|object| place(state, id, object)).collect();
    Answer::json(&json!({"transfer": "basic", "objects": objects}))
}

/// The upload address of one object.
fn place(state: &StandInState, id: &str, object: &Value) -> Value {
    let oid = object.get("oid").and_then(Value::as_str).unwrap_or_default();
    let size = object.get("size").and_then(Value::as_u64).unwrap_or_default();
    if state.verified.contains(oid) {
        return json!({"oid": oid, "size": size});
    }
    let root = &state.root;
    let upload = match state.part_size {
        None => json!({"href": format!("{root}/storage/whole/{oid}?{SIGNATURE}")}),
        Some(part_size) => {
            let mut header = Map::new();
            // From the last part to the first, so that the client must sort them.
            for number in (1..=size.div_ceil(part_size)).rev() {
                let address = format!("{root}/storage/part/{oid}/{number}?{SIGNATURE}");
                header.insert(format!("{number:05}"), address.into());
            }
            header.insert("chunk_size".to_owned(), part_size.to_string().into());
            json!({"href": format!("{root}/storage/complete/{oid}?{SIGNATURE}"), "header": header})
        }
    };
    let verify = json!({"href": format!("{root}/datasets/{id}.git/info/lfs/objects/verify")});
    json!({"oid": oid, "size": size, "authenticated": true, "actions": {"upload": upload, "verify": verify}})
}

fn verify(state: &mut StandInState, body: &Value) -> Answer {
    let oid = body.get("oid").and_then(Value::as_str).unwrap_or_default().to_owned();
    match state.objects.get(&oid) {
        Some(object) if body.get("size").and_then(Value::as_u64) == Some(object.len() as u64) => {
            state.verified.insert(oid);
            Answer::json(&json!({}))
        }
        _ => refusal(404, "Object not found"),
    }
}

/// The storage, which accepts signatures and refuses tokens.
pub(super) fn answer(state: &mut StandInState, request: &RecordedRequest, path: &[&str]) -> Answer {
    if request.header("authorization").is_some() {
        return refusal(400, "the storage is no place for a token");
    }
    if request.query != SIGNATURE {
        return refusal(403, "signature missing");
    }
    let length = request.header("content-length").and_then(|text| text.parse().ok());
    if length != Some(request.body.len()) {
        return refusal(411, "the length must be known in advance");
    }
    match (request.method.as_str(), path) {
        ("PUT", ["whole", oid]) => keep(state, oid, request.body.clone()),
        ("PUT", ["part", oid, number]) => {
            let number: u64 = number.parse().unwrap_or_default();
            let etag = format!("\"{}\"", sha256(&request.body));
            state.parts.insert(((*oid).to_owned(), number), request.body.clone());
            let mut answer = Answer::json(&json!({}));
            answer.headers.push(("etag".to_owned(), etag));
            answer
        }
        ("POST", ["complete", oid]) => complete(state, oid, &request.json()),
        _ => refusal(404, "Not Found"),
    }
}

fn keep(state: &mut StandInState, oid: &str, content: Bytes) -> Answer {
    if sha256(&content) != oid {
        return refusal(400, "the content does not have this digest");
    }
    state.objects.insert(oid.to_owned(), content);
    Answer::json(&json!({}))
}

fn complete(state: &mut StandInState, oid: &str, body: &Value) -> Answer {
    if body.get("oid").and_then(Value::as_str) != Some(oid) {
        return refusal(400, "wrong oid");
    }
    let mut whole = BytesMut::new();
    let parts = body.get("parts").and_then(Value::as_array).cloned().unwrap_or_default();
    for (part, expected) in parts.iter().zip(1..) {
        let number = part.get("partNumber").and_then(Value::as_u64).unwrap_or_default();
        let Some(content) = state.parts.get(&(oid.to_owned(), number)).filter(|_| number == expected) else {
            return refusal(400, "parts are missing or out of order");
        };
        let etag = format!("\"{}\"", sha256(content));
        if part.get("etag").and_then(Value::as_str) != Some(&etag) {
            return refusal(400, "wrong etag");
        }
        whole.extend_from_slice(content);
    }
    keep(state, oid, whole.freeze())
}
