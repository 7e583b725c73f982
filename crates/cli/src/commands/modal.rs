//! Modal for the commands: its credentials, what a run would create and cost there, and what runs left there.

use std::path::{Path, PathBuf};

use aec_base::env::Env;
use aec_base::problem::Problem;
use aec_base::project::Project;
use aec_base::settings::Setting;
use aec_base::text;
use aec_container::{EngineError, Modal, ModalClient, ModalRates};
use aec_model::money::MicroDollars;
use aec_run::demand::{ContainerKind, Demand};
use aec_run::plan::Credentials;
use serde::Serialize;

use crate::commands::containers::FAMILY;
use crate::commands::harbor;
use crate::context::Context;
use crate::failure::Failure;

/// Variables that Modal's client may see. It sees nothing else of this process's environment.
const VARIABLES: [&str; 12] = [
    "HOME",
    "PATH",
    "LANG",
    "SSL_CERT_FILE",
    "HTTPS_PROXY",
    "MODAL_TOKEN_ID",
    "MODAL_TOKEN_SECRET",
    "MODAL_CONFIG_PATH",
    "MODAL_PROFILE",
    "MODAL_ENVIRONMENT",
    "MODAL_SERVER_URL",
    "MODAL_IMAGE_BUILDER_VERSION",
];

/// The Modal app that the sandboxes belong to.
const APP: &str = "aec-bench";

const NO_CLIENT: &str = "no python3 on PATH has Modal's client (`pip install modal`)";

/// What is missing to use Modal; empty if nothing is.
pub(crate) fn missing(client: Option<&ModalClient>, env: &Env) -> Vec<String> {
    let no_client = client.is_none().then(|| NO_CLIENT.to_owned());
    no_client.into_iter().chain(missing_tokens(env)).collect()
}

fn missing_tokens(env: &Env) -> Vec<String> {
    let file = match env.get("MODAL_CONFIG_PATH") {
        Some(path) => Some(PathBuf::from(path)),
        None => env.get("HOME").map(|home| Path::new(home).join(".modal.toml")),
    };
    let has_file = file.is_some_and(|file| file.is_file());
    ["MODAL_TOKEN_ID", "MODAL_TOKEN_SECRET"]
        .into_iter()
        .filter(|name| !has_file && env.get(name).is_none())
        .map(|name| format!("{name} is not set, and there is no ~/.modal.toml"))
        .collect()
}

pub(crate) fn open(
    context: &Context,
    project: &Project,
    credentials: &Credentials,
) -> Result<Modal, Failure> {
    let env = variables(project, credentials)?;
    let client = ModalClient::find(context.search_path().as_deref());
    let refused = |why: String| {
        let problem = Problem::error("the modal backend cannot be used").id(FAMILY.number(22));
        Failure::environment(problem.why(why).fix("see `aec-bench doctor`, or use --backend docker or local"))
    };
    let missing = missing(client.as_ref(), &env);
    match client {
        Some(client) if missing.is_empty() => {
            connect(client, &env).map_err(|error| refused(error.to_string()))
        }
        _ => Err(refused(missing.join("; "))),
    }
}

/// Looks up every variable that Modal's client may see, so that workers on other machines are given it.
pub(crate) fn ask(project: &Project, credentials: &Credentials) -> Result<(), Failure> {
    variables(project, credentials)?;
    for name in VARIABLES {
        project.env.get(name);
    }
    Ok(())
}

/// Modal if the user has set it up, or else what is missing. Without a token no Python is started.
fn set_up(context: &Context, project: &Project, credentials: &Credentials) -> Result<Modal, String> {
    let said = |failure: Failure| failure.problems.first().map(ToString::to_string).unwrap_or_default();
    let env = variables(project, credentials).map_err(said)?;
    let missing = missing_tokens(&env);
    if !missing.is_empty() {
        return Err(missing.join("; "));
    }
    let client = ModalClient::find(context.search_path().as_deref()).ok_or(NO_CLIENT)?;
    connect(client, &env).map_err(|error| error.to_string())
}

fn connect(client: ModalClient, env: &Env) -> Result<Modal, EngineError> {
    let variables =
        VARIABLES.iter().filter_map(|name| Some(((*name).to_owned(), env.get(name)?.to_owned()))).collect();
    Modal::new(client, variables, APP.to_owned())
}

