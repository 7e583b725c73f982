//! Makes a ledger usable again after a crash: cuts torn ends, removes leftovers, moves files that are not records
//! aside. It never deletes a record or a content.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use aec_base::name::Name;
use aec_base::problem::Problem;
use serde::Serialize;

use crate::FAMILY;
use crate::chain::Chain;
use crate::journal;
use crate::layout::Ledger;
use crate::read::{Broken, Listing, RecordFile, stranger};

/// A temporary file that did not change for this long has no writer any more.
const ABANDONED: Duration = Duration::from_mins(1);

/// Beginnings of the names of temporary files.
const TEMPORARY: [&str; 3] = [".new-", ".tmp", ".aec-bench-"];

/// The directory for files that are not records.
const DAMAGED: &str = "_damaged";

/// Whether to change anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Repair,
    /// Only report what would be done.
    DryRun,
}

/// An action that was done, or would be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "action")]
pub enum Action {
    /// The torn end of a chain was cut.
    Cut { file: PathBuf, bytes: u64 },
    /// A temporary file was removed.
    Removed { file: PathBuf },
    /// A file that is not a record was moved aside.
    PutAside { file: PathBuf, to: PathBuf, reason: String },
    /// A record was brought back from a journal.
    Restored { file: PathBuf },
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Repaired {
    pub actions: Vec<Action>,
    /// Temporary files that may still have a writer.
    pub recent: usize,
    /// Problems that remain.
    #[serde(skip)]
    pub problems: Vec<Problem>,
}

/// Repairs the given experiments and the content store. `jobs` is the root of `jobs`.
pub fn repair(ledger: &Ledger, jobs: &Path, experiments: &[Name], mode: Mode) -> io::Result<Repaired> {
    let mut repaired = Repaired::default();
    remove_temporary(ledger.contents().root(), mode, &mut repaired)?;
    remove_temporary(ledger.root(), mode, &mut repaired)?;
    for experiment in experiments {
        let directory = ledger.experiment(experiment);
        if mode == Mode::Repair {
            // Comes first, since it also repairs the ends of chains. It leaves journals of running sessions alone.
            let restored = journal::recover(ledger, experiment, jobs)?.records;
            let file = |(trial, attempt): (Name, u32)| directory.record(&trial, attempt);
            repaired
                .actions
                .extend(restored.into_iter().map(|record| Action::Restored { file: file(record) }));
        }
        for place in [directory.path().to_path_buf(), directory.run(), directory.run().join("plans")] {
            remove_temporary(&place, mode, &mut repaired)?;
        }
        for chain in directory.chains()? {
            cut_chain(&chain, mode, &mut repaired)?;
        }
        let Listing { files, strangers } = ledger.list(experiment)?;
        repaired.problems.extend(strangers.iter().map(|name| stranger(&directory.path().join(name))));
        for file in files {
            match file.read(ledger) {
                Err(broken) if broken.damaged => put_aside(ledger, &file, &broken, mode, &mut repaired)?,
                Err(broken) => repaired.problems.push(broken.problem.about(file.id())),
                Ok(_) => {}
            }
        }
    }
    Ok(repaired)
}

/// Cuts off a torn last line. A torn line with others after it is evidence and stays.
fn cut_chain(path: &Path, mode: Mode, repaired: &mut Repaired) -> io::Result<()> {
    if journal::is_living(path) {
        return Ok(());
    }
    let chain = match Chain::read(path) {
        Ok(chain) => chain,
        Err(error) => {
            let problem = Problem::error(format!("a chain cannot be read: {error}"));
            repaired.problems.push(problem.id(FAMILY.number(1)).fix(error.fix()).in_file(path));
            return Ok(());
        }
    };
    let torn = |problem: &Problem| problem.id == Some(FAMILY.number(10));
    let (torn, others): (Vec<Problem>, Vec<Problem>) = chain.problems.into_iter().partition(torn);
    repaired.problems.extend(others);
    if torn.is_empty() {
        return Ok(());
    }
    let length = fs_err::metadata(path)?.len();
    if mode == Mode::Repair {
        let file = fs_err::OpenOptions::new().write(true).open(path)?;
        file.set_len(chain.sound_bytes)?;
        file.sync_all()?;
    }
    let bytes = length.saturating_sub(chain.sound_bytes);
    repaired.actions.push(Action::Cut { file: path.to_path_buf(), bytes });
    Ok(())
}

fn remove_temporary(directory: &Path, mode: Mode, repaired: &mut Repaired) -> io::Result<()> {
    let entries = match fs_err::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let mut left = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        if TEMPORARY.iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
            left.push(entry.path());
        }
    }
    left.sort();
    for file in left {
        // Its writer may have renamed it meanwhile.
        let Ok(metadata) = file.symlink_metadata() else { continue };
        if metadata.is_dir() {
            continue;
        }
        let age = metadata.modified().ok().and_then(|modified| modified.elapsed().ok());
        if age.is_none_or(|age| age < ABANDONED) {
            repaired.recent += 1;
            continue;
        }
        if mode == Mode::Repair {
            fs_err::remove_file(&file)?;
        }
        repaired.actions.push(Action::Removed { file });
    }
    Ok(())
}

