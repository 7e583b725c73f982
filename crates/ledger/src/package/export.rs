//! Writes a package.

use std::io::{self, Read, Write};
use std::path::Path;

use aec_base::archive::Writer;
use aec_base::digest::Digest;
use aec_base::file::{Links, open_regular};
use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_base::secret::{Redactor, Search};

use super::manifest::{
    MANIFEST_FILE, Manifest, SIGNATURE_FILE, annotation_member, content_member, record_member, run_member,
};
use super::signature::PrivateKey;
use super::survey::survey;
use super::{PackageError, finding, refuse};
use crate::layout::Ledger;

pub struct Source<'a> {
    pub ledger: &'a Ledger,
    pub experiment: &'a Name,
    /// Trials to withhold: ids or unique beginnings of ids.
    pub withhold: &'a [String],
    /// The experiment's directory of annotations, if they are included.
    pub annotations: Option<&'a Path>,
    /// Secret values that must not leave this machine.
    pub redactor: &'a Redactor,
    pub key: Option<&'a PrivateKey>,
    pub tool_version: &'a str,
}

/// Writes a package and returns its manifest. A file that changes after the survey is an error. Contents pass through
/// memory in pieces.
pub fn export(source: &Source<'_>, to: impl Write) -> Result<Manifest, PackageError> {
    let manifest = survey(source)?;
    let text = manifest.to_json().map_err(io::Error::other)?;
    let mut packer = Packer { writer: Writer::new(to)?, redactor: source.redactor, problems: Vec::new() };
    packer.writer.append(MANIFEST_FILE, false, text.len() as u64, text.as_bytes())?;
    let directory = source.ledger.experiment(source.experiment);
    for attempt in &manifest.attempts {
        let path = directory.record(&attempt.trial_id, attempt.attempt);
        packer.add(&record_member(&attempt.stem()), &path, attempt.record, attempt.size)?;
    }
    for file in &manifest.run {
        packer.add(&run_member(&file.name), &directory.run().join(&file.name), file.digest, file.size)?;
    }
    let contents = source.ledger.contents();
    for content in &manifest.contents {
        let path = contents.path(content.digest);
        packer.add(&content_member(content.digest), &path, content.digest, content.size)?;
    }
    if let Some(annotations) = source.annotations {
        for file in &manifest.annotations {
            let path = annotations.join(&file.name);
            packer.add(&annotation_member(&file.name), &path, file.digest, file.size)?;
        }
    }
    refuse(packer.problems)?;
    let mut writer = packer.writer;
    if let Some(key) = source.key {
        let text = key.sign(Digest::of(text.as_bytes())).to_json().map_err(io::Error::other)?;
        writer.append(SIGNATURE_FILE, false, text.len() as u64, text.as_bytes())?;
    }
    writer.finish()?;
    Ok(manifest)
}

struct Packer<'a, W: Write> {
    writer: Writer<W>,
    redactor: &'a Redactor,
    /// Secrets found on the way; with any, the package is discarded.
    problems: Vec<Problem>,
}

impl<W: Write> Packer<'_, W> {
    fn add(&mut self, name: &str, path: &Path, digest: Digest, size: u64) -> Result<(), PackageError> {
        let (file, _) = open_regular(path, u64::MAX, Links::Refuse).map_err(|error| {
            finding(102, format!("`{name}` cannot be read: {error}")).fix("export again").in_file(path)
        })?;
        let mut searched = Searched { from: file.take(size), search: self.redactor.search() };
        let written = match self.writer.append(name, false, size, &mut searched) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => None,
            written => Some(written?),
        };
        if written != Some(digest) {
            // The archive cannot be completed.
            let what = format!("`{name}` is not what it was when it was recorded");
            return Err(finding(102, what)
                .why("it was changed, now or since the run")
                .fix("export again; if that does not help, see `aec-bench ledger verify`")
                .in_file(path)
                .into());
        }
        if searched.search.found() {
            let what = format!("`{name}` holds the value of a secret of this environment");
            self.problems.push(
                finding(98, what)
                    .why("anyone who gets the package could use it")
                    .fix("withhold the trial with --withhold, and replace the secret where it is used")
                    .in_file(path),
            );
        }
        Ok(())
    }
}

/// Searches everything read through it for secrets.
struct Searched<'a, R> {
    from: R,
    search: Search<'a>,
}

impl<R: Read> Read for Searched<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(buffer)?;
        self.search.feed(&buffer[..count]);
        Ok(count)
    }
}
