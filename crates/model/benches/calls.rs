//! The client's cost per model call, compared with a bare HTTP client that only sends and drops.
//!
//! `cargo bench -p aec-model --bench calls`. The test server runs in a separate process (this program, started again),
//! so that CPU time and memory are those of the client alone.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a benchmark prints, and stops when something cannot be arranged"
)]

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use aec_base::env::Env;
use aec_base::secret::Redactor;
use aec_model::client::{Client, Model, Scope, Setup};
use aec_model::message::{Message, Request, Role, Sampling};
use aec_model::meter::{Budget, Meter, Unpriced};
use aec_model::price::PriceList;
use aec_model::registry::Registry;
use aec_model::retry::RetryPolicy;
use aec_model::routing::Routes;
use aec_model::tape::Tape;
use aec_model::transport::allow_many_connections;
use aec_model_server::{Options, Range, TestServer};
use aec_xtest::bench::is_asked_for;
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client as Bare;
use hyper_util::rt::TokioExecutor;

const CONCURRENCY: usize = 256;

fn main() {
    if let Ok(kind) = std::env::var("AEC_BENCH_SERVER") {
        serve(&kind);
        return;
    }
    if !is_asked_for() {
        return;
    }
    allow_many_connections();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(rates());
    runtime.block_on(streams());
    runtime.block_on(growth());
}

/// Runs the server until its input ends.
fn serve(kind: &str) {
    allow_many_connections();
    let options = match kind {
        "slow" => {
            Options { output_tokens: Range::only(100), tokens_per_second: Some(20.0), ..Options::default() }
        }
        _ => Options { output_tokens: Range::only(50), ..Options::default() },
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let server = TestServer::start(options).await.unwrap();
        println!("{}", server.url());
        tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new()))
            .await
            .unwrap()
            .unwrap();
    });
}

/// The server in a separate process.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(kind: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .env("AEC_BENCH_SERVER", kind)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Self { child, url: url.trim().to_owned() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}

fn model(server: &Server, more: &str) -> (Model, Scope) {
    let path = std::env::temp_dir().join(format!("aec-bench-endpoints-{}.toml", std::process::id()));
    let row = format!(
        "[[endpoint]]\nendpoint_id = \"m\"\nmodel = \"gpt-4.1-mini\"\nurl = \"{}/v1\"\nkey = \"KEY\"\n{more}\n",
        server.url
    );
    fs_err::write(&path, row).unwrap();
    let env = Env::from_shell([("KEY".to_owned(), "sk-benchmark".to_owned())]);
    let (registry, _) = Registry::read(&path, &env).unwrap();
    fs_err::remove_file(&path).unwrap();
    let redactor = Redactor::from_env(&env);
    let routes = Routes { env, registry, ..Routes::default() };
    let setup = Setup {
        routes,
        prices: PriceList::builtin(),
        retry: RetryPolicy::default(),
        tape: Tape::Live,
        redactor,
    };
    let model = Client::new(setup).model("m", None).unwrap();
    let budget = Budget::of_tokens(u64::MAX / 2);
    let account = Meter::new(Unpriced::Refuse).open(None, "benchmark", budget);
    (model, Scope::new("benchmark", account))
}

fn request(number: usize, max_tokens: u32) -> Request {
    let text =
        format!("Question {number}. {}", "A simply supported beam carries a uniform load. ".repeat(40));
    Request {
        messages: vec![Message::text(Role::System, "You are an engineer."), Message::text(Role::User, text)],
        sampling: Sampling { max_tokens: Some(max_tokens), ..Sampling::default() },
        ..Request::default()
    }
}

