//! Secrets for runs on other machines: `KEY=VALUE`, `KEY` from the environment, or a file of such lines.

use std::path::{Path, PathBuf};

use indexmap::IndexMap;

/// Why secrets cannot be used. Values are never shown.
#[derive(Debug, thiserror::Error)]
pub enum SecretsError {
    #[error(
        "{place}: {name:?} is not the name of a variable: use letters, digits and `_`, not beginning with a digit"
    )]
    Name { place: String, name: String },
    #[error("{place}: the variable {name} is not set; set it, or write {name}=VALUE")]
    Unset { place: String, name: String },
    #[error("{}:{line}: expected KEY=VALUE", path.display())]
    Line { path: PathBuf, line: usize },
    #[error("cannot read {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
}

/// Secrets by name. `Debug` shows names only.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets(IndexMap<String, String>);

impl std::fmt::Debug for Secrets {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_set().entries(self.0.keys()).finish()
    }
}

impl Secrets {
    /// Collects secrets: files first, then arguments (`KEY=VALUE`, `KEY` or a file); later ones override earlier ones.
    pub fn collect(
        files: &[PathBuf],
        arguments: &[String],
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, SecretsError> {
        let mut secrets = Self::default();
        for path in files {
            secrets.add_file(path, &variable)?;
        }
        for argument in arguments {
            secrets.add_argument(argument, &variable)?;
        }
        Ok(secrets)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    fn add_argument(
        &mut self,
        argument: &str,
        variable: &impl Fn(&str) -> Option<String>,
    ) -> Result<(), SecretsError> {
        if Path::new(argument).is_file() {
            return self.add_file(Path::new(argument), variable);
        }
        let place = "--env-var".to_owned();
        let (name, value) = match argument.split_once('=') {
            Some((name, value)) => (checked(name, &place)?, unquoted(value.trim()).0.to_owned()),
            None => {
                let name = checked(argument, &place)?;
                let unset = || SecretsError::Unset { place, name: name.clone() };
                let value = variable(&name).ok_or_else(unset)?;
                (name, value)
            }
        };
        self.0.insert(name, value);
        Ok(())
    }

    fn add_file(
        &mut self,
        path: &Path,
        variable: &impl Fn(&str) -> Option<String>,
    ) -> Result<(), SecretsError> {
        let unreadable = |source| SecretsError::Unreadable { path: path.to_owned(), source };
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let Some((name, value)) = line.split_once('=') else {
                return Err(SecretsError::Line { path: path.to_owned(), line: index + 1 });
            };
            let place = format!("{}:{}", path.display(), index + 1);
            let name = checked(name, &place)?;
            let value = match unquoted(value.trim()) {
                (value, Quotes::Single) => value.to_owned(),
                (value, _) => expanded(value, &place, variable)?,
            };
            self.0.insert(name, value);
        }
        Ok(())
    }
}

#[derive(PartialEq, Eq)]
enum Quotes {
    None,
    Single,
    Double,
}

fn unquoted(value: &str) -> (&str, Quotes) {
    for (quote, kind) in [('\'', Quotes::Single), ('"', Quotes::Double)] {
        if let Some(inner) = value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)) {
            return (inner, kind);
        }
    }
    (value, Quotes::None)
}

fn checked(name: &str, place: &str) -> Result<String, SecretsError> {
    let name = name.trim();
    if is_name(name) {
        return Ok(name.to_owned());
    }
    // A value that was taken for a name may be a secret.
    let shown = name.chars().take(8).collect();
    Err(SecretsError::Name { place: place.to_owned(), name: shown })
}

fn is_name(name: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && name.chars().all(word)
}

/// Replaces `${NAME}` by variables.
fn expanded(
    value: &str,
    place: &str,
    variable: &impl Fn(&str) -> Option<String>,
) -> Result<String, SecretsError> {
    let mut text = String::new();
    let mut rest = value;
    while let Some((before, after)) = rest.split_once("${") {
        text.push_str(before);
        match after.split_once('}') {
            Some((name, tail)) if is_name(name) => {
                let unset = || SecretsError::Unset { place: place.to_owned(), name: name.to_owned() };
                text.push_str(&variable(name).ok_or_else(unset)?);
                rest = tail;
            }
            _ => {
                text.push_str("${");
                rest = after;
            }
        }
    }
    text.push_str(rest);
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_are_read_and_later_ones_win() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("secrets.env");
        std::fs::write(&file, "# note\n\nA=1\nB = \"${HOME_KEY}/x\"\nC='${HOME_KEY}'\nD=${ not\n").unwrap();
        let variable = |name: &str| (name == "HOME_KEY").then(|| "from-env".to_owned());
        let arguments = ["A=2", "HOME_KEY", "E=\"q=r\""].map(str::to_owned);
        let secrets = Secrets::collect(std::slice::from_ref(&file), &arguments, variable).unwrap();
        let all: Vec<_> = secrets.iter().collect();
        let expected = [
            ("A", "2"),
            ("B", "from-env/x"),
            ("C", "${HOME_KEY}"),
            ("D", "${ not"),
            ("HOME_KEY", "from-env"),
            ("E", "q=r"),
        ];
        assert_eq!(all, expected);
        let by_argument = Secrets::collect(&[], &[file.display().to_string()], variable).unwrap();
        assert_eq!(by_argument.get("A"), Some("1"));
        assert!(!format!("{secrets:?}").contains("from-env"));
    }

    #[test]
    fn mistakes_are_named_without_values() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("secrets.env");
        for (text, expected) in
            [("oops", ":1: expected KEY=VALUE"), ("\n1A=x", "not the name"), ("A=${NO}", "NO is not set")]
        {
            std::fs::write(&file, text).unwrap();
            let error = Secrets::collect(std::slice::from_ref(&file), &[], |_| None).unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains("secrets.env"), "{error}");
        }
        let error = Secrets::collect(&[], &["sk-verysecretvalue".to_owned()], |_| None).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("secretvalue"), "{error}");
        let error = Secrets::collect(&[], &["ABSENT".to_owned()], |_| None).unwrap_err();
        assert!(matches!(error, SecretsError::Unset { .. }), "{error}");
        let missing = directory.path().join("gone.env");
        assert!(Secrets::collect(&[missing], &[], |_| None).is_err());
    }
}
