//! Every page has its content, and text that others wrote never becomes markup.

use crate::web::world::{HOSTILE, Project, Web};

/// Every page of the hostile project.
fn addresses(project: &Project) -> Vec<(String, Vec<&'static str>)> {
    let mut pages: Vec<(String, Vec<&'static str>)> = [
        ("/", vec!["hostile", "other", "complete", "95 % interval", "4"]),
        (
            "/experiment/hostile",
            vec!["mean reward", "as run", "worst case", "By agent", "By family", "reader", "idle"],
        ),
        ("/experiment/hostile?agent=idle&result=fail", vec!["2 trials"]),
        ("/experiment/hostile?task=no-such", vec!["No trial fits"]),
        ("/experiment/hostile?sort=cost&page=99", vec!["4 trials"]),
        ("/leaderboard", vec!["rank", "reader", "oracle", "take different revisions"]),
        ("/leaderboard?experiment=other", vec!["1 experiment chosen", "oracle"]),
        ("/compare", vec!["hostile/reader", "other/oracle", "Choose two runs"]),
        (
            "/compare?base=hostile/idle&other=hostile/reader",
            vec!["reward mean", "By task", "harness", "not made under the same conditions"],
        ),
        (
            "/library",
            vec!["civil/channel-000", "easy", "plain", "2 tasks", "Tasks that cannot be used", "nonsense"],
        ),
        ("/library?q=001", vec!["1 tasks"]),
        ("/library/civil/channel-000", vec!["Prompt", "Validation", "Latest trials", "javascript:hacked"]),
        ("/library/civil/broken", vec!["cannot be used", "nonsense"]),
        ("/templates", vec!["built in", "civil/"]),
        ("/templates/civil/mannings-pipe-capacity", vec!["Inputs", "Outputs", "Tiers", "generate task"]),
        ("/datasets", vec!["both@1.0.0"]),
        ("/datasets/both@1.0.0", vec!["civil/channel-001", "yes", "dataset verify"]),
        ("/audits", vec!["first.json", "1 of 2", "A002"]),
        ("/search", vec!["Type words"]),
        ("/search?q=channel", vec!["task", "civil/channel-000"]),
        ("/search?q=hostile", vec!["experiment"]),
        ("/search?q=pipe", vec!["template"]),
    ]
    .into_iter()
    .map(|(path, words)| (path.to_owned(), words))
    .collect();
    let trials = project.trials("hostile");
    let of = |agent: &str| trials.iter().find(|(_, known)| known == agent).unwrap().0.clone();
    let (reader, idle) = (of("reader"), of("idle"));
    pages.push((
        format!("/trials?first=hostile/{reader}&second={}", &idle[..12]),
        vec!["differs", "Fields", "depth_m", "tool_loop", "nop"],
    ));
    for (trial, agent) in trials {
        let words = if agent == "reader" {
            vec!["partial", "flow_m3_s", "Trace", "trajectory.jsonl", "note.html"]
        } else {
            vec!["fail", "Fields", "Files"]
        };
        pages.push((format!("/trial/hostile/{trial}"), words));
        pages.push((format!("/search?q={}", &trial[..8]), vec!["trial"]));
    }
    pages
}

#[test]
fn every_page_has_what_belongs_on_it_and_all_of_it_is_inert() {
    let project = Project::hostile();
    let web = Web::start(&project);
    let before = project.files();
    let mut seen = String::new();
    for (path, words) in addresses(&project) {
        let page = web.page(&path);
        for word in words {
            assert!(page.contains(word), "{path} lacks {word}: {page}");
        }
        for markup in ["<script>", "<img", "onerror=hacked=2>", "javascript:hacked=3\""] {
            assert!(!page.contains(markup), "{path} has {markup}: {page}");
        }
        assert!(!page.contains(" style=") && !page.contains(" onclick="), "{path}");
        // Every script is one of our files, or data that is never run.
        let scripts = page.matches("<script").count();
        let known = page.matches("<script src=\"/asset/").count()
            + page.matches("<script type=\"application/json\" id=\"entries\">").count();
        assert_eq!(scripts, known, "{path}");
        assert!(page.matches("<tr>").count() <= 400, "{path}");
        seen.push_str(&page);
    }
    let shown = HOSTILE.replace('<', "&lt;").replace('>', "&gt;");
    assert!(seen.matches(&shown).count() > 10, "hostile text is shown, as text");
    assert_eq!(before, project.files(), "nothing on disk was changed");
}

#[test]
fn ids_are_labels_and_whole_ones_are_there_on_demand() {
    let project = Project::new();
    let id = |number| format!("generated/s/civil/flow/channel-easy-20260524-00{number}");
    for number in [0, 1] {
        project.task(&id(number));
    }
    project.ok("run generated --harness oracle -e labels");
    project.ok("dataset create --name both --version 1.0.0");
    let web = Web::start(&project);
    let (whole, label) = (id(0), "flow/channel-easy#000");
    let link = format!(" title=\"{whole}\">{label}</a>");
    let by_label = format!("/experiment/labels?task={}", label.replace('#', "%23"));
    for path in [
        "/experiment/labels",
        &format!("/experiment/labels?task={whole}"),
        &by_label,
        "/library",
        "/datasets/both@1.0.0",
    ] {
        let page = web.page(path);
        assert!(page.contains(&link), "{path}: {page}");
        assert!(!page.contains(&format!(">{whole}<")), "{path}: {page}");
    }
    let page = web.page(&by_label);
    assert!(page.contains("1 trials"), "{page}");
    let trial = &page.split("/trial/labels/").nth(1).unwrap()[..36];
    let short = &trial[..8];
    for query in [whole.as_str(), "flow/channel-easy%23000"] {
        assert!(web.page(&format!("/search?q={query}")).contains(&link), "{query}");
    }
    let page = web.page(&format!("/search?q={trial}"));
    assert!(page.contains(&format!("title=\"labels/{trial}\">labels/{short}</a>")), "{page}");
    let page = web.page(&format!("/library/{whole}"));
    assert!(page.contains(&format!("<h1><span title=\"{whole}\">{label}</span></h1>")), "{page}");
    assert!(page.contains(&format!("<dd class=\"data\">{whole}</dd>")), "{page}");
    assert!(page.contains(&format!(" title=\"{trial}\">{short}</a>")), "{page}");
    let page = web.page(&format!("/trial/labels/{trial}"));
    assert!(page.contains(&format!("<code><span title=\"{trial}\">{short}</span></code>")), "{page}");
    for id in [trial, &whole] {
        assert!(page.contains(&format!("<dd class=\"data\">{id}</dd>")), "{page}");
    }
}

