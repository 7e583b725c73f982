//! What the commands of `prime` share: the connection, and telling what happens.

use std::path::PathBuf;
use std::time::Duration;

use aec_base::problem::Problem;
use aec_base::project::Project;
use aec_base::text::printable;
use aec_http::Proxies;
use aec_prime::FAMILY;
use aec_prime::service::client::{ApiError, ApiErrorKind, Client, ClientOptions};
use aec_prime::service::hub::EnvironmentName;
use aec_prime::service::settings::{Settings, SettingsError};
use aec_prime::service::watch::WatchOptions;
use tokio::runtime::Runtime;

use crate::context::Context;
use crate::failure::Failure;
use crate::output::Format;
use crate::progress::outlet::Outlet;

/// A connection and what runs it.
pub(crate) struct Service {
    pub(crate) runtime: Runtime,
    pub(crate) client: Client,
    pub(crate) project: Project,
}

impl Service {
    /// Reads what `prime login` left, and the variables of the project. Nothing is sent yet.
    pub(crate) fn open(context: &Context) -> Result<Self, Failure> {
        let project = context.project(Vec::new())?;
        let settings = settings(context, &project)?;
        let options = ClientOptions { proxies: Proxies::of(&project.env), ..ClientOptions::default() };
        let client = Client::new(settings, options).map_err(|error| failed(&error))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { runtime, client, project })
    }
}

/// The account's settings; its key is scrubbed from everything that is printed.
pub(crate) fn settings(context: &Context, project: &Project) -> Result<Settings, Failure> {
    let home = etcetera::home_dir().unwrap_or_else(|_| PathBuf::from("/"));
    let settings = Settings::load(&home, |name| project.env.get(name).map(str::to_owned));
    let settings = settings.map_err(|error: SettingsError| {
        let problem = Problem::error(error.to_string()).id(FAMILY.number(30));
        Failure::input(vec![problem.fix("run `prime login`, or set PRIME_API_KEY")])
    })?;
    if let Some(key) = &settings.api_key {
        context.remember_values(std::iter::once(("PRIME_API_KEY", key.reveal())));
    }
    Ok(settings)
}

/// A call that did not work: ours to mend or the service's.
pub(crate) fn failed(error: &ApiError) -> Failure {
    let problem = Problem::error(error.to_string()).id(FAMILY.number(31));
    Failure::environment(problem.fix(match error.kind {
        ApiErrorKind::NoKey | ApiErrorKind::Unauthorized { .. } => "run `prime login`, or set PRIME_API_KEY",
        _ if error.is_passing() => "wait a little and try again",
        _ => "see `aec-bench prime doctor`",
    }))
}

/// Something that makes no sense to ask for.
pub(crate) fn unusable(error: &dyn std::fmt::Display, fix: &str) -> Failure {
    Failure::input(vec![Problem::error(error.to_string()).id(FAMILY.number(32)).fix(fix)])
}

pub(crate) fn environment_name(text: &str) -> Result<EnvironmentName, Failure> {
    text.parse().map_err(|why: String| {
        let problem = Problem::error(why).id(FAMILY.number(33));
        Failure::usage(problem.fix("write the owner and the name, such as your-owner/aec-electrical-v1"))
    })
}

/// How often something is asked about.
pub(crate) fn watch(seconds: f64) -> Result<WatchOptions, Failure> {
    match Duration::try_from_secs_f64(seconds) {
        Ok(interval) if interval >= Duration::from_millis(10) && interval <= Duration::from_hours(1) => {
            Ok(WatchOptions { interval, ..WatchOptions::default() })
        }
        _ => Err(Failure::usage(
            Problem::error(format!("--poll-interval {seconds} is not between 0.01 and 3600"))
                .fix("write seconds, such as 10"),
        )),
    }
}

/// Says on stderr what happens, unless nobody wants to hear it.
pub(crate) struct Narrator {
    outlet: Option<Outlet>,
}

impl Narrator {
    pub(crate) fn new(context: &Context) -> Result<Self, Failure> {
        let wanted = !context.quiet && context.format == Format::Text;
        Ok(Self { outlet: if wanted { Some(Outlet::stderr(context.color)?) } else { None } })
    }

    pub(crate) fn say(&mut self, text: &str) {
        if let Some(outlet) = &mut self.outlet {
            outlet.print(printable(text).into_owned());
        }
    }
}
