//! Users and their settings in the database.

use async_trait::async_trait;
use diesel::prelude::*;
use launchway_domain::{
    clock::Timestamp,
    ids::{SettingsId, UserId},
    store::StoreError,
    users::{
        EmailAddress, FontFamily, FontSize, Language, Profile, Settings, SettingsChange, Theme, User,
        UserRepository, Username, Write,
    },
};

use super::{
    Database,
    columns::{DbId, DbTs},
    connection::AnyConnection,
    dialect::each_backend,
    error::{QueryError, guarded},
    organizations,
    schema::{user_settings, users},
    statement::StatementCache as _,
};

#[derive(Queryable, Selectable)]
#[diesel(table_name = users)]
pub(super) struct UserRow {
    #[diesel(deserialize_as = DbId)]
    id: UserId,
    #[diesel(deserialize_as = String)]
    username: Username,
    #[diesel(deserialize_as = String)]
    email: EmailAddress,
    avatar: String,
    kind: String,
    is_verified: bool,
    two_factor_enabled: bool,
    idp_user_id: String,
    #[diesel(deserialize_as = DbTs)]
    created_at: Timestamp,
    #[diesel(deserialize_as = DbTs)]
    updated_at: Timestamp,
    deleted_at: Option<DbTs>,
}

impl TryFrom<UserRow> for User {
    type Error = QueryError;

    fn try_from(row: UserRow) -> Result<Self, QueryError> {
        Ok(Self {
            id: row.id,
            username: row.username,
            email: row.email,
            avatar: row.avatar,
            kind: row.kind.parse().map_err(QueryError::unreadable)?,
            is_verified: row.is_verified,
            two_factor_enabled: row.two_factor_enabled,
            idp_user_id: row.idp_user_id,
            created_at: row.created_at,
            updated_at: row.updated_at,
            deleted_at: row.deleted_at.map(Timestamp::from),
        })
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = user_settings)]
struct SettingsRow {
    #[diesel(deserialize_as = DbId)]
    id: SettingsId,
    #[diesel(deserialize_as = DbId)]
    user_id: UserId,
    auto_update: bool,
    #[diesel(deserialize_as = String)]
    theme: Theme,
    #[diesel(deserialize_as = String)]
    font_family: FontFamily,
    #[diesel(deserialize_as = i64)]
    font_size: FontSize,
    #[diesel(deserialize_as = String)]
    language: Language,
    #[diesel(deserialize_as = DbTs)]
    created_at: Timestamp,
    #[diesel(deserialize_as = DbTs)]
    updated_at: Timestamp,
    deleted_at: Option<DbTs>,
}

impl From<SettingsRow> for Settings {
    fn from(row: SettingsRow) -> Self {
        Self {
            id: row.id,
            user_id: row.user_id,
            auto_update: row.auto_update,
            theme: row.theme,
            font_family: row.font_family,
            font_size: row.font_size,
            language: row.language,
            created_at: row.created_at,
            updated_at: row.updated_at,
            deleted_at: row.deleted_at.map(Timestamp::from),
        }
    }
}

#[async_trait]
impl UserRepository for Database {
    async fn profile(&self, id: UserId) -> Result<Option<Profile>, StoreError> {
        self.read_point(move |connection| profile_of(connection, id)).await
    }
}

/// Returns the user with settings and memberships; `None` for an unknown or deleted one.
pub(super) fn profile_of(connection: &mut AnyConnection, id: UserId) -> Result<Option<Profile>, QueryError> {
    let settings = user_settings::user_id.eq(users::id).and(user_settings::deleted_at.is_null());
    let row: Option<(UserRow, Option<SettingsRow>)> = users::table
        .left_join(user_settings::table.on(settings))
        .filter(users::id.eq(DbId::from(id)))
        .filter(users::deleted_at.is_null())
        .select((UserRow::as_select(), Option::<SettingsRow>::as_select()))
        .first(connection)
        .optional()?;
    let Some((user, settings)) = row else { return Ok(None) };
    let memberships = organizations::memberships_of(connection, id)?;
    Ok(Some(Profile { user: user.try_into()?, settings: settings.map(Settings::from), memberships }))
}

