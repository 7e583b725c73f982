//! Why results did not reach the hub, and what to do about it.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use aec_base::problem::Problem;
use aec_http::pause::Outlook;

use crate::FAMILY;

const TOKEN_PAGE: &str = "https://huggingface.co/settings/tokens";

#[derive(Debug, thiserror::Error)]
pub enum HubError {
    #[error("there is no token for the Hugging Face hub")]
    NoToken,
    #[error("the token of {origin} cannot be used: {reason}")]
    BadToken { origin: String, reason: String },
    #[error("{address:?} cannot be used as the address of {what}: {reason}")]
    Address {
        what: &'static str,
        /// The address without its query.
        address: String,
        reason: String,
    },
    #[error("the Hugging Face hub does not accept the token of {origin}{}", Said(detail))]
    TokenRefused { origin: String, detail: String },
    #[error("the token of {origin} may not write to {repository}{}", Said(detail))]
    NoWriteRight { origin: String, repository: String, detail: String },
    #[error("{name:?} cannot be the name of a dataset: {reason}")]
    Name { name: String, reason: String },
    #[error("{repository} is taken on the hub, but not by a dataset that this token can see{}", Said(detail))]
    OtherType { repository: String, detail: String },
    #[error("the dataset {repository} exists and is public, but the results were to be private")]
    AlreadyPublic { repository: String },
    #[error("{what} is too large for the hub{}", Said(detail))]
    TooLarge {
        /// File or request.
        what: String,
        /// The hub's text, or the limit.
        detail: String,
    },
    #[error("{call}: the hub cannot be reached: {reason}")]
    Network {
        /// The call, such as `POST /api/repos/create`.
        call: String,
        reason: String,
    },
    #[error("{call}: the hub is busy or broken (status {status}{}){}", Asks(*retry_after), Said(detail))]
    Busy {
        call: String,
        status: u16,
        /// How long the hub asks to wait.
        retry_after: Option<Duration>,
        detail: String,
    },
    #[error("{call}: the hub refused with status {status}{}", Said(detail))]
    Refused { call: String, status: u16, detail: String },
    #[error("{call}: the answer of the hub makes no sense: {reason}")]
    Malformed { call: String, reason: String },
    #[error("{call}: the hub redirects to {to}, where the token is not sent")]
    Redirect {
        call: String,
        /// Scheme and host of the other address.
        to: String,
    },
    #[error("cannot publish {}: {reason}", path.display())]
    File { path: PathBuf, reason: String },
    #[error("{}: {reason}", path.display())]
    Metadata { path: PathBuf, reason: String },
    #[error("{} holds the value of a secret and is not published", path.display())]
    HoldsSecret { path: PathBuf },
}

impl HubError {
    fn number(&self) -> u32 {
        match self {
            Self::NoToken => 70,
            Self::BadToken { .. } => 71,
            Self::Address { .. } => 72,
            Self::TokenRefused { .. } => 73,
            Self::NoWriteRight { .. } => 74,
            Self::Name { .. } => 75,
            Self::OtherType { .. } => 76,
            Self::AlreadyPublic { .. } => 77,
            Self::TooLarge { .. } => 78,
            Self::Network { .. } => 79,
            Self::Busy { .. } => 80,
            Self::Refused { .. } => 81,
            Self::Malformed { .. } => 82,
            Self::Redirect { .. } => 83,
            Self::File { .. } => 84,
            Self::Metadata { .. } => 85,
            Self::HoldsSecret { .. } => 86,
        }
    }

