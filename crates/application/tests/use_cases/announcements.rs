//! Notification events.

use launchway_domain::{
    notifications::{Event, EventKind, Fact, Facts, Write as Announcement},
    store::Write,
};
use launchway_testkit::{
    CountingIds,
    builders::an_organization,
    clock::{NEW_YEAR, moment},
};

/// Returns the write that announces an event of [`an_organization`] at [`NEW_YEAR`], with the id number
/// `n`, exactly these facts and their owner.
pub(crate) fn announced<'a>(
    n: u64,
    kind: EventKind,
    facts: impl IntoIterator<Item = (Fact, &'a str)>,
) -> Write {
    let organization_id = an_organization().build().id;
    let mut known: Facts = facts.into_iter().map(|(fact, value)| (fact, value.to_owned())).collect();
    known.insert(Fact::OrganizationId, organization_id.to_string());
    let event =
        Event { id: CountingIds::nth(n).into(), organization_id, kind, facts: known, at: moment(NEW_YEAR) };
    Announcement::Announce(event).into()
}
