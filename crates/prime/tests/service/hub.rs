//! Publishing a package.

use std::io::Read as _;
use std::path::Path;

use aec_prime::service::hub::{
    self, EnvironmentName, Package, PackageError, PushError, PushOptions, Runtime, Visibility,
};
use aec_prime::service::settings::Settings;
use aec_xtest::prime::Failure;
use serde_json::{Value, json};

use crate::service::{client_with, start, write};

pub(crate) const PROJECT: &str = r#"[project]
name = "aec-demo"
version = "0.1.0"
description = "A demo with ünïcode"
readme = "README.md"
requires-python = ">=3.10"
tags = ["aec-bench"]
dependencies = ["verifiers>=0.1.14", "datasets >= 4.0"]

[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[tool.hatch.build.targets.wheel]
packages = ["aec_demo"]
"#;

fn package(directory: &Path) {
    write(
        directory,
        &[
            ("pyproject.toml", PROJECT),
            ("README.md", "# Demo\n"),
            ("data.json", "{}"),
            (".gitignore", "*.log\nignored/\n"),
            ("helper.py", "X = 1\n"),
            ("aec_demo/__init__.py", "def load_environment():\n    return 'loaded'\n"),
            ("aec_demo/tasks/ä b/task.toml", "x = 1\n"),
            ("aec_demo/tasks/build/input.txt", "lost in the archive\n"),
            ("aec_demo/.hidden", "hidden\n"),
            ("aec_demo/run.log", "ignored\n"),
            ("aec_demo/__pycache__/a.pyc", "x"),
            ("ignored/x.py", "x"),
            ("dist/old.whl", "x"),
            ("notes/plan.md", "plan\n"),
        ],
    );
}

fn names(archive: &[u8]) -> Vec<String> {
    let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(archive));
    tar.entries().unwrap().map(|entry| entry.unwrap().path().unwrap().display().to_string()).collect()
}

#[test]
fn the_archive_has_primes_files_and_the_wheel_pythons() {
    let directory = tempfile::tempdir().unwrap();
    package(directory.path());
    let built = Package::build(directory.path()).unwrap();
    let expected = [
        "README.md",
        "aec_demo/__init__.py",
        "aec_demo/tasks/ä b/task.toml",
        "helper.py",
        "notes/plan.md",
        "pyproject.toml",
    ];
    assert_eq!(built.source_files, expected);
    assert_eq!(names(&built.source), expected);
    assert_eq!(built.missing_from_source, ["aec_demo/.hidden", "aec_demo/tasks/build/input.txt"]);
    assert_eq!(built.wheel_name, "aec_demo-0.1.0-py3-none-any.whl");
    assert_eq!(built.runtime, Some(Runtime::V0));
    let again = Package::build(directory.path()).unwrap();
    assert_eq!((&built.wheel, &built.source), (&again.wheel, &again.source), "same files, same bytes");
    std::fs::write(directory.path().join("data.json"), "{\"changed\": 1}").unwrap();
    assert_eq!(Package::build(directory.path()).unwrap().content_hash, built.content_hash);
    std::fs::write(directory.path().join("helper.py"), "X = 2\n").unwrap();
    assert_ne!(Package::build(directory.path()).unwrap().content_hash, built.content_hash);
}

