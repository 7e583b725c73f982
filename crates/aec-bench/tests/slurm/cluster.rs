//! A real Slurm cluster on this machine: munged, slurmctld and four slurmd, in a separate directory and on free ports.
//!
//! Each daemon runs below a shell that waits for the end of its input, so no daemon outlives the tests.

use std::fmt::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// A cluster. It is stopped when it is dropped.
pub(crate) struct Cluster {
    directory: tempfile::TempDir,
    daemons: Vec<(String, Child)>,
}

/// Processors of each node.
pub(crate) const CPUS: u32 = 8;

impl Cluster {
    /// Starts a cluster. Its tests need the part `slurm`.
    pub(crate) fn start() -> Self {
        // Another process may take a port after it was found free.
        let started = (0..3).find_map(|_| Self::try_start());
        started.unwrap_or_else(|| {
            aec_xtest::cannot("start a Slurm cluster", "slurm", "its nodes did not become idle, three times")
        })
    }

    fn try_start() -> Option<Self> {
        let directory = tempfile::Builder::new().prefix("aec-slurm-").tempdir().unwrap();
        let mut cluster = Self { directory, daemons: Vec::new() };
        let root = cluster.directory.path().to_path_buf();
        std::fs::set_permissions(&root, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        for name in ["state", "log", "n1", "n2", "n3", "n4"] {
            std::fs::create_dir(root.join(name)).unwrap();
        }
        let key = root.join("munge.key");
        let random: Vec<u8> =
            std::iter::repeat_with(|| *tempfile_bytes().first().unwrap()).take(128).collect();
        std::fs::write(&key, random).unwrap();
        std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o400)).unwrap();
        std::fs::write(root.join("slurm.conf"), configuration(&root)).unwrap();
        let at = |name: &str| root.join(name).to_string_lossy().into_owned();
        cluster.daemon(
            "munged",
            &format!(
                "/usr/sbin/munged --foreground --force --num-threads=2 --key-file={} --socket={} --pid-file={} \
                 --log-file={} --seed-file={}",
                at("munge.key"),
                at("munge.sock"),
                at("munged.pid"),
                at("log/munged.log"),
                at("munge.seed")
            ),
        );
        wait_until("munged is there", || root.join("munge.sock").exists());
        cluster.daemon("slurmctld", &format!("/usr/sbin/slurmctld -D -c -f {}", at("slurm.conf")));
        for node in ["n1", "n2", "n3", "n4"] {
            cluster.daemon(node, &format!("/usr/sbin/slurmd -D -N {node} -f {}", at("slurm.conf")));
        }
        let deadline = Instant::now() + Duration::from_secs(20);
        while Instant::now() < deadline {
            if cluster
                .tell("sinfo", &["-h", "-N", "-o", "%N:%T"])
                .lines()
                .filter(|line| line.ends_with("idle"))
                .count()
                == 4
            {
                return Some(cluster);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        None
    }

    /// Runs a daemon in the foreground until the input of its shell ends.
    fn daemon(&mut self, name: &str, line: &str) {
        let log = self.directory.path().join("log").join(format!("{name}.out"));
        let script = format!(
            "{line} </dev/null >{} 2>&1 & echo $!; read -r _; kill $! 2>/dev/null; wait",
            log.display()
        );
        let child = Command::new("sh")
            .args(["-c", &script])
            .env("SLURM_CONF", self.config())
            .stdin(Stdio::piped())
            .stdout(std::fs::File::create(self.directory.path().join(format!("{name}.pid-of"))).unwrap())
            .spawn()
            .unwrap();
        self.daemons.push((name.to_owned(), child));
    }

    /// The configuration file for Slurm's programs.
    pub(crate) fn config(&self) -> PathBuf {
        self.directory.path().join("slurm.conf")
    }

    /// The output of a Slurm program.
    pub(crate) fn tell(&self, program: &str, arguments: &[&str]) -> String {
        let output = Command::new(program).args(arguments).env("SLURM_CONF", self.config()).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Kills a node as a power failure would: its daemon, the steps of its jobs and all their descendants.
    pub(crate) fn kill_node(&self, node: &str) {
        let daemon = std::fs::read_to_string(self.directory.path().join(format!("{node}.pid-of"))).unwrap();
        let mut victims = vec![daemon.trim().parse().unwrap()];
        for job in self.tell("squeue", &["-h", "-w", node, "-o", "%A"]).lines() {
            for pid in processes() {
                if command_line(pid).starts_with(&format!("slurmstepd: [{job}."))
                    && spool_is(pid, &self.directory.path().join(node))
                {
                    victims.push(pid);
                }
            }
        }
        let mut all = Vec::new();
        while let Some(pid) = victims.pop() {
            victims.extend(children(pid));
            all.push(pid);
        }
        for pid in all {
            kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).ok();
        }
    }

    pub(crate) fn wait_until_idle(&self) {
        wait_until("the queue is empty", || {
            // An error means that the controller is too busy to answer, not that the queue is empty.
            let listed = Command::new("squeue").arg("-h").env("SLURM_CONF", self.config()).output().unwrap();
            listed.status.success() && listed.stdout.trim_ascii().is_empty()
        });
    }

    /// Waits until this many parts of an array are running.
    pub(crate) fn wait_until_running(&self, job: &str, parts: usize) {
        wait_until("every part is under way", || {
            self.tell("squeue", &["-h", "-r", "-t", "R", "-j", job]).lines().count() == parts
        });
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if self.daemons.len() > 2 {
            self.tell("scancel", &["--user=root"]);
            let deadline = Instant::now() + Duration::from_secs(8);
            while Instant::now() < deadline && !self.tell("squeue", &["-h"]).trim().is_empty() {
                std::thread::sleep(Duration::from_millis(100));
            }
        }
        while let Some((_, mut child)) = self.daemons.pop() {
            drop(child.stdin.take());
            child.wait().ok();
        }
    }
}

fn configuration(root: &Path) -> String {
    let at = |name: &str| root.join(name).display().to_string();
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let host = host.trim().split('.').next().unwrap().to_owned();
    // All ports are held at the same time, so that no two are the same.
    let ports: Vec<TcpListener> = (0..5).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let ports: Vec<u16> = ports.iter().map(|port| port.local_addr().unwrap().port()).collect();
    let mut text = format!(
        "ClusterName=aec\nSlurmctldHost={host}(127.0.0.1)\nSlurmUser=root\nSlurmdUser=root\nAuthType=auth/munge\n\
         AuthInfo=socket={},cred_expire=5\nSlurmctldPort={}\nStateSaveLocation={}\nSlurmdSpoolDir={}\n\
         SlurmctldPidFile={}\nSlurmdPidFile={}\nSlurmctldLogFile={}\nSlurmdLogFile={}\n\
         ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nJobAcctGatherType=jobacct_gather/none\n\
         AccountingStorageType=accounting_storage/none\nJobCompType=jobcomp/none\nMpiDefault=none\n\
         SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU,CR_LLN\nSlurmdParameters=config_overrides\n\
         ReturnToService=2\nSlurmdTimeout=10\nKillWait=10\nMinJobAge=300\nMaxArraySize=101\n\
         SchedulerParameters=sched_interval=2,batch_sched_delay=0,bf_interval=2\n",
        at("munge.sock"),
        ports[0],
        at("state"),
        at("%n"),
        at("slurmctld.pid"),
        at("slurmd-%n.pid"),
        at("log/slurmctld.log"),
        at("log/slurmd-%n.log"),
    );
    for (node, port) in ports[1..].iter().enumerate() {
        let name = node + 1;
        writeln!(
            text,
            "NodeName=n{name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={CPUS} RealMemory=1024"
        )
        .unwrap();
    }
    text.push_str("PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n");
    text
}

fn tempfile_bytes() -> Vec<u8> {
    use std::io::Read as _;
    let mut bytes = vec![0; 1];
    std::fs::File::open("/dev/urandom").unwrap().read_exact(&mut bytes).unwrap();
    bytes
}

/// Waits until a condition holds.
pub(crate) fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_mins(10);
    while !done() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Ids of all processes.
pub(crate) fn processes() -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The command line of a process, with blanks between its words.
pub(crate) fn command_line(pid: i32) -> String {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ")
}

/// Whether a step belongs to the node with this spool directory: it then listens on a socket there. Other clusters may
/// have jobs with the same numbers.
fn spool_is(pid: i32, spool: &Path) -> bool {
    let directory = std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
    if directory.starts_with(spool) {
        return true;
    }
    let sockets = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let below = sockets.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words
            .get(7)
            .is_some_and(|path| Path::new(path).starts_with(spool))
            .then(|| format!("socket:[{}]", words[6]))
    });
    let below: Vec<String> = below.collect();
    let Ok(files) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    let mut links = files.filter_map(Result::ok).filter_map(|file| std::fs::read_link(file.path()).ok());
    links.any(|link| below.iter().any(|socket| link.as_os_str() == socket.as_str()))
}

fn children(pid: i32) -> Vec<i32> {
    let parent_of = |child: i32| -> Option<i32> {
        let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).ok()?;
        stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()
    };
    processes().into_iter().filter(|child| parent_of(*child) == Some(pid)).collect()
}
