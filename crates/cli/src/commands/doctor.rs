//! `aec-bench doctor`: reports what this machine can do, and how to fix what is missing.

use aec_base::env::{Env, EnvOrigin};
use aec_base::problem::{Problem, Severity};
use aec_base::project::Project;
use aec_container::{Engine, EngineLimits, ModalClient};
use aec_evolve::workspace::git::GitProgram;
use aec_harbor::program::Program;
use aec_run::plan::Credentials;
use aec_sandbox::host::{self, Trial};
use aec_sandbox::{Hold, python};
use clap::Args;
use serde::Serialize;

use crate::commands::{containers, modal};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;
use crate::table::{Table, TableArguments};

/// The credentials that aec-bench knows, by name. Values are never shown.
const CREDENTIALS: [(&str, &str); 13] = [
    ("ANTHROPIC_API_KEY", "Claude models"),
    ("OPENAI_API_KEY", "OpenAI models"),
    ("AZURE_OPENAI_API_KEY", "OpenAI models through Azure"),
    ("TOGETHER_API_KEY", "Together models"),
    ("AWS_BEARER_TOKEN_BEDROCK", "Bedrock models"),
    ("AWS_BEARER_TOKEN", "Bedrock models"),
    ("AWS_ACCESS_KEY_ID", "Bedrock models, signed"),
    ("AWS_SECRET_ACCESS_KEY", "Bedrock models, signed"),
    ("PRIME_API_KEY", "Prime inference and Prime Lab"),
    ("MODAL_TOKEN_ID", "Modal sandboxes"),
    ("MODAL_TOKEN_SECRET", "Modal sandboxes"),
    ("HARBOR_ENDPOINT", "the Harbor service"),
    ("HARBOR_TOKEN", "the Harbor service"),
];

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench doctor\n  \
                        aec-bench doctor --json")]
pub(crate) struct DoctorArguments {
    #[command(flatten)]
    pub(crate) table: TableArguments,
}

const CHECKS: [&str; 4] = ["CHECK", "STATUS", "DETAIL", "FIX"];
const KEYS: [&str; 3] = ["CREDENTIAL", "SET", "USED BY"];

#[derive(Serialize)]
struct Data {
    checks: Vec<Check>,
    credentials: Vec<Credential>,
}

#[derive(Serialize)]
struct Check {
    name: &'static str,
    status: Status,
    detail: String,
    fix: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    /// Present and good enough.
    Ok,
    /// Works, but with restrictions.
    Limited,
    /// Needed, but not present.
    Missing,
}

impl Status {
    fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Limited => "limited",
            Self::Missing => "missing",
        }
    }
}

#[derive(Serialize)]
struct Credential {
    name: &'static str,
    used_by: &'static str,
    set: bool,
    origin: Option<EnvOrigin>,
}

pub(crate) fn doctor(context: &Context, arguments: &DoctorArguments) -> Result<Outcome, Failure> {
    arguments.table.apply(&[&CHECKS, &KEYS])?;
    // A broken project is one of the findings; the other checks still run.
    let project = context.project(Vec::new());
    let mut checks = vec![project_check(project.as_ref())];
    checks.push(python_check(context));
    checks.push(git_check(context));
    checks.extend(isolation_checks());
    checks.push(view_check());
    checks.push(slurm_check(context));
    let env = match &project {
        Ok(project) => project.env.clone(),
        Err(_) => context.surroundings()?.env,
    };
    checks.push(container_check(&env));
    checks.push(modal_check(context, &env, project.as_ref().ok()));
    checks.push(harbor_check(context));
    let data = Data { checks, credentials: credentials(&env) };
    let mut problems: Vec<Problem> = data
        .checks
        .iter()
        .filter(|check| check.status == Status::Missing && check.name != "project")
        .map(|check| {
            let problem = Problem::error(format!("{}: {}", check.name, check.detail));
            match &check.fix {
                Some(fix) => problem.fix(fix),
                None => problem,
            }
        })
        .collect();
    if let Err(failure) = project {
        problems.extend(failure.problems);
    }
    let outcome = Outcome::new(context.format, &data, || doctor_text(&data))?;
    Ok(outcome.problems(problems))
}

