//! Runs of evolution and swarms: their list, their pages during and after the run, and the file of a run.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::web::browser::{chromium, interpreter};
use crate::web::world::{GatedModel, HOSTILE, Project, Web};
use aec_xtest::wait::{until, until_some};

/// Generated tasks, and an agent that does better once its prompt says to check units.
const SOLVER: &str =
    "solver:\n  name: solver\n  harness: sim\n  parameters: {skill: 0.4, lessons: {check the units: 0.5}}\n";

/// A project with a workspace, and a model whose first proposal is useless, whose second one helps, and whose text is
/// hostile.
fn project() -> Project {
    let project = Project::new();
    project.ok("evolve init workspaces/vd --harness sim");
    let reply = |name: &str, body: &str| {
        format!(
            "  - text: '{{\"actions\": [{{\"type\": \"write_skill\", \"name\": \"{name}\", \"description\": \"about {name}\", \
             \"body\": \"{body} {HOSTILE}\"}}], \"reasoning\": \"{name} {HOSTILE}\", \"note\": \"note on {name} {HOSTILE}\"}}'\n"
        )
    };
    project.env.write(
        "evolver.yaml",
        format!(
            "replies:\n- text: 'nothing {HOSTILE}'\nconversations:\n- when: '# Cycle 1 of'\n  replies:\n{}- when: '# Cycle 2 of'\n  replies:\n{}",
            reply("colour", "Write down every colour that you see."),
            reply("units", "Always check the units of every number."),
        ),
    );
    let evolution = |evolver: &str, cycles: u32| {
        format!(
            "workspace_path: workspaces/vd\nmodels: {{evolver: {evolver}}}\n{SOLVER}generate: {{template: voltage-drop, count: 10, \
             seed: 7, difficulties: [easy]}}\nbackend: local\nbatch_size: 5\nmax_cycles: {cycles}\nstagnation_window: 9\n\
             improvement_threshold: 0.01\n"
        )
    };
    project.env.write("evolution.yaml", evolution("offline/scripted:evolver.yaml", 3));
    project.env.write("slow.yaml", evolution("slow", 2));
    project.env.write(
        "swarm.yaml",
        format!(
            "task:\n  workspace: workspaces/vd\n  generate: {{template: voltage-drop, count: 20, seed: 5, difficulties: [easy]}}\n\
             agents: {{count: 2, default_model: 'offline/scripted:evolver.yaml'}}\n{SOLVER}budget: {{max_cost_usd: 20.0}}\n\
             evaluation: {{backend: local}}\nevolution: {{batch_size: 2, improvement_threshold: 0.01, max_cycles: 3}}\n"
        ),
    );
    project
}

/// What must be true of every page of this server.
fn inert(path: &str, page: &str) {
    for markup in ["<script>", "<img", "onerror=hacked=2>", " style=", " onclick="] {
        assert!(!page.contains(markup), "{path} has {markup}: {page}");
    }
    assert_eq!(page.matches("<script").count(), page.matches("<script src=\"/asset/").count(), "{path}");
    assert!(page.matches("<tr>").count() <= 400, "{path}");
}

/// The name of the accepted candidate.
fn accepted(page: &str) -> String {
    let before = page.split("<span class=\"r-pass\">accepted</span>").next().unwrap();
    let at = before.rfind("id=\"c-").unwrap() + 4;
    before[at..].split('"').next().unwrap().to_owned()
}

