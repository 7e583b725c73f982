//! Calls to servers that send scripted bytes: what the client sends, follows, cuts off and refuses.

#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that is not as it should be")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use aec_base::env::Env;
use aec_http::{Answer, Call, Client, Failure, Options, Proxies, Redirects};
use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue, Method};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use url::Url;

const FINE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// A server that gives one answer to each connection, in order, and repeats the last one. It records the requests.
struct Server {
    url: String,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn start(answers: Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let heard = Arc::new(Mutex::new(Vec::new()));
        let hears = Arc::clone(&heard);
        tokio::spawn(async move {
            let mut number = 0;
            while let Ok((mut socket, _)) = listener.accept().await {
                let said = request(&mut socket).await;
                hears.lock().unwrap().push(said);
                let answer = answers.get(number).or_else(|| answers.last()).unwrap();
                number += 1;
                socket.write_all(answer.as_bytes()).await.ok();
                socket.shutdown().await.ok();
            }
        });
        Self { url, heard }
    }

    fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }
}

/// Reads one request, with as much body as its length announces.
async fn request(socket: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        bytes.push(socket.read_u8().await.unwrap());
    }
    let head = String::from_utf8(bytes).unwrap().to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    socket.read_exact(&mut body).await.unwrap();
    head + &String::from_utf8(body).unwrap()
}

fn options(redirects: Redirects) -> Options {
    Options {
        connect_timeout: Duration::from_secs(10),
        longest_answer: 1000,
        redirects,
        proxies: Proxies::default(),
    }
}

async fn send(method: Method, url: &str, body: &'static str, options: Options) -> Result<Answer, Failure> {
    let mut headers = HeaderMap::new();
    if options.redirects == Redirects::SameOrigin {
        headers.insert(AUTHORIZATION, HeaderValue::from_static("bearer k3y"));
    }
    let url = Url::parse(url).unwrap();
    let timeout = Duration::from_mins(1);
    let content = Bytes::from_static(body.as_bytes());
    let call = Call { method: &method, url: &url, headers: &headers, content: &content, timeout };
    Client::new(options).unwrap().send(&call).await
}

async fn get(url: &str, redirects: Redirects) -> Result<Answer, Failure> {
    send(Method::GET, url, "", options(redirects)).await
}

fn redirect(status: u16, to: &str) -> String {
    format!("HTTP/1.1 {status} Elsewhere\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n")
}

#[tokio::test]
async fn a_request_is_what_was_asked_for() {
    let server = Server::start(vec![FINE.to_owned()]).await;
    let url = format!("{}/a%20b?c=d#e", server.url.replace("http://", "http://me:p%40ss@"));
    let answer = send(Method::PUT, &url, "content", options(Redirects::SameHost)).await.unwrap();
    assert_eq!((answer.status.as_u16(), &answer.body[..]), (200, b"ok".as_slice()));
    let heard = server.heard().remove(0);
    assert!(
        heard.starts_with("put /a%20b?c=d http/1.1\r\n") && heard.ends_with("\r\n\r\ncontent"),
        "{heard}"
    );
    // `me:p@ss`; this test compares in lower case.
    assert!(heard.contains(&format!("authorization: {}", "Basic bWU6cEBzcw==".to_lowercase())), "{heard}");
    assert!(heard.contains("user-agent: aec-bench/") && heard.contains("accept: */*"), "{heard}");
}

#[tokio::test]
async fn redirects_keep_keys_with_their_origin() {
    let other = Server::start(vec![FINE.to_owned()]).await;
    for status in [301, 302, 303, 307, 308] {
        let server = Server::start(vec![redirect(status, &other.url)]).await;
        let failure = get(&server.url, Redirects::SameOrigin).await.unwrap_err();
        assert_eq!(failure, Failure::Redirect { status, to: other.url.clone() });
        let server = Server::start(vec![redirect(status, "/there"), FINE.to_owned()]).await;
        get(&server.url, Redirects::SameOrigin).await.unwrap();
        assert!(server.heard()[1].starts_with("get /there ") && server.heard()[1].contains("bearer k3y"));
    }
    assert!(other.heard().is_empty());
    // Another port of the same host is allowed for calls without a key, another host is not.
    let server = Server::start(vec![redirect(302, &other.url)]).await;
    get(&server.url, Redirects::SameHost).await.unwrap();
    for away in [other.url.replace("127.0.0.1", "localhost"), "ftp://127.0.0.1/".to_owned()] {
        let server = Server::start(vec![redirect(302, &away)]).await;
        let failure = get(&server.url, Redirects::SameHost).await.unwrap_err();
        assert!(matches!(failure, Failure::Redirect { status: 302, .. }), "{failure}");
    }
    assert_eq!(other.heard().len(), 1);
}

