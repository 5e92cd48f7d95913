//! Contract of `CertificateRepository` about HSTS policies.

use launchway_database::Database;
use launchway_domain::{
    applications::{Application, Hostname},
    certificates::{CertificateRepository as _, HstsMaxAge, HstsPolicy, Write},
};
use launchway_testkit::builders::parsed;

use crate::{
    applications::{an_application_of, domains, insert},
    builders::{Resident, commit, id, is_stale},
};

contract!(
    an_hsts_policy_goes_with_its_domain,
    hsts_policies_belong_to_the_organization,
    an_hsts_policy_changes_the_revision,
);

fn shop() -> Hostname {
    parsed("shop.example.com")
}

async fn a_shop(db: &Database, resident: &Resident) -> Application {
    let shop = an_application_of(resident).named("shop").at_domain("shop.example.com").build();
    insert(db, &shop).await.unwrap();
    shop
}

fn set_hsts(resident: &Resident, application: &Application, seconds: Option<i64>) -> Write {
    let max_age = seconds.map(|seconds| HstsMaxAge::try_from(seconds).unwrap());
    Write::SetHsts { scope: resident.scope(), application_id: application.id, domain: shop(), max_age }
}

fn policy(application: &Application, seconds: i64) -> HstsPolicy {
    HstsPolicy {
        domain: shop(),
        application_id: application.id,
        max_age: HstsMaxAge::try_from(seconds).unwrap(),
    }
}

async fn an_hsts_policy_goes_with_its_domain(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let web = a_shop(&db, &ada).await;
    assert!(is_stale(&commit(&db, set_hsts(&ada, &web, None)).await));
    for seconds in [300, 0, i64::from(HstsMaxAge::MOST)] {
        commit(&db, set_hsts(&ada, &web, Some(seconds))).await.unwrap();
        assert_eq!(db.hsts().await.unwrap(), [policy(&web, seconds)]);
    }
    commit(&db, set_hsts(&ada, &web, None)).await.unwrap();
    assert_eq!(db.hsts().await.unwrap(), []);
    commit(&db, set_hsts(&ada, &web, Some(300))).await.unwrap();
    domains::remove(&db, &web, "shop.example.com").await.unwrap();
    assert_eq!(db.hsts().await.unwrap(), []);
    assert!(is_stale(&commit(&db, set_hsts(&ada, &web, Some(300))).await));
    // The next application that gets the domain has none.
    let other = an_application_of(&ada).named("other").at_domain("shop.example.com").build();
    insert(&db, &other).await.unwrap();
    assert_eq!(db.hsts_of(ada.scope(), &[other.id]).await.unwrap(), []);
}

async fn hsts_policies_belong_to_the_organization(db: Database) {
    let (ada, bob) = (Resident::of(&db, "ada").await, Resident::of(&db, "bob").await);
    let web = a_shop(&db, &ada).await;
    commit(&db, set_hsts(&ada, &web, Some(300))).await.unwrap();
    assert_eq!(db.hsts_of(ada.scope(), &[web.id, id()]).await.unwrap(), [policy(&web, 300)]);
    assert_eq!(db.hsts_of(ada.scope(), &[id()]).await.unwrap(), []);
    assert_eq!(db.hsts_of(bob.scope(), &[web.id]).await.unwrap(), []);
    for seconds in [Some(1), None] {
        assert!(is_stale(&commit(&db, set_hsts(&bob, &web, seconds)).await));
    }
}

async fn an_hsts_policy_changes_the_revision(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let web = a_shop(&db, &ada).await;
    let first = db.certificates_revision().await.unwrap();
    let (mut seen, mut epochs) = (vec![first.clone()], vec![db.routes_epoch().await.unwrap()]);
    for seconds in [Some(300), Some(600)] {
        commit(&db, set_hsts(&ada, &web, seconds)).await.unwrap();
        let revision = db.certificates_revision().await.unwrap();
        assert!(!seen.contains(&revision));
        seen.push(revision);
        epochs.push(db.routes_epoch().await.unwrap());
    }
    commit(&db, set_hsts(&ada, &web, None)).await.unwrap();
    assert_eq!(db.certificates_revision().await.unwrap(), first);
    epochs.push(db.routes_epoch().await.unwrap());
    assert!(epochs.is_sorted_by(|one, next| one < next), "{epochs:?}");
}
