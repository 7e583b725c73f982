//! The small program of containers as it is put into images: its file and the shared objects that it was linked with, including their
//! loader, so that it runs in any image for the same processor, whatever C library that image has.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use aec_base::digest::{Digest, Hasher};
use aec_sandbox::wire::CONTAINED_ARGUMENT;

/// Its directory in images.
const PLACE: &str = "/.aec-bench/entry";
const PROGRAM: &str = "aec-bench";

/// The program with everything that it needs.
#[derive(Debug)]
pub(crate) struct Entry {
    program: PathBuf,
    objects: Vec<PathBuf>,
    /// Equal digests mean the same program. The digest may also change if the same program is installed again.
    pub(crate) digest: Digest,
}

impl Entry {
    /// The program beside the one of this process.
    pub(crate) fn find() -> io::Result<Self> {
        Self::of(aec_sandbox::agent_program()?)
    }

    /// A program, with the shared objects in the memory of this process, which was linked with the same ones.
    pub(crate) fn of(program: PathBuf) -> io::Result<Self> {
        let objects = mapped(&fs_err::read_to_string("/proc/self/maps")?);
        let mut hasher = Hasher::default();
        for file in std::iter::once(&program).chain(&objects) {
            let facts = fs_err::metadata(file)?;
            hasher.part(std::os::unix::ffi::OsStrExt::as_bytes(file.as_os_str()));
            for number in
                [facts.size(), facts.ino(), facts.mtime().cast_unsigned(), facts.mtime_nsec().cast_unsigned()]
            {
                hasher.part(&number.to_le_bytes());
            }
        }
        Ok(Self { program, objects, digest: hasher.finish() })
    }

    /// Files with their names below [`PLACE`].
    pub(crate) fn files(&self) -> Vec<(String, &Path)> {
        let object = |path: &'_ PathBuf| format!("lib/{}", name(path));
        std::iter::once((PROGRAM.to_owned(), self.program.as_path()))
            .chain(self.objects.iter().map(|path| (object(path), path.as_path())))
            .collect()
    }

    /// The command of the first process of a container.
    pub(crate) fn command(&self) -> Vec<String> {
        let program = format!("{PLACE}/{PROGRAM}");
        let loader = self.objects.iter().map(|path| name(path)).find(|name| name.starts_with("ld-"));
        let mut command = match loader {
            Some(loader) => vec![
                format!("{PLACE}/lib/{loader}"),
                "--library-path".to_owned(),
                format!("{PLACE}/lib"),
                program,
            ],
            None => vec![program],
        };
        command.push(CONTAINED_ARGUMENT.to_owned());
        command
    }

    /// Its directory in images.
    pub(crate) fn place() -> &'static str {
        PLACE
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The shared objects in a process's memory, from its list of mappings.
fn mapped(maps: &str) -> Vec<PathBuf> {
    let is_object = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or_default();
        path.starts_with('/') && (name.ends_with(".so") || name.contains(".so."))
    };
    let paths: BTreeSet<PathBuf> = maps
        .lines()
        .filter_map(|line| line.find('/').map(|at| &line[at..]))
        .filter(|path| is_object(path))
        .map(PathBuf::from)
        .collect();
    paths.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_those_of_the_process() {
        let maps = "5566-5570 r--p 00000000 fe:00 123  /opt/aec-bench\n\
                    7f00-7f10 r-xp 00000000 fe:00 124  /usr/lib/x86_64-linux-gnu/libc.so.6\n\
                    7f10-7f20 r--p 00000000 fe:00 124  /usr/lib/x86_64-linux-gnu/libc.so.6\n\
                    7f20-7f30 r-xp 00000000 fe:00 125  /usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2\n\
                    7f30-7f40 rw-p 00000000 00:00 0    [vdso]\n\
                    7f40-7f50 rw-s 00000000 00:01 7    /memfd:notes\n";
        let found = mapped(maps);
        let names: Vec<String> = found.iter().map(|path| name(path)).collect();
        assert_eq!(names, ["ld-linux-x86-64.so.2", "libc.so.6"]);
        assert!(mapped("").is_empty());
    }

    #[test]
    fn the_loader_starts_what_was_linked_with_it() {
        let entry = |objects: &[&str]| Entry {
            program: "/opt/aec-bench".into(),
            objects: objects.iter().map(PathBuf::from).collect(),
            digest: Digest::of(b""),
        };
        assert_eq!(entry(&[]).command(), ["/.aec-bench/entry/aec-bench", "__contained"]);
        let linked = entry(&["/lib/ld-linux-x86-64.so.2", "/lib/libc.so.6"]);
        assert_eq!(linked.command()[0], "/.aec-bench/entry/lib/ld-linux-x86-64.so.2");
        assert_eq!(linked.files()[2].0, "lib/libc.so.6");
        assert!(Entry::of(std::env::current_exe().unwrap()).is_ok());
        // No such program lies beside the tests of this crate.
        assert!(Entry::find().unwrap_err().to_string().contains("aec-bench-agent is missing"));
    }
}
