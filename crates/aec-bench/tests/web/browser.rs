//! The pages in a real browser, driven by `browser.py`.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use aec_sandbox::python;
use aec_xtest::{cannot, lock};

use crate::web::world::{Project, SlowRun, Web};

/// Names of Chromium's program.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file())
}

/// The browser of this machine. Its tests need the part `chromium`.
pub(crate) fn chromium() -> PathBuf {
    let found = BROWSERS.iter().find_map(|name| on_path(name));
    found.unwrap_or_else(|| {
        cannot("find Chromium", "chromium", &format!("none of {} is on PATH", BROWSERS.join(", ")))
    })
}

/// A Python with the packages that the scripts need. Its tests need the part `packages`.
pub(crate) fn interpreter() -> PathBuf {
    // Two tests must not install it at the same time.
    let _making = lock::hold("browser-venv");
    make_interpreter().unwrap_or_else(|why| cannot("install playwright", "packages", &why))
}

/// Installs it once, in the target directory.
fn make_interpreter() -> Result<PathBuf, String> {
    let requirements = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/web/requirements.txt");
    let wanted = std::fs::read_to_string(&requirements).unwrap();
    let venv = Path::new(env!("CARGO_TARGET_TMPDIR")).join("browser-venv");
    let (program, made) = (venv.join("bin/python"), venv.join("made-from.txt"));
    if std::fs::read_to_string(&made).is_ok_and(|made| made == wanted) {
        return Ok(program);
    }
    let python = python::find(std::env::var_os("PATH").as_deref()).ok_or("there is no Python on PATH")?;
    let run = |command: &mut Command| {
        let done = command.output().map_err(|error| error.to_string())?;
        if done.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&done.stderr).into_owned()) }
    };
    run(Command::new(&python.path).args(["-m", "venv", "--clear"]).arg(&venv))?;
    run(Command::new(&program).args(["-m", "pip", "install", "--quiet", "-r"]).arg(&requirements))?;
    std::fs::write(&made, wanted).unwrap();
    Ok(program)
}

#[test]
#[cfg_attr(
    not(all(chromium, packages)),
    ignore = "needs Chromium and the Python package index: apt-get install chromium"
)]
fn the_pages_work_in_a_browser() {
    let (browser, python) = (chromium(), interpreter());
    let project = Project::hostile();
    let web = Web::start(&project);
    let run = SlowRun::start(&project);
    let pictures = Path::new(env!("CARGO_TARGET_TMPDIR")).join("browser-pictures");
    let mut script = Command::new(python)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/web/browser.py"))
        .args([web.url().as_str(), browser.to_str().unwrap(), pictures.to_str().unwrap()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(script.stdout.take().unwrap()).lines();
    let waits = said.by_ref().map_while(Result::ok).any(|line| line == "the attempt may end");
    if waits {
        run.finish();
    }
    let done = script.wait_with_output().unwrap();
    assert!(waits && done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}
