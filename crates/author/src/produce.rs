//! Makes orders and publishes them as a directory with a manifest.

use std::path::{Path, PathBuf};

use aec_base::problem::Problem;
use aec_base::text;
use serde::Serialize;

use crate::engine::Engines;
use crate::generate::{GenerateError, Generated, Order, Skipped, generate};
use crate::instance::Files;
use crate::manifest::{FAMILY, InstanceSource, MANIFEST_FILE, Manifest, SuiteSource, TemplateSource};
pub use crate::publish::Published;
use crate::publish::Staging;
use crate::template::Origin;

/// Where the instances are published.
#[derive(Clone, Debug)]
pub struct Destination {
    /// The directory that is published as a whole.
    pub directory: PathBuf,
    /// Whether existing files are kept and extended.
    pub extend: bool,
    /// Whether existing files that differ may be replaced.
    pub replace: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct Production {
    pub published: Published,
    pub manifest_path: PathBuf,
    /// The instances of this run, in the order of the orders.
    pub instances: Vec<InstanceSource>,
    /// Skipped draws with their reasons.
    pub skipped: Vec<Skipped>,
}

/// Makes orders and publishes them as one directory. `inside` is the prefix of the tasks' paths that the directory
/// itself represents.
pub(crate) fn produce(
    engines: &Engines,
    orders: &[Order<'_>],
    destination: &Destination,
    inside: &str,
    suite: Option<SuiteSource>,
    made: &(dyn Fn() + Sync),
) -> Result<Production, GenerateError> {
    let target = &destination.directory;
    let staging = Staging::begin(target)?;
    let local = |path: &str| path.strip_prefix(inside).unwrap_or(path).trim_start_matches('/').to_owned();
    let write = |path: &str, files: &Files| {
        staging.write(&local(path), files)?;
        made();
        Ok(())
    };
    let Generated { made, skipped } = generate(engines, orders, &write)?;
    let mut manifest = Manifest::new(suite);
    let mut archives: Vec<(PathBuf, &Files)> = Vec::new();
    for order in orders {
        let source = TemplateSource::of(order.template);
        if !manifest.templates.contains(&source) {
            if order.template.origin != Origin::Library {
                archives.push((source.archive(), &order.template.files));
            }
            manifest.templates.push(source);
        }
    }
    for (directory, files) in archives {
        staging.write(&directory.to_string_lossy(), files)?;
    }
    let instances: Vec<InstanceSource> = orders
        .iter()
        .zip(&made)
        .map(|(order, made)| InstanceSource {
            task: local(&made.path),
            template: order.template.path(),
            difficulty: order.tier.name.clone(),
            visibility_level: order.tier.givens.name().to_owned(),
            tool_mode: order.tool_mode.name().to_owned(),
            visibility: order.visibility.name().to_owned(),
            seed: order.seed,
            index: order.index,
            draw: made.draw,
            content_hash: Some(made.digest),
        })
        .collect();
    manifest.instances.clone_from(&instances);
    manifest.sort();
    if destination.extend {
        let different = staging.take_over(MANIFEST_FILE)?;
        if !different.is_empty() && !destination.replace {
            return Err(GenerateError::Template(vec![in_the_way(target, &different)]));
        }
        let existing = target.join(MANIFEST_FILE);
        if existing.is_file() {
            let mut merged = Manifest::read(&existing).map_err(GenerateError::Template)?;
            merged.merge(manifest);
            manifest = merged;
        }
    }
    let file: Files = [(MANIFEST_FILE.to_owned(), manifest.to_json())].into();
    staging.write("", &file)?;
    match staging.publish(destination.replace || destination.extend)? {
        Some(published) => {
            Ok(Production { published, manifest_path: target.join(MANIFEST_FILE), instances, skipped })
        }
        None => Err(GenerateError::Template(vec![in_the_way(target, &[])])),
    }
}

/// Other content is where the instances would go.
fn in_the_way(target: &Path, different: &[PathBuf]) -> Problem {
    let problem = Problem::error("the existing content differs from what would be written")
        .id(FAMILY.number(10))
        .fix("choose another output directory, or pass --replace")
        .in_file(target);
    match different {
        [] => problem.why("nothing was changed"),
        [first, rest @ ..] => {
            let others = if rest.is_empty() {
                String::new()
            } else {
                format!(" and {} more", text::count(rest.len(), "file"))
            };
            problem.why(format!("{}{others} would change; nothing was changed", first.display()))
        }
    }
}
