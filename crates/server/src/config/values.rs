//! The values of settings. Each parser returns a hint as its error.

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use ipnet::{IpNet, Ipv4Net};
use launchway_domain::{applications::RegistryPolicy, extensions::PortRange, network::AllowedEndpoint};
use launchway_infrastructure::{
    database::DatabaseUrl,
    docker::{Builder, swarm::PushRegistry},
};
use tracing_subscriber::filter::Targets;

/// The container engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Engine {
    /// The containers run on this machine.
    Docker,
    /// The containers run on the machines of a Docker Swarm.
    Swarm,
}

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// The public URL of this installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PublicUrl {
    origin: String,
    host: String,
}

impl PublicUrl {
    /// Returns scheme, host and port in the format of browsers.
    pub(crate) fn origin(&self) -> &str {
        &self.origin
    }

    pub(crate) fn host(&self) -> &str {
        &self.host
    }
}

pub(super) fn socket_address(raw: &str) -> Result<SocketAddr, String> {
    raw.parse().map_err(|_refused| "an address and a port, such as 127.0.0.1:8080 or [::]:8080".to_owned())
}

/// Parses a network that contains at least one of the `/24` networks of organizations.
pub(super) fn network_pool(raw: &str) -> Result<Ipv4Net, String> {
    let pool = raw.parse::<Ipv4Net>().ok().filter(|pool| pool.prefix_len() <= 24);
    pool.map(|pool| pool.trunc())
        .ok_or_else(|| "a private network of at least 256 addresses, such as 10.192.0.0/12".to_owned())
}

/// Bytes per mebibyte.
const MEBIBYTE: u64 = 1024 * 1024;

/// Parses a number of bytes, kibibytes, mebibytes or gibibytes.
fn bytes(raw: &str) -> Option<u64> {
    let (number, unit) = match raw.as_bytes() {
        [.., b'k' | b'K'] => (&raw[..raw.len() - 1], 1024),
        [.., b'm' | b'M'] => (&raw[..raw.len() - 1], MEBIBYTE),
        [.., b'g' | b'G'] => (&raw[..raw.len() - 1], 1024 * MEBIBYTE),
        _ => (raw, 1),
    };
    number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit))
}

pub(super) fn disk_space(raw: &str) -> Result<u64, String> {
    bytes(raw)
        .filter(|bytes| *bytes <= 1 << 50)
        .ok_or_else(|| "an amount of disk space, such as 500m or 2g, or 0".to_owned())
}

pub(super) fn source_size(raw: &str) -> Result<u64, String> {
    bytes(raw)
        .filter(|bytes| (1 << 10..=16 << 30).contains(bytes))
        .ok_or_else(|| "an amount from 1k to 16g, such as 256m".to_owned())
}

pub(super) fn memory(raw: &str) -> Result<u64, String> {
    // The engine rejects less than 6 MiB.
    bytes(raw)
        .filter(|bytes| (6 * MEBIBYTE..=1 << 50).contains(bytes))
        .ok_or_else(|| "an amount of memory of at least 6m, such as 512m or 2g".to_owned())
}

/// Parses the registries that images may come from.
pub(super) fn registries(raw: &str) -> Result<RegistryPolicy, String> {
    list(raw, |item| item.parse().ok()).map(RegistryPolicy::allowing).ok_or_else(|| {
        "registries with commas between them: public for the well-known ones, a host with or without a port such as \
         registry.example.com or 10.0.0.5:5000, *.example.com, or * for any at a public address"
            .to_owned()
    })
}

/// Parses the registry that images are pushed to.
pub(super) fn push_registry(raw: &str) -> Result<PushRegistry, String> {
    raw.parse().map_err(|_refused| {
        "a registry in lower case, such as registry.example.com, registry.example.com/team or 10.0.0.5:5000"
            .to_owned()
    })
}

/// Parses a number of CPUs; `None` for all of them.
pub(super) fn cpus(raw: &str) -> Result<Option<f64>, String> {
    match raw.parse::<f64>() {
        Ok(0.0) => Ok(None),
        Ok(cpus) if (0.01..=4096.0).contains(&cpus) => Ok(Some(cpus)),
        _ => Err("a number of processors from 0.01 on, such as 1.5, or 0 for all of them".to_owned()),
    }
}

/// Parses a number of processes and threads. The engine itself needs some to start a program.
pub(super) fn pids(raw: &str) -> Result<u32, String> {
    raw.parse()
        .ok()
        .filter(|pids| (32..=4_194_304).contains(pids))
        .ok_or_else(|| "a whole number between 32 and 4194304".to_owned())
}

