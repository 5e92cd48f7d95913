//! Contract of `StorageStatistics`.

use launchway_database::Database;
use launchway_domain::{
    deployments::{ImageRecords as _, ImageSize},
    diagnostics::StorageStatistics as _,
    quotas::{Quota, Resource},
};
use launchway_testkit::builders::a_log_line;

use crate::{
    applications::stored,
    builders::{Resident, at},
    deployments::deploy,
    logs::append,
};

contract!(space_is_that_of_all_organizations);

async fn space_is_that_of_all_organizations(db: Database) {
    let before = db.stored_bytes().await.unwrap();
    assert_eq!((before.logs, before.images), (0, 0));
    assert!(before.database > 0, "{before:?}");
    let quota = Quota { resource: Resource::ImageBytes, limit: 0 };
    let mut lines = 0;
    for (name, own) in [("ada", "b"), ("grace", "c")] {
        let resident = Resident::of(&db, name).await;
        let deployment = deploy(&db, &stored(&db, &resident, "web").await, 1).await;
        append(&db, vec![a_log_line().of(&deployment).saying("hello").new_line()]).await;
        lines += 1;
        // The engine stores an image once, whoever uses it.
        let images = [("a", 1000), (own, 10)].map(|(digit, bytes)| ImageSize {
            id: format!("sha256:{}", digit.repeat(64)).parse().unwrap(),
            bytes,
        });
        db.record(resident.scope(), deployment.id, images.into(), quota, at(2)).await.unwrap();
    }
    let after = db.stored_bytes().await.unwrap();
    assert_eq!((after.logs, after.images), (lines * 105, 1020));
}
