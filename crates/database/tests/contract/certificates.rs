//! Contract of `CertificateRepository` and its writes.

use launchway_database::{
    Database,
    tables::{SEALED, Tables},
};
use launchway_domain::{
    applications::{Application, Hostname},
    certificates::{
        Certificate, CertificateChanges, CertificateRepository as _, CertificateSource, Challenge,
        ExpiringCertificate, IssuedCertificate, Write, account_associated_data,
    },
    secret::Sealed,
};
use launchway_testkit::builders::parsed;

use crate::{
    applications::{an_application_of, domains, insert},
    builders::{Resident, at, commit, id, is_stale},
    fresh::Fresh,
};

contract!(
    a_requested_certificate_is_due_until_it_is_issued,
    a_failure_is_counted_until_a_success,
    an_uploaded_certificate_replaces_any_other_and_is_never_due,
    certificates_belong_to_the_organization_of_the_application,
    certificates_go_with_their_domains,
    the_domain_of_the_api_has_a_certificate_of_its_own,
    the_revision_changes_with_every_issued_certificate,
    users_are_warned_once_of_each_expiry,
    an_account_is_registered_once_for_a_directory,
    challenges_are_removed_by_token_and_by_age,
    keys_and_accounts_are_sealed_columns,
);

fn issued(number: i64) -> IssuedCertificate {
    IssuedCertificate {
        chain: format!("chain {number}"),
        key: Sealed(format!("sealed {number}")),
        not_before: at(number),
        not_after: at(number + 90),
    }
}

/// A stored application at `shop.example.com`.
async fn a_shop(db: &Database, resident: &Resident) -> Application {
    let shop = an_application_of(resident).named("shop").at_domain("shop.example.com").build();
    insert(db, &shop).await.unwrap();
    shop
}

fn shop() -> Hostname {
    parsed("shop.example.com")
}

fn request(application: &Application, number: i64) -> Write {
    Write::Request { domain: shop(), application_id: Some(application.id), at: at(number) }
}

fn issue(number: i64) -> Write {
    Write::Issue { domain: shop(), issued: issued(number), renew_at: at(number + 60), at: at(number) }
}

fn upload(resident: &Resident, application: &Application, number: i64) -> Write {
    Write::Upload {
        scope: resident.scope(),
        application_id: application.id,
        domain: shop(),
        issued: issued(number),
        at: at(number),
    }
}

async fn only(db: &Database) -> Certificate {
    let mut all = db.certificates().await.unwrap();
    assert_eq!(all.len(), 1);
    all.remove(0)
}

async fn a_requested_certificate_is_due_until_it_is_issued(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let web = a_shop(&db, &ada).await;
    let missing = db.certificate_changes(None).await.unwrap();
    assert_eq!(missing, CertificateChanges { missing: vec![(shop(), web.id)], ..Default::default() });
    commit(&db, request(&web, 10)).await.unwrap();
    assert_eq!(db.certificate_changes(None).await.unwrap(), CertificateChanges::default());
    let expected = Certificate {
        domain: shop(),
        application_id: Some(web.id),
        source: CertificateSource::Acme,
        issued: None,
        failures: 0,
        last_error: None,
        next_attempt_at: Some(at(10)),
        updated_at: at(10),
    };
    assert_eq!(db.due_certificates(at(9)).await.unwrap(), []);
    assert_eq!(db.due_certificates(at(10)).await.unwrap(), std::slice::from_ref(&expected));
    // A second request changes nothing.
    commit(&db, request(&web, 11)).await.unwrap();
    assert_eq!(only(&db).await, expected);
    commit(&db, issue(20)).await.unwrap();
    let expected = Certificate {
        issued: Some(issued(20)),
        next_attempt_at: Some(at(80)),
        updated_at: at(20),
        ..expected
    };
    assert_eq!(only(&db).await, expected);
    assert_eq!(db.due_certificates(at(79)).await.unwrap(), []);
    assert_eq!(db.due_certificates(at(80)).await.unwrap(), [expected]);
}

async fn a_failure_is_counted_until_a_success(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let web = a_shop(&db, &ada).await;
    let fail = |number| Write::Fail {
        domain: shop(),
        reason: format!("reason {number}"),
        failures: u32::try_from(number).unwrap() - 20,
        next_attempt_at: at(number + 60),
        at: at(number),
    };
    assert!(is_stale(&commit(&db, fail(21)).await));
    assert!(is_stale(&commit(&db, issue(1)).await));
    commit(&db, request(&web, 10)).await.unwrap();
    for number in 1..=2 {
        commit(&db, fail(20 + number)).await.unwrap();
        let failed = only(&db).await;
        let reason = format!("reason {}", 20 + number);
        assert_eq!((i64::from(failed.failures), failed.last_error), (number, Some(reason)));
        assert_eq!(failed.next_attempt_at, Some(at(80 + number)));
    }
    commit(&db, issue(30)).await.unwrap();
    let renewed = only(&db).await;
    assert_eq!((renewed.failures, renewed.last_error), (0, None));
    commit(&db, fail(90)).await.unwrap();
    assert_eq!(only(&db).await.issued, Some(issued(30)));
}

