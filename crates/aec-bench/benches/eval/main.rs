//! The cost of an evaluation, against `vf-eval` of verifiers 0.1.14 on the same model server:
//! `cargo bench --bench eval`. The figures of `docs/performance.md` come from here.
//!
//! The server runs in a separate process on the same machine. The peer's environments are `tiny_single` and
//! `tiny_tools` beside this file; ours are a generated task without tools, and the same task in a workspace whose file
//! is read twice. Processor times are those of all processes of a side, as the kernel counts them. Environment:
//! `AEC_BENCH_ROLLOUTS=2000`, `AEC_BENCH_MANY=100000`.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a benchmark prints, and stops when something cannot be arranged"
)]

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use aec_xtest::bench::{Place, is_asked_for, median, milliseconds};
use aec_xtest::venv;
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client as Bare;
use hyper_util::rt::TokioExecutor;

const PROGRAM: &str = env!("CARGO_BIN_EXE_aec-bench");
const PEER: &str = "0.1.14";
const EXAMPLES: usize = 20;
/// The file that the tool reads on both sides.
const DATA: &str = include_str!("tiny_tools/data.csv");

fn main() {
    if !is_asked_for() {
        return;
    }
    let number = |name: &str, usual: usize| {
        std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(usual)
    };
    let rollouts = number("AEC_BENCH_ROLLOUTS", 2000);
    let place = project();
    let peer = venv::install(&format!("verifiers-{PEER}"));
    first_request(&place);
    let bench = Bench { place, peer, rollouts };
    bench.bare_rate();
    bench.cost("single", "tiny");
    bench.cost("tools", "tiny-work");
    bench.crowd();
    bench.workers();
    bench.many(number("AEC_BENCH_MANY", 100_000));
}

/// A project with twenty tasks as two environments.
fn project() -> Place {
    let place = Place::new(PROGRAM, "eval");
    place.run("init --no-example");
    place.run(&format!("generate task voltage-drop --instances {EXAMPLES} --tool-mode no-tool --seed 7"));
    place.run("prime export --name tiny --output-dir environments --task electrical");
    // From now on the tasks have a file to read.
    let mut ahead = vec![place.path().join("tasks")];
    while let Some(next) = ahead.pop() {
        if next.join("task.toml").is_file() {
            std::fs::create_dir_all(next.join("environment")).unwrap();
            std::fs::write(next.join("environment/data.csv"), DATA).unwrap();
        } else {
            ahead.extend(
                std::fs::read_dir(&next)
                    .unwrap()
                    .map(|entry| entry.unwrap().path())
                    .filter(|path| path.is_dir()),
            );
        }
    }
    place.run(
        "prime export --name tiny-work --output-dir environments --harness-mode stateful --task electrical",
    );
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/eval");
    for module in ["tiny_single", "tiny_tools"] {
        let to = place.path().join("peer").join(module);
        std::fs::create_dir_all(&to).unwrap();
        for entry in std::fs::read_dir(here.join(module)).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                std::fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
            }
        }
    }
    let script = "replies:\n- tool_calls: [{name: read_file, arguments: {path: data.csv}}]\n\
                  - tool_calls: [{name: read_file, arguments: {path: data.csv}}]\n- text: '7'\n";
    std::fs::write(place.path().join("replies.yaml"), script).unwrap();
    std::fs::create_dir_all(place.path().join("configs")).unwrap();
    place
}

