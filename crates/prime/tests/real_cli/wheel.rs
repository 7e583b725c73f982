//! The wheel in a real Python.

use std::path::Path;
use std::process::Command;

use aec_prime::service::hub::Package;

use crate::real_cli::compare::write_package;
use aec_xtest::venv;

/// Imports the package and compares the installed files with the record of the wheel.
const CHECK: &str = r##"
import base64, hashlib, importlib.metadata as metadata
import aec_demo
assert aec_demo.load_environment() == "loaded"
distribution = metadata.distribution("aec-demo")
assert distribution.version == "0.1.0", distribution.version
assert distribution.requires == ["datasets>=4.0", "verifiers>=0.1.14"], distribution.requires
assert "ünïcode" in distribution.metadata["Summary"]
assert "# Demo" in distribution.metadata.get_payload()
checked = 0
for file in distribution.files:
    if file.hash:
        digest = hashlib.sha256(file.locate().read_bytes()).digest()
        assert file.hash.value == base64.urlsafe_b64encode(digest).rstrip(b"=").decode(), file
        checked += 1
print(checked)
"##;

#[test]
fn pip_installs_the_wheel() {
    let environment = venv::directory().join("wheel");
    venv::make(&environment).unwrap();
    let directory = tempfile::tempdir().unwrap();
    write_package(directory.path());
    let package = Package::build(directory.path()).unwrap();
    let wheel = directory.path().join(&package.wheel_name);
    std::fs::write(&wheel, &package.wheel).unwrap();
    let python = environment.join("bin/python");
    let pip = ["-m", "pip", "install", "--quiet", "--no-index", "--no-deps"];
    venv::run(Command::new(&python).args(pip).arg(&wheel)).unwrap();
    let checked = venv::run(Command::new(&python).args(["-c", CHECK]).current_dir(Path::new("/"))).unwrap();
    assert!(checked.trim().parse::<u32>().unwrap() >= 6, "{checked}");
    let files = venv::run(Command::new(&python).args(["-m", "pip", "show", "-f", "aec-demo"])).unwrap();
    assert!(
        files.contains("aec_demo/tasks/build/input.txt") && files.contains("aec_demo/.hidden"),
        "{files}"
    );
    venv::run(Command::new(&python).args(["-m", "zipfile", "-t"]).arg(&wheel)).unwrap();
}
