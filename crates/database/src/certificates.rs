//! Certificates, ACME accounts, challenges and HSTS policies in the database.

mod hsts;
mod renewals;

use async_trait::async_trait;
use data_encoding::HEXLOWER;
use diesel::{
    dsl::{exists, not},
    prelude::*,
};
use launchway_domain::{
    applications::Hostname,
    certificates::{
        Certificate, CertificateChanges, CertificateRepository, CertificateSource, Challenge,
        ExpiringCertificate, HstsPolicy, IssuedCertificate, Write,
    },
    clock::Timestamp,
    ids::{ApplicationId, DeploymentId},
    organizations::Scope,
    secret::Sealed,
    store::StoreError,
};
use sha2::{Digest as _, Sha256};

use super::{
    Database,
    columns::{DbId, DbTs},
    connection::AnyConnection,
    dialect::each_backend,
    error::{QueryError, guarded},
    schema::{acme_accounts, acme_challenges, applications, certificates, hosts},
    statement::{ListComparison as _, StatementCache as _},
};

#[derive(Queryable, Selectable)]
#[diesel(table_name = certificates)]
struct CertificateRow {
    domain: String,
    application_id: Option<DbId>,
    source: String,
    chain: Option<String>,
    private_key: Option<String>,
    not_before: Option<DbTs>,
    not_after: Option<DbTs>,
    failures: i32,
    last_error: Option<String>,
    next_attempt_at: Option<DbTs>,
    updated_at: DbTs,
}

impl TryFrom<CertificateRow> for Certificate {
    type Error = QueryError;

    fn try_from(row: CertificateRow) -> Result<Self, QueryError> {
        let issued = match (row.chain, row.private_key, row.not_before, row.not_after) {
            (Some(chain), Some(key), Some(DbTs(not_before)), Some(DbTs(not_after))) => {
                Some(IssuedCertificate { chain, key: Sealed(key), not_before, not_after })
            }
            _ => None,
        };
        Ok(Self {
            domain: Hostname::try_from(row.domain).map_err(QueryError::unreadable)?,
            application_id: row.application_id.map(ApplicationId::from),
            source: row.source.parse().map_err(QueryError::unreadable)?,
            issued,
            failures: u32::try_from(row.failures).map_err(QueryError::unreadable)?,
            last_error: row.last_error,
            next_attempt_at: row.next_attempt_at.map(|at| at.0),
            updated_at: row.updated_at.0,
        })
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = certificates)]
struct ExpiringRow {
    domain: String,
    #[diesel(select_expression = applications::id)]
    application_id: DbId,
    #[diesel(select_expression = applications::organization_id)]
    organization_id: DbId,
    #[diesel(select_expression = applications::name)]
    application: String,
    #[diesel(select_expression = applications::environment)]
    environment: String,
    source: String,
    #[diesel(select_expression = certificates::not_before.assume_not_null())]
    not_before: DbTs,
    #[diesel(select_expression = certificates::not_after.assume_not_null())]
    not_after: DbTs,
    last_error: Option<String>,
}

impl TryFrom<ExpiringRow> for ExpiringCertificate {
    type Error = QueryError;

    fn try_from(row: ExpiringRow) -> Result<Self, QueryError> {
        Ok(Self {
            domain: Hostname::try_from(row.domain).map_err(QueryError::unreadable)?,
            scope: Scope::of_record(row.organization_id.into()),
            application_id: row.application_id.into(),
            application: row.application,
            environment: row.environment,
            source: row.source.parse().map_err(QueryError::unreadable)?,
            not_before: row.not_before.0,
            not_after: row.not_after.0,
            last_error: row.last_error,
        })
    }
}

#[async_trait]
impl CertificateRepository for Database {
    async fn certificates_of(
        &self,
        scope: Scope,
        applications: &[ApplicationId],
    ) -> Result<Vec<Certificate>, StoreError> {
        let ids: Vec<DbId> = applications.iter().copied().map(DbId::from).collect();
        self.read_point(move |connection| {
            let theirs = applications::table
                .filter(applications::organization_id.eq(DbId::from(scope.id())))
                .filter(applications::id.one_of(&ids))
                .select(applications::id.nullable());
            let rows: Vec<CertificateRow> = certificates::table
                .filter(certificates::application_id.eq_any(theirs))
                .order(certificates::domain.asc())
                .select(CertificateRow::as_select())
                .load(connection)?;
            rows.into_iter().map(Certificate::try_from).collect()
        })
        .await
    }

    async fn certificates(&self) -> Result<Vec<Certificate>, StoreError> {
        self.read(|connection| {
            let rows: Vec<CertificateRow> = certificates::table
                .order(certificates::domain.asc())
                .select(CertificateRow::as_select())
                .load(connection)?;
            rows.into_iter().map(Certificate::try_from).collect()
        })
        .await
    }