#[tokio::test]
async fn redirects_end_and_lead_somewhere() {
    let round = Server::start(vec![redirect(302, "/again")]).await;
    assert!(matches!(get(&round.url, Redirects::SameOrigin).await, Err(Failure::Redirect { .. })));
    assert_eq!(round.heard().len(), 4);
    let nowhere = Server::start(vec!["HTTP/1.1 302 Where\r\ncontent-length: 0\r\n\r\n".to_owned()]).await;
    let failure = get(&nowhere.url, Redirects::SameOrigin).await.unwrap_err();
    assert_eq!(failure, Failure::NoAddress { status: 302 });
}

#[tokio::test]
async fn content_is_sent_again_or_not_at_all() {
    for (status, times) in [(301, 1), (302, 1), (303, 1), (307, 2), (308, 2)] {
        let server = Server::start(vec![redirect(status, "/there"), FINE.to_owned()]).await;
        let outcome = send(Method::POST, &server.url, "content", options(Redirects::SameOrigin)).await;
        assert_eq!(outcome.is_ok(), times == 2, "{status}: {outcome:?}");
        let heard = server.heard();
        assert_eq!(heard.len(), times, "{status}");
        assert!(
            heard.iter().all(|heard| heard.starts_with("post ") && heard.ends_with("content")),
            "{heard:?}"
        );
    }
}

#[tokio::test]
async fn answers_are_bounded_and_refusals_cut() {
    let answer = |status: u16, length: usize| {
        format!("HTTP/1.1 {status} X\r\nconnection: close\r\n\r\n{}", "x".repeat(length))
    };
    let read = async |status, length| {
        let server = Server::start(vec![answer(status, length)]).await;
        get(&server.url, Redirects::SameOrigin).await.map(|answer| answer.body.len())
    };
    assert_eq!(read(200, 1000).await, Ok(1000));
    assert_eq!(read(200, 1001).await, Err(Failure::TooLong { limit: 1000 }));
    assert_eq!(read(500, 1001).await, Ok(1001));
    assert_eq!(read(500, 1_000_000).await, Ok(64 * 1024));
}

#[tokio::test]
async fn what_breaks_off_is_sent_once() {
    let cut = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{";
    for answer in ["", "HTT", "what?\r\n\r\n", cut] {
        let server = Server::start(vec![answer.to_owned()]).await;
        let outcome = send(Method::POST, &server.url, "content", options(Redirects::SameOrigin)).await;
        assert!(matches!(outcome, Err(Failure::Connection { .. })), "{answer:?}: {outcome:?}");
        assert_eq!(server.heard().len(), 1, "{answer:?}");
    }
    let refused = cut.replace("200", "500");
    let server = Server::start(vec![refused]).await;
    assert_eq!(get(&server.url, Redirects::SameOrigin).await.unwrap().status.as_u16(), 500);
}

#[tokio::test(start_paused = true)]
async fn silence_ends() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let failure = get(&url, Redirects::SameOrigin).await.unwrap_err();
    assert_eq!(failure, Failure::Timeout { after: Duration::from_mins(1) });
}

#[tokio::test]
async fn proxies_are_used_for_other_machines_only() {
    let proxy = Server::start(vec!["HTTP/1.1 502 No\r\ncontent-length: 0\r\n\r\n".to_owned()]).await;
    let env = |pairs: &[(&str, &str)]| {
        Env::from_shell(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
    };
    let through = |env: &Env| Options { proxies: Proxies::of(env), ..options(Redirects::SameOrigin) };
    let all = env(&[("ALL_PROXY", &proxy.url), ("NO_PROXY", "near.invalid")]);
    for (url, heard) in
        [("https://far.test", "connect far.test:443 "), ("http://far.test", "connect far.test:80 ")]
    {
        send(Method::GET, url, "", through(&all)).await.unwrap_err();
        let last = proxy.heard().pop().unwrap();
        assert!(last.starts_with(heard) && !last.contains("k3y"), "{last}");
    }
    let local = Server::start(vec![FINE.to_owned()]).await;
    send(Method::GET, &local.url, "", through(&all)).await.unwrap();
    send(Method::GET, "http://near.invalid", "", through(&all)).await.unwrap_err();
    assert_eq!(proxy.heard().len(), 2);
    for variable in ["ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY"] {
        let failure = Client::new(through(&env(&[(variable, "::")]))).unwrap_err();
        assert_eq!(failure, Failure::Proxy { variable });
    }
}
