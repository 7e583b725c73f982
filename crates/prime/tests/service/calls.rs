//! Keys, errors, retries, redirects and limits of single calls.

use std::time::Duration;

use aec_base::env::Env;
use aec_http::Proxies;
use aec_prime::service::account::{models, whoami};
use aec_prime::service::client::{ApiErrorKind, Client, ClientOptions};
use aec_prime::service::evaluations::{self, HostedEvaluation};
use aec_prime::service::settings::{ApiKey, Settings};
use aec_xtest::prime::Failure;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::service::{client_with, quick, start};

#[tokio::test]
async fn account_and_models() {
    let (stand_in, client) = start().await;
    assert_eq!(whoami(&client).await.unwrap().slug.as_deref(), Some("me"));
    let models = models(&client).await.unwrap();
    let ids: Vec<&str> = models.iter().map(|model| model.id.as_str()).collect();
    assert_eq!(ids, ["Qwen/Qwen3.5-4B", "openai/gpt-4.1-mini"]);
    assert_eq!(models[0].output_price, Some(0.2));
    assert_eq!(stand_in.calls(), ["GET /api/v1/user/whoami", "GET /inference/v1/models"]);
    let request = &stand_in.requests()[0];
    assert_eq!(request.header("authorization"), Some("Bearer pit_test_key"));
    assert!(request.header("user-agent").unwrap().starts_with("aec-bench/"));
}

#[tokio::test]
async fn the_team_goes_with_model_calls() {
    let (stand_in, _) = start().await;
    let client =
        client_with(Settings { team_id: Some("team1".to_owned()), ..crate::service::settings(&stand_in) });
    models(&client).await.unwrap();
    assert_eq!(stand_in.requests()[0].header("x-prime-team-id"), Some("team1"));
}

#[tokio::test]
async fn no_key_and_a_wrong_key_say_how_to_log_in() {
    let (stand_in, _) = start().await;
    let client = client_with(Settings { api_key: None, ..crate::service::settings(&stand_in) });
    let error = whoami(&client).await.unwrap_err().to_string();
    assert!(error.contains("prime login") && error.contains("PRIME_API_KEY"), "{error}");
    assert!(stand_in.requests().is_empty(), "nothing is sent without a key");
    let client = client_with(Settings {
        api_key: Some(ApiKey::new("pit_wrong")),
        ..crate::service::settings(&stand_in)
    });
    let error = whoami(&client).await.unwrap_err();
    assert!(matches!(error.kind, ApiErrorKind::Unauthorized { .. }), "{error}");
    let shown = format!("{error} {error:?} {client:?}");
    assert!(shown.contains("prime login") && !shown.contains("pit_wrong"), "{shown}");
    assert_eq!(stand_in.requests().len(), 1, "a refused key is not tried again");
}

#[tokio::test]
async fn busy_and_broken_services_are_asked_again() {
    let (stand_in, client) = start().await;
    let mut limited = Failure::new("whoami", 429, 1);
    limited.headers.push(("retry-after".to_owned(), "0".to_owned()));
    stand_in.with(|state| state.failures = vec![limited, Failure::new("whoami", 503, 2)]);
    whoami(&client).await.unwrap();
    assert_eq!(stand_in.requests().len(), 4);
    stand_in.with(|state| state.failures = vec![Failure::new("whoami", 500, 10)]);
    let error = whoami(&client).await.unwrap_err();
    assert!(matches!(error.kind, ApiErrorKind::Server { status: 500, .. }), "{error}");
    assert_eq!(stand_in.requests().len(), 8, "four attempts and no more");
}

#[tokio::test]
async fn a_service_that_wants_a_long_rest_gets_it() {
    let (stand_in, client) = start().await;
    let mut limited = Failure::new("whoami", 429, 10);
    limited.headers.push(("retry-after".to_owned(), "86400".to_owned()));
    stand_in.with(|state| state.failures = vec![limited]);
    let error = whoami(&client).await.unwrap_err().to_string();
    assert!(error.contains("86400 seconds"), "{error}");
    assert_eq!(stand_in.requests().len(), 1);
}

