//! What agents see of a project, its packages and this program when they lie where rooms show the host.
//!
//! The host's `/usr` gets another layer, in a mount namespace of its own: files can be put anywhere below it, and nothing
//! of the machine is changed.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use aec_xtest::TestEnv;
use serde_json::Value;

/// Looks for the golden answer of the task in all files, and makes the task again with every copy of the program.
const THIEF: &str = r#"
out=${1:-/workspace}; again=${2:-/tmp}/again
where="/usr/src /usr/local /usr/lib/app /usr/lib/python3 /usr/share/app"
for program in $(type -aP aec-bench; find /usr/bin /run/aec-bench -name 'aec-bench*' -type f -perm -001 2>/dev/null); do
  mkdir -p $again; cd $again
  $program init --no-example --quiet; $program generate task voltage-drop --instances 1 --sandbox none
done >$out/program.txt 2>&1
found=$(find -L $where $again -name golden_pass.json -path '*voltage*' 2>/dev/null | head -1)
[ -n "$found" ] && cp "$found" $out/output.json
find -L $where \( -name .env -o -name aec-bench.toml -o -name tasks.json -o -name '*.sqlite' \) > $out/seen.txt 2>/dev/null
cat /usr/src/app/.env /usr/share/app/.env 2>/dev/null >> $out/seen.txt
true
"#;

/// Puts a layer over `/usr`, with a project somewhere, and does something there.
const BELOW_USR: &str = r#"
set -e
layer=$1; project=$2; place=$3; other=$4; user=$5; shift 5
mount --make-rprivate /
mount -t overlay overlay -o lowerdir=/usr,upperdir=$layer/upper,workdir=$layer/work /usr
mkdir -p $place
cp -a $project/. $place/
[ $other = none ] || { mkdir -p $other; mount --bind $place $other; }
[ $user = 0 ] || chown -R $user:$user $place
cd $place
exec setpriv --reuid=$user --regid=$user --clear-groups "$@"
"#;

const EXPERIMENT: &str = "name: theft\ntasks: {include_patterns: ['electrical/**']}\nagents:\n\
    - {name: thief, harness: command, parameters: {command: [bash, /agent/thief.sh], files: [thief.sh]}}\n";

const NOBODY: u32 = 65534;

struct Layer {
    directory: tempfile::TempDir,
    env: TestEnv,
}

impl Layer {
    /// A project with one task, and the program, installed below `/usr` if asked.
    fn new(installed: bool) -> Self {
        let env = TestEnv::new(env!("CARGO_BIN_EXE_aec-bench"));
        for line in ["init --no-example --quiet", "generate task voltage-drop --instances 1"] {
            let run = env.run(line.split(' '));
            assert_eq!(run.code, Some(0), "{run:?}");
        }
        env.write("thief.sh", THIEF);
        env.write("experiment.yaml", EXPERIMENT);
        env.write(".env", "SOME_API_KEY=sk-canary-of-the-project\n");
        // Beside the programs that are built, so that they can be linked.
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let programs = directory.path().join(if installed { "upper/bin" } else { "programs" });
        for made in ["work", "upper/bin", "programs", "out"] {
            std::fs::create_dir_all(directory.path().join(made)).unwrap();
        }
        let open = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(directory.path().join("out"), open).unwrap();
        for (name, built) in [
            ("aec-bench", env!("CARGO_BIN_EXE_aec-bench")),
            ("aec-bench-agent", env!("CARGO_BIN_EXE_aec-bench-agent")),
        ] {
            std::fs::hard_link(built, programs.join(name)).unwrap();
        }
        Self { directory, env }
    }

    fn out(&self) -> String {
        self.directory.path().join("out").display().to_string()
    }

    /// Runs a command as a user, in a project that lies at a place below `/usr`, and under another name too.
    fn run(&self, place: &str, other: &str, user: u32, command: &[&str]) -> Output {
        let layer = self.directory.path();
        let programs = format!("{}:/usr/bin:/bin:/usr/sbin", layer.join("programs").display());
        Command::new("unshare")
            .args(["--mount", "bash", "-c", BELOW_USR, "below"])
            .arg(layer)
            .arg(self.env.dir())
            .args([place, other, &user.to_string()])
            .args(command)
            .env_clear()
            .env("HOME", layer.join("out"))
            .env("PATH", programs)
            .output()
            .unwrap()
    }

    /// The envelope of a run of the experiment.
    fn trial(&self, place: &str, other: &str, user: u32) -> Value {
        let output = self.run(place, other, user, &["aec-bench", "--json", "run", "-c", "experiment.yaml"]);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
    }

    /// What the thief gets without a room.
    fn loot(&self, place: &str, user: u32) -> (String, String) {
        let (out, layer) = (self.out(), self.directory.path());
        let home = layer.join("out").display().to_string();
        let output = self.run(place, "none", user, &["bash", "thief.sh", &out, &home]);
        assert!(output.status.success(), "{output:?}");
        let read = |name: &str| std::fs::read_to_string(layer.join("out").join(name)).unwrap_or_default();
        (read("output.json"), read("seen.txt"))
    }
}