#[test]
fn assets_have_their_digests_in_their_addresses_and_pages_have_a_policy() {
    let project = Project::new();
    let web = Web::start(&project);
    let page = web.get("/");
    let policy = page.header("content-security-policy");
    assert!(policy.contains("script-src 'self'") && policy.contains("frame-ancestors 'none'"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cache-control", "private, no-cache"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        assert_eq!(page.header(name), value, "{name}");
    }
    let mut assets = 0;
    for address in page.body.split('"').filter(|part| part.starts_with("/asset/")) {
        let asset = web.get(address);
        assert_eq!(asset.status, 200, "{address}");
        assert!(asset.header("cache-control").contains("immutable"), "{address}");
        assets += 1;
    }
    assert_eq!(assets, 4, "style, theme, script and icon");
    assert_eq!(web.get("/asset/web-0000000000000000.js").status, 404);
    let head = web.ask("HEAD", "/", &[]);
    assert_eq!((head.status, head.body.as_str()), (200, ""));
}

#[test]
fn an_empty_project_says_what_to_do() {
    let project = Project::new();
    let web = Web::start(&project);
    for (path, word) in [
        ("/", "aec-bench run"),
        ("/leaderboard", "aec-bench run"),
        ("/compare", "aec-bench run"),
        ("/library", "aec-bench task new"),
        ("/datasets", "aec-bench dataset create"),
        ("/audits", "aec-bench audit --all --json"),
        ("/evolution", "aec-bench evolve run"),
        ("/search?q=nothing-has-this", "Nothing has all"),
    ] {
        let page = web.page(path);
        assert!(page.contains(word), "{path}: {page}");
    }
    for path in [
        "/nothing",
        "/experiment/none",
        "/trial/none/none",
        "/library/none",
        "/templates/civil/none",
        "/datasets/none@1.0.0",
        "/audits?file=x.json",
        "/live/run/none",
        "/live/trial/none/none",
        "/compare?base=a/b&other=c/d",
        "/trials?first=none&second=none",
    ] {
        let reply = web.get(path);
        // If there is nothing to compare, the page says so before it looks at the query.
        let expected = if path.starts_with("/compare") || path.starts_with("/audits") { 200 } else { 404 };
        assert_eq!(reply.status, expected, "{path}: {}", reply.body);
        assert!(reply.header("content-type").starts_with("text/html"), "{path}");
    }
}

#[test]
fn different_revisions_are_not_ranked_together_unless_somebody_says_so() {
    let project = Project::new();
    project.task("civil/channel-000");
    project.ok("run civil --harness oracle -e first");
    project.env.write("tasks/civil/channel-000/environment/survey.csv", "x,z\n1,2\n");
    project.ok("run civil --harness oracle -e second");
    let web = Web::start(&project);
    let page = web.page("/leaderboard");
    assert!(page.contains("different revisions of 1 task") && !page.contains(">rank<"), "{page}");
    for path in ["/leaderboard?experiment=first", "/leaderboard?mix=yes"] {
        assert!(web.page(path).contains(">rank<"), "{path}");
    }
}

#[test]
fn a_damaged_record_is_told_and_hides_nothing_else() {
    let project = Project::hostile();
    project.env.write("artefacts/ledger/hostile/broken.json", "{");
    let web = Web::start(&project);
    let page = web.page("/");
    assert!(page.contains("1 file in the ledger cannot be read"), "{page}");
    let broken = web.get("/trial/hostile/broken");
    assert_eq!(broken.status, 500);
    assert!(
        broken.body.contains("cannot be used") && broken.body.contains("ledger repair"),
        "{}",
        broken.body
    );
    let (trial, _) = &project.trials("other")[0];
    let page = web.page(&format!("/trial/other/{trial}"));
    let digest = page.split("/artefact/").nth(1).unwrap()[..64].to_owned();
    let content = format!("artefacts/ledger/_artefacts/sha256/{}/{digest}", &digest[..2]);
    std::fs::remove_file(project.env.path(&content)).unwrap();
    project.env.write(&content, "something else");
    let address = format!("/artefact/{digest}?trial=other/{trial}");
    assert_eq!(web.get(&address).status, 500, "a content that was changed is not handed out");
}

#[test]
fn signals_end_it_well() {
    let project = Project::new();
    for signal in aec_xtest::running::asking_to_end() {
        let web = Web::start(&project);
        web.page("/");
        assert_eq!(web.end(signal), (Some(0), String::new(), String::new()));
    }
}
