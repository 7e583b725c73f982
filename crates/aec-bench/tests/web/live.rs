//! A run in progress: its progress, the events of an attempt, and the record that replaces them.

use aec_xtest::wait::{until, until_some};
use rustix::process::Signal;

use crate::web::world::{HOSTILE, Project, SlowRun, Web};

fn project() -> Project {
    let project = Project::new();
    project.task("civil/channel-000");
    project
}

/// Waits until an attempt is under way and returns its name.
fn attempt(web: &Web) -> String {
    // The experiment appears with its first file.
    let mut run = until_some("the experiment", || {
        let stream = web.follow("/live/run/slow");
        (stream.status == 200).then_some(stream)
    });
    let progress =
        run.until(|name, data| name == "progress" && !data["under_way"].as_array().unwrap().is_empty());
    assert_eq!((progress["state"].as_str(), progress["planned"].as_u64()), (Some("running"), Some(1)));
    let stem = progress["under_way"][0]["stem"].as_str().unwrap();
    assert_eq!(progress["under_way"][0]["label"].as_str(), Some(&stem[..8]));
    stem.to_owned()
}

#[test]
fn events_come_as_they_are_written_and_the_record_takes_their_place() {
    let project = project();
    let web = Web::start(&project);
    let run = SlowRun::start(&project);
    let stem = attempt(&web);
    let address = format!("/trial/slow/{stem}");
    let mut events = web.follow(&format!("/live{address}"));
    let is_result = |name: &str, data: &serde_json::Value| {
        name == "entries" && data.as_array().unwrap().iter().any(|entry| entry["role"] == "tool_result")
    };
    let entries = events.until(is_result);
    let result = entries.as_array().unwrap().iter().find(|entry| entry["role"] == "tool_result").unwrap();
    assert!(result["stdout"].as_str().unwrap().contains(HOSTILE));
    let page = web.page(&address);
    assert!(page.contains("This attempt is under way") && page.contains("first words"), "{page}");
    assert!(!page.contains("<img"), "{page}");
    let page = web.page("/experiment/slow");
    assert!(page.contains("id=\"live-run\"") && page.contains(&stem), "{page}");
    // A client that connects later begins where the page ended.
    let from = web.page(&address).split("?from=").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let mut rest = web.follow(&format!("/live{address}?from={from}"));
    run.finish();
    let last = rest.until(|name, data| {
        assert!(!data.to_string().contains("first words"), "it was on the page");
        name == "entries" && data.to_string().contains("3.217")
    });
    assert!(last.as_array().is_some());
    for stream in [&mut events, &mut rest] {
        stream.until(|name, _| name == "end");
        assert!(stream.next().is_none(), "nothing comes after the end");
    }
    let page = web.page(&address);
    assert!(page.contains("pass") && page.contains("flow_m3_s") && page.contains("Files"), "{page}");
    let mut run = web.follow("/live/run/slow");
    // The first progress event may be a second old.
    let progress = run.until(|name, data| name == "progress" && data["state"] == "complete");
    assert_eq!(progress["recorded"].as_u64(), Some(1));
    assert_eq!(progress["mean_reward"].as_f64(), Some(1.0));
    assert!(progress["counts"].as_str().unwrap().ends_with(" · unpriced"), "{progress}");
    run.until(|name, _| name == "end");
}

#[test]
fn so_many_streams_and_no_more_and_none_keeps_the_server_alive() {
    let project = project();
    let web = Web::start(&project);
    let run = SlowRun::start(&project);
    let stem = attempt(&web);
    let address = format!("/live/trial/slow/{stem}");
    // Streams that ended are freed when the server notices their end.
    let mut streams = Vec::new();
    while streams.len() < 32 {
        let stream = web.follow(&address);
        if stream.status == 200 {
            streams.push(stream);
        }
    }
    let refused = web.get("/live/run/slow");
    assert_eq!(refused.status, 503, "{}", refused.body);
    assert!(refused.body.contains("32 pages follow runs already"));
    web.page("/experiment/slow");
    streams.pop();
    until("a place for a page that follows", || web.follow(&address).status == 200);
    assert_eq!(web.end(Signal::TERM), (Some(0), String::new(), String::new()));
    for mut stream in streams {
        while stream.next().is_some() {}
    }
    drop(run);
}

#[test]
fn what_a_killed_run_left_is_shown_as_such_and_nobody_waits_for_it() {
    let project = Project::hostile();
    let stem = "00000000-0000-8000-8000-000000000000";
    let lines = format!("{{\"role\":\"user\",\"content\":\"{HOSTILE}\"}}\n{{\"role\":\"assist");
    project.env.write(format!("jobs/hostile/_live/{stem}/trajectory.jsonl"), lines);
    let web = Web::start(&project);
    let page = web.page(&format!("/trial/hostile/{stem}"));
    assert!(page.contains("its run was killed") && page.contains("--resume hostile"), "{page}");
    assert!(!page.contains("data-stream") && !page.contains("<img"), "{page}");
    let mut events = web.follow(&format!("/live/trial/hostile/{stem}"));
    let entries = events.until(|name, _| name == "entries");
    assert_eq!(entries.as_array().unwrap().len(), 1, "a line without an end is not told");
    events.until(|name, _| name == "end");
}