/// The variables of a project, including those for Modal that files refer to.
pub(crate) fn variables(project: &Project, credentials: &Credentials) -> Result<Env, Failure> {
    let named = harbor::variables(project, credentials)?;
    Ok(project.env.clone().with(named.into_iter().filter(|(name, _)| name.starts_with("MODAL_"))))
}

/// What a run would create at Modal if each trial is attempted once.
#[derive(Serialize)]
pub(crate) struct Preview {
    app: &'static str,
    /// At most this many, at once or one after another.
    sandboxes: usize,
    /// Different images, which Modal builds unless it has them.
    images: usize,
    kinds: Vec<Kind>,
    /// Prices of sandboxes, if known.
    rates: Option<Rates>,
    /// The most that all sandboxes can cost.
    cost_ceiling: Option<MicroDollars>,
    /// Why the cost is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_unknown: Option<String>,
}

/// Sandboxes with the same resources.
#[derive(Serialize)]
struct Kind {
    role: &'static str,
    count: usize,
    cpus: u32,
    memory_mb: u32,
    /// Longest lifetime of each.
    seconds: u64,
    network: bool,
    cost_ceiling: Option<MicroDollars>,
}

/// Prices of sandboxes, and their source.
#[derive(Serialize)]
struct Rates {
    cpu_core_hour_usd: f64,
    memory_gib_hour_usd: f64,
    /// `modal` or `settings`.
    from: &'static str,
}

/// What a run with this demand would create. If Modal is set up, it is asked for its prices, and for nothing else.
pub(crate) fn preview(
    context: &Context,
    project: &Project,
    credentials: &Credentials,
    demand: &Demand,
) -> Preview {
    let (rates, cost_unknown) = if demand.containers.is_empty() {
        (None, None)
    } else {
        match rates(context, project, credentials) {
            Ok(rates) => (Some(rates), None),
            Err(why) => (None, Some(why)),
        }
    };
    let kinds: Vec<Kind> = demand
        .containers
        .iter()
        .map(|(kind, count)| {
            let seconds = Modal::seconds(kind.lifetime);
            Kind {
                role: kind.role.name(),
                count: *count,
                cpus: kind.cpus,
                memory_mb: kind.memory_mb,
                seconds,
                network: kind.network,
                cost_ceiling: rates.as_ref().map(|rates| ceiling(kind, *count, seconds, rates)),
            }
        })
        .collect();
    let parts: Option<Vec<MicroDollars>> = kinds.iter().map(|kind| kind.cost_ceiling).collect();
    Preview {
        app: APP,
        sandboxes: kinds.iter().map(|kind| kind.count).sum(),
        images: demand.images,
        cost_ceiling: parts.map(|parts| parts.into_iter().fold(MicroDollars::ZERO, MicroDollars::plus)),
        kinds,
        rates,
        cost_unknown,
    }
}

/// The prices that Modal reports, or else those in the settings.
fn rates(context: &Context, project: &Project, credentials: &Credentials) -> Result<Rates, String> {
    let asked = set_up(context, project, credentials).and_then(|modal| {
        modal.rates().map_err(|why| format!("Modal does not report its rates: {}", one_line(&why)))
    });
    let why = match asked {
        Ok(ModalRates { cpu_core_hour_usd, memory_gib_hour_usd }) => {
            return Ok(Rates { cpu_core_hour_usd, memory_gib_hour_usd, from: "modal" });
        }
        Err(why) => why,
    };
    let settings = [Setting::ModalCpuRate, Setting::ModalMemoryRate];
    if let [Some(cpu_core_hour_usd), Some(memory_gib_hour_usd)] =
        settings.map(|setting| project.settings.dollars(setting))
    {
        return Ok(Rates { cpu_core_hour_usd, memory_gib_hour_usd, from: "settings" });
    }
    let unset: Vec<&str> = settings
        .into_iter()
        .filter(|setting| project.settings.dollars(*setting).is_none())
        .map(|setting| setting.spec().key)
        .collect();
    Err(format!("{why}; set {} in aec-bench.toml", unset.join(" and ")))
}