    async fn due_certificates(&self, now: Timestamp) -> Result<Vec<Certificate>, StoreError> {
        self.read(move |connection| {
            let rows: Vec<CertificateRow> = certificates::table
                .filter(certificates::next_attempt_at.le(Some(DbTs(now))))
                .order((certificates::next_attempt_at.asc(), certificates::domain.asc()))
                .select(CertificateRow::as_select())
                .load(connection)?;
            rows.into_iter().map(Certificate::try_from).collect()
        })
        .await
    }

    async fn unplanned_renewals(&self, now: Timestamp, most: u32) -> Result<Vec<Certificate>, StoreError> {
        self.read(move |connection| renewals::unplanned(connection, now, most)).await
    }

    async fn expiring_certificates(&self, time: Timestamp) -> Result<Vec<ExpiringCertificate>, StoreError> {
        self.read(move |connection| {
            let is_new = certificates::warned_for
                .is_null()
                .or(certificates::warned_for.assume_not_null().ne(certificates::not_after.assume_not_null()));
            let rows: Vec<ExpiringRow> = certificates::table
                .inner_join(
                    applications::table.on(certificates::application_id.eq(applications::id.nullable())),
                )
                .filter(certificates::not_after.lt(Some(DbTs(time))))
                .filter(is_new)
                .order((certificates::not_after.asc(), certificates::domain.asc()))
                .select(ExpiringRow::as_select())
                .load(connection)?;
            rows.into_iter().map(ExpiringCertificate::try_from).collect()
        })
        .await
    }

    async fn certificate_changes(
        &self,
        api_domain: Option<Hostname>,
    ) -> Result<CertificateChanges, StoreError> {
        self.read(move |connection| {
            let certified = certificates::table.filter(certificates::domain.eq(hosts::host));
            let missing: Vec<(String, DbId)> = hosts::table
                .filter(hosts::application_id.is_not_null())
                .filter(hosts::host.not_like("%.localhost"))
                .filter(not(exists(certified)))
                .order(hosts::host.asc())
                .select((hosts::host, hosts::application_id.assume_not_null()))
                .load(connection)?;
            let named = |(host, id)| {
                let domain = Hostname::try_from(host).map_err(QueryError::unreadable)?;
                Ok((domain, ApplicationId::from(id)))
            };
            let is_api_missing = match &api_domain {
                Some(domain) => {
                    let own = certificates::table.find(domain.as_str());
                    !diesel::select(exists(own)).get_result::<bool>(connection)?
                }
                None => false,
            };
            Ok(CertificateChanges {
                missing: missing.into_iter().map(named).collect::<Result<_, QueryError>>()?,
                is_api_missing,
                has_unused: has_unused(connection, api_domain.as_ref())?,
            })
        })
        .await
    }

    async fn live_deployment(&self, application: ApplicationId) -> Result<Option<DeploymentId>, StoreError> {
        self.read_point(move |connection| {
            let live: Option<Option<DbId>> = applications::table
                .find(DbId::from(application))
                .filter(applications::deleted_at.is_null())
                .select(applications::live_deployment_id)
                .first(connection)
                .optional()?;
            Ok(live.flatten().map(DeploymentId::from))
        })
        .await
    }

    async fn hsts_of(
        &self,
        scope: Scope,
        applications: &[ApplicationId],
    ) -> Result<Vec<HstsPolicy>, StoreError> {
        let ids: Vec<DbId> = applications.iter().copied().map(DbId::from).collect();
        self.read_point(move |connection| hsts::of_applications(connection, scope, &ids)).await
    }

    async fn hsts(&self) -> Result<Vec<HstsPolicy>, StoreError> {
        self.read(hsts::all).await
    }

    async fn certificates_revision(&self) -> Result<String, StoreError> {
        self.read(|connection| {
            let rows: Vec<(String, DbTs)> = certificates::table
                .filter(certificates::chain.is_not_null())
                .order(certificates::domain.asc())
                .select((certificates::domain, certificates::updated_at))
                .load(connection)?;
            let mut hash = Sha256::new();
            for (domain, DbTs(updated_at)) in rows {
                hash.update(format!("{domain} {}\n", updated_at.timestamp_micros()));
            }
            for HstsPolicy { domain, max_age, .. } in hsts::all(connection)? {
                hash.update(format!("hsts {domain} {}\n", max_age.get()));
            }
            Ok(HEXLOWER.encode(&hash.finalize()))
        })
        .await
    }