/// Calls a function `count` times, `at_once` concurrently; returns the duration.
async fn drive<F>(count: usize, at_once: usize, call: impl Fn(usize) -> F + Send + Sync + 'static) -> Duration
where
    F: Future<Output = ()> + Send,
{
    let started = Instant::now();
    let next = Arc::new(AtomicUsize::new(0));
    let call = Arc::new(call);
    let workers: Vec<_> = (0..at_once)
        .map(|_| {
            let (next, call) = (Arc::clone(&next), Arc::clone(&call));
            tokio::spawn(async move {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return;
                    }
                    call(number).await;
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await.unwrap();
    }
    started.elapsed()
}

/// CPU time of this process, in seconds.
fn cpu() -> f64 {
    let text = fs_err::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = text.rsplit(") ").next().unwrap().split(' ').collect();
    let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
    ticks / 100.0
}

/// Memory of this process in MB: current, and peak.
fn memory() -> (f64, f64) {
    let text = fs_err::read_to_string("/proc/self/status").unwrap();
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() / 1024.0
    };
    (field("VmRSS:"), field("VmHWM:"))
}

/// Calls per second and microseconds of CPU per call, of the bare client and of ours.
type Row = Vec<(f64, f64)>;

async fn rates() {
    const COUNT: usize = 40_000;
    let server = Server::start("fast");
    let (model, scope) = model(&server, &format!("stream = \"never\"\nmax_concurrency = {CONCURRENCY}"));
    let bare: Bare<_, Full<bytes::Bytes>> = Bare::builder(TokioExecutor::new()).build_http();
    let url = format!("{}/v1/chat/completions", server.url);
    // Roughly the bytes that the client sends.
    let body = |number: usize| {
        let wire = aec_model::dialect::Wire {
            model: "gpt-4.1-mini".to_owned(),
            model_in_body: true,
            ..Default::default()
        };
        let body = aec_model::endpoint::Format::OpenAiChat.dialect().encode(&request(number, 200), &wire);
        bytes::Bytes::from(body.unwrap())
    };
    let sample = body(1);
    let send = move |_: usize| {
        let message = hyper::Request::post(url.as_str())
            .header("content-type", "application/json")
            .header("authorization", "Bearer sk-benchmark")
            .body(Full::new(sample.clone()))
            .unwrap();
        let answer = bare.request(message);
        async move {
            answer.await.unwrap().into_body().collect().await.unwrap();
        }
    };
    let call = move |number: usize| {
        let (model, scope) = (model.clone(), scope.clone());
        async move {
            model.call(&request(number, 200), &scope).await.outcome.unwrap();
        }
    };
    let (send, call) = (Arc::new(send), Arc::new(call));
    let mut rows = Vec::new();
    for round in 0..4 {
        let mut row = Vec::new();
        for which in ["bare", "client"] {
            let before = cpu();
            let time = if which == "bare" {
                let send = Arc::clone(&send);
                drive(COUNT, CONCURRENCY, move |number| send(number)).await
            } else {
                let call = Arc::clone(&call);
                drive(COUNT, CONCURRENCY, move |number| call(number)).await
            };
            row.push((COUNT as f64 / time.as_secs_f64(), (cpu() - before) / COUNT as f64 * 1e6));
        }
        // The first round opens connections and finds its concurrency.
        if round > 0 {
            rows.push(row);
        }
    }
    let median = |of: &dyn Fn(&Row) -> f64| {
        let mut values: Vec<f64> = rows.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let (bare, client) = (median(&|row| row[0].0), median(&|row| row[1].0));
    println!("concurrency {CONCURRENCY}, {COUNT} calls a round, 2 kB prompts, medians of three rounds");
    println!("bare hyper client: {bare:.0} calls/s, {:.0} us CPU a call", median(&|row| row[0].1));
    println!(
        "aec-model client:  {client:.0} calls/s, {:.0} us CPU a call (limit 200)",
        median(&|row| row[1].1)
    );
    println!("ratio: {:.2} (limit 0.50)", client / bare);
}

async fn streams() {
    const COUNT: usize = 2000;
    let server = Server::start("slow");
    let (model, mut scope) = model(&server, "stream = \"always\"\nmax_concurrency = 4096");
    // The gate begins with 64 calls and doubles with every round of answers; short calls open it.
    let quick = move |number: usize, model: Model, scope: Scope| async move {
        model.call(&request(number, 1), &scope).await.outcome.unwrap();
    };
    let (warm_model, warm_scope) = (model.clone(), scope.clone());
    drive(20_000, COUNT, move |number| quick(number, warm_model.clone(), warm_scope.clone())).await;
    let open = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let (counted, highest) = (Arc::clone(&open), Arc::clone(&most));
    scope.observer = Some(Arc::new(move |event| match event {
        aec_model::event::CallEvent::Attempt { .. } => {
            highest.fetch_max(counted.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
        _ => {
            counted.fetch_sub(1, Ordering::Relaxed);
        }
    }));
    let time = drive(COUNT, COUNT, move |number| {
        let (model, scope) = (model.clone(), scope.clone());
        async move {
            model.call(&request(number, 200), &scope).await.outcome.unwrap();
        }
    })
    .await;
    let (now, peak) = memory();
    println!(
        "{} streams at once in {:.1} s: {now:.0} MB, at most {peak:.0} MB since the start (limit 300)",
        most.load(Ordering::Relaxed),
        time.as_secs_f64()
    );
}

async fn growth() {
    const COUNT: usize = 200_000;
    let server = Server::start("fast");
    let (model, scope) = model(&server, "stream = \"never\"\nmax_concurrency = 256");
    let mut sizes = Vec::new();
    for _ in 0..5 {
        let (model, scope) = (model.clone(), scope.clone());
        drive(COUNT / 5, CONCURRENCY, move |number| {
            let (model, scope) = (model.clone(), scope.clone());
            async move {
                model.call(&request(number, 200), &scope).await.outcome.unwrap();
            }
        })
        .await;
        sizes.push(memory().0);
    }
    let shown: Vec<String> = sizes.iter().map(|size| format!("{size:.1}")).collect();
    println!("{COUNT} calls, memory after each fifth: {} MB", shown.join(", "));
}
