//! Why a command failed, and its exit code.

use aec_base::problem::Problem;

/// Exit codes, as documented in `docs/reference/exit-codes.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Success = 0,
    Found = 1,
    Usage = 2,
    Input = 3,
    Environment = 4,
    Internal = 70,
    Interrupted = 130,
    Terminated = 143,
}

impl Exit {
    pub(crate) const ALL: [Self; 8] = [
        Self::Success,
        Self::Found,
        Self::Usage,
        Self::Input,
        Self::Environment,
        Self::Internal,
        Self::Interrupted,
        Self::Terminated,
    ];

    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Self::Success => "the work is done",
            Self::Found => "the work ran, and something failed or was found",
            Self::Usage => "the command line is wrong",
            Self::Input => "a configuration file or an input is wrong",
            Self::Environment => "this machine or a remote service prevents the work",
            Self::Internal => "a bug in aec-bench",
            Self::Interrupted => "the user interrupted it",
            Self::Terminated => "a cluster ended the job of this worker",
        }
    }

    /// `status` of the envelope, if the exit code alone decides it.
    pub(crate) fn status(self) -> Option<&'static str> {
        match self {
            Self::Success => Some("success"),
            Self::Found => Some("partial"),
            Self::Usage | Self::Input | Self::Environment | Self::Internal => Some("error"),
            Self::Interrupted | Self::Terminated => None,
        }
    }
}

/// A command that failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) problems: Vec<Problem>,
}

impl Failure {
    pub(crate) fn usage(problem: Problem) -> Self {
        Self { exit: Exit::Usage, problems: vec![problem] }
    }

    pub(crate) fn input(problems: impl Into<Vec<Problem>>) -> Self {
        Self { exit: Exit::Input, problems: problems.into() }
    }

    pub(crate) fn environment(problem: Problem) -> Self {
        Self { exit: Exit::Environment, problems: vec![problem] }
    }

    pub(crate) fn internal(problem: Problem) -> Self {
        Self { exit: Exit::Internal, problems: vec![problem] }
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self::input(vec![problem])
    }
}

impl From<Vec<Problem>> for Failure {
    fn from(problems: Vec<Problem>) -> Self {
        Self::input(problems)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::environment(
            Problem::error(error.to_string()).fix("check the path, its permissions and the free space"),
        )
    }
}

impl From<aec_author::engine::EngineError> for Failure {
    fn from(error: aec_author::engine::EngineError) -> Self {
        let problem = Problem::error(error.to_string());
        match error {
            aec_author::engine::EngineError::Broken(_) => problem.fix("correct the engine").into(),
            _ => Self::environment(problem.fix("see `aec-bench doctor`, or pass --sandbox none")),
        }
    }
}

impl From<aec_author::generate::GenerateError> for Failure {
    fn from(error: aec_author::generate::GenerateError) -> Self {
        match error {
            aec_author::generate::GenerateError::Template(problems) => problems.into(),
            aec_author::generate::GenerateError::Engine(error) => error.into(),
            aec_author::generate::GenerateError::Io(error) => error.into(),
        }
    }
}

impl From<aec_task::scaffold::ScaffoldError> for Failure {
    fn from(error: aec_task::scaffold::ScaffoldError) -> Self {
        match error {
            aec_task::scaffold::ScaffoldError::InTheWay(problem) => (*problem).into(),
            aec_task::scaffold::ScaffoldError::Io(error) => error.into(),
        }
    }
}

impl From<aec_task::dataset::store::PublishError> for Failure {
    fn from(error: aec_task::dataset::store::PublishError) -> Self {
        match error {
            aec_task::dataset::store::PublishError::Exists(problem) => (*problem).into(),
            aec_task::dataset::store::PublishError::Io(error) => error.into(),
        }
    }
}

impl From<aec_task::dataset::archive::ExportError> for Failure {
    fn from(error: aec_task::dataset::archive::ExportError) -> Self {
        match error {
            aec_task::dataset::archive::ExportError::Problems(problems) => problems.into(),
            aec_task::dataset::archive::ExportError::Io(error) => error.into(),
        }
    }
}

impl From<aec_task::dataset::import::ImportError> for Failure {
    fn from(error: aec_task::dataset::import::ImportError) -> Self {
        match error {
            aec_task::dataset::import::ImportError::Problems(problems) => problems.into(),
            aec_task::dataset::import::ImportError::Io(error) => error.into(),
        }
    }
}

impl From<aec_ledger::package::PackageError> for Failure {
    fn from(error: aec_ledger::package::PackageError) -> Self {
        match error {
            aec_ledger::package::PackageError::Problems(problems) => problems.into(),
            aec_ledger::package::PackageError::Io(error) => error.into(),
        }
    }
}
