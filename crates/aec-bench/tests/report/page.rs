//! The HTML report: one file, the same bytes every time, and no active content.

use serde_json::json;

use crate::report::world::{World, called, of_task, rewarded};

const HOSTILE: &str = "</script><img src=x onerror=alert(1)><script>alert(2)</script>";

fn project() -> World {
    let mut world = World::new();
    for at in 0..6 {
        let mut record =
            aec_ledger::example::record("x", &format!("0f1e2d3c-0000-8000-8000-00000000030{at}"), 1);
        of_task(&mut record, &format!("task-{}", at / 2));
        record.repetition = at % 2 + 1;
        rewarded(&mut record, f64::from(at % 3) / 2.0);
        record.inputs.instruction = HOSTILE.into();
        let events = called(1, "bash", &json!({"command": HOSTILE}), 1, HOSTILE);
        world.trajectory(&mut record, &events);
        aec_ledger::example::write(&world.ledger(), &record);
    }
    world.add("x", |record| {
        record.task.visibility = Some("holdout".to_owned());
        record.inputs.instruction = "a prompt that is held out".into();
    });
    world
}

#[test]
fn a_report_is_one_file_with_the_same_bytes_every_time() {
    let world = project();
    let run = world.json("evaluate -e x --report one.html");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(run.envelope()["data"]["report"], "one.html");
    assert_eq!(world.run("evaluate -e x --report two.html").code, Some(0));
    let (one, two) = (world.env.read("one.html"), world.env.read("two.html"));
    assert!(one == two, "two reports of the same records differ");
    assert!(!one.contains("<img src=x") && !one.contains("alert("), "hostile text is in the page");
    assert!(one.contains("Content-Security-Policy") && one.contains("default-src 'none'"));
    let addresses = one.matches("http://").count() + one.matches("https://").count();
    assert_eq!(addresses, one.matches("http://www.w3.org/").count(), "the page loads nothing");
    let refused = world.json("evaluate -e x --report one.html");
    assert_eq!(refused.code, Some(3), "a report is not overwritten in silence");
    assert_eq!(world.json("evaluate -e x --report one.html --force --no-traces").code, Some(0));
    assert!(world.env.read("one.html") != two, "it has no traces");
}
