//! `NAME` and `NAME@VERSION`: how people and experiments name datasets.

use std::fmt;

use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_base::text;
use semver::Version;

use super::finding;

/// A dataset by name, with or without a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatasetRef {
    pub name: Name,
    /// The highest version if absent.
    pub version: Option<Version>,
}

impl DatasetRef {
    /// Reads `NAME` or `NAME@VERSION`.
    pub fn parse(reference: &str) -> Result<Self, Problem> {
        let (name, version) = match reference.split_once('@') {
            Some((name, version)) => (name, Some(version)),
            None => (reference, None),
        };
        let wrong = |why: String| {
            finding(17, format!("`{}` is not a dataset reference", text::printable(reference)))
                .why(why)
                .fix("write NAME or NAME@VERSION, such as electrical-v1@1.0.0")
        };
        let name = Name::parse(name).map_err(|error| wrong(format!("the name {error}")))?;
        let version = version.map(parse_version).transpose().map_err(wrong)?;
        Ok(Self { name, version })
    }
}

/// Parses a version; the error is a clause for a message.
pub fn parse_version(text: &str) -> Result<Version, String> {
    let version =
        Version::parse(text).map_err(|error| format!("the version is not MAJOR.MINOR.PATCH: {error}"))?;
    // Versions that differ only in their build part have the same precedence, so none would be the highest.
    if !version.build.is_empty() {
        return Err("a dataset version has no build metadata after a `+`".to_owned());
    }
    if text.len() > aec_base::name::MAX_NAME {
        return Err(format!("the version has more than {} characters", aec_base::name::MAX_NAME));
    }
    Ok(version)
}

impl fmt::Display for DatasetRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.version {
            Some(version) => write!(f, "{}@{version}", self.name),
            None => write!(f, "{}", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references() {
        let parsed = DatasetRef::parse("electrical-v1@1.0.0").unwrap();
        assert_eq!((parsed.name.as_str(), parsed.version), ("electrical-v1", Some(Version::new(1, 0, 0))));
        assert_eq!(DatasetRef::parse("electrical-v1").unwrap().version, None);
        assert_eq!(DatasetRef::parse("a@1.0.0-rc.1").unwrap().to_string(), "a@1.0.0-rc.1");
        for bad in ["", "@1.0.0", "a@", "a@1", "a@latest", "../x@1.0.0", "a/b", "a@1.0.0@2", "a@1.0.0+b"] {
            assert!(DatasetRef::parse(bad).is_err(), "{bad}");
        }
    }
}
