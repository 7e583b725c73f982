//! The gateway over real connections: what holders of a token get, and what they must not get (attack 25).

#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that is not as it should be")]

mod abuse;
mod service;

use std::net::SocketAddr;
use std::time::Duration;

use aec_base::env::Env;
use aec_base::secret::{Redactor, Secret};
use aec_http::pause::Rule;
use aec_model::client::{Client, Scope, Setup};
use aec_model::gateway::{Gateway, Grant};
use aec_model::meter::{Account, Budget, Meter, Unpriced};
use aec_model::price::PriceList;
use aec_model::registry::Registry;
use aec_model::retry::RetryPolicy;
use aec_model::routing::Routes;
use aec_model::tape::Tape;
use aec_model_server::{Answers, Options, TestServer};
use serde_json::{Value, json};

/// The key that no agent behind the gateway may ever see.
const KEY: &str = "sk-canary-in-the-gateway";

/// A provider, a gateway in front of it, and a token.
struct World {
    server: TestServer,
    client: Client,
    gateway: Gateway,
    meter: Meter,
    address: SocketAddr,
    http: reqwest::Client,
}

impl World {
    async fn new(options: Options, more: &str) -> Self {
        let options = Options { key: Some(KEY.to_owned()), keep_requests: 64, ..options };
        let server = TestServer::start(options).await.unwrap();
        let dir = tempfile::tempdir().unwrap();
        let (endpoints, prices) = (dir.path().join("endpoints.toml"), dir.path().join("prices.toml"));
        let row = |id: &str| {
            let url = server.url();
            format!(
                "[[endpoint]]\nendpoint_id = \"{id}\"\nmodel = \"big\"\nurl = \"{url}/v1\"\nkey = \"PROVIDER_KEY\"\n{more}\n"
            )
        };
        fs_err::write(&endpoints, format!("{}{}", row("mine"), row("theirs"))).unwrap();
        let list = "schema_version = 1\nversion = \"2026-11-16\"\n[[price]]\nprovider = \"other\"\nmodel = \"big\"\ninput = 1\noutput = 10\n";
        fs_err::write(&prices, list).unwrap();
        let env = Env::from_shell([("PROVIDER_KEY".to_owned(), KEY.to_owned())]);
        let (registry, _) = Registry::read(&endpoints, &env).unwrap();
        let redactor = Redactor::from_env(&env).with(registry.secrets());
        let client = Client::new(Setup {
            routes: Routes { env, registry, directory: dir.path().to_path_buf() },
            prices: PriceList::with_user_file(&prices).unwrap(),
            retry: RetryPolicy {
                pauses: Rule::new(Duration::from_millis(1), Duration::from_secs(30)),
                attempts: 3,
                ..RetryPolicy::default()
            },
            tape: Tape::Live,
            redactor,
        });
        let gateway = Gateway::new();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = gateway.clone();
        tokio::spawn(async move { serving.serve(listener, 64, std::future::pending()).await });
        // Another crate of the workspace enables TLS for this client, which needs a provider even for plain HTTP. It
        // does not matter if one is already installed.
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .unwrap();
        Self { server, client, gateway, meter: Meter::new(Unpriced::Refuse), address, http }
    }

    async fn echo() -> Self {
        Self::new(Options { answers: Answers::Echo, ..Options::default() }, "").await
    }

    /// A token for one model with its own budget.
    fn token(&self, model: &str, budget: Budget) -> (Secret, Account) {
        self.token_for(model, budget, Grant::USUAL_IN_FLIGHT)
    }

    fn token_for(&self, model: &str, budget: Budget, max_in_flight: u32) -> (Secret, Account) {
        let account = self.meter.open(None, model, budget);
        let models = vec![self.client.model(model, None).unwrap()];
        let scope = Scope::new("trial", account.clone());
        (self.gateway.issue(Grant { models, scope, max_in_flight }).unwrap(), account)
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    async fn post(&self, path: &str, token: &Secret, body: &Value) -> (u16, String) {
        let sent = self.http.post(self.url(path)).bearer_auth(token.reveal()).body(body.to_string()).send();
        let response = sent.await.unwrap();
        let status = response.status().as_u16();
        let headers = format!("{:?}", response.headers());
        let text = response.text().await.unwrap();
        assert!(!text.contains("canary") && !headers.contains("canary"), "{headers} {text}");
        (status, text)
    }

    async fn chat(&self, token: &Secret, body: &Value) -> (u16, Value) {
        let (status, text) = self.post("/v1/chat/completions", token, body).await;
        (status, serde_json::from_str(&text).unwrap_or_else(|_| json!({ "text": text })))
    }
}

fn chat(model: &str, text: &str) -> Value {
    json!({ "model": model, "max_tokens": 100, "messages": [{ "role": "user", "content": text }] })
}

fn with(mut body: Value, key: &str, value: Value) -> Value {
    body[key] = value;
    body
}