#[test]
fn runs_are_listed_and_shown_with_what_was_changed_and_nothing_is_written() {
    let project = project();
    project.ok("evolve run -c evolution.yaml");
    project.ok("swarm run swarm.yaml");
    let web = Web::start(&project);
    let before = project.files();
    let list = web.page("/evolution");
    inert("/evolution", &list);
    for part in [
        "href=\"/evolution/evolve/vd-1\"",
        "href=\"/evolution/swarm/vd-1\"",
        "state-ended",
        "1 of 2",
        "2 runs",
    ] {
        assert!(list.contains(part), "{part}: {list}");
    }
    assert!(
        list.find("/evolution/swarm/vd-1") < list.find("/evolution/evolve/vd-1"),
        "the newest comes first"
    );
    let path = "/evolution/evolve/vd-1";
    let page = web.page(path);
    inert(path, &page);
    let best = accepted(&page);
    for part in [
        "all cycles were used",
        "workspaces/vd",
        "href=\"/experiment/evolve-vd-1\"",
        "offline/scripted:evolver.yaml",
        "hill_climb",
        "+0.010",
        "0.05",
        "that were kept for the end",
        "<svg class=\"wide scores\"",
        "Mean reward and gain by cycle of vd-1",
        "accepted above +0.010",
        "adds skill units",
        "not accepted: ",
        "6 lines added, 0 lines removed",
        "<ins>+ Always check the units of every number.",
        "note on units",
        &format!("<a href=\"/experiment/evolve-vd-1?agent={best}\">{best}</a>"),
        &format!("<a href=\"#{best}\">{best}</a>"),
        "evidence",
        "3 cycles",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let shown = HOSTILE.replace('<', "&lt;").replace('>', "&gt;");
    assert!(page.matches(&shown).count() > 5, "hostile text is shown, as text");
    assert!(!page.contains("live-evolution"), "it is over");
    // Links lead to pages and back.
    let trials = web.page(&format!("/experiment/evolve-vd-1?agent={best}"));
    assert!(trials.contains(&format!("href=\"{path}\">Evolution</a>")), "{trials}");
    let chosen = web.page(&format!("{path}?candidate={best}"));
    assert!(chosen.contains(&format!("<div class=\"candidate chosen\" id=\"{best}\"")), "{chosen}");
    assert_eq!(web.page(&format!("{path}?candidate=c-none")).matches("chosen").count(), 0);
    assert!(web.page("/search?q=vd-1").contains("/evolution/swarm/vd-1"));
    let swarm = web.page("/evolution/swarm/vd-1");
    inert("/evolution/swarm/vd-1", &swarm);
    for part in ["Agents", "agent-1", "exploring", "Archive", "cells are filled", "dollars at most"] {
        assert!(swarm.contains(part), "{part}: {swarm}");
    }
    assert_eq!(before, project.files(), "nothing on disk was changed");
    // Without a repository no changes are shown, and no repository is created.
    let git = project.env.path("workspaces/vd/.git");
    std::fs::rename(&git, project.env.path("git-elsewhere")).unwrap();
    let other = Web::start(&project);
    let page = other.page(path);
    assert!(page.contains("Changes are not shown") && page.contains("adds skill units"), "{page}");
    assert!(!page.contains("lines added") && !git.exists(), "{page}");
}

#[test]
fn a_damaged_log_is_told_and_hides_no_other_run() {
    let project = project();
    project.ok("evolve run -c evolution.yaml");
    project.env.write("artefacts/feedback/evolve/broken-1/events.jsonl", format!("{HOSTILE}\n"));
    project.env.write("artefacts/feedback/swarm/empty-1/events.jsonl", "");
    let log =
        std::fs::read_to_string(project.env.path("artefacts/feedback/evolve/vd-1/events.jsonl")).unwrap();
    // A line that is still being written is not shown yet.
    project.env.write("artefacts/feedback/evolve/cut-1/events.jsonl", &log[..log.len() - 10]);
    let web = Web::start(&project);
    let list = web.page("/evolution");
    inert("/evolution", &list);
    assert_eq!(list.matches("the log of the run is damaged").count(), 2, "{list}");
    for part in
        ["evolution broken-1", "swarm empty-1", "/evolution/evolve/cut-1", "/evolution/evolve/vd-1", "4 runs"]
    {
        assert!(list.contains(part), "{part}: {list}");
    }
    let broken = web.page("/evolution/evolve/broken-1");
    assert!(broken.contains("damaged") && broken.contains("restore it"), "{broken}");
    assert!(web.page("/evolution/evolve/cut-1").contains("stopped"));
    for path in [
        "/evolution/evolve/none",
        "/evolution/evolve/vd",
        "/evolution/swarm/vd-1",
        "/evolution/evolution/vd-1",
        "/evolution/tasks/vd-1",
        "/evolution/evolve/..",
        "/evolution/evolve/..%2Fevolve%2Fvd-1",
        "/evolution/..%2F..%2Fledger/evolve-vd-1",
        "/evolution/evolve/vd-1/events.jsonl",
        "/evolution/evolve",
        "/live/evolution/evolve/none",
        "/live/evolution/..%2F/vd-1",
    ] {
        assert_eq!(web.get(path).status, 404, "{path}");
    }
}

/// A run that waits until the test lets its model answer.
struct SlowEvolution {
    model: GatedModel,
    child: Child,
}

impl SlowEvolution {
    fn start(project: &Project) -> Self {
        let model = GatedModel::start();
        project.env.write(
            "configs/endpoints.toml",
            format!(
                "[[endpoint]]\nendpoint_id = \"slow\"\nmodel = \"m\"\nurl = \"http://127.0.0.1:{}/v1\"\n",
                model.port
            ),
        );
        Self { model, child: project.env.start("evolve run -c slow.yaml".split(' ')) }
    }

    /// Lets the run continue. A model that answers nonsense is asked again before its cycle is over.
    fn release(&self) {
        for _ in 0..8 {
            self.model.release();
        }
    }

    fn ends_well(&mut self) -> bool {
        self.child.wait().unwrap().success()
    }
}

impl Drop for SlowEvolution {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[test]
fn a_run_is_followed_while_it_goes_on() {
    let project = project();
    let web = Web::start(&project);
    let mut run = SlowEvolution::start(&project);
    // The run appears with its first event.
    let mut events = until_some("the run", || {
        let stream = web.follow("/live/evolution/evolve/vd-1");
        (stream.status == 200).then_some(stream)
    });
    let waits =
        |data: &serde_json::Value| data["agents"][0]["doing"].as_str().unwrap().starts_with("changes c-");
    let progress = events.until(|name, data| name == "progress" && waits(data));
    assert_eq!((progress["state"].as_str(), progress["candidates"].as_u64()), (Some("running"), Some(0)));
    assert!(progress["counts"].as_str().unwrap().starts_with("0 cycles over"), "{progress}");
    let page = web.page("/evolution/evolve/vd-1");
    for part in [
        "state-running",
        "id=\"live-evolution\"",
        "data-stream=\"/live/evolution/evolve/vd-1\"",
        "evolve, cycle 1: changes c-",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(web.page("/evolution").contains("state-running"));
    run.release();
    let last = events.until(|name, data| name == "end" && data["state"] == "ended");
    assert_eq!(last["cycles"], 2);
    assert!(events.next().is_none(), "nothing comes after the end");
    assert!(run.ends_well());
    assert!(!web.page("/evolution/evolve/vd-1").contains("live-evolution"));
}

#[test]
#[cfg_attr(
    not(all(chromium, packages)),
    ignore = "needs Chromium and the Python package index: apt-get install chromium"
)]
fn pages_and_files_of_runs_work_in_a_browser() {
    let (browser, python) = (chromium(), interpreter());
    let project = project();
    project.ok("evolve run -c evolution.yaml");
    project.ok("swarm run swarm.yaml");
    for run in ["evolve", "swarm"] {
        project.ok(&format!("evolve report {run}/vd-1 --html {run}.html"));
        let first = std::fs::read(project.env.path(format!("{run}.html"))).unwrap();
        project.ok(&format!("evolve report {run}/vd-1 --html {run}.html"));
        assert_eq!(
            first,
            std::fs::read(project.env.path(format!("{run}.html"))).unwrap(),
            "the same bytes again"
        );
    }
    let web = Web::start(&project);
    let pictures = Path::new(env!("CARGO_TARGET_TMPDIR")).join("browser-pictures");
    let mut run = SlowEvolution::start(&project);
    let begins = project.env.path("artefacts/feedback/evolve/vd-2/events.jsonl");
    until("the run's first event", || begins.is_file());
    let mut script = Command::new(python)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/web/evolution.py"))
        .arg(web.url())
        .arg(project.env.dir())
        .args([browser, pictures])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(script.stdout.take().unwrap()).lines();
    let waits = said.by_ref().map_while(Result::ok).any(|line| line == "the run may end");
    if waits {
        run.release();
    }
    let done = script.wait_with_output().unwrap();
    assert!(waits && done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(run.ends_well());
}
