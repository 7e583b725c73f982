//! A sandbox's link to the gateway: a socket that its programs see and that accepts one token.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use aec_base::secret::Secret;
use aec_model::gateway::{Gateway, Grant, environment};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::record::Record;
use crate::harness::{End, TrialContext};
use crate::workspace::Workspace;

/// Most connections of a room at once. Every one takes a descriptor of this program, which all trials share.
const MOST_CONNECTIONS: usize = 64;

/// How long connections may take to end after the token is revoked.
const PATIENCE: Duration = Duration::from_secs(5);

/// An open link. Dropping it closes the socket and revokes the token.
pub(super) struct ModelDoorway {
    gateway: Gateway,
    token: Secret,
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    served: Option<JoinHandle<()>>,
}

impl ModelDoorway {
    /// Opens a link to the agent's model. An agent without a model gets none.
    pub(super) async fn open(
        context: &TrialContext,
        workspace: &Workspace,
        record: &Arc<Record>,
    ) -> Result<Option<Self>, End> {
        let Some(model) = context.agent.model.clone() else { return Ok(None) };
        let listener = workspace.listen().await?;
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let address = listener.local_addr()?;
        let mut scope = context.scope.clone();
        scope.deadline = Some(scope.deadline.map_or(context.deadline, |own| own.min(context.deadline)));
        let grant = Grant { models: vec![model], scope, max_in_flight: Grant::USUAL_IN_FLIGHT };
        let seen = Arc::clone(record);
        let witness = Arc::new(move |request: &_, outcome: &_| seen.call(request, outcome));
        let gateway = context.gateway.clone();
        let token = gateway.issue_watched(grant, witness)?;
        let (stop, stopped) = oneshot::channel();
        let service = gateway.clone();
        let served = tokio::spawn(async move {
            let stopped = async move {
                // A dropped sender also means stop.
                stopped.await.ok();
            };
            if let Err(error) = service.serve(listener, MOST_CONNECTIONS, stopped).await {
                tracing::debug!(%error, "the gateway of a sandbox was lost");
            }
        });
        Ok(Some(Self { gateway, token, address, stop: Some(stop), served: Some(served) }))
    }

    /// Variables by which common libraries find the gateway.
    pub(super) fn environment(&self) -> Vec<(String, String)> {
        environment(self.address, &self.token)
    }

    pub(super) fn hide(&self, text: &str) -> String {
        text.replace(self.token.reveal(), "[token of the gateway redacted]")
    }

    /// Revokes the token, which ends calls in flight, and waits until they have ended.
    pub(super) async fn close(mut self) {
        self.gateway.revoke(&self.token);
        self.stop.take();
        if let Some(mut served) = self.served.take()
            && tokio::time::timeout(PATIENCE, &mut served).await.is_err()
        {
            served.abort();
        }
    }
}

impl Drop for ModelDoorway {
    fn drop(&mut self) {
        self.gateway.revoke(&self.token);
        if let Some(served) = &self.served {
            served.abort();
        }
    }
}