/// What the thief left in its workspace, from the copy in the layer of `/usr`.
fn left(layer: &Layer, place: &str, name: &str) -> String {
    let place = place.strip_prefix("/usr/").unwrap();
    let jobs = layer.directory.path().join("upper").join(place).join("jobs");
    let files = aec_xtest::files::files_below(&jobs);
    let found = files.iter().find(|(path, _)| path.ends_with(&format!("workspace/{name}")));
    found.map(|(_, content)| String::from_utf8_lossy(content).into_owned()).unwrap_or_default()
}

fn check(installed: bool, places: &[(&str, &str)], user: u32) {
    // Without a room the thief finds an answer that earns everything.
    let layer = Layer::new(installed);
    let (answer, seen) = layer.loot(places[0].0, user);
    assert!(answer.contains("voltage_drop_v"), "{answer} {seen}");
    assert!(installed || seen.contains("sk-canary"), "{seen}");
    for (place, other) in places {
        let layer = Layer::new(installed);
        let envelope = layer.trial(place, other, user);
        let all = &envelope["data"]["all"];
        assert_eq!(all["executed"], 1, "{place}: {envelope}");
        assert_eq!(all["reward_sum"], 0.0, "{place}: {envelope}");
        assert_eq!(left(&layer, place, "seen.txt"), "", "{place}");
        assert_eq!(left(&layer, place, "output.json"), "", "{place}: {}", left(&layer, place, "program.txt"));
        assert_ne!(left(&layer, place, "program.txt").is_empty(), installed, "{place}");
    }
}

/// Places below `/usr` that rooms do not show, and such that they show, and a second name of one that they do not.
const PLACES: [(&str, &str); 5] = [
    ("/usr/src/app", "none"),
    ("/usr/share/app", "none"),
    ("/usr/lib/python3/dist-packages/app", "none"),
    ("/usr/local/lib/app", "none"),
    ("/usr/src/app", "/usr/lib/app"),
];

#[test]
#[cfg_attr(not(root), ignore = "needs root: it puts a layer over /usr")]
fn a_project_below_usr_is_not_seen_by_its_agents() {
    check(false, &PLACES, 0);
}

#[test]
#[cfg_attr(not(ordinary_user), ignore = "needs root and a working copy that others can read")]
fn a_project_below_usr_is_not_seen_by_agents_of_an_ordinary_user() {
    check(false, &PLACES, NOBODY);
}

/// The program makes every task again, with its answer. Rooms have a small one instead, which cannot.
#[test]
#[cfg_attr(not(ordinary_user), ignore = "needs root and a working copy that others can read")]
fn the_program_in_a_room_cannot_make_the_task_again() {
    check(true, &[("/usr/src/app", "none")], 0);
    check(true, &[("/usr/src/app", "none")], NOBODY);
    let layer = Layer::new(false);
    layer.env.write(
        "experiment.yaml",
        EXPERIMENT.replace("[bash, /agent/thief.sh]", "[aec-bench, generate, task]"),
    );
    let envelope = layer.trial("/usr/src/app", "none", 0);
    assert_eq!(envelope["data"]["all"]["reward_sum"], 0.0, "{envelope}");
}

/// What a room cannot hide is refused, what it hides is said.
#[test]
#[cfg_attr(not(root), ignore = "needs root: it puts a layer over /usr")]
fn doctor_and_run_say_where_a_project_should_not_be() {
    let layer = Layer::new(false);
    let doctor = |place: &str| {
        let output = layer.run(place, "none", 0, &["aec-bench", "--json", "doctor"]);
        let envelope: Value = serde_json::from_slice(&output.stdout).unwrap();
        let checks = envelope["data"]["checks"].as_array().unwrap();
        let check = checks.iter().find(|check| check["name"] == "view").unwrap();
        (check["status"].clone(), check["detail"].as_str().unwrap().to_owned())
    };
    assert_eq!(doctor("/usr/src/app").0, "ok");
    assert_eq!(
        doctor("/usr/share/app"),
        ("limited".into(), "/usr/share/app lies in /usr/share, which rooms show; they hide it".to_owned())
    );
    assert_eq!(doctor("/usr/lib").0, "missing");
    let run = |place: &str| {
        let line = ["aec-bench", "--json", "run", "-c", "experiment.yaml", "--dry-run"];
        let envelope: Value = serde_json::from_slice(&layer.run(place, "none", 0, &line).stdout).unwrap();
        let ids = envelope["errors"].as_array().unwrap().iter().map(|error| error["id"].clone());
        (envelope["status"].clone(), ids.collect::<Vec<_>>())
    };
    assert_eq!(run("/usr/share/app"), ("success".into(), vec!["E072".into()]));
    let (status, ids) = run("/usr/lib");
    assert!(status != "success" && ids.contains(&"E072".into()), "{status} {ids:?}");
    assert!(!Path::new("/usr/share/app").exists(), "the machine is as it was");
}
