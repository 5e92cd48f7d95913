//! The effect of migrations on existing records.

use diesel::{QueryableByName, RunQueryDsl as _, sql_query, sql_types::BigInt};
use diesel_migrations::MigrationHarness as _;
use launchway_database::{AnyConnection, Database, QueryError, migrations};
use launchway_domain::{
    applications::{Application, ApplicationRepository as _, Port},
    deployments::{ContainerRecord, ContainerState, Deployment},
    quotas::{Resource, UsageRepository as _},
    store::Unique,
};
use launchway_testkit::builders::{a_container, a_deployment, a_log_line, an_application, parsed};

use crate::{
    applications::{again, an_application_of, delete, insert, is_taken, stored},
    builders::{Resident, at, id},
    deployments::{deploy, get, insert_deployment},
    extensions::routes::{a_route, add as add_route},
    logs::append,
    notifications::{a_reader, announced, deliveries},
    search::{BLOCK, count_lines, index_all, indexed_blocks, saying},
};

contract!(
    applications_that_are_there_get_hosts,
    containers_that_are_there_get_a_port,
    application_names_survive_the_migration_of_extension_names,
    existing_deployments_get_no_requesting_user,
    logs_that_are_there_are_counted,
    logs_that_are_there_are_searched_and_indexed,
);

/// Reverts the migrations down to that one, including it.
async fn revert_to(db: &Database, version: &'static str) {
    let reverted = db.write(move |connection| {
        loop {
            let reverted = match connection {
                AnyConnection::Sqlite(sqlite) => sqlite.revert_last_migration(migrations::SQLITE),
                AnyConnection::Postgres(postgres) => postgres.revert_last_migration(migrations::POSTGRES),
            };
            if reverted.map_err(QueryError::Migration)?.to_string() == version {
                return Ok(());
            }
        }
    });
    reverted.await.unwrap();
}

const HOSTS: &str = "20261115000005";
const EXTENSIONS: &str = "20261115000006";
const NOTIFICATIONS: &str = "20261115000008";
const LOG_USAGE: &str = "20261116000020";
const SEARCH_INDEX: &str = "20261117000510";

async fn applications_that_are_there_get_hosts(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let web = an_application_of(&ada).at_domain("web.example.com").also_at("a.example.com").build();
    let bare = an_application_of(&ada).named("bare").build();
    // Of two that had a domain one after the other only one has it now.
    let gone = an_application_of(&ada).named("gone").at_domain("next.example.com").build();
    let next = an_application_of(&ada).named("next").at_domain("next.example.com").build();
    for application in [&web, &bare, &gone] {
        insert(&db, application).await.unwrap();
    }
    delete(&db, &gone, 1).await.unwrap();
    insert(&db, &next).await.unwrap();

    revert_to(&db, HOSTS).await;
    db.migrate().await.unwrap();
    let mut hosts = Vec::new();
    for before in [web, bare, next] {
        let host = format!("app-{}.organization.localhost", before.id.to_string().replace('-', ""));
        let expected = Application { automatic_host: parsed(&host), further_domains: vec![], ..before };
        assert_eq!(again(&db, &expected).await, expected);
        hosts.extend(expected.hosts().map(str::to_owned));
    }
    hosts.sort();
    let named = db.named().await.unwrap();
    let mut stored: Vec<String> = named.into_iter().flat_map(|application| application.hosts).collect();
    stored.sort();
    assert_eq!(stored, hosts);
    let taken = an_application_of(&ada).named("new").at_domain("web.example.com").build();
    assert!(is_taken(&insert(&db, &taken).await, Unique::Domain));
}

async fn containers_that_are_there_get_a_port(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let mut blueprint = an_application().build().blueprint;
    blueprint.port = Port::try_from(3000).unwrap();
    let web = an_application_of(&ada).with_blueprint(blueprint).build();
    insert(&db, &web).await.unwrap();
    let contained = a_deployment().of(&web).run_by(a_container("web")).build();
    let container = ContainerRecord { state: ContainerState::Removed, address: None, ..a_container("old") };
    let removed = Deployment { id: id(), container: Some(container), ..contained.clone() };
    let without = Deployment { id: id(), container: None, ..contained.clone() };
    for deployment in [&contained, &removed, &without] {
        assert_eq!(insert_deployment(&db, deployment).await, *deployment);
    }

    revert_to(&db, HOSTS).await;
    db.migrate().await.unwrap();
    for mut deployment in [contained, removed, without] {
        if let Some(container) = &mut deployment.container {
            container.port = Port::try_from(3000).unwrap();
        }
        assert_eq!(get(&db, ada.scope(), deployment.id).await, Some(deployment));
    }
}

