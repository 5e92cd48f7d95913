//! The applications of a repository, and those that follow their branch.

use launchway_database::Database;
use launchway_domain::{
    applications::Application,
    ids::ApplicationId,
    webhooks::{FollowedBranches as _, WebhookRepository as _},
};
use launchway_testkit::builders::ApplicationBuilder;

use super::{a_secret, confirm, give, replace, repository_of};
use crate::{
    applications::{an_application_of, delete, insert},
    builders::{Resident, id},
};

contract!(
    applications_are_found_by_any_spelling_of_their_repository,
    auto_deployed_applications_of_verified_repositories_follow,
);

async fn made(
    db: &Database,
    application: ApplicationBuilder,
    change: impl FnOnce(&mut Application),
) -> Application {
    let mut application = application.build();
    application.id = id();
    change(&mut application);
    insert(db, &application).await.unwrap();
    application
}

fn ids(applications: &[Application]) -> Vec<ApplicationId> {
    applications.iter().map(|application| application.id).collect()
}

async fn applications_are_found_by_any_spelling_of_their_repository(db: Database) {
    let (ada, bob) = (Resident::of(&db, "ada").await, Resident::of(&db, "bob").await);
    let of = |resident, name, address| an_application_of(resident).named(name).from_git(address);
    let one = made(&db, of(&ada, "one", "https://git.example.com/engine.git"), |_| ()).await;
    let two =
        made(&db, of(&ada, "two", "git@GIT.example.com:engine"), |new| new.blueprint.auto_deploy = false)
            .await;
    let gone = made(&db, of(&ada, "gone", "https://git.example.com/engine"), |_| ()).await;
    delete(&db, &gone, 5).await.unwrap();
    made(&db, of(&ada, "other", "https://git.example.com/engines"), |_| ()).await;
    made(&db, an_application_of(&ada).named("image").from_image("git.example.com/engine"), |_| ()).await;
    let next_door = made(&db, of(&bob, "one", "https://git.example.com/engine"), |_| ()).await;

    let key = repository_of(&one);
    let found = db.applications_of(ada.scope(), &key).await.unwrap();
    assert_eq!(ids(&found), [one.id, two.id]);
    assert_eq!(found[0].blueprint, one.blueprint);
    assert_eq!(ids(&db.applications_of(bob.scope(), &key).await.unwrap()), [next_door.id]);
}

async fn auto_deployed_applications_of_verified_repositories_follow(db: Database) {
    let (ada, bob) = (Resident::of(&db, "ada").await, Resident::of(&db, "bob").await);
    let of = |resident, name, address| an_application_of(resident).named(name).from_git(address);
    let engine = "https://git.example.com/engine";
    let followed = made(&db, of(&ada, "followed", engine), |_| ()).await;
    made(&db, of(&ada, "by hand", engine), |new| new.blueprint.auto_deploy = false).await;
    let gone = made(&db, of(&ada, "gone", engine), |_| ()).await;
    delete(&db, &gone, 5).await.unwrap();
    let other = made(&db, of(&ada, "other", "https://git.example.com/other"), |_| ()).await;
    let next_door = made(&db, of(&bob, "next door", engine), |_| ()).await;
    for application in [&followed, &other, &next_door] {
        give(&db, &a_secret(application.organization_id, &repository_of(application), 1)).await.unwrap();
    }
    assert_eq!(db.followers().await.unwrap(), []);

    confirm(&db, ada.organization.id, &repository_of(&followed), 2).await;
    assert_eq!(ids(&db.followers().await.unwrap()), [followed.id]);
    // Another secret changes nothing about it.
    let another = a_secret(ada.organization.id, &repository_of(&followed), 3);
    replace(&db, &another, 100).await.unwrap();
    assert_eq!(ids(&db.followers().await.unwrap()), [followed.id]);
    confirm(&db, bob.organization.id, &repository_of(&next_door), 4).await;
    assert_eq!(ids(&db.followers().await.unwrap()), [followed.id, next_door.id]);
}
