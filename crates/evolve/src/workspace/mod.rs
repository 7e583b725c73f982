//! A workspace: a directory with `manifest.yaml`, `prompts/system.md` and `skills/`, versioned with git.
//!
//! Every candidate is a commit with its own reference, named by the digest of its files, and its parents are the
//! commits of the candidates that it was made from: the history of the repository is the lineage. A run leaves nothing
//! else in the workspace, so a candidate contains only what an agent sees.

pub mod candidate;
pub mod diff;
pub mod git;
pub mod manifest;
pub mod skill;
mod tree;

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use aec_base::digest::Digest;
use aec_base::file::write_atomic;
use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_base::text;
use aec_run::experiment::Harness;
use serde::Serialize;

use self::candidate::{Candidate, Files};
use self::git::{Git, GitProgram, IDENTITY};
use self::manifest::{MANIFEST_FILE, Manifest};
use crate::FAMILY;

const CANDIDATES: &str = "refs/aec-bench/candidates/";
/// The branch whose candidate the working tree shows.
const MAIN: &str = "refs/heads/main";
/// Names the candidate that is being written to the working tree.
const TARGET_FILE: &str = "aec-bench-target";
/// Locked by the process that changes the workspace.
const LOCK_FILE: &str = "aec-bench-lock";
/// Between the fields of git's output.
const SEPARATOR: char = '\u{1f}';
/// After each record of git's output.
const END: char = '\u{1e}';
/// Precedes the time at which a candidate was made, in milliseconds: git itself stores seconds, and many are made in
/// one second.
const MADE: &str = "Made: ";

const FIRST_PROMPT: &str = "You are an experienced engineer. Solve the task carefully: read everything that is given, keep track of units, show the governing equations to yourself before you use them, check the result for plausibility, and hand in the answer in exactly the form that is asked for.\n";

#[derive(Debug)]
pub struct Workspace {
    path: PathBuf,
    git: Git,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Version {
    pub candidate: Digest,
    pub name: Name,
    pub revision: String,
    pub parents: Vec<Digest>,
    pub labels: Vec<String>,
    /// In seconds since 1970.
    pub committed_at: u64,
    /// In milliseconds since 1970.
    #[serde(skip)]
    made_at: u64,
    /// Its changes, in one line.
    pub summary: String,
}

/// The lock of a workspace, held by the process that changes it.
#[derive(Debug)]
pub struct Held {
    lock: File,
}

impl Drop for Held {
    fn drop(&mut self) {
        // Closing the file is not enough: a process that is just being started has it open for a moment, too.
        self.lock.unlock().ok();
    }
}

impl Workspace {
    /// Creates a new workspace. The path must not exist yet.
    pub fn init(
        program: GitProgram,
        path: &Path,
        name: &Name,
        harness: Harness,
    ) -> Result<Self, Vec<Problem>> {
        if path.join(MANIFEST_FILE).symlink_metadata().is_ok() {
            let problem = Problem::error("there is a workspace already").id(FAMILY.number(10));
            return Err(vec![problem.fix("choose another directory").in_file(path)]);
        }
        if tree::read(path).map_err(|error| broken(path, &error))?.iter().next().is_some() {
            let problem = Problem::error("the directory is not empty").id(FAMILY.number(10));
            return Err(vec![problem.fix("choose another directory").in_file(path)]);
        }
        let files: Files = [
            (MANIFEST_FILE.to_owned(), Manifest::new_text(name, harness).into_bytes()),
            (candidate::PROMPT_FILE.to_owned(), FIRST_PROMPT.as_bytes().to_vec()),
        ]
        .into();
        let workspace = Self { git: Git::new(program, path), path: path.to_owned() };
        let candidate = Candidate::read(files, path)?;
        let made = fs_err::create_dir_all(path.join("skills"))
            .and_then(|()| tree::write(path, &Files::new(), &candidate.files))
            .and_then(|()| workspace.git.init(path))
            .and_then(|()| workspace.keep(&candidate, &[], "the beginning"))
            .and_then(|_| workspace.show(&candidate));
        made.map_err(|error| broken(path, &error))?;
        Ok(workspace)
    }

