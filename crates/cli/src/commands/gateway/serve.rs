//! `aec-bench gateway serve`: serves models to programs that must not see keys.

use std::net::SocketAddr;
use std::path::PathBuf;

use aec_base::problem::Problem;
use aec_base::secret::Secret;
use aec_base::settings::Setting;
use aec_model::client::Scope;
use aec_model::gateway::{Gateway, Grant, MOST_CONNECTIONS};
use aec_model::meter::{Account, Budget};
use aec_model::money::MicroDollars;
use aec_model::retry::RetryPolicy;
use aec_run::terms::{Caps, Limit};
use clap::{Args, ValueHint};
use serde::Serialize;
use tokio::net::{TcpListener, UnixListener};

use crate::commands::models;
use crate::commands::models::{EndpointsArgument, TapeArguments};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;
use crate::signals::Signals;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench gateway serve --model gpt-4.1-mini --max-cost 5\n  \
                        aec-bench gateway serve --model gpt-4.1-mini --tokens 4 --token-max-cost 1 --json")]
pub(crate) struct GatewayServeArguments {
    /// Model or endpoint id that may be called
    #[arg(long, short, value_name = "MODEL", required = true)]
    pub(crate) model: Vec<String>,
    /// Address to listen on; it must be on loopback
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,
    /// Also listen on this Unix socket
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(crate) socket: Option<PathBuf>,
    /// Number of tokens to issue, each with its own budget (`budget.trial_usd`, `budget.trial_tokens`)
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub(crate) tokens: u16,
    /// Most dollars that may be spent with one token
    #[arg(long, value_name = "USD")]
    pub(crate) token_max_cost: Option<Limit<MicroDollars>>,
    /// Most calls at once with one token
    #[arg(long, value_name = "N", default_value_t = aec_model::gateway::Grant::USUAL_IN_FLIGHT, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_in_flight: u32,
    #[command(flatten)]
    pub(crate) budget: Caps,
    #[command(flatten)]
    pub(crate) endpoints: EndpointsArgument,
    #[command(flatten)]
    pub(crate) tape: TapeArguments,
}

#[derive(Serialize)]
struct Data {
    address: SocketAddr,
    openai_base_url: String,
    anthropic_base_url: String,
    socket: Option<PathBuf>,
    models: Vec<String>,
    tokens: Vec<Token>,
}

#[derive(Serialize)]
struct Token {
    name: String,
    token: String,
}

pub(crate) fn serve(context: &Context, arguments: &GatewayServeArguments) -> Result<Outcome, Failure> {
    if !arguments.listen.ip().is_loopback() {
        let what = format!("`{}` is not on loopback", arguments.listen);
        return Err(Failure::usage(
            Problem::error(what)
                .why("anyone who reaches the gateway and holds a token can spend your money")
                .fix("listen on 127.0.0.1, and forward the port if it is needed elsewhere"),
        ));
    }
    let project = models::project(context, &arguments.endpoints, &arguments.budget)?;
    let unpriced = arguments.budget.unpriced();
    let opened = models::open(context, &project, &arguments.tape, RetryPolicy::default(), unpriced)?;
    let mut budget = models::budget(&project, Setting::TrialDollars, Setting::TrialTokens);
    if let Some(limit) = &arguments.token_max_cost {
        budget.money = limit.most();
    }
    let gateway = Gateway::new();
    let mut holders = Vec::new();
    for number in 1..=arguments.tokens {
        holders.push(issue(&gateway, arguments, &opened, number, budget)?);
    }
    let runtime = models::runtime()?;
    let (signals, (tcp, unix)) = runtime
        .block_on(async { Ok::<_, Failure>((Signals::catch()?, listen(arguments, context).await?)) })?;
    let address = tcp.local_addr()?;
    let data = Data {
        address,
        openai_base_url: format!("http://{address}/v1"),
        anthropic_base_url: format!("http://{address}"),
        socket: arguments.socket.clone(),
        models: arguments.model.clone(),
        tokens: holders
            .iter()
            .map(|(name, token, _)| Token { name: name.clone(), token: token.reveal().to_owned() })
            .collect(),
    };
    let outcome = Outcome::new(context.format, &data, || text(&data))?.problems(opened.problems);
    let accounts: Vec<(String, Account)> =
        holders.into_iter().map(|(name, _, account)| (name, account)).collect();
    let socket = arguments.socket.clone().map(|path| context.absolute(&path)).transpose()?;
    Ok(outcome.serve(move || {
        let served = runtime.block_on(run(&gateway, tcp, unix, signals));
        if let Some(path) = socket {
            std::fs::remove_file(path).ok();
        }
        for (name, account) in accounts {
            let totals = account.totals();
            tracing::info!(token = name, totals = %serde_json::json!(totals), "spent");
        }
        drop(opened.client);
        served
    }))
}