pub(super) fn builder(raw: &str) -> Result<Builder, String> {
    match raw {
        "auto" => Ok(Builder::Auto),
        "legacy" => Ok(Builder::Legacy),
        "buildkit" => Ok(Builder::BuildKit),
        _ => Err("auto, legacy or buildkit".to_owned()),
    }
}

pub(super) fn database_url(raw: &str) -> Result<DatabaseUrl, String> {
    raw.parse().map_err(|refused: launchway_infrastructure::database::InvalidDatabaseUrl| refused.to_string())
}

/// Returns a database URL without its password.
pub(crate) fn shown_database(url: &DatabaseUrl) -> String {
    match url {
        DatabaseUrl::Sqlite(path) => format!("sqlite://{}", path.display()),
        DatabaseUrl::Postgres(raw) => without_password(raw),
    }
}

/// Returns a database URL without its password.
pub(crate) fn without_password(raw: &str) -> String {
    if raw.parse::<DatabaseUrl>().is_err() && (raw.contains('@') || raw.contains("pass")) {
        // The position of the password in it is unknown.
        return "***".to_owned();
    }
    let Some((scheme, rest)) = raw.split_once("://") else { return raw.to_owned() };
    let end_of_authority = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at(end_of_authority);
    let authority = match authority.rsplit_once('@').map(|(user, host)| (user.split_once(':'), host)) {
        Some((Some((user, _password)), host)) => format!("{user}:***@{host}"),
        _ => authority.to_owned(),
    };
    let tail = match tail.split_once('?') {
        Some((path, query)) => {
            let masked: Vec<String> = query.split('&').map(without_password_value).collect();
            format!("{path}?{}", masked.join("&"))
        }
        None => tail.to_owned(),
    };
    format!("{scheme}://{authority}{tail}")
}

fn without_password_value(parameter: &str) -> String {
    match parameter.split_once('=') {
        Some((name, _)) if name.to_ascii_lowercase().contains("pass") => format!("{name}=***"),
        _ => parameter.to_owned(),
    }
}

pub(super) fn public_url(raw: &str) -> Result<PublicUrl, String> {
    let hint = || "the scheme and host that people use, such as https://deploy.example.com".to_owned();
    let url = url::Url::parse(raw).map_err(|_refused| hint())?;
    let is_origin = matches!(url.scheme(), "http" | "https")
        && url.has_host()
        && url.username().is_empty()
        && url.password().is_none()
        && url.path() == "/"
        && url.query().is_none()
        && url.fragment().is_none();
    let host = url.host_str().unwrap_or_default().to_owned();
    if is_origin { Ok(PublicUrl { origin: url.origin().ascii_serialization(), host }) } else { Err(hint()) }
}

pub(super) fn https_url(raw: &str) -> Result<String, String> {
    let url = url::Url::parse(raw).ok();
    let url = url.filter(|url| url.scheme() == "https" && url.has_host() && url.username().is_empty());
    url.map(String::from).ok_or_else(|| "a URL such as https://acme.example.com/directory".to_owned())
}

pub(super) fn email_address(raw: &str) -> Result<String, String> {
    let address = raw.parse::<launchway_domain::users::EmailAddress>();
    address.map(|address| address.to_string()).map_err(|refused| refused.to_string())
}

pub(super) fn networks(raw: &str) -> Result<Vec<IpNet>, String> {
    list(raw, |item| {
        let single = item.parse::<IpAddr>().map(IpNet::from);
        single.or_else(|_not_an_address| item.parse()).ok()
    })
    .ok_or_else(|| {
        "addresses or networks with commas between them, such as 127.0.0.1, 192.168.1.0/24".to_owned()
    })
}

pub(super) fn endpoints(raw: &str) -> Result<Vec<AllowedEndpoint>, String> {
    list(raw, |item| {
        let (network, port) = item.rsplit_once(':')?;
        let network = network.trim_start_matches('[').trim_end_matches(']');
        Some(AllowedEndpoint { network: network.parse().ok()?, port: port.parse().ok()? })
    })
    .ok_or_else(|| {
        "networks with a port, with commas between them, such as 10.0.0.0/8:443, 127.0.0.1/32:9418".to_owned()
    })
}

fn list<T>(raw: &str, parse: fn(&str) -> Option<T>) -> Option<Vec<T>> {
    raw.split(',').map(str::trim).filter(|item| !item.is_empty()).map(parse).collect()
}

