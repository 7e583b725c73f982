//! `aec-bench prime doctor`: checks whether this machine and this account are ready for Prime.

use aec_base::problem::Problem;
use aec_base::settings::Setting;
use aec_prime::service::account;
use aec_prime::smoke::Venv;
use aec_sandbox::host::{self, Trial};
use aec_sandbox::python;
use clap::Args;
use serde::Serialize;

use crate::commands::prime::Service;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;
use crate::table::{Table, TableArguments};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench prime doctor\n  \
                        aec-bench prime doctor --check-inference")]
pub(crate) struct PrimeDoctorArguments {
    /// Also request the list of models
    #[arg(long)]
    pub(crate) check_inference: bool,
    #[command(flatten)]
    pub(crate) table: TableArguments,
}

const COLUMNS: [&str; 3] = ["CHECK", "OK", "DETAIL"];

#[derive(Serialize)]
struct Data {
    checks: Vec<Check>,
}

#[derive(Serialize)]
struct Check {
    #[serde(rename = "check")]
    name: &'static str,
    ok: bool,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<&'static str>,
    /// Whether part of the loop works without it.
    #[serde(skip)]
    optional: bool,
}

pub(crate) fn doctor(context: &Context, arguments: &PrimeDoctorArguments) -> Result<Outcome, Failure> {
    arguments.table.apply(&[&COLUMNS])?;
    let service = Service::open(context)?;
    let mut checks =
        vec![python_check(context), verifiers_check(&service), confinement_check(), cli_check(context)];
    let settings = service.client.settings();
    let has_key = settings.api_key.is_some();
    checks.push(Check {
        name: "key",
        ok: has_key,
        detail: if has_key {
            format!("context `{}`, {}", settings.context, settings.base_url)
        } else {
            "no key for Prime".to_owned()
        },
        fix: (!has_key).then_some("run `prime login`, or set PRIME_API_KEY"),
        optional: false,
    });
    if has_key {
        checks.push(account_check(&service));
    }
    if arguments.check_inference {
        checks.push(inference_check(&service));
    }
    let data = Data { checks };
    let problems = data
        .checks
        .iter()
        .filter(|check| !check.ok && !check.optional)
        .map(|check| {
            let problem = Problem::error(format!("{}: {}", check.name, check.detail));
            check.fix.map_or_else(|| problem.clone(), |fix| problem.clone().fix(fix))
        })
        .collect();
    let outcome = Outcome::new(context.format, &data, || {
        let mut table = Table::new(COLUMNS).wrap(["DETAIL"]);
        for check in &data.checks {
            table.row([check.name, if check.ok { "yes" } else { "no" }, &check.detail]);
        }
        table.render()
    })?;
    Ok(outcome.problems(problems))
}

fn python_check(context: &Context) -> Check {
    let found = python::find(context.search_path().as_deref());
    let ok = found.as_ref().is_some_and(|python| python.recent_enough);
    Check {
        name: "python",
        ok,
        detail: found.map_or_else(
            || "no python3 on PATH".to_owned(),
            |python| format!("{} at {}", python.version, python.path.display()),
        ),
        fix: (!ok).then_some("install Python 3.11 or newer; `prime smoke` loads packages with it"),
        optional: false,
    }
}

/// The library that packages are made for; `prime smoke` installs it in a separate directory.
fn verifiers_check(service: &Service) -> Check {
    let below = service.project.settings.path(Setting::Prime).join("venvs");
    let found = Venv::installed(&below);
    Check {
        name: "verifiers",
        ok: !found.is_empty(),
        detail: if found.is_empty() {
            "not installed yet; `prime smoke` installs it below paths.prime".to_owned()
        } else {
            found.join(", ")
        },
        fix: None,
        optional: true,
    }
}

fn confinement_check() -> Check {
    let ok = host::isolation().room == Trial::Works;
    Check {
        name: "confinement",
        ok,
        detail: if ok {
            "tools and verifiers of packages run in namespaces of their own".to_owned()
        } else {
            "this machine allows no namespaces".to_owned()
        },
        fix: (!ok).then_some("allow user namespaces, or load packages with confinement=none"),
        optional: true,
    }
}

/// The `prime` program is needed only for what aec-bench does not do.
fn cli_check(context: &Context) -> Check {
    let path = context.search_path().unwrap_or_default();
    let found = std::env::split_paths(&path).map(|place| place.join("prime")).find(|place| place.is_file());
    Check {
        name: "prime CLI",
        ok: found.is_some(),
        detail: found.map_or_else(
            || "not on PATH; only `prime login` needs it".to_owned(),
            |place| place.display().to_string(),
        ),
        fix: None,
        optional: true,
    }
}

fn account_check(service: &Service) -> Check {
    match service.runtime.block_on(account::whoami(&service.client)) {
        Ok(account) => Check {
            name: "account",
            ok: true,
            detail: account.slug.or(account.name).unwrap_or(account.id),
            fix: None,
            optional: false,
        },
        Err(error) => Check {
            name: "account",
            ok: false,
            detail: error.to_string(),
            fix: Some("run `prime login`, or set PRIME_API_KEY"),
            optional: false,
        },
    }
}

fn inference_check(service: &Service) -> Check {
    match service.runtime.block_on(account::models(&service.client)) {
        Ok(models) => Check {
            name: "inference",
            ok: !models.is_empty(),
            detail: format!("{} models at {}", models.len(), service.client.settings().inference_url),
            fix: None,
            optional: false,
        },
        Err(error) => Check {
            name: "inference",
            ok: false,
            detail: error.to_string(),
            fix: Some("check the key and PRIME_INFERENCE_URL"),
            optional: false,
        },
    }
}
