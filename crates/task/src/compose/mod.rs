//! `environment/docker-compose.yaml`: containers beside the agent's container, such as a database or a simulator.
//!
//! Only a part of Compose is supported: how a container is made and when it is ready. Anything that reaches beyond
//! the trial (privileges, directories, networks or variables of this machine) is not, and an unknown key is an error.
//! The service `main` is the agent's container.

mod file;
mod value;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use aec_base::document::{Document, Shared, Syntax};
use aec_base::file::Links;
use aec_base::problem::Problem;
use aec_base::text;

use crate::task::FAMILY;
use file::{BuildFile, ComposeFile, HealthFile, ServiceFile};

pub use value::argv_of_test;

/// Names of the file below `environment/`.
pub const COMPOSE_FILES: [&str; 4] =
    ["docker-compose.yaml", "docker-compose.yml", "compose.yaml", "compose.yml"];
/// The service that is the agent's container.
pub const MAIN: &str = "main";
/// More containers per trial are a mistake.
const MAX_SERVICES: usize = 16;
/// Connections to each port are carried separately.
const MAX_PORTS: usize = 64;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compose {
    /// Variables of the agent's container.
    pub environment: Vec<(String, String)>,
    /// Services that the agent's container waits for.
    pub needs: Vec<(String, Condition)>,
    /// The other containers, each after those that it needs.
    pub services: Vec<Service>,
}

/// A container beside the agent's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Its name, which is also its host name for the others.
    pub name: String,
    pub source: Source,
    /// Replaces the image's command.
    pub command: Option<Vec<String>>,
    /// Replaces the image's entry point.
    pub entrypoint: Option<Vec<String>>,
    /// Variables that are added to the image's.
    pub environment: Vec<(String, String)>,
    /// Replaces the image's working directory.
    pub working_dir: Option<String>,
    /// Replaces the image's user.
    pub user: Option<String>,
    /// TCP ports that the others may connect to, besides those that the image exposes.
    pub ports: Vec<u16>,
    /// Services that it waits for.
    pub needs: Vec<(String, Condition)>,
    /// How its health is checked.
    pub health: Health,
    /// Files of `environment/` that are copied into it.
    pub files: Vec<Given>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// From a registry.
    Image(String),
    /// Built from the task's files.
    Build(Build),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build {
    /// A directory of `environment/`; empty for `environment/` itself.
    pub context: PathBuf,
    /// The Dockerfile, relative to the directory.
    pub dockerfile: PathBuf,
    pub args: Vec<(String, String)>,
    /// The stage to build.
    pub target: Option<String>,
}

/// When containers that depend on a service may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    Started,
    /// It passed its health check.
    Healthy,
    /// It exited successfully.
    Completed,
}

/// How the health of a service is checked. Absent values are those of the image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// The command that exits with 0 if the service is healthy; an empty one disables the image's check.
    pub test: Option<Vec<String>>,
    /// Time between two checks.
    pub interval: Option<Duration>,
    /// Time limit of one check.
    pub timeout: Option<Duration>,
    /// How many checks may fail.
    pub retries: Option<u32>,
    /// Failures during this time do not count.
    pub start_period: Option<Duration>,
}

/// Files that are copied into a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// A file or directory of `environment/`.
    pub source: PathBuf,
    /// Where it is copied to.
    pub target: String,
}

impl Compose {
    /// Reads the file of a task's `environment/`. Without a file the agent's container is alone.
    pub fn read(environment: &Path) -> Result<Self, Vec<Problem>> {
        let found: Vec<PathBuf> =
            COMPOSE_FILES.iter().map(|name| environment.join(name)).filter(|path| path.is_file()).collect();
        let path = match found.as_slice() {
            [] => return Ok(Self::default()),
            [path] => path,
            [_, second, ..] => {
                let what = "there is more than one Compose file".to_owned();
                let problem = Problem::error(what).id(FAMILY.id(Shared::Conflict)).in_file(second);
                return Err(vec![problem.fix("keep one of them")]);
            }
        };
        let document = Document::read_with(path, Syntax::Yaml, FAMILY, Links::Refuse)?;
        let decoded = document.decode::<ComposeFile>();
        let mut reader = Reader { document: &document, environment, problems: decoded.problems };
        let compose = reader.compose(decoded.value.unwrap_or_default());
        if reader.problems.is_empty() { Ok(compose) } else { Err(reader.problems) }
    }

    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.services.is_empty() && self.environment.is_empty()
    }

    /// Paths below `environment/` that belong only to other containers: agents must not find them in their workspace.
    pub fn private(&self) -> BTreeSet<PathBuf> {
        let contexts = self.services.iter().filter_map(|service| match &service.source {
            Source::Build(build) => Some(&build.context),
            Source::Image(_) => None,
        });
        let files = self.services.iter().flat_map(|service| service.files.iter().map(|given| &given.source));
        contexts.chain(files).filter(|path| !path.as_os_str().is_empty()).cloned().collect()
    }
}

