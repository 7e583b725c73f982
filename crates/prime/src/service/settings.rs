//! The address of Prime and the user's account there, as Prime's own command line program stores them.
//!
//! `~/.prime/config.json` contains the account, `~/.prime/environments/<name>.json` named contexts, and variables
//! override both. Files are only read. Their keys belong to another program, so unknown ones are ignored.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

/// Default address of the API.
pub const DEFAULT_BASE_URL: &str = "https://api.primeintellect.ai";
/// Default address of the web pages.
pub const DEFAULT_FRONTEND_URL: &str = "https://app.primeintellect.ai";
/// Default address of the models.
pub const DEFAULT_INFERENCE_URL: &str = "https://api.pinference.ai/api/v1";

/// Longest settings file that is read; real ones have a few hundred bytes.
const LONGEST_FILE: u64 = 1024 * 1024;

/// The context that has no file.
const PRODUCTION: &str = "production";

#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("cannot read {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{} is longer than {LONGEST_FILE} bytes; it is not a settings file of Prime", path.display())]
    TooLong { path: PathBuf },
    #[error("{}: line {line}, column {column}: not valid JSON; run `prime login` to write it again", path.display())]
    NotJson { path: PathBuf, line: usize, column: usize },
    #[error("{}: expected a JSON object; run `prime login` to write it again", path.display())]
    NotObject { path: PathBuf },
    #[error("{}: `{name}` must be a string", path.display())]
    NotString { path: PathBuf, name: &'static str },
    #[error("{name:?} is not a context name: only letters, digits, `_` and `-` are allowed")]
    ContextName { name: String },
    #[error("there is no context `{name}`: {} does not exist; `prime config envs` lists the saved ones", path.display())]
    NoContext { name: String, path: PathBuf },
    #[error("the API key from {origin} has characters that no key has; copy it again or run `prime login`")]
    BadKey { origin: String },
}

/// An API key. Only the header that carries it can read it.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The key itself, for a header.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ApiKey(…)")
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub api_key: Option<ApiKey>,
    /// The team that pays and owns; absent for the personal account.
    pub team_id: Option<String>,
    pub user_id: Option<String>,
    /// Root of the API, without `/api/v1`.
    pub base_url: String,
    /// Root of the web pages.
    pub frontend_url: String,
    /// Root of the model API, with its `/v1`.
    pub inference_url: String,
    pub context: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            api_key: None,
            team_id: None,
            user_id: None,
            base_url: DEFAULT_BASE_URL.to_owned(),
            frontend_url: DEFAULT_FRONTEND_URL.to_owned(),
            inference_url: DEFAULT_INFERENCE_URL.to_owned(),
            context: PRODUCTION.to_owned(),
        }
    }
}

impl Settings {
    /// Reads the settings below a home directory. `variable` looks up an environment variable.
    pub fn load(home: &Path, variable: impl Fn(&str) -> Option<String>) -> Result<Self, SettingsError> {
        let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let directory = home.join(".prime");
        let mut settings = Self::default();
        let mut key_origin = directory.join("config.json").display().to_string();
        if let Some(file) = SettingsFile::read(directory.join("config.json"))? {
            settings.take(&file, None)?;
        }
        if let Some(name) = set("PRIME_CONTEXT")
            && let Some(path) = settings.enter_context(&directory, &name)?
        {
            key_origin = path.display().to_string();
        }
        if let Some(key) = set("PRIME_API_KEY") {
            settings.api_key = Some(ApiKey::new(key.trim()));
            "PRIME_API_KEY".clone_into(&mut key_origin);
        }
        if let Some(team) = set("PRIME_TEAM_ID") {
            settings.team_id = Some(team.trim().to_owned());
        }
        if let Some(user) = set("PRIME_USER_ID") {
            settings.user_id = Some(user.trim().to_owned());
        }
        if let Some(url) = set("PRIME_API_BASE_URL").or_else(|| set("PRIME_BASE_URL")) {
            settings.base_url = without_version(&url);
        }
        if let Some(url) = set("PRIME_FRONTEND_URL") {
            settings.frontend_url = without_slash(&url);
        }
        if let Some(url) = set("PRIME_INFERENCE_URL") {
            settings.inference_url = without_slash(&url);
        }
        if settings.api_key.as_ref().is_some_and(|key| !key.reveal().chars().all(|c| c.is_ascii_graphic())) {
            return Err(SettingsError::BadKey { origin: key_origin });
        }
        Ok(settings)
    }