async fn application_names_survive_the_migration_of_extension_names(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let web = an_application_of(&ada).at_domain("web.example.com").also_at("a.example.com").build();
    insert(&db, &web).await.unwrap();
    let route = a_route(&ada, "db", "db.example.com");
    add_route(&db, &route).await.unwrap();
    let before = db.named().await.unwrap();

    revert_to(&db, EXTENSIONS).await;
    db.migrate().await.unwrap();
    assert_eq!(db.named().await.unwrap(), before);
    assert!(!db.is_named("db.example.com").await.unwrap());
    for host in ["web.example.com", "a.example.com"] {
        assert!(is_taken(&add_route(&db, &a_route(&ada, "db", host)).await, Unique::Domain), "{host}");
    }
    add_route(&db, &route).await.unwrap();
}

async fn existing_deployments_get_no_requesting_user(db: Database) {
    let ada = a_reader(&db, "ada").await;
    let web = an_application_of(&ada).build();
    insert(&db, &web).await.unwrap();
    let before = Deployment { requested_by: "ada".to_owned(), ..a_deployment().of(&web).build() };
    insert_deployment(&db, &before).await;
    announced(&db, ada.scope(), 1).await;
    assert_eq!(deliveries(&db, ada.scope()).await.len(), 1);

    revert_to(&db, NOTIFICATIONS).await;
    db.migrate().await.unwrap();
    let after = Deployment { requested_by: String::new(), ..before };
    assert_eq!(get(&db, ada.scope(), after.id).await, Some(after));
    // The migration deletes channels and events.
    announced(&db, ada.scope(), 2).await;
    assert_eq!(deliveries(&db, ada.scope()).await, []);
}

#[derive(QueryableByName)]
struct Bytes {
    #[diesel(sql_type = BigInt)]
    bytes: i64,
}

/// The bytes of each log by the records, smallest first.
async fn recorded_bytes(db: &Database) -> Vec<i64> {
    let query = |connection: &mut AnyConnection| {
        let query = sql_query("SELECT bytes FROM log_usage ORDER BY bytes");
        let rows: Vec<Bytes> = match connection {
            AnyConnection::Sqlite(sqlite) => query.load(sqlite)?,
            AnyConnection::Postgres(postgres) => query.load(postgres)?,
        };
        Ok(rows.into_iter().map(|row| row.bytes).collect())
    };
    db.read(query).await.unwrap()
}

async fn logs_that_are_there_are_counted(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let (web, other) = (stored(&db, &ada, "web").await, stored(&db, &ada, "other").await);
    stored(&db, &ada, "silent").await;
    let (of_web, of_other) = (deploy(&db, &web, 1).await, deploy(&db, &other, 2).await);
    let line = |deployment, text: &str| a_log_line().of(deployment).saying(text).new_line();
    // Bytes, not characters: 6 and 4.
    append(&db, vec![line(&of_web, "héllo"), line(&of_web, "🚀"), line(&of_web, "")]).await;
    append(&db, vec![line(&of_other, "12345")]).await;
    assert_eq!(recorded_bytes(&db).await, [105, 310]);

    revert_to(&db, LOG_USAGE).await;
    // A server of the version before goes on writing.
    let longer = db.write(|connection| {
        let update = sql_query("UPDATE application_logs SET log = log || 'é'");
        Ok(match connection {
            AnyConnection::Sqlite(sqlite) => update.execute(sqlite)?,
            AnyConnection::Postgres(postgres) => update.execute(postgres)?,
        })
    });
    assert_eq!(longer.await.unwrap(), 4);
    db.migrate().await.unwrap();
    assert_eq!(recorded_bytes(&db).await, [107, 316]);
    let usage = db.usage(ada.scope(), at(0)).await.unwrap();
    assert!(usage.contains(&(Resource::LogBytes, 423)), "{usage:?}");

    // What comes next is added to what was found.
    append(&db, vec![line(&of_other, "1")]).await;
    assert_eq!(recorded_bytes(&db).await, [208, 316]);
}

async fn logs_that_are_there_are_searched_and_indexed(db: Database) {
    let web = stored(&db, &Resident::of(&db, "ada").await, "web").await;
    let deployment = deploy(&db, &web, 1).await;
    append(&db, saying(&deployment, (1..=BLOCK + 5).map(|number| format!("line {number}")))).await;
    index_all(&db).await;
    revert_to(&db, SEARCH_INDEX).await;
    db.migrate().await.unwrap();
    // The migration itself reads no line.
    assert_eq!(indexed_blocks(&db).await, [0; 0]);
    assert_eq!(count_lines(&db, &web, "line 41").await, 13);
    index_all(&db).await;
    assert_eq!(indexed_blocks(&db).await, [0]);
    assert_eq!(count_lines(&db, &web, "line 41").await, 13);
    assert_eq!(count_lines(&db, &web, "line 409").await, 11);
}
