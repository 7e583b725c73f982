//! Workspaces with the real git.

use super::skill::Skill;
use super::*;

fn program() -> GitProgram {
    GitProgram::find(std::env::var_os("PATH")).unwrap()
}

fn workspace() -> (tempfile::TempDir, Workspace) {
    let directory = tempfile::tempdir().unwrap();
    let name = Name::parse("test").unwrap();
    let workspace = Workspace::init(program(), &directory.path().join("w"), &name, Harness::Sim).unwrap();
    (directory, workspace)
}

fn with_skill(candidate: &Candidate, name: &str) -> Candidate {
    let mut skills = candidate.skills.clone();
    let skill = Skill { description: "d".to_owned(), discipline: None, body: format!("About {name}.") };
    skills.insert(name.to_owned(), skill);
    candidate.with(&candidate.prompt, &skills)
}

#[test]
fn a_candidate_comes_back_as_it_was_kept() {
    let (_directory, workspace) = workspace();
    let first = workspace.here().unwrap();
    let second = with_skill(&first, "units");
    let third = with_skill(&first, "signs");
    let both = with_skill(&second, "signs");
    let revision = workspace.keep(&second, &[first.id], "adds units").unwrap();
    assert_eq!(workspace.keep(&second, &[], "again").unwrap(), revision, "the first keeping counts");
    workspace.keep(&third, &[first.id], "adds signs").unwrap();
    workspace.keep(&both, &[second.id, third.id], "both").unwrap();
    for candidate in [&first, &second, &third, &both] {
        assert_eq!(workspace.load(candidate.id).unwrap(), *candidate);
    }
    let history = workspace.history().unwrap();
    assert_eq!(history.len(), 4);
    assert_eq!(history[0].candidate, first.id);
    let last = history.last().unwrap();
    assert_eq!((last.candidate, last.parents.clone()), (both.id, vec![second.id, third.id]));
    assert_eq!(last.summary, "both");
    assert!(workspace.load(Digest::of(b"unknown")).unwrap_err()[0].what.contains("not stored here"));
}

#[test]
fn showing_a_candidate_leaves_exactly_its_files() {
    let (_directory, workspace) = workspace();
    let first = workspace.here().unwrap();
    let second = with_skill(&first, "units");
    workspace.keep(&second, &[first.id], "adds units").unwrap();
    workspace.show(&second).unwrap();
    assert_eq!(workspace.here().unwrap(), second);
    // The user adds files; they are a candidate too, and gone when another one is shown.
    fs_err::write(workspace.path().join("notes.txt"), "mine").unwrap();
    let by_hand = workspace.keep_here().unwrap();
    workspace.show(&first).unwrap();
    assert_eq!(workspace.here().unwrap(), first);
    assert!(!workspace.path().join("notes.txt").exists() && !workspace.path().join("skills/units").exists());
    workspace.show(&by_hand).unwrap();
    assert_eq!(fs_err::read_to_string(workspace.path().join("notes.txt")).unwrap(), "mine");
    let status = std::process::Command::new("git")
        .args(["status", "--porcelain"])
        .current_dir(workspace.path())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&status.stdout), "", "git itself sees nothing changed");
}

#[test]
fn what_was_cut_off_is_finished() {
    let (_directory, workspace) = workspace();
    let first = workspace.here().unwrap();
    let second = with_skill(&first, "units");
    workspace.keep(&second, &[first.id], "adds units").unwrap();
    // Killed after the target was recorded: only half of the files were written.
    fs_err::write(workspace.path().join(".git").join(TARGET_FILE), second.id.hex()).unwrap();
    fs_err::create_dir_all(workspace.path().join("skills/half")).unwrap();
    fs_err::write(workspace.path().join("skills/half/SKILL.md"), "---\nname").unwrap();
    let held = workspace.hold().unwrap();
    assert_eq!(workspace.here().unwrap(), second);
    assert!(workspace.hold().unwrap_err()[0].what.contains("in use"));
    drop(held);
    workspace.hold().unwrap();
}