    /// Web page of an evaluation.
    pub fn evaluation_page(&self, id: &str) -> String {
        format!("{}/dashboard/evaluations/{id}", self.frontend_url)
    }

    /// Web page of a training run.
    pub fn training_page(&self, id: &str) -> String {
        format!("{}/dashboard/training/{id}", self.frontend_url)
    }

    /// Web page of an environment.
    pub fn environment_page(&self, owner: &str, name: &str) -> String {
        format!("{}/dashboard/environments/{owner}/{name}", self.frontend_url)
    }

    /// Switches to a named context and returns the file that it came from.
    fn enter_context(&mut self, directory: &Path, name: &str) -> Result<Option<PathBuf>, SettingsError> {
        if name.eq_ignore_ascii_case(PRODUCTION) {
            // The built-in context is the personal account at the default addresses, with the stored key.
            *self = Self { api_key: self.api_key.take(), user_id: self.user_id.take(), ..Self::default() };
            return Ok(None);
        }
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if !name.chars().all(allowed) {
            return Err(SettingsError::ContextName { name: name.to_owned() });
        }
        let path = directory.join("environments").join(format!("{name}.json"));
        let Some(file) = SettingsFile::read(path.clone())? else {
            return Err(SettingsError::NoContext { name: name.to_owned(), path });
        };
        let key = self.api_key.take();
        *self = Self::default();
        self.take(&file, key)?;
        name.clone_into(&mut self.context);
        Ok(Some(path))
    }

    /// Takes over the values of a file. A context without a key keeps the stored one.
    fn take(&mut self, file: &SettingsFile, stored_key: Option<ApiKey>) -> Result<(), SettingsError> {
        self.api_key = file.text("api_key")?.map(ApiKey::new).or(stored_key);
        self.team_id = file.text("team_id")?;
        self.user_id = file.text("user_id")?;
        if let Some(url) = file.text("base_url")? {
            self.base_url = without_version(&url);
        }
        if let Some(url) = file.text("frontend_url")? {
            self.frontend_url = without_slash(&url);
        }
        if let Some(url) = file.text("inference_url")? {
            self.inference_url = without_slash(&url);
        }
        if let Some(context) = file.text("current_environment")? {
            self.context = context;
        }
        Ok(())
    }
}

struct SettingsFile {
    path: PathBuf,
    values: Map<String, Value>,
}

impl SettingsFile {
    fn read(path: PathBuf) -> Result<Option<Self>, SettingsError> {
        let unreadable = |source| SettingsError::Unreadable { path: path.clone(), source };
        let length = match std::fs::metadata(&path) {
            Ok(metadata) => metadata.len(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unreadable(error)),
        };
        if length > LONGEST_FILE {
            return Err(SettingsError::TooLong { path });
        }
        let text = std::fs::read(&path).map_err(unreadable)?;
        // The parser's message is not passed on: it may quote the file, and the file contains a key.
        let value: Value = aec_base::json::from_slice(&text).map_err(|error| SettingsError::NotJson {
            path: path.clone(),
            line: error.line(),
            column: error.column(),
        })?;
        match value {
            Value::Object(values) => Ok(Some(Self { path, values })),
            _ => Err(SettingsError::NotObject { path }),
        }
    }

    /// A string; empty means absent.
    fn text(&self, name: &'static str) -> Result<Option<String>, SettingsError> {
        match self.values.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if text.trim().is_empty() => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.trim().to_owned())),
            Some(_) => Err(SettingsError::NotString { path: self.path.clone(), name }),
        }
    }
}

fn without_slash(url: &str) -> String {
    url.trim().trim_end_matches('/').to_owned()
}