    /// Opens a workspace. One that is not versioned yet has no history; the first change versions it.
    pub fn open(program: GitProgram, path: &Path) -> Result<Self, Vec<Problem>> {
        if !path.join(MANIFEST_FILE).is_file() {
            let problem = Problem::error("this is not a workspace").id(FAMILY.number(11));
            let why = format!("there is no {MANIFEST_FILE}");
            let fix = "make one with `aec-bench evolve init`";
            return Err(vec![problem.why(why).fix(fix).in_file(path)]);
        }
        Ok(Self { git: Git::new(program, path), path: path.to_owned() })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps other processes from changing it. First finishes an interrupted write of the working tree.
    pub fn hold(&self) -> Result<Held, Vec<Problem>> {
        if !self.is_versioned() {
            self.git.init(&self.path).map_err(|error| broken(&self.path, &error))?;
        }
        let open = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(self.git.directory().join(LOCK_FILE));
        let lock = open.map_err(|error| broken(&self.path, &error))?;
        if lock.try_lock().is_err() {
            let problem = Problem::error("the workspace is in use").id(FAMILY.number(12));
            let why = "an evolution, a swarm or a rollback is changing it";
            return Err(vec![problem.why(why).fix("wait for it, or stop it").in_file(&self.path)]);
        }
        self.finish_show().map_err(|error| broken(&self.path, &error))?;
        Ok(Held { lock })
    }

    /// The candidate in the working tree.
    pub fn here(&self) -> Result<Candidate, Vec<Problem>> {
        let files = tree::read(&self.path).map_err(|error| broken(&self.path, &error))?;
        Candidate::read(files, &self.path)
    }

    /// The candidate in the working tree, stored if it is new: files edited by hand are a candidate like any other.
    pub fn keep_here(&self) -> Result<Candidate, Vec<Problem>> {
        let here = self.here()?;
        let kept = self.revision(here.id).and_then(|known| match known {
            Some(_) => Ok(()),
            None => {
                let before: Vec<Digest> = self.main()?.into_iter().collect();
                self.keep(&here, &before, "changed by hand").map(drop)
            }
        });
        kept.and_then(|()| self.point_main(here.id)).map_err(|error| broken(&self.path, &error))?;
        Ok(here)
    }

    /// Stores a candidate with its lineage. A known one stays as it was first stored.
    pub fn keep(&self, candidate: &Candidate, parents: &[Digest], summary: &str) -> io::Result<String> {
        if let Some(revision) = self.revision(candidate.id)? {
            return Ok(revision);
        }
        let reference = format!("{CANDIDATES}{}", candidate.id.hex());
        let mut stream = Vec::new();
        let (name, email) = IDENTITY;
        let made = aec_base::timestamp::Timestamp::now_in_milliseconds().to_milliseconds();
        let now = made / 1000;
        let summary = text::printable(summary).replace('\n', " ");
        let message =
            format!("{}: {summary}\n\nCandidate: {}\n{MADE}{made}\n", candidate.name(), candidate.id);
        stream.extend_from_slice(format!("commit {reference}\n").as_bytes());
        for who in ["author", "committer"] {
            stream.extend_from_slice(format!("{who} {name} <{email}> {now} +0000\n").as_bytes());
        }
        data(&mut stream, message.as_bytes());
        for (at, parent) in parents.iter().enumerate() {
            let word = if at == 0 { "from" } else { "merge" };
            let revision = self.revision(*parent)?.ok_or_else(|| {
                io::Error::other(format!("the parent {} is not stored here", candidate::name(*parent)))
            })?;
            stream.extend_from_slice(format!("{word} {revision}\n").as_bytes());
        }
        stream.extend_from_slice(b"deleteall\n");
        for (path, content) in &candidate.files {
            stream.extend_from_slice(format!("M 100644 inline {}\n", quoted(path)).as_bytes());
            data(&mut stream, content);
        }
        stream.extend_from_slice(b"done\n");
        self.git.tell(["fast-import", "--quiet", "--done", "--date-format=raw"], &stream)?;
        self.revision(candidate.id)?.ok_or_else(|| io::Error::other("git did not keep the candidate"))
    }

    pub fn load(&self, id: Digest) -> Result<Candidate, Vec<Problem>> {
        let unknown = || {
            let problem = Problem::error(format!("the candidate {} is not stored here", candidate::name(id)));
            vec![problem.id(FAMILY.number(13)).fix("see `aec-bench evolve history`").in_file(&self.path)]
        };
        let revision = self.revision(id).map_err(|error| broken(&self.path, &error))?.ok_or_else(unknown)?;
        let files = self.files_of(&revision).map_err(|error| broken(&self.path, &error))?;
        let candidate = Candidate::read(files, &self.path)?;
        if candidate.id == id {
            return Ok(candidate);
        }
        let what = format!("the candidate {} has changed since it was stored", candidate::name(id));
        let problem = Problem::error(what).id(FAMILY.number(14));
        Err(vec![problem.fix("restore the repository of the workspace from a copy").in_file(&self.path)])
    }

    /// Every stored candidate, oldest first, parents before children.
    pub fn history(&self) -> Result<Vec<Version>, Vec<Problem>> {
        let versions = self.versions().map_err(|error| broken(&self.path, &error))?;
        Ok(in_order(versions))
    }

    /// Finds a candidate by its name, a prefix of its digits or a label.
    pub fn find(&self, word: &str) -> Result<Digest, Vec<Problem>> {
        let versions = self.versions().map_err(|error| broken(&self.path, &error))?;
        let labelled = versions.iter().find(|version| version.labels.iter().any(|label| label == word));
        if let Some(version) = labelled {
            return Ok(version.candidate);
        }
        let digits = word.strip_prefix("sha256:").or_else(|| word.strip_prefix("c-")).unwrap_or(word);
        let fitting: Vec<&Version> = versions
            .iter()
            .filter(|version| digits.len() >= 4 && version.candidate.hex().starts_with(digits))
            .collect();
        if let [only] = fitting.as_slice() {
            return Ok(only.candidate);
        }
        let what =
            if fitting.is_empty() { "is neither a candidate nor a label" } else { "fits several candidates" };
        let problem = Problem::error(format!("`{}` {what} of this workspace", text::printable(word)));
        Err(vec![problem.id(FAMILY.number(13)).fix("see `aec-bench evolve history`").in_file(&self.path)])
    }

    /// Puts a label on a candidate. A label never moves to another one.
    pub fn label(&self, label: &Name, id: Digest) -> io::Result<()> {
        let Some(revision) = self.revision(id)? else {
            return Err(io::Error::other("a label needs a stored candidate"));
        };
        let reference = format!("refs/tags/{label}");
        match self.resolve(&reference)? {
            Some(found) if found == revision => Ok(()),
            Some(_) => Err(io::Error::other(format!("the label {label} is on another candidate"))),
            // All zeros mean: only if it does not exist yet.
            None => {
                let none = "0".repeat(revision.len());
                self.git.ask(["update-ref", &reference, &revision, &none]).map(drop)
            }
        }
    }

    pub fn has_label(&self, label: &str) -> io::Result<bool> {
        Ok(self.resolve(&format!("refs/tags/{label}"))?.is_some())
    }

    /// Shows a candidate in the working tree: exactly its files. The current files must be stored.
    pub fn show(&self, candidate: &Candidate) -> io::Result<()> {
        write_atomic(&self.git.directory().join(TARGET_FILE), candidate.id.hex().as_bytes())?;
        let before = tree::read(&self.path)?;
        tree::write(&self.path, &before, &candidate.files)?;
        self.point_main(candidate.id)?;
        fs_err::remove_file(self.git.directory().join(TARGET_FILE))
    }

    /// Creates a separate working tree, without files.
    pub fn add_tree(&self, path: &Path) -> io::Result<()> {
        if path.join(".git").is_file() {
            return Ok(());
        }
        let place = path.to_string_lossy();
        let head = self.resolve(MAIN)?.ok_or_else(|| io::Error::other("no candidate is stored yet"))?;
        self.git.ask(["worktree", "prune"])?;
        self.git.ask(["worktree", "add", "-q", "--detach", "--no-checkout", "-f", &place, &head]).map(drop)
    }

    /// Shows a candidate in a separate working tree.
    pub fn show_in(&self, path: &Path, candidate: &Candidate) -> io::Result<()> {
        let Some(revision) = self.revision(candidate.id)? else {
            return Err(io::Error::other("only a stored candidate can be shown"));
        };
        let before = tree::read(path)?;
        tree::write(path, &before, &candidate.files)?;
        self.git.ask_in(path, ["update-ref", "--no-deref", "HEAD", &revision])?;
        self.git.ask_in(path, ["read-tree", &revision]).map(drop)
    }

    /// Removes working trees whose directories are gone.
    pub fn prune_trees(&self) -> io::Result<()> {
        self.git.ask(["worktree", "prune"]).map(drop)
    }

    fn finish_show(&self) -> io::Result<()> {
        let Ok(hex) = fs_err::read_to_string(self.git.directory().join(TARGET_FILE)) else { return Ok(()) };
        let Ok(id) = format!("sha256:{}", hex.trim()).parse::<Digest>() else { return Ok(()) };
        match self.load(id) {
            Ok(candidate) => self.show(&candidate),
            Err(problems) => Err(io::Error::other(
                problems.first().map(|problem| problem.what.clone()).unwrap_or_default(),
            )),
        }
    }

    fn point_main(&self, id: Digest) -> io::Result<()> {
        let Some(revision) = self.revision(id)? else {
            return Err(io::Error::other("only a stored candidate can be shown"));
        };
        if self.resolve(MAIN)?.as_deref() != Some(&revision) {
            self.git.ask(["update-ref", MAIN, &revision])?;
        }
        self.git.ask(["read-tree", &revision]).map(drop)
    }

    fn main(&self) -> io::Result<Option<Digest>> {
        let Some(head) = self.resolve(MAIN)? else { return Ok(None) };
        let versions = self.versions()?;
        Ok(versions.into_iter().find(|version| version.revision == head).map(|version| version.candidate))
    }

    fn revision(&self, id: Digest) -> io::Result<Option<String>> {
        self.resolve(&format!("{CANDIDATES}{}", id.hex()))
    }

    /// Loose references are files, and reading a file is a hundred times faster than calling git.
    fn resolve(&self, reference: &str) -> io::Result<Option<String>> {
        match fs_err::read_to_string(self.git.directory().join(reference)) {
            Ok(revision) => return Ok(Some(revision.trim().to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        if !self.git.directory().join("packed-refs").is_file() {
            return Ok(None);
        }
        let answer = self.git.ask(["for-each-ref", "--format=%(objectname)", reference])?;
        let revision = String::from_utf8_lossy(&answer).trim().to_owned();
        Ok((!revision.is_empty()).then_some(revision))
    }

    fn files_of(&self, revision: &str) -> io::Result<Files> {
        let listed = self.git.ask(["ls-tree", "-r", "-z", revision])?;
        let mut blobs = Vec::new();
        for line in listed.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
            let line = String::from_utf8_lossy(line);
            let (facts, path) = line
                .split_once('\t')
                .ok_or_else(|| io::Error::other("git listed a tree in an unexpected format"))?;
            let blob = facts.split(' ').nth(2).unwrap_or_default();
            blobs.push((blob.to_owned(), path.to_owned()));
        }
        let asked: Vec<&str> = blobs.iter().map(|(blob, _)| blob.as_str()).collect();
        let answer = self.git.tell(["cat-file", "--batch"], format!("{}\n", asked.join("\n")).as_bytes())?;
        let mut rest = answer.as_slice();
        let mut files = Files::new();
        for (_, path) in blobs {
            let odd = || io::Error::other("git returned a file in an unexpected format");
            let end = rest.iter().position(|byte| *byte == b'\n').ok_or_else(odd)?;
            let head = String::from_utf8_lossy(&rest[..end]).into_owned();
            let size: usize = head.rsplit(' ').next().and_then(|size| size.parse().ok()).ok_or_else(odd)?;
            let content = rest.get(end + 1..end + 1 + size).ok_or_else(odd)?;
            files.insert(path, content.to_vec());
            rest = rest.get(end + 2 + size..).ok_or_else(odd)?;
        }
        Ok(files)
    }

    fn is_versioned(&self) -> bool {
        self.git.directory().symlink_metadata().is_ok()
    }

    fn versions(&self) -> io::Result<Vec<Version>> {
        if !self.is_versioned() {
            return Ok(Vec::new());
        }
        let parts = [
            "%(refname)",
            "%(objectname)",
            "%(parent)",
            "%(committerdate:unix)",
            "%(contents:subject)",
            "%(contents:body)",
        ];
        let format = format!("--format={}%1e", parts.join("%1f"));
        let text = self.git.ask(["for-each-ref", &format, CANDIDATES, "refs/tags/"])?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let mut labels: HashMap<String, Vec<String>> = HashMap::new();
        let mut found = Vec::new();
        for answer in text.split(END) {
            let parts: Vec<&str> = answer.trim_start().split(SEPARATOR).collect();
            let [reference, revision, parents, moment, subject, body] = parts.as_slice() else { continue };
            if let Some(label) = reference.strip_prefix("refs/tags/") {
                labels.entry((*revision).to_owned()).or_default().push(label.to_owned());
            } else if let Some(hex) = reference.strip_prefix(CANDIDATES)
                && let Ok(candidate) = format!("sha256:{hex}").parse::<Digest>()
            {
                let summary = subject.split_once(": ").map_or(*subject, |(_, summary)| summary);
                let committed_at: u64 = moment.parse().unwrap_or(0);
                let made = body.lines().find_map(|line| line.strip_prefix(MADE)?.parse().ok());
                found.push((candidate, *revision, *parents, (committed_at, made), summary));
            }
        }
        let by_revision: HashMap<&str, Digest> =
            found.iter().map(|(candidate, revision, ..)| (*revision, *candidate)).collect();
        Ok(found
            .iter()
            .map(|(candidate, revision, parents, moment, summary)| Version {
                candidate: *candidate,
                name: candidate::name(*candidate),
                revision: (*revision).to_owned(),
                parents: parents.split(' ').filter_map(|parent| by_revision.get(parent).copied()).collect(),
                labels: labels.get(*revision).cloned().unwrap_or_default(),
                committed_at: moment.0,
                made_at: moment.1.unwrap_or_else(|| moment.0.saturating_mul(1000)),
                summary: (*summary).to_owned(),
            })
            .collect())
    }
}

fn in_order(mut versions: Vec<Version>) -> Vec<Version> {
    versions.sort_by_key(|version| (version.made_at, version.candidate));
    let mut placed: HashSet<Digest> = HashSet::with_capacity(versions.len());
    let mut ordered: Vec<Version> = Vec::with_capacity(versions.len());
    // Clocks may go back, so children may come before their parents; a few rounds correct that.
    while !versions.is_empty() {
        let before = ordered.len();
        let mut waiting = Vec::new();
        for version in versions {
            if version.parents.iter().all(|parent| placed.contains(parent)) {
                placed.insert(version.candidate);
                ordered.push(version);
            } else {
                waiting.push(version);
            }
        }
        // Git has no cycles; if there were one, its members would come last.
        if ordered.len() == before {
            ordered.append(&mut waiting);
        }
        versions = waiting;
    }
    ordered
}

fn data(stream: &mut Vec<u8>, bytes: &[u8]) {
    stream.extend_from_slice(format!("data {}\n", bytes.len()).as_bytes());
    stream.extend_from_slice(bytes);
    stream.push(b'\n');
}

/// A path in the syntax of `fast-import`.
fn quoted(path: &str) -> String {
    let mut quoted = String::with_capacity(path.len() + 2);
    quoted.push('"');
    for letter in path.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            '\n' => quoted.push_str("\\n"),
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

fn broken(path: &Path, error: &io::Error) -> Vec<Problem> {
    let problem = Problem::error(format!("the workspace cannot be used: {error}")).id(FAMILY.number(15));
    vec![problem.fix("check the directory and its git repository").in_file(path)]
}

#[cfg(test)]
mod tests;
