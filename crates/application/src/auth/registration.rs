//! Registration of the first administrator.

use std::sync::Arc;

use launchway_domain::{
    audit::{Action, Author, Event, Resource},
    auth::{CredentialRepository, Origin, Password, PasswordHasher, TokenHash, Write as AuthWrite},
    organizations::{
        Description, Membership, MembershipDetail, Organization, OrganizationName, Role,
        Write as OrganizationWrite,
    },
    secret::Secret,
    store::{StoreError, Write},
    users::{EmailAddress, Profile, User, UserKind, Username, Write as UserWrite},
};

use super::{LoggedIn, author, new_session};
use crate::{Error, ServiceContext};

/// The account of the first administrator.
#[derive(Debug)]
pub struct NewAdmin {
    /// The email address.
    pub email: EmailAddress,
    /// The password.
    pub password: Password,
    /// The name of the user.
    pub username: Username,
    /// The name of the organization; `<username>'s Team` by default.
    pub organization: Option<OrganizationName>,
}

/// The proof that a caller may register on a fresh installation.
#[derive(Debug)]
pub enum SetupProof {
    /// The request comes from the machine of the server.
    Local,
    /// The setup token that the server printed when it started.
    Token(Secret<String>),
    /// No proof.
    None,
}

/// Registers the first administrator, exactly once.
pub struct Registration {
    credentials: Arc<dyn CredentialRepository>,
    hasher: Arc<dyn PasswordHasher>,
    setup_token: TokenHash,
    context: ServiceContext,
}

impl Registration {
    /// Returns the use case. Remote callers need the token whose hash is `setup_token`.
    pub fn new(
        credentials: Arc<dyn CredentialRepository>,
        hasher: Arc<dyn PasswordHasher>,
        setup_token: TokenHash,
        context: ServiceContext,
    ) -> Self {
        Self { credentials, hasher, setup_token, context }
    }

    /// Returns whether the first administrator exists.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without a database.
    pub async fn admin_registered(&self) -> Result<bool, Error> {
        Ok(self.credentials.admin_registered().await?)
    }

    /// Registers the first administrator and logs them in.
    ///
    /// # Errors
    /// [`Error::RegistrationClosed`] for everyone after the first, also for concurrent requests;
    /// [`Error::SetupTokenNeeded`] without proof.
    pub async fn register(
        &self,
        admin: NewAdmin,
        proof: SetupProof,
        origin: Origin,
    ) -> Result<LoggedIn, Error> {
        if self.admin_registered().await? {
            return Err(Error::RegistrationClosed);
        }
        let proven = match &proof {
            SetupProof::Local => true,
            SetupProof::Token(token) => TokenHash::of(token.expose()) == self.setup_token,
            SetupProof::None => false,
        };
        if !proven {
            return Err(Error::SetupTokenNeeded);
        }
        let (profile, mut writes) = self.prepare_while_open(admin).await?;
        let (token, session) = new_session(&self.context, profile.user.id, origin.client.clone());
        writes.push(AuthWrite::OpenSession(session.clone()).into());
        self.claim(writes, &profile, author(&profile, origin)).await?;
        Ok(LoggedIn { token, session, profile })
    }

    /// Registers the first administrator without a login. It has no check of a proof: it is for
    /// administrators with access to the files of the server.
    ///
    /// # Errors
    /// [`Error::RegistrationClosed`] when there is one.
    pub async fn create_admin(&self, admin: NewAdmin) -> Result<Profile, Error> {
        if self.admin_registered().await? {
            return Err(Error::RegistrationClosed);
        }
        let (profile, writes) = self.prepare(admin).await?;
        let organization = profile.memberships.first().map(|detail| detail.organization.id);
        self.claim(writes, &profile, Author::operator(organization.into())).await?;
        Ok(profile)
    }

    /// Prepares the registration. If it fails while a concurrent one succeeds, returns
    /// [`Error::RegistrationClosed`], which is the lasting reason.
    async fn prepare_while_open(&self, admin: NewAdmin) -> Result<(Profile, Vec<Write>), Error> {
        match self.prepare(admin).await {
            Err(_) if self.admin_registered().await? => Err(Error::RegistrationClosed),
            prepared => prepared,
        }
    }

    async fn prepare(&self, admin: NewAdmin) -> Result<(Profile, Vec<Write>), Error> {
        let NewAdmin { email, password, username, organization } = admin;
        let hash = self.hasher.hash(&password).await?;
        let now = self.context.clock.now();
        let name = organization.unwrap_or_else(|| OrganizationName::team_of(&username));
        let user = User::new(self.context.ids.next().into(), username, email, UserKind::Admin, now);
        let organization =
            Organization::new(self.context.ids.next().into(), name, Description::default(), now);
        let membership =
            Membership::new(self.context.ids.next().into(), organization.id, user.id, Role::Admin, now);
        let writes = vec![
            UserWrite::Insert(user.clone()).into(),
            AuthWrite::ClaimInstallation { admin: user.id, at: now }.into(),
            AuthWrite::SetPassword { user_id: user.id, hash, at: now }.into(),
            OrganizationWrite::Insert(organization.clone()).into(),
            OrganizationWrite::InsertMembership(membership.clone()).into(),
        ];
        let memberships = vec![MembershipDetail { membership, organization }];
        Ok((Profile { user, settings: None, memberships }, writes))
    }

    async fn claim(&self, mut writes: Vec<Write>, profile: &Profile, by: Author) -> Result<(), Error> {
        let User { id, email, .. } = &profile.user;
        let what = format!("registered {email} as the first administrator");
        let event = Event::new(Action::Create, Resource::User, id, what).with("email", email);
        writes.push(self.context.record(by.clone(), event));
        for MembershipDetail { organization, .. } in &profile.memberships {
            let what = format!("created the organization `{}`", organization.name);
            let event = Event::new(Action::Create, Resource::Organization, organization.id, what);
            writes.push(self.context.record(by.clone(), event.with("name", &organization.name)));
        }
        self.context.store.commit(writes).await.map_err(|error| match error {
            // In a fresh installation a conflict can only come from another first administrator.
            StoreError::Taken(_) => Error::RegistrationClosed,
            error => error.into(),
        })
    }
}
