//! Processes of this machine, by number and time of start: the same number may mean another process later.

use rustix::process::{Pid, test_kill_process};

/// A process, so named that no later process has the same name until the machine starts again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessName {
    pub pid: u32,
    /// When it started, in ticks of the kernel's clock; 0 if the kernel does not tell.
    pub start: u64,
}

impl ProcessName {
    /// This process.
    pub fn ours() -> Self {
        let pid = std::process::id();
        Self { pid, start: start_of(pid).unwrap_or(0) }
    }

    /// Whether this very process still runs. In doubt it does.
    pub fn is_running(self) -> bool {
        let is_another = || self.start != 0 && start_of(self.pid).is_some_and(|start| start != self.start);
        is_running(&self.pid.to_string()) && !is_another()
    }
}

/// When a process started; `None` if it has ended or if `/proc` hides it.
fn start_of(pid: u32) -> Option<u64> {
    let status = fs_err::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program, in brackets, may hold blanks and brackets. The state, which comes next, is field 3.
    status.rsplit_once(") ")?.1.split(' ').nth(19)?.parse().ok()
}

/// Whether a process of this machine still runs. A text that is not a number is not a process.
pub fn is_running(pid: &str) -> bool {
    let Some(pid) = pid.parse().ok().filter(|pid| *pid > 0).and_then(Pid::from_raw) else { return false };
    // `/proc` may hide processes of other users, but this call finds them.
    if test_kill_process(pid) == Err(rustix::io::Errno::SRCH) {
        return false;
    }
    // A zombie stays until its parent collects it.
    let status = fs_err::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !status.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with('Z'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_that_have_ended_do_not_run() {
        assert!(is_running(&std::process::id().to_string()));
        assert!(is_running("1"), "a process of another user");
        for odd in ["", "0", "-1", "x", "4194305", "99999999999"] {
            assert!(!is_running(odd), "{odd}");
        }
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = Pid::from_child(&child);
        rustix::process::waitid(
            rustix::process::WaitId::Pid(pid),
            rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT,
        )
        .unwrap();
        assert!(!is_running(&pid.as_raw_nonzero().to_string()), "its parent has not collected it yet");
        child.wait().unwrap();
        assert!(!is_running(&pid.as_raw_nonzero().to_string()));
    }

    #[test]
    fn a_later_process_with_the_same_number_is_another_one() {
        let ours = ProcessName::ours();
        assert!(ours.start > 0 && ours.is_running());
        assert!(!ProcessName { start: ours.start - 1, ..ours }.is_running());
        assert!(ProcessName { start: 0, ..ours }.is_running(), "in doubt it runs");
    }
}
