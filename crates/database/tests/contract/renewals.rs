//! Contract of `CertificateRepository` about planned renewals.

use launchway_database::Database;
use launchway_domain::{
    applications::{Application, Hostname},
    certificates::{Certificate, CertificateRepository as _, IssuedCertificate, Write},
    secret::Sealed,
};
use launchway_testkit::builders::parsed;

use crate::{
    applications::{an_application_of, insert},
    builders::{Resident, at, commit, is_stale},
};

contract!(
    a_renewal_is_unplanned_until_it_was_asked_for,
    a_plan_is_only_for_the_certificate_it_was_made_for,
    uploaded_failed_and_due_certificates_are_not_asked_for,
);

fn shop() -> Hostname {
    parsed("shop.example.com")
}

async fn an_issued_shop(db: &Database, resident: &Resident) -> Application {
    let shop = an_application_of(resident).named("shop").at_domain("shop.example.com").build();
    insert(db, &shop).await.unwrap();
    request(db, &shop).await;
    commit(db, issue(0)).await.unwrap();
    shop
}

async fn request(db: &Database, shop: &Application) {
    let write =
        Write::Request { domain: parsed("shop.example.com"), application_id: Some(shop.id), at: at(0) };
    commit(db, write).await.unwrap();
}

fn issued(number: i64) -> IssuedCertificate {
    IssuedCertificate {
        chain: format!("chain {number}"),
        key: Sealed("sealed".to_owned()),
        not_before: at(number),
        not_after: at(number + 90),
    }
}

fn issue(number: i64) -> Write {
    Write::Issue { domain: shop(), issued: issued(number), renew_at: at(number + 60), at: at(number) }
}

fn plan(not_after: i64, renew_at: Option<i64>, check_at: i64) -> Write {
    Write::PlanRenewal {
        domain: shop(),
        not_after: at(not_after),
        renew_at: renew_at.map(at),
        check_at: at(check_at),
    }
}

async fn unplanned(db: &Database, now: i64) -> Vec<Certificate> {
    db.unplanned_renewals(at(now), 10).await.unwrap()
}

async fn a_renewal_is_unplanned_until_it_was_asked_for(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let _shop = an_issued_shop(&db, &ada).await;
    let found = unplanned(&db, 1).await;
    assert_eq!(found, db.certificates().await.unwrap());
    assert_eq!(db.unplanned_renewals(at(1), 0).await.unwrap(), []);
    commit(&db, plan(90, Some(50), 11)).await.unwrap();
    assert_eq!(unplanned(&db, 10).await, []);
    let planned = unplanned(&db, 11).await;
    assert_eq!(planned[0].next_attempt_at, Some(at(50)));
    // Without a suggestion, the plan stays.
    commit(&db, plan(90, None, 21)).await.unwrap();
    assert_eq!(unplanned(&db, 20).await, []);
    assert_eq!(unplanned(&db, 21).await, planned);
    // The next certificate is asked for at once.
    commit(&db, issue(30)).await.unwrap();
    assert_eq!(unplanned(&db, 31).await.len(), 1);
}

async fn a_plan_is_only_for_the_certificate_it_was_made_for(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    assert!(is_stale(&commit(&db, plan(90, Some(50), 11)).await));
    let _shop = an_issued_shop(&db, &ada).await;
    commit(&db, issue(10)).await.unwrap();
    assert!(is_stale(&commit(&db, plan(90, Some(50), 11)).await));
    assert_eq!(db.certificates().await.unwrap()[0].next_attempt_at, Some(at(70)));
}

async fn uploaded_failed_and_due_certificates_are_not_asked_for(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let web = an_issued_shop(&db, &ada).await;
    assert_eq!(unplanned(&db, 59).await.len(), 1);
    assert_eq!(unplanned(&db, 60).await, []);
    let fail = Write::Fail {
        domain: shop(),
        reason: "no way".to_owned(),
        failures: 1,
        next_attempt_at: at(64),
        at: at(60),
    };
    commit(&db, fail).await.unwrap();
    assert_eq!(unplanned(&db, 61).await, []);
    assert!(is_stale(&commit(&db, plan(90, Some(80), 70)).await));
    let upload = Write::Upload {
        scope: ada.scope(),
        application_id: web.id,
        domain: shop(),
        issued: issued(62),
        at: at(62),
    };
    commit(&db, upload).await.unwrap();
    assert_eq!(unplanned(&db, 63).await, []);
    let delete = Write::Delete { scope: ada.scope(), application_id: web.id, domain: shop() };
    commit(&db, delete).await.unwrap();
    request(&db, &web).await;
    assert_eq!(unplanned(&db, -1).await, []);
}
