//! Reviewers' annotations of records: appended to a file beside the ledger, never changed. The records do not change.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use aec_base::digest::Digest;
use aec_base::document::Shared;
use aec_base::file::{Links, ReadError, kind_of, open_regular};
use aec_base::jsonl::{self, Appender};
use aec_base::problem::Problem;
use aec_base::timestamp::Timestamp;
use rustix::fs::{FlockOperation, OFlags, flock};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::FAMILY;
use crate::layout::stem;
use crate::read::RecordFile;

pub const SCHEMA_VERSION: u32 = 1;

/// In bytes, for the annotations of one record.
const LIMIT: u64 = 16 * 1024 * 1024;

/// What a reviewer says about a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Annotation {
    /// Version of this format.
    pub schema_version: u32,
    /// The reviewer.
    pub reviewer_id: Option<String>,
    /// The reviewer's discipline.
    pub reviewer_discipline: Option<String>,
    /// When the reviewer wrote it.
    pub timestamp: Timestamp,
    /// The reviewer's judgment of the answer.
    pub judgment: Judgment,
    /// Kinds of mistakes, in the reviewer's words.
    pub categories: Vec<String>,
    /// Further remarks.
    pub notes: Option<String>,
    /// Digest of the annotated record.
    pub record: Digest,
}

/// A reviewer's judgment of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Judgment {
    /// The answer is right.
    Pass,
    /// The answer is wrong.
    Fail,
    /// Another reviewer should decide.
    Defer,
}

/// The annotations of all records.
#[derive(Clone, Debug)]
pub struct Annotations {
    root: PathBuf,
}

impl Judgment {
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Defer => "defer",
        }
    }
}

impl Annotations {
    /// The annotations in a project's feedback directory.
    pub fn new(feedback: &Path) -> Self {
        Self { root: feedback.join("annotations") }
    }

    /// The file with the annotations of a record.
    pub fn path(&self, file: &RecordFile) -> PathBuf {
        self.root.join(file.experiment.as_str()).join(format!("{}.jsonl", stem(&file.trial, file.attempt)))
    }

    /// Appends an annotation, durably.
    pub fn append(&self, file: &RecordFile, annotation: &Annotation) -> io::Result<()> {
        let path = self.path(file);
        let directory = path.parent().unwrap_or(&self.root);
        fs_err::create_dir_all(directory)?;
        let line = jsonl::line(annotation)?;
        let to = open_for_append(&path)?;
        flock(&to, FlockOperation::LockExclusive)?;
        if to.metadata()?.len() + line.len() as u64 > LIMIT {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("{}: too many annotations", path.display()),
            ));
        }
        let mut lines = Appender::of(to, &path)?;
        lines.append(&line)?;
        lines.sync()
    }

    /// The annotations of a record, oldest first, and a problem for each invalid line.
    pub fn read(&self, file: &RecordFile) -> (Vec<Annotation>, Vec<Problem>) {
        let path = self.path(file);
        let bytes = match read_bytes(&path) {
            Ok(bytes) => bytes,
            Err(ReadError::Missing) => return (Vec::new(), Vec::new()),
            Err(error) => {
                let problem = Problem::error(format!("the annotations cannot be read: {error}"));
                let problem = problem.id(FAMILY.id(Shared::Unreadable)).fix(error.fix());
                return (Vec::new(), vec![problem.in_file(path)]);
            }
        };
        let (mut found, mut problems) = (Vec::new(), Vec::new());
        for (line, number) in bytes.split(|byte| *byte == b'\n').zip(1..).filter(|(line, _)| !line.is_empty())
        {
            let what = match aec_base::json::from_slice::<Annotation>(line) {
                Ok(annotation) if annotation.schema_version == SCHEMA_VERSION => {
                    found.push(annotation);
                    continue;
                }
                Ok(other) => {
                    format!("has format {}, and this program knows {SCHEMA_VERSION}", other.schema_version)
                }
                Err(error) => format!("is not an annotation: {error}"),
            };
            let mut problem = Problem::warning(format!("line {number} {what}")).id(FAMILY.number(50));
            problem.line = Some(number);
            problems.push(
                problem.fix("the others are still read; remove the line if it means nothing").in_file(&path),
            );
        }
        (found, problems)
    }
}