/// A model server in a separate process.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(place: &Place, more: &str) -> Self {
        let mut child =
            place.command(&format!("dev serve-model --quiet {more}")).stdout(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        let server = Self { child, url: url.trim().to_owned() };
        endpoints(place, &server.url);
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn endpoints(place: &Place, url: &str) {
    let row = format!(
        "[[endpoint]]\nendpoint_id = \"m\"\nmodel = \"m\"\nurl = \"{url}/v1\"\nkey = \"BENCH_KEY\"\n"
    );
    std::fs::write(place.path().join("configs/endpoints.toml"), row).unwrap();
}

struct Taken {
    time: Duration,
    cpu: f64,
    /// Peak memory of all its processes together, in MB.
    memory: f64,
}

fn measure(command: &mut Command) -> Taken {
    let before = children_cpu();
    let started = Instant::now();
    let mut child = command
        .env("BENCH_KEY", "key-of-the-benchmark")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut memory = 0.0_f64;
    let status = loop {
        memory = memory.max(tree_memory(child.id()));
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    assert!(matches!(status.code(), Some(0 | 1)), "{command:?}: {status}");
    Taken { time: started.elapsed(), cpu: children_cpu() - before, memory }
}

/// Processor seconds of all child processes that have been waited for.
fn children_cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    (fields[13].parse::<f64>().unwrap() + fields[14].parse::<f64>().unwrap()) / 100.0
}

/// Memory of a process and its descendants, in MB; shared memory is counted once.
fn tree_memory(pid: u32) -> f64 {
    let mut all = 0.0;
    let mut ahead = vec![pid];
    while let Some(pid) = ahead.pop() {
        let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
        let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"));
        let kilobytes = line.and_then(|line| line.trim().split(' ').next()?.parse::<f64>().ok());
        all += kilobytes.unwrap_or(0.0) / 1024.0;
        let children =
            std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        ahead.extend(children.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
    }
    all
}

struct Bench {
    place: Place,
    peer: PathBuf,
    rollouts: usize,
}

impl Bench {
    fn ours(&self, environment: &str, rollouts: usize, concurrency: usize) -> Command {
        let (examples, each) = shape(rollouts);
        self.place.command(&format!(
            "eval run {environment} -m m -n {examples} -r {each} -c {concurrency} -t 64 -s -a {{\"split\":\"all\"}} --quiet"
        ))
    }

    fn peers(&self, environment: &str, url: &str, rollouts: usize, concurrency: usize) -> Command {
        let (examples, each) = shape(rollouts);
        let mut command = Command::new(self.peer.join("bin/vf-eval"));
        command
            .args([
                environment,
                "-m",
                "m",
                "-b",
                &format!("{url}/v1"),
                "-k",
                "BENCH_KEY",
                "-t",
                "64",
                "-s",
                "-d",
            ])
            .args(["-n", &examples.to_string(), "-r", &each.to_string(), "-c", &concurrency.to_string()])
            .args(["-p", "local"])
            .args(["--env-dir-path", "peer"])
            .current_dir(self.place.path())
            .env("HOME", self.place.path())
            .env("PYTHONPATH", format!("peer/{0}", environment.replace('-', "_")))
            .env_remove("PYTHONDONTWRITEBYTECODE")
            .stdin(Stdio::null());
        command
    }

    /// Processor time per rollout, with and without start-up.
    fn cost(&self, what: &str, environment: &str) {
        let more = if what == "single" { "--output-tokens 16" } else { "--script replies.yaml" };
        let server = Server::start(&self.place, more);
        let peer_environment = format!("tiny-{what}");
        println!("{what}: {} rollouts at 128 at once, results saved", self.rollouts);
        let mut costs = Vec::new();
        for _ in 0..3 {
            let one = measure(&mut self.ours(environment, 1, 128));
            let all = measure(&mut self.ours(environment, self.rollouts, 128));
            costs.push(self.each("ours", &one, &all));
        }
        costs.sort_by(|a, b| a.0.total_cmp(&b.0));
        let own = costs[1];
        let one = measure(&mut self.peers(&peer_environment, &server.url, 1, 128));
        let all = measure(&mut self.peers(&peer_environment, &server.url, self.rollouts, 128));
        let peer = self.each(&format!("vf-eval {PEER}"), &one, &all);
        println!(
            "  {:.0} times less with start-up (limit 100), {:.0} times less without (limit 50)",
            peer.0 / own.0,
            peer.1 / own.1
        );
    }

    fn each(&self, who: &str, one: &Taken, all: &Taken) -> (f64, f64) {
        let whole = all.cpu * 1000.0 / self.rollouts as f64;
        let marginal = (all.cpu - one.cpu).max(0.001) * 1000.0 / (self.rollouts - 1) as f64;
        let rate = self.rollouts as f64 / all.time.as_secs_f64();
        println!(
            "  {who}: {:.2} s, {rate:.0} rollouts/s, {whole:.3} ms CPU each, {marginal:.3} ms without start-up ({:.2} s), {:.0} MB",
            all.time.as_secs_f64(),
            one.cpu,
            all.memory
        );
        (whole, marginal)
    }

    /// Memory of many rollouts at once.
    fn crowd(&self) {
        let server = Server::start(&self.place, "--output-tokens 16 --latency 50ms");
        let own = measure(&mut self.ours("tiny", self.rollouts, 512));
        let peer = measure(&mut self.peers("tiny-single", &server.url, self.rollouts, 512));
        println!(
            "512 at once: {:.1} MB, vf-eval {:.1} MB: {:.1} times less (limit 10)",
            own.memory,
            peer.memory,
            peer.memory / own.memory
        );
    }

    /// The peer's environment in our workers, against the peer.
    fn workers(&self) {
        let server = Server::start(&self.place, "--output-tokens 16 --latency 50ms");
        println!("environments in Python: tiny-single at 50 ms, 512 at once");
        let python = self.peer.join("bin/python");
        let ours = |rollouts: usize| {
            let (examples, each) = shape(rollouts);
            let mut command = self.place.command(&format!(
                "eval run tiny-single -m m -n {examples} -r {each} -c 512 -t 64 -s --quiet --env-dir-path peer"
            ));
            command.arg("--python").arg(&python).env_remove("PYTHONDONTWRITEBYTECODE");
            command
        };
        let rate = |who: &str, rollouts: usize, one: &Taken, all: &Taken| {
            let span = all.time.saturating_sub(one.time).max(Duration::from_millis(1));
            let rate = (rollouts - 1) as f64 / span.as_secs_f64();
            println!(
                "  {who}: {rollouts} in {:.1} s of which {:.1} s start-up, {rate:.0} rollouts/s, {:.0} MB",
                all.time.as_secs_f64(),
                one.time.as_secs_f64(),
                all.memory
            );
            rate
        };
        // Start-up varies by a second, which is as long as a few thousand rollouts take.
        let many = self.rollouts * 10;
        let own = rate("ours", many, &measure(&mut ours(1)), &measure(&mut ours(many)));
        let one = measure(&mut self.peers("tiny-single", &server.url, 1, 512));
        let all = measure(&mut self.peers("tiny-single", &server.url, self.rollouts, 512));
        let peer = rate(&format!("vf-eval {PEER}"), self.rollouts, &one, &all);
        println!("  {:.1} times the rate (limit 2)", own / peer);
    }

    /// Whether memory grows with the number of rollouts.
    fn many(&self, rollouts: usize) {
        let _server = Server::start(&self.place, "--output-tokens 16");
        let few = measure(&mut self.ours("tiny", rollouts / 10, 128));
        let all = measure(&mut self.ours("tiny", rollouts, 128));
        println!(
            "{rollouts} rollouts: {:.1} s, {:.0}/s, {:.1} MB; a tenth of them {:.1} MB",
            all.time.as_secs_f64(),
            rollouts as f64 / all.time.as_secs_f64(),
            all.memory,
            few.memory
        );
    }

    /// Rollouts per second of a whole evaluation, against a client that only sends requests and drops the answers.
    fn bare_rate(&self) {
        const CALLS: usize = 20_000;
        let server = Server::start(&self.place, "--output-tokens 16");
        let body = request_body(&self.place);
        endpoints(&self.place, &server.url);
        let mut rates = Vec::new();
        for _ in 0..3 {
            let bare = CALLS as f64
                / bare(&format!("{}/v1/chat/completions", server.url), &body, CALLS).as_secs_f64();
            let one = measure(&mut self.ours("tiny", 1, 128));
            let all = measure(&mut self.ours("tiny", CALLS, 128));
            let own = CALLS as f64 / all.time.saturating_sub(one.time).as_secs_f64();
            println!(
                "rate: bare hyper client {bare:.0} requests/s, ours {own:.0} rollouts/s: {:.2} (limit 0.40)",
                own / bare
            );
            rates.push(own / bare);
        }
    }
}

/// The number of examples, and of rollouts of each.
fn shape(rollouts: usize) -> (usize, usize) {
    if rollouts < EXAMPLES { (1, rollouts) } else { (EXAMPLES, rollouts / EXAMPLES) }
}

/// The body of a request as the program sends it, taken by a listener that does not answer.
fn request_body(place: &Place) -> bytes::Bytes {
    let (listener, mut child) = listen(place);
    let (mut stream, _) = listener.accept().unwrap();
    let mut bytes = Vec::new();
    let mut piece = [0; 8 * 1024];
    let body = loop {
        let count = stream.read(&mut piece).unwrap();
        bytes.extend_from_slice(&piece[..count]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head
            .lines()
            .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        if length.is_some_and(|length: usize| body.len() >= length) {
            break body.to_owned();
        }
    };
    child.kill().unwrap();
    child.wait().unwrap();
    body.into()
}

fn listen(place: &Place) -> (TcpListener, Child) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    endpoints(place, &format!("http://{}", listener.local_addr().unwrap()));
    let mut command = place.command("eval run tiny -m m -n 1 -r 1 -t 64 --quiet");
    command.env("BENCH_KEY", "key-of-the-benchmark");
    let child = command.spawn().unwrap();
    (listener, child)
}

/// How long it takes until the first request to the model.
fn first_request(place: &Place) {
    let mut times: Vec<Duration> = (0..15)
        .map(|_| {
            let started = Instant::now();
            let (listener, mut child) = listen(place);
            let (mut stream, _) = listener.accept().unwrap();
            assert!(stream.read(&mut [0; 64]).unwrap() > 0);
            let time = started.elapsed();
            child.kill().unwrap();
            child.wait().unwrap();
            time
        })
        .collect();
    println!("from start to first request: {:.1} ms (limit 50)", milliseconds(median(&mut times)));
}

/// How long a client takes that only sends requests and drops the answers.
fn bare(url: &str, body: &bytes::Bytes, calls: usize) -> Duration {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client: Bare<_, Full<bytes::Bytes>> = Bare::builder(TokioExecutor::new()).build_http();
        let next = Arc::new(AtomicUsize::new(0));
        let started = Instant::now();
        let workers: Vec<_> = (0..128)
            .map(|_| {
                let (client, next, url, body) =
                    (client.clone(), Arc::clone(&next), url.to_owned(), body.clone());
                tokio::spawn(async move {
                    while next.fetch_add(1, Ordering::Relaxed) < calls {
                        let request = hyper::Request::post(&url)
                            .header("content-type", "application/json")
                            .header("authorization", "Bearer key-of-the-benchmark")
                            .body(Full::new(body.clone()))
                            .unwrap();
                        let answer = client.request(request).await.unwrap();
                        answer.into_body().collect().await.unwrap();
                    }
                })
            })
            .collect();
        for worker in workers {
            worker.await.unwrap();
        }
        started.elapsed()
    })
}
