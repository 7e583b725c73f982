//! The Python sources that Harbor loads: the agent that runs this program in an environment, and the plugin that
//! reports the progress of a job.

use std::io;
use std::path::Path;

const PACKAGE: &str = "aec_bench_harbor";

/// Path in the module, and text.
const FILES: [(&str, &str); 3] = [
    ("__init__.py", include_str!("../../../python/harbor/__init__.py")),
    ("agent.py", include_str!("../../../python/harbor/agent.py")),
    ("progress.py", include_str!("../../../python/harbor/progress.py")),
];

/// The agent's import path in jobs.
pub const AGENT: &str = "aec_bench_harbor.agent:AecBenchAgent";
/// The plugin's import path on the command line.
pub const PLUGIN: &str = "aec_bench_harbor.progress:Progress";

/// Writes the module below a directory for `PYTHONPATH`.
pub fn write(directory: &Path) -> io::Result<()> {
    let package = directory.join(PACKAGE);
    fs_err::create_dir_all(&package)?;
    FILES.iter().try_for_each(|(name, text)| fs_err::write(package.join(name), text))
}
