//! Verification of the chains.

use launchway_application::{Error, audit::ChainReport};
use launchway_domain::audit::{Chain, ChainHead, Link, LinkHash};
use launchway_domain::store::StoreError;
use launchway_testkit::builders::{an_entry, an_organization, chained, head_of};
use mockall::predicate::eq;

use crate::{
    ports::{MockedPorts, unavailable},
    refusals::assert_refused,
};

/// The number of links that are read at once.
const BATCH: i64 = 1000;

fn chain() -> Chain {
    an_entry().build().chain
}

/// Returns a chain of that many different links.
fn links(count: i64) -> Vec<Link> {
    chained((1..=count).map(|n| an_entry().with_message(&format!("did thing {n}")).build()))
}

/// Returns the links with the message of the one at `index` changed, and its hash unchanged.
fn tampered(mut links: Vec<Link>, index: usize) -> Vec<Link> {
    "ada did nothing".clone_into(&mut links[index].entry.message);
    links
}

fn without(mut links: Vec<Link>, index: usize) -> Vec<Link> {
    links.remove(index);
    links
}

fn report(head: ChainHead, broken_at: Option<i64>) -> ChainReport {
    ChainReport { head, broken_at }
}

fn ports_with_heads(heads: Vec<ChainHead>) -> MockedPorts {
    let mut ports = MockedPorts::default();
    ports.audit.expect_heads().once().return_once(|| Ok(heads));
    ports
}

/// Expects that the links of `chain` after number `after` are read, and returns `stored`.
fn expect_links(ports: &mut MockedPorts, chain: Chain, after: i64, stored: Vec<Link>) {
    ports.audit.expect_links().with(eq(chain), eq(after), eq(BATCH)).once().return_once(|_, _, _| Ok(stored));
}

/// Expects that links behind `head` are read, and returns `behind`.
fn expect_behind(ports: &mut MockedPorts, head: ChainHead, behind: Vec<Link>) {
    let read = ports.audit.expect_links().with(eq(head.chain), eq(head.number), eq(1));
    read.once().return_once(|_, _, _| Ok(behind));
}

/// Verifies a chain that should end with `head`, of which one read returns all links `stored`.
async fn check_whole(head: ChainHead, stored: Vec<Link>) -> Result<Vec<ChainReport>, Error> {
    let mut ports = ports_with_heads(vec![head]);
    expect_links(&mut ports, head.chain, 0, stored);
    expect_behind(&mut ports, head, vec![]);
    ports.services().audit.verify().await
}

/// Verifies a chain that should end with `head`, of which one read returns `stored`.
async fn check(head: ChainHead, stored: Vec<Link>) -> Result<Vec<ChainReport>, Error> {
    let mut ports = ports_with_heads(vec![head]);
    expect_links(&mut ports, head.chain, 0, stored);
    ports.services().audit.verify().await
}

#[tokio::test]
async fn an_installation_where_nothing_was_done_has_nothing_to_check() {
    let reports = ports_with_heads(vec![]).services().audit.verify().await;

    assert_eq!(reports.unwrap(), []);
}

#[tokio::test]
async fn a_chain_without_links_is_whole() {
    let empty = ChainHead { chain: chain(), number: 0, hash: LinkHash::ROOT };
    let mut ports = ports_with_heads(vec![empty]);
    expect_behind(&mut ports, empty, vec![]);

    let reports = ports.services().audit.verify().await;

    assert_eq!(reports.unwrap(), [report(empty, None)]);
}

#[tokio::test]
async fn a_chain_as_it_was_written_is_whole() {
    for count in [1, 2, 5] {
        let head = head_of(&links(count));

        let reports = check_whole(head, links(count)).await;

        assert_eq!(reports.unwrap(), [report(head, None)]);
    }
}

#[tokio::test]
async fn a_chain_is_broken_at_the_link_whose_entry_was_changed() {
    let head = head_of(&links(3));
    for (index, broken_at) in [(0, 1), (1, 2), (2, 3)] {
        let stored = tampered(links(3), index);

        let reports = check(head, stored).await;

        assert_eq!(reports.unwrap(), [report(head, Some(broken_at))]);
    }
}

#[tokio::test]
async fn a_chain_is_broken_at_the_link_whose_hash_was_changed() {
    let head = head_of(&links(3));
    let mut stored = links(3);
    stored[1].hash = LinkHash([7; 32]);

    let reports = check(head, stored).await;

    assert_eq!(reports.unwrap(), [report(head, Some(2))]);
}