    async fn challenges(&self) -> Result<Vec<Challenge>, StoreError> {
        self.read_point(|connection| {
            let rows: Vec<(String, String, Option<String>)> = acme_challenges::table
                .order((acme_challenges::created_at.asc(), acme_challenges::token.asc()))
                .select((acme_challenges::token, acme_challenges::key_authorization, acme_challenges::domain))
                .load(connection)?;
            let challenge = |(token, key_authorization, domain): (_, _, Option<String>)| {
                let tls_domain =
                    domain.map(Hostname::try_from).transpose().map_err(QueryError::unreadable)?;
                Ok(Challenge { token, key_authorization, tls_domain })
            };
            rows.into_iter().map(challenge).collect()
        })
        .await
    }

    async fn acme_account(&self, directory: &str) -> Result<Option<Sealed>, StoreError> {
        let directory = directory.to_owned();
        self.read_point(move |connection| {
            let credentials: Option<String> = acme_accounts::table
                .find(&directory)
                .select(acme_accounts::credentials)
                .first(connection)
                .optional()?;
            Ok(credentials.map(Sealed))
        })
        .await
    }
}

/// Applies a change to certificates.
pub(super) fn apply(connection: &mut AnyConnection, write: &Write) -> Result<(), QueryError> {
    match write {
        Write::Request { domain, application_id, at } => request(connection, domain, *application_id, *at),
        Write::Issue { domain, issued, renew_at, at } => {
            let row = certificates::table.find(domain.as_str()).filter(of_acme());
            let next = (
                certificates::next_attempt_at.eq(Some(DbTs(*renew_at))),
                certificates::renewal_check_at.eq(None::<DbTs>),
            );
            guarded(
                diesel::update(row).set((issued_columns(issued, *at), next)).cached().execute(connection)?,
            )
        }
        Write::PlanRenewal { domain, not_after, renew_at, check_at } => {
            renewals::plan(connection, (domain, *not_after), *renew_at, *check_at)
        }
        Write::Fail { domain, reason, failures, next_attempt_at, at } => {
            let row = certificates::table.find(domain.as_str()).filter(of_acme());
            let changes = (
                certificates::failures.eq(i32::try_from(*failures).unwrap_or(i32::MAX)),
                certificates::last_error.eq(Some(reason.as_str())),
                certificates::next_attempt_at.eq(Some(DbTs(*next_attempt_at))),
                certificates::updated_at.eq(DbTs(*at)),
            );
            guarded(diesel::update(row).set(changes).cached().execute(connection)?)
        }
        Write::Upload { scope, application_id, domain, issued, at } => {
            guarded(usize::from(has_domain(connection, *scope, *application_id, domain)?))?;
            diesel::delete(certificates::table.find(domain.as_str())).execute(connection)?;
            diesel::insert_into(certificates::table)
                .values((
                    certificates::domain.eq(domain.as_str()),
                    certificates::application_id.eq(Some(DbId::from(*application_id))),
                    certificates::source.eq(CertificateSource::Uploaded.as_str()),
                    issued_columns(issued, *at),
                ))
                .execute(connection)?;
            Ok(())
        }
        Write::Delete { scope, application_id, domain } => {
            guarded(usize::from(has_domain(connection, *scope, *application_id, domain)?))?;
            let row = certificates::table
                .find(domain.as_str())
                .filter(certificates::application_id.eq(Some(DbId::from(*application_id))));
            guarded(diesel::delete(row).execute(connection)?)
        }
        Write::SetHsts { scope, application_id, domain, max_age } => {
            guarded(usize::from(has_domain(connection, *scope, *application_id, domain)?))?;
            hsts::set(connection, domain, *max_age)
        }
        Write::DeleteUnused { api_domain } => delete_unused(connection, api_domain.as_ref()),
        Write::Register { directory, credentials, at } => {
            each_backend!(connection, backend => diesel::insert_into(acme_accounts::table)
                .values((
                    acme_accounts::directory.eq(directory.as_str()),
                    acme_accounts::credentials.eq(credentials.0.as_str()),
                    acme_accounts::created_at.eq(DbTs(*at)),
                ))
                .on_conflict(acme_accounts::directory)
                .do_nothing()
                .execute(backend))?;
            Ok(())
        }
        Write::AddChallenge { challenge, at } => {
            each_backend!(connection, backend => diesel::insert_into(acme_challenges::table)
                .values((
                    acme_challenges::token.eq(challenge.token.as_str()),
                    acme_challenges::key_authorization.eq(challenge.key_authorization.as_str()),
                    acme_challenges::domain.eq(challenge.tls_domain.as_ref().map(Hostname::as_str)),
                    acme_challenges::created_at.eq(DbTs(*at)),
                ))
                .on_conflict(acme_challenges::token)
                .do_nothing()
                .execute(backend))?;
            Ok(())
        }
        Write::Warn { domain, not_after } => {
            let expiry = Some(DbTs(*not_after));
            let is_new = certificates::warned_for
                .is_null()
                .or(certificates::warned_for.assume_not_null().ne(DbTs(*not_after)));
            let row = certificates::table
                .find(domain.as_str())
                .filter(certificates::not_after.eq(expiry))
                .filter(is_new);
            guarded(
                diesel::update(row).set(certificates::warned_for.eq(expiry)).cached().execute(connection)?,
            )
        }
        Write::RemoveChallenges { tokens, older_than } => {
            let named = acme_challenges::table.filter(acme_challenges::token.one_of(tokens));
            diesel::delete(named).execute(connection)?;
            let old = acme_challenges::table.filter(acme_challenges::created_at.lt(DbTs(*older_than)));
            diesel::delete(old).execute(connection)?;
            Ok(())
        }
    }
}

