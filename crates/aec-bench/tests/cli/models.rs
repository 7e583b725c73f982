//! `models check`, and how the files about models affect every command.

use aec_xtest::TestEnv;
use rustix::process::Signal;
use serde_json::Value;

use crate::cli::empty_project;
use crate::cli::server::Server;

const ENDPOINTS: &str =
    "[[endpoint]]\nendpoint_id = \"near\"\nmodel = \"m\"\nurl = \"URL/v1\"\nkey = \"NEAR_KEY\"\n";

fn with_endpoints(env: &TestEnv, url: &str, more: &str) {
    env.write("configs/endpoints.toml", format!("{}{more}\n", ENDPOINTS.replace("URL", url)));
}

#[test]
fn what_would_be_called_with_which_key_at_what_price() {
    let mut env = empty_project();
    env.set("ANTHROPIC_API_KEY", "sk-ant-canary-value");
    env.write(".env", "AWS_REGION=ap-southeast-2\nAZURE_OPENAI_ENDPOINT=https://example.services.ai.azure.com/openai/v1/\nAZURE_OPENAI_API_KEY=azure-canary\n");
    with_endpoints(&env, "https://gpu.example", "");
    let line = "models check --no-call near offline/echo claude-sonnet-4-5 gpt-4.1-mini au.anthropic.claude-sonnet-4-6 together:x/y";
    insta::assert_snapshot!("models_check_no_call", env.run(line.split(' ')).snapshot());
    let data = env.run(["--json"].into_iter().chain(line.split(' '))).data();
    let rows = data["endpoints"].as_array().unwrap();
    let claude = rows.iter().find(|row| row["model"] == "claude-sonnet-4-5").unwrap();
    assert_eq!(claude["keys"][0]["name"], "ANTHROPIC_API_KEY");
    assert_eq!(claude["keys"][0]["origin"], "shell");
    assert_eq!(claude["price"]["output"], 15.0, "{claude}");
    assert_eq!(claude["answers"], Value::Null);
    let near = rows.iter().find(|row| row["model"] == "near").unwrap();
    assert_eq!((&near["price"], &near["keys"][0]["origin"]), (&Value::Null, &Value::Null), "{near}");
}

