//! Publications that work.

use std::io::Write as _;

use aec_eval::hub::{Visibility, publish};

use crate::hub::{METADATA, Stage, options};

const DEFAULT: &str = "tester/tiny-single_openai_gpt-4.1-mini_n2_r3";

#[tokio::test]
async fn an_evaluation_becomes_a_private_dataset_of_the_user() {
    let stage = Stage::new().await;
    let published = stage.publish(None).await.unwrap();
    assert_eq!(published.repository.to_string(), DEFAULT);
    assert_eq!(published.page, format!("{}/datasets/{DEFAULT}", stage.hub.base_url()));
    assert_eq!(published.commit.len(), 40);
    assert_eq!(published.commit_page, format!("{}/commit/{}", published.page, published.commit));
    assert_eq!((published.visibility, published.rows), (Visibility::Private, 6));
    let dataset = stage.hub.with(|state| state.datasets[DEFAULT].clone());
    assert!(dataset.private);
    assert_eq!(dataset.commits, ["Results of tiny-single with openai/gpt-4.1-mini"]);
    assert_eq!(
        dataset.files.keys().collect::<Vec<_>>(),
        ["README.md", "data/results.jsonl", "metadata.json"]
    );
    assert_eq!(stage.file(DEFAULT, "metadata.json"), METADATA);
    assert_eq!(
        stage.file(DEFAULT, "data/results.jsonl"),
        std::fs::read(stage.path("results.jsonl")).unwrap()
    );
    let card = String::from_utf8(stage.file(DEFAULT, "README.md").to_vec()).unwrap();
    assert!(card.contains("| rollouts | 6 |") && card.contains(DEFAULT), "{card}");
    assert_eq!(
        stage.hub.calls(),
        [
            "GET /api/whoami-v2".to_owned(),
            "POST /api/repos/create".to_owned(),
            format!("GET /api/datasets/{DEFAULT}"),
            format!("POST /api/datasets/{DEFAULT}/preupload/main"),
            format!("POST /api/datasets/{DEFAULT}/commit/main"),
        ]
    );
}

#[tokio::test]
async fn an_owner_and_everybody_as_readers_are_asked_for() {
    let stage = Stage::new().await;
    let mut publication = stage.publication(Some("some-org/my-results"));
    publication.visibility = Visibility::Public;
    let published = publish(&stage.account(), &publication, &options()).await.unwrap();
    assert_eq!(published.repository.to_string(), "some-org/my-results");
    assert!(!stage.hub.with(|state| state.datasets["some-org/my-results"].private));
    assert_eq!(stage.publish(Some(" ")).await.unwrap().repository.to_string(), DEFAULT, "blank is no name");
}

#[tokio::test]
async fn publishing_again_adds_a_commit() {
    let stage = Stage::new().await;
    let (account, publication) = (stage.account(), stage.publication(Some("again")));
    // Callers publish from their own tasks.
    let task = tokio::spawn(async move { publish(&account, &publication, &options()).await });
    task.await.unwrap().unwrap();
    std::fs::write(stage.path("results.jsonl"), "{\"example_id\": 9}").unwrap();
    let published = stage.publish(Some("again")).await.unwrap();
    assert_eq!((published.rows, published.visibility), (1, Visibility::Private));
    assert_eq!(stage.file("tester/again", "data/results.jsonl"), "{\"example_id\": 9}");
    assert_eq!(stage.hub.with(|state| state.datasets["tester/again"].commits.len()), 2);
}

/// Writes 25 MB of rows and returns their number.
fn write_many_rows(stage: &Stage) -> u64 {
    let mut file = std::io::BufWriter::new(std::fs::File::create(stage.path("results.jsonl")).unwrap());
    let text = "x".repeat(1000);
    let rows = 25_000;
    for row in 0..rows {
        writeln!(file, "{{\"example_id\": {row}, \"completion\": \"{text}\"}}").unwrap();
    }
    file.flush().unwrap();
    rows
}

#[tokio::test]
async fn large_results_are_uploaded_before_the_commit() {
    let stage = Stage::new().await;
    let rows = write_many_rows(&stage);
    let published = stage.publish(Some("large")).await.unwrap();
    assert_eq!(published.rows, rows);
    assert!(
        stage.file("tester/large", "data/results.jsonl")
            == std::fs::read(stage.path("results.jsonl")).unwrap()
    );
    let calls = stage.hub.calls();
    let steps: Vec<&str> = calls.iter().map(|call| call.rsplit('/').nth(1).unwrap()).collect();
    assert_eq!(steps, ["api", "repos", "tester", "preupload", "objects", "whole", "objects", "commit"]);
    let commit = stage.hub.with(|state| state.requests.last().unwrap().body.len());
    assert!(commit < 20_000, "the commit refers to the rows and does not hold them: {commit} bytes");
    // The hub already has these rows.
    stage.publish(Some("large")).await.unwrap();
    let puts = stage.hub.calls().iter().filter(|call| call.starts_with("PUT")).count();
    assert_eq!(puts, 1);
}

#[tokio::test]
async fn large_results_are_uploaded_in_parts_if_the_hub_says_so() {
    let stage = Stage::new().await;
    write_many_rows(&stage);
    stage.hub.with(|state| state.part_size = Some(2_000_003));
    stage.publish(Some("parts")).await.unwrap();
    assert!(
        stage.file("tester/parts", "data/results.jsonl")
            == std::fs::read(stage.path("results.jsonl")).unwrap()
    );
    let size = std::fs::metadata(stage.path("results.jsonl")).unwrap().len();
    let puts = stage.hub.calls().iter().filter(|call| call.starts_with("PUT /storage/part/")).count();
    assert_eq!(puts as u64, size.div_ceil(2_000_003));
    assert_eq!(stage.hub.calls().iter().filter(|call| call.contains("/complete/")).count(), 1);
}

#[tokio::test]
async fn a_part_may_be_as_large_as_the_file() {
    let stage = Stage::new().await;
    let size = std::fs::metadata(stage.path("results.jsonl")).unwrap().len();
    for part_size in [size, size - 1, 1] {
        stage.hub.with(|state| {
            (state.large_from, state.part_size) = (0, Some(part_size));
            state.verified.clear();
        });
        stage.publish(Some("exact")).await.unwrap();
    }
    assert_eq!(stage.file("tester/exact", "metadata.json"), METADATA);
}

#[tokio::test]
async fn a_large_file_may_travel_inside_the_commit() {
    let stage = Stage::new().await;
    write_many_rows(&stage);
    stage.hub.with(|state| state.large_from = u64::MAX);
    stage.publish(Some("inside")).await.unwrap();
    assert!(
        stage.file("tester/inside", "data/results.jsonl")
            == std::fs::read(stage.path("results.jsonl")).unwrap()
    );
}
