//! The environments hub: environments, wheels, versions and the storage behind them.

use serde_json::{Value, json};

use super::answer;
use super::state::StandInState;
use crate::sha256;
use crate::stand_in::{Answer, RecordedRequest};

#[derive(Clone, Debug)]
pub(super) struct Environment {
    pub(super) id: String,
    owner: String,
    name: String,
    visibility: String,
    files: Vec<UploadedFile>,
}

/// A wheel or a version.
#[derive(Clone, Debug)]
struct UploadedFile {
    id: String,
    collection: String,
    announced: Value,
    key: String,
    finalized: bool,
}

impl StandInState {
    pub(super) fn resolve(&mut self, owner: &str, name: &str, visibility: &str) -> (String, bool) {
        let known = self.environments.iter().find(|known| known.owner == owner && known.name == name);
        if let Some(known) = known {
            return (known.id.clone(), false);
        }
        let id = format!("env{}", self.environments.len() + 1);
        self.environments.push(Environment {
            id: id.clone(),
            owner: owner.to_owned(),
            name: name.to_owned(),
            visibility: visibility.to_owned(),
            files: Vec::new(),
        });
        (id, true)
    }
}

pub(super) fn answer(
    state: &mut StandInState,
    request: &RecordedRequest,
    method: &str,
    rest: &[&str],
) -> Answer {
    match (method, rest) {
        ("GET", [""]) => {
            let rows: Vec<Value> = state.environments.iter().map(details).collect();
            Answer::json(&json!({"data": rows, "total_count": rows.len()}))
        }
        ("POST", ["resolve"]) => resolve(state, request),
        ("POST", [id, collection @ ("wheels" | "versions")]) => announce(state, request, id, collection),
        ("POST", [id, collection @ ("wheels" | "versions"), file, "finalize"]) => {
            finalize(state, id, collection, file)
        }
        ("GET", [owner, name, "status"]) => status(state, owner, name),
        ("GET", [owner, name, version]) if version.starts_with('@') => {
            match state.environments.iter().find(|known| known.owner == *owner && known.name == *name) {
                Some(environment) => answer::data(&details(environment)),
                None => answer::refusal(404, "Environment not found"),
            }
        }
        _ => answer::refusal(404, "Not Found"),
    }
}

fn resolve(state: &mut StandInState, request: &RecordedRequest) -> Answer {
    let body = request.json();
    let text = |key: &str| body.get(key).and_then(Value::as_str);
    let Some(name) = text("name") else { return answer::invalid(&["name"], "Field required") };
    let user = state.user.get("slug").and_then(Value::as_str);
    let Some(owner) =
        ["owner_slug", "team_slug", "team_id"].iter().find_map(|key| text(key)).or(user).map(str::to_owned)
    else {
        return answer::refusal(400, "Your profile is missing a username");
    };
    let visibility = text("visibility").unwrap_or("PRIVATE");
    let (id, created) = state.resolve(&owner, name, visibility);
    answer::data(&json!({"id": id, "created": created, "owner": {"name": owner, "type": "user"}}))
}

fn announce(state: &mut StandInState, request: &RecordedRequest, id: &str, collection: &str) -> Answer {
    let body = request.json();
    for field in ["content_hash", "filename", "sha256", "semantic_version", "metadata"] {
        if body.get(field).is_none() {
            return answer::invalid(&[field], "Field required");
        }
    }
    let root = state.root.clone();
    let Some(environment) = state.environments.iter_mut().find(|known| known.id == id) else {
        return answer::refusal(404, "Environment not found");
    };
    let same = |file: &&UploadedFile| {
        file.collection == collection
            && file.finalized
            && file.announced["content_hash"] == body["content_hash"]
    };
    let id_key = if collection == "wheels" { "wheel_id" } else { "version_id" };
    if let Some(file) = environment.files.iter().find(same) {
        if collection == "wheels" {
            return answer::data(&json!({id_key: file.id, "upload_url": null}));
        }
        return answer::refusal(409, "A version with this content hash already exists");
    }
    let file_id = format!("{}{}", &collection[..2], environment.files.len() + 1);
    let file_name = body["filename"].as_str().unwrap_or_default();
    let key = format!("{file_id}-{file_name}");
    let upload_url = format!("{root}/storage/{key}?signature=abc");
    environment.files.push(UploadedFile {
        id: file_id.clone(),
        collection: collection.to_owned(),
        announced: body,
        key,
        finalized: false,
    });
    answer::data(&json!({id_key: file_id, "upload_url": upload_url}))
}

fn finalize(state: &mut StandInState, id: &str, collection: &str, file_id: &str) -> Answer {
    let storage = &state.storage;
    let environment = state.environments.iter_mut().find(|known| known.id == id);
    let file = environment.and_then(|environment| {
        environment.files.iter_mut().find(|file| file.id == file_id && file.collection == collection)
    });
    let Some(file) = file else { return answer::refusal(404, "Upload not found") };
    let Some(bytes) = storage.get(&file.key) else { return answer::refusal(400, "Nothing was uploaded") };
    let hash = sha256(bytes);
    if file.announced["sha256"] != json!(hash) {
        return answer::invalid(&["sha256"], "does not match what was uploaded");
    }
    let size = file.announced.get("size").and_then(Value::as_u64);
    if size.is_some_and(|size| size != bytes.len() as u64) {
        return answer::invalid(&["size"], "does not match what was uploaded");
    }
    file.finalized = true;
    answer::data(&json!({"success": true, "message": "finalized"}))
}

fn status(state: &StandInState, owner: &str, name: &str) -> Answer {
    let Some(environment) =
        state.environments.iter().find(|known| known.owner == owner && known.name == name)
    else {
        return answer::refusal(404, "Environment not found");
    };
    let latest = environment.latest();
    answer::data(&json!({
        "latest_version": {"semantic_version": latest["semantic_version"], "content_hash": latest["content_hash"]},
        "action": {"status": state.environment_action},
        "visibility": environment.visibility,
    }))
}

fn details(environment: &Environment) -> Value {
    let latest = environment.latest();
    json!({
        "id": environment.id,
        "name": environment.name,
        "owner": {"name": environment.owner},
        "visibility": environment.visibility,
        "semantic_version": latest["semantic_version"],
        "content_hash": latest["content_hash"],
        "metadata": latest["metadata"],
    })
}

impl Environment {
    /// The latest published version.
    fn latest(&self) -> Value {
        let version = self.files.iter().rev().find(|file| file.collection == "versions" && file.finalized);
        version.map(|file| file.announced.clone()).unwrap_or_default()
    }
}

/// The storage. The signature in the address is the permission, and the key must not be sent.
pub(super) fn storage(state: &mut StandInState, request: &RecordedRequest, name: &str) -> Answer {
    if request.header("authorization").is_some() {
        return answer::refusal(400, "Only one auth mechanism allowed");
    }
    match request.method.as_str() {
        "PUT" => {
            state.storage.insert(name.to_owned(), request.body.clone());
            answer::bytes(bytes::Bytes::new())
        }
        "GET" => match state.storage.get(name) {
            Some(bytes) => answer::bytes(bytes.clone()),
            None => answer::refusal(404, "Not Found"),
        },
        _ => answer::refusal(405, "Method Not Allowed"),
    }
}
