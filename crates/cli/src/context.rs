//! What every command needs to know about its surroundings. Only this file reads the process environment, the current
//! directory and the home directory.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use aec_base::env::Env;
use aec_base::problem::Problem;
use aec_base::project::{Project, Surroundings};
use aec_base::secret::{Redactor, Secret};
use aec_base::settings::{Candidate, Origin, Setting};
use aec_base::timestamp::Timestamp;
use etcetera::BaseStrategy as _;
use ratatui::crossterm::terminal::size;

use crate::arguments::GlobalArguments;
use crate::arguments::TasksRootArgument;
use crate::arguments::{JobsRootArgument, LedgerRootArgument};
use crate::failure::Failure;
use crate::output::{Format, scrub_log};
use crate::table::set_terminal;

pub(crate) struct Context {
    pub(crate) format: Format,
    pub(crate) quiet: bool,
    pub(crate) color: bool,
    verbose: bool,
    project_flag: Option<PathBuf>,
    /// The environment that secrets are taken from: the shell's, and once a project is open, the project's.
    env: RefCell<Env>,
    /// Further values to remove from output, with the names of their variables.
    secrets: RefCell<Vec<(String, Secret)>>,
}

impl Context {
    pub(crate) fn new(global: &GlobalArguments, format: Format) -> Self {
        let variables = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        set_terminal(terminal_columns());
        let context = Self {
            format,
            quiet: global.quiet,
            color: !global.no_color,
            verbose: global.verbose,
            project_flag: global.project.clone(),
            env: RefCell::new(Env::from_shell(variables)),
            secrets: RefCell::default(),
        };
        context.scrub_log();
        context
    }

    pub(crate) fn directory(&self) -> Result<PathBuf, Failure> {
        let here = std::env::current_dir().map_err(|error| {
            Failure::environment(
                Problem::error(format!("the current directory cannot be used: {error}"))
                    .fix("change to a directory that exists"),
            )
        })?;
        self.sayable(here)
    }

    /// Refuses a path that `--json` cannot show, before any work is done: JSON holds nothing but text.
    fn sayable(&self, path: PathBuf) -> Result<PathBuf, Failure> {
        if self.format == Format::Text || path.to_str().is_some() {
            return Ok(path);
        }
        let problem = Problem::error("the name of a directory or file is not UTF-8, and JSON cannot hold it");
        Err(Failure::environment(problem.fix("leave out --json, or rename it").in_file(path)))
    }

    /// The creation time to record: now, or the time in `SOURCE_DATE_EPOCH` for reproducible builds.
    pub(crate) fn created_at(&self) -> Result<Timestamp, Failure> {
        const VARIABLE: &str = "SOURCE_DATE_EPOCH";
        let env = self.env.borrow();
        let Some(seconds) = env.get(VARIABLE) else { return Ok(Timestamp::now()) };
        seconds.parse().map(Timestamp::from_seconds).map_err(|_| {
            Problem::error(format!("{VARIABLE} is not a number of seconds"))
                .fix("unset it, or set it to the seconds since the beginning of 1970")
                .into()
        })
    }

    /// A path that the user typed, relative to the current directory.
    pub(crate) fn absolute(&self, path: &Path) -> Result<PathBuf, Failure> {
        self.sayable(self.directory()?.join(path).components().collect())
    }

    /// `$XDG_CONFIG_HOME/aec-bench/config.json`, by default `~/.config/aec-bench/config.json`.
    pub(crate) fn user_file(&self) -> Option<PathBuf> {
        let strategy = etcetera::base_strategy::Xdg::new().ok()?;
        Some(strategy.config_dir().join("aec-bench").join("config.json"))
    }

    pub(crate) fn surroundings(&self) -> Result<Surroundings, Failure> {
        Ok(Surroundings {
            directory: self.directory()?,
            project: self.project_flag.clone(),
            user_file: self.user_file(),
            env: self.env.borrow().clone(),
        })
    }

    /// Opens the project that contains the current directory, with values from flags and an experiment.
    pub(crate) fn project(&self, overrides: Vec<Candidate>) -> Result<Project, Failure> {
        let project = Project::open(&self.surroundings()?, overrides)?;
        self.sayable(project.root.clone())?;
        self.opened(&project);
        Ok(project)
    }

    /// What holds from now on because a project is open.
    fn opened(&self, project: &Project) {
        self.remember_secrets_of(&project.env);
        // No room shows what belongs to the project, nor an installed copy of this program.
        let whole = project.file.is_some().then(|| project.root.clone());
        let parts = Setting::paths().map(|setting| project.settings.path(setting));
        let own = self.user_file().and_then(|file| file.parent().map(Path::to_path_buf));
        let search_path = self.search_path().unwrap_or_default();
        let installed = std::env::split_paths(&search_path).map(|place| place.join(aec_sandbox::OURSELVES));
        let installed = installed.filter(|program| program.is_absolute() && program.is_file());
        let private =
            whole.into_iter().chain(parts).chain(project.dotenv.clone()).chain(own).chain(installed);
        aec_sandbox::keep_private(private);
        aec_sandbox::show_also(project.local.show.iter().map(|place| project.root.join(place)));
    }

