//! The configuration: environment variables, or a TOML file with the same names.
//!
//! **Invariant:** there is no global configuration. `Config` is read once, and passed as an argument.

mod addresses;
mod certificates;
mod deployments;
mod notifications;
mod paths;
mod proxy;
mod quotas;
mod reader;
mod users;
mod values;

use std::{
    collections::BTreeMap,
    fmt,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use ipnet::IpNet;
use launchway_domain::{applications::Hostname, quotas::Quotas};
use launchway_infrastructure::database::DatabaseUrl;
use tracing_subscriber::filter::Targets;

use self::reader::{Problem, Reader};
pub(crate) use self::{
    certificates::AcmeConfig,
    deployments::DeploymentConfig,
    notifications::NotificationConfig,
    proxy::ProxyConfig,
    reader::Problems,
    values::{Engine, LogFormat, PublicUrl, shown_database, without_password},
};

/// The settings of the server.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) bind: SocketAddr,
    pub(crate) data_dir: PathBuf,
    pub(crate) database: DatabaseUrl,
    pub(crate) public_url: Option<PublicUrl>,
    pub(crate) trusted_proxies: Vec<IpNet>,
    pub(crate) secret_key_file: Option<PathBuf>,
    pub(crate) body_timeout: Duration,
    pub(crate) deployments: DeploymentConfig,
    pub(crate) notifications: NotificationConfig,
    /// The quotas of each organization.
    pub(crate) quotas: Quotas,
    /// The settings of the front proxy; `None` if it is disabled.
    pub(crate) proxy: Option<ProxyConfig>,
    /// The ACME server; `None` if its terms are not accepted.
    pub(crate) acme: Option<AcmeConfig>,
    pub(crate) log: Targets,
    pub(crate) log_format: LogFormat,
    /// The effective settings, for [`fmt::Display`].
    effective: Vec<(&'static str, String)>,
}

impl Config {
    /// Reads the environment and, if given, the file.
    pub(crate) fn load(file: Option<&Path>) -> Result<Self, Problems> {
        let (settings, problems) = Self::read(file)?;
        Self::parse(settings, problems)
    }

    /// Returns the domain that the front proxy serves the API under: that of the public URL, if it is one with `https` and
    /// the front proxy serves TLS.
    pub(crate) fn api_domain(&self) -> Option<Hostname> {
        self.proxy.as_ref()?.tls_bind?;
        let url = self.public_url.as_ref().filter(|url| url.origin().starts_with("https://"))?;
        // An address needs no certificate, and gets none.
        Hostname::try_from(url.host().to_owned()).ok()
    }

    fn read(file: Option<&Path>) -> Result<(BTreeMap<String, String>, Vec<Problem>), Problems> {
        let (mut settings, problems) = match file {
            Some(path) => reader::file(path)?,
            None => Default::default(),
        };
        settings.extend(std::env::vars_os().filter_map(|(name, value)| {
            // Names that are not UTF-8 are not settings; values that are not UTF-8 are shown lossily.
            Some((name.into_string().ok()?, value.to_string_lossy().into_owned()))
        }));
        Ok((settings, problems))
    }

    /// Reads only what the front proxy needs. The rest is none of its business, and may name files that its user cannot
    /// read. Whoever wants to run the proxy is refused when there is to be none.
    pub(crate) fn load_for_proxy(file: Option<&Path>, is_run: bool) -> Result<Self, Problems> {
        let (mut settings, problems) = Self::read(file)?;
        settings.retain(|name, _| proxy::concerns(name));
        let config = Self::parse(settings, problems)?;
        if is_run && config.proxy.is_none() {
            return Err(Problems(vec![proxy::off()]));
        }
        Ok(config)
    }

    /// Checks every setting, and reports all problems at once, `problems` included.
    fn parse(settings: BTreeMap<String, String>, problems: Vec<Problem>) -> Result<Self, Problems> {
        let mut read = Reader::new(settings, problems);
        let bind = read.setting("LAUNCHWAY_BIND", "127.0.0.1:8080", values::socket_address);
        let data_dir = read.setting("LAUNCHWAY_DATA_DIR", "./launchway-data", paths::data_dir);
        let in_data_dir = data_dir.as_deref().unwrap_or(Path::new(".")).join("launchway.db");
        let default_database = format!("sqlite://{}", in_data_dir.display());
        let database = read.secret("LAUNCHWAY_DATABASE_URL", &default_database, values::database_url);
        let public_url = read.optional("LAUNCHWAY_PUBLIC_URL", values::public_url);
        let trusted_proxies = read.setting("LAUNCHWAY_TRUSTED_PROXIES", "", values::networks);
        let secret_key_file = read.optional("LAUNCHWAY_SECRET_KEY_FILE", paths::existing_file);
        let body_timeout = read.setting("LAUNCHWAY_BODY_TIMEOUT", "15s", values::duration);
        let log = read.setting("LAUNCHWAY_LOG", "info", values::log_filter);
        let log_format = read.setting("LAUNCHWAY_LOG_FORMAT", "text", values::log_format);
        let deployments = DeploymentConfig::read(&mut read);
        let proxy = ProxyConfig::read(&mut read);
        let acme = AcmeConfig::read(&mut read);
        let notifications = NotificationConfig::read(&mut read);
        let max_builds = deployments.as_ref().map_or(1, |deployments| deployments.max_builds);
        let log_bytes = deployments.as_ref().map_or(0, |deployments| deployments.log_limits.organization);
        let quotas = quotas::read(&mut read, max_builds, log_bytes);
        if let (Some(api), Some(Some(proxy))) = (bind, &proxy)
            && addresses::overlap(api, proxy.bind)
        {
            read.refuse(
                format!("LAUNCHWAY_BIND is `{api}` and LAUNCHWAY_PROXY_BIND is `{}`", proxy.bind),
                "the server and its front proxy cannot listen on the same address and port: change one of the ports, or \
                 set LAUNCHWAY_PROXY_BIND to off",
            );
        }
        if let (Some(api), Some(Some(proxy))) = (bind, &proxy)
            && let Some(tls) = proxy.tls_bind
        {
            for (name, other) in [("LAUNCHWAY_BIND", api), ("LAUNCHWAY_PROXY_BIND", proxy.bind)] {
                if addresses::overlap(other, tls) {
                    read.refuse(
                        format!("{name} is `{other}` and LAUNCHWAY_PROXY_TLS_BIND is `{tls}`"),
                        "TLS needs a port of its own: change one of the ports, or set LAUNCHWAY_PROXY_TLS_BIND to off",
                    );
                }
            }
        }
        if let (Some(DatabaseUrl::Sqlite(file)), Some(deployments)) = (&database, &deployments)
            && deployments.swarm.is_some()
        {
            read.refuse(
                format!(
                    "LAUNCHWAY_ENGINE is `swarm` and the database is the SQLite file `{}`",
                    file.display()
                ),
                "servers on several machines share a PostgreSQL database: set LAUNCHWAY_DATABASE_URL to one. \
                 `launchway database move` copies the data of a SQLite database there",
            );
        }
        if let (Some(trusted), Some(deployments)) = (&trusted_proxies, &deployments) {
            let pool = deployments.network_pool;
            for network in trusted.iter().filter(|network| addresses::has_containers(network, &pool)) {
                read.refuse(
                    format!("LAUNCHWAY_TRUSTED_PROXIES has `{network}` and LAUNCHWAY_NETWORK_POOL is `{pool}`"),
                    "containers have addresses of the pool and could claim any client address by X-Forwarded-For: name \
                     only the addresses of your proxies, or another pool",
                );
            }
        }
        let effective = read.finish()?;
        // `finish` has reported every setting that is missing here.
        let missing = || Problems(Vec::new());
        Ok(Self {
            bind: bind.ok_or_else(missing)?,
            data_dir: data_dir.ok_or_else(missing)?,
            database: database.ok_or_else(missing)?,
            public_url: public_url.flatten(),
            trusted_proxies: trusted_proxies.ok_or_else(missing)?,
            secret_key_file: secret_key_file.flatten(),
            body_timeout: body_timeout.ok_or_else(missing)?,
            deployments: deployments.ok_or_else(missing)?,
            notifications: notifications.ok_or_else(missing)?,
            quotas: quotas.ok_or_else(missing)?,
            proxy: proxy.ok_or_else(missing)?,
            acme: acme.ok_or_else(missing)?,
            log: log.ok_or_else(missing)?,
            log_format: log_format.ok_or_else(missing)?,
            effective,
        })
    }
}

impl fmt::Display for Config {
    /// Writes one `NAME=value` per line, with secrets masked.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.effective.iter().try_for_each(|(name, value)| writeln!(f, "{name}={value}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(settings: &[(&str, &str)]) -> Result<Config, Problems> {
        let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Config::parse(settings.collect(), Vec::new())
    }

    #[test]
    fn nothing_needs_to_be_set() {
        let config = parse(&[]).unwrap();
        assert_eq!(config.bind, "127.0.0.1:8080".parse().unwrap());
        assert_eq!(config.database, DatabaseUrl::Sqlite("./launchway-data/launchway.db".into()));
        assert!(config.public_url.is_none() && config.trusted_proxies.is_empty());
    }

    #[test]
    fn the_database_is_in_the_data_directory_unless_it_is_set() {
        let config = parse(&[("LAUNCHWAY_DATA_DIR", "/srv/launchway")]).unwrap();
        assert_eq!(config.database, DatabaseUrl::Sqlite("/srv/launchway/launchway.db".into()));
    }

    #[test]
    fn every_problem_is_reported_with_the_value_and_a_hint() {
        let problems = parse(&[
            ("LAUNCHWAY_BIND", "8080"),
            ("LAUNCHWAY_DATABASE_URL", "postgress://ada:hunter2@db/launchway"),
            ("LAUNCHWAY_ENGINE", "nomad"),
            ("LAUNCHWAY_LOG_FORMAT", "xml"),
            ("LAUNCHWAY_BIDN", "127.0.0.1:80"),
        ])
        .unwrap_err()
        .to_string();
        for expected in [
            "LAUNCHWAY_BIND is `8080`",
            "an address and a port",
            "LAUNCHWAY_DATABASE_URL is `***`",
            "LAUNCHWAY_ENGINE is `nomad`",
            "docker or swarm",
            "LAUNCHWAY_LOG_FORMAT is `xml`",
            "LAUNCHWAY_BIDN is not a setting",
            "did you mean LAUNCHWAY_BIND?",
        ] {
            assert!(problems.contains(expected), "{expected:?} is not in:\n{problems}");
        }
        assert!(!problems.contains("hunter2"), "{problems}");
    }

    #[test]
    fn swarm_needs_postgresql_and_a_registry() {
        const POSTGRES: (&str, &str) = ("LAUNCHWAY_DATABASE_URL", "postgres://db/launchway");
        const SWARM: (&str, &str) = ("LAUNCHWAY_ENGINE", "swarm");
        const REGISTRY: (&str, &str) = ("LAUNCHWAY_REGISTRY", "10.0.0.5:5000");
        let swarm = parse(&[SWARM, REGISTRY, POSTGRES]).unwrap().deployments.swarm.unwrap();
        assert_eq!(
            (swarm.registry.host(), swarm.ports.to_string()),
            ("10.0.0.5:5000", "10000-19999".to_owned())
        );
        assert!(parse(&[POSTGRES]).unwrap().deployments.swarm.is_none());
        let local = ("LAUNCHWAY_ALLOWED_LOCAL_REPOSITORIES", "/");
        for (settings, expected) in [
            (vec![SWARM, REGISTRY], "the database is the SQLite file `./launchway-data/launchway.db`"),
            (vec![SWARM, POSTGRES], "LAUNCHWAY_ENGINE is `swarm` and LAUNCHWAY_REGISTRY is not set"),
            (
                vec![REGISTRY, POSTGRES],
                "LAUNCHWAY_REGISTRY is `10.0.0.5:5000` and LAUNCHWAY_ENGINE is `docker`",
            ),
            (vec![SWARM, REGISTRY, POSTGRES, local], "LAUNCHWAY_ALLOWED_LOCAL_REPOSITORIES is `/`"),
            (vec![SWARM, POSTGRES, ("LAUNCHWAY_REGISTRY", "Registry")], "LAUNCHWAY_REGISTRY is `Registry`"),
            (
                vec![SWARM, REGISTRY, POSTGRES, ("LAUNCHWAY_NODE_PORTS", "80-90")],
                "LAUNCHWAY_NODE_PORTS is `80-90`",
            ),
        ] {
            let problems = parse(&settings).unwrap_err().to_string();
            assert!(problems.contains(expected), "{expected:?} is not in:\n{problems}");
        }
    }

    #[test]
    fn the_effective_configuration_is_shown_with_secrets_masked() {
        let config = parse(&[("LAUNCHWAY_DATABASE_URL", "postgres://ada:hunter2@db/launchway")]).unwrap();
        let shown = config.to_string();
        assert!(shown.contains("LAUNCHWAY_DATABASE_URL=postgres://ada:***@db/launchway\n"), "{shown}");
        assert!(shown.contains("LAUNCHWAY_BIND=127.0.0.1:8080\n"), "{shown}");
        assert!(!shown.contains("hunter2"));
    }

    #[test]
    fn a_trusted_proxy_is_no_container() {
        for trusted in ["10.0.0.0/8", "127.0.0.1, 10.192.3.4"] {
            let problems = parse(&[("LAUNCHWAY_TRUSTED_PROXIES", trusted)]).unwrap_err().to_string();
            for expected in ["LAUNCHWAY_TRUSTED_PROXIES", "LAUNCHWAY_NETWORK_POOL", "`10.192.0.0/12`"] {
                assert!(problems.contains(expected), "{expected:?} is not in:\n{problems}");
            }
        }
        let elsewhere =
            [("LAUNCHWAY_TRUSTED_PROXIES", "10.0.0.0/8"), ("LAUNCHWAY_NETWORK_POOL", "172.24.0.0/14")];
        assert!(parse(&elsewhere).is_ok());
        assert!(parse(&[("LAUNCHWAY_TRUSTED_PROXIES", "127.0.0.1, 10.0.0.0/16")]).is_ok());
    }

    #[test]
    fn the_front_proxy_is_not_concerned_by_settings_of_the_server() {
        for name in ["LAUNCHWAY_PROXY_BIND", "LAUNCHWAY_TRUSTED_PROXIES", "LAUNCHWAY_PROXY_BNID"] {
            assert!(proxy::concerns(name), "{name}");
        }
        for name in ["LAUNCHWAY_DATABASE_URL", "LAUNCHWAY_SECRET_KEY_FILE", "LAUNCHWAY_GIT_KNOWN_HOSTS"] {
            assert!(!proxy::concerns(name), "{name}");
        }
    }

    #[test]
    fn a_front_proxy_of_somebody_else_has_a_folder_and_a_user() {
        let proxy = parse(&[]).unwrap().proxy.unwrap();
        assert_eq!((proxy.folder, proxy.control_user), (None, None));
        let set =
            [("LAUNCHWAY_PROXY_DIR", "/var/lib/launchway-proxy"), ("LAUNCHWAY_PROXY_CONTROL_USER", "root")];
        let proxy = parse(&set).unwrap().proxy.unwrap();
        assert_eq!((proxy.folder, proxy.control_user), (Some("/var/lib/launchway-proxy".into()), Some(0)));
        let wrong =
            [("LAUNCHWAY_PROXY_DIR", "proxy"), ("LAUNCHWAY_PROXY_CONTROL_USER", "nobody-of-this-name")];
        let problems = parse(&wrong).unwrap_err().to_string();
        for expected in ["LAUNCHWAY_PROXY_DIR is `proxy`", "absolute", "LAUNCHWAY_PROXY_CONTROL_USER is"] {
            assert!(problems.contains(expected), "{expected:?} is not in:\n{problems}");
        }
    }

    #[test]
    fn tls_is_off_unless_it_is_set_and_has_a_port_of_its_own() {
        assert_eq!(parse(&[]).unwrap().proxy.unwrap().tls_bind, None);
        let proxy = parse(&[("LAUNCHWAY_PROXY_TLS_BIND", "0.0.0.0:443")]).unwrap().proxy.unwrap();
        assert_eq!(proxy.tls_bind, Some("0.0.0.0:443".parse().unwrap()));
        for (taken, name) in
            [("0.0.0.0:8080", "LAUNCHWAY_BIND is"), ("127.0.0.1:8000", "LAUNCHWAY_PROXY_BIND is")]
        {
            let problems = parse(&[("LAUNCHWAY_PROXY_TLS_BIND", taken)]).unwrap_err().to_string();
            assert!(
                problems.contains(name) && problems.contains("LAUNCHWAY_PROXY_TLS_BIND is"),
                "{problems}"
            );
        }
    }

    #[test]
    fn the_api_has_a_domain_if_tls_is_on_and_its_url_is_https() {
        let tls = ("LAUNCHWAY_PROXY_TLS_BIND", "0.0.0.0:443");
        let domain = |url: &'static str, settings: &[(&str, &str)]| {
            let url = [("LAUNCHWAY_PUBLIC_URL", url)];
            parse(&[&url, settings].concat()).unwrap().api_domain().map(|domain| domain.to_string())
        };
        let expected = Some("deploy.example.com".to_owned());
        assert_eq!(domain("https://deploy.example.com", &[tls]), expected);
        assert_eq!(domain("https://deploy.example.com:8443", &[tls]), expected);
        assert_eq!(domain("https://deploy.example.com", &[]), None);
        assert_eq!(domain("http://deploy.example.com", &[tls]), None);
        assert_eq!(domain("https://192.0.2.7", &[tls]), None);
        assert_eq!(domain("https://deploy.example.com", &[tls, ("LAUNCHWAY_PROXY_BIND", "off")]), None);
    }

    #[test]
    fn variables_of_others_are_left_alone() {
        assert!(parse(&[("PATH", "/bin"), ("LAUNCHWAY", "x"), ("LAUNCHWAY_TEST_POSTGRES_URL", "x")]).is_ok());
    }
}
