//! The system calls that no command in a room needs.
//!
//! Namespaces and missing privileges already stop most of them. The filter also blocks rarely used parts of the
//! kernel and new namespaces (which would give privileges back), and closes the gaps that namespaces leave: other
//! address families, the memory of other processes, shared System V objects.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
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
];

#[cfg(target_arch = "x86_64")]
const DENIED_HERE: &[libc::c_long] = &[libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt];
#[cfg(not(target_arch = "x86_64"))]
const DENIED_HERE: &[libc::c_long] = &[];

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
    let other_family: Vec<_> = FAMILIES
        .iter()
        .map(|family| (0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, family.unsigned_abs().into()))
        .collect();
    rules.insert(libc::SYS_socket, vec![rule(other_family)?]);
    let denied = compile(rules, libc::EPERM)?;
    // The flags of `clone3` are in memory, which a filter cannot read. Without it the C library falls back to
    // `clone`.
    let hidden = compile(BTreeMap::from([(libc::SYS_clone3, Vec::new())]), libc::ENOSYS)?;
    Ok(vec![denied, hidden])
}

/// Installs the filters for this process and all its future children.
pub(crate) fn install(programs: &[BpfProgram]) -> io::Result<()> {
    for program in programs {
        seccompiler::apply_filter(program).map_err(io::Error::other)?;
    }
    Ok(())
}

fn rule(conditions: Vec<(u8, SeccompCmpArgLen, SeccompCmpOp, u64)>) -> io::Result<SeccompRule> {
    let conditions = conditions
        .into_iter()
        .map(|(argument, length, operator, value)| SeccompCondition::new(argument, length, operator, value))
        .collect::<Result<Vec<_>, _>>()
        .map_err(io::Error::other)?;
    SeccompRule::new(conditions).map_err(io::Error::other)
}

fn compile(rules: BTreeMap<i64, Vec<SeccompRule>>, errno: i32) -> io::Result<BpfProgram> {
    let architecture = std::env::consts::ARCH.try_into().map_err(io::Error::other)?;
    let refuse = SeccompAction::Errno(errno.unsigned_abs());
    let filter =
        SeccompFilter::new(rules, SeccompAction::Allow, refuse, architecture).map_err(io::Error::other)?;
    filter.try_into().map_err(io::Error::other)
}