/// The most that sandboxes of a kind can cost, if each lives as long as it may.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts and seconds are small, and an amount that is too large stays the largest"
)]
fn ceiling(kind: &ContainerKind, count: usize, seconds: u64, rates: &Rates) -> MicroDollars {
    let hour = f64::from(kind.cpus) * rates.cpu_core_hour_usd
        + f64::from(kind.memory_mb) / 1024.0 * rates.memory_gib_hour_usd;
    MicroDollars((hour * 1e6 * seconds as f64 * count as f64 / 3600.0).ceil() as u64)
}

impl Preview {
    pub(crate) fn text(&self) -> String {
        let mut shown = format!(
            "Modal: at most {} of {} in app {}\n",
            counted(self.sandboxes),
            text::count(self.images, "image"),
            self.app
        );
        for kind in &self.kinds {
            shown.push_str(&format!(
                "  for {}: {}, {} MiB, {}, at most {} s each\n",
                text::count(kind.count, kind.role),
                text::count(kind.cpus as usize, "core"),
                kind.memory_mb,
                if kind.network { "with network" } else { "no network" },
                kind.seconds,
            ));
        }
        match (self.cost_ceiling, &self.rates) {
            (Some(ceiling), Some(rates)) => {
                let says = match rates.from {
                    "modal" => "as Modal says",
                    _ => "as the settings say",
                };
                shown.push_str(&format!(
                    "  cost at most: {ceiling}, at ${} for a core and ${} for a GiB an hour {says}; building images and \
                     traffic come on top\n",
                    rates.cpu_core_hour_usd, rates.memory_gib_hour_usd
                ));
            }
            (Some(ceiling), None) => shown.push_str(&format!("  cost at most: {ceiling}\n")),
            (None, _) => {
                let why = self.cost_unknown.as_deref().unwrap_or_default();
                shown.push_str(&format!("  cost unknown: {why}\n"));
            }
        }
        shown
    }
}

/// Shortens the client's output, which may be long and have many lines.
fn one_line(said: &str) -> String {
    const LONGEST: usize = 400;
    let words: Vec<&str> = said.split_whitespace().collect();
    text::printable(&words.join(" ")).chars().take(LONGEST).collect()
}

pub(crate) fn counted(sandboxes: usize) -> String {
    if sandboxes == 1 { "1 sandbox".to_owned() } else { format!("{sandboxes} sandboxes") }
}

/// Ends sandboxes that runs of this machine left at Modal. If Modal is not set up, it is not contacted.
pub(crate) fn clean(context: &Context, project: &Project, dry_run: bool) -> Result<usize, Box<Problem>> {
    let Ok(modal) = set_up(context, project, &Credentials::default()) else { return Ok(0) };
    let refused = |why: String| {
        let problem = Problem::warning("sandboxes that were left at Modal cannot be ended");
        let problem = problem.id(FAMILY.number(23)).why(one_line(&why));
        Box::new(problem.fix("try again; Modal ends them itself when their time is up"))
    };
    let found = modal.left_behind().map_err(refused)?;
    if dry_run || found.is_empty() {
        return Ok(found.len());
    }
    modal.end(&found).map_err(refused)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use aec_run::demand::Role;

    use super::*;

    #[test]
    fn ceilings_are_rounded_up() {
        let kind = ContainerKind {
            role: Role::Agent,
            cpus: 2,
            memory_mb: 512,
            lifetime: Duration::from_mins(30),
            network: false,
        };
        let rates = |cpu: f64, memory: f64| Rates {
            cpu_core_hour_usd: cpu,
            memory_gib_hour_usd: memory,
            from: "settings",
        };
        // Three times half an hour of two cores and half a GiB.
        assert_eq!(ceiling(&kind, 3, 1800, &rates(0.25, 0.5)), MicroDollars(1_125_000));
        assert_eq!(ceiling(&kind, 1, 1, &rates(0.000_001, 0.0)), MicroDollars(1));
        assert_eq!(ceiling(&kind, 1, 1800, &rates(0.0, 0.0)), MicroDollars::ZERO);
        assert_eq!(ceiling(&kind, 1, 1800, &rates(1e300, 1e300)), MicroDollars(u64::MAX));
    }
}