struct Reader<'a> {
    document: &'a Document,
    environment: &'a Path,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn refuse(&mut self, key: &str, what: impl Into<String>, fix: &str) {
        self.problems.push(self.document.problem(Shared::BadValue, key, what).fix(fix));
    }

    fn compose(&mut self, file: ComposeFile) -> Compose {
        if file.services.len() > MAX_SERVICES {
            let what = format!("there are {} services; there can be {MAX_SERVICES}", file.services.len());
            self.refuse("services", what, "put some of them into one image");
        }
        let names: Vec<String> = file.services.keys().cloned().collect();
        let mut compose = Compose::default();
        let mut services = BTreeMap::new();
        for (name, service) in file.services {
            let needs = self.needs(&name, &service, &names);
            if name == MAIN {
                compose.environment = self.main(service);
                compose.needs = needs;
            } else if let Some(service) = self.service(&name, service, needs) {
                services.insert(name, service);
            }
        }
        compose.services = self.ordered(services);
        compose
    }

    /// The task's settings define the agent's container, so only a few keys are allowed here.
    fn main(&mut self, service: ServiceFile) -> Vec<(String, String)> {
        if let Some(build) = &service.build
            && !matches!(self.build("services.main.build", build), Some(build) if build == Build::default())
        {
            self.refuse(
                "services.main.build",
                "`services.main` is built from environment/Dockerfile",
                "write `build: .`, or leave it out",
            );
        }
        for key in service.said_keys().into_iter().filter(|key| !matches!(*key, "build" | "environment")) {
            let key = format!("services.main.{key}");
            self.refuse(
                &key,
                format!("`{key}` cannot be set: task.toml makes the agent's container"),
                "remove the key",
            );
        }
        service.environment.0
    }

    fn service(&mut self, name: &str, file: ServiceFile, needs: Vec<(String, Condition)>) -> Option<Service> {
        let key = format!("services.{name}");
        let is_host = !name.is_empty()
            && name.len() <= 63
            && name.starts_with(|letter: char| letter.is_ascii_alphanumeric())
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(letter))
            && name != "localhost";
        if !is_host {
            let what = format!("`{}` cannot be the name of a service", text::printable(name));
            self.refuse(&key, what, "use letters, digits and -");
        }
        let source = match (&file.image, &file.build) {
            (Some(image), None) => {
                if image.0.is_empty()
                    || image.0.contains(|letter: char| letter.is_whitespace() || letter.is_control())
                {
                    let what = format!("`{}` cannot be the name of an image", text::printable(&image.0));
                    self.refuse(&format!("{key}.image"), what, "write NAME:TAG");
                }
                Some(Source::Image(image.0.clone()))
            }
            (None, Some(build)) => {
                let build = self.build(&format!("{key}.build"), build);
                if build.as_ref().is_some_and(|build| build.context.as_os_str().is_empty()) {
                    // The agent sees the files of `environment/` too, so they cannot be private to the service.
                    let what = format!("`{key}.build` is environment/ itself");
                    self.refuse(&format!("{key}.build"), what, "give the service its own directory");
                }
                build.map(Source::Build)
            }
            (Some(_), Some(_)) => {
                let what = format!("`{key}` has both `image` and `build`");
                self.problems
                    .push(self.document.problem(Shared::Conflict, &key, what).fix("keep one of them"));
                None
            }
            (None, None) => {
                let what = format!("`{key}` has neither `image` nor `build`");
                self.problems.push(
                    self.document.problem(Shared::MissingKey, &key, what).fix("say where it comes from"),
                );
                None
            }
        };
        let mut ports: Vec<u16> = file.expose.0.into_iter().chain(file.ports.0).collect();
        ports.sort_unstable();
        ports.dedup();
        if ports.len() > MAX_PORTS {
            let what = format!("`{key}` has {} ports; there can be {MAX_PORTS}", ports.len());
            self.refuse(&key, what, "list only ports that other containers connect to");
        }
        let files = self.files(&key, &file.volumes.0);
        let health = self.health(&key, file.healthcheck);
        Some(Service {
            name: name.to_owned(),
            source: source?,
            command: file.command.map(|words| words.0),
            entrypoint: file.entrypoint.map(|words| words.0),
            environment: file.environment.0,
            working_dir: file.working_dir.map(|text| text.0),
            user: file.user.map(|text| text.0),
            ports,
            needs,
            health,
            files,
        })
    }

    fn build(&mut self, key: &str, build: &BuildFile) -> Option<Build> {
        let context = self.inside(key, &build.context.0)?;
        let dockerfile = match &build.dockerfile {
            Some(name) => self.inside(key, &name.0)?,
            None => PathBuf::from("Dockerfile"),
        };
        if !self.environment.join(&context).join(&dockerfile).is_file() {
            let what = format!("there is no environment/{}", context.join(&dockerfile).display());
            self.refuse(key, what, "add the file, or correct the path");
        }
        let target = build.target.as_ref().map(|target| target.0.clone());
        Some(Build { context, dockerfile, args: build.args.0.clone(), target })
    }

    /// Checks that a path stays below `environment/`.
    fn inside(&mut self, key: &str, path: &str) -> Option<PathBuf> {
        let mut inside = PathBuf::new();
        for component in Path::new(path).components() {
            match component {
                Component::CurDir => {}
                Component::Normal(name) => inside.push(name),
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                    let what = format!("`{}` is not below environment/", text::printable(path));
                    self.refuse(key, what, "a task holds all that it needs; copy it there");
                    return None;
                }
            }
        }
        Some(inside)
    }

    fn files(&mut self, key: &str, volumes: &[String]) -> Vec<Given> {
        let key = format!("{key}.volumes");
        let mut files = Vec::new();
        for volume in volumes {
            let parts: Vec<&str> = volume.split(':').collect();
            let (source, target) = match parts.as_slice() {
                [source, target] | [source, target, "ro" | "rw"] => (*source, *target),
                _ => ("", ""),
            };
            let lasting = !source.starts_with('.') && !source.contains('/');
            if lasting || !target.starts_with('/') || Path::new(target).components().any(is_parent) {
                let what = format!("the volume `{}` is not supported", text::printable(volume));
                self.refuse(
                    &key,
                    what,
                    "write ./FILE:/PLACE: files of environment/ are copied into the container",
                );
                continue;
            }
            let Some(source) = self.inside(&key, source) else { continue };
            if source.as_os_str().is_empty() || !self.environment.join(&source).exists() {
                let what = format!("there is no environment/{}", source.display());
                self.refuse(&key, what, "name a file or directory of environment/");
                continue;
            }
            files.push(Given { source, target: target.to_owned() });
        }
        files
    }

    fn health(&mut self, key: &str, file: HealthFile) -> Health {
        if file.disable && file.test.is_some() {
            let key = format!("{key}.healthcheck");
            let problem = self.document.problem(Shared::Conflict, &key, "a disabled check has a test");
            self.problems.push(problem.fix("remove one of the two"));
        }
        let test = if file.disable { Some(Vec::new()) } else { file.test.map(|test| test.0) };
        Health {
            test,
            interval: file.interval.map(|interval| interval.0),
            timeout: file.timeout.map(|timeout| timeout.0),
            retries: file.retries,
            start_period: file.start_period.map(|period| period.0),
        }
    }

    fn needs(&mut self, name: &str, service: &ServiceFile, known: &[String]) -> Vec<(String, Condition)> {
        let key = format!("services.{name}.depends_on");
        let mut needs = Vec::new();
        for (needed, condition) in &service.depends_on.0 {
            if needed == MAIN || !known.contains(needed) {
                let what =
                    format!("`{key}` names `{}`, which is not a side service", text::printable(needed));
                self.refuse(&key, what, "name another service of the file");
            } else {
                needs.push((needed.clone(), *condition));
            }
        }
        needs
    }

    /// Sorts the services so that each comes after those that it needs.
    fn ordered(&mut self, mut waiting: BTreeMap<String, Service>) -> Vec<Service> {
        let mut ordered: Vec<Service> = Vec::new();
        while !waiting.is_empty() {
            let ready = waiting
                .iter()
                .find(|(_, service)| service.needs.iter().all(|(needed, _)| !waiting.contains_key(needed)));
            let Some(name) = ready.map(|(name, _)| name.clone()) else {
                let names: Vec<&str> = waiting.keys().map(String::as_str).collect();
                let key = format!("services.{}.depends_on", names[0]);
                let what = match names.as_slice() {
                    [one] => format!("the service {one} waits for itself"),
                    _ => format!("the services {} wait for one another", names.join(", ")),
                };
                self.refuse(&key, what, "remove one `depends_on`");
                break;
            };
            ordered.extend(waiting.remove(&name));
        }
        ordered
    }
}

impl Default for Build {
    fn default() -> Self {
        Self { context: PathBuf::new(), dockerfile: "Dockerfile".into(), args: Vec::new(), target: None }
    }
}

fn is_parent(component: Component<'_>) -> bool {
    matches!(component, Component::ParentDir)
}

#[cfg(test)]
mod tests;
