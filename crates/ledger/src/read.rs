//! Reads records that may be malformed: bounded, without following links, and with names checked against the content.
//! A bad file is one problem; the others are still read.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use aec_base::digest::Digest;
use aec_base::document::Shared;
use aec_base::file::{Links, ReadError, open_regular};
use aec_base::name::Name;
use aec_base::problem::Problem;
use serde::Deserialize;

use crate::FAMILY;
use crate::layout::{Ledger, parse_record_name, stem};
use crate::record::{SCHEMA_VERSION, TrialRecord};

/// Bytes.
pub const RECORD_LIMIT: u64 = 64 * 1024 * 1024;

/// The file of one attempt, whether it can be read or not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordFile {
    /// The experiment in whose directory it is.
    pub experiment: Name,
    /// The trial in its name.
    pub trial: Name,
    /// The attempt in its name.
    pub attempt: u32,
}

#[derive(Clone, Debug)]
pub struct Stored {
    pub record: TrialRecord,
    pub digest: Digest,
    pub size: u64,
    /// Whether the record says something else than its file, because its reward came with a package.
    pub is_weighed: bool,
}

/// A record file that is not a record.
#[derive(Clone, Debug)]
pub struct Broken {
    pub problem: Problem,
    /// Digest of the file, if it can be read.
    pub digest: Option<Digest>,
    /// Whether its content is damaged, as opposed to unreadable, newer than this program or in the wrong place.
    pub damaged: bool,
}

/// The record files of one experiment, and files with similar names that cannot be records.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// The files, sorted by trial and attempt.
    pub files: Vec<RecordFile>,
    /// Names that end like a record's but denote no trial.
    pub strangers: Vec<String>,
}

impl RecordFile {
    pub fn file_name(&self) -> String {
        format!("{}.json", stem(&self.trial, self.attempt))
    }

    pub fn path(&self, ledger: &Ledger) -> PathBuf {
        ledger.experiment(&self.experiment).record(&self.trial, self.attempt)
    }

    /// `EXPERIMENT/TRIAL`, with the attempt from the second on: the id that commands accept.
    pub fn id(&self) -> String {
        format!("{}/{}", self.experiment, stem(&self.trial, self.attempt))
    }

    pub fn read(&self, ledger: &Ledger) -> Result<Stored, Box<Broken>> {
        let path = self.path(ledger);
        let bytes = read_bytes(&path)?;
        self.parse(ledger, &path, &bytes)
    }

    /// Parses the record from the bytes of its file. A reward of a package that does not count here is set aside.
    pub fn parse(&self, ledger: &Ledger, path: &Path, bytes: &[u8]) -> Result<Stored, Box<Broken>> {
        let digest = Digest::of(bytes);
        let broken = |problem: Problem, damaged| {
            Box::new(Broken { problem: problem.in_file(path), digest: Some(digest), damaged })
        };
        let mut record: TrialRecord = match aec_base::json::from_slice(bytes) {
            Ok(record) => record,
            Err(error) => return Err(not_a_record(path, bytes, digest, &error)),
        };
        if record.schema_version != SCHEMA_VERSION {
            return Err(broken(other_version(record.schema_version), false));
        }
        if (&record.trial_id, record.attempt) != (&self.trial, self.attempt) {
            let what = format!(
                "the file is named for attempt {} at `{}`, and its record is attempt {} at `{}`",
                self.attempt, self.trial, record.attempt, record.trial_id
            );
            let problem = Problem::error(what).id(FAMILY.number(22));
            return Err(broken(problem.fix("put the file back under its own name"), false));
        }
        if record.experiment_id != self.experiment {
            let what = format!(
                "the record is in experiment `{}` but belongs to `{}`",
                self.experiment, record.experiment_id
            );
            let problem = Problem::error(what).id(FAMILY.number(23));
            return Err(broken(problem.fix("put the file back into its own experiment"), false));
        }
        let weighed = ledger.weigh(&mut record);
        let is_weighed = weighed.map_err(|problem| {
            Box::new(Broken { problem: *problem, digest: Some(digest), damaged: false })
        })?;
        Ok(Stored { record, digest, size: bytes.len() as u64, is_weighed })
    }
}

