//! Deliveries of messages.

use launchway_domain::{
    audit::{Action as Did, Event as Entry, Resource as Audited},
    auth::Actor,
    ids::DeliveryId,
    notifications::{Delivery, DeliveryFilter, DeliveryState, Write},
    page::{Page, PageRequest},
};

use super::{Notifications, READ, UPDATE};
use crate::Error;

const DELIVERY: Error = Error::NotFound("the delivery");

impl Notifications {
    /// Returns a page of the organization's deliveries with their attempts, newest first. Errors are shown
    /// in full only to actors who may change channels: they may quote the response of the receiver.
    ///
    /// # Errors
    /// [`Error::Forbidden`] without the permission `notification:read`.
    pub async fn deliveries(
        &self,
        actor: &Actor,
        filter: DeliveryFilter,
        page: PageRequest,
    ) -> Result<Page<Delivery>, Error> {
        let scope = actor.require(READ)?;
        let mut page = self.ports.notifications.deliveries(scope, filter, page).await?;
        if actor.require(UPDATE).is_err() {
            let attempts = page.items.iter_mut().flat_map(|delivery| &mut delivery.attempts);
            attempts.filter(|attempt| !attempt.error.is_empty()).for_each(|attempt| {
                attempt.error = "failed: only admins can see the reason".to_owned();
            });
        }
        Ok(page)
    }

    /// Retries a dead delivery at once.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is none with that id, [`Error::Conflict`] when it is not dead or its
    /// channel no longer exists, [`Error::Forbidden`] without the permission `notification:update`.
    pub async fn replay(&self, actor: &Actor, id: DeliveryId) -> Result<Delivery, Error> {
        let scope = actor.require(UPDATE)?;
        let delivery = self.ports.notifications.delivery(scope, id).await?.ok_or(DELIVERY)?;
        if delivery.state != DeliveryState::Dead {
            let state = delivery.state.as_str();
            return Err(Error::Conflict(format!(
                "this delivery is {state}: only a dead delivery can be replayed"
            )));
        }
        let what = format!("replayed a delivery by {}", delivery.channel.as_str());
        let entry = Entry::new(Did::Update, Audited::Notification, id, what);
        let replay = Write::Replay { scope, id, at: self.context.clock.now() };
        let writes = vec![replay.into(), self.context.record(actor.author(), entry)];
        let kind = delivery.channel.as_str();
        let missing = format!("no active {kind} channel is configured: configure it or enable it");
        self.context.commit(writes, Error::Conflict(missing)).await?;
        self.context.wake.notify();
        self.ports.notifications.delivery(scope, id).await?.ok_or(DELIVERY)
    }
}
