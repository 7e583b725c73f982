//! Messages about calls that are not on the cassette.

use std::path::Path;

use aec_model::message::{Message, Part, Request, Role, Tool, ToolCall};
use serde_json::json;

use crate::cassette::{open, record, recorder, reply, request};

const LETTER: &str = "Dear reader,\nthe beam is 6 m long.\nIt carries 12 kN/m.\nWhat is the moment?\nYours";

fn asked() -> Request {
    let mut request = request(&[LETTER, "Let me see.", "Go on."]);
    request.messages.insert(0, Message::text(Role::System, "You are an engineer."));
    let tool = Tool {
        name: "run".into(),
        description: "Runs a command.".into(),
        parameters: json!({"type": "object", "properties": {"command": {"type": "string"}}}),
    };
    request.tools = vec![tool].into();
    request.sampling.temperature = Some(0.5);
    request
}

fn recorded(directory: &Path) {
    let recorder = recorder(directory);
    let mut conversation = asked();
    conversation.messages.truncate(2);
    record(&recorder, "trial-1", &conversation, &Ok(reply("Let me see.")));
    record(&recorder, "trial-1", &asked(), &Ok(reply("54 kNm")));
    record(&recorder, "trial-2", &request(&["something else"]), &Ok(reply("yes")));
}

fn miss(scope: &str, model: &str, change: impl FnOnce(&mut Request)) -> String {
    let dir = tempfile::tempdir().unwrap();
    recorded(dir.path());
    let mut request = asked();
    change(&mut request);
    let (player, _) = open(dir.path());
    player.play(scope, model, &request).unwrap_err().to_string()
}

fn replace(request: &mut Request, from: &str, to: &str) {
    request.messages[1] = Message::text(Role::User, LETTER.replace(from, to));
}

#[test]
fn a_scope_that_is_not_there() {
    insta::assert_snapshot!(miss("trial-9", "m", |_| {}), @"nothing is recorded in scope `trial-9`; this request is recorded in scope `trial-1`");
    insta::assert_snapshot!(miss("trial-9", "other", |_| {}), @"nothing is recorded in scope `trial-9`; the cassette has 2 other scopes, none of them with this request");
    insta::assert_snapshot!(miss("", "m", |_| {}), @"nothing is recorded outside of all scopes; this request is recorded in scope `trial-1`");
}

#[test]
fn asked_more_often_than_recorded() {
    let dir = tempfile::tempdir().unwrap();
    recorded(dir.path());
    let (player, _) = open(dir.path());
    player.play("trial-1", "m", &asked()).unwrap();
    let miss = player.play("trial-1", "m", &asked()).unwrap_err();
    insta::assert_snapshot!(miss, @"this request was asked 2 times in scope `trial-1`, but recorded only once");
}