#[tokio::test]
async fn changed_entry_with_matching_hash_breaks_the_next_link() {
    let head = head_of(&links(3));
    let mut stored = tampered(links(3), 1);
    stored[1].hash = stored[0].hash.next(2, &stored[1].entry);

    let reports = check(head, stored).await;

    assert_eq!(reports.unwrap(), [report(head, Some(3))]);
}

#[tokio::test]
async fn a_chain_that_was_written_anew_does_not_end_as_it_should() {
    let head = head_of(&links(3));
    let anew = chained(tampered(links(3), 0).into_iter().map(|link| link.entry));

    let reports = check(head, anew).await;

    assert_eq!(reports.unwrap(), [report(head, Some(3))]);
}

#[tokio::test]
async fn a_head_with_another_hash_breaks_the_chain_at_its_end() {
    let head = ChainHead { hash: LinkHash([7; 32]), ..head_of(&links(3)) };

    let reports = check(head, links(3)).await;

    assert_eq!(reports.unwrap(), [report(head, Some(3))]);
}

#[tokio::test]
async fn a_chain_is_broken_at_the_link_that_is_missing() {
    let head = head_of(&links(3));
    for (index, broken_at) in [(0, 1), (1, 2)] {
        let stored = without(links(3), index);

        let reports = check(head, stored).await;

        assert_eq!(reports.unwrap(), [report(head, Some(broken_at))]);
    }
}

#[tokio::test]
async fn a_gap_cannot_be_hidden_by_new_numbers() {
    let head = head_of(&links(3));
    let mut stored = without(links(3), 1);
    stored[1].number = 2;

    let reports = check(head, stored).await;

    assert_eq!(reports.unwrap(), [report(head, Some(2))]);
}

#[tokio::test]
async fn a_gap_cannot_be_opened_by_new_numbers() {
    let mut stored = links(2);
    stored[1].number = 3;
    let head = head_of(&stored);

    let reports = check(head, stored).await;

    assert_eq!(reports.unwrap(), [report(head, Some(2))]);
}

#[tokio::test]
async fn links_cannot_change_places() {
    let head = head_of(&links(3));
    let mut stored = links(3);
    stored.swap(0, 1);
    for (link, number) in stored.iter_mut().zip(1..) {
        link.number = number;
    }

    let reports = check(head, stored).await;

    assert_eq!(reports.unwrap(), [report(head, Some(1))]);
}

#[tokio::test]
async fn a_link_of_another_chain_does_not_fit() {
    let head = head_of(&links(2));
    let foreign = an_organization().named("Foreign").build();
    let mut stored = links(2);
    stored[1].entry.chain = Chain::Organization(foreign.id);

    let reports = check(head, stored).await;

    assert_eq!(reports.unwrap(), [report(head, Some(2))]);
}

#[tokio::test]
async fn a_chain_is_broken_where_its_tail_is_missing() {
    let head = head_of(&links(3));
    let mut ports = ports_with_heads(vec![head]);
    expect_links(&mut ports, head.chain, 0, links(2));
    expect_links(&mut ports, head.chain, 2, vec![]);

    let reports = ports.services().audit.verify().await;

    assert_eq!(reports.unwrap(), [report(head, Some(3))]);
}

#[tokio::test]
async fn a_chain_that_lost_every_link_is_broken_at_the_first() {
    let head = head_of(&links(3));

    let reports = check(head, vec![]).await;

    assert_eq!(reports.unwrap(), [report(head, Some(1))]);
}

#[tokio::test]
async fn links_written_since_the_head_was_read_are_ignored() {
    // Regardless of their contents: the next verification finds them.
    for stored in [links(3), tampered(links(3), 2)] {
        let head = head_of(&links(2));
        let mut ports = ports_with_heads(vec![head]);
        expect_behind(&mut ports, head, stored[2..].to_vec());
        expect_links(&mut ports, head.chain, 0, stored);
        ports.audit.expect_heads().once().returning(|| Ok(vec![head_of(&links(3))]));

        let reports = ports.services().audit.verify().await;

        assert_eq!(reports.unwrap(), [report(head, None)]);
    }
}

#[tokio::test]
async fn links_behind_a_head_that_stays_where_it_is_break_the_chain() {
    let head = head_of(&links(2));
    let mut ports = ports_with_heads(vec![head]);
    expect_links(&mut ports, head.chain, 0, links(3));
    expect_behind(&mut ports, head, links(3).split_off(2));
    ports.audit.expect_heads().once().returning(move || Ok(vec![head]));

    let reports = ports.services().audit.verify().await;

    assert_eq!(reports.unwrap(), [report(head, Some(3))]);
}

