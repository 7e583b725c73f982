//! A project with tasks, and a service for it.

use aec_xtest::prime::StandIn;
use aec_xtest::{Run, TestEnv};
use serde_json::Value;
use tokio::runtime::Runtime;

/// A project and a service.
pub(crate) struct World {
    pub(crate) env: TestEnv,
    pub(crate) service: StandIn,
    // Dropped last, because the service runs in it.
    _runtime: Runtime,
}

impl World {
    pub(crate) fn new() -> Self {
        let runtime = Runtime::new().unwrap();
        let service = runtime.block_on(StandIn::start()).unwrap();
        let mut env = TestEnv::new(env!("CARGO_BIN_EXE_aec-bench"));
        for (name, value) in service.variables() {
            env.set(name, &value);
        }
        env.init();
        Self { env, service, _runtime: runtime }
    }

    /// Runs a command line; words are separated by blanks.
    pub(crate) fn run(&self, line: &str) -> Run {
        self.env.run(line.split_whitespace())
    }

    /// The data of a command that must succeed.
    pub(crate) fn data(&self, line: &str) -> Value {
        self.run(&format!("{line} --json")).data()
    }

    /// Tasks of three difficulties, frozen as `electrical-v1@1.0.0`.
    pub(crate) fn freeze(&self) {
        let made = self.run("generate task voltage-drop --instances 6");
        assert_eq!(made.code, Some(0), "{made:?}");
        let frozen = self.run("dataset create --name electrical-v1 --version 1.0.0 --pattern electrical/*");
        assert_eq!(frozen.code, Some(0), "{frozen:?}");
    }

    /// The bodies of the requests to a path.
    pub(crate) fn bodies(&self, method: &str, path: &str) -> Vec<Value> {
        let requests = self.service.requests();
        let matching = requests.iter().filter(|request| request.method == method && request.path == path);
        matching.map(|request| serde_json::from_slice(&request.body).unwrap_or(Value::Null)).collect()
    }
}
