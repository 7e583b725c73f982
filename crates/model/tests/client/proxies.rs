//! Calls through the proxy of the environment, and around it.

use std::sync::{Arc, Mutex};

use aec_model::failure::FailureKind;
use aec_model::retry::RetryPolicy;
use aec_model::tape::Tape;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::{ask, client_with, echo, model, plain, quick, row, scope};

/// A proxy that leads to one server, and records the requested destinations.
async fn proxy(server: &str) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let server = server.trim_start_matches("http://").to_owned();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let (server, heard) = (server.clone(), Arc::clone(&heard));
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(client.read_u8().await.unwrap());
                }
                heard.lock().unwrap().push(String::from_utf8(head).unwrap());
                let mut server = TcpStream::connect(server).await.unwrap();
                client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.unwrap();
                tokio::io::copy_bidirectional(&mut client, &mut server).await.ok();
            });
        }
    });
    (address, asked)
}

#[tokio::test]
async fn calls_go_through_the_proxy_unless_they_are_local_or_excepted() {
    let server = echo().await;
    let (address, asked) = proxy(&server.url()).await;
    let with_user = address.replace("http://", "http://user:pass@");
    let far = row("http://models.example/v1", "");
    let variables = [("KEY", "sk-test-value"), ("HTTP_PROXY", with_user.as_str())];
    let called = model(&client_with(&far, &variables, quick(), Tape::Live)).call(&ask("far"), &scope()).await;
    assert_eq!(called.outcome.unwrap().text(), "far");
    let heard = asked.lock().unwrap().join("");
    assert!(heard.starts_with("CONNECT models.example:80 "), "{heard}");
    assert!(heard.to_lowercase().contains("proxy-authorization: basic "), "{heard}");
    assert!(!heard.contains("sk-test-value"), "the key is for the other end: {heard}");
    // Addresses on this machine are called directly.
    let near = model(&client_with(&plain(&server, ""), &variables, quick(), Tape::Live));
    assert_eq!(near.call(&ask("near"), &scope()).await.outcome.unwrap().text(), "near");
    // So are the user's exceptions, which here lead nowhere.
    let once = RetryPolicy::once();
    let variables =
        [("KEY", "sk-test-value"), ("HTTP_PROXY", address.as_str()), ("NO_PROXY", "models.invalid")];
    let excepted = client_with(&row("http://models.invalid/v1", ""), &variables, once, Tape::Live);
    let failure = model(&excepted).call(&ask("x"), &scope()).await.outcome.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Network);
    assert_eq!(asked.lock().unwrap().len(), 1, "only the first came by");
}
