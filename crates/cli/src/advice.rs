//! Commands that messages advise: every one of them is a command line that this program understands.

use std::path::{Path, PathBuf};

use clap::Parser as _;
use clap::error::ErrorKind;

use crate::arguments::Arguments;

/// What comes before a command in a message.
const BEFORE: [&str; 4] =
    ["`aec-bench ", "Next: aec-bench ", "continue with: aec-bench ", "next: aec-bench "];

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// The commands of messages in a source file, with the number of the line.
fn advised(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//")) {
        for before in BEFORE {
            for rest in line.split(before).skip(1) {
                let end = rest.find(['`', '"', '\\', ',', ';', '>', '(']).unwrap_or(rest.len());
                found.push((at + 1, rest[..end].trim().to_owned()));
            }
        }
    }
    found
}

/// The words of a command, with something in the place of what is filled in.
fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    for word in command.split_whitespace() {
        let mut filled = word.to_owned();
        while let Some((before, (_, after))) =
            filled.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
        {
            filled = format!("{before}1{after}");
        }
        match (word, words.len()) {
            // Runs of evolution and of swarms share their messages, and their commands have the same words.
            ("{}", 0) => words.push("evolve".to_owned()),
            // Several flags, or none.
            ("{how}" | "{more}" | "…", _) => {}
            _ => words.push(filled),
        }
    }
    words
}

#[test]
fn advised_commands_exist_with_their_flags() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    for directory in std::fs::read_dir(crates).unwrap().map(Result::unwrap) {
        let place = directory.path().join("src");
        if place.is_dir() {
            sources(&place, &mut files);
        }
    }
    let (mut wrong, mut count) = (Vec::new(), 0);
    for file in files.iter().filter(|file| !file.ends_with("advice.rs")) {
        for (line, command) in advised(&std::fs::read_to_string(file).unwrap()) {
            count += 1;
            let asked = ["aec-bench".to_owned()].into_iter().chain(words(&command));
            // A name is left out on purpose where the reader knows it.
            let Err(error) = Arguments::try_parse_from(asked) else { continue };
            let is_known = matches!(
                error.kind(),
                ErrorKind::MissingRequiredArgument
                    | ErrorKind::DisplayHelp
                    | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
            );
            if !is_known {
                let shown = file.strip_prefix(crates).unwrap().display();
                wrong.push(format!("{shown}:{line}: aec-bench {command}: {:?}", error.kind()));
            }
        }
    }
    assert!(count > 80, "{count}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
