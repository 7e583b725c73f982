//! Publishes a finished evaluation as a dataset on the Hugging Face hub: its rows, its metadata and a page about them,
//! in one commit.

mod account;
mod call;
mod card;
mod commit;
mod error;
mod lfs;
mod name;
mod repository;
mod source;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use aec_base::file::{Links, read_text};
use aec_base::secret::Redactor;
use aec_http::Proxies;
use aec_http::pause::Rule;

pub use account::{Account, DEFAULT_ENDPOINT};
use call::Connection;
pub use card::{EvaluationFacts, dataset_card};
pub use error::HubError;
pub use name::{Repository, WantedName, default_name};
use source::Source;

const REVISION: &str = "main";

const LONGEST_METADATA: u64 = 32 * 1024 * 1024;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Visibility {
    /// Only its owner.
    #[default]
    Private,
    Public,
}

#[derive(Clone, Debug)]
pub struct HubOptions {
    /// How long a connection may take to open.
    pub connect_timeout: Duration,
    /// How long an answer may take once everything is sent. Uploads get more time, depending on their size.
    pub answer_timeout: Duration,
    /// How often a call is sent at most, including repetitions.
    pub attempts: u32,
    /// Pauses before repetitions.
    pub pauses: Rule,
    /// The hub accepts no larger file.
    pub largest_file: u64,
    /// Proxies for all calls except those to this machine.
    pub proxies: Proxies,
}

impl Default for HubOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            answer_timeout: Duration::from_mins(1),
            attempts: 5,
            // The hub counts calls over five minutes.
            pauses: Rule::new(Duration::from_secs(1), Duration::from_mins(6)),
            largest_file: 50_000_000_000,
            proxies: Proxies::default(),
        }
    }
}

#[derive(Clone)]
pub struct Publication {
    /// The rows of the evaluation, one JSON object a line.
    pub results: PathBuf,
    pub metadata: PathBuf,
    /// `name` or `owner/name`; if absent or empty, the name is made from the evaluation.
    pub dataset: Option<String>,
    /// Who can see the dataset if it must be created. Private results never go into a public dataset.
    pub visibility: Visibility,
    /// Values that must not leave this machine, besides the token.
    pub secrets: Arc<Redactor>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    pub repository: Repository,
    pub page: String,
    pub commit: String,
    pub commit_page: String,
    pub visibility: Visibility,
    pub rows: u64,
}

/// Publishes a finished evaluation. Everything local is checked before the first call of the hub.
pub async fn publish(
    account: &Account,
    publication: &Publication,
    options: &HubOptions,
) -> Result<Published, HubError> {
    let wanted = match publication.dataset.as_deref().map(str::trim).filter(|name| !name.is_empty()) {
        Some(name) => Some(WantedName::parse(name)?),
        None => None,
    };
    let (facts, results, metadata) = prepare(account, publication, options).await?;
    let wanted = wanted.unwrap_or_else(|| {
        WantedName::of_evaluation(&facts.env_id, &facts.model, facts.examples, facts.rollouts_per_example)
    });
    let connection = Connection::new(account, options)?;
    let user = repository::user(&connection, &wanted).await?;
    let target = wanted.owned_by(&user)?;
    let visibility = repository::create(&connection, &target, publication.visibility).await?;
    let rows = results.lines;
    let card = Source::made("README.md", dataset_card(&facts, &target, rows));
    let summary = format!("Results of {} with {}", facts.env_id, facts.model);
    let made = commit::send(&connection, &target, &summary, &[card, metadata, results]).await?;
    let page = connection.address(&["datasets", target.owner(), target.name()]);
    let commit_page = made.page.unwrap_or_else(|| {
        connection.address(&["datasets", target.owner(), target.name(), "commit", &made.id]).to_string()
    });
    Ok(Published {
        repository: target,
        page: page.to_string(),
        commit: made.id,
        commit_page,
        visibility,
        rows,
    })
}

/// Reads the files on a thread that may block.
async fn prepare(
    account: &Account,
    publication: &Publication,
    options: &HubOptions,
) -> Result<(EvaluationFacts, Source, Source), HubError> {
    let publication = publication.clone();
    let token = account.token.clone();
    let limit = options.largest_file;
    let results = publication.results.clone();
    let work = tokio::task::spawn_blocking(move || {
        let unusable = |reason| HubError::Metadata { path: publication.metadata.clone(), reason };
        let text = read_text(&publication.metadata, LONGEST_METADATA, Links::Follow);
        let text = text.map_err(|error| unusable(error.to_string()))?;
        let facts = EvaluationFacts::of_metadata(&text).map_err(unusable)?;
        let own = Redactor::default().with([("token", token.reveal())]);
        let secrets = [publication.secrets.as_ref(), &own];
        let metadata = Source::read("metadata.json", &publication.metadata, LONGEST_METADATA, &secrets)?;
        let results = Source::read(card::ROWS_PATH, &publication.results, limit, &secrets)?;
        if results.lines == 0 {
            let reason = "it holds no rollouts".to_owned();
            return Err(HubError::File { path: publication.results.clone(), reason });
        }
        Ok((facts, results, metadata))
    });
    work.await.unwrap_or_else(|error| Err(HubError::File { path: results, reason: error.to_string() }))
}

fn no_write_right(connection: &Connection<'_>, repository: &Repository, detail: String) -> HubError {
    let origin = connection.account.origin.clone();
    HubError::NoWriteRight { origin, repository: repository.to_string(), detail }
}
