//! Concurrent changes of the same names.

use std::collections::BTreeSet;

use diesel::{QueryableByName, RunQueryDsl as _, sql_query, sql_types::BigInt};
use launchway_database::{AnyConnection, Database};
use launchway_domain::{
    applications::Application,
    store::{StoreError, Unique},
};
use tokio::task::JoinSet;

use super::{
    again, an_application_of, delete,
    domains::{add, move_to, remove},
    get,
    hosts::{named, names_of},
    insert, is_taken, stored,
};
use crate::{
    builders::{Resident, id, is_stale},
    fresh::Fresh,
};

contract!(
    of_many_who_take_a_domain_at_once_one_gets_it,
    of_many_who_want_an_automatic_host_at_once_each_gets_its_own,
    who_want_each_others_domains_do_not_wait_crosswise,
    taking_the_same_domains_in_another_order_does_not_deadlock,
    whatever_happens_at_once_all_names_fit_together,
);

const CALLERS: usize = 8;

/// Returns the database as two servers open it. A SQLite file has one server.
fn servers(fresh: &Fresh) -> [Database; 2] {
    let db = fresh.database.clone();
    let replica = if fresh.folder().is_some() { db.clone() } else { fresh.open_again() };
    [db, replica]
}

async fn of_many_who_take_a_domain_at_once_one_gets_it(fresh: &Fresh) {
    let servers = servers(fresh);
    let ada = Resident::of(&servers[0], "ada").await;
    for round in 0..5 {
        let domain = format!("{round}.example.com");
        let mut tasks = JoinSet::new();
        for caller in 0..CALLERS {
            let application = an_application_of(&ada).named(&format!("web-{round}-{caller}"));
            let (db, domain) = (servers[caller % 2].clone(), domain.clone());
            if caller % 3 != 0 {
                insert(&db, &application.clone().build()).await.unwrap();
            }
            tasks.spawn(async move {
                match caller % 3 {
                    0 => insert(&db, &application.at_domain(&domain).build()).await,
                    1 => add(&db, &application.build(), &domain).await,
                    _ => move_to(&db, &application.build(), Some(&domain)).await,
                }
            });
        }
        let outcomes = tasks.join_all().await;
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1, "{outcomes:?}");
        let taken = outcomes.iter().filter(|outcome| is_taken(outcome, Unique::Domain));
        assert_eq!(taken.count(), CALLERS - 1, "{outcomes:?}");
    }
}

async fn of_many_who_want_an_automatic_host_at_once_each_gets_its_own(fresh: &Fresh) {
    let servers = servers(fresh);
    let ada = Resident::of(&servers[0], "ada").await;
    let mut tasks = JoinSet::new();
    for caller in 0..CALLERS {
        let db = servers[caller % 2].clone();
        let application = an_application_of(&ada).named(&format!("my{}shop", "_".repeat(caller + 1))).build();
        tasks.spawn(async move {
            insert(&db, &application).await.unwrap();
            again(&db, &application).await.automatic_host.to_string()
        });
    }
    let hosts: BTreeSet<String> = tasks.join_all().await.into_iter().collect();
    let numbered = (2..=CALLERS).map(|number| format!("my-shop-{number}.ada-s-team.localhost"));
    assert_eq!(hosts, numbered.chain(["my-shop.ada-s-team.localhost".to_owned()]).collect());
}

#[derive(QueryableByName)]
struct Deadlocks {
    #[diesel(sql_type = BigInt)]
    deadlocks: i64,
}

/// Returns the number of deadlocks that PostgreSQL resolved. Their transactions are retried, so the outcome
/// does not show them.
async fn deadlocks(db: &Database) -> i64 {
    let reported = db.read(|connection| match connection {
        AnyConnection::Sqlite(_) => Ok(0),
        AnyConnection::Postgres(postgres) => {
            let query = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
            Ok(sql_query(query).get_result::<Deadlocks>(postgres)?.deadlocks)
        }
    });
    reported.await.unwrap()
}

