//! Shows which endpoints a model name leads to, and checks whether they answer.

use std::time::Duration;

use tokio::time::Instant;

use crate::client::{Called, Client, Model, Scope};
use crate::endpoint::Endpoint;
use crate::message::{Message, Request, Role, Sampling};
use crate::meter::Account;
use crate::price::Price;
use crate::routing::{RouteError, Target};

/// How long an endpoint may take to answer a check.
const CHECK_TIME: Duration = Duration::from_mins(1);

/// How far a check goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checking {
    /// Only show which endpoints would be called.
    Look,
    Call,
}

/// The result for one endpoint.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The endpoint; absent for models inside this program.
    pub endpoint: Option<Endpoint>,
    pub price: Option<Price>,
    /// The result of the call, if one was made.
    pub called: Option<Called>,
}

/// The cheapest question that every model can answer; models that think need tokens for it.
fn short_request() -> Request {
    Request {
        messages: vec![Message::text(Role::User, "Answer with the one word: ready")],
        sampling: Sampling { max_tokens: Some(512), ..Sampling::default() },
        ..Request::default()
    }
}

impl Client {
    /// Shows which endpoints a model name leads to; if `call` says so, asks each endpoint for a short answer.
    pub async fn check(
        &self,
        name: &str,
        call: Checking,
        account: &Account,
    ) -> Result<Vec<Checked>, RouteError> {
        let alone = match self.routes().resolve(name, None)? {
            Target::Offline(_) => vec![None],
            Target::Endpoints(endpoints) => endpoints.into_iter().map(Some).collect(),
        };
        let checks = alone.into_iter().map(|endpoint| self.check_one(name, endpoint, call, account));
        futures_util::future::try_join_all(checks).await
    }

    async fn check_one(
        &self,
        name: &str,
        endpoint: Option<Endpoint>,
        call: Checking,
        account: &Account,
    ) -> Result<Checked, RouteError> {
        let model = match &endpoint {
            None => self.model(name, None)?,
            Some(endpoint) => Model::alone(self, name, endpoint.clone())?,
        };
        let price = model.prices().first().copied().flatten().cloned();
        let mut scope = Scope::new("check", account.clone());
        scope.deadline = Some(Instant::now() + CHECK_TIME);
        let called = match call {
            Checking::Call => Some(model.call(&short_request(), &scope).await),
            Checking::Look => None,
        };
        Ok(Checked { endpoint, price, called })
    }
}
