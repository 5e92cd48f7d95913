//! The host names and the searched text of an application.

use diesel::prelude::*;
use launchway_domain::{
    applications::{Application, AutomaticHost, Blueprint, Hostname},
    ids::ApplicationId,
    organizations::Scope,
    store::StoreError,
};

use super::rows::{read, read_hostnames};
use crate::{
    columns::DbId, connection::AnyConnection, dialect::hold_one, error::QueryError, schema::applications,
    search::lower_case,
};

/// The host names and the searched text of an application.
pub(super) struct Names {
    name: String,
    repository: String,
    pub(super) domain: Option<Hostname>,
    pub(super) further: Vec<Hostname>,
    pub(super) automatic: AutomaticHost,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = applications)]
struct NamesRow {
    name: String,
    repository: String,
    domain: Option<String>,
    further_domains: String,
    #[diesel(deserialize_as = String)]
    automatic_host: AutomaticHost,
}

/// The columns of [`Names`]: all of them change together.
#[derive(AsChangeset, Insertable)]
#[diesel(table_name = applications, treat_none_as_null = true, treat_none_as_default_value = false)]
pub(super) struct NameColumns<'a> {
    domain: Option<&'a str>,
    further_domains: String,
    automatic_host: &'a str,
    search: String,
}

impl Names {
    /// Returns the names of a new application.
    pub(super) fn of(application: &Application) -> Self {
        Self {
            name: application.blueprint.name.to_string(),
            repository: application.blueprint.repository.as_str().to_owned(),
            domain: application.blueprint.domain.clone(),
            further: application.further_domains.clone(),
            automatic: application.automatic_host.clone(),
        }
    }

    /// Returns the current names of an application, and locks them until the transaction ends. `Stale` when
    /// the organization has none with that id.
    pub(super) fn held(
        connection: &mut AnyConnection,
        scope: Scope,
        id: ApplicationId,
    ) -> Result<Self, QueryError> {
        hold_one(connection, id.into())?;
        let row: Option<NamesRow> = applications::table
            .find(DbId::from(id))
            .filter(applications::organization_id.eq(DbId::from(scope.id())))
            .filter(applications::deleted_at.is_null())
            .select(NamesRow::as_select())
            .first(connection)
            .optional()?;
        let row = row.ok_or(StoreError::Stale)?;
        Ok(Self {
            name: row.name,
            repository: row.repository,
            domain: read(row.domain)?,
            further: read_hostnames(&row.further_domains)?,
            automatic: row.automatic_host,
        })
    }

    /// Applies the names of the blueprint. Its domain is removed from the additional ones.
    pub(super) fn follow(&mut self, blueprint: &Blueprint) {
        self.name = blueprint.name.to_string();
        blueprint.repository.as_str().clone_into(&mut self.repository);
        self.domain.clone_from(&blueprint.domain);
        self.further.retain(|further| Some(further) != blueprint.domain.as_ref());
    }

    /// The names that users chose.
    pub(super) fn chosen(&self) -> impl Iterator<Item = &Hostname> {
        self.domain.iter().chain(&self.further)
    }

    pub(super) fn columns(&self) -> NameColumns<'_> {
        let further = self.further.iter().map(Hostname::as_str);
        let looked_at: Vec<&str> = [self.name.as_str(), &self.repository]
            .into_iter()
            .chain(self.chosen().map(Hostname::as_str))
            .collect();
        NameColumns {
            domain: self.domain.as_ref().map(Hostname::as_str),
            further_domains: serde_json::Value::from_iter(further).to_string(),
            automatic_host: self.automatic.as_str(),
            search: lower_case(&looked_at.join("\n")),
        }
    }
}
