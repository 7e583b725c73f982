//! Publications that fail, or succeed only on the second try.

use std::sync::Arc;
use std::time::Duration;

use aec_base::secret::Redactor;
use aec_eval::hub::{HubError, HubOptions, Visibility, publish};
use aec_xtest::hub::{Dataset, Failure, Hook};

use crate::hub::{METADATA, Stage, options, said};

/// Publishes large files with a failure and expects it to work nevertheless.
async fn works_in_spite_of(failure: Failure) {
    let stage = Stage::new().await;
    stage.hub.with(|state| (state.large_from, state.part_size) = (0, None));
    let shown = format!("{failure:?}");
    stage.hub.fail(failure);
    let published = stage.publish(Some("tough")).await;
    assert!(published.is_ok(), "{shown}: {published:?}");
    assert_eq!(stage.hub.with(|state| state.failures[0].times), 0, "{shown} was not met");
    assert_eq!(
        stage.file("tester/tough", "data/results.jsonl"),
        std::fs::read(stage.path("results.jsonl")).unwrap()
    );
}

#[tokio::test]
async fn what_passes_is_tried_again() {
    for step in ["whoami", "create", "preupload", "batch", "PUT", "verify", "/commit/"] {
        works_in_spite_of(Failure::status(step, 429, 1).header("retry-after", "0")).await;
        works_in_spite_of(Failure::status(step, 500, 2).body("<html>oops</html>")).await;
        works_in_spite_of(Failure::cut(step, 2)).await;
    }
    works_in_spite_of(Failure::status("/commit/", 412, 1)).await;
    let busy = r#"{"error": "Cannot create repo: another conflicting operation is in progress"}"#;
    works_in_spite_of(Failure::status("create", 409, 1).body(busy)).await;
}

/// Publishes with a failure and returns the problem.
async fn refused(failure: Failure) -> (Stage, String, String) {
    let stage = Stage::new().await;
    stage.hub.with(|state| state.large_from = 100);
    stage.hub.fail(failure);
    let (id, text) = said(&stage.publish(Some("refused")).await.unwrap_err());
    (stage, id, text)
}

#[tokio::test]
async fn refusals_have_their_own_problems() {
    for (step, status, expected, says) in [
        ("whoami", 401, "R073", "settings/tokens"),
        ("whoami", 403, "R073", "HF_TOKEN"),
        ("create", 401, "R074", "failure 401"),
        ("create", 403, "R074", "write access"),
        ("create", 400, "R075", "failure 400"),
        ("create", 402, "R081", "failure 402"),
        ("create", 404, "R081", "POST /api/repos/create"),
        ("preupload", 403, "R074", "tester/refused"),
        ("preupload", 404, "R074", "tester/refused"),
        ("batch", 403, "R074", "tester/refused"),
        ("batch", 413, "R078", "fewer rollouts"),
        ("PUT", 401, "R081", "PUT 127.0.0.1"),
        ("PUT", 403, "R081", "PUT 127.0.0.1"),
        ("PUT", 413, "R078", "too large"),
        ("verify", 404, "R081", "verify"),
        ("/commit/", 403, "R074", "failure 403"),
        ("/commit/", 413, "R078", "too large"),
        ("/commit/", 418, "R081", "status 418"),
    ] {
        let (stage, id, text) = refused(Failure::status(step, status, 9)).await;
        assert_eq!(id, expected, "{step} {status}: {text}");
        assert!(text.contains(says), "{step} {status}: {text}");
        let calls = stage.hub.calls();
        let tried = calls.iter().filter(|call| call.contains(step)).count();
        assert_eq!(tried, 1, "{step} {status} is final: {calls:?}");
        assert!(stage.hub.with(|state| state.datasets.values().all(|dataset| dataset.commits.is_empty())));
    }
}

#[tokio::test]
async fn what_does_not_pass_ends() {
    let (stage, id, text) = refused(Failure::status("preupload", 503, 99)).await;
    assert_eq!(id, "R080");
    assert!(text.contains("status 503") && text.contains("later"), "{text}");
    assert_eq!(stage.hub.calls().iter().filter(|call| call.contains("preupload")).count(), 3);
    let (stage, id, text) = refused(Failure::cut("/commit/", 99)).await;
    assert_eq!(id, "R079", "{text}");
    assert_eq!(stage.hub.calls().iter().filter(|call| call.contains("/commit/")).count(), 3);
}

