//! The user file: per-user path defaults, five keys of JSON, nothing else.

use std::io;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::document::{Document, Family, Syntax};
use crate::file::write_atomic;
use crate::problem::Problem;
use crate::settings::{Candidate, Origin, SETTINGS, Setting, SettingPath};

/// Ids of the user file's problems begin with `U`.
pub const FAMILY: Family = Family('U');

/// `~/.config/aec-bench/config.json`: fallbacks for paths that a project does not set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UserFile {
    /// Task catalogue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks_root: Option<SettingPath>,
    /// Trial records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ledger_root: Option<SettingPath>,
    /// Reviews, annotations and evolution artefacts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feedback_root: Option<SettingPath>,
    /// Raw trial outputs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jobs_root: Option<SettingPath>,
    /// Dataset manifests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub datasets_root: Option<SettingPath>,
}

impl UserFile {
    fn slot(&mut self, setting: Setting) -> Option<&mut Option<SettingPath>> {
        match setting {
            Setting::Tasks => Some(&mut self.tasks_root),
            Setting::Ledger => Some(&mut self.ledger_root),
            Setting::Feedback => Some(&mut self.feedback_root),
            Setting::Jobs => Some(&mut self.jobs_root),
            Setting::Datasets => Some(&mut self.datasets_root),
            _ => None,
        }
    }
}

/// Why the user file was not changed.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    #[error("the value {0}")]
    Value(&'static str),
    #[error("{key} is not kept in the user file")]
    NotAUserSetting { key: &'static str },
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The file and its content; an absent file counts as an empty one.
#[derive(Debug)]
pub struct UserConfig {
    path: PathBuf,
    document: Option<Document>,
    content: UserFile,
}

impl UserConfig {
    pub fn read(path: &Path) -> Result<Self, Vec<Problem>> {
        // Only an absent file is an empty configuration; a directory or a broken link is a mistake.
        if !path.exists() && !path.is_symlink() {
            return Ok(Self { path: path.to_path_buf(), document: None, content: UserFile::default() });
        }
        let document = Document::read(path, Syntax::Json, FAMILY)?;
        let decoded = document.decode::<UserFile>();
        match decoded.value {
            Some(content) if decoded.problems.is_empty() => {
                Ok(Self { path: path.to_path_buf(), document: Some(document), content })
            }
            _ => Err(decoded.problems),
        }
    }

    pub fn candidates(&mut self) -> Vec<Candidate> {
        let Some(document) = &self.document else { return Vec::new() };
        SETTINGS
            .iter()
            .filter_map(|spec| {
                let key = spec.user_key?;
                let value = self.content.slot(spec.setting)?.as_ref()?.as_str().to_owned();
                Some(Candidate { setting: spec.setting, value, origin: Origin::User(document.place(key)) })
            })
            .collect()
    }

    /// Sets one path and rewrites the file atomically.
    pub fn set(&mut self, setting: Setting, value: &str) -> Result<(), EditError> {
        let value = SettingPath::try_from(value.to_owned()).map_err(EditError::Value)?;
        self.edit(setting, Some(value))
    }

    /// Removes one path and rewrites the file atomically.
    pub fn reset(&mut self, setting: Setting) -> Result<(), EditError> {
        self.edit(setting, None)
    }

    fn edit(&mut self, setting: Setting, value: Option<SettingPath>) -> Result<(), EditError> {
        let Some(slot) = self.content.slot(setting) else {
            return Err(EditError::NotAUserSetting { key: setting.spec().key });
        };
        *slot = value;
        let mut text = serde_json::to_string_pretty(&self.content).unwrap_or_default();
        text.push('\n');
        write_atomic(&self.path, text.as_bytes())?;
        Ok(())
    }
}
