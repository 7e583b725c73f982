//! Samples over all pages, from services that page correctly and incorrectly.

use std::ops::ControlFlow;
use std::sync::Arc;

use aec_prime::service::client::{Client, ClientOptions};
use aec_prime::service::evaluations::{SampleCount, SamplesError, SamplesOptions, samples};
use aec_xtest::prime::{HostedRun, SampleSource, StandIn};
use serde_json::{Value, json};

use crate::service::{quick, start};

fn rows(range: std::ops::Range<u64>) -> Vec<Value> {
    range.map(|index| json!({"sample_id": format!("s{index}"), "reward": 1.0})).collect()
}

fn page_of(total: u64, page: u64, size: u64) -> Vec<Value> {
    let start = ((page - 1) * size).min(total);
    rows(start..(start + size).min(total))
}

fn put(stand_in: &StandIn, source: SampleSource) {
    let mut run = HostedRun::new(json!({}));
    run.samples = source;
    stand_in.with(|state| state.evaluations.insert("e".to_owned(), run));
}

fn script(stand_in: &StandIn, script: impl Fn(u64, u64) -> Value + Send + Sync + 'static) {
    put(stand_in, SampleSource::Scripted(Arc::new(script)));
}

async fn read(
    client: &Client,
    options: &SamplesOptions,
) -> (Result<SampleCount, SamplesError>, Vec<Value>, usize) {
    let (mut all, mut pages) = (Vec::new(), 0);
    let count = samples(client, "e", options, |page| {
        pages += 1;
        all.extend(page.samples.iter().map(|sample| serde_json::from_slice::<Value>(sample).unwrap()));
        ControlFlow::Continue(())
    })
    .await;
    (count, all, pages)
}

#[tokio::test]
async fn all_pages_come_in_order() {
    let (stand_in, client) = start().await;
    for total in [0, 1, 999, 1000, 1001, 2500] {
        put(&stand_in, SampleSource::Given(rows(0..total)));
        let (count, all, pages) = read(&client, &SamplesOptions::default()).await;
        assert_eq!(count.unwrap(), SampleCount { received: total, total: Some(total), repeated: 0 });
        assert_eq!(all, rows(0..total));
        assert_eq!(pages as u64, total.div_ceil(1000), "{total}");
    }
    let limits: Vec<_> =
        stand_in.requests().iter().map(|request| request.parameter("limit").unwrap()).collect();
    assert!(limits.iter().all(|limit| limit == "1000"));
}

#[tokio::test]
async fn smaller_pages_than_asked_for() {
    let (stand_in, client) = start().await;
    // The service reports its page size.
    script(
        &stand_in,
        |page, _| json!({"samples": page_of(250, page, 100), "total": 250, "page": page, "limit": 100}),
    );
    assert_eq!(read(&client, &SamplesOptions::default()).await.1, rows(0..250));
    // It does not report it.
    script(&stand_in, |page, _| json!({"samples": page_of(250, page, 100), "total": 250}));
    assert_eq!(read(&client, &SamplesOptions::default()).await.1, rows(0..250));
    // A page in the middle is short.
    script(&stand_in, |page, limit| {
        let mut samples = page_of(30, page, limit);
        if page == 2 {
            samples.truncate(3);
        }
        json!({"samples": samples, "total": 30, "limit": limit})
    });
    let (count, all, _) = read(&client, &SamplesOptions { page_size: 10, ..SamplesOptions::default() }).await;
    assert_eq!(count.unwrap(), SampleCount { received: 23, total: Some(30), repeated: 0 });
    assert_eq!(all.len(), 23);
}

#[tokio::test]
async fn a_total_that_changes() {
    let (stand_in, client) = start().await;
    // The total grows by ten with each answer, up to sixty.
    script(&stand_in, |page, limit| {
        let total = (20 + page * 10).min(60);
        json!({"samples": page_of(total, page, limit), "total": total, "limit": limit})
    });
    let options = SamplesOptions { page_size: 10, ..SamplesOptions::default() };
    let (count, all, _) = read(&client, &options).await;
    assert_eq!(count.unwrap().received, 60);
    assert_eq!(all, rows(0..60));
    // New samples push old ones to later pages, so some come twice.
    script(&stand_in, |page, limit| {
        let mut samples =
            rows(((page - 1) * limit).saturating_sub(page - 1)..(page * limit).min(32) - (page - 1));
        samples.truncate(10);
        json!({"samples": samples, "total": 28, "limit": limit})
    });
    let (count, all, _) = read(&client, &options).await;
    let count = count.unwrap();
    assert_eq!(all, rows(0..28));
    assert!(count.repeated > 0, "{count:?}");
}