#[tokio::test]
async fn a_hub_that_asks_for_a_long_pause_is_left_alone() {
    for (header, value, says) in
        [("retry-after", "3600", "3600 seconds"), ("ratelimit", "\"api\";r=0;t=250", "251 seconds")]
    {
        let (stage, id, text) = refused(Failure::status("create", 429, 99).header(header, value)).await;
        assert_eq!(id, "R080");
        assert!(text.contains(says), "{text}");
        assert_eq!(stage.hub.calls().iter().filter(|call| call.contains("create")).count(), 1);
    }
}

#[tokio::test]
async fn a_hub_that_repeats_the_token_does_not_get_it_shown() {
    let failure = Failure::status("/commit/", 418, 1).body("{\"error\": \"no teapot for hf_test_token\"}");
    let (_stage, _, text) = refused(failure).await;
    assert!(text.contains("no teapot for [token redacted]"), "{text}");
}

#[tokio::test]
async fn nobody_there_is_a_problem_of_the_network() {
    let stage = Stage::new().await;
    let account = stage.account();
    let publication = stage.publication(None);
    drop(stage.hub);
    let few = HubOptions { attempts: 1, ..options() };
    // The port is free again as soon as the server's task has ended.
    let error = loop {
        match publish(&account, &publication, &few).await {
            Err(error) => break error,
            Ok(_) => tokio::task::yield_now().await,
        }
    };
    assert_eq!(said(&error).0, "R079");
}

#[tokio::test]
async fn a_silent_hub_is_not_waited_for_for_ever() {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let stage = Stage::new().await;
    let account = aec_eval::hub::Account::load(stage.directory.path(), |name| match name {
        "HF_TOKEN" => Some("hf_test_token".to_owned()),
        "HF_ENDPOINT" => Some(endpoint.clone()),
        _ => None,
    });
    let short = HubOptions { attempts: 2, answer_timeout: Duration::from_millis(20), ..options() };
    let error = publish(&account.unwrap(), &stage.publication(None), &short).await.unwrap_err();
    let (id, text) = said(&error);
    assert!(id == "R079" && text.contains("no answer within 0.02 seconds"), "{text}");
}

#[tokio::test]
async fn a_token_for_reading_is_told_before_anything_is_made() {
    let stage = Stage::new().await;
    stage.hub.with(|state| "read".clone_into(&mut state.role));
    let (id, text) = said(&stage.publish(Some("mine")).await.unwrap_err());
    assert_eq!(id, "R074");
    assert!(text.contains("tester/mine") && text.contains("reading only"), "{text}");
    assert_eq!(stage.hub.calls(), ["GET /api/whoami-v2"]);
}

#[tokio::test]
async fn a_token_that_cannot_create_may_still_write() {
    let stage = Stage::new().await;
    let existing = Dataset { private: true, ..Dataset::default() };
    stage.hub.with(|state| state.datasets.insert("team/shared".to_owned(), existing));
    let published = stage.publish(Some("team/shared")).await.unwrap();
    assert_eq!(published.repository.to_string(), "team/shared");
    assert_eq!(said(&stage.publish(Some("team/other")).await.unwrap_err()).0, "R074");
}

#[tokio::test]
async fn a_name_that_is_no_dataset_is_not_written_to() {
    let stage = Stage::new().await;
    stage.hub.with(|state| state.taken.insert("tester/model".to_owned()));
    let (id, text) = said(&stage.publish(Some("model")).await.unwrap_err());
    assert_eq!(id, "R076");
    assert!(text.contains("tester/model is taken"), "{text}");
}

#[tokio::test]
async fn private_results_do_not_go_into_a_public_dataset() {
    let stage = Stage::new().await;
    stage.hub.with(|state| state.datasets.insert("tester/open".to_owned(), Dataset::default()));
    assert_eq!(said(&stage.publish(Some("open")).await.unwrap_err()).0, "R077");
    assert!(stage.hub.with(|state| state.datasets["tester/open"].commits.is_empty()));
    stage.hub.with(|state| state.deaf_to_visibility = true);
    assert_eq!(said(&stage.publish(Some("misheard")).await.unwrap_err()).0, "R077");
    assert!(stage.hub.with(|state| state.datasets["tester/misheard"].commits.is_empty()));
    let mut publication = stage.publication(Some("open"));
    publication.visibility = Visibility::Public;
    let published = publish(&stage.account(), &publication, &options()).await.unwrap();
    assert_eq!(published.visibility, Visibility::Public);
}

