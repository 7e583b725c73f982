//! The filter of system calls in a form that other programs can install: the instructions of the kernel, for every
//! processor that packages support.
//!
//! There is one list of what is refused ([`crate::filter`]). It is compiled for the processor of this machine; for others,
//! the numbers of the calls in the compiled filter are replaced.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{BpfProgram, sock_filter};

use crate::filter;

/// A processor: its name as `uname -m` says it, what a filter sees of it, and its column of [`NUMBERS`].
struct Processor {
    name: &'static str,
    audited_as: u32,
    number: fn(&(u32, u32)) -> u32,
}

const PROCESSORS: [Processor; 2] = [
    Processor { name: "x86_64", audited_as: 0xC000_003E, number: |row| row.0 },
    Processor { name: "aarch64", audited_as: 0xC000_00B7, number: |row| row.1 },
];
/// The number of a call that a processor does not have.
const NOT_THERE: u32 = u32::MAX;
/// From this number on, calls have the same number everywhere.
const COMMON: u32 = 424;
/// Calls before that, on `x86_64` and on `aarch64`.
#[rustfmt::skip]
const NUMBERS: &[(u32, u32)] = &[
    (29, 194), // shmget
    (41, 198), // socket
    (56, 220), // clone
    (57, NOT_THERE), // fork
    (58, NOT_THERE), // vfork
    (62, 129), // kill
    (64, 190), // semget
    (68, 186), // msgget
    (72, 25), // fcntl
    (73, 32), // flock
    (101, 117), // ptrace
    (103, 116), // syslog
    (129, 138), // rt_sigqueueinfo
    (135, 92), // personality
    (141, 140), // setpriority
    (142, 118), // sched_setparam
    (144, 119), // sched_setscheduler
    (153, 58), // vhangup
    (154, NOT_THERE), // modify_ldt
    (155, 41), // pivot_root
    (157, 167), // prctl
    (159, 171), // adjtimex
    (160, 164), // setrlimit
    (161, 51), // chroot
    (163, 89), // acct
    (164, 170), // settimeofday
    (165, 40), // mount
    (166, 39), // umount2
    (167, 224), // swapon
    (168, 225), // swapoff
    (169, 142), // reboot
    (170, 161), // sethostname
    (171, 162), // setdomainname
    (172, NOT_THERE), // iopl
    (173, NOT_THERE), // ioperm
    (175, 105), // init_module
    (176, 106), // delete_module
    (179, 60), // quotactl
    (200, 130), // tkill
    (203, 122), // sched_setaffinity
    (206, 0), // io_setup
    (207, 1), // io_destroy
    (209, 2), // io_submit
    (212, 18), // lookup_dcookie
    (227, 112), // clock_settime
    (234, 131), // tgkill
    (237, 235), // mbind
    (238, 237), // set_mempolicy
    (240, 180), // mq_open
    (246, 104), // kexec_load
    (248, 217), // add_key
    (249, 218), // request_key
    (250, 219), // keyctl
    (251, 30), // ioprio_set
    (253, NOT_THERE), // inotify_init
    (254, 27), // inotify_add_watch
    (256, 238), // migrate_pages
    (272, 97), // unshare
    (274, 100), // get_robust_list
    (279, 239), // move_pages
    (294, 26), // inotify_init1
    (297, 240), // rt_tgsigqueueinfo
    (298, 241), // perf_event_open
    (300, 262), // fanotify_init
    (301, 263), // fanotify_mark
    (302, 261), // prlimit64
    (303, 264), // name_to_handle_at
    (304, 265), // open_by_handle_at
    (305, 266), // clock_adjtime
    (308, 268), // setns
    (310, 270), // process_vm_readv
    (311, 271), // process_vm_writev
    (312, 272), // kcmp
    (313, 273), // finit_module
    (314, 274), // sched_setattr
    (317, 277), // seccomp
    (319, 279), // memfd_create
    (320, 294), // kexec_file_load
    (321, 280), // bpf
    (323, 282), // userfaultfd
];

/// Instructions that the compiler uses, and the places of the number and of the processor in what a filter sees.
const LOAD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP: u16 = 0x05;
const NUMBER: u32 = 0;
const PROCESSOR: u32 = 4;

/// By the name of a processor, the filters in the order in which they are installed, as bytes of the kernel's form.
pub fn portable_filters() -> io::Result<BTreeMap<&'static str, Vec<Vec<u8>>>> {
    let here = filter::programs_without_nameless_files()?;
    let own = PROCESSORS.iter().find(|processor| processor.name == std::env::consts::ARCH);
    let own = own.ok_or_else(|| io::Error::other("packages have no filter for this processor"))?;
    let of = |processor: &Processor| {
        let programs = here.iter().map(|program| Ok(bytes(&translated(program, own, processor)?)));
        Ok((processor.name, programs.collect::<io::Result<Vec<_>>>()?))
    };
    PROCESSORS.iter().map(of).collect()
}