/// The bytes of a record's file.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>, Box<Broken>> {
    let unreadable = |error: ReadError| {
        let damaged = !matches!(error, ReadError::Io(_) | ReadError::Missing);
        let problem = Problem::error(format!("the record cannot be read: {error}"))
            .id(FAMILY.id(Shared::Unreadable))
            .fix(error.fix())
            .in_file(path);
        Box::new(Broken { problem, digest: None, damaged })
    };
    let (file, metadata) = open_regular(path, RECORD_LIMIT, Links::Refuse).map_err(unreadable)?;
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0) + 1);
    // The file may grow while it is read.
    file.take(RECORD_LIMIT + 1).read_to_end(&mut bytes).map_err(|error| unreadable(error.into()))?;
    if bytes.len() as u64 > RECORD_LIMIT {
        return Err(unreadable(ReadError::TooLarge { size: bytes.len() as u64, limit: RECORD_LIMIT }));
    }
    Ok(bytes)
}

/// The problem of bytes that are not a record of this version. A later version may have other fields, so the version
/// is checked first.
fn not_a_record(path: &Path, bytes: &[u8], digest: Digest, error: &serde_json::Error) -> Box<Broken> {
    #[derive(Deserialize)]
    struct Version {
        schema_version: u32,
    }
    let version = aec_base::json::from_slice::<Version>(bytes).map(|found| found.schema_version);
    let (problem, damaged) = match version {
        Ok(version) if version != SCHEMA_VERSION => (other_version(version), false),
        _ if error.is_data() => {
            let problem = Problem::error(format!("the file is not a record: {error}")).id(FAMILY.number(20));
            (problem.fix("compare with a copy of the ledger, or run `aec-bench ledger repair`"), true)
        }
        _ => {
            let problem = Problem::error(format!("the record is not valid JSON: {error}"));
            let problem = problem.id(FAMILY.id(Shared::Syntax));
            (problem.fix("compare with a copy of the ledger, or run `aec-bench ledger repair`"), true)
        }
    };
    Box::new(Broken { problem: problem.in_file(path), digest: Some(digest), damaged })
}

fn other_version(version: u32) -> Problem {
    let what = format!("the record has format {version}, and this program knows format {SCHEMA_VERSION}");
    Problem::error(what)
        .id(FAMILY.number(21))
        .fix("use the version of aec-bench that wrote it, or a later one")
}

/// The problem of a name that ends like a record's but denotes no trial.
pub(crate) fn stranger(path: &Path) -> Problem {
    Problem::error("the file's name does not denote a trial")
        .id(FAMILY.number(24))
        .why("a record is named TRIAL.json or TRIAL.2.json, in letters, digits, `.`, `_` and `-`")
        .fix("put it elsewhere, or back under its own name")
        .in_file(path)
}