pub(super) fn duration(raw: &str) -> Result<Duration, String> {
    let (number, seconds) = match raw.as_bytes() {
        [.., b'm', b's'] => return milliseconds(raw),
        [.., b's'] => (&raw[..raw.len() - 1], 1),
        [.., b'm'] => (&raw[..raw.len() - 1], 60),
        [.., b'h'] => (&raw[..raw.len() - 1], 3600),
        _ => (raw, 1),
    };
    match number.parse::<u32>() {
        Ok(number @ 1..=86_400) => Ok(Duration::from_secs(u64::from(number) * seconds)),
        _ => Err(DURATION_HINT.to_owned()),
    }
}

/// Parses a list of durations.
pub(super) fn durations(raw: &str) -> Result<Vec<Duration>, String> {
    let items: Option<Vec<Duration>> = list(raw, |item| duration(item).ok());
    items.filter(|items| items.len() <= MOST_DURATIONS).ok_or_else(|| {
        format!("at most {MOST_DURATIONS} times with commas between them, each {DURATION_HINT}")
    })
}

const MOST_DURATIONS: usize = 20;

fn milliseconds(raw: &str) -> Result<Duration, String> {
    match raw.trim_end_matches("ms").parse() {
        Ok(number @ 1..=86_400_000) => Ok(Duration::from_millis(number)),
        _ => Err(DURATION_HINT.to_owned()),
    }
}

const DURATION_HINT: &str = "a whole number above zero and a unit: 500ms, 15s, 5m or 1h";

pub(super) fn count(raw: &str) -> Result<u16, String> {
    match raw.parse() {
        Ok(number @ 1..=1024) => Ok(number),
        _ => Err("a whole number between 1 and 1024".to_owned()),
    }
}

pub(super) fn port_range(raw: &str) -> Result<PortRange, String> {
    raw.parse().map_err(|_refused| "a range of ports from 1024 on, such as 20000-29999".to_owned())
}

/// Parses a limit; 0 for none.
pub(super) fn quota(raw: &str) -> Result<u64, String> {
    match raw.parse() {
        Ok(limit @ 0..=1_000_000) => Ok(limit),
        _ => Err("a whole number between 1 and 1000000, or 0 for no limit".to_owned()),
    }
}

pub(super) fn log_filter(raw: &str) -> Result<Targets, String> {
    // A single word would be parsed as the name of a module.
    let is_level = |word: &str| ["off", "error", "warn", "info", "debug", "trace"].contains(&word);
    let filter = if raw.split(',').all(|part| part.contains('=') || is_level(part.trim())) {
        raw.parse().ok().map(with_adapters)
    } else {
        None
    };
    filter.ok_or_else(|| {
        "error, warn, info, debug or trace, or such for a module: info,launchway_infrastructure=debug"
            .to_owned()
    })
}

/// Applies the level of `launchway_infrastructure` to the adapters in other crates, if they have none of their own.
fn with_adapters(filter: Targets) -> Targets {
    let level = |name: &str| filter.iter().find_map(|(target, level)| (target == name).then_some(level));
    let Some(adapters) = level("launchway_infrastructure") else { return filter };
    let mut names = vec!["launchway_database", "launchway_docker"];
    names.retain(|name| level(name).is_none());
    filter.with_targets(names.into_iter().map(|name| (name, adapters)))
}

pub(super) fn log_format(raw: &str) -> Result<LogFormat, String> {
    match raw {
        "text" => Ok(LogFormat::Text),
        "json" => Ok(LogFormat::Json),
        _ => Err("text or json".to_owned()),
    }
}

pub(super) fn engine(raw: &str) -> Result<Engine, String> {
    match raw {
        "docker" => Ok(Engine::Docker),
        "swarm" => Ok(Engine::Swarm),
        _ => Err("docker or swarm".to_owned()),
    }
}

pub(super) fn proxy_bind(raw: &str) -> Result<Option<SocketAddr>, String> {
    match raw {
        "off" => Ok(None),
        address => socket_address(address).map(Some).map_err(|hint| format!("off, or {hint}")),
    }
}

