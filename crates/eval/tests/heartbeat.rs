//! Heartbeats, against monitors that answer, hang, refuse and redirect.

#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that is not as it should be")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aec_base::env::Env;
use aec_base::problem::{Problem, Severity};
use aec_eval::heartbeat::{Heartbeat, HeartbeatOptions};
use aec_http::Proxies;
use aec_xtest::port::ClosedPort;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

const FINE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// Longer than any test lasts.
const LONG: Duration = Duration::from_hours(1);

#[derive(Debug, PartialEq, Eq)]
enum Seen {
    /// The first line of a request.
    Request(String),
    /// A client that closed the connection before the answer.
    Gone,
}

/// A monitor that gives every caller the same answer, or none.
struct Monitor {
    port: u16,
    requests: Arc<AtomicUsize>,
    seen: mpsc::UnboundedReceiver<Seen>,
    task: JoinHandle<()>,
}

impl Monitor {
    async fn start(answer: Option<&'static str>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(AtomicUsize::new(0));
        let (sender, seen) = mpsc::unbounded_channel();
        let counter = Arc::clone(&requests);
        let task = tokio::spawn(async move {
            let mut clients = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                clients.spawn(serve(stream, answer, Arc::clone(&counter), sender.clone()));
            }
        });
        Self { port, requests, seen, task }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/ping/s3cret", self.port)
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    async fn sees(&mut self) -> Seen {
        self.seen.recv().await.unwrap()
    }

