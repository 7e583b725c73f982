//! This test program, run once more to write rows until it is killed or the disk refuses. After each flush it prints
//! how many rows are on the disk.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use aec_base::problem::Problem;
use aec_eval::results::resume;
use aec_eval::results::writer::ResultsWriter;

use super::support::{description, ready, row};

/// Names the directory of the run; without it the test below does nothing.
const VARIABLE: &str = "AEC_TEST_WRITE_ROWS";

/// The command that writes rows into a directory.
pub(crate) fn command(run: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(ARGUMENTS).env(VARIABLE, run);
    command
}

/// Arguments that make this program run only that test.
pub(crate) const ARGUMENTS: [&str; 4] = [
    "--exact",
    "results::write_rows::rows_are_written_until_somebody_stops_it",
    "--nocapture",
    "--include-ignored",
];

#[test]
#[ignore = "tests of kills and full disks start it"]
fn rows_are_written_until_somebody_stops_it() {
    let run = std::env::var_os(VARIABLE).unwrap();
    if let Err(problem) = write(Path::new(&run)) {
        writeln!(std::io::stdout(), "failed {} {problem}", problem.id.as_deref().unwrap_or("?")).unwrap();
        panic!("the disk refuses");
    }
}

fn write(run: &Path) -> Result<(), Problem> {
    let (writer, present) = if run.join("results.jsonl").exists() {
        let open = resume::open(run, None)?;
        let present = open.present.len();
        (ResultsWriter::resume(open, description(100_000, 1))?, present)
    } else {
        (ResultsWriter::create(run, description(100_000, 1))?, 0)
    };
    for example in present..100_000 {
        let mut row = row(i64::try_from(example).unwrap_or_default(), 0, 1.0);
        row.answer = Some("long ".repeat(example * 37 % 2000).into());
        writer.write(ready(&row))?;
        if example % 3 == 0 {
            writer.flush()?;
            if writeln!(std::io::stdout(), "synced {}", example + 1).is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}
