//! Lists of prices: the built-in one, a user's file before it, and which row applies.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use aec_base::document::{Decoded, Document, Family, Shared, Syntax};
use aec_base::problem::Problem;
use serde::Serialize;

use super::file::{PriceFile, PriceTable, TierTable};
use super::pattern::Pattern;
use super::rate::Rate;
use super::{DEFAULT_IMAGE_TOKENS, Origin, Price, Rates, Tier};

/// The problem family of price files.
pub(super) const FAMILY: Family = Family('M');

const SCHEMA_VERSION: u32 = 1;

const BUILT_IN: &str = include_str!("../../prices.toml");

static BUILT_IN_ENTRIES: LazyLock<(Arc<[Row]>, Arc<str>)> = LazyLock::new(|| {
    // An unreadable row would be left out and its model unpriced; a test makes sure that there is none.
    let (rows, version, _) = read_built_in();
    (rows.into(), version)
});

fn read_built_in() -> (Vec<Row>, Arc<str>, Vec<Problem>) {
    let document = match Document::parse(Path::new("prices.toml"), BUILT_IN.to_owned(), Syntax::Toml, FAMILY)
    {
        Ok(document) => document,
        Err(problems) => return (Vec::new(), "unknown".into(), problems),
    };
    let decoded = document.decode::<PriceFile>();
    let version: Arc<str> =
        decoded.value.as_ref().and_then(|file| file.version.as_deref()).unwrap_or("unknown").into();
    let (rows, problems) = read_rows(&document, decoded, &Origin::BuiltIn(version.to_string()));
    (rows, version, problems)
}

/// The subject of a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    Endpoint(String),
    Model {
        provider: String,
        /// Name or pattern, in lower case.
        model: String,
    },
}

/// A row of a list, for display.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    pub subject: Subject,
    pub price: Price,
}

#[derive(Clone, Debug)]
enum Key {
    Endpoint(String),
    Model { provider: String, pattern: Pattern },
}

#[derive(Clone, Debug)]
struct Row {
    key: Key,
    price: Price,
}

/// Prices by provider and model. Rows of a user's file come before built-in ones.
#[derive(Clone, Debug)]
pub struct PriceList {
    user: Arc<[Row]>,
    built_in: Arc<[Row]>,
    version: Arc<str>,
}

impl PriceList {
    pub fn builtin() -> Self {
        let (rows, version) = &*BUILT_IN_ENTRIES;
        Self { user: Arc::new([]), built_in: rows.clone(), version: version.clone() }
    }

    /// The built-in list, after the rows of a file.
    pub fn with_user_file(path: &Path) -> Result<Self, Vec<Problem>> {
        let document = Document::read(path, Syntax::Toml, FAMILY)?;
        let decoded = document.decode::<PriceFile>();
        let (rows, problems) = read_rows(&document, decoded, &Origin::UserFile(path.to_path_buf()));
        if problems.is_empty() { Ok(Self { user: rows.into(), ..Self::builtin() }) } else { Err(problems) }
    }

    /// The date of the built-in list.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The price of a model at a provider, or at an endpoint with its own row. `None` means "unpriced".
    pub fn find(&self, provider: &str, model: &str, endpoint_id: Option<&str>) -> Option<Price> {
        let (provider, model) = (provider.to_lowercase(), model.to_lowercase());
        [&self.user, &self.built_in].into_iter().find_map(|rows| {
            let by_endpoint = rows.iter().find(
                |row| matches!((&row.key, endpoint_id), (Key::Endpoint(id), Some(asked)) if id == asked),
            );
            let by_model = || {
                rows.iter()
                    .filter_map(|row| match &row.key {
                        Key::Model { provider: seller, pattern }
                            if *seller == provider && pattern.matches(&model) =>
                        {
                            Some((pattern.specificity(), row))
                        }
                        _ => None,
                    })
                    .max_by_key(|(specificity, _)| *specificity)
                    .map(|(_, row)| row)
            };
            by_endpoint.or_else(by_model).map(|row| row.price.clone())
        })
    }

    /// All rows, the user's first, each list in its own order.
    pub fn entries(&self) -> impl Iterator<Item = Entry> {
        self.user.iter().chain(self.built_in.iter()).map(|row| Entry {
            subject: match &row.key {
                Key::Endpoint(id) => Subject::Endpoint(id.clone()),
                Key::Model { provider, pattern } => {
                    Subject::Model { provider: provider.clone(), model: pattern.as_str().to_owned() }
                }
            },
            price: row.price.clone(),
        })
    }
}

/// The valid rows, and all problems of the file.
fn read_rows(
    document: &Document,
    mut decoded: Decoded<PriceFile>,
    origin: &Origin,
) -> (Vec<Row>, Vec<Problem>) {
    let mut problems = std::mem::take(&mut decoded.problems);
    let Some(file) = &decoded.value else { return (Vec::new(), problems) };
    if file.schema_version.is_some_and(|version| version != SCHEMA_VERSION) {
        problems.push(
            document
                .problem(Shared::BadValue, "schema_version", "`schema_version` is not 1")
                .why("this program knows only the first version of the format")
                .fix("write schema_version = 1, or use a newer aec-bench"),
        );
    }
    if file.version.as_deref().is_some_and(|date| !is_date(date)) {
        problems.push(
            document
                .problem(Shared::BadValue, "version", "`version` is not a date")
                .fix("write the date of the list, such as 2026-11-16"),
        );
    }
    let mut rows: Vec<Row> = Vec::with_capacity(file.price.len());
    for (index, table) in file.price.iter().enumerate() {
        let mut complaints = Vec::new();
        let mut row = read_row(table, origin, &mut complaints);
        if let Some(twin) = row.as_ref().and_then(|row| find_twin(&rows, row)) {
            complaints.push((
                "model",
                Shared::Conflict,
                twin,
                "make one of the two more specific".to_owned(),
            ));
            row = None;
        }
        rows.extend(row);
        for (name, shared, what, fix) in complaints {
            if !decoded.is_faulty(&format!("price[{index}].{name}")) {
                let place = document.place_in_list("price", index);
                problems.push(Problem::error(what).id(FAMILY.id(shared)).fix(fix).at(place));
            }
        }
    }
    (rows, problems)
}