fn without_version(url: &str) -> String {
    let url = without_slash(url);
    match url.strip_suffix("/api/v1") {
        Some(root) => root.to_owned(),
        None => url,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(files: &[(&str, &str)]) -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = home.path().join(".prime").join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        home
    }

    fn load(files: &[(&str, &str)], variables: &[(&str, &str)]) -> Result<Settings, SettingsError> {
        let home = home(files);
        Settings::load(home.path(), |name| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    const CONFIG: (&str, &str) = (
        "config.json",
        r#"{"api_key": "pit_file", "team_id": "team-file", "user_id": null, "base_url": "https://prime.test/api/v1/",
            "current_environment": "production", "traces_opt_out": true}"#,
    );

    #[test]
    fn nothing_gives_defaults_without_a_key() {
        let settings = load(&[], &[]).unwrap();
        assert_eq!(settings, Settings::default());
        assert!(settings.api_key.is_none());
    }

    #[test]
    fn variables_win_over_the_file_and_the_version_is_stripped() {
        let settings = load(&[CONFIG], &[]).unwrap();
        assert_eq!(settings.base_url, "https://prime.test");
        assert_eq!(settings.team_id.as_deref(), Some("team-file"));
        assert_eq!(settings.api_key.unwrap().reveal(), "pit_file");
        let variables = [
            ("PRIME_API_KEY", "pit_env"),
            ("PRIME_TEAM_ID", "  "),
            ("PRIME_BASE_URL", "http://second/api/v1"),
            ("PRIME_API_BASE_URL", "http://first/api/v1/"),
            ("PRIME_INFERENCE_URL", "http://models/v1/"),
            ("PRIME_FRONTEND_URL", "http://pages/"),
            ("PRIME_USER_ID", "u9"),
        ];
        let settings = load(&[CONFIG], &variables).unwrap();
        assert_eq!(settings.api_key.as_ref().unwrap().reveal(), "pit_env");
        assert_eq!(settings.team_id.as_deref(), Some("team-file"), "a blank variable is not set");
        assert_eq!(settings.base_url, "http://first");
        assert_eq!(settings.inference_url, "http://models/v1");
        assert_eq!(settings.evaluation_page("e1"), "http://pages/dashboard/evaluations/e1");
        assert_eq!(settings.user_id.as_deref(), Some("u9"));
    }

    #[test]
    fn a_context_replaces_the_account_but_keeps_the_key_if_it_has_none() {
        let context =
            ("environments/staging.json", r#"{"team_id": "t2", "base_url": "https://staging.test"}"#);
        let settings = load(&[CONFIG, context], &[("PRIME_CONTEXT", "staging")]).unwrap();
        assert_eq!(settings.context, "staging");
        assert_eq!(settings.team_id.as_deref(), Some("t2"));
        assert_eq!(settings.base_url, "https://staging.test");
        assert_eq!(settings.inference_url, DEFAULT_INFERENCE_URL);
        assert_eq!(settings.api_key.unwrap().reveal(), "pit_file");
        let settings = load(&[CONFIG], &[("PRIME_CONTEXT", "Production")]).unwrap();
        assert_eq!((settings.base_url.as_str(), settings.team_id), (DEFAULT_BASE_URL, None));
        assert_eq!(settings.api_key.unwrap().reveal(), "pit_file");
    }

    #[test]
    fn bad_contexts_are_named() {
        for name in ["../config", "a/b", "a.b", "a b"] {
            let error = load(&[CONFIG], &[("PRIME_CONTEXT", name)]).unwrap_err();
            assert!(matches!(error, SettingsError::ContextName { .. }), "{name}: {error}");
        }
        let error = load(&[CONFIG], &[("PRIME_CONTEXT", "gone")]).unwrap_err().to_string();
        assert!(error.contains("no context `gone`") && error.contains("gone.json"), "{error}");
    }

    #[test]
    fn bad_files_are_named_and_never_quoted() {
        let cases = [
            ("", "line 1"),
            ("{\"api_key\": \"pit_secret\"", "not valid JSON"),
            ("[\"pit_secret\"]", "expected a JSON object"),
            ("{\"api_key\": [\"pit_secret\"]}", "`api_key` must be a string"),
            ("{\"api_key\": \"pit_secret\\nX: y\"}", "characters that no key has"),
            ("{\"api_key\": \"pit_secretä\"}", "characters that no key has"),
            ("\u{0}\u{1}pit_secret", "not valid JSON"),
        ];
        for (text, expected) in cases {
            let error = load(&[("config.json", text)], &[]).unwrap_err();
            let shown = format!("{error} {error:?}");
            assert!(shown.contains(expected) && shown.contains("config.json"), "{text}: {shown}");
            assert!(!shown.contains("secret"), "{shown}");
        }
    }

    #[test]
    fn a_directory_and_a_huge_file_are_refused() {
        let home = home(&[("config.json/inside", "x")]);
        let error = Settings::load(home.path(), |_| None).unwrap_err();
        assert!(matches!(error, SettingsError::Unreadable { .. }), "{error}");
        let long = format!("{{\"api_key\": \"{}\"}}", "a".repeat(2 * 1024 * 1024));
        let error = load(&[("config.json", &long)], &[]).unwrap_err();
        assert!(matches!(error, SettingsError::TooLong { .. }), "{error}");
    }

    #[test]
    fn the_key_is_not_shown() {
        let settings = load(&[CONFIG], &[]).unwrap();
        assert!(!format!("{settings:?}").contains("pit_file"));
    }
}
