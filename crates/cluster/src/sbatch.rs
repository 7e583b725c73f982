//! The Slurm scripts: an array with one task for each shard, and a job that merges when all of them have ended.
//!
//! Slurm starts one worker for each shard, never one task for each trial. The script `exec`s the worker, so that the
//! worker receives the script's signals. The worker has exactly the variables that the script names: a login shell on
//! a node must not influence the experiment.

use std::fmt::Write as _;

use aec_base::problem::Problem;

use crate::FAMILY;
use crate::contract::{Contract, Folder};
use crate::shell::{directive, log_directory, word};

/// How many seconds before the time limit Slurm asks workers to stop.
pub const WARNING_SECONDS: u32 = 60;

/// What the array requests from the cluster. The site's default applies to what is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    pub partition: Option<String>,
    /// Time limit of each worker, in Slurm's notation.
    pub time: Option<String>,
    pub account: Option<String>,
    pub qos: Option<String>,
    pub cpus: Option<u32>,
    /// Memory of each worker, such as `4G`.
    pub memory: Option<String>,
    /// Further options of `sbatch`, passed on unchanged.
    pub options: Vec<String>,
}

/// What the submitting shell knows and the worker needs. None of it is a secret.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// `PATH`, on which workers find the verifiers' Python.
    pub search_path: String,
    /// `HOME`, which contains the user's settings.
    pub home: Option<String>,
    /// `XDG_CONFIG_HOME`.
    pub config_home: Option<String>,
}

/// Options that the contract sets and the user cannot.
const OWN: [&str; 14] = [
    "--array",
    "-a",
    "--export",
    "--export-file",
    "--output",
    "-o",
    "--error",
    "-e",
    "--open-mode",
    "--signal",
    "--requeue",
    "--no-requeue",
    "--dependency",
    "--wrap",
];

impl Resources {
    /// Refuses values that a script cannot hold, and options that would break the contract.
    pub fn check(&self) -> Result<(), Problem> {
        let values = [
            ("--partition", &self.partition),
            ("--time", &self.time),
            ("--account", &self.account),
            ("--qos", &self.qos),
            ("--memory-per-shard", &self.memory),
        ];
        for (flag, value) in values {
            if let Some(value) = value
                && (value.is_empty() || value.chars().any(char::is_control))
            {
                let what = format!("`{flag}` has a value that a batch script cannot contain");
                return Err(Problem::error(what).id(FAMILY.number(21)).fix("write it in one line"));
            }
        }
        for option in &self.options {
            let shown = aec_base::text::printable(option);
            let name = option.split('=').next().unwrap_or_default();
            if !option.starts_with('-') || option.chars().any(char::is_control) {
                let what = format!("`{shown}` is not an option of sbatch");
                return Err(Problem::error(what)
                    .id(FAMILY.number(21))
                    .fix("write, say, --sbatch=--gres=gpu:1"));
            }
            if OWN.contains(&name) {
                let what = format!("`--sbatch={shown}` would change what the shards are");
                let problem = Problem::error(what).id(FAMILY.number(21));
                return Err(
                    problem.why("the array, its signals, logs and variables are part of the contract")
                );
            }
        }
        Ok(())
    }

    /// Refuses amounts that Slurm does not understand.
    pub fn check_amounts(&self) -> Result<(), Problem> {
        let wrong = |flag: &str, value: &str, fix: &str| {
            let what = format!("`{flag} {}` is not understood by Slurm", aec_base::text::printable(value));
            Err(Problem::error(what).id(FAMILY.number(21)).fix(fix))
        };
        if let Some(memory) = self.memory.as_deref() {
            let number = memory.strip_suffix(['K', 'M', 'G', 'T', 'k', 'm', 'g', 't']).unwrap_or(memory);
            if number.parse::<u64>().is_err() {
                return wrong("--memory-per-shard", memory, "write, say, 16G");
            }
        }
        if let Some(time) = self.time.as_deref() {
            let is_length = time.starts_with(|first: char| first.is_ascii_digit())
                && time.chars().all(|letter| letter.is_ascii_digit() || letter == ':' || letter == '-');
            if !is_length && !["UNLIMITED", "INFINITE"].contains(&time.to_ascii_uppercase().as_str()) {
                return wrong("--time", time, "write minutes, HH:MM:SS or D-HH:MM:SS");
            }
        }
        Ok(())
    }