#[tokio::test]
async fn a_service_without_totals() {
    let (stand_in, client) = start().await;
    let options = SamplesOptions { page_size: 10, ..SamplesOptions::default() };
    for total in [0, 5, 10, 25] {
        script(&stand_in, move |page, limit| json!({"samples": page_of(total, page, limit)}));
        let (count, all, _) = read(&client, &options).await;
        assert_eq!(count.unwrap(), SampleCount { received: total, total: None, repeated: 0 });
        assert_eq!(all.len() as u64, total);
    }
}

#[tokio::test]
async fn a_service_that_repeats_itself() {
    let (stand_in, client) = start().await;
    let options = SamplesOptions { page_size: 10, ..SamplesOptions::default() };
    script(&stand_in, |_, limit| json!({"samples": page_of(30, 1, limit), "total": 30}));
    let (count, all, _) = read(&client, &options).await;
    assert!(matches!(count, Err(SamplesError::RepeatedPage { received: 10, total: 30, .. })), "{count:?}");
    assert_eq!(all, rows(0..10), "nothing comes twice");
    // Without ids a page is identified by its content, and equal samples in one page are different samples.
    script(&stand_in, |_, _| json!({"samples": vec![json!({"reward": 0.0}); 10], "total": 30}));
    let (count, all, _) = read(&client, &options).await;
    assert!(matches!(count, Err(SamplesError::RepeatedPage { .. })), "{count:?}");
    assert_eq!(all.len(), 10);
    // Without a total, the repetition is the end.
    script(&stand_in, |_, limit| json!({"samples": page_of(30, 1, limit)}));
    let (count, _, _) = read(&client, &options).await;
    assert_eq!(count.unwrap().received, 10);
}

#[tokio::test]
async fn pages_without_end() {
    let (stand_in, client) = start().await;
    let options = SamplesOptions { page_size: 10, most_samples: 200 };
    script(
        &stand_in,
        |page, limit| json!({"samples": rows((page - 1) * limit..page * limit), "total": page * limit + 1}),
    );
    let (count, all, _) = read(&client, &options).await;
    assert!(matches!(count, Err(SamplesError::Endless { limit: 200 })), "{count:?}");
    assert_eq!(all.len(), 200);
    script(&stand_in, |_, _| json!({"samples": [], "total": 1_000_000}));
    let (count, _, _) = read(&client, &options).await;
    assert_eq!(count.unwrap().received, 0, "empty pages do not come without end");
}

#[tokio::test]
async fn pages_that_are_too_long_are_asked_for_in_pieces() {
    let (stand_in, _) = start().await;
    let client =
        Client::new(crate::service::settings(&stand_in), ClientOptions { longest_answer: 60_000, ..quick() })
            .unwrap();
    let big: Vec<Value> = (0..1234)
        .map(|index| json!({"sample_id": format!("s{index}"), "text": "x".repeat(if index == 700 { 50_000 } else { 100 })}))
        .collect();
    put(&stand_in, SampleSource::Given(big.clone()));
    let (count, all, _) = read(&client, &SamplesOptions::default()).await;
    assert_eq!(count.unwrap().received, 1234);
    assert_eq!(all, big);
}

#[tokio::test]
async fn answers_without_samples_and_callers_who_leave() {
    let (stand_in, client) = start().await;
    for odd in [json!({}), json!([]), json!({"samples": {}}), json!({"samples": null})] {
        script(&stand_in, move |_, _| odd.clone());
        let (count, _, _) = read(&client, &SamplesOptions::default()).await;
        assert!(matches!(count, Err(SamplesError::Api(_))), "{count:?}");
    }
    put(&stand_in, SampleSource::Given(rows(0..50)));
    let options = SamplesOptions { page_size: 10, ..SamplesOptions::default() };
    let before = stand_in.requests().len();
    samples(&client, "e", &options, |_| ControlFlow::Break(())).await.unwrap();
    assert_eq!(stand_in.requests().len(), before + 1);
}
