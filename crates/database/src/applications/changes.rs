//! Lists applications that changed.

use async_trait::async_trait;
use diesel::{dsl::exists, prelude::*};
use launchway_domain::{
    clock::Timestamp, deployments::ApplicationChanges, ids::ApplicationId, store::StoreError,
};

use crate::{
    Database,
    columns::{DbId, DbTs},
    schema::{applications, deployments},
};

#[async_trait]
impl ApplicationChanges for Database {
    async fn changed_applications(&self, since: Option<Timestamp>) -> Result<Vec<ApplicationId>, StoreError> {
        self.read(move |connection| {
            let all = applications::table.select(applications::id).order(applications::id);
            let ids: Vec<DbId> = match since.map(DbTs) {
                None => all.load(connection)?,
                Some(since) => {
                    let changed = deployments::table
                        .filter(deployments::application_id.eq(applications::id))
                        .filter(deployments::updated_at.ge(since));
                    all.filter(applications::updated_at.ge(since).or(exists(changed))).load(connection)?
                }
            };
            Ok(ids.into_iter().map(ApplicationId::from).collect())
        })
        .await
    }
}