fn issue(
    gateway: &Gateway,
    arguments: &GatewayServeArguments,
    opened: &models::Models,
    number: u16,
    budget: Budget,
) -> Result<(String, Secret, Account), Failure> {
    let name = format!("token-{number}");
    let models = arguments
        .model
        .iter()
        .map(|model| opened.client.model(model, None))
        .collect::<Result<Vec<_>, _>>()
        .map_err(Problem::from)?;
    let account = opened.meter.open(Some(&opened.run), &name, budget);
    let scope = Scope::new(name.clone(), account.clone());
    let token = gateway.issue(Grant { models, scope, max_in_flight: arguments.max_in_flight })?;
    Ok((name, token, account))
}

async fn listen(
    arguments: &GatewayServeArguments,
    context: &Context,
) -> Result<(TcpListener, Option<UnixListener>), Failure> {
    let tcp = TcpListener::bind(arguments.listen).await.map_err(|error| {
        Failure::environment(
            Problem::error(format!("cannot listen on {}: {error}", arguments.listen))
                .fix("choose another port, or 0 for a free one"),
        )
    })?;
    let unix = match &arguments.socket {
        None => None,
        Some(path) => {
            let path = context.absolute(path)?;
            Some(UnixListener::bind(&path).map_err(|error| {
                Failure::environment(
                    Problem::error(format!("cannot listen on {}: {error}", path.display()))
                        .fix("choose a path where nothing is yet"),
                )
            })?)
        }
    };
    Ok((tcp, unix))
}

/// Serves until a signal arrives, then finishes open calls unless a second signal arrives.
async fn run(
    gateway: &Gateway,
    tcp: TcpListener,
    unix: Option<UnixListener>,
    mut signals: Signals,
) -> Result<(), Failure> {
    let (stop, stopping) = tokio::sync::watch::channel(false);
    let stopped = || {
        let mut stopping = stopping.clone();
        async move {
            // An error means that the sender was dropped, which is also a reason to stop.
            stopping.wait_for(|stop| *stop).await.ok();
        }
    };
    let tcp = gateway.serve(tcp, MOST_CONNECTIONS, stopped());
    let unix = async {
        match unix {
            None => Ok(()),
            Some(unix) => gateway.serve(unix, MOST_CONNECTIONS, stopped()).await,
        }
    };
    let twice = async {
        signals.next().await;
        stop.send_replace(true);
        signals.next().await;
    };
    tokio::select! {
        served = async { tokio::try_join!(tcp, unix) } => served.map(|_| ())?,
        () = twice => {}
    }
    Ok(())
}

fn text(data: &Data) -> String {
    let mut text = format!(
        "listening on {}\n\nOPENAI_BASE_URL={}\nANTHROPIC_BASE_URL={}\n",
        data.address, data.openai_base_url, data.anthropic_base_url
    );
    if let Some(socket) = &data.socket {
        text.push_str(&format!("socket: {}\n", socket.display()));
    }
    text.push_str(&format!("models: {}\n", data.models.join(", ")));
    for token in &data.tokens {
        text.push_str(&format!("{}: {}\n", token.name, token.token));
    }
    text
}