#[tokio::test]
async fn a_push_uploads_both_files_and_leaves_a_note() {
    let (stand_in, client) = start().await;
    let directory = tempfile::tempdir().unwrap();
    package(directory.path());
    let built = Package::build(directory.path()).unwrap();
    let options = PushOptions { owner: Some("me".to_owned()), ..PushOptions::default() };
    let pushed = hub::push(&client, &built, &options).await.unwrap();
    assert!(pushed.created);
    assert_eq!((pushed.owner.as_str(), pushed.name.as_str()), ("me", "aec-demo"));
    let calls: Vec<String> =
        stand_in.calls().into_iter().map(|call| call.split("/storage/").next().unwrap().to_owned()).collect();
    assert_eq!(
        calls,
        [
            "POST /api/v1/environmentshub/resolve",
            "POST /api/v1/environmentshub/env1/wheels",
            "PUT ",
            "POST /api/v1/environmentshub/env1/wheels/wh1/finalize",
            "POST /api/v1/environmentshub/env1/versions",
            "PUT ",
            "POST /api/v1/environmentshub/env1/versions/ve2/finalize",
        ]
    );
    let requests = stand_in.requests();
    assert_eq!(requests[0].json(), json!({"name": "aec-demo", "visibility": "PRIVATE", "owner_slug": "me"}));
    let wheel = requests[1].json();
    assert_eq!(wheel["size"], json!(built.wheel.len()));
    assert_eq!(wheel["runtime_hint"], "VERIFIERS_V0");
    assert_eq!(wheel["metadata"]["requires_dist"], json!(["datasets>=4.0", "verifiers>=0.1.14"]));
    assert_eq!(wheel["metadata"]["dependencies"], json!(["verifiers>=0.1.14", "datasets >= 4.0"]));
    let source = requests[4].json();
    assert_eq!(source["filename"], json!(format!("aec-demo-0.1.0-{}.tar.gz", &built.content_hash[..8])));
    assert_eq!(source["metadata"]["original_filename"], "aec-demo-0.1.0.tar.gz");
    assert!(requests[2].header("authorization").is_none(), "storage gets no key");
    assert_eq!(stand_in.with(|state| state.stored(".whl").cloned()).unwrap(), built.wheel);

    hub::record_push(directory.path(), &pushed, "2026-11-16T00:00:00Z").unwrap();
    let note = std::fs::read_to_string(directory.path().join(".prime/.env-metadata.json")).unwrap();
    let note: Value = serde_json::from_str(&note).unwrap();
    assert_eq!(note["environment_id"], "env1");
    assert_eq!(note["wheel_sha256"], json!(built.wheel_sha256));
    assert_eq!(hub::upstream(directory.path()).unwrap(), Some(("me".to_owned(), "aec-demo".to_owned())));
    assert_eq!(
        Package::build(directory.path()).unwrap().content_hash,
        built.content_hash,
        "the note is not content"
    );

    let name: EnvironmentName = "me/aec-demo".parse().unwrap();
    let details = hub::details(&client, &name).await.unwrap();
    assert_eq!(details.content_hash.as_deref(), Some(built.content_hash.as_str()));
    let status = hub::status(&client, &name).await.unwrap();
    assert_eq!(
        (status.latest_version.as_deref(), status.action.as_deref()),
        (Some("0.1.0"), Some("SUCCESS"))
    );

    let again = hub::push(&client, &built, &options).await.unwrap_err();
    assert!(matches!(again, PushError::AlreadyPublished { .. }), "{again}");
}

#[tokio::test]
async fn owners_teams_and_visibility() {
    let (stand_in, _) = start().await;
    let directory = tempfile::tempdir().unwrap();
    package(directory.path());
    let built = Package::build(directory.path()).unwrap();
    let resolve = |team_id: Option<&str>, options: PushOptions| {
        let client = client_with(Settings {
            team_id: team_id.map(str::to_owned),
            ..crate::service::settings(&stand_in)
        });
        let (built, stand_in) = (&built, &stand_in);
        async move {
            stand_in.with(|state| state.requests.clear());
            let pushed = hub::push(&client, built, &options).await;
            (pushed, stand_in.requests().first().map(aec_xtest::prime::RecordedRequest::json))
        }
    };
    let plain = PushOptions::default();
    let id = "c0123456789abcdefghijklmn";
    assert_eq!(resolve(Some(id), plain.clone()).await.1.unwrap()["team_id"], id);
    assert_eq!(resolve(Some("my-team"), plain.clone()).await.1.unwrap()["team_slug"], "my-team");
    let public = PushOptions {
        team: Some("lab".to_owned()),
        name: Some("other".to_owned()),
        visibility: Visibility::Public,
        runtime: Some(Runtime::V1),
        ..plain.clone()
    };
    let (pushed, body) = resolve(Some(id), public).await;
    assert_eq!(body.unwrap(), json!({"name": "other", "visibility": "PUBLIC", "team_slug": "lab"}));
    assert_eq!(pushed.unwrap().runtime, Some(Runtime::V1));
    let both = PushOptions { owner: Some("a".to_owned()), team: Some("b".to_owned()), ..plain };
    let (error, body) = resolve(None, both).await;
    assert!(matches!(error.unwrap_err(), PushError::TwoOwners));
    assert!(body.is_none());
    assert!("SECRET".parse::<Visibility>().is_err());
}

