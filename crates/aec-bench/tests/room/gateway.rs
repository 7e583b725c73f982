//! A program in a room reaches its model through the gateway's socket, and nothing else.

use std::time::Duration;

use aec_base::env::Env;
use aec_base::secret::Redactor;
use aec_model::client::{Client, Scope, Setup};
use aec_model::gateway::{Gateway, Grant, environment};
use aec_model::meter::{Budget, Meter, Unpriced};
use aec_model::price::PriceList;
use aec_model::registry::Registry;
use aec_model::retry::RetryPolicy;
use aec_model::routing::Routes;
use aec_model::tape::Tape;
use aec_model_server::{Answers, Options, TestServer};
use aec_sandbox::{ExecSpec, Exit, Room, Sandbox as _};

use crate::room::spec;

/// What an agent might do: call its model, then try to reach everything else.
const AGENT: &str = r"
import json, os, socket, urllib.error, urllib.request

def call(url, key, body, header='authorization'):
    value = 'Bearer ' + key if header == 'authorization' else key
    request = urllib.request.Request(url, json.dumps(body).encode(), {header: value, 'content-type': 'application/json'})
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError as error:
        return 0, type(error).__name__

base, key = os.environ['OPENAI_BASE_URL'], os.environ['OPENAI_API_KEY']
ask = lambda model, **more: dict(model=model, max_tokens=20, messages=[dict(role='user', content='what is the moment?')], **more)
status, answer = call(base + '/chat/completions', key, ask('mine'))
print('own model', status, answer['choices'][0]['message']['content'])
status, answer = call(os.environ['ANTHROPIC_BASE_URL'] + '/v1/messages', os.environ['ANTHROPIC_API_KEY'], ask('mine'), 'x-api-key')
print('other format', status, answer['content'][0]['text'])
print('other model', call(base + '/chat/completions', key, ask('theirs'))[0])
print('other token', call(base + '/chat/completions', 'aec-guess', ask('mine'))[0])
print('other address', call(base + '/chat/completions', key, ask('mine', base_url=os.environ['PROVIDER']))[0])
print('provider itself', call(os.environ['PROVIDER'] + '/v1/chat/completions', key, ask('big'))[0])
try:
    socket.create_connection(('1.1.1.1', 53), timeout=2)
    print('world reached')
except OSError:
    print('world not reached')
while True:
    status = call(base + '/chat/completions', key, ask('mine'))[0]
    if status != 200:
        print('in the end', status)
        break
keys = [name for name, value in os.environ.items() if 'canary' in value]
for pid in filter(str.isdigit, os.listdir('/proc')):
    try:
        keys += ['process ' + pid] if b'canary' in open(f'/proc/{pid}/environ', 'rb').read() else []
    except OSError:
        pass
print('keys', keys)
";

#[test]
fn a_room_reaches_its_model_and_neither_keys_nor_the_network() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let options = Options { answers: Answers::Echo, key: Some("sk-canary".into()), ..Options::default() };
    let provider = runtime.block_on(TestServer::start(options)).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let row = |id: &str| {
        format!(
            "[[endpoint]]\nendpoint_id = \"{id}\"\nmodel = \"big\"\nurl = \"{}/v1\"\nkey = \"PROVIDER_KEY\"\n",
            provider.url()
        )
    };
    std::fs::write(dir.path().join("endpoints.toml"), row("mine") + &row("theirs")).unwrap();
    let env = Env::from_shell([("PROVIDER_KEY".to_owned(), "sk-canary".to_owned())]);
    let (registry, _) = Registry::read(&dir.path().join("endpoints.toml"), &env).unwrap();
    let client = Client::new(Setup {
        redactor: Redactor::from_env(&env),
        routes: Routes { env, registry, ..Routes::default() },
        prices: PriceList::builtin(),
        retry: RetryPolicy::default(),
        tape: Tape::Live,
    });
    let account = Meter::new(Unpriced::Allow).open(None, "trial", Budget::of_tokens(2000));
    let gateway = Gateway::new();
    let token = gateway
        .issue(Grant {
            models: vec![client.model("mine", None).unwrap()],
            scope: Scope::new("trial", account.clone()),
            max_in_flight: 4,
        })
        .unwrap();
    let mut spec = spec();
    let python = aec_sandbox::python::find(std::env::var_os("PATH").as_deref()).unwrap();
    spec.offer_python(&python);
    let mut room = Room::open(&spec).unwrap();
    let listener = room.listen().unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    runtime.spawn(async move {
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        gateway.serve(listener, 64, std::future::pending()).await
    });
    let mut agent = ExecSpec::new(["python3", "-c", AGENT]);
    agent.deadline = Duration::from_mins(1);
    agent.env = environment(address, &token);
    agent.env.push(("PROVIDER".to_owned(), provider.url()));
    let result = room.exec(&agent, &mut |_, _| {}).unwrap();
    let said = String::from_utf8_lossy(&result.stdout.head).into_owned();
    let complained = String::from_utf8_lossy(&result.stderr.head).into_owned();
    assert_eq!(result.exit, Exit::Code(0), "{said} {complained}");
    let expected = "own model 200 what is the moment?\nother format 200 what is the moment?\nother model 403\n\
                    other token 401\nother address 400\nprovider itself 0\nworld not reached\nin the end 402\nkeys []\n";
    assert_eq!(said, expected, "{complained}");
    assert!(account.totals().all.tokens() <= 2000);
}