#[tokio::test]
async fn creating_calls_are_sent_once() {
    let (stand_in, client) = start().await;
    let id = stand_in.with(|state| state.add_environment("me", "demo"));
    let evaluation =
        HostedEvaluation { environment_ids: vec![id], model: "m".to_owned(), ..HostedEvaluation::default() };
    for status in [429, 500, 502] {
        stand_in.with(|state| {
            state.failures = vec![Failure::new("hosted-evaluations", status, 10)];
            state.requests.clear();
        });
        evaluations::start(&client, &evaluation).await.unwrap_err();
        assert_eq!(stand_in.requests().len(), 1, "status {status}");
    }
}

#[tokio::test]
async fn refusals_are_told_apart() {
    let (stand_in, client) = start().await;
    for (status, expected) in
        [(402, "credit"), (403, "permission"), (404, "not found"), (405, "does not know")]
    {
        stand_in.with(|state| state.failures = vec![Failure::new("whoami", status, 1)]);
        let error = whoami(&client).await.unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("GET /api/v1/user/whoami"), "{status}: {error}");
    }
    let mut invalid = Failure::new("whoami", 422, 1);
    invalid.body = r#"{"detail":[{"loc":["body","name"],"msg":"too short"}]}"#.to_owned();
    stand_in.with(|state| state.failures = vec![invalid]);
    let error = whoami(&client).await.unwrap_err().to_string();
    assert!(error.contains("name: too short"), "{error}");
}

#[tokio::test]
async fn answers_that_are_not_answers_are_refused() {
    let (stand_in, client) = start().await;
    for body in ["", "<html>", "[1,2]", "{\"data\":", "\u{0}\u{1}", "{\"data\": 5}", "null"] {
        let mut odd = Failure::new("whoami", 200, 1);
        odd.body = body.to_owned();
        stand_in.with(|state| state.failures = vec![odd]);
        let error = whoami(&client).await.unwrap_err();
        assert!(matches!(error.kind, ApiErrorKind::Malformed { .. }), "{body:?}: {error}");
    }
    let mut long = Failure::new("whoami", 200, 1);
    long.body = "x".repeat(5000);
    stand_in.with(|state| state.failures = vec![long]);
    let small = ClientOptions { longest_answer: 4096, ..quick() };
    let error = whoami(&Client::new(crate::service::settings(&stand_in), small).unwrap()).await.unwrap_err();
    assert!(matches!(error.kind, ApiErrorKind::TooLong { limit: 4096 }), "{error}");
}

#[tokio::test]
async fn the_key_does_not_follow_to_another_host() {
    let (other, _) = start().await;
    let (stand_in, client) = start().await;
    let redirect = |to: String, status: u16| {
        let mut failure = Failure::new("whoami", status, 1);
        failure.headers.push(("location".to_owned(), to));
        failure
    };
    for status in [301, 302, 303, 307, 308] {
        let to = format!("{}/api/v1/user/whoami", other.base_url());
        stand_in.with(|state| state.failures = vec![redirect(to, status)]);
        let error = whoami(&client).await.unwrap_err();
        assert!(matches!(error.kind, ApiErrorKind::Redirect { .. }), "{status}: {error}");
    }
    assert!(other.requests().is_empty());
    stand_in.with(|state| state.failures = vec![redirect("/api/v1/user/whoami?again=1".to_owned(), 307)]);
    whoami(&client).await.unwrap();
    assert_eq!(stand_in.requests().last().unwrap().parameter("again").as_deref(), Some("1"));
    let mut forever = redirect("/api/v1/user/whoami".to_owned(), 302);
    forever.times = 100;
    stand_in.with(|state| state.failures = vec![forever]);
    assert!(matches!(whoami(&client).await.unwrap_err().kind, ApiErrorKind::Redirect { .. }));
}

