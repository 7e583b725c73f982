//! The worker's program, written to a directory from which an interpreter can run it.

use std::path::Path;

use aec_base::staging::Staging;

use crate::worker::error::WorkerError;

/// The package's name; long, so that no environment has the same name.
const PACKAGE: &str = "aec_bench_evaluation";

const MAIN: &str = "import sys\n\nif sys.argv[1:] == [\"discover\"]:\n    \
                    from aec_bench_evaluation.discover import main\nelse:\n    \
                    from aec_bench_evaluation.worker import main\nmain()\n";

const FILES: [(&str, &str); 11] = [
    ("__init__.py", include_str!("../../../../python/evaluation/__init__.py")),
    ("channel.py", include_str!("../../../../python/evaluation/channel.py")),
    ("chat_program.py", include_str!("../../../../python/evaluation/chat_program.py")),
    ("classic.py", include_str!("../../../../python/evaluation/classic.py")),
    ("discover.py", include_str!("../../../../python/evaluation/discover.py")),
    ("door.py", include_str!("../../../../python/evaluation/door.py")),
    ("modules.py", include_str!("../../../../python/evaluation/modules.py")),
    ("tasksets.py", include_str!("../../../../python/evaluation/tasksets.py")),
    ("trace_rows.py", include_str!("../../../../python/evaluation/trace_rows.py")),
    ("v1_door.py", include_str!("../../../../python/evaluation/v1_door.py")),
    ("worker.py", include_str!("../../../../python/evaluation/worker.py")),
];

/// A directory that an interpreter can run as a program; it is removed when the value is dropped.
#[derive(Debug)]
pub(crate) struct ProgramFiles {
    directory: Staging,
}

impl ProgramFiles {
    pub(crate) fn write() -> Result<Self, WorkerError> {
        let failed = |path: &Path, error: &std::io::Error| WorkerError::Write {
            path: path.to_owned(),
            reason: error.to_string(),
        };
        let directory = Staging::scratch().map_err(|error| failed(&std::env::temp_dir(), &error))?;
        let package = directory.path().join(PACKAGE);
        std::fs::create_dir(&package).map_err(|error| failed(&package, &error))?;
        let main = directory.path().join("__main__.py");
        std::fs::write(&main, MAIN).map_err(|error| failed(&main, &error))?;
        for (name, text) in FILES {
            let path = package.join(name);
            std::fs::write(&path, text).map_err(|error| failed(&path, &error))?;
        }
        Ok(Self { directory })
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }
}
