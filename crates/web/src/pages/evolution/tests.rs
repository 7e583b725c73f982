//! The page of a run: its content, hostile text stays text, its size is limited, and a file needs nothing else.

use aec_base::digest::Digest;
use aec_evolve::event::Entry;
use aec_evolve::workspace::candidate::name;
use serde_json::{Value, json};

use super::*;

const HOSTILE: &str = "</pre></style><script>hacked=1</script><img src=x onerror=hacked=2>\"'&\u{202e}";

fn id(of: &str) -> Digest {
    Digest::of(of.as_bytes())
}

/// Events of a run in their order.
#[derive(Default)]
struct Story(Vec<Value>);

impl Story {
    fn begin(kind: &str, agents: &[&str]) -> Self {
        let mut story = Self::default();
        story.add(json!({
            "event": "run_started", "schema_version": 1, "run": "vd-1", "kind": kind, "experiment": "evolve-vd-1",
            "workspace": "workspaces/vd", "workspace_name": "vd", "baseline": id("first"), "prompt_letters": 100,
            "agents": agents, "horizon": 1000, "settings": {}, "tool_version": "0",
        }));
        story
    }

    fn add(&mut self, mut event: Value) {
        event["sequence"] = json!(self.0.len());
        event["at"] = json!(format!("2026-01-02T03:{:02}:{:02}Z", self.0.len() / 60 % 60, self.0.len() % 60));
        self.0.push(event);
    }

    fn measure(&mut self, agent: &str, cycle: u32, purpose: &str, candidate: &str, rewards: &[f64]) {
        let seen: Vec<Value> = rewards
            .iter()
            .enumerate()
            .map(|(at, reward)| {
                json!({
                    "trial": id(&format!("{purpose}-{agent}-{cycle}-{at}-{candidate}")).hex(), "outcome": "scored",
                    "reward": reward, "turns": 1, "calls": 1, "checks": 0, "tokens": 10, "cost_usd": 0.01,
                })
            })
            .collect();
        let arms = json!([{ "candidate": id(candidate), "seen": seen }]);
        let task = |at: usize| json!({ "task_id": format!("a/{at}"), "task_path": "a", "revision": id(&format!("{at}")), "repetition": 1 });
        let tasks: Vec<Value> = (0..rewards.len()).map(task).collect();
        self.add(json!({ "event": "measured", "agent": agent, "cycle": cycle, "purpose": purpose, "tasks": tasks, "arms": arms }));
    }

    /// A whole cycle; the candidate is accepted unless a reason is given.
    fn cycle(
        &mut self,
        (agent, cycle): (&str, u32),
        candidate: &str,
        parents: &[&str],
        rejection: Option<&str>,
    ) {
        let way = if parents.len() > 1 { "crossover" } else { "mutation" };
        self.add(json!({
            "event": "cycle_started", "agent": agent, "cycle": cycle, "way": way, "parent": id(parents[0]),
            "partner": null, "scope": "minimal", "tasks": [],
        }));
        self.measure(agent, cycle, "learn", parents[0], &[0.25, 0.5]);
        let parents: Vec<Digest> = parents.iter().map(|parent| id(parent)).collect();
        self.add(json!({
            "event": "proposed", "agent": agent, "cycle": cycle, "candidate": id(candidate), "parents": parents,
            "edits": [{ "kind": "skill_added", "skill": candidate }], "dropped": [], "reasoning": format!("{candidate}?"),
            "note": format!("{candidate}!"), "prompt_letters": 100,
        }));
        self.measure(agent, cycle, "screen", candidate, &[0.5, 0.75, 1.0]);
        self.add(json!({
            "event": "decided", "agent": agent, "cycle": cycle, "candidate": id(candidate), "against": parents[0],
            "rejection": rejection, "standing": {
                "pairs": 20, "left_out": 1, "difference": if rejection.is_some() { -0.125 } else { 0.25 },
                "low": -0.2, "high": 0.5, "evidence": 123.4,
            },
        }));
    }

    fn view(&self, running: bool) -> View {
        let entries: Vec<Entry> =
            self.0.iter().map(|event| serde_json::from_value(event.clone()).unwrap()).collect();
        View::of(&entries, running).unwrap()
    }
}

fn small() -> Story {
    let mut story = Story::begin("evolution", &["evolve"]);
    story.cycle(("evolve", 1), "one", &["first"], Some("no_gain"));
    story.cycle(("evolve", 2), "two", &["first"], None);
    story.cycle(("evolve", 3), "three", &["two", "one"], Some("worse_than_parent"));
    story.add(json!({
        "event": "cycle_started", "agent": "evolve", "cycle": 4, "way": "rescue", "parent": id("two"),
        "partner": null, "scope": "minimal", "tasks": [],
    }));
    story.add(json!({ "event": "not_proposed", "agent": "evolve", "cycle": 4, "reason": "nothing came", "dropped": [] }));
    story
}

