//! Puts the adapters behind the ports.

use std::{error::Error, fs, sync::Arc};

use launchway_application::{Ports, Services, Tools};
use launchway_domain::auth::{ThrottleLimits, Token, TokenHash, TokenKind};
use launchway_domain::secret::Entropy as _;
use launchway_infrastructure::{
    clock::{SystemClock, SystemEntropy, TimeOrderedIds},
    data_dir::DataDir,
    database::{Database, DatabaseOptions, DurableThrottle},
    passwords::Argon2Hasher,
    secrets::{SecretKey, XChaChaBox},
};

use crate::{cli, config::Config};

/// A database that is up to date, and every use case over it.
pub(crate) struct Wiring {
    pub(crate) database: Database,
    pub(crate) services: Services,
    /// What the first administrator needs from elsewhere; `None` once there is one.
    pub(crate) setup_token: Option<String>,
}

impl Wiring {
    /// Opens the database, brings its tables up to date, and puts everything together.
    pub(crate) async fn new(config: &Config, data: &DataDir) -> Result<Self, Box<dyn Error>> {
        let key = secret_key(config, data)?;
        let database = Database::open(DatabaseOptions::new(config.database.clone()))?;
        for migration in database.migrate().await? {
            tracing::info!(migration, "changed the database's tables");
        }
        let setup_token = setup_token(&database, data).await?;
        let recognised = match &setup_token {
            Some(token) => TokenHash::of(token),
            // There is no token any more; nobody knows this one.
            None => Token::new(TokenKind::Setup, SystemEntropy.bits_256()).hash(),
        };
        let services = Services::new(ports(&database, &key, recognised));
        Ok(Self { database, services, setup_token })
    }
}

/// Brings the database's tables up to date and says what that took.
pub(crate) fn migrate(config: &Config) -> Result<(), Box<dyn Error>> {
    let data = DataDir::open(&config.data_dir)?;
    // Not beneath a running server, which may not know the new tables.
    let _lock = data.lock()?;
    let migrations = runtime()?.block_on(async {
        let database = Database::open(DatabaseOptions::new(config.database.clone()))?;
        let migrations = database.migrate().await?;
        database.close().await;
        Ok::<_, Box<dyn Error>>(migrations)
    })?;
    for migration in &migrations {
        cli::print(&format!("{migration}\n"))?;
    }
    crate::say(&format!("{} migrations were needed; the database is up to date", migrations.len()));
    Ok(())
}

/// A runtime for verbs that do one thing and stop.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, std::io::Error> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

fn ports(database: &Database, key: &SecretKey, setup_token: TokenHash) -> Ports {
    let entropy = Arc::new(SystemEntropy);
    let store = Arc::new(database.clone());
    Ports {
        tools: Tools {
            store: store.clone(),
            clock: Arc::new(SystemClock),
            ids: Arc::new(TimeOrderedIds),
            entropy: entropy.clone(),
        },
        identities: store.clone(),
        credentials: store.clone(),
        users: store,
        throttle: Arc::new(DurableThrottle::new(database.clone(), ThrottleLimits::CONTRACT)),
        hasher: Arc::new(Argon2Hasher::new(entropy.clone())),
        secrets: Arc::new(XChaChaBox::new(key, entropy)),
        setup_token,
    }
}

/// The key from the configured file, or the data directory's own.
fn secret_key(config: &Config, data: &DataDir) -> Result<SecretKey, Box<dyn Error>> {
    let (name, text) = match &config.secret_key_file {
        Some(path) => {
            let text = fs::read_to_string(path)
                .map_err(|error| format!("cannot read the key file `{}`: {error}", path.display()))?;
            (path.display().to_string(), text)
        }
        None => {
            let name = "secret.key";
            (name.to_owned(), data.private_file(name, || SecretKey::generate(&SystemEntropy))?)
        }
    };
    Ok(text.parse().map_err(|error| format!("the key file `{name}` {error}"))?)
}

/// The token that claims a fresh installation from elsewhere. Only who can read the server's log
/// or files knows it, and it goes once it has served.
async fn setup_token(database: &Database, data: &DataDir) -> Result<Option<String>, Box<dyn Error>> {
    use launchway_domain::auth::CredentialRepository as _;
    let name = "setup-token";
    if database.admin_registered().await? {
        data.remove_private_file(name)?;
        return Ok(None);
    }
    let token = data.private_file(name, || {
        let token = Token::new(TokenKind::Setup, SystemEntropy.bits_256());
        format!("{}\n", token.expose())
    })?;
    Ok(Some(token.trim().to_owned()))
}
