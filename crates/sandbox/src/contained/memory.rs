//! Memory use of a room that is a container, as its first process sees it. The room's files count as memory too.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::time::{Duration, Instant};

/// Time between two checks if the kernel reports nothing.
const PAUSE: Duration = Duration::from_millis(50);
/// Files that count the processes killed for lack of memory.
const EVENTS: [&str; 2] = ["/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"];
/// Files with the kinds of memory use, and with the limit.
const USES: [(&str, &str); 2] = [
    ("/sys/fs/cgroup/memory.stat", "/sys/fs/cgroup/memory.max"),
    ("/sys/fs/cgroup/memory/memory.stat", "/sys/fs/cgroup/memory/memory.limit_in_bytes"),
];
/// Memory that the kernel cannot reclaim, unlike caches of files. The names differ between kernels.
const LASTING: [&str; 5] = ["anon ", "rss ", "shmem ", "slab_unreclaimable ", "pagetables "];

/// Watches the memory while the room is open.
#[derive(Debug)]
pub(super) struct Watch {
    /// The file through which the kernel reports killed processes at once.
    events: Option<File>,
    looked: Instant,
    short: bool,
}

impl Watch {
    pub(super) fn begin() -> Self {
        let mut watch = Self { events: File::open(EVENTS[0]).ok(), looked: Instant::now(), short: false };
        watch.hear();
        watch
    }

    /// The file to poll.
    pub(super) fn events(&self) -> Option<&File> {
        self.events.as_ref()
    }

    /// Whether memory is short now; `None` if that has not changed.
    pub(super) fn look(&mut self, news: bool) -> Option<bool> {
        if !news && self.looked.elapsed() < PAUSE {
            return None;
        }
        if news {
            self.hear();
        }
        self.looked = Instant::now();
        let short = is_short();
        (std::mem::replace(&mut self.short, short) != short).then_some(short)
    }

    /// Reads the events; the kernel reports the next one only afterwards.
    fn hear(&mut self) {
        if let Some(events) = &mut self.events {
            events.rewind().ok();
            events.read_to_end(&mut Vec::new()).ok();
        }
    }
}

/// Whether the kernel killed a process for lack of memory.
pub(super) fn ran_out() -> bool {
    EVENTS.iter().filter_map(|path| std::fs::read_to_string(path).ok()).any(|text| {
        text.lines()
            .filter_map(|line| line.strip_prefix("oom_kill "))
            .any(|count| count.trim().parse().unwrap_or(0) > 0)
    })
}

/// Whether less than an eighth of the memory is left.
fn is_short() -> bool {
    USES.iter().any(|(uses, most)| {
        let (Ok(uses), Ok(most)) = (std::fs::read_to_string(uses), std::fs::read_to_string(most)) else {
            return false;
        };
        let Ok(most) = most.trim().parse::<u64>() else { return false };
        lasting(&uses) > most - most / 8
    })
}

fn lasting(uses: &str) -> u64 {
    let number = |line: &str| {
        LASTING.iter().find_map(|name| line.strip_prefix(name)).and_then(|number| number.trim().parse().ok())
    };
    uses.lines().filter_map(number).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_are_no_burden() {
        let uses =
            "anon 100\nfile 5000\nkernel 70\nshmem 300\nslab_unreclaimable 20\npagetables 5\nanon_thp 9\n";
        assert_eq!(lasting(uses), 425);
        assert_eq!(lasting("cache 900\nrss 30\nrss_huge 7\nshmem 4\n"), 34);
        assert_eq!(lasting("anon much\n"), 0);
    }
}
