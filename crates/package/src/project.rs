//! The files of a package that Python tools read: `pyproject.toml` and the README.

use std::fmt::Write as _;

use crate::interaction::Interaction;
use crate::manifest::{PackageManifest, PackagedSide};
use crate::select::{Ask, select};

/// Some tools cut longer names.
const LONGEST: usize = 64;

/// The name of a package: lower-case letters and digits, with single `-` or `_` between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageName(String);

impl PackageName {
    /// Checks a name; the error tells what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let is_inner = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
        let problem = if text.len() > LONGEST {
            format!("it has more than {LONGEST} characters")
        } else if !text.starts_with(|letter: char| letter.is_ascii_lowercase()) {
            "it does not begin with a small letter".to_owned()
        } else if let Some(other) = text.chars().find(|letter| !is_inner(*letter) && !"-_".contains(*letter))
        {
            format!("it holds `{}`", other.escape_default())
        } else if !text.ends_with(is_inner) || ["--", "__", "-_", "_-"].iter().any(|pair| text.contains(pair))
        {
            "`-` and `_` must be between letters or digits, one at a time".to_owned()
        } else {
            return Ok(Self(text.to_owned()));
        };
        Err(problem)
    }

    /// The name for tasks that were selected for an evaluation without a package.
    pub fn of_selection() -> Self {
        Self("tasks".to_owned())
    }

    /// The name as given: the name of the package and of the environment on a hub.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The module of the package, which is also its directory.
    pub fn module(&self) -> String {
        self.0.replace('-', "_")
    }
}

/// `pyproject.toml`, also written beside the module: `verifiers` looks there for the defaults of an evaluation.
pub(crate) fn pyproject(name: &PackageName, manifest: &PackageManifest) -> String {
    let module = &manifest.name;
    let examples = manifest.tasks.len().min(5);
    format!(
        "[build-system]\n\
         requires = [\"hatchling\"]\n\
         build-backend = \"hatchling.build\"\n\n\
         [project]\n\
         name = \"{}\"\n\
         version = \"{}\"\n\
         description = \"{} with the verifiers that judge them\"\n\
         readme = \"README.md\"\n\
         requires-python = \">=3.10\"\n\
         tags = [\"aec-bench\", \"engineering\"]\n\
         dependencies = [\"verifiers>=0.1.14\"]\n\n\
         [tool.hatch.build.targets.wheel]\n\
         packages = [\"{module}\"]\n\n\
         [tool.verifiers.eval]\n\
         num_examples = {examples}\n\
         rollouts_per_example = 3\n",
        name.as_str(),
        manifest.version,
        count(manifest.tasks.len(), "engineering task"),
    )
}

fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("one {what}") } else { format!("{number} {what}s") }
}

pub(crate) fn readme(name: &PackageName, manifest: &PackageManifest) -> String {
    let tasks = &manifest.tasks;
    let on = |side: PackagedSide| select(manifest, &Ask { side: Some(side), ..Ask::default() }).tasks.len();
    let overlap = select(manifest, &Ask::default()).overlap;
    let stateful = tasks.iter().filter(|task| task.lane == Interaction::Stateful).count();
    let dataset =
        manifest.dataset.as_ref().map(|dataset| format!(" of the dataset `{dataset}`")).unwrap_or_default();
    let mut text = format!(
        "# {}\n\n\
         {}{dataset}, exported by aec-bench {}. The verifier of each task decides its reward.\n\n\
         This directory is made from the tasks: change them and export it again rather than editing it.\n\n\
         ```python\n\
         import verifiers as vf\n\n\
         environment = vf.load_environment(\"{}\", split=\"eval\", difficulty=\"medium\", seed=7, num_examples=10)\n\
         ```\n\n\
         With `verifiers` 0.3.1 and later the package is a taskset; the same arguments are fields of its configuration.\n\n\
         | argument | values | default |\n\
         |---|---|---|\n\
         | `split` | `train` ({} tasks), `eval` ({}), `all` | `train` |\n\
         | `difficulty` | one or a list | any |\n\
         | `seed` | draws the order of the tasks | order of the ids |\n\
         | `num_examples` | the first so many | all |\n\
         | `harness` | `auto`, `single-turn`, `stateful` | `{}` |\n\
         | `max_turns`, `max_total_tokens`, `command_timeout_sec` | limits of a rollout | the task's |\n\
         | `confinement` | `auto`, `required`, `none` | `auto` |\n\n\
         {stateful} of the tasks need a workspace; when one is selected, all are worked on in a workspace. Fewer than five\n\
         tasks after the filter on difficulty, and tasks that are all on one side, stay whole: both sides have them, and\n\
         `info.overlap` says so.\n\n\
         Commands of the model and verifiers run in Linux namespaces of their own, without network. Where the machine allows\n\
         none, `confinement=\"none\"` runs them on the machine itself: then rewards are as trustworthy as the model.\n\n\
         | task | difficulty | side | lane |\n\
         |---|---|---|---|\n",
        name.as_str(),
        capital(&count(tasks.len(), "engineering task")),
        manifest.tool_version,
        name.as_str(),
        on(PackagedSide::Train),
        on(PackagedSide::Eval),
        manifest.harness.name(),
    );
    for task in tasks {
        let side = match task.side {
            _ if overlap => "both",
            PackagedSide::Train => "train",
            PackagedSide::Eval => "eval",
        };
        let difficulty = task.difficulty.as_deref().unwrap_or("unknown");
        // Writing to a string cannot fail.
        let _written =
            writeln!(text, "| `{}` | {difficulty} | {side} | {} |", task.task_id, task.lane.name());
    }
    text
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_ascii_uppercase().to_string() + letters.as_str()).unwrap_or_default()
}