async fn an_uploaded_certificate_replaces_any_other_and_is_never_due(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let web = a_shop(&db, &ada).await;
    commit(&db, request(&web, 10)).await.unwrap();
    for number in [20, 30] {
        commit(&db, upload(&ada, &web, number)).await.unwrap();
        let uploaded = only(&db).await;
        assert_eq!((uploaded.source, uploaded.next_attempt_at), (CertificateSource::Uploaded, None));
        assert_eq!(uploaded.issued, Some(issued(number)));
    }
    assert_eq!(db.due_certificates(at(1_000_000)).await.unwrap(), []);
    // An answer of the ACME server that comes too late.
    assert!(is_stale(&commit(&db, issue(40)).await));
    let delete = Write::Delete { scope: ada.scope(), application_id: web.id, domain: shop() };
    commit(&db, delete.clone()).await.unwrap();
    assert_eq!(db.certificates().await.unwrap(), []);
    assert!(is_stale(&commit(&db, delete).await));
}

async fn certificates_belong_to_the_organization_of_the_application(db: Database) {
    let (ada, bob) = (Resident::of(&db, "ada").await, Resident::of(&db, "bob").await);
    let web = a_shop(&db, &ada).await;
    commit(&db, upload(&ada, &web, 10)).await.unwrap();
    assert_eq!(db.certificates_of(ada.scope(), &[web.id, id()]).await.unwrap(), [only(&db).await]);
    assert_eq!(db.certificates_of(ada.scope(), &[id()]).await.unwrap(), []);
    assert_eq!(db.certificates_of(bob.scope(), &[web.id]).await.unwrap(), []);
    assert!(is_stale(&commit(&db, upload(&bob, &web, 20)).await));
    let delete = Write::Delete { scope: bob.scope(), application_id: web.id, domain: shop() };
    assert!(is_stale(&commit(&db, delete).await));
    assert_eq!(only(&db).await.issued, Some(issued(10)));
}

async fn certificates_go_with_their_domains(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let web = a_shop(&db, &ada).await;
    commit(&db, upload(&ada, &web, 10)).await.unwrap();
    commit(&db, Write::DeleteUnused { api_domain: None }).await.unwrap();
    assert_eq!(db.certificates().await.unwrap().len(), 1);
    domains::remove(&db, &web, "shop.example.com").await.unwrap();
    assert!(is_stale(&commit(&db, request(&web, 20)).await));
    assert!(is_stale(&commit(&db, upload(&ada, &web, 20)).await));
    // Another application gets the domain before the certificate is gone.
    let other = an_application_of(&ada).named("other").at_domain("shop.example.com").build();
    insert(&db, &other).await.unwrap();
    assert!(db.certificate_changes(None).await.unwrap().has_unused);
    commit(&db, Write::DeleteUnused { api_domain: None }).await.unwrap();
    let changes = db.certificate_changes(None).await.unwrap();
    assert_eq!(changes, CertificateChanges { missing: vec![(shop(), other.id)], ..Default::default() });
}

async fn the_domain_of_the_api_has_a_certificate_of_its_own(db: Database) {
    let own: Hostname = parsed("deploy.example.com");
    let changes = db.certificate_changes(Some(own.clone())).await.unwrap();
    assert_eq!(changes, CertificateChanges { is_api_missing: true, ..Default::default() });
    commit(&db, Write::Request { domain: own.clone(), application_id: None, at: at(1) }).await.unwrap();
    assert_eq!(db.certificate_changes(Some(own.clone())).await.unwrap(), CertificateChanges::default());
    commit(&db, Write::DeleteUnused { api_domain: Some(own.clone()) }).await.unwrap();
    assert_eq!(only(&db).await.application_id, None);
    assert!(db.certificate_changes(Some(parsed("other.example.com"))).await.unwrap().has_unused);
    commit(&db, Write::DeleteUnused { api_domain: None }).await.unwrap();
    assert_eq!(db.certificates().await.unwrap(), []);
}