pub(super) fn switch(raw: &str) -> Result<bool, String> {
    match raw {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("on or off".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn a_source_has_a_size_from_1k_to_16g() {
        for (text, bytes) in [("1k", 1 << 10), ("256m", 256 << 20), ("16g", 16 << 30)] {
            assert_eq!(source_size(text), Ok(bytes), "{text}");
        }
        for text in ["", "0", "1023", "17g", "1t"] {
            assert!(source_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn disk_space_has_units_and_may_be_none() {
        for (text, bytes) in [
            ("0", 0),
            ("1", 1),
            ("256k", 256 << 10),
            ("500m", 500 << 20),
            ("2G", 2 << 30),
            ("1048576g", 1 << 50),
        ] {
            assert_eq!(disk_space(text), Ok(bytes), "{text}");
        }
        for text in ["", "-1", "g", "1t", "1048577g", "1.5g", "99999999999999999999"] {
            assert!(disk_space(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_quota_is_a_number_and_0_is_no_limit() {
        for (text, limit) in [("0", 0), ("1", 1), ("1000000", 1_000_000)] {
            assert_eq!(quota(text), Ok(limit), "{text}");
        }
        for text in ["", "-1", "1.5", "1000001", "none", "18446744073709551616"] {
            assert!(quota(text).is_err(), "{text}");
        }
    }

    #[test]
    fn processors_and_processes_have_bounds() {
        for (text, expected) in [("0", None), ("0.5", Some(0.5)), ("16", Some(16.0))] {
            assert_eq!(cpus(text), Ok(expected), "{text}");
        }
        for text in ["", "-1", "0.001", "NaN", "inf", "two", "1e9"] {
            assert!(cpus(text).is_err(), "{text}");
        }
        assert_eq!(pids("2048"), Ok(2048));
        for text in ["", "0", "-1", "31", "4194305", "many"] {
            assert!(pids(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_have_units() {
        for (text, milliseconds) in
            [("500ms", 500), ("15s", 15_000), ("15", 15_000), ("5m", 300_000), ("1h", 3_600_000)]
        {
            assert_eq!(duration(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in ["", "0", "0s", "-1s", "1.5s", "s", "ms", "1d", "99999999999s"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn waiting_times_are_a_list_of_at_most_twenty() {
        let [short, long] = [5, 300].map(Duration::from_secs);
        assert_eq!(durations("5s, 5m"), Ok(vec![short, long]));
        assert_eq!(durations(""), Ok(vec![]));
        assert_eq!(durations(&["1s"; 20].join(",")).map(|items| items.len()), Ok(20));
        for text in ["5s,soon".to_owned(), "0s".to_owned(), ["1s"; 21].join(",")] {
            assert!(durations(&text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_mistyped_level_is_not_taken_for_a_module() {
        for text in ["info", "warn,launchway_api=debug", "off"] {
            assert!(log_filter(text).is_ok(), "{text}");
        }
        for text in ["verbose", "inof", "info,launchway_api", "launchway_api=loud"] {
            assert!(log_filter(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_level_of_the_adapters_is_that_of_all_their_crates() {
        let filter = log_filter("info,launchway_infrastructure=debug,launchway_database=warn").unwrap();
        assert!(filter.would_enable("launchway_docker::registries", &Level::DEBUG));
        assert!(!filter.would_enable("launchway_database::writer", &Level::INFO));
        assert!(!log_filter("info").unwrap().would_enable("launchway_docker", &Level::DEBUG));
    }

    #[test]
    fn a_public_url_is_an_origin() {
        assert_eq!(public_url("https://Deploy.Example.com/").unwrap().origin(), "https://deploy.example.com");
        assert_eq!(public_url("http://10.0.0.1:8080").unwrap().origin(), "http://10.0.0.1:8080");
        for text in
            ["deploy.example.com", "ftp://a", "https://a/b", "https://u:p@a", "https://a?x", "https://"]
        {
            assert!(public_url(text).is_err(), "{text}");
        }
    }

    #[test]
    fn networks_and_endpoints_are_lists() {
        assert_eq!(networks("127.0.0.1, 10.0.0.0/8,").unwrap().len(), 2);
        assert!(networks("10.0.0.0/33").is_err());
        assert_eq!(endpoints("10.0.0.0/8:443, [fd00::/8]:22").unwrap().len(), 2);
        assert!(endpoints("10.0.0.0/8").is_err());
    }

    #[test]
    fn passwords_in_database_urls_are_masked_wherever_they_are() {
        for (url, shown) in [
            ("postgres://ada:p@ss@db:5432/x", "postgres://ada:***@db:5432/x"),
            (
                "postgres://db/x?user=ada&password=p&sslmode=require",
                "postgres://db/x?user=ada&password=***&sslmode=require",
            ),
            ("postgres://db/x?sslpassword=a&password=p", "postgres://db/x?sslpassword=***&password=***"),
            ("postgres://ada@db/x", "postgres://ada@db/x"),
            ("sqlite:///srv/a.db", "sqlite:///srv/a.db"),
            ("mysql://ada:p@db/x", "***"),
        ] {
            assert_eq!(without_password(url), shown);
        }
    }
}