/// Whether every element ends where it should.
fn is_balanced(page: &str) -> bool {
    const ALONE: [&str; 6] = ["meta", "link", "path", "input", "br", "!doctype"];
    let mut open: Vec<&str> = Vec::new();
    let body = page.split_once("</style>").map_or(page, |(_, body)| body);
    for tag in body.split('<').skip(1) {
        let Some((tag, _)) = tag.split_once('>') else { return false };
        let word = tag.split([' ', '\n']).next().unwrap_or_default();
        match word.strip_prefix('/') {
            Some(word) if open.last() == Some(&word) => drop(open.pop()),
            // The head was cut off with the style.
            Some("head" | "html") if open.is_empty() => {}
            Some(_) => return false,
            None if ALONE.contains(&word) => {}
            None => open.push(word),
        }
    }
    open.is_empty()
}

#[test]
fn a_run_is_told_part_by_part() {
    let mut view = small().view(false);
    let three = view.candidates.iter_mut().find(|candidate| candidate.name == name(id("three"))).unwrap();
    three.diff = Some("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n same\n-old\n+new\n".to_owned());
    let page = standalone(&view);
    assert!(is_balanced(&page), "{page}");
    let (one, two) = (name(id("one")), name(id("two")));
    for part in [
        "<h1>vd-1</h1><span class=\"state state-stopped\">stopped</span>",
        "1 of 3</b><span>candidates accepted",
        "<svg class=\"wide scores\"",
        "aria-labelledby=\"scores-title scores-text\"",
        "After the first of 4 cycles",
        &format!("Accepted: {two} in place 2 with a gain of +0.250"),
        "not accepted: nothing gained in its test",
        "<span class=\"tag\">best</span><span class=\"r-pass\">accepted</span>",
        &format!("crossover from {two} and {one}, evolve in cycle 3: adds skill three"),
        "three?",
        "1 line added, 1 line removed",
        "<del>− old</del><ins>+ new</ins>",
        "gain -0.125 (-0.200 to +0.500, 20 pairs)",
        "nothing came",
        "three!",
        "The tasks that are kept for the end were not used yet.",
        "Changes of 2 candidates are left out",
    ] {
        assert!(page.contains(part), "{part} is missing: {page}");
    }
}

#[test]
fn a_file_needs_and_loads_nothing() {
    let page = standalone(&small().view(false));
    let digest = STANDARD.encode(Digest::of([STYLE, WEB_STYLE].concat().as_bytes()).bytes());
    let style = page.split_once("<style>").unwrap().1.split_once("</style>").unwrap().0;
    assert_eq!(style, [STYLE, WEB_STYLE].concat(), "what the policy allows is what stands there");
    assert!(page.contains(&format!("style-src &#39;sha256-{digest}&#39;")), "{page}");
    for word in ["<script", " src=", "<link", "http:", "https:", "url(", "@import", " style=", "\r"] {
        assert!(!page.contains(word), "{word}");
    }
    assert!(!page.contains("href=\"/"), "a file has no other pages");
}

#[test]
fn hostile_text_stays_text() {
    let mut story = Story::begin("swarm", &[HOSTILE]);
    story.cycle((HOSTILE, 1), "one", &["first"], None);
    story.cycle((HOSTILE, 2), HOSTILE, &["one"], Some("no_gain"));
    story.add(json!({ "event": "agent_retired", "agent": HOSTILE, "reason": HOSTILE }));
    story.add(json!({ "event": "stopped", "reason": HOSTILE }));
    let mut view = story.view(false);
    view.workspace = HOSTILE.to_owned();
    for candidate in &mut view.candidates {
        candidate.diff =
            Some(format!("--- a/{HOSTILE}\n+++ b/x\n@@ -1,2 +1,1 @@\n {HOSTILE}\n-{HOSTILE}\n+{HOSTILE}\n"));
        candidate.status = HOSTILE.to_owned();
    }
    for cycle in &mut view.cycles {
        cycle.outcome = HOSTILE.to_owned();
    }
    let page = standalone(&view);
    assert!(is_balanced(&page), "{page}");
    assert!(!page.contains("<script") && !page.contains("<img") && !page.contains('\u{202e}'), "{page}");
    let shown = aec_report::html::escape(HOSTILE);
    assert!(page.matches(&shown).count() > 12, "it is shown, as text");
}

