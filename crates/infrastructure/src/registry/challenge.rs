//! The headers of a registry that a client has to follow: how to authenticate, and where a list goes on.

use std::collections::HashMap;

use hyper::header::HeaderValue;
use url::Url;

/// The authentication that a registry requires.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    /// The name and the password (RFC 7617).
    Basic,
    /// A token that the server at this URL gives for them.
    Bearer(Url),
}

impl Challenge {
    /// Reads a `WWW-Authenticate` header; `None` if it requires something else.
    pub(super) fn parse(header: &HeaderValue) -> Option<Self> {
        let (scheme, rest) = header.to_str().ok()?.trim().split_once(' ')?;
        if scheme.eq_ignore_ascii_case("basic") {
            return Some(Self::Basic);
        }
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let parameters = parameters(rest);
        let mut url: Url = parameters.get("realm")?.parse().ok()?;
        for name in ["service", "scope"] {
            if let Some(value) = parameters.get(name) {
                url.query_pairs_mut().append_pair(name, value);
            }
        }
        Some(Self::Bearer(url))
    }
}

/// Reads `name="value"` pairs. Values may contain commas, but no quotes.
fn parameters(text: &str) -> HashMap<String, &str> {
    let mut parameters = HashMap::new();
    let mut rest = text;
    while let Some((name, after)) = rest.split_once("=\"") {
        let Some((value, after)) = after.split_once('"') else { break };
        parameters.insert(name.trim_matches([' ', ',']).to_ascii_lowercase(), value);
        rest = after;
    }
    parameters
}

/// Returns the path and the query of the next page from a `Link` header (RFC 8288); `None` if there is none.
pub(super) fn next_page(header: &HeaderValue, current: &Url) -> Option<String> {
    let (target, rest) = header.to_str().ok()?.trim().strip_prefix('<')?.split_once('>')?;
    let is_next = rest.split(';').any(|part| matches!(part.trim(), "rel=\"next\"" | "rel=next"));
    let next = current.join(target).ok().filter(|_| is_next)?;
    Some(match next.query() {
        Some(query) => format!("{}?{query}", next.path()),
        None => next.path().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &'static str) -> Option<Challenge> {
        Challenge::parse(&HeaderValue::from_static(text))
    }

    #[test]
    fn a_challenge_names_the_server_of_tokens() {
        assert_eq!(parse("Basic realm=\"Registry\""), Some(Challenge::Basic));
        let bearer = "Bearer realm=\"https://auth.example/token?a=1\",service=\"r.example\",\
                      scope=\"repository:launchway/x:pull,delete\",error=\"invalid_token\"";
        let url = "https://auth.example/token?a=1&service=r.example&scope=repository%3Alaunchway%2Fx%3Apull%2Cdelete";
        assert_eq!(parse(bearer), Some(Challenge::Bearer(url.parse().unwrap())));
        for text in ["", "Basic", "Negotiate x", "Bearer service=\"x\"", "Bearer realm=\"/token\""] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_next_page_is_one_of_the_same_registry() {
        let current = "http://r:5000/v2/x/tags/list?n=2".parse().unwrap();
        let next = |text: &'static str| next_page(&HeaderValue::from_static(text), &current);
        let page = Some("/v2/x/tags/list?last=b&n=2".to_owned());
        assert_eq!(next("</v2/x/tags/list?last=b&n=2>; rel=\"next\""), page);
        assert_eq!(next("<http://elsewhere/v2/x/tags/list?last=b&n=2>; rel=next"), page);
        for text in ["", "</v2/x>", "</v2/x>; rel=\"prev\"", "/v2/x; rel=\"next\""] {
            assert_eq!(next(text), None, "{text}");
        }
    }
}