#[test]
fn another_model() {
    insta::assert_snapshot!(miss("trial-1", "other", |_| {}), @r"
    this request is not recorded in scope `trial-1`; the nearest recorded request (calls-000001.jsonl, byte 1359) differs:
      model: recorded `m`, asked `other`
    ");
}

#[test]
fn another_text() {
    insta::assert_snapshot!(miss("trial-1", "m", |request| replace(request, "12 kN/m", "15 kN/m")), @r"
    this request is not recorded in scope `trial-1`; the nearest recorded request (calls-000001.jsonl, byte 1359) differs:
      message 2 of 4 (user)
        @@ -1,5 +1,5 @@
         Dear reader,
         the beam is 6 m long.
        -It carries 12 kN/m.
        +It carries 15 kN/m.
         What is the moment?
         Yours
    ");
}

#[test]
fn blanks_and_control_characters_can_be_seen() {
    let shown = miss("trial-1", "m", |request| replace(request, "long.\n", "long. \u{1b}[0m\r\n\n"));
    insta::assert_snapshot!(shown, @r"
    this request is not recorded in scope `trial-1`; the nearest recorded request (calls-000001.jsonl, byte 1359) differs:
      message 2 of 4 (user)
        @@ -1,4 +1,5 @@
         Dear reader,
        -the beam is 6 m long.
        +the beam is 6 m long. \u{1b}[0m\r
        +
         It carries 12 kN/m.
         What is the moment?
    ");
    insta::assert_snapshot!(miss("trial-1", "m", |request| replace(request, "long.", "long. ")), @r"
    this request is not recorded in scope `trial-1`; the nearest recorded request (calls-000001.jsonl, byte 1359) differs:
      message 2 of 4 (user)
        @@ -1,4 +1,4 @@
         Dear reader,
        -the beam is 6 m long.
        +the beam is 6 m long.·
         It carries 12 kN/m.
         What is the moment?
    ");
}

#[test]
fn other_settings_and_tools() {
    let shown = miss("trial-1", "m", |request| {
        request.sampling.temperature = Some(0.7);
        request.sampling.seed = Some(1);
        request.sampling.max_tokens = Some(100);
        request.sampling.extra.insert("provider".into(), json!({"order": ["a"]}));
        request.tools.edit(|tools| tools[0].parameters["properties"]["command"]["type"] = json!("array"));
    });
    insta::assert_snapshot!(shown, @r#"
    this request is not recorded in scope `trial-1`; the nearest recorded request (calls-000001.jsonl, byte 1359) differs:
      sampling.extra: recorded nothing, asked {"provider":{"order":["a"]}}
      sampling.max_tokens: recorded 16384, asked 100
      sampling.seed: recorded nothing, asked 1
      sampling.temperature: recorded 0.5, asked 0.7
      tools
        @@ -6,5 +6,5 @@
               "properties": {
                 "command": {
        -          "type": "string"
        +          "type": "array"
                 }
               },
    "#);
    insta::assert_snapshot!(miss("trial-1", "m", |request| request.tools.edit(Vec::clear)), @r"
    this request is not recorded in scope `trial-1`; the nearest recorded request (calls-000001.jsonl, byte 1359) differs:
      tools: recorded run, asked none
    ");
}

#[test]
fn more_messages_and_fewer() {
    let more = miss("trial-1", "m", |request| {
        let call =
            ToolCall { id: "c1".into(), name: "run".into(), arguments: "{\"command\": \"ls\"}".into() };
        request.messages.push(Message { role: Role::Assistant, parts: vec![Part::ToolCall(call)] });
        request.messages.push(Message::text(Role::User, "no"));
    });
    insta::assert_snapshot!(more, @r#"
    this request is not recorded in scope `trial-1`; the nearest recorded request (calls-000001.jsonl, byte 1359) differs:
      messages: 4 recorded, 6 asked
      first new message: 5 of 6 (assistant)
        @@ -1,0 +1,2 @@
        +[tool call run c1]
        +{"command": "ls"}
    "#);
    let fewer = miss("trial-1", "m", |request| request.messages.truncate(3));
    insta::assert_snapshot!(fewer, @r"
    this request is not recorded in scope `trial-1`; the nearest recorded request (calls-000001.jsonl, byte 660) differs:
      messages: 2 recorded, 3 asked
      first new message: 3 of 3 (assistant)
        @@ -1,0 +1,2 @@
        +[text]
        +Let me see.
    ");
    let several = miss("trial-1", "m", |request| {
        request.messages[0] = Message::text(Role::User, "You are an engineer.");
        request.messages[3] = Message::text(Role::User, "Stop.");
    });
    insta::assert_snapshot!(several, @r"
    this request is not recorded in scope `trial-1`; the nearest recorded request (calls-000001.jsonl, byte 1359) differs:
      message 1 of 4 (recorded system, asked user)
      also different: message 4
    ");
}

#[test]
fn the_nearest_is_found_among_many() {
    let dir = tempfile::tempdir().unwrap();
    let recorder = recorder(dir.path());
    for number in 0..300 {
        let text = format!("question {number}: {}", "word ".repeat(number));
        record(&recorder, "", &request(&["hello", "yes?", &text]), &Ok(reply("a")));
        record(&recorder, "", &request(&[&text]), &Ok(reply("a")));
    }
    let (player, _) = open(dir.path());
    let miss = player.play("", "m", &request(&["hello", "yes?", "question 42: words"])).unwrap_err();
    assert!(miss.to_string().contains("-question 42: word word"), "{miss}");
}

#[test]
fn long_texts_are_shown_in_part() {
    let dir = tempfile::tempdir().unwrap();
    let recorder = recorder(dir.path());
    let many = |text: &str, separator: &str| {
        let numbered: Vec<String> = (0..5000).map(|number| format!("{text}{number}{separator}")).collect();
        numbered.concat()
    };
    let (long, lines) = (many("", " "), many("line ", "\n"));
    record(&recorder, "one", &request(&[&long]), &Ok(reply("a")));
    record(&recorder, "two", &request(&[&lines]), &Ok(reply("a")));
    let (player, _) = open(dir.path());
    let one = player.play("one", "m", &request(&[&long.replace("2500 ", "2500! ")])).unwrap_err();
    insta::assert_snapshot!(one, @r"
    this request is not recorded in scope `one`; the nearest recorded request (calls-000001.jsonl, byte 24151) differs:
      message 1 of 1 (user)
        @@ -1,1 +1,1 @@
        -… 2493 2494 2495 2496 2497 2498 2499 2500 2501 2502 2503 2504 2505 2506 2507 2508 2509 2510 2511 2512 2513 2514 2515 2516 2517 2518 2519 2520 2521 2522 2523 2524…
        +… 2493 2494 2495 2496 2497 2498 2499 2500! 2501 2502 2503 2504 2505 2506 2507 2508 2509 2510 2511 2512 2513 2514 2515 2516 2517 2518 2519 2520 2521 2522 2523 252…
    ");
    let changed = lines.replace("line 40", "row 40").replace("line 3", "row 3");
    let two = player.play("two", "m", &request(&[&changed])).unwrap_err().to_string();
    insta::assert_snapshot!(two, @r"
    this request is not recorded in scope `two`; the nearest recorded request (calls-000001.jsonl, byte 78538) differs:
      message 1 of 1 (user)
        @@ -2,5 +2,5 @@
         line 1
         line 2
        -line 3
        +row 3
         line 4
         line 5
        @@ -29,15 +29,15 @@
         line 28
         line 29
        -line 30
        -line 31
        -line 32
        -line 33
        -line 34
        -line 35
        -line 36
        -line 37
        -line 38
        -line 39
        -line 40
        +row 30
        +row 31
        +row 32
        +row 33
        +row 34
        …
    ");
}
