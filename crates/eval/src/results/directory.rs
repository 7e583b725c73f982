//! Directories of runs: `<base>/evals/<environment>--<model>/<8 hexadecimal digits>/`.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use aec_base::digest::Digest;
use aec_base::problem::Problem;

use crate::results::metadata::{Description, Metadata};
use crate::results::problems;
use crate::results::{METADATA_FILE, RESULTS_FILE};

/// Longest part of a directory's name, in bytes; two parts and their separator fit into 255.
const LONGEST_PART: usize = 90;

/// How deep below a base runs are searched: `evals`, an owner, environment and model, the run; and one more.
const DEEPEST: usize = 5;

/// New names that are tried. Two runs of one group collide once in four thousand million.
const TRIES: usize = 64;

/// The directory that holds `evals`: the user's choice, else `outputs` in the environment's package if that is a
/// directory, else `./outputs`.
pub fn base(output_dir: Option<&Path>, package_dir: Option<&Path>) -> PathBuf {
    match (output_dir, package_dir) {
        (Some(output), _) => output.to_owned(),
        (None, Some(package)) if package.is_dir() => package.join("outputs"),
        _ => PathBuf::from("outputs"),
    }
}

/// The directory of all runs of an environment (or of the name that replaces it) with a model.
///
/// A slash in the model becomes `--`; one in the environment separates directories. A model without a slash gets the
/// name of its provider as a prefix, if there is one. A text that is not a valid file name, or that could collide with
/// another, gets a digest.
pub fn group(base: &Path, environment: &str, model: &str, provider: Option<&str>) -> PathBuf {
    let model = match provider {
        Some(provider) if !model.contains('/') => part(&format!("{provider}/{model}")),
        _ => part(model),
    };
    let mut path = base.join("evals");
    let (owners, name) = match environment.rsplit_once('/') {
        Some((owners, name)) => (Some(owners), name),
        None => (None, environment),
    };
    for owner in owners.into_iter().flat_map(|owners| owners.split('/')) {
        path.push(part(owner));
    }
    path.push(format!("{}--{model}", part(name)));
    path
}

/// A text as a part of a name. Different texts give different parts.
fn part(text: &str) -> String {
    let is_plain = |character: char| character.is_alphanumeric() || ".-_+=@:, ".contains(character);
    let is_ambiguous = text.is_empty()
        || text.starts_with(['.', '-', '/', ' '])
        || text.ends_with(['-', '/', ' '])
        || ["--", "-/", "/-", "//", "/.", ".."].iter().any(|pair| text.contains(pair))
        || text.chars().any(|character| character != '/' && !is_plain(character));
    let safe: String = text.chars().map(|c| if c == '/' || is_plain(c) { c } else { '_' }).collect();
    let mut name = safe.replace("..", "__").replace('/', "--").trim_start_matches(['.', '-', ' ']).to_owned();
    if !is_ambiguous && name.len() <= LONGEST_PART {
        return name;
    }
    let mut end = name.len().min(LONGEST_PART);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.truncate(end);
    // A plain text contains no tilde, so no text equals another one's name with a digest.
    format!("{name}~{}", &Digest::of(text.as_bytes()).hex()[..16])
}