#[test]
fn a_run_that_just_began_says_so() {
    let view = Story::begin("evolution", &["evolve"]).view(true);
    let page = standalone(&view);
    assert!(is_balanced(&page), "{page}");
    for part in ["state-running", "No cycle is over yet", "the beginning", "no trials yet", "0 of 0"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("<svg") && !page.contains("NaN"), "{page}");
}

#[test]
fn many_candidates_have_bounds_and_the_accepted_ones_stay() {
    let mut story = Story::begin("swarm", &["agent-0", "agent-1"]);
    // A line of a hundred and twenty accepted candidates, each with rejected siblings.
    let mut last = "first".to_owned();
    for cycle in 0..700_u32 {
        let (agent, cycle_of_agent) = (["agent-0", "agent-1"][cycle as usize % 2], cycle / 2 + 1);
        let candidate = format!("candidate-{cycle}");
        let accepted = cycle % 6 == 0;
        story.cycle((agent, cycle_of_agent), &candidate, &[&last], (!accepted).then_some("no_gain"));
        if accepted {
            last = candidate;
        }
    }
    let mut view = story.view(false);
    let diff: String = std::iter::once("@@ -0,0 +1,900 @@\n".to_owned())
        .chain((0..900).map(|line| format!("+{line} & some words that make a line of a skill\n")))
        .collect();
    for candidate in &mut view.candidates {
        candidate.diff = Some(diff.clone());
        candidate.reasoning = "why ".repeat(10_000);
    }
    let page = standalone(&view);
    assert!(is_balanced(&page));
    assert!(page.len() < 8_000_000, "{}", page.len());
    assert_eq!(page.matches("<div class=\"candidate\"").count(), FILE.candidates);
    assert!(page.contains("201 candidates are left out"), "what is left out is said");
    assert!(page.contains("160 of 700 candidates are drawn"));
    assert_eq!(page.matches("<tr>").count(), 700 + 2 + 1 + 700 + 4, "cycles, agents, archive, notes, heads");
    let depth = page.split("<ul").skip(1).fold((0_i32, 0_i32), |(deep, most), part| {
        let deep = deep + 1;
        (deep - i32::try_from(part.matches("</ul>").count()).unwrap(), most.max(deep))
    });
    assert!(depth.1 <= 10, "{depth:?}");
    // In the site: all accepted ones that fit, and the requested one with its ancestors.
    let chosen = lineage::choose(&view, SITE.candidates, None);
    assert_eq!(chosen.len(), SITE.candidates);
    assert!(chosen.contains(&view.best) && chosen.contains(&view.baseline));
    let wanted = name(id("candidate-1"));
    assert!(!chosen.contains(&wanted));
    let chosen = lineage::choose(&view, SITE.candidates, Some(&wanted));
    assert!(chosen.contains(&wanted) && chosen.contains(&name(id("candidate-0"))));
    assert_eq!(chosen.len(), SITE.candidates);
}

#[test]
fn a_lineage_in_a_circle_ends() {
    let mut view = small().view(false);
    let names: Vec<Name> = view.candidates.iter().map(|candidate| candidate.name.clone()).collect();
    for (at, candidate) in view.candidates.iter_mut().enumerate() {
        candidate.parents = vec![names[(at + 1) % names.len()].clone(), candidate.name.clone()];
    }
    let page = standalone(&view);
    assert!(is_balanced(&page));
    assert_eq!(page.matches("<div class=\"candidate\"").count(), names.len());
}

#[test]
fn the_same_view_has_the_same_bytes() {
    let story = small();
    let page = standalone(&story.view(false));
    assert_eq!(page, standalone(&story.view(false)));
}

#[test]
fn odd_numbers_are_drawn_all_the_same() {
    let mut view = small().view(false);
    for (at, cycle) in view.cycles.iter_mut().enumerate() {
        cycle.best_mean = [Some(f64::NAN), Some(f64::INFINITY), Some(-3.0), None][at % 4];
        if let Some(standing) = &mut cycle.standing {
            (standing.low, standing.high, standing.evidence) = (f64::NEG_INFINITY, f64::NAN, f64::INFINITY);
        }
    }
    for candidate in &mut view.candidates {
        (candidate.mean, candidate.low, candidate.high) = (Some(2.5), Some(f64::NAN), None);
    }
    let page = standalone(&view);
    assert!(is_balanced(&page), "{page}");
    let drawing = page.split_once("<svg").unwrap().1.split_once("</svg>").unwrap().0;
    for place in drawing.split(" d=\"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        assert!(!place.contains("NaN") && !place.contains("inf"), "{place}");
    }
}
