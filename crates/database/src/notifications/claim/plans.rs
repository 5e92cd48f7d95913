//! Tests of the query plans for going from channel to channel.

use diesel::{
    Connection as _, QueryableByName, RunQueryDsl as _, connection::SimpleConnection as _, pg::PgConnection,
    sql_query, sql_types::Text, sqlite::SqliteConnection,
};
use diesel_migrations::MigrationHarness as _;
use launchway_testkit::postgres::FreshDatabase;

use super::HEADS;
use crate::migrations;

#[test]
fn sqlite_reads_nothing_but_the_index_of_what_waits() {
    #[derive(QueryableByName)]
    struct Step {
        #[diesel(sql_type = Text)]
        detail: String,
    }
    let mut sqlite = SqliteConnection::establish(":memory:").unwrap();
    sqlite.run_pending_migrations(migrations::SQLITE).unwrap();
    let steps: Vec<Step> = sql_query(format!("EXPLAIN QUERY PLAN {HEADS}")).load(&mut sqlite).unwrap();
    let reads: Vec<_> = steps.iter().filter(|step| step.detail.contains(" deliveries ")).collect();
    assert_eq!(reads.len(), 3);
    assert!(reads.iter().all(|step| step.detail.contains("COVERING INDEX deliveries_pending_idx")));
    assert!(steps.iter().all(|step| !step.detail.contains("TEMP B-TREE")));
}

/// Of ten thousand deliveries of twenty channels, about two are read per channel.
#[test]
fn postgres_reads_as_much_as_there_are_channels() {
    #[derive(QueryableByName)]
    struct Step {
        #[diesel(sql_type = Text, column_name = "QUERY PLAN")]
        text: String,
    }
    let server = FreshDatabase::create();
    let mut postgres = PgConnection::establish(&server.url()).unwrap();
    postgres.run_pending_migrations(migrations::POSTGRES).unwrap();
    let fill = "ALTER TABLE deliveries DROP CONSTRAINT deliveries_event_id_fkey;
        ALTER TABLE deliveries DROP CONSTRAINT deliveries_organization_id_fkey;
        INSERT INTO deliveries (id, event_id, organization_id, channel, config_id, state, attempt, failures,
            next_at, reason, created_at)
        SELECT gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'slack',
            lpad((number % 20)::text, 32, '0')::uuid, 'pending', 0, 0, now(), '', now()
        FROM generate_series(1, 10000) AS number;";
    postgres.batch_execute(fill).unwrap();
    for before in ["SELECT 1", "ANALYZE"] {
        postgres.batch_execute(before).unwrap();
        let explain = format!("EXPLAIN (ANALYZE, TIMING OFF, COSTS OFF, SUMMARY OFF) {HEADS}");
        let steps: Vec<Step> = sql_query(explain).load(&mut postgres).unwrap();
        let plan: Vec<_> = steps.iter().map(|step| step.text.as_str()).collect();
        let plan = plan.join("\n");
        assert!(!plan.contains("Seq Scan") && !plan.contains("Sort"), "{plan}");
        let read: usize = plan.lines().filter(|line| line.contains("Scan using")).map(rows_of).sum();
        assert!((20..100).contains(&read), "{read} rows:\n{plan}");
    }
}

/// Returns the rows of a plan node over all its loops.
fn rows_of(step: &str) -> usize {
    let after = |name: &str| -> usize {
        let rest = step.split_once(name).unwrap().1;
        rest.split([' ', ')']).next().unwrap().parse().unwrap()
    };
    after("rows=") * after("loops=")
}