fn project_check(project: Result<&Project, &Failure>) -> Check {
    let (status, detail, fix) = match project {
        Ok(Project { file: Some(file), .. }) => (Status::Ok, file.display().to_string(), None),
        Ok(_) => (Status::Limited, "no project here".to_owned(), Some("run `aec-bench init`".to_owned())),
        Err(failure) => {
            let detail = failure.problems.first().map(ToString::to_string).unwrap_or_default();
            (Status::Missing, detail, Some("see `aec-bench config check`".to_owned()))
        }
    };
    Check { name: "project", status, detail, fix }
}

fn git_check(context: &Context) -> Check {
    let (status, detail, fix) = match GitProgram::find(context.search_path()) {
        Ok(git) => (Status::Ok, git.path().display().to_string(), None),
        Err(_) => {
            let detail = "there is no git on PATH; `evolve` and `swarm` need it".to_owned();
            (Status::Limited, detail, Some("install git".to_owned()))
        }
    };
    Check { name: "git", status, detail, fix }
}

fn container_check(env: &Env) -> Check {
    let (status, detail, fix) = match Engine::connect(&containers::places(env), EngineLimits::default()) {
        Ok(engine) => {
            let facts = engine.facts();
            let detail =
                format!("{} {} (API {}) at {}", facts.name, facts.version, facts.api_version, facts.host);
            (Status::Ok, detail, None)
        }
        Err(error) => {
            let fix =
                "start Docker, or `podman system service` and name its socket in DOCKER_HOST".to_owned();
            (Status::Limited, format!("{error}; `--backend docker` needs one"), Some(fix))
        }
    };
    Check { name: "containers", status, detail, fix }
}

fn modal_check(context: &Context, env: &Env, project: Option<&Project>) -> Check {
    let client = ModalClient::find(context.search_path().as_deref());
    let named = project.map(|project| modal::variables(project, &Credentials::default()));
    let missing = match named {
        Some(Ok(named)) => modal::missing(client.as_ref(), &named),
        Some(Err(failure)) => failure.problems.into_iter().map(|problem| problem.what).collect(),
        None => modal::missing(client.as_ref(), env),
    };
    let (status, detail, fix) = if missing.is_empty() {
        (Status::Ok, "the client is there and has credentials".to_owned(), None)
    } else {
        let fix =
            "install Modal's client and run `modal token set`, if `--backend modal` is wanted".to_owned();
        (Status::Limited, missing.join("; "), Some(fix))
    };
    Check { name: "modal", status, detail, fix }
}

fn slurm_check(context: &Context) -> Check {
    let (status, detail, fix) = match context.slurm() {
        Err(_) => {
            (Status::Limited, "not on this machine; only `run --engine slurm` needs it".to_owned(), None)
        }
        Ok(slurm) => match slurm.version().and_then(|version| Ok((version, slurm.most_shards()?))) {
            Ok((version, most)) => {
                let most = most.map(|most| format!(", arrays of up to {most} shards")).unwrap_or_default();
                (Status::Ok, format!("{version}, its controller answers{most}"), None)
            }
            Err(problem) => {
                let why = problem.why.unwrap_or_default();
                let detail = format!("installed, but its controller does not answer: {why}");
                (Status::Limited, detail, Some("run it on a node of the cluster".to_owned()))
            }
        },
    };
    Check { name: "slurm", status, detail, fix }
}

fn harbor_check(context: &Context) -> Check {
    let (status, detail, fix) = match Program::find(context.search_path().as_deref()) {
        Ok(program) => (Status::Ok, format!("{} at {}", program.version, program.path.display()), None),
        Err(error) => {
            let detail = format!("{error}; `--backend harbor` needs it");
            (Status::Limited, detail, Some(error.fix().to_owned()))
        }
    };
    Check { name: "harbor", status, detail, fix }
}

fn python_check(context: &Context) -> Check {
    let oldest = format!("{}.{}", python::OLDEST.0, python::OLDEST.1);
    let fix = Some(format!("install Python {oldest} or newer and put it on PATH"));
    let (status, detail, fix) = match python::find(context.search_path().as_deref()) {
        Some(python) if python.recent_enough => {
            (Status::Ok, format!("{} at {}", python.version, python.path.display()), None)
        }
        Some(python) => (Status::Missing, format!("{} is too old", python.version), fix),
        None => (Status::Missing, "there is no python3 on PATH; verifiers need it".to_owned(), fix),
    };
    Check { name: "python", status, detail, fix }
}

