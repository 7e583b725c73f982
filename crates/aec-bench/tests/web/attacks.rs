//! A hostile page, network or address gets nothing.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use crate::web::world::{Project, Web};

#[test]
fn names_origins_and_methods_of_others_are_refused() {
    let project = Project::new();
    let web = Web::start(&project);
    let port = web.address.rsplit(':').next().unwrap().to_owned();
    let local = format!("localhost:{port}");
    for (headers, expected) in [
        (vec![("host", local.as_str())], 200),
        (vec![("host", "evil.example")], 421),
        (vec![("host", "127.0.0.1:1")], 421),
        (vec![("origin", "http://evil.example")], 403),
        (vec![("origin", "null")], 403),
        (vec![("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")], 403),
        (
            vec![
                ("sec-fetch-site", "cross-site"),
                ("sec-fetch-mode", "navigate"),
                ("sec-fetch-dest", "document"),
            ],
            200,
        ),
        (vec![("content-length", "3")], 413),
    ] {
        for path in ["/", "/library", "/asset/none", "/live/run/none"] {
            let reply = web.ask("GET", path, &headers);
            let reply_status =
                if expected == 200 && path != "/" && path != "/library" { 404 } else { expected };
            assert_eq!(reply.status, reply_status, "{path} {headers:?}");
        }
    }
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"] {
        let reply = web.ask(method, "/", &[]);
        assert_eq!((reply.status, reply.header("allow").as_str()), (405, "GET, HEAD"), "{method}");
    }
}

#[test]
fn no_address_leads_out_of_what_there_is_to_see() {
    let project = Project::hostile();
    let web = Web::start(&project);
    project.env.write("artefacts/audits/.hidden.json", "{}");
    let (trial, _) = project.trials("hostile").remove(0);
    let digest = "0".repeat(64);
    for path in [
        "/../../etc/passwd".to_owned(),
        "/%2e%2e/%2e%2e/etc/passwd".to_owned(),
        "/asset/../Cargo.toml".to_owned(),
        "/asset/%2e%2e%2fweb.css".to_owned(),
        "/library/../../aec-bench.toml".to_owned(),
        "/library/%2Fetc%2Fpasswd".to_owned(),
        "/experiment/..".to_owned(),
        "/experiment/_artefacts".to_owned(),
        "/experiment/%2e%2e%2fledger".to_owned(),
        format!("/trial/hostile/..%2Fother%2F{trial}"),
        "/trial/hostile/_run".to_owned(),
        "/trial/hostile/%00".to_owned(),
        "/trial/..%2Fledger/x".to_owned(),
        "/live/trial/..%2F..%2Fetc/passwd".to_owned(),
        "/live/run/..".to_owned(),
        "/templates/..%2Fcivil/x".to_owned(),
        "/datasets/..%2F..%2Fledger@1.0.0".to_owned(),
        "/audits?file=../../aec-bench.toml".to_owned(),
        "/audits?file=.hidden.json".to_owned(),
        format!("/artefact/{digest}"),
        format!("/artefact/{digest}?trial=hostile/{trial}"),
        format!("/artefact/..%2F..%2F?trial=hostile/{trial}"),
        format!("/artefact/{}?trial=hostile/{trial}", "A".repeat(64)),
        "/artefact/x?trial=../../x".to_owned(),
    ] {
        let reply = web.get(&path);
        assert_eq!(reply.status, 404, "{path}: {}", reply.body);
        assert!(!reply.body.contains("root:") && !reply.body.contains("[project]"), "{path}");
    }
    assert_eq!(web.get("/%ff").status, 400);
    assert_eq!(web.get(&format!("/{}", "a".repeat(5000))).status, 414);
}