    /// What the user can do about it.
    fn fix(&self) -> String {
        match self {
            Self::NoToken => format!(
                "make a token with write access at {TOKEN_PAGE} and set HF_TOKEN to it, or store it with `hf auth login`"
            ),
            Self::BadToken { .. } => format!("copy the token again from {TOKEN_PAGE}"),
            Self::Address { .. } | Self::Redirect { .. } => {
                "set HF_ENDPOINT to the https address of the hub, or remove it for the public one".to_owned()
            }
            Self::TokenRefused { .. } => {
                format!("the token may be revoked, expired or cut off: make another at {TOKEN_PAGE}")
            }
            Self::NoWriteRight { .. } => format!(
                "give the token write access at {TOKEN_PAGE}, or name a dataset of an account that it may write to"
            ),
            Self::Name { .. } => {
                "use `name` or `owner/name` with letters, digits, `_`, `-` and `.`, at most 96 of them"
                    .to_owned()
            }
            Self::OtherType { .. } => "choose another name for the dataset".to_owned(),
            Self::AlreadyPublic { .. } => {
                "ask for a public dataset, choose another name, or make the dataset private on the hub"
                    .to_owned()
            }
            Self::TooLarge { .. } => "publish fewer rollouts, or keep fewer state columns".to_owned(),
            Self::Network { .. } => {
                "check the connection and publish again; the results on disk are unchanged".to_owned()
            }
            Self::Busy { .. } => "publish again later; the results on disk are unchanged".to_owned(),
            Self::Refused { .. } | Self::Malformed { .. } => {
                "check HF_ENDPOINT, and whether a newer version of this program is there".to_owned()
            }
            Self::File { .. } | Self::Metadata { .. } => {
                "publish the directory of a finished evaluation, as this program wrote it".to_owned()
            }
            Self::HoldsSecret { .. } => {
                "find out how the secret got into the results, replace it there, and revoke it".to_owned()
            }
        }
    }

    /// Why it matters, where that is not obvious.
    fn why(&self) -> Option<&'static str> {
        match self {
            Self::AlreadyPublic { .. } => Some("everybody could read the rollouts"),
            Self::HoldsSecret { .. } => Some("what was published on the hub cannot be taken back"),
            _ => None,
        }
    }

    pub fn problem(&self) -> Problem {
        // A problem has its own field for the file.
        let what = match self {
            Self::File { reason, .. } => format!("cannot be published: {reason}"),
            Self::Metadata { reason, .. } => reason.clone(),
            Self::HoldsSecret { .. } => "holds the value of a secret and is not published".to_owned(),
            other => other.to_string(),
        };
        let mut problem = Problem::error(what).id(FAMILY.number(self.number())).fix(self.fix());
        if let Some(why) = self.why() {
            problem = problem.why(why);
        }
        match self {
            Self::File { path, .. } | Self::Metadata { path, .. } | Self::HoldsSecret { path } => {
                problem.file = Some(path.clone());
            }
            Self::NoWriteRight { repository, .. }
            | Self::OtherType { repository, .. }
            | Self::AlreadyPublic { repository } => problem.about = Some(repository.clone()),
            _ => {}
        }
        problem
    }

    pub(super) fn outlook(&self) -> Outlook {
        match self {
            Self::Network { .. } => Outlook::Passing(None),
            Self::Busy { retry_after, .. } => Outlook::Passing(*retry_after),
            _ => Outlook::Final,
        }
    }

    pub(super) fn of(call: String, failure: aec_http::Failure) -> Self {
        use aec_http::Failure as F;
        match failure {
            F::Connection { reason } => Self::Network { call, reason },
            F::Timeout { .. } | F::Proxy { .. } => Self::Network { call, reason: failure.to_string() },
            F::TooLong { .. } | F::NoAddress { .. } => Self::Malformed { call, reason: failure.to_string() },
            F::Redirect { to, .. } => Self::Redirect { call, to },
        }
    }
}

impl From<HubError> for Problem {
    fn from(error: HubError) -> Self {
        error.problem()
    }
}

struct Said<'a>(&'a str);

impl fmt::Display for Said<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(formatter, " (it says: {})", self.0) }
    }
}

struct Asks(Option<Duration>);

impl fmt::Display for Asks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(wait) => write!(formatter, ", it asks to wait {} seconds", wait.as_secs()),
            None => Ok(()),
        }
    }
}