/// Applies one change.
pub(super) fn apply(connection: &mut AnyConnection, write: &Write) -> Result<(), QueryError> {
    match write {
        Write::Insert(user) => insert(connection, user),
        Write::Rename { id, username, at } => guarded(
            diesel::update(users::table)
                .filter(users::id.eq(DbId::from(*id)))
                .filter(users::deleted_at.is_null())
                .set((users::username.eq(username.as_str()), users::updated_at.eq(DbTs(*at))))
                .cached()
                .execute(connection)?,
        ),
        Write::ChangeSettings { user_id, new_id, changes, at } => {
            // Most users have their row, which a change finds without another statement.
            if !changes.is_empty() && change_settings(connection, *user_id, changes, *at)? > 0 {
                return Ok(());
            }
            insert_settings(connection, &Settings::defaults(*new_id, *user_id, *at))?;
            if changes.is_empty() {
                return Ok(());
            }
            guarded(change_settings(connection, *user_id, changes, *at)?)
        }
    }
}

/// Changes the row of a user; returns the number of rows, which is 0 if there is none.
fn change_settings(
    connection: &mut AnyConnection,
    user: UserId,
    changes: &[SettingsChange],
    at: Timestamp,
) -> Result<usize, QueryError> {
    let changed = diesel::update(user_settings::table)
        .filter(user_settings::user_id.eq(DbId::from(user)))
        .set((Changes::from(changes), user_settings::updated_at.eq(DbTs(at))))
        .cached()
        .execute(connection)?;
    Ok(changed)
}

fn insert(connection: &mut AnyConnection, user: &User) -> Result<(), QueryError> {
    diesel::insert_into(users::table)
        .values((
            users::id.eq(DbId::from(user.id)),
            users::username.eq(user.username.as_str()),
            users::email.eq(user.email.as_str()),
            users::email_key.eq(user.email.key()),
            users::avatar.eq(&user.avatar),
            users::kind.eq(user.kind.as_str()),
            users::is_verified.eq(user.is_verified),
            users::two_factor_enabled.eq(user.two_factor_enabled),
            users::idp_user_id.eq(&user.idp_user_id),
            users::created_at.eq(DbTs(user.created_at)),
            users::updated_at.eq(DbTs(user.updated_at)),
            users::deleted_at.eq(user.deleted_at.map(DbTs)),
        ))
        .execute(connection)?;
    Ok(())
}

/// Inserts the row unless the user has one.
fn insert_settings(connection: &mut AnyConnection, settings: &Settings) -> Result<(), QueryError> {
    let row = (
        user_settings::id.eq(DbId::from(settings.id)),
        user_settings::user_id.eq(DbId::from(settings.user_id)),
        user_settings::auto_update.eq(settings.auto_update),
        user_settings::theme.eq(settings.theme.as_str()),
        user_settings::font_family.eq(settings.font_family.as_str()),
        user_settings::font_size.eq(i64::from(settings.font_size.get())),
        user_settings::language.eq(settings.language.as_str()),
        user_settings::created_at.eq(DbTs(settings.created_at)),
        user_settings::updated_at.eq(DbTs(settings.updated_at)),
        user_settings::deleted_at.eq(settings.deleted_at.map(DbTs)),
    );
    each_backend!(connection, backend => diesel::insert_into(user_settings::table)
        .values(row)
        .on_conflict(user_settings::user_id)
        .do_nothing()
        .execute(backend))?;
    Ok(())
}

/// The columns that change; the others keep the values of concurrent writers.
#[derive(Default, AsChangeset)]
#[diesel(table_name = user_settings)]
struct Changes<'a> {
    auto_update: Option<bool>,
    theme: Option<&'a str>,
    font_family: Option<&'a str>,
    font_size: Option<i64>,
    language: Option<&'a str>,
}

impl<'a> From<&'a [SettingsChange]> for Changes<'a> {
    fn from(changes: &'a [SettingsChange]) -> Self {
        changes.iter().fold(Self::default(), |mut columns, change| {
            match change {
                SettingsChange::AutoUpdate(on) => columns.auto_update = Some(*on),
                SettingsChange::Theme(theme) => columns.theme = Some(theme.as_str()),
                SettingsChange::FontFamily(family) => columns.font_family = Some(family.as_str()),
                SettingsChange::FontSize(size) => columns.font_size = Some(size.get().into()),
                SettingsChange::Language(language) => columns.language = Some(language.as_str()),
            }
            columns
        })
    }
}
