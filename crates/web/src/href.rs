//! Addresses of our own pages, and the path and parameters of a request, decoded once.

use aec_base::name::Name;
use aec_base::text::percent_encoded;
use aec_ledger::layout::{parse_record_name, stem};
use aec_ledger::read::RecordFile;

/// An address on this server. Everything in it is percent-encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Href(String);

impl Href {
    pub(crate) fn new<S: AsRef<str>>(segments: impl IntoIterator<Item = S>) -> Self {
        let mut address = String::new();
        for segment in segments {
            address.push('/');
            address.push_str(&percent_encoded(segment.as_ref()));
        }
        if address.is_empty() {
            address.push('/');
        }
        Self(address)
    }

    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.0.push(if self.0.contains('?') { '&' } else { '?' });
        self.0.push_str(&format!("{}={}", percent_encoded(name), percent_encoded(value)));
        self
    }

    /// A place on the same page.
    pub(crate) fn here(place: &str) -> Self {
        Self(String::new()).at(place)
    }

    /// Adds a place on the page. It must come after every parameter.
    #[must_use]
    pub(crate) fn at(mut self, place: &str) -> Self {
        self.0.push('#');
        self.0.push_str(&percent_encoded(place));
        self
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

pub(crate) fn experiment(id: &str) -> Href {
    Href::new(["experiment", id])
}

pub(crate) fn trial(experiment: &str, trial: &Name, attempt: u32) -> Href {
    Href::new(["trial", experiment, &stem(trial, attempt)])
}

pub(crate) fn task(id: &str) -> Href {
    Href::new(std::iter::once("library").chain(id.split('/')))
}

/// Decodes a text; absent if the result is not a text.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
            let value = digit(rest.next())? * 16 + digit(rest.next())?;
            bytes.push(u8::try_from(value).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    pub(crate) segments: Vec<String>,
    parameters: Vec<(String, String)>,
}

impl Asked {
    /// Reads path and parameters; absent if no page of ours could link to them.
    pub(crate) fn read(path: &str, query: Option<&str>) -> Option<Self> {
        let segments = path.strip_prefix('/')?.split('/').map(decode).collect::<Option<Vec<String>>>()?;
        let segments = if segments == [""] { Vec::new() } else { segments };
        let mut parameters = Vec::new();
        for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let plain = |text: &str| decode(&text.replace('+', " "));
            parameters.push((plain(name)?, plain(value)?));
        }
        Some(Self { segments, parameters })
    }

    /// A parameter, if it was given and is not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// Every value of a parameter that may be given several times.
    pub(crate) fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        let values = self.parameters.iter().filter(move |(known, value)| known == name && !value.is_empty());
        values.map(|(_, value)| value.as_str())
    }

    /// The parameters without one of them.
    pub(crate) fn without(&self, name: &str) -> Href {
        let address = Href::new(&self.segments);
        self.parameters
            .iter()
            .filter(|(known, value)| known != name && !value.is_empty())
            .fold(address, |address, (name, value)| address.with(name, value))
    }

    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.get(name)?.parse().ok()
    }
}

/// The attempt that two segments name. Names are checked: nothing else of an address ever becomes part of a path.
pub(crate) fn record_file(experiment: &str, stem: &str) -> Option<RecordFile> {
    let (trial, attempt) = parse_record_name(&format!("{stem}.json"))?;
    Some(RecordFile { experiment: Name::parse(experiment).ok()?, trial, attempt })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_written() {
        let address = Href::new(["trial", "a b", "é/%"]).with("q", "x&y=z +1");
        assert_eq!(address.as_str(), "/trial/a%20b/%C3%A9%2F%25?q=x%26y%3Dz%20%2B1");
        let (path, query) = address.as_str().split_once('?').unwrap();
        let asked = Asked::read(path, Some(query)).unwrap();
        assert_eq!(asked.segments, ["trial", "a b", "é/%"]);
        assert_eq!(asked.get("q"), Some("x&y=z +1"));
        assert_eq!(asked.without("q").as_str(), path);
        assert_eq!(address.at("é\"").as_str(), "/trial/a%20b/%C3%A9%2F%25?q=x%26y%3Dz%20%2B1#%C3%A9%22");
        assert_eq!(Href::here("c-1").as_str(), "#c-1");
        assert_eq!(Asked::read("/", None).unwrap().segments, Vec::<String>::new());
    }

    #[test]
    fn what_is_no_text_or_no_name_is_nothing() {
        for path in ["", "x", "/%", "/%zz", "/%ff", "/%2"] {
            assert!(Asked::read(path, None).is_none(), "{path}");
        }
        for (experiment, stem) in
            [("..", "t"), ("e", ".."), ("e", "../x"), ("a/b", "t"), ("e", "_live"), ("", "t"), ("e", "a\0b")]
        {
            assert!(record_file(experiment, stem).is_none(), "{experiment} {stem}");
        }
        assert_eq!(record_file("e", "t.2").unwrap().id(), "e/t.2");
    }
}
