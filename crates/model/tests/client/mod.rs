//! The client against a server that reproduces the providers' formats and fails on demand.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at the first thing that is not as it should be"
)]

mod dialects;
mod failures;
mod faults;
mod limits;
mod money;
mod proxies;
mod replicas;
mod tapes;

use std::sync::Arc;
use std::time::Duration;

use aec_base::env::Env;
use aec_base::secret::Redactor;
use aec_http::pause::Rule;
use aec_model::client::{Client, Model, Scope, Setup};
use aec_model::message::{Message, Request, Role, Sampling};
use aec_model::meter::{Account, Budget, Meter, Unpriced};
use aec_model::price::PriceList;
use aec_model::registry::Registry;
use aec_model::retry::RetryPolicy;
use aec_model::routing::Routes;
use aec_model::tape::Tape;
use aec_model_server::{Answers, Options, TestServer};

/// A server that repeats its input.
async fn echo() -> TestServer {
    start(Options { answers: Answers::Echo, ..Options::default() }).await
}

async fn start(options: Options) -> TestServer {
    TestServer::start(options).await.unwrap()
}

/// The usual retries without the long waits.
fn quick() -> RetryPolicy {
    let usual = RetryPolicy::default();
    let pauses = Rule { first: Duration::from_millis(2), longest: Duration::from_millis(20), ..usual.pauses };
    RetryPolicy { pauses, ..usual }
}

/// A client for the rows of an endpoints file.
fn client(rows: &str, retry: RetryPolicy) -> Client {
    client_with(rows, &[("KEY", "sk-test-value")], retry, Tape::Live)
}

fn client_with(rows: &str, variables: &[(&str, &str)], retry: RetryPolicy, tape: Tape) -> Client {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("endpoints.toml");
    fs_err::write(&path, rows).unwrap();
    let env =
        Env::from_shell(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    let (registry, _) = Registry::read(&path, &env).unwrap_or_else(|problems| panic!("{problems:#?}"));
    let redactor = Redactor::from_env(&env).with(registry.secrets());
    let routes = Routes { env, registry, directory: dir.path().to_path_buf() };
    Client::new(Setup { routes, prices: prices(dir.path()), retry, tape, redactor })
}

/// The test model costs one dollar per million tokens of input and ten of output.
fn prices(dir: &std::path::Path) -> PriceList {
    let path = dir.join("prices.toml");
    let rows = "schema_version = 1\nversion = \"2026-11-16\"\n[[price]]\nprovider = \"other\"\nmodel = \"big\"\ninput = 1\noutput = 10\n";
    fs_err::write(&path, rows).unwrap();
    PriceList::with_user_file(&path).unwrap_or_else(|problems| panic!("{problems:#?}"))
}

/// A row of an endpoints file.
fn row(url: &str, more: &str) -> String {
    format!("[[endpoint]]\nendpoint_id = \"m\"\nmodel = \"big\"\nurl = \"{url}\"\nkey = \"KEY\"\n{more}\n")
}

fn plain(server: &TestServer, more: &str) -> String {
    row(&format!("{}/v1", server.url()), more)
}

fn account(budget: Budget) -> Account {
    Meter::new(Unpriced::Allow).open(None, "the test", budget)
}

fn scope() -> Scope {
    Scope::new("trial", account(Budget::default()))
}

fn ask(text: &str) -> Request {
    Request {
        messages: vec![Message::text(Role::User, text)],
        sampling: Sampling { max_tokens: Some(256), ..Sampling::default() },
        ..Request::default()
    }
}

fn model(client: &Client) -> Model {
    client.model("m", None).unwrap()
}

/// Waits for something that another task does, without assuming how long it takes.
async fn until(mut done: impl FnMut() -> bool) {
    for _ in 0..10_000 {
        if done() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("it never happened");
}

/// Calls a model many times concurrently; the results are in the order of the texts.
async fn ask_many(model: &Model, scope: &Scope, texts: Vec<String>) -> Vec<aec_model::client::Called> {
    let shared = Arc::new((model.clone(), scope.clone()));
    let tasks: Vec<_> = texts
        .into_iter()
        .map(|text| {
            let shared = Arc::clone(&shared);
            tokio::spawn(async move { shared.0.call(&ask(&text), &shared.1).await })
        })
        .collect();
    let mut called = Vec::with_capacity(tasks.len());
    for task in tasks {
        called.push(task.await.unwrap());
    }
    called
}
