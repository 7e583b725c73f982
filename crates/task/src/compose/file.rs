//! The file as users write it: Compose has two spellings for most keys.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::value::{Argv, Needs, Pairs, Pause, Ports, Published, Test, Text, Texts};

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ComposeFile {
    /// Present in older files; has no meaning.
    #[serde(rename = "version")]
    _version: Option<Text>,
    /// The name of the project; not used.
    #[serde(rename = "name")]
    _name: Option<Text>,
    pub(super) services: BTreeMap<String, ServiceFile>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ServiceFile {
    pub(super) image: Option<Text>,
    pub(super) build: Option<BuildFile>,
    pub(super) command: Option<Argv>,
    pub(super) entrypoint: Option<Argv>,
    pub(super) environment: Pairs,
    pub(super) working_dir: Option<Text>,
    pub(super) user: Option<Text>,
    pub(super) expose: Ports,
    pub(super) ports: Published,
    pub(super) depends_on: Needs,
    pub(super) healthcheck: HealthFile,
    pub(super) volumes: Texts,
}

impl ServiceFile {
    /// Keys that have a value, except `depends_on`, which every service may have.
    pub(super) fn said_keys(&self) -> Vec<&'static str> {
        let said = [
            ("image", self.image.is_some()),
            ("build", self.build.is_some()),
            ("command", self.command.is_some()),
            ("entrypoint", self.entrypoint.is_some()),
            ("environment", !self.environment.0.is_empty()),
            ("working_dir", self.working_dir.is_some()),
            ("user", self.user.is_some()),
            ("expose", !self.expose.0.is_empty()),
            ("ports", !self.ports.0.is_empty()),
            ("healthcheck", self.healthcheck != HealthFile::default()),
            ("volumes", !self.volumes.0.is_empty()),
        ];
        said.into_iter().filter(|(_, said)| *said).map(|(key, _)| key).collect()
    }
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct HealthFile {
    pub(super) test: Option<Test>,
    pub(super) interval: Option<Pause>,
    pub(super) timeout: Option<Pause>,
    pub(super) retries: Option<u32>,
    pub(super) start_period: Option<Pause>,
    pub(super) disable: bool,
}

/// `build: DIRECTORY`, or a table.
#[derive(Debug, Default)]
pub(super) struct BuildFile {
    pub(super) context: Text,
    pub(super) dockerfile: Option<Text>,
    pub(super) args: Pairs,
    pub(super) target: Option<Text>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BuildTable {
    #[serde(default)]
    context: Text,
    #[serde(default)]
    dockerfile: Option<Text>,
    #[serde(default)]
    args: Pairs,
    #[serde(default)]
    target: Option<Text>,
}

impl<'de> Deserialize<'de> for BuildFile {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = BuildFile;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a directory or a table")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<BuildFile, E> {
                Ok(BuildFile { context: Text::filled(text).map_err(E::custom)?, ..BuildFile::default() })
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<BuildFile, A::Error> {
                let table = BuildTable::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
                let BuildTable { context, dockerfile, args, target } = table;
                Ok(BuildFile { context, dockerfile, args, target })
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}
