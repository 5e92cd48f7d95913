//! Contract of `ApplicationChanges`.

use launchway_database::Database;
use launchway_domain::{deployments::ApplicationChanges as _, ids::ApplicationId};

use super::{delete, stored};
use crate::{
    builders::{Resident, at},
    deployments::{bring_to_life, deploy},
};

contract!(applications_are_listed_that_or_whose_deployments_changed);

async fn applications_are_listed_that_or_whose_deployments_changed(db: Database) {
    let (ada, bob) = (Resident::of(&db, "ada").await, Resident::of(&db, "bob").await);
    let still = stored(&db, &ada, "still").await;
    let deployed = stored(&db, &ada, "deployed").await;
    let deleted = stored(&db, &bob, "deleted").await;
    let deployment = deploy(&db, &deployed, 1).await;
    let changed = async |since| db.changed_applications(since).await.unwrap();
    let sorted = |mut ids: Vec<ApplicationId>| {
        ids.sort_unstable();
        ids
    };
    let all = sorted(vec![still.id, deployed.id, deleted.id]);
    assert_eq!(changed(None).await, all);
    bring_to_life(&db, deployment.id, 1000).await;
    delete(&db, &deleted, 2000).await.unwrap();
    assert_eq!(changed(None).await, all);
    assert_eq!(changed(Some(at(1000))).await, sorted(vec![deployed.id, deleted.id]));
    assert_eq!(changed(Some(at(1001))).await, [deleted.id]);
    assert_eq!(changed(Some(at(2001))).await, []);
    deploy(&db, &deployed, 3000).await;
    assert_eq!(changed(Some(at(2001))).await, [deployed.id]);
}