    pub(crate) fn project_in(&self, root: &Path) -> Result<Project, Failure> {
        let surroundings = Surroundings { project: Some(root.to_path_buf()), ..self.surroundings()? };
        let project = Project::open(&surroundings, Vec::new())?;
        self.opened(&project);
        Ok(project)
    }

    /// From now on, removes the secrets of this environment from everything printed.
    pub(crate) fn remember_secrets_of(&self, env: &Env) {
        *self.env.borrow_mut() = env.clone();
        self.scrub_log();
    }

    fn scrub_log(&self) {
        if self.verbose {
            scrub_log(self.redactor());
        }
    }

    /// Also removes these values, whatever the names of their variables are.
    pub(crate) fn remember_values<'a>(&self, secrets: impl Iterator<Item = (&'a str, &'a str)>) {
        let secrets = secrets.map(|(name, value)| (name.to_owned(), Secret::new(value)));
        self.secrets.borrow_mut().extend(secrets);
        self.scrub_log();
    }

    /// Adds variables that were kept in a file for this process to its environment.
    pub(crate) fn add_variables(&self, variables: impl IntoIterator<Item = (String, String)>) {
        let env = self.env.borrow().clone().with(variables);
        *self.env.borrow_mut() = env;
        self.scrub_log();
    }

    /// The programs of Slurm. They are not given the secrets of this environment.
    pub(crate) fn slurm(&self) -> Result<aec_cluster::slurm::Slurm, Problem> {
        let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        let secrets = names.filter(|name| aec_base::secret::is_secret_name(name)).collect();
        aec_cluster::slurm::Slurm::find(self.search_path().as_deref(), secrets)
    }

    /// The parts of the environment that workers on other machines need.
    pub(crate) fn worker_surroundings(&self) -> aec_cluster::sbatch::Surroundings {
        let text = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        aec_cluster::sbatch::Surroundings {
            search_path: text("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".to_owned()),
            home: text("HOME"),
            config_home: text("XDG_CONFIG_HOME"),
        }
    }

    pub(crate) fn is_verbose(&self) -> bool {
        self.verbose
    }

    pub(crate) fn redactor(&self) -> Redactor {
        let secrets = self.secrets.borrow();
        let secrets = secrets.iter().map(|(name, value)| (name.as_str(), value.reveal()));
        Redactor::from_env(&self.env.borrow()).with(secrets)
    }

    /// Whether stderr is a terminal that can move its cursor and that nothing else writes to.
    pub(crate) fn is_terminal(&self) -> bool {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        std::io::IsTerminal::is_terminal(&std::io::stderr()) && !dumb && !self.verbose
    }

    pub(crate) fn search_path(&self) -> Option<std::ffi::OsString> {
        std::env::var_os("PATH")
    }
}

/// Columns of the terminal that stdout goes to. The variable `COLUMNS` takes precedence, also on a pipe.
fn terminal_columns() -> Option<usize> {
    let said = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let is_terminal = std::io::IsTerminal::is_terminal(&std::io::stdout());
    said.or_else(|| is_terminal.then(|| size().ok().map(|(columns, _)| columns.into())).flatten())
}

impl TasksRootArgument {
    /// The flag as an override. Its path is relative to the current directory.
    pub(crate) fn overrides(&self, context: &Context) -> Result<Vec<Candidate>, Failure> {
        let Some(path) = &self.tasks_root else { return Ok(Vec::new()) };
        let value = context.absolute(Path::new(path))?.to_string_lossy().into_owned();
        let origin = Origin::Flag { flag: "--tasks-root" };
        Ok(vec![Candidate { setting: Setting::Tasks, value, origin }])
    }
}

impl LedgerRootArgument {
    /// The flag as an override. Its path is relative to the current directory.
    pub(crate) fn overrides(&self, context: &Context) -> Result<Vec<Candidate>, Failure> {
        place(context, self.ledger_root.as_deref(), Setting::Ledger, "--ledger-root")
    }
}

impl JobsRootArgument {
    /// The flag as an override. Its path is relative to the current directory.
    pub(crate) fn overrides(&self, context: &Context) -> Result<Vec<Candidate>, Failure> {
        place(context, self.jobs_root.as_deref(), Setting::Jobs, "--jobs-root")
    }
}

fn place(
    context: &Context,
    path: Option<&str>,
    setting: Setting,
    flag: &'static str,
) -> Result<Vec<Candidate>, Failure> {
    let Some(path) = path else { return Ok(Vec::new()) };
    let value = context.absolute(Path::new(path))?.to_string_lossy().into_owned();
    Ok(vec![Candidate { setting, value, origin: Origin::Flag { flag } }])
}