    fn directives(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let named = [("partition", &self.partition), ("account", &self.account), ("qos", &self.qos)];
        for (name, value) in named {
            lines.extend(value.as_deref().and_then(directive).map(|value| format!("--{name}={value}")));
        }
        lines
    }

    fn shard_directives(&self) -> Vec<String> {
        let mut lines = self.directives();
        lines.extend(self.time.as_deref().and_then(directive).map(|time| format!("--time={time}")));
        lines.extend(self.cpus.map(|cpus| format!("--cpus-per-task={cpus}")));
        lines.extend(self.memory.as_deref().and_then(directive).map(|memory| format!("--mem={memory}")));
        for option in &self.options {
            lines.extend(match option.split_once('=') {
                Some((name, value)) => directive(value).map(|value| format!("{name}={value}")),
                None => Some(option.clone()),
            });
        }
        lines
    }
}

pub fn shards(contract: &Contract, folder: &Folder, resources: &Resources, around: &Surroundings) -> String {
    let last = contract.shards.saturating_sub(1);
    let mut lines = vec![
        format!("--job-name=aec-{}", contract.experiment_id),
        format!("--array=0-{last}%{}", contract.shards),
        "--nodes=1".to_owned(),
        "--ntasks=1".to_owned(),
        "--requeue".to_owned(),
        "--open-mode=append".to_owned(),
        format!("--signal=B:TERM@{WARNING_SECONDS}"),
        "--export=NONE".to_owned(),
    ];
    lines.extend(resources.shard_directives());
    let mut words: Vec<String> = vec!["run".to_owned()];
    words.extend(worker_arguments(contract, folder).iter().map(|argument| word(argument)));
    words.extend(["--shard".to_owned(), format!("\"$SLURM_ARRAY_TASK_ID/{}\"", contract.shards)]);
    let log = Log { name: "shard-%a", variable: "shard-$SLURM_ARRAY_TASK_ID" };
    let greeting = format!(
        "echo \"shard $SLURM_ARRAY_TASK_ID of {} as job ${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID on \
         $SLURMD_NODENAME, start $((${{SLURM_RESTART_COUNT:-0}} + 1))\"",
        contract.shards
    );
    script(contract, folder, around, &lines, &log, &greeting, &words)
}

/// The job that merges. The submission says which array it waits for.
pub fn merge(contract: &Contract, folder: &Folder, resources: &Resources, around: &Surroundings) -> String {
    let mut lines = vec![
        format!("--job-name=aec-{}-merge", contract.experiment_id),
        "--nodes=1".to_owned(),
        "--ntasks=1".to_owned(),
        "--requeue".to_owned(),
        "--open-mode=append".to_owned(),
        "--export=NONE".to_owned(),
    ];
    lines.extend(resources.directives());
    let mut words: Vec<String> = ["runs", "merge"].map(str::to_owned).to_vec();
    words.extend([word(contract.experiment_id.as_str()), "--contract".to_owned()]);
    words.push(word(&folder.path().to_string_lossy()));
    let log = Log { name: "merge", variable: "merge" };
    script(contract, folder, around, &lines, &log, "echo merge", &words)
}

/// The arguments of every worker, whatever starts it; the shard follows them.
pub fn worker_arguments(contract: &Contract, folder: &Folder) -> Vec<String> {
    let text = |path: &std::path::Path| path.to_string_lossy().into_owned();
    let mut arguments = vec!["--plan".to_owned(), text(&folder.plan())];
    arguments.extend(["--contract".to_owned(), text(folder.path())]);
    arguments.extend(["--ledger-root".to_owned(), contract.ledger.clone()]);
    arguments.extend(["--jobs-root".to_owned(), contract.jobs.clone()]);
    arguments.extend(contract.flags.iter().cloned());
    arguments
}

/// The name of a log in Slurm's notation and in the shell's.
struct Log {
    name: &'static str,
    variable: &'static str,
}