#[tokio::test]
async fn failures_of_a_push_are_told() {
    let (stand_in, client) = start().await;
    let directory = tempfile::tempdir().unwrap();
    package(directory.path());
    let built = Package::build(directory.path()).unwrap();
    let options = PushOptions::default();
    stand_in.with(|state| state.user["slug"] = Value::Null);
    let error = hub::push(&client, &built, &options).await.unwrap_err();
    assert!(matches!(error, PushError::NoUsername), "{error}");
    stand_in.with(|state| state.user["slug"] = json!("me"));
    // Uploads are repeated when the storage is busy; a failed upload is an error.
    stand_in.with(|state| state.failures = vec![Failure::new("/storage/", 503, 2)]);
    hub::push(&client, &built, &options).await.unwrap();
    std::fs::write(directory.path().join("helper.py"), "X = 3\n").unwrap();
    let changed = Package::build(directory.path()).unwrap();
    stand_in.with(|state| state.failures = vec![Failure::new("/storage/", 403, 1)]);
    let error = hub::push(&client, &changed, &options).await.unwrap_err().to_string();
    assert!(error.contains("/storage/") && !error.contains("signature"), "{error}");
    let mut refused = Failure::new("versions/", 200, 1);
    refused.body = json!({"data": {"success": false, "message": "virus"}}).to_string();
    stand_in.with(|state| state.failures = vec![refused]);
    let error = hub::push(&client, &changed, &options).await.unwrap_err();
    assert!(matches!(&error, PushError::NotFinalized { message } if message == "virus"), "{error}");
    // An upload address elsewhere must be encrypted.
    let mut odd = Failure::new("/wheels", 200, 1);
    odd.body = json!({"data": {"wheel_id": "w", "upload_url": "http://storage.test/x"}}).to_string();
    stand_in.with(|state| state.failures = vec![odd]);
    let error = hub::push(&client, &changed, &options).await.unwrap_err().to_string();
    assert!(error.contains("without encryption"), "{error}");
}

#[test]
fn notes_of_others_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    let old =
        r#"{"environment_id": "old", "owner": "them", "name": "demo", "version": "0.0.9", "custom": [1]}"#;
    write(directory.path(), &[(".prime/.env-metadata.json", old)]);
    let pushed = hub::Pushed {
        environment_id: "new".to_owned(),
        owner: "me".to_owned(),
        name: "demo".to_owned(),
        version: "0.1.0".to_owned(),
        content_hash: "c".to_owned(),
        wheel_sha256: "w".to_owned(),
        runtime: None,
        created: true,
    };
    let path = hub::record_push(directory.path(), &pushed, "now").unwrap();
    let note: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(note["custom"], json!([1]));
    let from = json!({"owner": "them", "name": "demo", "environment_id": "old", "version": "0.0.9"});
    assert_eq!(note["forked_from"], from);
    std::fs::write(&path, "not json").unwrap();
    assert!(
        hub::record_push(directory.path(), &pushed, "now")
            .unwrap_err()
            .to_string()
            .contains("not a JSON object")
    );
}

#[test]
fn directories_that_are_no_packages_are_refused() {
    let build = |files: &[(&str, &str)]| {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), files);
        Package::build(directory.path()).unwrap_err()
    };
    assert!(matches!(build(&[("x.py", "")]), PackageError::NoProject { .. }));
    assert!(matches!(build(&[("pyproject.toml", "[project")]), PackageError::Project { .. }));
    let minimal = "[project]\nname = \"demo\"\nversion = \"1\"\n";
    assert!(matches!(build(&[("pyproject.toml", minimal)]), PackageError::NoModule { .. }));
    let readme = format!("{minimal}readme = \"../secret.txt\"\n");
    let error = build(&[("pyproject.toml", &readme), ("demo.py", "")]);
    assert!(error.to_string().contains("leads out"), "{error}");
    let gone = format!("{minimal}[tool.hatch.build.targets.wheel]\npackages = [\"gone\"]\n");
    assert!(matches!(build(&[("pyproject.toml", &gone)]), PackageError::NoPackageDirectory { .. }));
}

