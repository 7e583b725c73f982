//! `aec-bench dev serve-model`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use aec_base::problem::Problem;
use aec_base::text::printable;
use aec_model::script::Script;
use aec_model::transport::allow_many_connections;
use aec_model_server::{Answers, Fault, Options, Range, TestServer, duration};
use clap::{Args, ValueHint};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;
use crate::signals::Signals;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench dev serve-model\n  \
                        aec-bench dev serve-model --port 8000 --script careful.yaml\n  \
                        aec-bench dev serve-model --latency 50ms..200ms --fault rate=0.05")]
pub(crate) struct ServeModelArguments {
    /// Port on 127.0.0.1 [default: a free one]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(crate) port: u16,
    /// Seed of the random answers and faults
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Time until an answer begins: 50ms, or 20ms..2s
    #[arg(long, value_name = "TIME", default_value = "0")]
    pub(crate) latency: Range<Duration>,
    /// Speed of streamed answers [default: unlimited]
    #[arg(long, value_name = "N")]
    pub(crate) tokens_per_second: Option<f64>,
    /// Length of random answers, in tokens: 40, or 16..64
    #[arg(long, value_name = "N", default_value = "16..64")]
    pub(crate) output_tokens: Range<u32>,
    /// Share of random answers that call a tool, if the request offers tools
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub(crate) tool_calls: f64,
    /// Answer with the replies in this file, one per turn
    #[arg(long, value_name = "FILE", conflicts_with = "echo", value_hint = ValueHint::FilePath)]
    pub(crate) script: Option<PathBuf>,
    /// Answer with the user's last message
    #[arg(long)]
    pub(crate) echo: bool,
    /// Make a share of the requests fail in this way, such as rate=0.1; see docs/models.md
    #[arg(long = "fault", value_name = "KIND=SHARE")]
    pub(crate) faults: Vec<Fault>,
    /// Waiting time that rate-limit answers ask for
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    pub(crate) retry_after: Duration,
    /// Refuse requests beyond this many at a time
    #[arg(long, value_name = "N")]
    pub(crate) limit_in_flight: Option<usize>,
    /// Refuse requests beyond this many per minute
    #[arg(long, value_name = "N")]
    pub(crate) requests_per_minute: Option<u32>,
    /// Refuse requests without the key in this variable
    #[arg(long, value_name = "VARIABLE")]
    pub(crate) key: Option<String>,
}

pub(crate) fn serve_model(context: &Context, arguments: &ServeModelArguments) -> Result<Outcome, Failure> {
    let options = options(context, arguments)?;
    allow_many_connections();
    let runtime = Runtime::new()?;
    let port = options.port;
    let (server, signals) = runtime.block_on(async {
        // A client may send a signal as soon as it reads that the server is ready.
        let signals = Signals::catch()?;
        let server = TestServer::start(options).await.map_err(|error| cannot_listen(port, &error))?;
        Ok::<_, Failure>((server, signals))
    })?;
    let url = server.url();
    let outcome = Outcome::new(context.format, &json!({ "url": url }), || format!("{url}\n"))?
        .remark(format!(
            "Serving until Ctrl-C. Base URLs: {url}/v1 (OpenAI), {url} (Anthropic, Bedrock, Azure)."
        ))
        .remark(format!("Counters: {url}/stats"));
    Ok(outcome.serve(move || {
        runtime.block_on(serve(server, signals));
        Ok(())
    }))
}

/// Serves until a signal arrives, then finishes open requests unless a second signal arrives.
async fn serve(server: TestServer, mut signals: Signals) {
    signals.next().await;
    tokio::select! {
        stats = server.stop() => tracing::debug!(?stats, "stopped"),
        () = signals.next() => {}
    }
}

fn options(context: &Context, arguments: &ServeModelArguments) -> Result<Options, Failure> {
    let answers = match &arguments.script {
        Some(path) => Answers::Script(Arc::new(Script::read(&context.absolute(path)?)?)),
        None if arguments.echo => Answers::Echo,
        None => Answers::Drawn,
    };
    let options = Options {
        port: arguments.port,
        seed: arguments.seed,
        answers,
        output_tokens: arguments.output_tokens,
        tool_calls: arguments.tool_calls,
        latency: arguments.latency,
        tokens_per_second: arguments.tokens_per_second,
        faults: arguments.faults.clone(),
        retry_after: arguments.retry_after,
        limit_in_flight: arguments.limit_in_flight,
        requests_per_minute: arguments.requests_per_minute,
        key: arguments.key.as_deref().map(|name| key(context, name)).transpose()?,
        ..Options::default()
    };
    options.check().map_err(|why| Failure::usage(Problem::error(why).fix("see the command's --help")))?;
    Ok(options)
}

fn key(context: &Context, name: &str) -> Result<String, Failure> {
    let project = context.project(Vec::new())?;
    let unset = || {
        let problem = Problem::error(format!("the variable {} is not set", printable(name)));
        problem.fix("set it in the shell or in .env, or leave --key out").into()
    };
    project.env.get(name).map(str::to_owned).ok_or_else(unset)
}

fn cannot_listen(port: u16, error: &std::io::Error) -> Failure {
    let problem = Problem::error(format!("cannot listen on 127.0.0.1:{port}: {error}"));
    Failure::environment(problem.fix("name another --port, or leave it out for one that is free"))
}