/// A compiled filter for another processor. The compiler compares the number of the call with one number after the other;
/// behind each comparison it says how far the next one is away.
fn translated(program: &[sock_filter], from: &Processor, to: &Processor) -> io::Result<BpfProgram> {
    let odd = || io::Error::other("the filter of system calls has another form than expected");
    let mut program = program.to_vec();
    let begin = program.iter().position(|one| (one.code, one.k) == (LOAD, PROCESSOR)).ok_or_else(odd)?;
    let compared = program.get_mut(begin + 1).filter(|one| one.k == from.audited_as).ok_or_else(odd)?;
    compared.k = to.audited_as;
    if program.get(begin + 3).map(|one| (one.code, one.k)) != Some((LOAD, NUMBER)) {
        return Err(odd());
    }
    let mut at = begin + 4;
    while let Some(one) = program.get_mut(at).filter(|one| one.code == JUMP_IF_EQUAL) {
        one.k = number(one.k, from, to)?;
        // Where the number is another one, a jump for each rule of the call leads past it.
        at += 2;
        while let Some(jump) = program.get(at).filter(|one| one.code == JUMP) {
            at += 1 + usize::try_from(jump.k).map_err(io::Error::other)?;
        }
    }
    if at + 1 == program.len() { Ok(program) } else { Err(odd()) }
}

fn number(number: u32, from: &Processor, to: &Processor) -> io::Result<u32> {
    if number >= COMMON {
        return Ok(number);
    }
    let row = NUMBERS.iter().find(|row| (from.number)(row) == number);
    let row =
        row.ok_or_else(|| io::Error::other(format!("system call {number} is not in the table of numbers")))?;
    Ok((to.number)(row))
}

fn bytes(program: &[sock_filter]) -> Vec<u8> {
    let one = |one: &sock_filter| {
        let mut bytes = one.code.to_le_bytes().to_vec();
        bytes.extend([one.jt, one.jf]);
        bytes.extend(one.k.to_le_bytes());
        bytes
    };
    program.iter().flat_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_of_the_filter_has_a_number_on_every_processor() {
        let filters = portable_filters().unwrap();
        assert_eq!(filters.keys().copied().collect::<Vec<_>>(), ["aarch64", "x86_64"]);
        let here = filter::programs_without_nameless_files().unwrap();
        for (name, programs) in &filters {
            assert_eq!(programs.len(), here.len());
            for (program, own) in programs.iter().zip(&here) {
                assert_eq!(
                    (program.len(), program == &bytes(own)),
                    (own.len() * 8, *name == std::env::consts::ARCH)
                );
            }
        }
    }

    /// What a filter decides on a call, as the kernel would run it.
    fn decision(program: &[sock_filter], processor: u32, number: u32, arguments: [u64; 6]) -> u32 {
        let mut seen = [number, processor, 0, 0].to_vec();
        let halves = |one: &u64| [(one & 0xFFFF_FFFF) as u32, (one >> 32) as u32];
        seen.extend(arguments.iter().flat_map(halves));
        let (mut at, mut value) = (0, 0);
        loop {
            let one = &program[at];
            let jump = |taken: bool| usize::from(if taken { one.jt } else { one.jf });
            at += 1;
            match one.code {
                LOAD => value = seen[one.k as usize / 4],
                JUMP => at += one.k as usize,
                JUMP_IF_EQUAL => at += jump(value == one.k),
                0x25 => at += jump(value > one.k),
                0x35 => at += jump(value >= one.k),
                0x54 => value &= one.k,
                0x06 => return one.k,
                other => panic!("an instruction that no filter has: {other:#x}"),
            }
        }
    }

    #[test]
    fn a_filter_decides_the_same_on_every_processor() {
        let own = PROCESSORS.iter().find(|one| one.name == std::env::consts::ARCH).unwrap();
        let mut refused = 0;
        for (program, processor) in filter::programs_without_nameless_files()
            .unwrap()
            .iter()
            .flat_map(|one| PROCESSORS.iter().map(move |to| (one, to)))
        {
            let there = translated(program, own, processor).unwrap();
            let common = (COMMON..470).map(|number| (number, number));
            for (x86, arm) in NUMBERS.iter().copied().chain(common) {
                for first in [0, 1, 2, 16, u64::from(libc::CLONE_NEWUSER.unsigned_abs())] {
                    let pair = |of: &Processor| (of.number)(&(x86, arm));
                    let here = decision(program, own.audited_as, pair(own), [first; 6]);
                    let other = decision(&there, processor.audited_as, pair(processor), [first; 6]);
                    // Several calls that a processor does not have share a number there.
                    assert!(
                        here == other || pair(processor) == NOT_THERE,
                        "{x86} {} {first}",
                        processor.name
                    );
                    refused += usize::from(other != libc::SECCOMP_RET_ALLOW);
                }
            }
            assert_eq!(decision(&there, processor.audited_as, 0x0FFF_FFFF, [0; 6]), libc::SECCOMP_RET_ALLOW);
            assert_eq!(decision(&there, 1, 0, [0; 6]), libc::SECCOMP_RET_KILL_PROCESS);
        }
        assert!(refused > 400, "{refused}");
    }

    #[test]
    fn numbers_are_those_of_the_kernel() {
        let column = |row: &(u32, u32)| if cfg!(target_arch = "x86_64") { row.0 } else { row.1 };
        for (known, other) in [
            (libc::SYS_keyctl, (250, 219)),
            (libc::SYS_mount, (165, 40)),
            (libc::SYS_ptrace, (101, 117)),
            (libc::SYS_unshare, (272, 97)),
            (libc::SYS_clone, (56, 220)),
            (libc::SYS_socket, (41, 198)),
        ] {
            assert!(NUMBERS.contains(&other), "{other:?}");
            assert_eq!(i64::from(column(&other)), known);
        }
        let (x86, arm) = (&PROCESSORS[0], &PROCESSORS[1]);
        assert_eq!(number(172, x86, arm).unwrap(), NOT_THERE, "iopl");
        assert_eq!(number(435, x86, arm).unwrap(), 435, "clone3");
        assert!(number(423, x86, arm).is_err());
    }
}