#[tokio::test]
async fn a_request_with_content_is_not_turned_into_another() {
    let (stand_in, client) = start().await;
    let id = stand_in.with(|state| state.add_environment("me", "demo"));
    let mut redirect = Failure::new("hosted-evaluations", 302, 1);
    redirect.headers.push(("location".to_owned(), "/api/v1/evaluations/".to_owned()));
    stand_in.with(|state| state.failures = vec![redirect]);
    let evaluation =
        HostedEvaluation { environment_ids: vec![id], model: "m".to_owned(), ..HostedEvaluation::default() };
    evaluations::start(&client, &evaluation).await.unwrap_err();
    assert_eq!(stand_in.calls(), ["POST /api/v1/hosted-evaluations"]);
}

#[tokio::test]
async fn silence_and_nobody_there_are_told() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let silent = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut buffer = [0; 1024];
        while socket.read(&mut buffer).await.is_ok_and(|count| count > 0) {}
    });
    let settings = Settings {
        api_key: Some(ApiKey::new("k")),
        base_url: format!("http://{address}"),
        ..Settings::default()
    };
    let options = ClientOptions { answer_timeout: Duration::from_millis(50), attempts: 1, ..quick() };
    let client = Client::new(settings.clone(), options.clone()).unwrap();
    let error = whoami(&client).await.unwrap_err();
    assert!(matches!(error.kind, ApiErrorKind::Timeout { .. }), "{error}");
    silent.abort();
    drop(silent.await);
    let client =
        Client::new(settings, ClientOptions { answer_timeout: Duration::from_secs(30), ..options }).unwrap();
    let error = whoami(&client).await.unwrap_err();
    assert!(matches!(error.kind, ApiErrorKind::Connection { .. }), "{error}");
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_told() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut buffer = [0; 4096];
        assert!(socket.read(&mut buffer).await.unwrap() > 0);
        let head =
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{\"data\"";
        socket.write_all(head).await.unwrap();
    });
    let settings = Settings {
        api_key: Some(ApiKey::new("k")),
        base_url: format!("http://{address}"),
        ..Settings::default()
    };
    let client = Client::new(settings, ClientOptions { attempts: 1, ..quick() }).unwrap();
    let error = whoami(&client).await.unwrap_err();
    assert!(matches!(error.kind, ApiErrorKind::Connection { .. }), "{error}");
    server.await.unwrap();
}

#[tokio::test]
async fn calls_go_through_the_proxy_of_the_environment() {
    let proxy = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = format!("http://{}", proxy.local_addr().unwrap());
    let heard = tokio::spawn(async move {
        let (mut socket, _) = proxy.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(socket.read_u8().await.unwrap());
        }
        String::from_utf8(head).unwrap()
    });
    let settings = Settings {
        api_key: Some(ApiKey::new("pit_test_key")),
        base_url: "https://prime.test".to_owned(),
        ..Settings::default()
    };
    let env = Env::from_shell([("HTTPS_PROXY".to_owned(), address)]);
    let options = ClientOptions { proxies: Proxies::of(&env), attempts: 1, ..quick() };
    let error = whoami(&Client::new(settings, options).unwrap()).await.unwrap_err();
    assert!(matches!(error.kind, ApiErrorKind::Connection { .. }), "{error}");
    let heard = heard.await.unwrap();
    assert!(heard.starts_with("CONNECT prime.test:443 ") && !heard.contains("pit_test_key"), "{heard}");
}

#[test]
fn plain_addresses_elsewhere_are_refused() {
    let settings = Settings {
        api_key: Some(ApiKey::new("k")),
        base_url: "http://prime.test".to_owned(),
        ..Settings::default()
    };
    let error = Client::new(settings, quick()).unwrap_err().to_string();
    assert!(error.contains("without encryption"), "{error}");
}
