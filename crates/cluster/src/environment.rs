//! Variables that workers need and that no plan, script or command line may hold: a file only its owner can read.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use aec_base::problem::Problem;
use rustix::fs::OFlags;
use rustix::process::geteuid;

use crate::FAMILY;

/// Far more than a handful of keys needs.
const LIMIT: u64 = 1024 * 1024;

/// Writes the file. It is created with its final mode, so other users can never read it.
pub fn write(path: &Path, variables: &BTreeMap<String, String>) -> io::Result<()> {
    let mut file = fs_err::os::unix::fs::OpenOptionsExt::mode(
        fs_err::OpenOptions::new().write(true).create_new(true),
        0o600,
    )
    .open(path)?;
    let mut text = serde_json::to_string_pretty(variables)?;
    text.push('\n');
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Reads the file; refuses one that other users can read or own. `None` when there is no file.
pub fn read(path: &Path) -> Result<Option<BTreeMap<String, String>>, Problem> {
    let problem = |what: String| Problem::error(what).id(FAMILY.number(15)).in_file(path);
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = match std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            let what = format!("the variables of the run cannot be read: {error}");
            return Err(problem(what).fix("submit the run again"));
        }
    };
    let metadata = file.metadata().map_err(|error| problem(error.to_string()))?;
    if !metadata.is_file() || metadata.mode() & 0o077 != 0 || metadata.uid() != geteuid().as_raw() {
        let what = format!("others can read the variables of the run (mode {:03o})", metadata.mode() & 0o777);
        return Err(problem(what).why("the file holds keys").fix(
            "replace the keys, since other users may have read them, remove the file and submit the run again",
        ));
    }
    let mut text = String::new();
    file.take(LIMIT)
        .read_to_string(&mut text)
        .map_err(|error| problem(format!("the variables of the run cannot be read: {error}")))?;
    // The message does not quote the invalid text: it may be a key.
    aec_base::json::from_str(&text).map(Some).map_err(|error| {
        problem(format!("the variables of the run are not JSON (line {})", error.line()))
            .fix("submit the run again")
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn only_the_owner_can_read_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("environment.json");
        assert_eq!(read(&path).unwrap(), None);
        let variables = BTreeMap::from([("A_KEY".to_owned(), "line\n\"quoted\" $x".to_owned())]);
        write(&path, &variables).unwrap();
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
        assert_eq!(read(&path).unwrap(), Some(variables.clone()));
        assert!(write(&path, &variables).is_err(), "never written over what is there");
        for mode in [0o640, 0o604, 0o660, 0o601] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let problem = read(&path).unwrap_err();
            assert_eq!(problem.id.as_deref(), Some("J015"), "{mode:o}");
        }
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(read(&link).is_err(), "links are not followed");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::write(&path, "{\"A_KEY\": very-secret").unwrap();
        assert!(!format!("{:?}", read(&path).unwrap_err()).contains("very-secret"));
    }
}