/// Key, kind, problem and fix.
type Complaint = (&'static str, Shared, String, String);

fn read_row(table: &PriceTable, origin: &Origin, complaints: &mut Vec<Complaint>) -> Option<Row> {
    let before = complaints.len();
    let key = read_key(table, complaints);
    let mut need = |rate: Option<Rate>, name: &'static str| {
        if rate.is_none() {
            let what = format!("`{name}` is missing");
            let fix = format!("add {name} in dollars per million tokens; 0 if it is free");
            complaints.push((name, Shared::MissingKey, what, fix));
        }
        rate.unwrap_or_default()
    };
    let input = need(table.input, "input");
    let output = need(table.output, "output");
    let rates = Rates {
        input,
        output,
        cache_read: table.cache_read.unwrap_or(input),
        cache_write: table.cache_write.unwrap_or(input),
    };
    let above = table.above.as_ref().and_then(|tier| read_tier(tier, complaints));
    if table.checked.as_deref().is_some_and(|date| !is_date(date)) {
        let fix = "write when the figures were looked at, such as 2026-11-16".to_owned();
        complaints.push(("checked", Shared::BadValue, "`checked` is not a date".to_owned(), fix));
    }
    if complaints.len() > before {
        return None;
    }
    let price = Price {
        rates,
        above,
        image_tokens: table.image_tokens.unwrap_or(DEFAULT_IMAGE_TOKENS),
        context_window: table.context_window.filter(|tokens| *tokens > 0),
        source: table.source.clone(),
        checked: table.checked.clone(),
        origin: origin.clone(),
    };
    Some(Row { key: key?, price })
}

fn read_key(table: &PriceTable, complaints: &mut Vec<Complaint>) -> Option<Key> {
    let named = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
    match (named(&table.endpoint), named(&table.provider), named(&table.model)) {
        (Some(id), None, None) => return Some(Key::Endpoint(id)),
        (None, Some(provider), Some(model)) => {
            let provider = provider.to_lowercase();
            return Some(Key::Model { provider, pattern: Pattern::new(&model) });
        }
        (Some(_), _, _) => {
            let what = "`endpoint` is given together with `provider` or `model`".to_owned();
            let fix = "name the endpoint alone, or provider and model".to_owned();
            complaints.push(("endpoint", Shared::Conflict, what, fix));
        }
        (None, provider, _) => {
            let name = if provider.is_none() { "provider" } else { "model" };
            let what = format!("`{name}` is missing");
            let fix = "say what the price is for: provider and model, or endpoint".to_owned();
            complaints.push((name, Shared::MissingKey, what, fix));
        }
    }
    None
}

fn read_tier(tier: &TierTable, complaints: &mut Vec<Complaint>) -> Option<Tier> {
    let mut missing = |name: &'static str, what: &str, fix: &str| {
        complaints.push((name, Shared::MissingKey, what.to_owned(), fix.to_owned()));
    };
    if tier.context_above.unwrap_or(0) == 0 {
        missing(
            "above.context_above",
            "`above.context_above` is missing or 0",
            "say above how many input tokens these rates hold",
        );
    }
    for (rate, name, what) in [
        (tier.input, "above.input", "`above.input` is missing"),
        (tier.output, "above.output", "`above.output` is missing"),
    ] {
        if rate.is_none() {
            missing(name, what, "add it in dollars per million tokens");
        }
    }
    let (context_above, input, output) = (tier.context_above?, tier.input?, tier.output?);
    Some(Tier {
        context_above,
        rates: Rates {
            input,
            output,
            cache_read: tier.cache_read.unwrap_or(input),
            cache_write: tier.cache_write.unwrap_or(input),
        },
    })
}

/// Why another row could apply equally to the same model, if one could.
fn find_twin(rows: &[Row], row: &Row) -> Option<String> {
    rows.iter().find_map(|other| match (&other.key, &row.key) {
        (Key::Endpoint(one), Key::Endpoint(two)) if one == two => {
            Some(format!("there are two prices for the endpoint `{one}`"))
        }
        (Key::Model { provider: one, pattern: left }, Key::Model { provider: two, pattern: right })
            if one == two && left.specificity() == right.specificity() && left.overlaps(right) =>
        {
            Some(if left == right {
                format!("there are two prices for `{}` of {one}", left.as_str())
            } else {
                let (left, right) = (left.as_str(), right.as_str());
                format!("`{left}` and `{right}` of {one} are equally specific and can mean the same model")
            })
        }
        _ => None,
    })
}

fn is_date(text: &str) -> bool {
    let shape = |byte: u8| if byte.is_ascii_digit() { b'0' } else { byte };
    text.bytes().map(shape).eq(*b"0000-00-00")
}

#[cfg(test)]
mod tests;