#[test]
fn labels_stick() {
    let (_directory, workspace) = workspace();
    let first = workspace.here().unwrap();
    let second = with_skill(&first, "units");
    workspace.keep(&second, &[first.id], "adds units").unwrap();
    let label = Name::parse("evo-1-0").unwrap();
    workspace.label(&label, first.id).unwrap();
    workspace.label(&label, first.id).unwrap();
    assert!(workspace.label(&label, second.id).unwrap_err().to_string().contains("another candidate"));
    assert_eq!(workspace.find("evo-1-0").unwrap(), first.id);
    assert_eq!(workspace.find(second.name().as_str()).unwrap(), second.id);
    assert_eq!(workspace.find(&second.id.hex()[..6]).unwrap(), second.id);
    for word in ["", "c-", "nothing", "../../etc", "HEAD", "main"] {
        assert!(workspace.find(word).is_err(), "{word}");
    }
}

#[test]
fn hooks_filters_links_and_settings_of_others_are_not_used() {
    let (directory, workspace) = workspace();
    let trap = directory.path().join("trap");
    let hook = format!("#!/bin/sh\ntouch {}\n", trap.display());
    for name in ["pre-commit", "post-checkout", "reference-transaction", "post-index-change"] {
        let path = workspace.path().join(".git/hooks").join(name);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(&path, &hook).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&path, mode).unwrap();
    }
    let filter = format!("[filter \"x\"]\n\tclean = touch {0}\n\tsmudge = touch {0}\n", trap.display());
    fs_err::write(workspace.path().join(".git/config"), filter).unwrap();
    fs_err::write(workspace.path().join(".gitattributes"), "* filter=x\n").unwrap();
    let first = workspace.keep_here().unwrap();
    let second = with_skill(&first, "units");
    workspace.keep(&second, &[first.id], "adds units").unwrap();
    workspace.show(&second).unwrap();
    assert!(!trap.exists());
    std::os::unix::fs::symlink("/etc/passwd", workspace.path().join("link")).unwrap();
    assert!(workspace.here().unwrap_err()[0].what.contains("link"), "links are refused");
}

#[test]
fn a_repository_around_it_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    std::process::Command::new("git").args(["init", "-q"]).current_dir(directory.path()).output().unwrap();
    let name = Name::parse("inner").unwrap();
    let path = directory.path().join("workspaces/inner");
    Workspace::init(program(), &path, &name, Harness::Sim).unwrap();
    assert!(path.join(".git").is_dir());
    fs_err::remove_dir_all(path.join(".git")).unwrap();
    let workspace = Workspace::open(program(), &path).unwrap();
    assert_eq!(workspace.history().unwrap(), [], "reading changes nothing");
    assert!(!path.join(".git").exists());
    let _held = workspace.hold().unwrap();
    workspace.keep_here().unwrap();
    let refs = std::process::Command::new("git")
        .args(["for-each-ref"])
        .current_dir(directory.path())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&refs.stdout), "");
}

#[test]
fn trees_of_their_own_show_what_they_are_told() {
    let (directory, workspace) = workspace();
    let first = workspace.here().unwrap();
    let second = with_skill(&first, "units");
    workspace.keep(&second, &[first.id], "adds units").unwrap();
    let tree = directory.path().join("agent-0");
    workspace.add_tree(&tree).unwrap();
    workspace.add_tree(&tree).unwrap();
    workspace.show_in(&tree, &second).unwrap();
    assert!(tree.join("skills/units/SKILL.md").is_file());
    workspace.show_in(&tree, &first).unwrap();
    assert!(!tree.join("skills/units/SKILL.md").exists());
    assert_eq!(workspace.here().unwrap(), first, "the workspace itself is not touched");
}

#[test]
fn nothing_is_made_where_something_is() {
    let directory = tempfile::tempdir().unwrap();
    fs_err::write(directory.path().join("mine.txt"), "x").unwrap();
    let name = Name::parse("test").unwrap();
    assert!(Workspace::init(program(), directory.path(), &name, Harness::Sim).is_err());
    assert!(Workspace::open(program(), directory.path()).unwrap_err()[0].what.contains("not a workspace"));
    assert_eq!(fs_err::read_to_string(directory.path().join("mine.txt")).unwrap(), "x");
}
