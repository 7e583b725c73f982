//! Reads a package that may be malicious. The manifest determines the next member; any other is refused, and at the
//! end the manifest is derived again from the members and must be the same.

use std::collections::{BTreeSet, VecDeque};
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use aec_base::archive::paths::PathSet;
use aec_base::archive::{self, ArchiveError, Content, CopyError, Limits, Member};
use aec_base::digest::{Digest, Reading};
use aec_base::file::{Links, open_regular};
use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_base::text::printable;

use super::import::Claim;
use super::manifest::{
    Attempt, File as NamedFile, MANIFEST_FILE, Manifest, RunFile, SIGNATURE_FILE, annotation_member,
    content_member, record_member, run_member,
};
use super::signature::{PublicKey, Signature};
use super::tally::{Facts, Tally, read_record};
use super::{PackageError, RECORD_LIMIT, SCHEMA_VERSION, finding};
use crate::chain::CHAIN_LIMIT;
use crate::record::TrialRecord;

/// The length of a manifest of a million attempts with a million contents, in bytes.
const MANIFEST_LIMIT: u64 = 512 * 1024 * 1024;
const SIGNATURE_LIMIT: u64 = 4096;
const FIX: &str = "get the package again from where it came from; nothing of it was used";

/// A package that was read completely and matches its manifest.
#[derive(Debug)]
pub(super) struct Unpacked {
    pub(super) manifest: Manifest,
    pub(super) key: Option<PublicKey>,
    /// Digest of the package's file.
    pub(super) package: Digest,
    /// The rewards in its records.
    pub(super) claims: Vec<Claim>,
}

/// The directories of unpacked files.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places<'a>(pub(super) &'a Path);

impl Places<'_> {
    /// The future directory of the experiment.
    pub(super) fn experiment(self) -> PathBuf {
        self.0.join("experiment")
    }

    pub(super) fn record(self, stem: &str) -> PathBuf {
        self.experiment().join(format!("{stem}.json"))
    }

    pub(super) fn run(self, name: &str) -> PathBuf {
        self.experiment().join("_run").join(name)
    }

    pub(super) fn content(self, digest: Digest) -> PathBuf {
        let hex = digest.hex();
        self.0.join("contents").join(&hex[..2]).join(hex)
    }

    pub(super) fn annotation(self, name: &str) -> PathBuf {
        self.0.join("annotations").join(name)
    }
}

/// Reads a package of at most `max_size` bytes unpacked. Without `places`, it only verifies.
pub(super) fn unpack(
    package: &Path,
    max_size: u64,
    places: Option<Places<'_>>,
) -> Result<Unpacked, PackageError> {
    let (file, _) = open_regular(package, max_size, Links::Follow).map_err(|error| {
        finding(80, format!("cannot read the package: {error}")).fix(error.fix()).in_file(package)
    })?;
    let limits = Limits { total: max_size, file: max_size };
    let mut unpacker = Unpacker { package, places, open: None, signature: None };
    let read =
        archive::unpack(Reading::new(file), limits, |member, content| unpacker.member(&member, content));
    let read = read.map_err(|stop| match stop {
        Stop::Archive(error) => unpacker.unreadable(&error).into(),
        Stop::Package(error) => error,
    })?;
    let claims = unpacker.open.as_mut().map(|open| std::mem::take(&mut open.claims)).unwrap_or_default();
    let (manifest, key) = unpacker.finish()?;
    Ok(Unpacked { manifest, key, package: read.finish(), claims })
}

/// Why reading stopped.
enum Stop {
    Archive(ArchiveError),
    Package(PackageError),
}

impl From<ArchiveError> for Stop {
    fn from(error: ArchiveError) -> Self {
        Self::Archive(error)
    }
}

impl<E: Into<PackageError>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Package(error.into())
    }
}

/// The next member, and what it must be.
struct Expected {
    kind: Kind,
    digest: Digest,
    size: u64,
}

enum Kind {
    Record { stem: String },
    Run { name: String },
    Content,
    Annotation { name: String },
}

impl Expected {
    fn member(&self) -> String {
        match &self.kind {
            Kind::Record { stem } => record_member(stem),
            Kind::Run { name } => run_member(name),
            Kind::Content => content_member(self.digest),
            Kind::Annotation { name } => annotation_member(name),
        }
    }

    fn place(&self, places: Places<'_>) -> PathBuf {
        match &self.kind {
            Kind::Record { stem } => places.record(stem),
            Kind::Run { name } => places.run(name),
            Kind::Content => places.content(self.digest),
            Kind::Annotation { name } => places.annotation(name),
        }
    }
}

