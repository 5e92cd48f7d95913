//! The extension of the index.

use launchway_database::Database;

use super::{BLOCK, count_lines, index_all, indexed_blocks, saying, stored_blocks};
use crate::{
    applications::{delete, stored},
    builders::{Resident, execute},
    deployments::deploy,
    fresh::Fresh,
    logs::append,
};

contract!(
    a_block_is_indexed_when_it_is_complete,
    blocks_of_long_lines_are_scanned,
    servers_extend_the_index_at_the_same_time,
    logs_of_deleted_applications_are_not_indexed,
    the_index_is_extended_in_the_background,
    a_block_whose_index_is_damaged_is_scanned,
);

async fn a_block_is_indexed_when_it_is_complete(db: Database) {
    let application = stored(&db, &Resident::of(&db, "ada").await, "web").await;
    let deployment = deploy(&db, &application, 1).await;
    let line = |number: usize| format!("line {number}");
    append(&db, saying(&deployment, (1..BLOCK).map(line))).await;
    assert!(!db.extend_search_index().await.unwrap());
    assert_eq!(stored_blocks(&db).await, [0; 0]);
    append(&db, saying(&deployment, [line(BLOCK)])).await;
    index_all(&db).await;
    assert_eq!(indexed_blocks(&db).await, [0]);
    append(&db, saying(&deployment, (BLOCK + 1..2 * BLOCK).map(line))).await;
    assert!(!db.extend_search_index().await.unwrap());
    assert_eq!(count_lines(&db, &application, "line 8191").await, 1);
}

async fn blocks_of_long_lines_are_scanned(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    // 4 MiB of text are indexed, and a byte more is not.
    for (name, further, blocks) in [("long", 0, vec![0]), ("longer", 1, vec![0])] {
        let application = stored(&db, &ada, name).await;
        let deployment = deploy(&db, &application, 1).await;
        let lines = (1..=BLOCK).map(|number| format!("{number:0>1024}"));
        let mut lines: Vec<String> = lines.collect();
        lines[0].push_str(&"x".repeat(further));
        for batch in lines.chunks(512) {
            append(&db, saying(&deployment, batch.iter().cloned())).await;
        }
        index_all(&db).await;
        assert_eq!(stored_blocks(&db).await, blocks, "{name}");
        assert_eq!(indexed_blocks(&db).await, blocks, "{name}");
        assert_eq!(count_lines(&db, &application, "04096").await, 1);
        assert_eq!(count_lines(&db, &application, "nowhere").await, 0);
    }
}

async fn servers_extend_the_index_at_the_same_time(fresh: &Fresh) {
    let db = &fresh.database;
    let application = stored(db, &Resident::of(db, "ada").await, "web").await;
    let deployment = deploy(db, &application, 1).await;
    for block in 0..3 {
        append(db, saying(&deployment, (1..=BLOCK).map(|number| format!("{block} line {number}")))).await;
    }
    let other = fresh.open_again();
    tokio::join!(index_all(db), index_all(&other));
    assert_eq!(indexed_blocks(db).await, [0, 1, 2]);
    assert_eq!(count_lines(&other, &application, "line 4096").await, 3);
    assert_eq!(count_lines(&other, &application, "1 line 4096").await, 1);
}

async fn logs_of_deleted_applications_are_not_indexed(db: Database) {
    let application = stored(&db, &Resident::of(&db, "ada").await, "web").await;
    let deployment = deploy(&db, &application, 1).await;
    append(&db, saying(&deployment, (0..BLOCK).map(|number| number.to_string()))).await;
    delete(&db, &application, 1).await.unwrap();
    assert!(!db.extend_search_index().await.unwrap());
    assert_eq!(stored_blocks(&db).await, [0; 0]);
}

async fn the_index_is_extended_in_the_background(db: Database) {
    let application = stored(&db, &Resident::of(&db, "ada").await, "web").await;
    let deployment = deploy(&db, &application, 1).await;
    append(&db, saying(&deployment, (0..2 * BLOCK).map(|number| number.to_string()))).await;
    let others = db.run_search_index(|| false);
    assert!(tokio::time::timeout(std::time::Duration::from_millis(200), others).await.is_err());
    assert_eq!(indexed_blocks(&db).await, [0; 0]);
    let waiter = async {
        while indexed_blocks(&db).await != [0, 1] {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        () = db.run_search_index(|| true) => unreachable!("it runs until it is dropped"),
        () = waiter => {}
    }
}

async fn a_block_whose_index_is_damaged_is_scanned(db: Database) {
    let application = stored(&db, &Resident::of(&db, "ada").await, "web").await;
    let deployment = deploy(&db, &application, 1).await;
    append(&db, saying(&deployment, (1..=BLOCK).map(|number| format!("line {number}")))).await;
    index_all(&db).await;
    // One byte is neither an entry nor the end of a bucket.
    execute(&db, "UPDATE search_postings SET postings = substr(postings, 1, 1) WHERE bucket >= 0").await;
    assert_eq!(count_lines(&db, &application, "line 4096").await, 1);
    assert_eq!(count_lines(&db, &application, "nowhere").await, 0);
}