#[tokio::test]
async fn bad_names_never_reach_the_hub() {
    let stage = Stage::new().await;
    for name in ["a/b/c", "../x", "a b", "a--b"] {
        assert_eq!(said(&stage.publish(Some(name)).await.unwrap_err()).0, "R075", "{name}");
    }
    assert!(stage.hub.calls().is_empty());
}

#[tokio::test]
async fn bad_files_never_reach_the_hub() {
    let stage = Stage::new().await;
    for (rows, says) in [(b"".as_slice(), "no rollouts"), (b"\n \n", "no rollouts")] {
        std::fs::write(stage.path("results.jsonl"), rows).unwrap();
        let (id, text) = said(&stage.publish(None).await.unwrap_err());
        assert!(id == "R084" && text.contains(says) && text.contains("results.jsonl"), "{text}");
    }
    std::fs::remove_file(stage.path("results.jsonl")).unwrap();
    assert_eq!(said(&stage.publish(None).await.unwrap_err()).0, "R084");
    std::fs::create_dir(stage.path("results.jsonl")).unwrap();
    assert_eq!(said(&stage.publish(None).await.unwrap_err()).0, "R084");
    for metadata in [b"".as_slice(), b"{}", b"\xff\xfe", b"{\"env_id\": \"x\""] {
        std::fs::write(stage.path("metadata.json"), metadata).unwrap();
        let (id, text) = said(&stage.publish(None).await.unwrap_err());
        assert!(id == "R085" && text.contains("metadata.json"), "{text}");
    }
    assert!(stage.hub.calls().is_empty());
}

#[tokio::test]
async fn a_file_larger_than_the_hub_takes_is_not_read() {
    let stage = Stage::new().await;
    let small = HubOptions { largest_file: 10, ..options() };
    let error = publish(&stage.account(), &stage.publication(None), &small).await.unwrap_err();
    assert!(matches!(error, HubError::TooLarge { .. }), "{error}");
    assert_eq!(said(&error).0, "R078");
    assert!(stage.hub.calls().is_empty());
}

#[tokio::test]
async fn secrets_stay_here() {
    let stage = Stage::new().await;
    std::fs::write(stage.path("results.jsonl"), "{\"completion\": \"my key is sk-very-secret\"}\n").unwrap();
    let mut publication = stage.publication(None);
    publication.secrets = Arc::new(Redactor::default().with([("MODEL_KEY", "sk-very-secret")]));
    let error = publish(&stage.account(), &publication, &options()).await.unwrap_err();
    let (id, text) = said(&error);
    assert!(id == "R086" && !text.contains("sk-very"), "{text}");
    std::fs::write(stage.path("results.jsonl"), "{\"completion\": \"hf_test_token\"}\n").unwrap();
    assert_eq!(said(&stage.publish(None).await.unwrap_err()).0, "R086");
    assert!(stage.hub.calls().is_empty());
}

#[tokio::test]
async fn answers_that_make_no_sense_are_problems() {
    for (step, body) in [
        ("whoami", ""),
        ("whoami", "<html>"),
        ("whoami", "{\"name\": 5}"),
        ("preupload", "{}"),
        ("preupload", "{\"files\": []}"),
        ("preupload", "{\"files\": [{\"path\": \"README.md\", \"uploadMode\": \"pigeon\"}]}"),
        ("batch", "{\"objects\": []}"),
        ("batch", "{\"objects\": [{\"oid\": 5}]}"),
        ("/commit/", "{\"success\": true}"),
        ("/commit/", "[\"commitOid\"]"),
    ] {
        let (_stage, id, text) = refused(Failure::status(step, 200, 1).body(body)).await;
        assert_eq!(id, "R082", "{step} {body}: {text}");
    }
}

