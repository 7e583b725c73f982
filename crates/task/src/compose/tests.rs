//! Which parts of the file are read, and which are refused.

use aec_base::problem::Severity;

use super::*;

fn environment(text: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs_err::write(directory.path().join(COMPOSE_FILES[0]), text).unwrap();
    fs_err::write(directory.path().join("Dockerfile"), "FROM x\n").unwrap();
    fs_err::create_dir_all(directory.path().join("db/sql")).unwrap();
    fs_err::write(directory.path().join("db/Dockerfile"), "FROM y\n").unwrap();
    fs_err::write(directory.path().join("db/sql/begin.sql"), "select 1;\n").unwrap();
    fs_err::write(directory.path().join("plant.toml"), "pumps = 3\n").unwrap();
    directory
}

fn read(text: &str) -> Compose {
    Compose::read(environment(text).path()).unwrap_or_else(|problems| panic!("{problems:#?}"))
}

fn problems(text: &str) -> Vec<(String, u32, String)> {
    let problems = Compose::read(environment(text).path()).unwrap_err();
    assert!(problems.iter().all(|problem| problem.severity == Severity::Error && problem.fix.is_some()));
    let told = |problem: Problem| (problem.id.unwrap(), problem.line.unwrap_or(0), problem.what);
    problems.into_iter().map(told).collect()
}

#[test]
fn a_file_with_everything_is_understood() {
    let compose = read(
        r#"
name: plant
services:
  main:
    build: .
    environment: { PLANT: "http://plant:8080" }
    depends_on: [plant]
  plant:
    build: { context: ./db, args: { MODE: fast }, target: last }
    command: serve --port 8080 "two words"
    environment: [ "LEVEL=3", "NAME=${NAME:-basin}" ]
    expose: [ 8080 ]
    ports: [ "127.0.0.1:9000:9000/tcp" ]
    depends_on:
      store: { condition: service_healthy }
      seeds: { condition: service_completed_successfully }
    volumes: [ "./plant.toml:/etc/plant.toml:ro" ]
  store:
    image: postgres:16
    user: "999"
    environment: { PGPORT: 5433 }
    healthcheck: { test: pg_isready, interval: 1s, timeout: 500ms, retries: 30, start_period: 1m }
  seeds:
    image: busybox
    entrypoint: [ "sh", "-c" ]
    command: [ "true" ]
    working_dir: /tmp
    healthcheck: { disable: true }
"#,
    );
    assert_eq!(compose.environment, [("PLANT".to_owned(), "http://plant:8080".to_owned())]);
    assert_eq!(compose.needs, [("plant".to_owned(), Condition::Started)]);
    let names: Vec<&str> = compose.services.iter().map(|service| service.name.as_str()).collect();
    assert_eq!(names, ["seeds", "store", "plant"]);
    let [seeds, store, plant] = compose.services.as_slice() else { panic!("{compose:?}") };
    assert_eq!(seeds.health.test, Some(Vec::new()));
    assert_eq!(seeds.working_dir.as_deref(), Some("/tmp"));
    assert_eq!(store.source, Source::Image("postgres:16".to_owned()));
    assert_eq!(store.environment, [("PGPORT".to_owned(), "5433".to_owned())]);
    let test = ["/bin/sh", "-c", "pg_isready"].map(str::to_owned).to_vec();
    assert_eq!(
        store.health,
        Health {
            test: Some(test),
            interval: Some(Duration::from_secs(1)),
            timeout: Some(Duration::from_millis(500)),
            retries: Some(30),
            start_period: Some(Duration::from_mins(1)),
        }
    );
    assert_eq!(plant.command.as_ref().unwrap().last().unwrap(), "two words");
    assert_eq!(plant.environment[1].1, "basin");
    assert_eq!(plant.ports, [8080, 9000]);
    assert_eq!(plant.needs.len(), 2);
    assert_eq!(plant.files, [Given { source: "plant.toml".into(), target: "/etc/plant.toml".into() }]);
    let private: Vec<PathBuf> = compose.private().into_iter().collect();
    assert_eq!(private, [PathBuf::from("db"), PathBuf::from("plant.toml")]);
}

#[test]
fn no_file_and_an_empty_one_say_nothing() {
    assert_eq!(read(""), Compose::default());
    assert_eq!(read("services: {}\n"), Compose::default());
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(Compose::read(directory.path()).unwrap(), Compose::default());
}

