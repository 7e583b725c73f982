//! What of the host a room shows: its programs with their data, and nothing that belongs to its user.
//!
//! The view is a list of what is shown, not the whole host with holes. Of `/usr` these are programs, libraries, headers
//! and shared data; `/usr/local`, `/usr/src`, `/opt` and everything else is not there. Inside of what is shown, some
//! things are covered: what a caller has declared private (the project, its records and settings), under every name that
//! it has, packages that are installed for interpreters, this program, and other projects.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::spec::{OURSELVES, RoomSpec};

/// System directories of the host, shown if they exist. On a merged system those of the root are links into `/usr`.
const SYSTEM: [&str; 15] = [
    "/bin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/sbin",
    "/usr/bin",
    "/usr/include",
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/libexec",
    "/usr/libx32",
    "/usr/sbin",
    "/usr/share",
];
/// The host's configuration that programs need.
const CONFIGURATION: [&str; 4] = ["/etc/alternatives", "/etc/ld.so.cache", "/etc/mime.types", "/etc/ssl"];
/// What is needed only to reach other machines.
const NETWORK_CONFIGURATION: [&str; 3] = ["/etc/ca-certificates", "/etc/hosts", "/etc/resolv.conf"];
/// Directories with packages that someone has installed for an interpreter.
const PACKAGES: [&str; 2] = ["site-packages", "dist-packages"];
/// A directory that holds one of these is a project, or a package of tasks with their answers.
const MARKS: [&str; 2] = ["aec-bench.toml", "tasks.json"];

/// One thing that is done to make the view.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Part {
    /// A file or directory of the host is shown at its own path.
    Show(PathBuf),
    /// A link of the host is made again: path, and what it says.
    Link(PathBuf, PathBuf),
    /// What is shown there otherwise is replaced by nothing.
    Cover(PathBuf),
}

impl Part {
    fn path(&self) -> &Path {
        match self {
            Self::Show(path) | Self::Link(path, _) | Self::Cover(path) => path,
        }
    }
}

/// What a room shows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct View {
    /// In the order in which they are made: directories before what is inside of them.
    pub(crate) parts: Vec<Part>,
}

/// Something private that lies where rooms show the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InSight {
    pub place: PathBuf,
    /// Where it can be seen, which may be another name of the same directory.
    pub seen_at: PathBuf,
    /// What rooms show.
    pub shown: PathBuf,
    /// Whether rooms can hide it. They cannot hide what they need.
    pub hidden: bool,
}

/// Paths that no room may show, without links.
static PRIVATE: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// From now on no room of this process shows these files and directories, whatever contains them.
pub fn keep_private(paths: impl IntoIterator<Item = PathBuf>) {
    let paths: Vec<PathBuf> = paths.into_iter().map(|path| without_links(&path)).collect();
    PRIVATE.lock().unwrap_or_else(PoisonError::into_inner).extend(paths);
}

/// Paths that every room shows besides the system.
static DECLARED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// From now on every room of this process also shows these files and directories, except what is private in them.
pub fn show_also(paths: impl IntoIterator<Item = PathBuf>) {
    DECLARED.lock().unwrap_or_else(PoisonError::into_inner).extend(paths);
}

/// What every room shows, if it exists.
fn shown_always() -> impl Iterator<Item = PathBuf> {
    let declared = DECLARED.lock().unwrap_or_else(PoisonError::into_inner).clone();
    SYSTEM.iter().chain(&CONFIGURATION).map(PathBuf::from).chain(declared)
}

/// What is private and lies where every room shows the host.
pub fn in_sight() -> Vec<InSight> {
    let shown: Vec<PathBuf> = shown_always().collect();
    topmost(private_names().into_iter().filter_map(|(place, name)| sighted(place, name, &shown)).collect())
}

/// Without what lies in a directory that is there as well.
fn topmost(mut seen: Vec<InSight>) -> Vec<InSight> {
    seen.sort_by(|one, other| one.seen_at.cmp(&other.seen_at));
    seen.dedup_by(|one, before| one.seen_at.starts_with(&before.seen_at));
    seen
}

fn sighted(place: PathBuf, name: PathBuf, shown: &[PathBuf]) -> Option<InSight> {
    let within = shown.iter().find(|shown| name.starts_with(shown))?;
    let hidden = &name != within;
    Some(InSight { place, seen_at: name, shown: within.clone(), hidden })
}

/// All names of everything private, each with the path as declared.
fn private_names() -> Vec<(PathBuf, PathBuf)> {
    let private = PRIVATE.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if private.is_empty() {
        return Vec::new();
    }
    // Read again for every room, because something may be mounted meanwhile.
    let table = fs_err::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mounts = mounts(&table);
    private
        .iter()
        .flat_map(|place| names(place, &mounts).into_iter().map(|name| (place.clone(), name)))
        .collect()
}