async fn the_revision_changes_with_every_issued_certificate(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let web = a_shop(&db, &ada).await;
    let empty = db.certificates_revision().await.unwrap();
    commit(&db, request(&web, 10)).await.unwrap();
    assert_eq!(db.certificates_revision().await.unwrap(), empty);
    let mut seen = vec![empty];
    for write in [issue(20), issue(30), upload(&ada, &web, 40)] {
        commit(&db, write).await.unwrap();
        let revision = db.certificates_revision().await.unwrap();
        assert!(!seen.contains(&revision));
        assert_eq!(db.certificates_revision().await.unwrap(), revision);
        seen.push(revision);
    }
}

async fn users_are_warned_once_of_each_expiry(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let web = a_shop(&db, &ada).await;
    commit(&db, request(&web, 0)).await.unwrap();
    assert_eq!(db.expiring_certificates(at(1_000)).await.unwrap(), []);
    commit(&db, issue(0)).await.unwrap();
    let expected = ExpiringCertificate {
        domain: shop(),
        scope: ada.scope(),
        application_id: web.id,
        application: "shop".to_owned(),
        environment: web.blueprint.environment.as_str().to_owned(),
        source: CertificateSource::Acme,
        not_before: at(0),
        not_after: at(90),
        last_error: None,
    };
    assert_eq!(db.expiring_certificates(at(90)).await.unwrap(), []);
    assert_eq!(db.expiring_certificates(at(91)).await.unwrap(), std::slice::from_ref(&expected));
    let warn = |number| Write::Warn { domain: shop(), not_after: at(number) };
    assert!(is_stale(&commit(&db, warn(91)).await));
    commit(&db, warn(90)).await.unwrap();
    assert!(is_stale(&commit(&db, warn(90)).await));
    assert_eq!(db.expiring_certificates(at(91)).await.unwrap(), []);
    commit(&db, issue(10)).await.unwrap();
    let renewed = ExpiringCertificate { not_before: at(10), not_after: at(100), ..expected };
    assert_eq!(db.expiring_certificates(at(101)).await.unwrap(), [renewed]);
}

async fn an_account_is_registered_once_for_a_directory(db: Database) {
    let register = |directory: &str, text: &str| Write::Register {
        directory: directory.to_owned(),
        credentials: Sealed(text.to_owned()),
        at: at(1),
    };
    assert_eq!(db.acme_account("one").await.unwrap(), None);
    for (directory, text) in [("one", "first"), ("one", "second"), ("two", "third")] {
        commit(&db, register(directory, text)).await.unwrap();
    }
    assert_eq!(db.acme_account("one").await.unwrap(), Some(Sealed("first".to_owned())));
    assert_eq!(db.acme_account("two").await.unwrap(), Some(Sealed("third".to_owned())));
}

async fn challenges_are_removed_by_token_and_by_age(db: Database) {
    let challenge = |token: &str| Challenge {
        token: token.to_owned(),
        key_authorization: format!("{token}.thumbprint"),
        tls_domain: (token == "b").then(shop),
    };
    for (token, seconds) in [("a", 1), ("b", 2), ("c", 3), ("c", 4)] {
        commit(&db, Write::AddChallenge { challenge: challenge(token), at: at(seconds) }).await.unwrap();
    }
    let all = ["a", "b", "c"].map(challenge);
    assert_eq!(db.challenges().await.unwrap(), all);
    let tokens = vec!["c".to_owned(), "unknown".to_owned()];
    commit(&db, Write::RemoveChallenges { tokens, older_than: at(2) }).await.unwrap();
    assert_eq!(db.challenges().await.unwrap(), [challenge("b")]);
}

async fn keys_and_accounts_are_sealed_columns(fresh: &Fresh) {
    let db = &fresh.database;
    let ada = Resident::of(db, "ada").await;
    let web = a_shop(db, &ada).await;
    commit(db, upload(&ada, &web, 10)).await.unwrap();
    let (directory, credentials) = ("https://acme.example.com/dir".to_owned(), Sealed("account".to_owned()));
    commit(db, Write::Register { directory: directory.clone(), credentials, at: at(1) }).await.unwrap();
    let expected = [
        ("certificates", Certificate::associated_data(&shop()), "sealed 10"),
        ("acme_accounts", account_associated_data(&directory), "account"),
    ];
    let mut tables = Tables::to_change(&fresh.url()).unwrap();
    for (table, place, value) in expected {
        let column = SEALED.iter().find(|column| column.table == table).unwrap();
        let mut seen = Vec::new();
        let look = |place: &str, value: &str| {
            seen.push((place.to_owned(), value.to_owned()));
            Ok(None)
        };
        assert_eq!(tables.change_sealed(column, look).unwrap(), (1, 0));
        assert_eq!(seen, [(place, value.to_owned())]);
    }
}