/// Moves a file that is not a record aside, with the reason beside it.
fn put_aside(
    ledger: &Ledger,
    file: &RecordFile,
    broken: &Broken,
    mode: Mode,
    repaired: &mut Repaired,
) -> io::Result<()> {
    let from = file.path(ledger);
    let place = ledger.root().join(DAMAGED).join(file.experiment.as_str());
    let name = |number: u32| match number {
        0 => file.file_name(),
        number => format!("{}.{number}", file.file_name()),
    };
    let free =
        (0..=u32::MAX).map(|number| place.join(name(number))).find(|path| path.symlink_metadata().is_err());
    let Some(to) = free else { return Err(io::ErrorKind::AlreadyExists.into()) };
    let reason = broken.problem.what.clone();
    if mode == Mode::Repair {
        fs_err::create_dir_all(&place)?;
        let mut beside = to.clone().into_os_string();
        beside.push(".reason.txt");
        // Writes the reason first: a damaged file without a reason would be a riddle.
        aec_base::file::write_atomic(Path::new(&beside), format!("{}\n{reason}\n", file.id()).as_bytes())?;
        fs_err::rename(&from, &to)?;
        for directory in [place.as_path(), ledger.experiment(&file.experiment).path()] {
            fs_err::File::open(directory)?.sync_all()?;
        }
    }
    repaired.actions.push(Action::PutAside { file: from, to, reason });
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::example;
    use crate::verify::{Depth, verify};

    fn name(text: &str) -> Name {
        Name::parse(text).unwrap()
    }

    fn ledger() -> (tempfile::TempDir, Ledger) {
        let directory = tempfile::tempdir().unwrap();
        let ledger = Ledger::new(directory.path());
        let records = ["a", "b", "c"].map(|trial| example::record("exp", trial, 1));
        example::write_session(&ledger, "1", &records);
        (directory, ledger)
    }

    fn old(path: &Path) {
        fs_err::write(path, "half").unwrap();
        let times = std::fs::FileTimes::new().set_modified(SystemTime::now() - 2 * ABANDONED);
        std::fs::File::options().write(true).open(path).unwrap().set_times(times).unwrap();
    }

    #[test]
    fn what_a_crash_leaves_is_put_right_and_nothing_is_lost() {
        let (_directory, ledger) = ledger();
        let exp = ledger.root().join("exp");
        let chain = exp.join("_run/chain-1.jsonl");
        let sound = fs_err::read(&chain).unwrap();
        fs_err::write(&chain, [sound.as_slice(), b"{\"sequence\": 4, \"tri"].concat()).unwrap();
        fs_err::write(exp.join("b.json"), "{ torn").unwrap();
        old(&exp.join(".new-1"));
        old(&ledger.contents().root().join(".new-2"));
        fs_err::write(exp.join(".tmpabc"), "under way").unwrap();

        let would = repair(&ledger, &ledger.root().join("jobs"), &[name("exp")], Mode::DryRun).unwrap();
        assert_eq!(would.actions.len(), 4, "{would:?}");
        assert!(exp.join("b.json").exists() && exp.join(".new-1").exists());
        assert!(fs_err::read(&chain).unwrap().len() > sound.len());

        let repaired = repair(&ledger, &ledger.root().join("jobs"), &[name("exp")], Mode::Repair).unwrap();
        assert_eq!(repaired.actions, would.actions);
        assert_eq!((repaired.recent, repaired.problems.len()), (1, 0));
        assert_eq!(fs_err::read(&chain).unwrap(), sound);
        assert!(!exp.join(".new-1").exists() && exp.join(".tmpabc").exists());
        let aside = ledger.root().join("_damaged/exp/b.json");
        assert_eq!(fs_err::read_to_string(&aside).unwrap(), "{ torn");
        let reason = fs_err::read_to_string(ledger.root().join("_damaged/exp/b.json.reason.txt")).unwrap();
        assert!(reason.starts_with("exp/b\nthe record is not valid JSON"), "{reason}");
        // Missing records are still reported.
        let found = verify(&ledger, &name("exp"), Depth::Full).unwrap().problems;
        assert_eq!(found.iter().map(|problem| problem.id.as_deref().unwrap()).collect::<Vec<_>>(), ["L032"]);
        // A second repair has nothing to do; a second damaged file of the same name does not replace the first.
        assert_eq!(
            repair(&ledger, &ledger.root().join("jobs"), &[name("exp")], Mode::Repair).unwrap().actions,
            []
        );
        fs_err::write(exp.join("b.json"), "torn again").unwrap();
        repair(&ledger, &ledger.root().join("jobs"), &[name("exp")], Mode::Repair).unwrap();
        assert_eq!(fs_err::read_to_string(&aside).unwrap(), "{ torn");
        assert_eq!(
            fs_err::read_to_string(ledger.root().join("_damaged/exp/b.json.1")).unwrap(),
            "torn again"
        );
    }

    #[test]
    fn evidence_and_what_is_only_out_of_place_stays() {
        let (_directory, ledger) = ledger();
        let exp = ledger.root().join("exp");
        fs_err::copy(exp.join("a.json"), exp.join("d.json")).unwrap();
        fs_err::write(exp.join("e.json"), "{\"schema_version\": 9}").unwrap();
        let chain = exp.join("_run/chain-1.jsonl");
        let text = fs_err::read_to_string(&chain).unwrap().replacen("\"a\"", "\"z\"", 1);
        fs_err::write(&chain, format!("{text}torn")).unwrap();
        let repaired = repair(&ledger, &ledger.root().join("jobs"), &[name("exp")], Mode::Repair).unwrap();
        assert!(matches!(repaired.actions.as_slice(), [Action::Cut { bytes: 4, .. }]), "{repaired:?}");
        let told: Vec<_> = repaired.problems.iter().map(|problem| problem.id.as_deref().unwrap()).collect();
        assert_eq!(told, ["L012", "L022", "L021"]);
        assert_eq!(fs_err::read_to_string(&chain).unwrap(), text);
        fs_err::write(&chain, format!("nonsense\n{text}torn")).unwrap();
        assert_eq!(
            repair(&ledger, &ledger.root().join("jobs"), &[name("exp")], Mode::Repair).unwrap().actions,
            []
        );
    }

    #[test]
    fn links_are_moved_and_not_followed() {
        let (directory, ledger) = ledger();
        let target = directory.path().join("precious");
        fs_err::write(&target, "precious").unwrap();
        std::os::unix::fs::symlink(&target, ledger.root().join("exp/x.json")).unwrap();
        let repaired = repair(&ledger, &ledger.root().join("jobs"), &[name("exp")], Mode::Repair).unwrap();
        assert_eq!(repaired.actions.len(), 1);
        assert!(ledger.root().join("_damaged/exp/x.json").is_symlink());
        assert_eq!(fs_err::read_to_string(&target).unwrap(), "precious");
    }
}
