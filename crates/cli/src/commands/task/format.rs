//! Task formats of other programs.

use clap::ValueEnum;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TaskFormat {
    /// Harbor's directories
    Harbor,
}

pub(crate) fn name(format: TaskFormat) -> &'static str {
    match format {
        TaskFormat::Harbor => "harbor",
    }
}