impl Ledger {
    /// Lists the record files of an experiment by their names, without opening them.
    pub fn list(&self, experiment: &Name) -> io::Result<Listing> {
        let mut listing = Listing::default();
        for entry in fs_err::read_dir(self.experiment(experiment).path())? {
            let name = entry?.file_name();
            let name = name.to_string_lossy();
            if name.starts_with(['_', '.']) || !name.ends_with(".json") {
                continue;
            }
            match parse_record_name(&name) {
                Some((trial, attempt)) => {
                    listing.files.push(RecordFile { experiment: experiment.clone(), trial, attempt });
                }
                None => listing.strangers.push(name.into_owned()),
            }
        }
        listing.files.sort_unstable();
        listing.strangers.sort_unstable();
        Ok(listing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    fn name(text: &str) -> Name {
        Name::parse(text).unwrap()
    }

    fn read(ledger: &Ledger, trial: &str, attempt: u32) -> Result<Stored, Box<Broken>> {
        RecordFile { experiment: name("exp"), trial: name(trial), attempt }.read(ledger)
    }

    fn id(read: Result<Stored, Box<Broken>>) -> (String, bool) {
        let broken = read.unwrap_err();
        (broken.problem.id.clone().unwrap(), broken.damaged)
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let directory = tempfile::tempdir().unwrap();
        let ledger = Ledger::new(directory.path());
        let record = example::record("exp", "t1", 2);
        let text = record.to_json().unwrap();
        // Unknown keys are ignored, because later versions may add some.
        let more = text.replacen('{', "{\"later\": {\"x\": 1},", 1);
        example::write(&ledger, &record);
        let stored = read(&ledger, "t1", 2).unwrap();
        assert_eq!(
            (&stored.record, stored.digest, stored.size),
            (&record, Digest::of(text.as_bytes()), text.len() as u64)
        );
        fs_err::write(ledger.experiment(&name("exp")).record(&name("t1"), 2), more).unwrap();
        assert_eq!(read(&ledger, "t1", 2).unwrap().record, record);
    }

    #[test]
    fn what_is_no_record_is_a_problem_of_its_own_kind() {
        let directory = tempfile::tempdir().unwrap();
        let ledger = Ledger::new(directory.path());
        let good = example::record("exp", "t", 1).to_json().unwrap();
        let place = |stem: &str| ledger.experiment(&name("exp")).path().join(format!("{stem}.json"));
        fs_err::create_dir_all(place("x").parent().unwrap()).unwrap();
        let mut deep = "[".repeat(100_000);
        deep.push_str(&"]".repeat(100_000));
        let cases: [(&str, Vec<u8>, &str, bool); 9] = [
            ("empty", Vec::new(), "L002", true),
            ("torn", good.as_bytes()[..good.len() / 2].to_vec(), "L002", true),
            ("binary", vec![0, 159, 146, 150], "L002", true),
            ("deep", deep.into_bytes(), "L020", true),
            ("types", good.replace("\"attempt\": 1", "\"attempt\": \"one\"").into_bytes(), "L020", true),
            ("twice", good.replacen('{', "{\"attempt\": 1,", 1).into_bytes(), "L020", true),
            ("newer", b"{\"schema_version\": 7, \"reward\": {}}".to_vec(), "L021", false),
            ("other", good.clone().into_bytes(), "L022", false),
            (
                "t",
                good.replace("\"experiment_id\": \"exp\"", "\"experiment_id\": \"old\"").into_bytes(),
                "L023",
                false,
            ),
        ];
        for (stem, bytes, expected, damaged) in cases {
            fs_err::write(place(stem), bytes).unwrap();
            assert_eq!(id(read(&ledger, stem, 1)), (expected.to_owned(), damaged), "{stem}");
        }
        std::os::unix::fs::symlink(place("t"), place("link")).unwrap();
        fs_err::create_dir(place("directory")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, place("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0)
            .unwrap();
        fs_err::File::create(place("huge")).unwrap().set_len(RECORD_LIMIT + 1).unwrap();
        for stem in ["link", "directory", "pipe", "huge"] {
            assert_eq!(id(read(&ledger, stem, 1)), ("L001".to_owned(), true), "{stem}");
        }
        assert_eq!(id(read(&ledger, "missing", 1)), ("L001".to_owned(), false));
    }

    #[test]
    fn names_are_listed_in_the_order_of_trials_and_attempts() {
        let directory = tempfile::tempdir().unwrap();
        let ledger = Ledger::new(directory.path());
        let place = ledger.experiment(&name("exp"));
        fs_err::create_dir_all(place.run()).unwrap();
        for file in
            ["b.json", "a.10.json", "a.2.json", "a.json", "x y.json", "_x.json", ".new-1.json", "notes.txt"]
        {
            fs_err::write(place.path().join(file), "").unwrap();
        }
        let listing = ledger.list(&name("exp")).unwrap();
        let names: Vec<String> = listing.files.iter().map(RecordFile::file_name).collect();
        assert_eq!(names, ["a.json", "a.2.json", "a.10.json", "b.json"]);
        assert_eq!(listing.strangers, ["x y.json"]);
        assert!(ledger.list(&name("none")).is_err());
    }
}