type OfAcme = diesel::dsl::Eq<certificates::source, &'static str>;

fn of_acme() -> OfAcme {
    certificates::source.eq(CertificateSource::Acme.as_str())
}

type IssuedColumns<'a> = (
    diesel::dsl::Eq<certificates::chain, Option<&'a str>>,
    diesel::dsl::Eq<certificates::private_key, Option<&'a str>>,
    diesel::dsl::Eq<certificates::not_before, Option<DbTs>>,
    diesel::dsl::Eq<certificates::not_after, Option<DbTs>>,
    diesel::dsl::Eq<certificates::failures, i32>,
    diesel::dsl::Eq<certificates::last_error, Option<&'a str>>,
    diesel::dsl::Eq<certificates::updated_at, DbTs>,
);

fn issued_columns(issued: &IssuedCertificate, at: Timestamp) -> IssuedColumns<'_> {
    (
        certificates::chain.eq(Some(issued.chain.as_str())),
        certificates::private_key.eq(Some(issued.key.0.as_str())),
        certificates::not_before.eq(Some(DbTs(issued.not_before))),
        certificates::not_after.eq(Some(DbTs(issued.not_after))),
        certificates::failures.eq(0),
        certificates::last_error.eq(None),
        certificates::updated_at.eq(DbTs(at)),
    )
}

fn request(
    connection: &mut AnyConnection,
    domain: &Hostname,
    application_id: Option<ApplicationId>,
    at: Timestamp,
) -> Result<(), QueryError> {
    if let Some(id) = application_id {
        let host = hosts::table.find(domain.as_str()).filter(hosts::application_id.eq(Some(DbId::from(id))));
        guarded(usize::from(diesel::select(exists(host)).get_result::<bool>(connection)?))?;
    }
    each_backend!(connection, backend => diesel::insert_into(certificates::table)
        .values((
            certificates::domain.eq(domain.as_str()),
            certificates::application_id.eq(application_id.map(DbId::from)),
            certificates::source.eq(CertificateSource::Acme.as_str()),
            certificates::failures.eq(0),
            certificates::next_attempt_at.eq(Some(DbTs(at))),
            certificates::updated_at.eq(DbTs(at)),
        ))
        .on_conflict(certificates::domain)
        .do_nothing()
        .execute(backend))?;
    Ok(())
}

fn has_domain(
    connection: &mut AnyConnection,
    scope: Scope,
    application: ApplicationId,
    domain: &Hostname,
) -> Result<bool, QueryError> {
    let host = hosts::table
        .inner_join(applications::table.on(hosts::application_id.eq(applications::id.nullable())))
        .filter(hosts::host.eq(domain.as_str()))
        .filter(applications::id.eq(DbId::from(application)))
        .filter(applications::organization_id.eq(DbId::from(scope.id())));
    Ok(diesel::select(exists(host)).get_result(connection)?)
}

fn has_unused(connection: &mut AnyConnection, api_domain: Option<&Hostname>) -> Result<bool, QueryError> {
    let host = hosts::table
        .filter(hosts::host.eq(certificates::domain))
        .filter(hosts::application_id.eq(certificates::application_id));
    let of_applications =
        certificates::table.filter(certificates::application_id.is_not_null()).filter(not(exists(host)));
    let of_the_api = certificates::table
        .filter(certificates::application_id.is_null())
        .filter(certificates::domain.ne(api_domain.map_or("", Hostname::as_str)));
    Ok(diesel::select(exists(of_applications)).get_result::<bool>(connection)?
        || diesel::select(exists(of_the_api)).get_result::<bool>(connection)?)
}

fn delete_unused(connection: &mut AnyConnection, api_domain: Option<&Hostname>) -> Result<(), QueryError> {
    let host = hosts::table
        .filter(hosts::host.eq(certificates::domain))
        .filter(hosts::application_id.eq(certificates::application_id));
    let of_applications =
        certificates::table.filter(certificates::application_id.is_not_null()).filter(not(exists(host)));
    diesel::delete(of_applications).execute(connection)?;
    let of_the_api = certificates::table
        .filter(certificates::application_id.is_null())
        .filter(certificates::domain.ne(api_domain.map_or("", Hostname::as_str)));
    diesel::delete(of_the_api).execute(connection)?;
    Ok(())
}