fn open_for_append(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let mut options = File::options();
    options.read(true).append(true).create(true).custom_flags(flags.bits().cast_signed());
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    let file = options.open(path).map_err(named)?;
    let kind = file.metadata()?.file_type();
    if kind.is_file() {
        return Ok(file);
    }
    let what = format!("it is a {}, not a regular file", kind_of(kind));
    Err(named(io::Error::new(io::ErrorKind::InvalidInput, what)))
}

fn read_bytes(path: &Path) -> Result<Vec<u8>, ReadError> {
    let (file, _) = open_regular(path, LIMIT, Links::Refuse)?;
    let mut bytes = Vec::new();
    file.take(LIMIT).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use aec_base::name::Name;

    use super::*;

    fn file() -> RecordFile {
        RecordFile { experiment: Name::parse("exp").unwrap(), trial: Name::parse("t").unwrap(), attempt: 2 }
    }

    fn annotation(notes: &str) -> Annotation {
        Annotation {
            schema_version: SCHEMA_VERSION,
            reviewer_id: Some("ada".to_owned()),
            reviewer_discipline: None,
            timestamp: Timestamp::from_seconds(0),
            judgment: Judgment::Fail,
            categories: vec!["units".to_owned()],
            notes: Some(notes.to_owned()),
            record: Digest::of(b"record"),
        }
    }

    #[test]
    fn annotations_are_appended_and_read_back_in_order() {
        let directory = tempfile::tempdir().unwrap();
        let annotations = Annotations::new(directory.path());
        assert_eq!(annotations.read(&file()), (Vec::new(), Vec::new()));
        for notes in ["one", "two\nlines"] {
            annotations.append(&file(), &annotation(notes)).unwrap();
        }
        assert!(annotations.path(&file()).ends_with("annotations/exp/t.2.jsonl"));
        assert_eq!(annotations.read(&file()).0, [annotation("one"), annotation("two\nlines")]);
    }

    #[test]
    fn a_torn_line_costs_only_itself() {
        let directory = tempfile::tempdir().unwrap();
        let annotations = Annotations::new(directory.path());
        annotations.append(&file(), &annotation("one")).unwrap();
        let path = annotations.path(&file());
        let mut text = fs_err::read_to_string(&path).unwrap();
        let half = text[..40].to_owned();
        text.push_str(&text.replace("\"schema_version\":1", "\"schema_version\":2"));
        text.push_str(&half);
        fs_err::write(&path, text).unwrap();
        annotations.append(&file(), &annotation("two")).unwrap();
        let (found, problems) = annotations.read(&file());
        assert_eq!(found, [annotation("one"), annotation("two")]);
        let lines: Vec<_> = problems.iter().map(|problem| problem.line).collect();
        assert_eq!(lines, [Some(2), Some(3)]);
    }

    #[test]
    fn many_reviewers_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let annotations = Annotations::new(directory.path());
        std::thread::scope(|scope| {
            for reviewer in 0..8 {
                let annotations = &annotations;
                scope.spawn(move || annotations.append(&file(), &annotation(&reviewer.to_string())).unwrap());
            }
        });
        let (found, problems) = annotations.read(&file());
        assert_eq!((found.len(), problems), (8, Vec::new()));
    }

    #[test]
    fn links_and_pipes_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let annotations = Annotations::new(directory.path());
        let path = annotations.path(&file());
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        let target = directory.path().join("target");
        fs_err::write(&target, "").unwrap();
        std::os::unix::fs::symlink(&target, &path).unwrap();
        assert!(annotations.append(&file(), &annotation("x")).is_err());
        assert_eq!(annotations.read(&file()).1.len(), 1);
        fs_err::remove_file(&path).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        assert!(annotations.append(&file(), &annotation("x")).is_err());
        assert_eq!(annotations.read(&file()).1.len(), 1);
        assert_eq!(fs_err::read_to_string(&target).unwrap(), "");
    }
}