/// Creates the directory of a new run in a group. No other process gets the same one.
pub fn create(group: &Path) -> Result<PathBuf, Problem> {
    let refused =
        |path: &Path, error: &io::Error| problems::refused(30, "make a directory for the run", path, error);
    std::fs::create_dir_all(group).map_err(|error| refused(group, &error))?;
    // Syncs new parent directories too, so that they survive a crash; those that cannot be opened already existed.
    for above in group.ancestors().skip(1).take(3) {
        drop(std::fs::File::open(above).and_then(|directory| directory.sync_all()));
    }
    let mut source = std::fs::File::open("/dev/urandom").map_err(|error| refused(group, &error))?;
    for _ in 0..TRIES {
        let mut random = [0; 4];
        source.read_exact(&mut random).map_err(|error| refused(group, &error))?;
        let path = group.join(format!("{:08x}", u32::from_le_bytes(random)));
        match std::fs::create_dir(&path) {
            Ok(()) => {
                let parent = std::fs::File::open(group).and_then(|directory| directory.sync_all());
                return parent.map(|()| path).map_err(|error| refused(group, &error));
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(refused(&path, &error)),
        }
    }
    Err(refused(group, &io::ErrorKind::AlreadyExists.into()))
}

#[derive(Clone, Debug)]
pub struct FoundRun {
    pub path: PathBuf,
    pub id: String,
    pub metadata: Result<Box<Metadata>, Problem>,
    /// When it began, else when it was last modified, in milliseconds since 1970.
    pub milliseconds: i64,
}

impl FoundRun {
    fn read(path: PathBuf) -> Self {
        let metadata = Metadata::read(&path.join(METADATA_FILE)).map(Box::new);
        let date = metadata.as_ref().ok().and_then(|metadata| metadata.milliseconds());
        let written = || {
            let modified =
                path.join(RESULTS_FILE).metadata().and_then(|metadata| metadata.modified()).ok()?;
            i64::try_from(modified.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
        };
        Self {
            milliseconds: date.or_else(written).unwrap_or_default(),
            id: path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
            path,
            metadata,
        }
    }

    /// Whether it has fewer rows than wanted. Metadata of verifiers does not tell, so its rows are counted.
    fn lacks_rows(&self, metadata: &Metadata, wanted: u64) -> bool {
        match (metadata.complete, metadata.rollouts) {
            (Some(false), _) => true,
            (Some(true), Some(rows)) => rows < wanted,
            _ => count_lines(&self.path.join(RESULTS_FILE)).is_ok_and(|rows| rows < wanted),
        }
    }
}

fn count_lines(path: &Path) -> io::Result<u64> {
    let mut file = std::fs::File::open(path)?;
    let mut buffer = vec![0; 256 * 1024];
    let mut lines = 0;
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(lines),
            length => lines += buffer[..length].iter().map(|byte| u64::from(*byte == b'\n')).sum::<u64>(),
        }
    }
}

/// Runs below some bases, newest first. Unreadable directories are reported, as are runs with unreadable metadata.
pub fn list<P: AsRef<Path>>(bases: &[P]) -> (Vec<FoundRun>, Vec<Problem>) {
    let (mut paths, mut problems) = (Vec::new(), Vec::new());
    for base in bases {
        let evals = base.as_ref().join("evals");
        let root = if evals.is_dir() { evals } else { base.as_ref().to_owned() };
        if root.exists() {
            find_below(&root, DEEPEST, &mut paths, &mut problems);
        }
    }
    paths.sort();
    paths.dedup();
    let mut runs: Vec<_> = paths.into_iter().map(FoundRun::read).collect();
    runs.sort_by(|a, b| b.milliseconds.cmp(&a.milliseconds).then_with(|| a.path.cmp(&b.path)));
    (runs, problems)
}

fn find_below(directory: &Path, levels: usize, paths: &mut Vec<PathBuf>, problems: &mut Vec<Problem>) {
    if directory.join(METADATA_FILE).is_file() && directory.join(RESULTS_FILE).is_file() {
        paths.push(directory.to_owned());
        return;
    }
    let mut look = || -> io::Result<()> {
        for entry in std::fs::read_dir(directory)? {
            let entry = entry?;
            let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            // Links are not followed: they may form cycles.
            if levels > 0 && !is_hidden && entry.file_type()?.is_dir() {
                find_below(&entry.path(), levels - 1, paths, problems);
            }
        }
        Ok(())
    };
    if let Err(error) = look() {
        problems.push(problems::refused(31, "look for runs here", directory, &error));
    }
}

/// The newest run of a group that has fewer rows than wanted and fits the current configuration.
pub fn find_incomplete(group: &Path, wanted: u64, fits: impl Fn(&Metadata) -> bool) -> Option<FoundRun> {
    find(group, |run, metadata| fits(metadata) && run.lacks_rows(metadata, wanted))
}

/// The newest run of a group that has all wanted rows and fits.
pub fn find_whole(group: &Path, wanted: &Description, fits: impl Fn(&Metadata) -> bool) -> Option<FoundRun> {
    find(group, |run, metadata| {
        u64::try_from(metadata.num_examples) == Ok(wanted.num_examples)
            && fits(metadata)
            && !run.lacks_rows(metadata, wanted.rollouts())
    })
}

/// The newest run of a group that did not finish.
pub fn find_cut_off(group: &Path) -> Option<FoundRun> {
    find(group, |run, metadata| {
        let examples = u64::try_from(metadata.num_examples).unwrap_or(0);
        let own = examples.saturating_mul(u64::try_from(metadata.rollouts_per_example).unwrap_or(0));
        run.lacks_rows(metadata, own)
    })
}

fn find(group: &Path, is_wanted: impl Fn(&FoundRun, &Metadata) -> bool) -> Option<FoundRun> {
    let (runs, _) = list(&[group]);
    runs.into_iter().find(|run| run.metadata.as_ref().is_ok_and(|metadata| is_wanted(run, metadata)))
}