#[test]
fn files_of_trials_come_by_digest_as_text_and_only_from_the_trial_that_has_them() {
    let project = Project::hostile();
    let web = Web::start(&project);
    let trials = project.trials("hostile");
    let (reader, _) = trials.iter().find(|(_, agent)| agent == "reader").unwrap();
    let (idle, _) = trials.iter().find(|(_, agent)| agent == "idle").unwrap();
    let page = web.page(&format!("/trial/hostile/{reader}"));
    let link = page.split('"').find(|part| {
        part.starts_with("/artefact/") && page.contains(&format!("{part}\">submission/note.html"))
    });
    let link = link.unwrap().replace("&amp;", "&");
    let file = web.get(&link);
    assert_eq!(file.status, 200);
    assert!(file.body.contains("<script>hacked=1</script>"));
    assert_eq!(file.header("content-type"), "text/plain; charset=utf-8");
    assert!(file.header("content-security-policy").starts_with("sandbox;"));
    assert_eq!(file.header("x-content-type-options"), "nosniff");
    assert!(file.header("content-disposition").contains("note.html"));
    assert_eq!(web.get(&link.replace(reader.as_str(), idle)).status, 404, "the other trial has no such file");
    assert_eq!(web.get(link.split('?').next().unwrap()).status, 404);
}

#[test]
fn anything_but_loopback_needs_a_token_and_then_everything_does() {
    let project = Project::new();
    let refused = project.env.run(["--json", "web", "--host", "0.0.0.0", "--port", "0"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stdout.contains("--token"), "{refused:?}");
    let short = project.env.run(["web", "--host", "0.0.0.0", "--port", "0", "--token", "short"]);
    assert_eq!(short.code, Some(2));
    assert!(short.stderr.contains("16 characters") && !short.stderr.contains("short "), "{short:?}");
    let web = Web::start_with(&project, "--host 0.0.0.0 --token correct-horse-battery");
    for path in ["/", "/library", "/asset/x", "/live/run/x", "/favicon.ico"] {
        let reply = web.get(path);
        assert_eq!((reply.status, reply.header("www-authenticate").as_str()), (401, "Bearer"), "{path}");
    }
    let bearer = [("authorization", "Bearer correct-horse-battery")];
    assert_eq!(web.ask("GET", "/", &bearer).status, 200);
    assert_eq!(web.get("/?token=wrong-horse-battery").status, 401);
    let kept = web.get("/library?token=correct-horse-battery&q=x");
    assert_eq!((kept.status, kept.header("location").as_str()), (303, "/library?q=x"));
    let cookie = kept.header("set-cookie");
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    assert!(!cookie.contains("correct-horse"), "the cookie is not the token");
    let value = cookie.split(';').next().unwrap();
    assert_eq!(web.ask("GET", "/library", &[("cookie", value)]).status, 200);
    assert_eq!(web.ask("GET", "/", &[("cookie", value), ("host", "evil.example")]).status, 421);
}

#[test]
fn a_token_can_come_from_a_variable() {
    let mut project = Project::new();
    let unset = project.env.run(["web", "--token", "env:WEB_ACCESS"]);
    assert_eq!(unset.code, Some(3), "{unset:?}");
    project.env.set("WEB_ACCESS", "correct-horse-battery");
    let web = Web::start_with(&project, "--token env:WEB_ACCESS");
    assert_eq!(web.get("/").status, 401);
    assert_eq!(web.ask("GET", "/", &[("authorization", "Bearer correct-horse-battery")]).status, 200);
}

#[test]
fn nonsense_on_the_wire_ends_one_connection_and_nothing_else() {
    let project = Project::new();
    let web = Web::start(&project);
    for bytes in [
        b"\0\0\0\0\r\n\r\n".to_vec(),
        b"GET\r\n\r\n".to_vec(),
        b"GET / HTTP/9.9\r\n\r\n".to_vec(),
        [b"GET / HTTP/1.1\r\nx: ".to_vec(), vec![b'a'; 100_000], b"\r\n\r\n".to_vec()].concat(),
    ] {
        let mut stream = TcpStream::connect(&web.address).unwrap();
        stream.write_all(&bytes).ok();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok();
        assert!(!answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
    }
    web.page("/");
}