impl View {
    /// The view of a room. An error if something private is at the very place of something that the room needs.
    pub(crate) fn of(spec: &RoomSpec) -> io::Result<Self> {
        let network = NETWORK_CONFIGURATION.iter().filter(|_| spec.network);
        let shown: Vec<PathBuf> = shown_always().chain(network.map(PathBuf::from)).collect();
        let private = private_names();
        for (place, name) in &private {
            if let Some(seen) = sighted(place.clone(), name.clone(), &shown).filter(|seen| !seen.hidden) {
                let message = format!(
                    "{} is private and at the same time {}, which rooms need; move the project to a directory of its own",
                    seen.place.display(),
                    seen.shown.display()
                );
                return Err(io::Error::other(message));
            }
        }
        let mut covered: BTreeSet<PathBuf> = private.into_iter().map(|(_, name)| name).collect();
        let installed = shown.iter().chain(&spec.show).flat_map(|place| not_of_the_system(place));
        covered.extend(installed);
        if let Ok(program) = crate::program() {
            covered.insert(program);
        }
        let shown = shown.into_iter().chain(spec.show.iter().cloned()).filter(|path| path.exists());
        Ok(Self::arranged(&shown.collect(), &covered))
    }

    fn arranged(shown: &BTreeSet<PathBuf>, covered: &BTreeSet<PathBuf>) -> Self {
        let linked = |path: &PathBuf| {
            let target = path.read_link().ok()?;
            let leads_to = path.canonicalize().ok()?;
            // A link whose target the room shows as well; any other is shown as what it leads to.
            shown.iter().any(|other| other != path && leads_to.starts_with(other)).then_some(target)
        };
        let parts = shown.iter().map(|path| match linked(path) {
            Some(target) => Part::Link(path.clone(), target),
            None => Part::Show(path.clone()),
        });
        // What is asked for by its name is shown, also where everything around it is covered.
        let covers = covered.iter().filter(|path| !shown.contains(*path)).cloned().map(Part::Cover);
        let mut all: Vec<Part> = parts.chain(covers).collect();
        all.sort_by(|one, other| one.path().cmp(other.path()));
        let mut parts: Vec<Part> = Vec::new();
        for part in all {
            let around = parts.iter().rev().find(|around| part.path().starts_with(around.path()));
            let is_new = match around {
                Some(Part::Show(_)) => matches!(part, Part::Cover(_)),
                Some(Part::Cover(_)) | None => !matches!(part, Part::Cover(_)),
                Some(Part::Link(..)) => false,
            };
            if is_new {
                parts.push(part);
            }
        }
        Self { parts }
    }

    /// Whether a path of the host is shown at the same path.
    pub(crate) fn shows(&self, path: &Path) -> bool {
        let around = self.parts.iter().rev().find(|part| path.starts_with(part.path()));
        around.is_some_and(|part| !matches!(part, Part::Cover(_)))
    }

    /// Whether something is shown inside of a covered directory.
    pub(crate) fn shows_within(&self, covered: &Path) -> bool {
        self.parts.iter().any(|part| part.path() != covered && part.path().starts_with(covered))
    }
}

/// What lies in a shown directory of the host without being part of the host's system. Directories are looked through
/// once in a process.
fn not_of_the_system(shown: &Path) -> Vec<PathBuf> {
    static FOUND: Mutex<BTreeMap<PathBuf, Vec<PathBuf>>> = Mutex::new(BTreeMap::new());
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    found.entry(shown.to_owned()).or_insert_with(|| look_through(shown)).clone()
}

fn look_through(shown: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut packages = |place: &Path| found.extend(PACKAGES.map(|name| place.join(name)));
    packages(shown);
    for place in [shown.to_owned(), shown.join("lib"), shown.join("lib64")] {
        names_in(&place)
            .iter()
            .filter(|name| name.starts_with("py"))
            .for_each(|name| packages(&place.join(name)));
    }
    for place in ["", "bin", "lib", "libexec", "share"] {
        found.push(shown.join(place).join(OURSELVES));
    }
    for place in names_in(shown).iter().map(|name| shown.join(name)) {
        if MARKS.iter().any(|mark| place.join(mark).is_file()) {
            found.push(place);
        }
    }
    found.retain(|path| path.symlink_metadata().is_ok_and(|facts| !facts.is_symlink()));
    found
}

fn names_in(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// A path without links, also if its last parts do not exist yet.
fn without_links(path: &Path) -> PathBuf {
    let existing = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    match existing {
        Some((above, real)) => match path.strip_prefix(above) {
            Ok(rest) if !rest.as_os_str().is_empty() => real.join(rest),
            _ => real,
        },
        None => path.to_owned(),
    }
}

/// One mount: which part of which file system is where.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    device: String,
    root: PathBuf,
    pub(crate) place: PathBuf,
}

/// Reads a table of mounts (`/proc/self/mountinfo`).
pub(crate) fn mounts(table: &str) -> Vec<Mount> {
    let mount = |line: &str| {
        let mut fields = line.split(' ');
        let device = fields.nth(2)?.to_owned();
        let (root, place) = (unescaped(fields.next()?), unescaped(fields.next()?));
        Some(Mount { device, root, place })
    };
    table.lines().filter_map(mount).collect()
}

