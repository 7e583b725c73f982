//! From model names to endpoints.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at the first thing that is not as it should be"
)]

mod names;
mod registry;

use aec_base::env::Env;
use aec_model::endpoint::{Credential, Endpoint};
use aec_model::routing::{ClientTable, RouteError, Routes, Target};

fn env(pairs: &[(&str, &str)]) -> Env {
    Env::from_shell(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
}

fn resolve(
    model: &str,
    variables: &[(&str, &str)],
    client: Option<&ClientTable>,
) -> Result<Endpoint, RouteError> {
    let routes = Routes { env: env(variables), ..Routes::default() };
    match routes.resolve(model, client)? {
        Target::Endpoints(mut endpoints) => {
            assert_eq!(endpoints.len(), 1);
            Ok(endpoints.remove(0))
        }
        Target::Offline(_) => panic!("{model} is offline"),
    }
}

/// The variable that supplies the key, or those of which one is missing.
fn key(endpoint: &Endpoint) -> String {
    match &endpoint.credential {
        Credential::None => "none".to_owned(),
        Credential::Key { variable, .. } => variable.clone(),
        Credential::Aws { region, .. } => format!("signed for {region}"),
        Credential::Missing { variables } => format!("missing {}", variables.join(" or ")),
    }
}
