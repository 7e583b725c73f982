//! Reads all samples of an evaluation, page by page.
//!
//! Each page is handed over as soon as it arrives, so that memory does not depend on the number of samples. While an
//! evaluation runs, its total grows and samples move between pages; samples are identified by their ids and handed over
//! once. Smaller pages than requested, repeated pages and endless pages are detected.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::ControlFlow;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::service::client::{ApiError, ApiErrorKind, Client, segment};

#[derive(Clone, Debug)]
pub struct SamplesOptions {
    /// The service returns at most 1000.
    pub page_size: u64,
    /// Most samples that are read before the service counts as broken.
    pub most_samples: u64,
}

impl Default for SamplesOptions {
    fn default() -> Self {
        Self { page_size: 1000, most_samples: 5_000_000 }
    }
}

/// One page, without samples that came before.
#[derive(Clone, Debug, PartialEq)]
pub struct SamplePage {
    /// The samples as the service wrote them. They share the bytes of the page.
    pub samples: Vec<Bytes>,
    /// Samples handed over so far, including this page.
    pub received: u64,
    /// The service's total.
    pub total: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleCount {
    /// Samples handed over.
    pub received: u64,
    /// The service's last total. If it is more than `received`, some are missing.
    pub total: Option<u64>,
    /// Samples that came more than once.
    pub repeated: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum SamplesError {
    #[error(
        "page {page} of the samples repeats earlier ones, after {received} of {total}; the service cannot page"
    )]
    RepeatedPage {
        page: u64,
        received: u64,
        /// Samples that there should be.
        total: u64,
    },
    #[error("there are more than {limit} samples; the service gives pages without end")]
    Endless { limit: u64 },
    #[error(transparent)]
    Api(#[from] ApiError),
}

/// Reads all samples and hands them over page by page. The caller may stop.
pub async fn samples(
    client: &Client,
    evaluation_id: &str,
    options: &SamplesOptions,
    mut take: impl FnMut(SamplePage) -> ControlFlow<()>,
) -> Result<SampleCount, SamplesError> {
    let id = segment("evaluation id", evaluation_id)?;
    let mut place = Place { page: 1, limit: options.page_size.clamp(1, 1000) };
    let mut seen = Seen::default();
    loop {
        let answer = match fetch(client, id, place).await {
            Ok(answer) => answer,
            Err(error) => match place.with_smaller_pages(&error) {
                Some(smaller) => {
                    place = smaller;
                    continue;
                }
                None => return Err(error.into()),
            },
        };
        if answer.limit.is_some_and(|limit| limit < place.limit) && place.page == 1 {
            // The service counts pages by its own page size.
            place.limit = answer.limit.unwrap_or(place.limit);
        }
        let was_empty = answer.samples.is_empty();
        let fresh = seen.take(answer);
        let count = seen.count;
        if count.received > options.most_samples {
            return Err(SamplesError::Endless { limit: options.most_samples });
        }
        if fresh.is_empty() && !was_empty {
            // While an evaluation runs, a page may contain nothing new, but not twice in a row.
            match count.total {
                Some(total) if count.received < total && seen.stale_pages > 1 => {
                    return Err(SamplesError::RepeatedPage {
                        page: place.page,
                        received: count.received,
                        total,
                    });
                }
                Some(total) if count.received < total => {}
                _ => return Ok(count),
            }
        }
        let page = SamplePage { samples: fresh, received: count.received, total: count.total };
        if !page.samples.is_empty() && take(page).is_break() {
            return Ok(count);
        }
        // A short page is not the end as long as the total is larger.
        let ended = match count.total {
            Some(total) => count.received >= total,
            None => seen.last_page_length < place.limit,
        };
        if was_empty || ended {
            return Ok(count);
        }
        place.page += 1;
    }
}

#[derive(Clone, Copy, Debug)]
struct Place {
    page: u64,
    limit: u64,
}

impl Place {
    /// The same position in smaller pages, after a page that was too long to read. Sizes are powers of ten, so that a
    /// smaller page starts where this one does.
    fn with_smaller_pages(self, error: &ApiError) -> Option<Self> {
        if !matches!(error.kind, ApiErrorKind::TooLong { .. }) || self.limit == 1 {
            return None;
        }
        let start = (self.page - 1) * self.limit;
        let limit =
            [100, 10, 1].into_iter().find(|limit| *limit < self.limit && start.is_multiple_of(*limit))?;
        Some(Self { page: start / limit + 1, limit })
    }
}

struct Answer {
    samples: Vec<Bytes>,
    total: Option<u64>,
    limit: Option<u64>,
}

/// A page, split into samples but not parsed further: the caller parses each sample once.
#[derive(Deserialize)]
struct RawPage<'a> {
    #[serde(borrow)]
    samples: Option<Vec<&'a RawValue>>,
    total: Option<Value>,
    limit: Option<Value>,
    /// Some services put the page inside it.
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

async fn fetch(client: &Client, id: &str, place: Place) -> Result<Answer, ApiError> {
    let query = [("page", place.page.to_string()), ("limit", place.limit.to_string())];
    let body = client.get_bytes(&["evaluations", id, "samples"], &query).await?;
    cut(&body).map_err(|reason| ApiError::malformed(format!("GET /api/v1/evaluations/{id}/samples"), reason))
}

fn cut(body: &Bytes) -> Result<Answer, String> {
    let broken = |error: serde_json::Error| {
        format!("it is not a page of samples (line {}, column {})", error.line(), error.column())
    };
    let is_object = |raw: &&RawValue| raw.get().starts_with('{');
    let mut page: RawPage<'_> = aec_base::json::from_slice(body).map_err(broken)?;
    if let Some(inner) = page.data.filter(is_object) {
        page = aec_base::json::from_str(inner.get()).map_err(broken)?;
    }
    let samples = page.samples.ok_or("it has no list `samples`")?;
    let number = |value: Option<Value>| value.as_ref().and_then(Value::as_u64);
    Ok(Answer {
        samples: samples.into_iter().map(|sample| body.slice_ref(sample.get().as_bytes())).collect(),
        total: number(page.total),
        limit: number(page.limit).filter(|limit| *limit > 0),
    })
}

#[derive(Debug, Default)]
struct Seen {
    /// Hashes of ids: eight bytes per sample, whatever its size.
    ids: HashSet<u64>,
    count: SampleCount,
    last_page: Option<Vec<u64>>,
    last_page_length: u64,
    stale_pages: u32,
}

impl Seen {
    /// The samples that did not come before.
    fn take(&mut self, answer: Answer) -> Vec<Bytes> {
        let ids: Vec<Option<u64>> =
            answer.samples.iter().map(|sample| sample_id(sample).map(|id| hash(id.as_bytes()))).collect();
        // Without ids, samples can only be recognised as a whole page.
        let has_all = ids.iter().all(Option::is_some);
        let page = (!has_all).then(|| answer.samples.iter().map(|sample| hash(sample)).collect::<Vec<_>>());
        let same_page = page.is_some() && page == self.last_page;
        self.last_page = page;
        self.last_page_length = answer.samples.len() as u64;
        self.count.total = answer.total;
        let mut fresh = Vec::with_capacity(answer.samples.len());
        for (sample, id) in answer.samples.into_iter().zip(ids) {
            let is_new = id.map_or(!same_page, |id| self.ids.insert(id));
            if is_new {
                fresh.push(sample);
            } else {
                self.count.repeated += 1;
            }
        }
        self.stale_pages = if fresh.is_empty() { self.stale_pages + 1 } else { 0 };
        self.count.received += fresh.len() as u64;
        fresh
    }
}

/// The id of a sample, without parsing the rest of it.
fn sample_id(sample: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Named {
        sample_id: Option<Value>,
        id: Option<Value>,
    }
    let named: Named = aec_base::json::from_slice(sample).ok()?;
    match named.sample_id.or(named.id)? {
        Value::String(id) if !id.is_empty() => Some(id),
        _ => None,
    }
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}
