//! Pages of deliveries.

use launchway_database::Database;
use launchway_domain::notifications::{
    ChannelKind, Delivery, DeliveryFilter, DeliveryState, Next, NotificationRepository as _, WebhookKind,
};
use launchway_testkit::builders::a_page;

use super::{a_reader, a_stored, announced, claim, deliveries, record};
use crate::builders::at;

contract!(
    deliveries_come_newest_first_each_with_its_attempts,
    pages_divide_the_deliveries_and_count_them,
    deliveries_are_filtered_by_state_and_channel,
);

async fn deliveries_come_newest_first_each_with_its_attempts(db: Database) {
    let ada = a_reader(&db, "ada").await;
    for seconds in [5, 9, 1] {
        announced(&db, ada.scope(), seconds).await;
    }
    for round in [20, 30] {
        for claimed in claim(&db, 10, round).await {
            record(&db, &claimed, Next::Again(at(round)), round).await.unwrap();
        }
    }
    let all = deliveries(&db, ada.scope()).await;
    let moments: Vec<_> = all.iter().map(|delivery| delivery.created_at).collect();
    assert_eq!(moments, [at(9), at(5), at(1)]);
    let attempts = |delivery: &Delivery| -> Vec<_> {
        delivery.attempts.iter().map(|attempt| (attempt.number, attempt.at)).collect()
    };
    // In the second round the one was due that had no place in the first, and of the others the older.
    assert_eq!(attempts(&all[0]), [(1, at(30))]);
    assert_eq!(attempts(&all[1]), [(1, at(20)), (2, at(30))]);
    assert_eq!(attempts(&all[2]), [(1, at(20))]);
    for delivery in all {
        assert_eq!(db.delivery(ada.scope(), delivery.id).await.unwrap(), Some(delivery));
    }
}

async fn pages_divide_the_deliveries_and_count_them(db: Database) {
    let ada = a_reader(&db, "ada").await;
    for seconds in 0..7 {
        // Some at the same time: ties are split across pages as well.
        announced(&db, ada.scope(), seconds / 3).await;
    }
    let all = deliveries(&db, ada.scope()).await;
    let mut walked = Vec::new();
    for number in 1..=4 {
        let page = db.deliveries(ada.scope(), DeliveryFilter::default(), a_page(number, 3)).await.unwrap();
        assert_eq!((page.total, page.request.number()), (7, number));
        walked.extend(page.items);
    }
    assert_eq!(walked, all);
    let beyond = db.deliveries(ada.scope(), DeliveryFilter::default(), a_page(i64::MAX, 100)).await.unwrap();
    assert_eq!((beyond.items, beyond.total), (vec![], 7));
}

async fn deliveries_are_filtered_by_state_and_channel(db: Database) {
    let ada = a_reader(&db, "ada").await;
    a_stored(&db, &ada, WebhookKind::Generic).await;
    for seconds in 1..=4 {
        announced(&db, ada.scope(), seconds).await;
    }
    // Of each channel one is delivered, one dead and two wait.
    for claimed in claim(&db, 10, 5).await {
        let next = if claimed.event.at == at(1) { Next::Done } else { Next::GiveUp };
        record(&db, &claimed, next, 5).await.unwrap();
    }
    let all = deliveries(&db, ada.scope()).await;
    assert_eq!(all.len(), 8);
    for state in [None].into_iter().chain(DeliveryState::ALL.iter().copied().map(Some)) {
        for channel in [None].into_iter().chain(ChannelKind::ALL.iter().copied().map(Some)) {
            let filter = DeliveryFilter { state, channel };
            let page = db.deliveries(ada.scope(), filter, a_page(1, 100)).await.unwrap();
            let is_wanted = |delivery: &&Delivery| {
                state.is_none_or(|state| delivery.state == state)
                    && channel.is_none_or(|channel| delivery.channel == channel)
            };
            let expected: Vec<_> = all.iter().filter(is_wanted).cloned().collect();
            assert_eq!(page.total, i64::try_from(expected.len()).unwrap(), "{filter:?}");
            assert_eq!(page.items, expected, "{filter:?}");
        }
    }
}