fn script(
    contract: &Contract,
    folder: &Folder,
    around: &Surroundings,
    directives: &[String],
    log: &Log,
    greeting: &str,
    words: &[String],
) -> String {
    let path = folder.path().to_string_lossy();
    let logs = folder.logs().to_string_lossy().into_owned();
    let mut text = String::from("#!/bin/bash\n");
    let mut line = |words: &str| writeln!(text, "{words}").ok();
    for directive in directives {
        line(&format!("#SBATCH {directive}"));
    }
    // The script itself redirects to a path that Slurm's patterns cannot express.
    let spelled = log_directory(&logs).and_then(|logs| directive(&format!("{logs}/{}.log", log.name)));
    match &spelled {
        Some(output) => line(&format!("#SBATCH --output={output}")),
        None => line("#SBATCH --output=/dev/null"),
    };
    line(&format!("folder={}", word(&path)));
    line(&format!("program={}", word(&contract.program)));
    if spelled.is_none() {
        line(&format!("exec >>\"$folder/logs/{}.log\" 2>&1", log.variable));
    }
    line(greeting);
    line("if [ ! -r \"$folder/contract.json\" ] || [ ! -x \"$program\" ]; then");
    line(
        "  echo \"$(hostname): the run's folder or the program is not on this node; both must be on a shared file system\" >&2",
    );
    line("  exit 4");
    line("fi");
    line(&format!("cd {} || exit 4", word(&contract.project)));
    let mut variables = vec![format!("PATH={}", word(&around.search_path))];
    variables.extend(around.home.as_deref().map(|home| format!("HOME={}", word(home))));
    variables.extend(around.config_home.as_deref().map(|home| format!("XDG_CONFIG_HOME={}", word(home))));
    variables.extend(["TMPDIR=\"${TMPDIR:-/tmp}\"".to_owned(), "LC_ALL=C.UTF-8".to_owned()]);
    line(&format!("exec env -i {} \\", variables.join(" ")));
    line(&format!("  \"$program\" {}", words.join(" ")));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Engine;
    use crate::contract::tests::example;

    fn around() -> Surroundings {
        Surroundings {
            search_path: "/usr/local/bin:/usr/bin:/bin".to_owned(),
            home: Some("/home/ada".to_owned()),
            config_home: None,
        }
    }

    #[test]
    fn scripts_of_an_ordinary_run() {
        let folder = Folder::at("/srv/project/artefacts/ledger/exp-1/_run/cluster/0001");
        let resources = Resources {
            partition: Some("cpu".to_owned()),
            time: Some("04:00:00".to_owned()),
            account: Some("lab".to_owned()),
            qos: None,
            cpus: Some(8),
            memory: Some("16G".to_owned()),
            options: vec!["--gres=gpu:1".to_owned(), "--exclusive".to_owned()],
        };
        resources.check().unwrap();
        let contract = example(Engine::Slurm);
        insta::assert_snapshot!(shards(&contract, &folder, &resources, &around()));
        insta::assert_snapshot!(merge(&contract, &folder, &resources, &around()));
    }

    #[test]
    fn hostile_paths_are_quoted_or_kept_from_slurm() {
        let contract = example(Engine::Slurm);
        let hostile = Folder::at("/srv/it's \"%j\" $(rm -rf /) ;#");
        let text = shards(&contract, &hostile, &Resources::default(), &around());
        assert!(
            text.contains(r#"#SBATCH --output="/srv/it's \"%%j\" $(rm -rf /) ;#/logs/shard-%a.log""#),
            "{text}"
        );
        assert!(text.contains(r#"folder='/srv/it'\''s "%j" $(rm -rf /) ;#'"#), "{text}");
        for unspeakable in ["/srv/a\\b", "/srv/a\n#SBATCH --uid=0"] {
            let text = shards(&contract, &Folder::at(unspeakable), &Resources::default(), &around());
            assert!(text.contains("#SBATCH --output=/dev/null\n"), "{text}");
            assert!(text.contains("exec >>\"$folder/logs/shard-$SLURM_ARRAY_TASK_ID.log\""), "{text}");
            let body = text.find("\nfolder=").unwrap();
            assert!(!text[..body].contains("uid"), "a line break must not make a directive: {text}");
        }
    }

    #[test]
    fn options_that_would_break_the_contract_are_refused() {
        for option in ["--array=0-1", "--export=ALL", "-o", "gres", "", "--x=\n--wrap"] {
            let resources = Resources { options: vec![option.to_owned()], ..Resources::default() };
            assert_eq!(resources.check().unwrap_err().id.as_deref(), Some("J021"), "{option}");
        }
        for partition in ["", "a\nb"] {
            let resources = Resources { partition: Some(partition.to_owned()), ..Resources::default() };
            assert!(resources.check().is_err(), "{partition:?}");
        }
    }
}
