//! The client against the stand-in server.

#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that is not as it should be")]

mod adapters;
mod calls;
mod evaluations;
mod hub;
mod samples;
mod training;

use std::path::Path;
use std::time::Duration;

use aec_http::pause::Rule;
use aec_prime::service::client::{Client, ClientOptions};
use aec_prime::service::settings::Settings;
use aec_prime::service::watch::WatchOptions;
use aec_xtest::prime::StandIn;

fn quick() -> ClientOptions {
    ClientOptions {
        pauses: Rule::new(Duration::from_millis(1), Duration::from_mins(1)),
        ..ClientOptions::default()
    }
}

fn quick_watch() -> WatchOptions {
    WatchOptions {
        interval: Duration::from_millis(1),
        trouble_pause: Duration::from_millis(1),
        long_trouble_pause: Duration::from_millis(1),
        most_troubles: 5,
    }
}

async fn start() -> (StandIn, Client) {
    let stand_in = StandIn::start().await.unwrap();
    let client = Client::new(settings(&stand_in), quick()).unwrap();
    (stand_in, client)
}

fn client_with(settings: Settings) -> Client {
    Client::new(settings, quick()).unwrap()
}

fn write(directory: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = directory.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

fn settings(stand_in: &StandIn) -> Settings {
    let variables = stand_in.variables();
    let find = |name: &str| Some(variables.iter().find(|(known, _)| *known == name)?.1.clone());
    Settings::load(Path::new("/nowhere"), find).unwrap()
}