#[test]
fn what_reaches_beyond_the_trial_is_refused() {
    let of = |body: &str| problems(&format!("services:\n  db:\n    image: x\n    {body}\n"));
    for (body, id) in [
        ("privileged: true", "T003"),
        ("network_mode: host", "T003"),
        ("cap_add: [SYS_ADMIN]", "T003"),
        ("devices: [/dev/kvm]", "T003"),
        ("pid: host", "T003"),
        ("env_file: .env", "T003"),
        ("volumes: [\"/etc:/etc\"]", "T005"),
        ("volumes: [\"../..:/x\"]", "T005"),
        ("volumes: [\"./a/../../b:/x\"]", "T005"),
        ("volumes: [\"data:/var/lib\"]", "T005"),
        ("volumes: [\"./plant.toml:relative\"]", "T005"),
        ("volumes: [\"./plant.toml:/a/../b\"]", "T005"),
        ("volumes: [\"./missing:/x\"]", "T005"),
        ("volumes: [\"/var/run/docker.sock:/var/run/docker.sock\"]", "T005"),
        ("environment: [OPENAI_API_KEY]", "T005"),
        ("environment: { OPENAI_API_KEY: }", "T005"),
        ("environment: { KEY: \"${OPENAI_API_KEY}\" }", "T005"),
        ("expose: [\"53/udp\"]", "T005"),
        ("depends_on: [nobody]", "T005"),
        ("depends_on: [main]", "T005"),
        ("depends_on: [db]", "T005"),
        ("depends_on: { db: { condition: soon } }", "T005"),
        ("command: \"a 'b\"", "T005"),
        ("healthcheck: { test: [echo, a] }", "T005"),
        ("healthcheck: { interval: soon }", "T005"),
        ("build: .", "T007"),
        ("command: { a: b }", "T004"),
        ("expose: 80", "T004"),
    ] {
        let found = of(body);
        assert_eq!(found.first().map(|(id, ..)| id.as_str()), Some(id), "{body}: {found:?}");
        assert!(found[0].1 >= 2, "{body}: {found:?}");
    }
    for (text, id) in [
        ("services:\n  db: {}\n", "T006"),
        ("services:\n  db: { image: \"\" }\n", "T005"),
        ("services:\n  db: { image: \"x\\nRUN y\" }\n", "T005"),
        ("services:\n  db: { build: ../x }\n", "T005"),
        ("services:\n  db: { build: . }\n", "T005"),
        ("services:\n  db: { build: { context: ., dockerfile: db/Dockerfile } }\n", "T005"),
        ("services:\n  db: { build: ./sql }\n", "T005"),
        ("services:\n  db: { build: { context: db, dockerfile: ../Dockerfile } }\n", "T005"),
        ("services:\n  db: { build: { context: db, ssh: default } }\n", "T003"),
        ("services:\n  \"a b\": { image: x }\n", "T005"),
        ("services:\n  localhost: { image: x }\n", "T005"),
        ("services:\n  a: { image: x, depends_on: [b] }\n  b: { image: x, depends_on: [a] }\n", "T005"),
        ("services:\n  main: { image: x }\n", "T005"),
        ("services:\n  main: { build: db }\n", "T005"),
        ("services:\n  main: { volumes: [\"./plant.toml:/x\"] }\n", "T005"),
        ("services: [a]\n", "T004"),
        ("networks: {}\n", "T003"),
        ("services: {a: {image: x}, a: {image: y}}\n", "T002"),
        ("\u{0}", "T002"),
    ] {
        let found = problems(text);
        assert_eq!(found.first().map(|(id, ..)| id.as_str()), Some(id), "{text}: {found:?}");
    }
    let many: Vec<String> = (0..20).map(|number| format!("  s{number}: {{ image: x }}\n")).collect();
    assert!(problems(&format!("services:\n{}", many.concat()))[0].2.contains("20 services"));
}

#[test]
fn two_files_and_links_are_refused() {
    let directory = environment("services: {}\n");
    fs_err::write(directory.path().join(COMPOSE_FILES[1]), "services: {}\n").unwrap();
    assert_eq!(Compose::read(directory.path()).unwrap_err()[0].id.as_deref(), Some("T007"));
    fs_err::remove_file(directory.path().join(COMPOSE_FILES[0])).unwrap();
    fs_err::remove_file(directory.path().join(COMPOSE_FILES[1])).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", directory.path().join(COMPOSE_FILES[0])).unwrap();
    assert_eq!(Compose::read(directory.path()).unwrap_err()[0].id.as_deref(), Some("T001"));
}
