//! Permissions of the gateway. A token identifies a grant; a grant has models, a budget and nothing else.

use std::collections::HashMap;
use std::io::{self, Read as _};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use aec_base::digest::Digest;
use aec_base::secret::Secret;
use tokio::sync::watch;

use crate::client::{Model, Scope};
use crate::failure::Failure;
use crate::message::{Reply, Request};

/// The permissions of a token.
#[derive(Debug)]
pub struct Grant {
    /// The models that may be called, by name.
    pub models: Vec<Model>,
    /// The context of the calls and the account that pays.
    pub scope: Scope,
    /// Most concurrent calls.
    pub max_in_flight: u32,
}

impl Grant {
    /// A reasonable number of concurrent calls for one trial.
    pub const USUAL_IN_FLIGHT: u32 = 64;

    pub(super) fn model(&self, name: &str) -> Option<&Model> {
        self.models.iter().find(|model| model.name() == name)
    }
}

/// Observes the requests made with a token, and the answers.
pub type Witness = Arc<dyn Fn(&Request, &Result<Reply, Failure>) + Send + Sync>;

/// All grants, by the digest of their tokens; the tokens themselves are not kept.
#[derive(Debug, Default)]
pub(super) struct Grants(RwLock<HashMap<Digest, Arc<Holder>>>);

/// A grant in use.
pub(super) struct Holder {
    pub(super) grant: Grant,
    pub(super) witness: Option<Witness>,
    in_flight: AtomicU32,
    revoked: watch::Sender<bool>,
}

impl std::fmt::Debug for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Holder").field("grant", &self.grant).finish_non_exhaustive()
    }
}

/// A call in flight, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct InFlight(Arc<Holder>);

impl Grants {
    pub(super) fn issue(&self, grant: Grant, witness: Option<Witness>) -> io::Result<Secret> {
        let mut random = [0_u8; 32];
        fs_err::File::open("/dev/urandom")?.read_exact(&mut random)?;
        // A digest of random bytes is as random, and has a hexadecimal form.
        let token = format!("aec-{}", Digest::of(&random).hex());
        let revoked = watch::Sender::new(false);
        let holder = Arc::new(Holder { grant, witness, in_flight: AtomicU32::new(0), revoked });
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(Digest::of(token.as_bytes()), holder);
        Ok(Secret::new(token))
    }

    pub(super) fn revoke(&self, token: &Secret) -> bool {
        let digest = Digest::of(token.reveal().as_bytes());
        let holder = self.0.write().unwrap_or_else(PoisonError::into_inner).remove(&digest);
        if let Some(holder) = &holder {
            holder.revoked.send_replace(true);
        }
        holder.is_some()
    }

    pub(super) fn find(&self, token: &str) -> Option<Arc<Holder>> {
        let digest = Digest::of(token.as_bytes());
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(&digest).cloned()
    }
}

impl Holder {
    /// Completes when the token is revoked.
    pub(super) async fn revoked(&self) {
        // The sender lives as long as the holder, so waiting cannot fail.
        self.revoked.subscribe().wait_for(|revoked| *revoked).await.ok();
    }

    /// Begins a call, unless there are too many.
    pub(super) fn enter(self: &Arc<Self>) -> Option<InFlight> {
        let limit = self.grant.max_in_flight;
        let entered = self
            .in_flight
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |now| (now < limit).then_some(now + 1));
        entered.is_ok().then(|| InFlight(Arc::clone(self)))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::AcqRel);
    }
}
