//! The files and images of compositions in the database.

use async_trait::async_trait;
use diesel::{dsl::exists, prelude::*};
use launchway_domain::{
    deployments::CompositionRepository,
    ids::{ApplicationId, DeploymentId},
    secret::Sealed,
    store::StoreError,
};

use super::{
    Database,
    columns::DbId,
    dialect::each_backend,
    schema::{compositions, deployments},
    statement::StatementCache as _,
};

#[async_trait]
impl CompositionRepository for Database {
    async fn keep(
        &self,
        application: ApplicationId,
        deployment: DeploymentId,
        sealed: Sealed,
        most: usize,
    ) -> Result<(), StoreError> {
        let (application, deployment) = (DbId::from(application), DbId::from(deployment));
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.write(move |connection| {
            let owned =
                deployments::table.find(deployment).filter(deployments::application_id.eq(application));
            if !diesel::select(exists(owned)).get_result::<bool>(connection)? {
                return Err(StoreError::Stale.into());
            }
            let composition = compositions::sealed.eq(sealed.0.as_str());
            each_backend!(connection, backend => diesel::insert_into(compositions::table)
                .values((
                    compositions::application_id.eq(application),
                    compositions::deployment_id.eq(deployment),
                    composition,
                ))
                .on_conflict((compositions::application_id, compositions::deployment_id))
                .do_update()
                .set(composition)
                .cached()
                .execute(backend))?;
            // Ids rise with time.
            let oldest: Vec<DbId> = compositions::table
                .filter(compositions::application_id.eq(application))
                .order(compositions::deployment_id.desc())
                .select(compositions::deployment_id)
                .offset(most)
                .limit(i64::MAX)
                .load(connection)?;
            for deployment in oldest {
                diesel::delete(compositions::table.find((application, deployment))).execute(connection)?;
            }
            Ok(())
        })
        .await
    }

    async fn find(
        &self,
        application: ApplicationId,
        deployment: DeploymentId,
    ) -> Result<Option<Sealed>, StoreError> {
        let key = (DbId::from(application), DbId::from(deployment));
        self.read_point(move |connection| {
            let sealed: Option<String> =
                compositions::table.find(key).select(compositions::sealed).first(connection).optional()?;
            Ok(sealed.map(Sealed))
        })
        .await
    }

    async fn forget(&self, application: ApplicationId) -> Result<(), StoreError> {
        let application = DbId::from(application);
        self.write(move |connection| {
            let all = compositions::table.filter(compositions::application_id.eq(application));
            diesel::delete(all).execute(connection)?;
            Ok(())
        })
        .await
    }
}
