//! Contract of `Database::claim_setup_token`.

use launchway_database::Database;
use launchway_domain::{auth::Write as AuthWrite, secret::Sealed, store::UnitOfWork as _};
use tokio::task::JoinSet;

use crate::{
    builders::{Resident, at, audited},
    fresh::Fresh,
};

contract!(
    the_first_setup_token_stays,
    servers_that_start_at_once_get_the_same_token,
    the_first_administrator_ends_the_token,
);

fn sealed(text: &str) -> Sealed {
    Sealed(text.to_owned())
}

async fn the_first_setup_token_stays(fresh: &Fresh) {
    let one = fresh.database.claim_setup_token(sealed("one")).await.unwrap();
    assert_eq!(one, Some(sealed("one")));
    assert_eq!(fresh.open_again().claim_setup_token(sealed("two")).await.unwrap(), one);
}

async fn servers_that_start_at_once_get_the_same_token(fresh: &Fresh) {
    let mut tasks = JoinSet::new();
    for number in 0..4 {
        let db = fresh.open_again();
        tasks.spawn(async move { db.claim_setup_token(sealed(&number.to_string())).await.unwrap() });
    }
    let tokens = tasks.join_all().await;
    assert!(tokens[0].is_some() && tokens.iter().all(|token| *token == tokens[0]), "{tokens:?}");
}

async fn the_first_administrator_ends_the_token(db: Database) {
    db.claim_setup_token(sealed("one")).await.unwrap();
    let ada = Resident::of(&db, "ada").await;
    assert_eq!(db.claim_setup_token(sealed("two")).await.unwrap(), Some(sealed("one")));
    let claim = AuthWrite::ClaimInstallation { admin: ada.user.id, at: at(0) };
    db.commit(audited(vec![claim.into()])).await.unwrap();
    for _ in 0..2 {
        assert_eq!(db.claim_setup_token(sealed("two")).await.unwrap(), None);
    }
}
