//! The system calls that no command in a room needs.
//!
//! Namespaces and missing privileges already stop most of them. The filter also blocks rarely used parts of the
//! kernel and new namespaces (which would give privileges back), and closes the gaps that namespaces leave: other
//! address families, the memory of other processes, shared System V objects.
//!
//! Two classes of calls are closed as a whole. Calls by which a process changes another one of its user are allowed
//! only on the caller itself, because the first process of an ordinary user's room and a waiting interpreter have the
//! same user as the commands. Calls that take from a pool which the kernel keeps for the whole machine or for a user
//! do not exist, because all rooms of a user share such a pool.

use std::collections::BTreeMap;
use std::io;

use rustix::process::Pid;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    sock_filter,
};

/// Refused with "operation not permitted".
const DENIED: &[libc::c_long] = &[
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_syslog,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    // These objects outlive the processes that made them.
    libc::SYS_shmget,
    libc::SYS_semget,
    libc::SYS_msgget,
    libc::SYS_mq_open,
    // A command must not leave the cores that its room is bound to.
    libc::SYS_sched_setaffinity,
    libc::SYS_process_mrelease,
];

#[cfg(target_arch = "x86_64")]
const DENIED_HERE: &[libc::c_long] = &[libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt];
#[cfg(not(target_arch = "x86_64"))]
const DENIED_HERE: &[libc::c_long] = &[];

/// Calls whose first argument names the process to change; only 0, the caller, is allowed. A number is refused even if
/// it is the caller's own, because a filter does not know it.
const OWN_PROCESS_ONLY: &[libc::c_long] = &[
    libc::SYS_prlimit64,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setattr,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_get_robust_list,
];

/// Calls whose first argument says what the second one names. Only one pair, which means the caller, is allowed.
const OWN_PRIORITY_ONLY: &[(libc::c_long, i32)] =
    &[(libc::SYS_setpriority, PRIO_PROCESS), (libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS)];
const PRIO_PROCESS: i32 = 0;
const IOPRIO_WHO_PROCESS: i32 = 1;

/// Calls that send a signal to the process in their first argument; the room's first process gets none. The kernel
/// already ignores most signals that its children send to it.
const SIGNALS: &[libc::c_long] = &[
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_tgkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
];

/// Calls that do not exist in a room, so that programs use their other way, if they have one.
const HIDDEN: &[libc::c_long] = &[
    // The flags of `clone3` are in memory, which a filter cannot read. Without it the C library falls back to `clone`.
    libc::SYS_clone3,
    // The descriptor in its first argument names a process that a filter cannot see.
    libc::SYS_pidfd_send_signal,
    libc::SYS_process_madvise,
    // The whole machine has `fs.aio-max-nr` events.
    libc::SYS_io_setup,
    // A user has `fs.inotify.max_user_instances`, and the same for fanotify.
    libc::SYS_inotify_init1,
    libc::SYS_fanotify_init,
    // Locked memory that no limit of a room counts.
    libc::SYS_memfd_secret,
];

#[cfg(target_arch = "x86_64")]
const HIDDEN_HERE: &[libc::c_long] = &[libc::SYS_inotify_init];
#[cfg(not(target_arch = "x86_64"))]
const HIDDEN_HERE: &[libc::c_long] = &[];

/// Commands of `fcntl` that act beyond the caller: a lease on a file of the host delays everyone who opens it, and a
/// notification is kept for a directory that all rooms share.
const SHARED_FILE_COMMANDS: &[i32] = &[libc::F_SETLEASE, libc::F_NOTIFY];

/// The operation of `prctl` that makes another process share a core with the caller.
const PR_SCHED_CORE: u64 = 62;

/// The first number of system calls of the x32 interface, which a filter by number would not recognise.
#[cfg(target_arch = "x86_64")]
const X32: u32 = 0x4000_0000;

/// The flags of `clone` that make a namespace.
const NAMESPACE_FLAGS: u64 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u64;

/// Address families that programs use; all others, such as netlink and vsock, are refused.
const FAMILIES: &[i32] = &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6];

/// The filters, in the order in which they must be installed.
pub(crate) fn programs() -> io::Result<Vec<BpfProgram>> {
    programs_hiding(&[])
}

/// The filters for rooms in which only the memory of each process is counted: nothing would count the memory of files
/// without a name.
pub(crate) fn programs_without_nameless_files() -> io::Result<Vec<BpfProgram>> {
    programs_hiding(&[libc::SYS_memfd_create])
}