#[tokio::test]
async fn an_entry_that_cannot_be_read_breaks_the_chain_where_it_is() {
    let stored = links(3);
    let head = head_of(&stored);
    let unreadable = || StoreError::Internal("an unknown action".into());
    let mut ports = ports_with_heads(vec![head]);
    ports
        .audit
        .expect_links()
        .with(eq(chain()), eq(0), eq(BATCH))
        .once()
        .returning(move |_, _, _| Err(unreadable()));
    let first = stored[..1].to_vec();
    ports.audit.expect_links().with(eq(chain()), eq(0), eq(1)).once().return_once(|_, _, _| Ok(first));
    ports
        .audit
        .expect_links()
        .with(eq(chain()), eq(1), eq(1))
        .once()
        .returning(move |_, _, _| Err(unreadable()));

    let reports = ports.services().audit.verify().await;

    assert_eq!(reports.unwrap(), [report(head, Some(2))]);
}

#[tokio::test]
async fn newer_link_does_not_hide_a_missing_link() {
    for (stored, broken_at) in [(without(links(4), 2), 3), (links(4).split_off(3), 1)] {
        let head = head_of(&links(3));

        let reports = check(head, stored).await;

        assert_eq!(reports.unwrap(), [report(head, Some(broken_at))]);
    }
}

#[tokio::test]
async fn a_chain_of_exactly_one_batch_is_read_once() {
    let stored = links(BATCH);
    let head = head_of(&stored);

    let reports = check_whole(head, stored).await;

    assert_eq!(reports.unwrap(), [report(head, None)]);
}

#[tokio::test]
async fn a_long_chain_is_read_in_batches_that_build_on_each_other() {
    let mut first = links(2 * BATCH + 1);
    let head = head_of(&first);
    let mut second = first.split_off(BATCH as usize);
    let third = second.split_off(BATCH as usize);
    let mut ports = ports_with_heads(vec![head]);
    expect_links(&mut ports, head.chain, 0, first);
    expect_links(&mut ports, head.chain, BATCH, second);
    expect_links(&mut ports, head.chain, 2 * BATCH, third);
    expect_behind(&mut ports, head, vec![]);

    let reports = ports.services().audit.verify().await;

    assert_eq!(reports.unwrap(), [report(head, None)]);
}

#[tokio::test]
async fn a_long_chain_is_broken_where_a_later_batch_is() {
    let mut first = links(BATCH + 2);
    let head = head_of(&first);
    let second = first.split_off(BATCH as usize);
    for (stored, broken_at) in [(tampered(second.clone(), 1), BATCH + 2), (without(second, 0), BATCH + 1)] {
        let mut ports = ports_with_heads(vec![head]);
        expect_links(&mut ports, head.chain, 0, first.clone());
        expect_links(&mut ports, head.chain, BATCH, stored);

        let reports = ports.services().audit.verify().await;

        assert_eq!(reports.unwrap(), [report(head, Some(broken_at))]);
    }
}

#[tokio::test]
async fn every_chain_is_checked_whatever_is_wrong_with_the_others() {
    let installation = chained([an_entry().in_chain(Chain::Installation).build()]);
    let [broken, whole] = [head_of(&installation), head_of(&links(2))];
    let mut ports = ports_with_heads(vec![broken, whole]);
    expect_links(&mut ports, Chain::Installation, 0, tampered(installation, 0));
    expect_links(&mut ports, whole.chain, 0, links(2));
    expect_behind(&mut ports, whole, vec![]);

    let reports = ports.services().audit.verify().await;

    assert_eq!(reports.unwrap(), [report(broken, Some(1)), report(whole, None)]);
}

#[tokio::test]
async fn nothing_is_checked_while_heads_cannot_be_read() {
    let mut ports = MockedPorts::default();
    ports.audit.expect_heads().once().returning(|| Err(unavailable()));

    assert_refused(ports.services().audit.verify().await, unavailable());
}

#[tokio::test]
async fn links_that_cannot_be_read_are_not_called_broken() {
    let mut ports = ports_with_heads(vec![head_of(&links(2))]);
    ports.audit.expect_links().once().returning(|_, _, _| Err(unavailable()));

    assert_refused(ports.services().audit.verify().await, unavailable());
}