#[tokio::test]
async fn uploads_go_only_where_they_may() {
    let stage = Stage::new().await;
    let oid = aec_base::digest::Digest::of(METADATA.as_bytes()).hex();
    let size = METADATA.len();
    let part = "http://127.0.0.1:1/x";
    for (upload, expected) in [
        (serde_json::json!({"href": "http://storage.test/x?signature=s3cret"}), "R072"),
        (serde_json::json!({"href": "https://me:s3cret@storage.test/x"}), "R072"),
        (serde_json::json!({"href": 5}), "R082"),
        (serde_json::json!({}), "R082"),
        (serde_json::json!({"href": part, "header": {"a b": "c"}}), "R082"),
        (serde_json::json!({"href": part, "header": {"x": "a\nb"}}), "R082"),
        (serde_json::json!({"href": part, "header": {"chunk_size": "0", "1": part}}), "R082"),
        (serde_json::json!({"href": part, "header": {"chunk_size": "10", "1": part}}), "R082"),
        (serde_json::json!({"href": part, "header": {"chunk_size": "x", "1": part}}), "R082"),
        (serde_json::json!({"href": part, "header": {"chunk_size": size.to_string(), "1": 7}}), "R082"),
    ] {
        let answer =
            serde_json::json!({"objects": [{"oid": oid, "size": size, "actions": {"upload": upload}}]});
        stage.hub.with(|state| {
            state.failures.clear();
            state.failures.push(
                Failure::status("preupload", 200, 1).body(
                    &serde_json::json!({"files": [
                        {"path": "README.md", "uploadMode": "regular"},
                        {"path": "metadata.json", "uploadMode": "lfs"},
                        {"path": "data/results.jsonl", "uploadMode": "regular"},
                    ]})
                    .to_string(),
                ),
            );
            state.failures.push(Failure::status("batch", 200, 1).body(&answer.to_string()));
        });
        let (id, text) = said(&stage.publish(Some("placed")).await.unwrap_err());
        assert_eq!(id, expected, "{upload}: {text}");
    }
}

#[tokio::test]
async fn redirects_stay_with_the_hub() {
    let stage = Stage::new().await;
    let within = Failure::status("preupload/main", 307, 1)
        .header("location", "/api/datasets/tester/moved/preupload/main?moved=1");
    stage.hub.fail(within);
    stage.publish(Some("moved")).await.unwrap();
    let other = Stage::new().await;
    let target = format!("{}/api/whoami-v2", other.hub.base_url());
    stage.hub.fail(Failure::status("whoami", 302, 1).header("location", &target));
    assert_eq!(said(&stage.publish(Some("moved")).await.unwrap_err()).0, "R083");
    assert!(other.hub.calls().is_empty(), "the token was not carried to another address");
    stage.hub.fail(Failure::status("whoami", 302, 99).header("location", "/api/whoami-v2"));
    let (id, text) = said(&stage.publish(Some("moved")).await.unwrap_err());
    assert!(id == "R083" && text.contains("again and again"), "{text}");
}

#[tokio::test]
async fn a_file_that_shrinks_while_it_is_sent_is_no_problem_of_the_network() {
    for large_from in [0, u64::MAX] {
        let stage = Stage::new().await;
        stage.hub.with(|state| state.large_from = large_from);
        let rows = stage.path("results.jsonl");
        let run = Box::new(move || std::fs::write(rows, "{}\n").unwrap());
        stage.hub.with(|state| state.hooks.push(Hook { request: "preupload".to_owned(), run }));
        let (id, text) = said(&stage.publish(Some("shrunk")).await.unwrap_err());
        assert!(id == "R084" && text.contains("became shorter"), "{text}");
        assert!(stage.hub.with(|state| state.datasets["tester/shrunk"].commits.is_empty()));
    }
}

#[tokio::test]
async fn a_file_that_changes_while_it_is_sent_is_refused_by_its_digest() {
    let stage = Stage::new().await;
    stage.hub.with(|state| state.large_from = 0);
    let rows = stage.path("results.jsonl");
    let other = std::fs::read_to_string(&rows).unwrap().replace("0.5", "1.0");
    let run = Box::new(move || std::fs::write(rows, other).unwrap());
    stage.hub.with(|state| state.hooks.push(Hook { request: "preupload".to_owned(), run }));
    let (id, text) = said(&stage.publish(Some("changed")).await.unwrap_err());
    assert!(id == "R081" && text.contains("does not have this digest"), "{text}");
}