#[test]
fn whether_it_answers() {
    let mut env = empty_project();
    env.set("NEAR_KEY", "the-key-of-near");
    let mut server = Server::start(&env, "dev serve-model --json --key NEAR_KEY");
    let url = server.data()["url"].as_str().unwrap().to_owned();
    with_endpoints(&env, &url, "");
    let run = env.run(["--json", "models", "check"]);
    let row = run.data()["endpoints"][0].clone();
    assert_eq!((row["answers"].as_bool(), row["model"].as_str()), (Some(true), Some("near")), "{row}");
    assert!(row["elapsed_ms"].is_u64());
    // A key that is refused, a missing key, and an address on which nothing listens.
    env.set("NEAR_KEY", "another-key");
    let refused = env.run(["--json", "models", "check"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert_eq!(refused.envelope()["data"]["endpoints"][0]["failure"]["kind"], "auth");
    env.set("NEAR_KEY", "");
    let missing = env.run(["models", "check"]);
    assert_eq!(missing.code, Some(1));
    assert!(missing.stderr.contains("set NEAR_KEY"), "{missing:?}");
    assert_eq!(server.end(Signal::TERM).0, Some(0));
    env.set("NEAR_KEY", "the-key-of-near");
    let gone = env.run(["--json", "models", "check", "near", "nonsense"]);
    assert_eq!(gone.code, Some(1));
    assert_eq!(gone.envelope()["data"]["endpoints"][0]["failure"]["kind"], "network");
    assert!(gone.errors().iter().any(|(_, what)| what.contains("nothing says where")), "{gone:?}");
}

#[test]
fn broken_files_about_models_stop_the_command_and_the_check_names_them() {
    let env = empty_project();
    env.write("configs/endpoints.toml", "[[endpoint]]\nendpoint_id = \"x\"\nkey = \"sk-c4n4ry-c4n4ry\"\n");
    env.write("configs/prices.toml", "schema_version = 1\n[[price]]\nprovder = \"openai\"\n");
    env.write("experiment.yaml", "agents: [{name: a, harness: direct, model: mystery-model}]\n");
    let check = env.run(["--json", "config", "check"]);
    let ids: Vec<String> = check.errors().into_iter().map(|(id, _)| id).collect();
    for id in ["W005", "W006", "M003"] {
        assert!(ids.iter().any(|found| found == id), "{id}: {ids:?}");
    }
    assert!(check.errors().iter().any(|(_, what)| what.contains("mystery-model")), "{check:?}");
    assert!(!format!("{check:?}").contains("c4n4ry"));
    let run = env.run(["models", "check", "offline/echo"]);
    assert_eq!(run.code, Some(3));
    env.write("configs/endpoints.toml", ENDPOINTS.replace("URL", "https://gpu.example"));
    env.write("configs/prices.toml", "schema_version = 1\nversion = \"2026-11-16\"\n[[price]]\nendpoint = \"near\"\ninput = 0.5\noutput = 1.25\n");
    env.write("experiment.yaml", "agents: [{name: a, harness: direct, model: near}, {name: b, harness: direct, model: profile-1, client: {kind: anthropic_api}}]\n");
    let check = env.run(["--json", "config", "check"]);
    assert_eq!(check.code, Some(0), "{check:?}");
    let row = env.run(["--json", "models", "check", "near", "--no-call"]).data()["endpoints"][0].clone();
    assert_eq!((&row["price"]["input"], &row["price"]["output"]), (&0.5.into(), &1.25.into()), "{row}");
    // The paths of both files are settings.
    env.write("aec-bench.toml", "[paths]\nendpoints = \"other/where.toml\"\nprices = \"other/what.toml\"\n");
    let missing = env.run(["models", "check", "near", "--no-call"]);
    assert_eq!(missing.code, Some(3), "a file that is named must be there: {missing:?}");
    env.write("other/where.toml", ENDPOINTS.replace("URL", "https://else.example"));
    env.write("other/what.toml", "schema_version = 1\nversion = \"2026-11-16\"\n[[price]]\nendpoint = \"near\"\ninput = 7\noutput = 8\n");
    let row = env.run(["--json", "models", "check", "near", "--no-call"]).data()["endpoints"][0].clone();
    assert_eq!(
        (&row["price"]["input"], &row["url"]),
        (&7.0.into(), &"https://else.example/v1".into()),
        "{row}"
    );
    env.write("aec-bench.toml", "");
    let named = env.run(["models", "check", "near", "--no-call", "--endpoints", "none.toml"]);
    assert_eq!(named.code, Some(3), "{named:?}");
}

#[test]
fn clients_of_experiments_are_checked() {
    let env = empty_project();
    for (client, id) in [
        ("{kind: bedrok}", "E005"),
        ("{settings: {}}", "E006"),
        ("{kind: bedrock, settings: {base_url: x}}", "E003"),
    ] {
        env.write(
            "experiment.yaml",
            format!("agents: [{{name: a, harness: direct, model: m, client: {client}}}]\n"),
        );
        let check = env.run(["--json", "config", "check"]);
        assert!(check.errors().iter().any(|(found, _)| found == id), "{client}: {check:?}");
    }
    env.write("experiment.yaml", "agents: [{name: a, harness: direct, model: m, client: {kind: bedrock, settings: {deployment: d}}}]\n");
    let check = env.run(["--json", "config", "check"]);
    assert!(check.errors().iter().any(|(_, what)| what.contains("no effect")), "{check:?}");
}

/// A TLS server whose certificate only clients trust that were configured to.
#[test]
fn certificates_are_checked() {
    const SERVE: &str = r#"
import http.server, ssl, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_POST(self):
        self.rfile.read(int(self.headers['content-length']))
        body = b'{"choices":[{"index":0,"message":{"role":"assistant","content":"ready"},"finish_reason":"stop"}]}'
        self.send_response(200)
        self.send_header('content-type', 'application/json')
        self.send_header('content-length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *arguments):
        pass
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
server = http.server.HTTPServer(('127.0.0.1', 0), Handler)
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
"#;
    let fixtures = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/fixtures");
    let (certificate, key) = (fixtures.join("localhost.pem"), fixtures.join("localhost-key.pem"));
    let mut python = std::process::Command::new("python3")
        .args(["-c", SERVE])
        .args([&certificate, &key])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut port = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(python.stdout.take().unwrap()), &mut port)
        .unwrap();
    let mut env = empty_project();
    with_endpoints(&env, &format!("https://localhost:{}", port.trim()), "");
    env.set("NEAR_KEY", "the-key-of-near");
    let stranger = env.run(["--json", "models", "check"]);
    env.set("SSL_CERT_FILE", certificate.to_str().unwrap());
    let trusted = env.run(["--json", "models", "check"]);
    python.kill().unwrap();
    python.wait().unwrap();
    let failure = &stranger.envelope()["data"]["endpoints"][0]["failure"];
    assert_eq!(failure["kind"], "network", "{stranger:?}");
    assert!(failure["message"].as_str().unwrap().contains("certificate"), "{failure}");
    assert_eq!(trusted.data()["endpoints"][0]["answers"], true, "{trusted:?}");
}