fn programs_hiding(also: &[libc::c_long]) -> io::Result<Vec<BpfProgram>> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for call in DENIED.iter().chain(DENIED_HERE) {
        rules.insert(*call, Vec::new());
    }
    let namespaces = (0..64).map(|bit| 1_u64 << bit).filter(|flag| NAMESPACE_FLAGS & flag != 0);
    let mut clone_rules = Vec::new();
    for flag in namespaces {
        clone_rules.push(rule(vec![(0, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(flag), flag)])?);
    }
    rules.insert(libc::SYS_clone, clone_rules);
    let other_family = FAMILIES.iter().map(|family| is_not(0, *family)).collect();
    rules.insert(libc::SYS_socket, vec![rule(other_family)?]);
    for call in OWN_PROCESS_ONLY {
        rules.insert(*call, vec![rule(vec![is_not(0, 0)])?]);
    }
    for (call, process) in OWN_PRIORITY_ONLY {
        rules.insert(*call, vec![rule(vec![is_not(0, *process)])?, rule(vec![is_not(1, 0)])?]);
    }
    for call in SIGNALS {
        let first = Pid::INIT.as_raw_nonzero().get().unsigned_abs().into();
        rules.insert(*call, vec![rule(vec![(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, first)])?]);
    }
    let mut file_rules = Vec::new();
    for command in SHARED_FILE_COMMANDS {
        let command = command.unsigned_abs().into();
        file_rules.push(rule(vec![(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, command)])?);
    }
    rules.insert(libc::SYS_fcntl, file_rules);
    let core = rule(vec![(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, PR_SCHED_CORE)])?;
    rules.insert(libc::SYS_prctl, vec![core]);
    let denied = compile(rules, refuse(libc::EPERM))?;
    let hidden = HIDDEN.iter().chain(HIDDEN_HERE).chain(also).map(|call| (*call, Vec::new())).collect();
    let mut hiding = other_interfaces();
    hiding.extend(compile(hidden, refuse(libc::ENOSYS))?);
    Ok(vec![denied, hiding])
}

/// A filter, as the kernel takes it, that ends the process as soon as it starts another one. Threads are allowed. The
/// filter is for programs that install it in a fork of themselves.
pub fn without_children() -> io::Result<Vec<u8>> {
    let thread = u64::from(libc::CLONE_THREAD.unsigned_abs());
    let starts = rule(vec![(0, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(thread), 0)])?;
    let mut rules = BTreeMap::from([(libc::SYS_clone, vec![starts])]);
    #[cfg(target_arch = "x86_64")]
    rules.extend([(libc::SYS_fork, Vec::new()), (libc::SYS_vfork, Vec::new())]);
    let mut program = other_interfaces();
    program.extend(without_clone3());
    program.extend(compile(rules, SeccompAction::KillProcess)?);
    let bytes = |one: &sock_filter| {
        let (code, value) = (one.code.to_ne_bytes(), one.k.to_ne_bytes());
        [&code[..], &[one.jt, one.jf], &value].concat()
    };
    Ok(program.iter().flat_map(bytes).collect())
}

// Instructions of filters.
const LOAD_WORD: u16 = 0x20;
const JUMP_IF_AT_LEAST: u16 = 0x35;
const JUMP_IF_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;
/// The answer of a call that does not exist.
const NOT_THERE: u32 = 0x0005_0000 | libc::ENOSYS.unsigned_abs();

/// The beginning of a program, which hides `clone3`: its flags lie in memory, where no filter sees them. The C library
/// then starts threads with `clone`.
fn without_clone3() -> BpfProgram {
    vec![
        sock_filter { code: LOAD_WORD, jt: 0, jf: 0, k: 0 },
        sock_filter {
            code: JUMP_IF_EQUAL,
            jt: 0,
            jf: 1,
            k: u32::try_from(libc::SYS_clone3).unwrap_or(u32::MAX),
        },
        sock_filter { code: RETURN, jt: 0, jf: 0, k: NOT_THERE },
    ]
}

/// The beginning of a program, which hides the system calls of another interface to the same kernel.
#[cfg(target_arch = "x86_64")]
fn other_interfaces() -> BpfProgram {
    // Load the number of the call; if it is of that interface, the call does not exist.
    vec![
        sock_filter { code: LOAD_WORD, jt: 0, jf: 0, k: 0 },
        sock_filter { code: JUMP_IF_AT_LEAST, jt: 0, jf: 1, k: X32 },
        sock_filter { code: RETURN, jt: 0, jf: 0, k: NOT_THERE },
    ]
}

#[cfg(not(target_arch = "x86_64"))]
fn other_interfaces() -> BpfProgram {
    Vec::new()
}

/// Installs the filters for this process and all its future children.
pub(crate) fn install(programs: &[BpfProgram]) -> io::Result<()> {
    for program in programs {
        seccompiler::apply_filter(program).map_err(io::Error::other)?;
    }
    Ok(())
}

type Condition = (u8, SeccompCmpArgLen, SeccompCmpOp, u64);

/// That an argument, of which the kernel reads 32 bits, is another number.
fn is_not(argument: u8, number: i32) -> Condition {
    (argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, number.unsigned_abs().into())
}

fn rule(conditions: Vec<Condition>) -> io::Result<SeccompRule> {
    let conditions = conditions
        .into_iter()
        .map(|(argument, length, operator, value)| SeccompCondition::new(argument, length, operator, value))
        .collect::<Result<Vec<_>, _>>()
        .map_err(io::Error::other)?;
    SeccompRule::new(conditions).map_err(io::Error::other)
}

fn refuse(errno: i32) -> SeccompAction {
    SeccompAction::Errno(errno.unsigned_abs())
}

fn compile(rules: BTreeMap<i64, Vec<SeccompRule>>, action: SeccompAction) -> io::Result<BpfProgram> {
    let architecture = std::env::consts::ARCH.try_into().map_err(io::Error::other)?;
    let filter =
        SeccompFilter::new(rules, SeccompAction::Allow, action, architecture).map_err(io::Error::other)?;
    filter.try_into().map_err(io::Error::other)
}