/// The part of a manifest that exists in all versions of the format.
#[derive(serde::Deserialize)]
struct Version {
    schema_version: u32,
}

/// The manifest, and what was derived from the members so far.
struct Open {
    manifest: Manifest,
    digest: Digest,
    expected: VecDeque<Expected>,
    tally: Tally,
    claims: Vec<Claim>,
}

struct Unpacker<'a> {
    package: &'a Path,
    places: Option<Places<'a>>,
    /// `None` before the first member.
    open: Option<Open>,
    signature: Option<Signature>,
}

impl Unpacker<'_> {
    fn wrong(&self, number: u32, what: impl Into<String>) -> Problem {
        finding(number, what).fix(FIX).in_file(self.package)
    }

    fn unreadable(&self, error: &ArchiveError) -> Problem {
        match error {
            ArchiveError::Broken(error) => self.wrong(80, format!("this is not a whole package: {error}")),
            ArchiveError::Form(what) => self.wrong(80, what),
            ArchiveError::TooLarge(what) => {
                self.wrong(81, what).fix("pass a larger --max-size if you trust the package")
            }
            ArchiveError::NotAFile(what) => self.wrong(82, what),
            ArchiveError::BadName(what) => self.wrong(83, what),
        }
    }

    fn member(&mut self, member: &Member, content: &mut Content<'_>) -> Result<(), Stop> {
        let shown = printable(&member.name).into_owned();
        if member.is_directory || member.executable {
            return Err(self.wrong(82, format!("`{shown}` is not a plain file")).into());
        }
        let Some(mut open) = self.open.take() else {
            self.open = Some(self.manifest(member, content)?);
            return Ok(());
        };
        let next = open.expected.pop_front();
        match next {
            Some(next) if next.member() == member.name => self.file(&mut open, &next, member, content)?,
            Some(next) => {
                let what = format!("`{}` should come next in the package, and `{shown}` does", next.member());
                return Err(self.wrong(85, what).into());
            }
            None if member.name == SIGNATURE_FILE && self.signature.is_none() => {
                self.signature = Some(self.signature(member, content)?);
            }
            None => {
                let what = format!("`{shown}` is not listed in the package's manifest");
                return Err(self.wrong(85, what).into());
            }
        }
        self.open = Some(open);
        Ok(())
    }

    /// Reads the first member, which determines the others.
    fn manifest(&self, member: &Member, content: &mut Content<'_>) -> Result<Open, Stop> {
        let wrong = |what: String| Stop::from(self.wrong(84, what));
        if member.name != MANIFEST_FILE {
            return Err(wrong(format!("the package does not begin with {MANIFEST_FILE}")));
        }
        if member.size > MANIFEST_LIMIT {
            return Err(self.wrong(81, format!("its {MANIFEST_FILE} is {} bytes long", member.size)).into());
        }
        let bytes = content.bytes()?;
        let version: Version = aec_base::json::from_slice(&bytes)
            .map_err(|error| wrong(format!("its {MANIFEST_FILE} cannot be read: {error}")))?;
        if version.schema_version != SCHEMA_VERSION {
            let what = format!("the package has the format {}", version.schema_version);
            return Err(self
                .wrong(84, what)
                .why(format!("this program knows the format {SCHEMA_VERSION}"))
                .fix("use the program that wrote it, or a later one")
                .into());
        }
        let manifest: Manifest = aec_base::json::from_slice_within(&bytes, aec_base::json::Limits::TYPED)
            .map_err(|error| wrong(format!("its {MANIFEST_FILE} cannot be read: {error}")))?;
        // A manifest must have exactly one representation, so that its digest identifies its content.
        if manifest.to_json().ok().map(String::into_bytes).as_ref() != Some(&bytes) {
            return Err(wrong(format!("its {MANIFEST_FILE} is not written as this program writes it")));
        }
        let expected = self.expected(&manifest)?;
        let mut tally = Tally::new(&manifest.experiment_id);
        for withheld in &manifest.withheld {
            tally.withhold(withheld.clone());
        }
        Ok(Open { digest: Digest::of(&bytes), expected, tally, manifest, claims: Vec::new() })
    }

    /// Every member that must follow, in order.
    fn expected(&self, manifest: &Manifest) -> Result<VecDeque<Expected>, Problem> {
        let mut names = PathSet::default();
        let mut expected = VecDeque::new();
        let of = |file: &NamedFile, kind: Kind| Expected { kind, digest: file.digest, size: file.size };
        let records = manifest.attempts.iter().map(|attempt| Expected {
            kind: Kind::Record { stem: attempt.stem() },
            digest: attempt.record,
            size: attempt.size,
        });
        let run = manifest.run.iter().map(|file| of(file, Kind::Run { name: file.name.clone() }));
        let contents = manifest.contents.iter().map(|content| Expected {
            kind: Kind::Content,
            digest: content.digest,
            size: content.size,
        });
        let annotations =
            manifest.annotations.iter().map(|file| of(file, Kind::Annotation { name: file.name.clone() }));
        let stems: BTreeSet<String> = manifest.attempts.iter().map(Attempt::stem).collect();
        for withheld in &manifest.withheld {
            self.name(&mut names, &record_member(&withheld.stem()))?;
        }
        for next in records.chain(run).chain(contents).chain(annotations) {
            let known = match &next.kind {
                Kind::Run { name } => RunFile::of(name).is_some(),
                Kind::Annotation { name } => {
                    name.strip_suffix(".jsonl").is_some_and(|stem| stems.contains(stem))
                }
                Kind::Record { .. } | Kind::Content => true,
            };
            if !known {
                let what = format!("`{}` is not part of a package", printable(&next.member()));
                return Err(self.wrong(83, what));
            }
            self.name(&mut names, &next.member())?;
            expected.push_back(next);
        }
        Ok(expected)
    }

    fn name(&self, names: &mut PathSet, name: &str) -> Result<(), Problem> {
        let added = archive::paths::check(name).and_then(|()| names.add_file(name));
        added.map_err(|error| self.wrong(83, format!("`{}` cannot be unpacked: {error}", printable(name))))
    }

    fn file(
        &self,
        open: &mut Open,
        next: &Expected,
        member: &Member,
        content: &mut Content<'_>,
    ) -> Result<(), Stop> {
        if member.size != next.size {
            let what = format!("`{}` is {} bytes long, not {}", member.name, member.size, next.size);
            return Err(self.wrong(86, what).into());
        }
        let mut place = self.places.map(|places| create(&next.place(places))).transpose()?;
        let digest = match &next.kind {
            Kind::Record { stem } => {
                let bytes = self.in_memory(member, content, RECORD_LIMIT)?;
                self.record(open, next, stem, &bytes)?;
                write_all(place.as_mut(), &bytes)?
            }
            Kind::Run { name } => match RunFile::of(name) {
                Some(RunFile::Chain(session)) => {
                    let bytes = self.in_memory(member, content, CHAIN_LIMIT)?;
                    self.chain(open, &session, member, &bytes)?;
                    write_all(place.as_mut(), &bytes)?
                }
                _ => copy(content, place.as_mut())?,
            },
            Kind::Content | Kind::Annotation { .. } => copy(content, place.as_mut())?,
        };
        if digest != next.digest {
            let what = format!("`{}` is not what its digest says", member.name);
            return Err(self.wrong(86, what).into());
        }
        if let Kind::Run { name } = &next.kind {
            open.tally.run_file(NamedFile { name: name.clone(), digest, size: member.size });
        }
        Ok(())
    }

    fn in_memory(&self, member: &Member, content: &mut Content<'_>, limit: u64) -> Result<Vec<u8>, Stop> {
        if member.size > limit {
            let what = format!("`{}` is {} bytes long, more than {limit}", member.name, member.size);
            return Err(self.wrong(81, what).into());
        }
        Ok(content.bytes()?)
    }

    fn record(&self, open: &mut Open, next: &Expected, stem: &str, bytes: &[u8]) -> Result<(), Problem> {
        let digest = Digest::of(bytes);
        if digest != next.digest {
            let what = format!("the record of `{stem}` is not what its digest says");
            return Err(self.wrong(86, what).about(stem));
        }
        let (facts, claim) = read_record(bytes, &open.manifest.experiment_id, stem)
            .and_then(|record| Ok((Facts::of(&record, digest, bytes.len() as u64)?, claim(&record, stem))))
            .map_err(|why| {
                let what = format!("the record of `{stem}` cannot be used: {}", printable(&why));
                self.wrong(87, what).about(stem)
            })?;
        open.claims.extend(claim);
        open.tally.record(facts);
        Ok(())
    }

    fn chain(&self, open: &mut Open, session: &Name, member: &Member, bytes: &[u8]) -> Result<(), Problem> {
        let text = std::str::from_utf8(bytes)
            .map_err(|_| self.wrong(89, format!("`{}` is not UTF-8 text", member.name)))?;
        open.tally.chain(session, &self.package.join(&member.name), text);
        Ok(())
    }

    fn signature(&self, member: &Member, content: &mut Content<'_>) -> Result<Signature, Stop> {
        let wrong = |what: String| Stop::from(self.wrong(90, what));
        if member.size > SIGNATURE_LIMIT {
            return Err(wrong(format!("its {SIGNATURE_FILE} is {} bytes long", member.size)));
        }
        let bytes = content.bytes()?;
        let signature: Signature = aec_base::json::from_slice(&bytes)
            .map_err(|error| wrong(format!("its {SIGNATURE_FILE} cannot be read: {error}")))?;
        if signature.schema_version != SCHEMA_VERSION {
            return Err(wrong(format!("its signature has the format {}", signature.schema_version)));
        }
        if signature.to_json().ok().map(String::into_bytes) != Some(bytes) {
            return Err(wrong(format!("its {SIGNATURE_FILE} is not written as this program writes it")));
        }
        Ok(signature)
    }

    /// Checks all members together.
    fn finish(mut self) -> Result<(Manifest, Option<PublicKey>), PackageError> {
        let Some(Open { manifest, digest, mut expected, tally, .. }) = self.open.take() else {
            return Err(self.wrong(84, "the package is empty").into());
        };
        if let Some(next) = expected.pop_front() {
            return Err(self.wrong(85, format!("`{}` is missing in the package", next.member())).into());
        }
        let mut made =
            tally.finish(&manifest.tool_version, FIX, self.package).map_err(PackageError::Problems)?;
        made.annotations.clone_from(&manifest.annotations);
        if let Some(what) = difference(&manifest, &made) {
            return Err(self
                .wrong(88, format!("its {MANIFEST_FILE} does not fit its members: {what}"))
                .into());
        }
        let key = match &self.signature {
            None => None,
            Some(signature) => Some(signature.check(digest).ok_or_else(|| {
                self.wrong(90, "the signature of the package is not valid")
                    .why("the package was changed after it was signed, or by someone without the key")
            })?),
        };
        Ok((manifest, key))
    }
}

