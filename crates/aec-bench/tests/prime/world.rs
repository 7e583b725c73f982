//! What the tests of packages share: a project, its tasks, and the packages that are exported from them.

use std::path::PathBuf;

use aec_package::manifest::PackageManifest;
use aec_xtest::tree::write_task;
use aec_xtest::{Run, TestEnv};

/// A `task.toml` for a public task of this difficulty.
pub(crate) fn public(difficulty: &str) -> String {
    format!(
        "version = \"1.0\"\n\n[metadata]\ndifficulty = \"{difficulty}\"\nvisibility = \"public\"\ntags = [\"x\"]\n"
    )
}

pub(crate) struct Project {
    pub(crate) env: TestEnv,
}

impl Project {
    /// A project without tasks.
    pub(crate) fn new() -> Self {
        Self::made_by("init --quiet --no-example")
    }

    /// A project with the task that every new project has.
    pub(crate) fn with_example() -> Self {
        Self::made_by("init --quiet")
    }

    fn made_by(line: &str) -> Self {
        let project = Self { env: TestEnv::new(env!("CARGO_BIN_EXE_aec-bench")) };
        project.ok(line);
        project
    }

    /// Writes a task: its `task.toml`, and further files.
    pub(crate) fn task(&self, id: &str, task_toml: &str, files: &[(&str, &str)]) {
        write_task(&self.env.path("tasks").join(id), task_toml);
        for (path, text) in files {
            self.env.write(format!("tasks/{id}/{path}"), text);
        }
    }

    /// Writes public tasks with default content.
    pub(crate) fn tasks(&self, ids: &[&str]) {
        for id in ids {
            self.task(id, &public("easy"), &[]);
        }
    }

    /// Runs the program; words are split at spaces.
    pub(crate) fn run(&self, line: &str) -> Run {
        self.env.run(line.split_whitespace())
    }

    /// Runs the program, which must succeed.
    pub(crate) fn ok(&self, line: &str) {
        let run = self.run(line);
        assert_eq!(run.code, Some(0), "{line}: {run:?}");
    }

    /// Exports into `packages`.
    pub(crate) fn export(&self, line: &str) -> Run {
        self.run(&format!("--json prime export --output-dir packages {line}"))
    }

    pub(crate) fn package(&self, module: &str) -> PathBuf {
        self.env.path("packages").join(module)
    }

    pub(crate) fn manifest(&self, module: &str) -> PackageManifest {
        let text = std::fs::read(self.package(module).join(module).join("tasks.json")).unwrap();
        serde_json::from_slice(&text).unwrap()
    }
}