/// Whether rooms can hide the project.
fn view_check() -> Check {
    let mut seen = aec_run::sight::seen();
    seen.sort_by_key(|problem| problem.severity != Severity::Error);
    let (status, detail, fix) = match seen.into_iter().next() {
        None => (Status::Ok, "rooms show nothing of the project".to_owned(), None),
        Some(problem) if problem.severity == Severity::Error => (Status::Missing, problem.what, problem.fix),
        Some(problem) => (Status::Limited, problem.what, problem.fix),
    };
    Check { name: "view", status, detail, fix }
}

fn isolation_checks() -> Vec<Check> {
    let isolation = host::isolation();
    let who = if isolation.root { "as root" } else { "as an ordinary user" };
    let (status, detail, fix) = match &isolation.room {
        Trial::Works => (Status::Ok, format!("a room can be opened {who}"), None),
        Trial::Fails(reason) => (
            Status::Missing,
            format!("no room can be opened {who}: {reason}"),
            Some(
                "allow user namespaces (kernel.unprivileged_userns_clone=1, user.max_user_namespaces>0), or run on a \
                 disposable machine with --sandbox none"
                    .to_owned(),
            ),
        ),
    };
    let limits = isolation.held.map(|held| {
        let holds =
            [("cpus", held.cpus), ("memory", held.memory), ("storage", held.storage), ("pids", held.pids)];
        let whole = holds.iter().all(|(_, hold)| *hold == Hold::Tree);
        let detail: Vec<String> = holds
            .iter()
            .map(|(name, hold)| {
                let hold = match hold {
                    Hold::Tree => "whole tree",
                    Hold::Process => "each process",
                    Hold::No => "not held",
                };
                format!("{name}: {hold}")
            })
            .collect();
        let mut detail = detail.join(", ");
        let (status, fix) = if !isolation.weaker.is_empty() {
            detail = format!("less than usual on this machine ({}); {detail}", isolation.weaker.join("; "));
            let fix =
                "run `aec-bench runs clean`; or accept it with --allow-weaker-limits, which is recorded";
            (Status::Missing, Some(fix))
        } else if whole {
            (Status::Ok, None)
        } else {
            (Status::Limited, Some("run as root, or in a delegated control group, to bound whole trees"))
        };
        Check { name: "limits", status, detail, fix: fix.map(str::to_owned) }
    });
    let landlock = match isolation.landlock {
        Some(true) => (Status::Ok, "on"),
        Some(false) => (Status::Limited, "off in this kernel"),
        None => (Status::Limited, "the kernel does not say"),
    };
    let seccomp =
        if isolation.seccomp { (Status::Ok, "on") } else { (Status::Limited, "off in this kernel") };
    let cgroups = if isolation.cgroups == "none" { Status::Limited } else { Status::Ok };
    let mut checks = vec![Check { name: "rooms", status, detail, fix }];
    checks.extend(limits);
    checks.extend([
        Check { name: "landlock", status: landlock.0, detail: landlock.1.to_owned(), fix: None },
        Check { name: "seccomp", status: seccomp.0, detail: seccomp.1.to_owned(), fix: None },
        Check { name: "cgroups", status: cgroups, detail: isolation.cgroups.to_owned(), fix: None },
    ]);
    checks
}

fn credentials(env: &Env) -> Vec<Credential> {
    CREDENTIALS
        .into_iter()
        .map(|(name, used_by)| {
            let origin = env.origin(name);
            Credential { name, used_by, set: origin.is_some(), origin }
        })
        .collect()
}

fn doctor_text(data: &Data) -> String {
    let mut table = Table::new(CHECKS).keyed().wrap(["DETAIL", "FIX"]);
    for check in &data.checks {
        table.row([check.name, check.status.name(), &check.detail, check.fix.as_deref().unwrap_or_default()]);
    }
    let mut text = table.render();
    let mut table = Table::new(KEYS).keyed().wrap(["USED BY"]);
    for credential in &data.credentials {
        let set = match credential.origin {
            Some(EnvOrigin::Shell) => "in the shell",
            Some(EnvOrigin::File) => "in .env",
            None => "no",
        };
        table.row([credential.name, set, credential.used_by]);
    }
    text.push('\n');
    text.push_str(&table.render());
    text
}