async fn who_want_each_others_domains_do_not_wait_crosswise(fresh: &Fresh) {
    let [db, replica] = servers(fresh);
    let ada = Resident::of(&db, "ada").await;
    let one = an_application_of(&ada).named("one").at_domain("one.example.com").build();
    let two = an_application_of(&ada).named("two").at_domain("two.example.com").build();
    for application in [&one, &two] {
        insert(&db, application).await.unwrap();
    }
    for _ in 0..20 {
        let outcomes = tokio::join!(
            move_to(&db, &one, Some("two.example.com")),
            move_to(&replica, &two, Some("one.example.com")),
        );
        // As long as a name is taken, no other application gets it.
        assert!(is_taken(&outcomes.0, Unique::Domain), "{outcomes:?}");
        assert!(is_taken(&outcomes.1, Unique::Domain), "{outcomes:?}");
    }
    assert_eq!(deadlocks(&db).await, 0);
    assert_eq!((again(&db, &one).await, again(&db, &two).await), (one, two));
}

async fn taking_the_same_domains_in_another_order_does_not_deadlock(fresh: &Fresh) {
    let [db, replica] = servers(fresh);
    let ada = Resident::of(&db, "ada").await;
    for round in 0..20 {
        let domains = ["a", "b"].map(|name| format!("{name}{round}.example.com"));
        let one = an_application_of(&ada).named(&format!("one{round}"));
        let one = one.at_domain(&domains[0]).also_at(&domains[1]).build();
        let two = an_application_of(&ada).named(&format!("two{round}"));
        let two = two.at_domain(&domains[1]).also_at(&domains[0]).build();
        let outcomes = tokio::join!(insert(&db, &one), insert(&replica, &two));
        assert!(outcomes.0.is_ok() != outcomes.1.is_ok(), "{outcomes:?}");
        assert!(fits(&outcomes.0) && fits(&outcomes.1), "{outcomes:?}");
    }
    assert_eq!(deadlocks(&db).await, 0);
}

/// A caller that makes changes of all kinds, with few names.
struct Caller {
    db: Database,
    ada: Resident,
    applications: Vec<Application>,
    number: usize,
}

impl Caller {
    async fn act(&self, round: usize) {
        let pick = self.number * 7 + round * 3;
        let application = &self.applications[pick % self.applications.len()];
        let domain = format!("{}.example.com", pick / 2 % 4);
        let outcome = match (self.number + round) % 5 {
            0 => add(&self.db, application, &domain).await,
            1 => remove(&self.db, application, &domain).await,
            2 => move_to(&self.db, application, Some(&domain)).await,
            3 => move_to(&self.db, application, None).await,
            _ => self.come_and_go(&domain).await,
        };
        assert!(fits(&outcome), "{outcome:?}");
    }

    /// Creates an application, and deletes it.
    async fn come_and_go(&self, domain: &str) -> Result<(), StoreError> {
        let name = format!("guest{}", "_".repeat(self.number + 1));
        let builder = an_application_of(&self.ada).named(&name).at_domain(domain);
        let guest = Application { id: id(), ..builder.also_at(&format!("also.{domain}")).build() };
        insert(&self.db, &guest).await?;
        delete(&self.db, &guest, 1).await
    }
}

/// Concurrent changes may conflict; no other error is allowed.
fn fits(outcome: &Result<(), StoreError>) -> bool {
    outcome.is_ok() || is_stale(outcome) || is_taken(outcome, Unique::Domain)
}

async fn whatever_happens_at_once_all_names_fit_together(fresh: &Fresh) {
    let servers = servers(fresh);
    let db = &servers[0];
    let ada = Resident::of(db, "ada").await;
    let mut applications = Vec::new();
    for name in ["a", "b", "c"] {
        applications.push(stored(db, &ada, name).await);
    }
    let mut tasks = JoinSet::new();
    for number in 0..CALLERS {
        let ada = Resident {
            user: ada.user.clone(),
            organization: ada.organization.clone(),
            membership: ada.membership.clone(),
        };
        let (db, applications) = (servers[number % 2].clone(), applications.clone());
        let caller = Caller { db, ada, applications, number };
        tasks.spawn(async move {
            for round in 0..30 {
                caller.act(round).await;
            }
        });
    }
    tasks.join_all().await;
    assert_eq!(deadlocks(db).await, 0);
    let mut now = Vec::new();
    for application in &applications {
        now.push(get(db, ada.scope(), application.id).await.unwrap());
    }
    assert_eq!(named(db).await, names_of(&now));
}