    async fn sees_request(&mut self) {
        let seen = self.sees().await;
        assert!(matches!(&seen, Seen::Request(_)), "{seen:?}");
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(
    mut stream: TcpStream,
    answer: Option<&'static str>,
    requests: Arc<AtomicUsize>,
    seen: mpsc::UnboundedSender<Seen>,
) {
    let mut head = Vec::new();
    loop {
        let mut piece = [0; 1024];
        let count = stream.read(&mut piece).await.unwrap_or(0);
        if count == 0 {
            if answer.is_none() {
                drop(seen.send(Seen::Gone));
            }
            return;
        }
        head.extend_from_slice(&piece[..count]);
        if !head.ends_with(b"\r\n\r\n") {
            continue;
        }
        requests.fetch_add(1, Ordering::SeqCst);
        let text = String::from_utf8_lossy(&head);
        let first = text.lines().next().unwrap_or_default().to_owned();
        head.clear();
        if let Some(answer) = answer {
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
        drop(seen.send(Seen::Request(first)));
    }
}

/// Problems that were reported.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<Problem>>>);

impl Told {
    fn listener(&self) -> impl FnOnce(Problem) + Send + 'static {
        let told = Arc::clone(&self.0);
        move |problem| told.lock().unwrap().push(problem)
    }

    fn all(&self) -> Vec<Problem> {
        self.0.lock().unwrap().clone()
    }

    fn one(&self) -> String {
        let all = self.all();
        assert_eq!(all.len(), 1, "{all:?}");
        assert_eq!(all[0].id.as_deref(), Some("R088"));
        assert_eq!(all[0].severity, Severity::Warning);
        assert!(!format!("{:?}", all[0]).contains("s3cret"), "{:?}", all[0]);
        all[0].what.clone()
    }
}

fn options() -> HeartbeatOptions {
    HeartbeatOptions { interval: LONG, timeout: LONG, last_timeout: LONG, proxies: Proxies::default() }
}

#[tokio::test]
async fn a_monitor_that_never_answers_costs_nothing() {
    let mut monitor = Monitor::start(None).await;
    let told = Told::default();
    let hurried = HeartbeatOptions { interval: Duration::ZERO, ..options() };
    let heartbeat = Heartbeat::start(&monitor.url(), hurried, told.listener()).unwrap();
    heartbeat.beat();
    assert_eq!(monitor.sees().await, Seen::Request("GET /ping/s3cret HTTP/1.1".to_owned()));
    for _ in 0..10_000 {
        heartbeat.beat();
        tokio::task::yield_now().await;
    }
    assert_eq!(monitor.requests(), 1, "one call at most is in flight");
    assert!(told.all().is_empty());
}

#[tokio::test]
async fn nothing_is_called_after_a_heartbeat_is_dropped() {
    let mut monitor = Monitor::start(None).await;
    let (sender, mut told) = mpsc::unbounded_channel();
    let heartbeat =
        Heartbeat::start(&monitor.url(), options(), move |problem| drop(sender.send(problem))).unwrap();
    heartbeat.beat();
    monitor.sees_request().await;
    drop(heartbeat);
    assert_eq!(monitor.sees().await, Seen::Gone);
    // The task owns the listener, so the listener is dropped when no more problems can be reported.
    tokio::select! {
        seen = monitor.sees() => panic!("{seen:?}"),
        problem = told.recv() => assert_eq!(problem, None),
    }
    assert_eq!(monitor.requests(), 1);
}

#[tokio::test]
async fn a_call_under_way_is_given_up_for_the_last_one() {
    let mut monitor = Monitor::start(None).await;
    let told = Told::default();
    let heartbeat = Heartbeat::start(&monitor.url(), options(), told.listener()).unwrap();
    heartbeat.beat();
    monitor.sees_request().await;
    let end = tokio::spawn(heartbeat.finish());
    let events = [monitor.sees().await, monitor.sees().await];
    assert!(events.contains(&Seen::Gone), "{events:?}");
    assert_eq!(monitor.requests(), 2);
    // The monitor goes away during the last call.
    drop(monitor);
    end.await.unwrap();
    told.one();
}

#[tokio::test]
async fn a_monitor_that_never_answers_does_not_hold_up_the_end() {
    let monitor = Monitor::start(None).await;
    let told = Told::default();
    let short = HeartbeatOptions { last_timeout: Duration::from_millis(10), ..options() };
    let heartbeat = Heartbeat::start(&monitor.url(), short, told.listener()).unwrap();
    heartbeat.beat();
    heartbeat.finish().await;
    assert!(told.one().contains("no answer within 0.01 seconds"));
}

#[tokio::test]
async fn calls_keep_their_distance_and_the_last_one_is_made_all_the_same() {
    let mut monitor = Monitor::start(Some(FINE)).await;
    let told = Told::default();
    let heartbeat = Heartbeat::start(&monitor.url(), options(), told.listener()).unwrap();
    heartbeat.beat();
    monitor.sees_request().await;
    for _ in 0..10_000 {
        heartbeat.beat();
        tokio::task::yield_now().await;
    }
    heartbeat.finish().await;
    assert_eq!(monitor.requests(), 2);
    assert!(told.all().is_empty());
}

#[tokio::test]
async fn progress_is_told_again_after_the_interval() {
    let mut monitor = Monitor::start(Some(FINE)).await;
    let hurried = HeartbeatOptions { interval: Duration::from_millis(1), ..options() };
    let heartbeat = Heartbeat::start(&monitor.url(), hurried, drop).unwrap();
    for beat in 1..=5 {
        heartbeat.beat();
        monitor.sees_request().await;
        assert_eq!(monitor.requests(), beat);
    }
    heartbeat.finish().await;
    assert_eq!(monitor.requests(), 6);
}

#[tokio::test]
async fn an_evaluation_without_progress_still_tells_its_end() {
    let monitor = Monitor::start(Some(FINE)).await;
    Heartbeat::start(&monitor.url(), options(), drop).unwrap().finish().await;
    assert_eq!(monitor.requests(), 1);
}

#[tokio::test]
async fn failures_are_told_once() {
    for (answer, says) in [
        ("HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n", "status 500"),
        ("HTTP/1.1 404 Gone\r\ncontent-length: 0\r\n\r\n", "status 404"),
        ("what?\r\n\r\n", "cannot be reached"),
    ] {
        let mut monitor = Monitor::start(Some(answer)).await;
        let told = Told::default();
        let hurried = HeartbeatOptions { interval: Duration::ZERO, ..options() };
        let heartbeat = Heartbeat::start(&monitor.url(), hurried, told.listener()).unwrap();
        for _ in 0..3 {
            heartbeat.beat();
            monitor.sees_request().await;
        }
        heartbeat.finish().await;
        assert!(told.one().contains(says), "{:?}", told.all());
        assert!(told.one().contains("127.0.0.1"));
    }
}

#[tokio::test]
async fn a_monitor_that_is_not_there_is_told_once() {
    let nobody = ClosedPort::take();
    let url = format!("http://{}/ping/s3cret", nobody.address);
    let told = Told::default();
    let heartbeat = Heartbeat::start(&url, options(), told.listener()).unwrap();
    for _ in 0..10_000 {
        heartbeat.beat();
    }
    heartbeat.finish().await;
    assert!(told.one().contains("refused"), "{:?}", told.all());
}

#[tokio::test]
async fn a_slow_monitor_is_given_up() {
    let monitor = Monitor::start(None).await;
    let (sender, mut told) = mpsc::unbounded_channel();
    let wait = Duration::from_millis(10);
    let short = HeartbeatOptions {
        interval: Duration::ZERO,
        timeout: wait,
        last_timeout: wait,
        proxies: Proxies::default(),
    };
    let heartbeat =
        Heartbeat::start(&monitor.url(), short, move |problem| drop(sender.send(problem))).unwrap();
    heartbeat.beat();
    let problem = told.recv().await.unwrap();
    assert!(problem.what.contains("no answer within 0.01 seconds"), "{problem}");
    heartbeat.beat();
    heartbeat.finish().await;
    assert!(told.recv().await.is_none(), "told once");
}

#[tokio::test]
async fn redirects_stay_with_the_host() {
    let other = Monitor::start(Some(FINE)).await;
    let away = format!(
        "HTTP/1.1 302 Found\r\nlocation: http://localhost:{}/\r\ncontent-length: 0\r\n\r\n",
        other.port
    );
    let monitor = Monitor::start(Some(Box::leak(away.into_boxed_str()))).await;
    let told = Told::default();
    Heartbeat::start(&monitor.url(), options(), told.listener()).unwrap().finish().await;
    assert_eq!((monitor.requests(), other.requests()), (1, 0));
    assert!(told.one().contains("status 302"));

    let within = format!(
        "HTTP/1.1 307 Moved\r\nlocation: http://127.0.0.1:{}/\r\ncontent-length: 0\r\n\r\n",
        other.port
    );
    let monitor = Monitor::start(Some(Box::leak(within.into_boxed_str()))).await;
    let told = Told::default();
    Heartbeat::start(&monitor.url(), options(), told.listener()).unwrap().finish().await;
    assert_eq!((monitor.requests(), other.requests()), (1, 1));
    assert!(told.all().is_empty());

    let round = "HTTP/1.1 302 Found\r\nlocation: /again\r\ncontent-length: 0\r\n\r\n";
    let monitor = Monitor::start(Some(round)).await;
    let told = Told::default();
    Heartbeat::start(&monitor.url(), options(), told.listener()).unwrap().finish().await;
    assert_eq!(monitor.requests(), 4);
    assert!(told.one().contains("status 302"));
}

#[tokio::test]
async fn addresses_that_cannot_be_called_are_problems_at_the_start() {
    for url in [
        "",
        " ",
        "status.example.com/s3cret",
        "/s3cret",
        "ftp://a.test/s3cret",
        "https://",
        "https://a b/s3cret",
    ] {
        let problem = Heartbeat::start(url, HeartbeatOptions::default(), drop).unwrap_err();
        assert_eq!(problem.id.as_deref(), Some("R087"), "{url}");
        assert!(problem.fix.is_some() && !format!("{problem:?}").contains("s3cret"), "{problem:?}");
    }
    let env = Env::from_shell([("HTTPS_PROXY".to_owned(), "::".to_owned())]);
    let bad_proxy = HeartbeatOptions { proxies: Proxies::of(&env), ..HeartbeatOptions::default() };
    assert_eq!(Heartbeat::start("https://a.test", bad_proxy, drop).unwrap_err().id.as_deref(), Some("R087"));
}