/// A path of the table, in which blanks and the like are octal numbers.
fn unescaped(text: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let number =
            after.get(..3).filter(|_| *first == b'\\').and_then(|digits| std::str::from_utf8(digits).ok());
        match number.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    OsString::from_vec(bytes).into()
}

/// All paths under which a file or directory, or a part of it, can be seen.
fn names(path: &Path, mounts: &[Mount]) -> BTreeSet<PathBuf> {
    let mut names = BTreeSet::from([path.to_owned()]);
    // The last of several mounts at one place is the one that is seen.
    let around = mounts.iter().filter(|mount| path.starts_with(&mount.place));
    let Some(own) = around.max_by_key(|mount| mount.place.components().count()) else { return names };
    let Ok(below) = path.strip_prefix(&own.place) else { return names };
    let in_file_system = joined(&own.root, below);
    for mount in mounts.iter().filter(|mount| mount.device == own.device) {
        if let Ok(below) = in_file_system.strip_prefix(&mount.root) {
            names.insert(joined(&mount.place, below));
        } else if mount.root.starts_with(&in_file_system) {
            names.insert(mount.place.clone());
        }
    }
    names
}

/// Joins paths without a slash at the end where there is nothing to join.
fn joined(path: &Path, below: &Path) -> PathBuf {
    if below.as_os_str().is_empty() { path.to_owned() } else { path.join(below) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(paths: &[&str]) -> BTreeSet<PathBuf> {
        paths.iter().map(PathBuf::from).collect()
    }

    const TABLE: &str = "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n\
        30 27 254:1 / /srv rw - ext4 /dev/vdb rw\n\
        31 27 254:1 /teams/a\\040b /usr/lib/shared rw - ext4 /dev/vdb rw\n\
        32 27 254:1 /teams/a\\040b/bench/tasks /usr/share/tasks rw - ext4 /dev/vdb rw\n\
        33 27 254:0 /home/one /opt/one rw - ext4 /dev/vda rw\n\
        34 27 0:50 / /opt/one rw - tmpfs none rw\n";

    #[test]
    fn a_directory_has_a_name_for_every_mount_that_shows_it() {
        let mounts = mounts(TABLE);
        assert_eq!(mounts[2].root, Path::new("/teams/a b"));
        assert_eq!(
            names(Path::new("/srv/teams/a b/bench"), &mounts),
            paths(&["/srv/teams/a b/bench", "/usr/lib/shared/bench", "/usr/share/tasks"])
        );
        assert_eq!(names(Path::new("/home/one/p"), &mounts), paths(&["/home/one/p", "/opt/one/p"]));
        assert_eq!(
            names(Path::new("/opt/one/p"), &mounts),
            paths(&["/opt/one/p"]),
            "the mount on top counts"
        );
        assert_eq!(names(Path::new("/home"), &mounts), paths(&["/home", "/opt/one"]));
    }

    #[test]
    fn parts_are_in_order_and_none_is_for_nothing() {
        let shown =
            paths(&["/usr/lib", "/usr/lib/app/.conda/lib/python3.12", "/usr/lib/python3", "/usr/share"]);
        let covered = paths(&["/srv/app", "/usr/lib/app", "/usr/lib/app/tasks", "/usr/share/app"]);
        let view = View::arranged(&shown, &covered);
        let show = |path: &str| Part::Show(path.into());
        let cover = |path: &str| Part::Cover(path.into());
        assert_eq!(
            view.parts,
            [
                show("/usr/lib"),
                cover("/usr/lib/app"),
                show("/usr/lib/app/.conda/lib/python3.12"),
                show("/usr/share"),
                cover("/usr/share/app"),
            ]
        );
        assert!(view.shows(Path::new("/usr/lib/x.so")) && !view.shows(Path::new("/usr/lib/app/tasks")));
        assert!(view.shows(Path::new("/usr/lib/app/.conda/lib/python3.12/os.py")));
        assert!(!view.shows(Path::new("/srv")) && !view.shows(Path::new("/usr/share/app/tasks")));
        assert!(
            view.shows_within(Path::new("/usr/lib/app")) && !view.shows_within(Path::new("/usr/share/app"))
        );
    }

    #[test]
    fn what_is_private_and_what_a_room_needs_cannot_be_the_same() {
        let shown = [PathBuf::from("/usr/lib")];
        let seen = |name: &str| sighted("/p".into(), name.into(), &shown).map(|seen| seen.hidden);
        assert_eq!((seen("/usr/lib/app"), seen("/usr/lib"), seen("/usr")), (Some(true), Some(false), None));
        let places = ["/usr/lib/app/tasks", "/usr/lib/app", "/usr/lib/app-2", "/usr/lib/app/jobs/x"];
        let all = places.iter().filter_map(|name| sighted("/p".into(), name.into(), &shown)).collect();
        let kept: Vec<PathBuf> = topmost(all).into_iter().map(|seen| seen.seen_at).collect();
        assert_eq!(kept, ["/usr/lib/app", "/usr/lib/app-2"].map(PathBuf::from));
        assert_eq!(without_links(Path::new("/usr/../usr/nothing-here/x")), Path::new("/usr/nothing-here/x"));
    }
}