#[cfg(unix)]
#[test]
fn links_do_not_lead_out_of_a_package() {
    use std::os::unix::fs::symlink;
    let outside = tempfile::tempdir().unwrap();
    write(outside.path(), &[("secret/key.txt", "secret")]);
    let directory = tempfile::tempdir().unwrap();
    let minimal = "[project]\nname = \"demo\"\nversion = \"1\"\n";
    write(directory.path(), &[("pyproject.toml", minimal), ("demo/__init__.py", "")]);
    symlink(outside.path().join("secret"), directory.path().join("linked")).unwrap();
    assert!(matches!(Package::build(directory.path()).unwrap_err(), PackageError::Link { .. }));
    std::fs::remove_file(directory.path().join("linked")).unwrap();
    symlink(outside.path().join("secret/key.txt"), directory.path().join("demo/key.txt")).unwrap();
    assert!(matches!(Package::build(directory.path()).unwrap_err(), PackageError::Link { .. }));
    std::fs::remove_file(directory.path().join("demo/key.txt")).unwrap();
    symlink(outside.path().join("secret/key.txt"), directory.path().join("key.py")).unwrap();
    let built = Package::build(directory.path()).unwrap();
    assert_eq!(
        built.source_files,
        ["demo/__init__.py", "pyproject.toml"],
        "a linked file at the top is left out"
    );
}

#[test]
fn selections_of_files() {
    let wheel_names = |project: &str, files: &[(&str, &str)]| {
        let directory = tempfile::tempdir().unwrap();
        let head = "[project]\nname = \"demo\"\nversion = \"1\"\n";
        write(directory.path(), &[("pyproject.toml", &format!("{head}{project}"))]);
        write(directory.path(), files);
        let wheel = Package::build(directory.path()).unwrap().wheel;
        zip_names(&wheel).into_iter().filter(|name| !name.contains(".dist-info/")).collect::<Vec<_>>()
    };
    let single = [("demo.py", ""), ("other.py", ""), ("data/a.txt", ""), ("README.md", "")];
    assert_eq!(wheel_names("", &single), ["demo.py"]);
    for data in ["data", "data/", "/data/**", "data/*.txt"] {
        let include =
            format!("[tool.hatch.build]\ninclude = [\"demo.py\", \"{data}\", \"pyproject.toml\"]\n");
        assert_eq!(wheel_names(&include, &single), ["data/a.txt", "demo.py"], "{data}");
    }
    let below = [("src/demo/__init__.py", ""), ("src/demo/x.pyc", ""), ("src/demo/y.txt", "")];
    assert_eq!(wheel_names("", &below), ["demo/__init__.py", "demo/y.txt"]);
    let exclude = "[tool.hatch.build.targets.wheel]\npackages = [\"src/demo\"]\nexclude = [\"*.txt\"]\n";
    assert_eq!(wheel_names(exclude, &below), ["demo/__init__.py"]);
    let modules = "[tool.setuptools]\npy-modules = [\"other\"]\n";
    assert_eq!(wheel_names(modules, &single), ["other.py"]);
}

/// Names in a zip archive, by its local headers.
fn zip_names(mut bytes: &[u8]) -> Vec<String> {
    let mut names = Vec::new();
    while bytes.starts_with(b"PK\x03\x04") {
        let number = |at: usize, length: usize| {
            bytes[at..at + length].iter().rev().fold(0usize, |number, byte| number << 8 | usize::from(*byte))
        };
        let (packed, name) = (number(18, 4), number(26, 2));
        let content = &bytes[30 + name..30 + name + packed];
        let mut text = Vec::new();
        flate2::read::DeflateDecoder::new(content).read_to_end(&mut text).unwrap();
        assert_eq!(text.len(), number(22, 4));
        names.push(String::from_utf8(bytes[30..30 + name].to_vec()).unwrap());
        bytes = &bytes[30 + name + packed..];
    }
    names
}
