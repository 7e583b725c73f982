//! `aec-bench web`: shows the ledger and reports in a browser.

use aec_base::problem::Problem;
use aec_base::project::Project;
use aec_base::secret::Secret;
use aec_base::settings::Setting;
use aec_base::text::printable;
use aec_evolve::workspace::git::GitProgram;
use aec_web::{BindError, Options, Places, Server};
use clap::Args;
use serde_json::json;
use tokio::runtime::Runtime;

use crate::arguments::{JobsRootArgument, LedgerRootArgument, TasksRootArgument};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;
use crate::signals::Signals;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench web\n  \
                        aec-bench web --host 0.0.0.0 --token env:WEB_TOKEN")]
pub(crate) struct WebArguments {
    /// Port to listen on; 0 for a free one
    #[arg(long, short, value_name = "PORT", default_value_t = 8710)]
    pub(crate) port: u16,
    /// Name or address to listen on; anything but loopback needs --token
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    pub(crate) host: String,
    /// Token for every request: `Authorization: Bearer TOKEN`, or once `?token=TOKEN`; `env:NAME` reads a variable
    #[arg(long, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
    #[command(flatten)]
    pub(crate) ledger_root: LedgerRootArgument,
    #[command(flatten)]
    pub(crate) jobs_root: JobsRootArgument,
    #[command(flatten)]
    pub(crate) tasks_root: TasksRootArgument,
}

pub(crate) fn web(context: &Context, arguments: &WebArguments) -> Result<Outcome, Failure> {
    let mut overrides = arguments.ledger_root.overrides(context)?;
    overrides.extend(arguments.tasks_root.overrides(context)?);
    overrides.extend(arguments.jobs_root.overrides(context)?);
    let project = context.project(overrides)?;
    let token = arguments.token.as_deref().map(|token| secret(&project, token)).transpose()?;
    if let Some(token) = &token {
        context.remember_values(std::iter::once(("--token", token.reveal())));
    }
    let options = Options { host: arguments.host.clone(), port: arguments.port, token };
    let needs_token = options.token.is_some();
    let runtime = Runtime::new()?;
    let (server, signals) = runtime.block_on(async {
        // A client may send a signal as soon as it reads that the server is ready.
        let signals = Signals::catch()?;
        let server = Server::bind(options, places(context, &project))
            .await
            .map_err(|error| cannot_listen(arguments, error))?;
        Ok::<_, Failure>((server, signals))
    })?;
    let url = server.url();
    let data = json!({ "url": url, "needs_token": needs_token });
    let mut outcome = Outcome::new(context.format, &data, || format!("{url}\n"))?
        .remark("Serving until Ctrl-C. The pages cannot change anything.");
    if needs_token {
        outcome = outcome.remark("The first time, open the address with ?token=TOKEN at its end.");
    }
    Ok(outcome.serve(move || {
        let served = runtime.block_on(serve(server, signals));
        // The program does not wait for reads of open pages.
        runtime.shutdown_background();
        served
    }))
}

/// Serves until a signal arrives, then finishes open requests unless a second signal arrives.
async fn serve(server: Server, mut signals: Signals) -> Result<(), Failure> {
    let (stop, stopped) = tokio::sync::oneshot::channel();
    let twice = async {
        signals.next().await;
        stop.send(()).ok();
        signals.next().await;
    };
    tokio::select! {
        served = server.serve(async { stopped.await.unwrap_or_default() }) => Ok(served?),
        () = twice => Ok(()),
    }
}

fn places(context: &Context, project: &Project) -> Places {
    let path = |setting| project.settings.path(setting);
    Places {
        name: project.settings.get(Setting::ProjectName).value.clone(),
        root: project.root.clone(),
        ledger: path(Setting::Ledger),
        jobs: path(Setting::Jobs),
        tasks: path(Setting::Tasks),
        templates: path(Setting::Templates),
        datasets: path(Setting::Datasets),
        audits: project.root.join("artefacts").join("audits"),
        feedback: path(Setting::Feedback),
        git: GitProgram::find(context.search_path()).ok(),
    }
}

/// The token itself, or that of a variable: everybody on the machine can see a command line.
fn secret(project: &Project, token: &str) -> Result<Secret, Failure> {
    let Some(name) = token.strip_prefix("env:") else { return Ok(Secret::new(token)) };
    let unset = || {
        let problem = Problem::error(format!("the variable {} is not set", printable(name)));
        Failure::from(problem.fix("set it in the shell or in .env"))
    };
    project.env.get(name).map(Secret::new).ok_or_else(unset)
}

fn cannot_listen(arguments: &WebArguments, error: BindError) -> Failure {
    match error {
        BindError::Open(address) => Failure::usage(
            Problem::error(format!("`{}` is not on loopback", printable(&arguments.host)))
                .why(format!("anyone who reaches {} could see every prompt, answer and trace", address.ip()))
                .fix("leave --host out, or give a --token that every request must show"),
        ),
        BindError::Token(least) => Failure::usage(
            Problem::error(format!("the token has fewer than {least} characters"))
                .why("a token that can be guessed protects nothing")
                .fix("give a longer one, say from `openssl rand -hex 16`"),
        ),
        BindError::Io(error) => {
            let place = format!("{}:{}", printable(&arguments.host), arguments.port);
            Failure::environment(
                Problem::error(format!("cannot listen on {place}: {error}"))
                    .fix("name another --port, or 0 for one that is free"),
            )
        }
    }
}
