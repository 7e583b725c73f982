//! `aec-bench prime push`.

use aec_prime::service::hub::{self, Package, PushError, PushOptions, Pushed, Runtime, Visibility};
use clap::Args;
use clap::builder::PossibleValuesParser;
use serde::Serialize;

use crate::commands::prime::export::{PackageData, export_again};
use crate::commands::prime::{Narrator, PackageArguments, Service, failed, unusable};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench prime push --name cables --dataset electrical-v1@1.0.0 --owner acme")]
pub(crate) struct PrimePushArguments {
    #[command(flatten)]
    pub(crate) package: PackageArguments,
    /// Who can see the environment; keep it PRIVATE until its rewards are known to be right
    #[arg(long, value_name = "WHO", default_value = "PRIVATE", ignore_case = true,
          value_parser = PossibleValuesParser::new(["PRIVATE", "PUBLIC"]))]
    pub(crate) visibility: String,
    /// User or team that owns the environment
    #[arg(long, value_name = "NAME")]
    pub(crate) owner: Option<String>,
    /// Team that owns the environment
    #[arg(long, value_name = "TEAM", conflicts_with = "owner")]
    pub(crate) team: Option<String>,
    /// API of `verifiers` to declare to the hub [default: v0, which hosted evaluations accept]
    #[arg(long, value_name = "API", value_parser = PossibleValuesParser::new(["v0", "v1"]))]
    pub(crate) runtime: Option<String>,
}

#[derive(Serialize)]
struct Data {
    environment: String,
    environment_id: String,
    version: String,
    visibility: &'static str,
    content_hash: String,
    wheel_sha256: String,
    created: bool,
    page: String,
    package: PackageData,
}

pub(crate) fn push(context: &Context, arguments: &PrimePushArguments) -> Result<Outcome, Failure> {
    let service = Service::open(context)?;
    let exported = export_again(context, &arguments.package)?;
    let package = Package::build(&exported.written.place)
        .map_err(|error| unusable(&error, "export the package again"))?;
    let visibility: Visibility =
        arguments.visibility.parse().map_err(|why: String| unusable(&why, "write PRIVATE or PUBLIC"))?;
    let runtime = match arguments.runtime.as_deref() {
        Some("v1") => Runtime::V1,
        _ => Runtime::V0,
    };
    let options = PushOptions {
        name: None,
        visibility,
        owner: arguments.owner.clone(),
        team: arguments.team.clone(),
        runtime: Some(runtime),
    };
    Narrator::new(context)?.say(&format!("Publishing {} {} …", package.name, package.version));
    let pushed = service.runtime.block_on(hub::push(&service.client, &package, &options));
    let pushed = pushed.map_err(|error| push_failed(&error))?;
    hub::record_push(&exported.written.place, &pushed, context.created_at()?.as_str())
        .map_err(|error| unusable(&error, "check the permissions of the package's directory"))?;
    let page = service.client.settings().environment_page(&pushed.owner, &pushed.name);
    let data = data(pushed, visibility, page, exported.data());
    let text = || format!("{} {}  {}  {}\n", data.environment, data.version, data.visibility, data.page);
    let next = format!(
        "Next: aec-bench prime eval --remote-env {} --hosted --model MODEL --split eval --num-examples 1",
        data.environment
    );
    Ok(Outcome::new(context.format, &data, text)?.remark(next).problems(exported.warnings))
}

fn data(pushed: Pushed, visibility: Visibility, page: String, package: PackageData) -> Data {
    Data {
        environment: format!("{}/{}", pushed.owner, pushed.name),
        environment_id: pushed.environment_id,
        version: pushed.version,
        visibility: visibility.hub_name(),
        content_hash: pushed.content_hash,
        wheel_sha256: pushed.wheel_sha256,
        created: pushed.created,
        page,
        package,
    }
}

fn push_failed(error: &PushError) -> Failure {
    match error {
        PushError::Api(error) => failed(error),
        PushError::AlreadyPublished { .. } => unusable(error, "pass a higher --version"),
        _ => unusable(error, "see `aec-bench prime doctor`"),
    }
}
