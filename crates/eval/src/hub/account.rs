//! The token and the address of the hub, read from where the hub's own programs put them.

use std::path::{Path, PathBuf};

use aec_base::file::{Links, ReadError, read_text};
use aec_base::secret::Secret;
use url::Url;

use super::error::HubError;

pub const DEFAULT_ENDPOINT: &str = "https://huggingface.co";

/// Longest token file that is read; a token has some forty characters.
const LONGEST_TOKEN_FILE: u64 = 16 * 1024;

/// A token and the hub that it is for.
#[derive(Clone, Debug)]
pub struct Account {
    pub(super) token: Secret,
    pub(super) origin: String,
    pub(super) endpoint: Url,
}

impl Account {
    /// Finds the token and the address. `variable` looks up an environment variable, `home` is the home directory.
    ///
    /// The token is the first of `HF_TOKEN`, `HUGGING_FACE_HUB_TOKEN`, the file `HF_TOKEN_PATH`, the file `token` in
    /// `HF_HOME`, and the same file in the cache directory of the user. The address is `HF_ENDPOINT`.
    pub fn load(home: &Path, variable: impl Fn(&str) -> Option<String>) -> Result<Self, HubError> {
        let set = |name: &str| {
            variable(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
        };
        let endpoint = set("HF_ENDPOINT").unwrap_or_else(|| DEFAULT_ENDPOINT.to_owned());
        let endpoint = checked_address("the hub", &endpoint)?;
        for name in ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"] {
            if let Some(token) = set(name) {
                return Self::checked(token, name.to_owned(), endpoint);
            }
        }
        let path = token_file(home, set);
        let origin = path.display().to_string();
        let token = match read_text(&path, LONGEST_TOKEN_FILE, Links::Follow) {
            Ok(text) => text.trim().to_owned(),
            Err(ReadError::Missing) => return Err(HubError::NoToken),
            Err(error) => return Err(HubError::BadToken { origin, reason: error.to_string() }),
        };
        if token.is_empty() {
            return Err(HubError::NoToken);
        }
        Self::checked(token, origin, endpoint)
    }

    pub fn origin(&self) -> &str {
        &self.origin
    }

    pub fn endpoint(&self) -> &Url {
        &self.endpoint
    }

    fn checked(token: String, origin: String, endpoint: Url) -> Result<Self, HubError> {
        if !token.chars().all(|c| c.is_ascii_graphic()) {
            let reason = "it has blanks or characters that no token has".to_owned();
            return Err(HubError::BadToken { origin, reason });
        }
        Ok(Self { token: Secret::new(token), origin, endpoint })
    }
}

fn token_file(home: &Path, set: impl Fn(&str) -> Option<String>) -> PathBuf {
    let expanded = |path: String| match path.strip_prefix("~/") {
        Some(rest) => home.join(rest),
        None => PathBuf::from(path),
    };
    if let Some(path) = set("HF_TOKEN_PATH") {
        return expanded(path);
    }
    if let Some(directory) = set("HF_HOME") {
        return expanded(directory).join("token");
    }
    let cache = set("XDG_CACHE_HOME").map_or_else(|| home.join(".cache"), expanded);
    cache.join("huggingface").join("token")
}

/// An address that may be called: HTTPS, or on this machine.
pub(super) fn checked_address(what: &'static str, text: &str) -> Result<Url, HubError> {
    aec_http::checked(text).map_err(|bad| HubError::Address {
        what,
        address: bad.address,
        reason: bad.reason.to_owned(),
    })
}