/// The first statement of a manifest that its members contradict.
fn difference(said: &Manifest, made: &Manifest) -> Option<&'static str> {
    let checks = [
        (said.attempts == made.attempts, "the list of attempts is another one"),
        (said.withheld == made.withheld, "the list of withheld attempts is not in order"),
        (said.contents == made.contents, "the contents are not those that the records refer to"),
        (said.run == made.run, "the files of the runs are not in order"),
        (said.plans == made.plans, "the plans are other ones"),
        (said.chains == made.chains, "the heads of the chains are other ones"),
        (said.counts == made.counts, "the counts are other ones"),
        (said.root == made.root, "the root is another one"),
        (said.annotations.is_sorted_by(|a, b| a.name < b.name), "the annotations are not in order"),
        (said == made, "it differs"),
    ];
    checks.into_iter().find(|(same, _)| !same).map(|(_, what)| what)
}

/// The reward of a record, if it has one that would count: an agent's fault counts as 0.
fn claim(record: &TrialRecord, stem: &str) -> Option<Claim> {
    record.outcome.is_counted().then(|| Claim {
        stem: stem.to_owned(),
        task_id: record.task.task_id.clone(),
        task_revision: record.task.task_revision,
        was_trusted: record.evaluation.as_ref().is_some_and(|evaluation| evaluation.trusted),
    })
}

fn create(place: &Path) -> Result<File, PackageError> {
    if let Some(parent) = place.parent() {
        fs_err::create_dir_all(parent)?;
    }
    Ok(OpenOptions::new().write(true).create_new(true).open(place)?)
}

fn write_all(place: Option<&mut File>, bytes: &[u8]) -> Result<Digest, PackageError> {
    if let Some(file) = place {
        file.write_all(bytes)?;
    }
    Ok(Digest::of(bytes))
}

fn copy(content: &mut Content<'_>, mut place: Option<&mut File>) -> Result<Digest, Stop> {
    let copied = content.copy(|piece| place.as_mut().map_or(Ok(()), |file| file.write_all(piece)));
    copied.map_err(|error| match error {
        CopyError::Archive(error) => Stop::Archive(error),
        CopyError::Write(error) => error.into(),
    })
}
