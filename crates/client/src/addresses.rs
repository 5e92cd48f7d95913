//! The addresses of an application.

use url::{Host, Url};

use crate::{
    failure::Outcome,
    records::{Application, Deployments, Logs},
    server::Server,
};

/// The prefix of the log line that contains the address.
const LIVE: &str = "Live at ";

/// Returns the addresses of an application whose deployment is live. Only the server knows the port of its
/// proxy and whether there is TLS in front, so they are read from the log.
pub(crate) fn of(server: &Server, application: &Application, deployment: &str) -> Outcome<Vec<String>> {
    let path = format!("/deploy/application/deployments/{deployment}/logs");
    let request = server.get(&path).with("search_term", LIVE).with("level", "info").with("embed", "none");
    let logs: Logs = request.with("page_size", 1000).receive()?;
    // Oldest first: the server logs it before the output of the post-run command.
    let mut told = logs.logs.iter().rev().filter_map(|line| line.log.strip_prefix(LIVE));
    Ok(told.find_map(|url| with(url, &application.domains)).unwrap_or_default())
}

/// Returns the newest deployment that went live, which is the one that serves traffic.
pub(crate) fn live(server: &Server, application: &Application) -> Outcome<Option<String>> {
    for page in 1.. {
        let request = server.get("/deploy/application/deployments").with("id", &application.id);
        let listed: Deployments = request.with("page", page).with("page_size", 100).receive()?;
        if let Some(one) = listed.deployments.into_iter().find(|one| one.state() == "deployed") {
            return Ok(Some(one.id));
        }
        if !listed.pagination.has_next {
            break;
        }
    }
    Ok(None)
}

/// Returns the logged address, and the same with every other domain; `None` if its host is none of the
/// domains.
fn with(told: &str, domains: &[String]) -> Option<Vec<String>> {
    let url = Url::parse(told.trim()).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    match url.host()? {
        // Without a proxy, a container is reached by its own address.
        Host::Ipv4(_) | Host::Ipv6(_) => return Some(vec![shown(&url)]),
        Host::Domain(host) if !domains.iter().any(|domain| domain == host) => return None,
        Host::Domain(_) => {}
    }
    let others =
        domains.iter().filter(|domain| Some(domain.as_str()) != url.host_str()).filter_map(|domain| {
            let mut other = url.clone();
            other.set_host(Some(domain)).ok()?;
            Some(shown(&other))
        });
    Some([shown(&url)].into_iter().chain(others).collect())
}

fn shown(url: &Url) -> String {
    url.as_str().trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(told: &str) -> Option<Vec<String>> {
        with(told, &["shop.example.com".to_owned(), "shop.you.localhost".to_owned()])
    }

    #[test]
    fn every_name_is_reached_as_the_first_one_is() {
        assert_eq!(
            addresses("http://shop.you.localhost:8000").unwrap(),
            ["http://shop.you.localhost:8000", "http://shop.example.com:8000"]
        );
        assert_eq!(addresses("https://shop.example.com").unwrap()[1], "https://shop.you.localhost");
        assert_eq!(addresses("http://10.192.0.2:8080").unwrap(), ["http://10.192.0.2:8080"]);
    }

    #[test]
    fn what_a_program_prints_is_no_address_of_the_application() {
        for other in ["https://elsewhere.example", "javascript:alert(1)", "nowhere", "file:///etc/passwd"] {
            assert_eq!(addresses(other), None, "{other}");
        }
    }
}
