//! The host of a request.

use std::borrow::Cow;

use http::{HeaderMap, HeaderValue, Uri, header};

/// Returns the host of a request: lower case, without a port and without the final dot.
///
/// # Errors
///
/// Returns the reason if there is no host, more than one, two that differ, or an invalid name.
pub(crate) fn of<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Result<Cow<'a, str>, &'static str> {
    let mut values = headers.get_all(header::HOST).iter();
    let value = values.next().ok_or("the request names no host")?;
    if values.next().is_some() {
        return Err("the request names several hosts");
    }
    let host = name(value)?;
    match uri.authority() {
        None => Ok(host),
        Some(authority) if authority.as_str().contains('@') => Err("the request's target has a user"),
        Some(authority) => match plain(authority.as_str())? == host {
            true => Ok(host),
            false => Err("the request's target and its host differ"),
        },
    }
}

fn name(value: &HeaderValue) -> Result<Cow<'_, str>, &'static str> {
    plain(value.to_str().or(Err("the host is no name"))?)
}

fn plain(text: &str) -> Result<Cow<'_, str>, &'static str> {
    let host = without_port(text)?;
    let host = host.strip_suffix('.').unwrap_or(host);
    let is_name = !host.is_empty() && host.bytes().all(is_part_of_a_name);
    match (is_name, host.bytes().any(|byte| byte.is_ascii_uppercase())) {
        (false, _) => Err("the host is no name"),
        (true, false) => Ok(Cow::Borrowed(host)),
        (true, true) => Ok(Cow::Owned(host.to_ascii_lowercase())),
    }
}

fn without_port(text: &str) -> Result<&str, &'static str> {
    // An IPv6 address has colons of its own, and brackets around it.
    let end_of_address = text.rfind(']').map_or(0, |bracket| bracket + 1);
    match text[end_of_address..].find(':') {
        None => Ok(text),
        Some(colon) => {
            let (host, port) = text.split_at(end_of_address + colon);
            match port[1..].bytes().all(|byte| byte.is_ascii_digit()) && port.len() <= 6 {
                true => Ok(host),
                false => Err("the host's port is no number"),
            }
        }
    }
}

fn is_part_of_a_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'[' | b']' | b':')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_its_name_alone() {
        for (text, host) in [
            ("shop.example", "shop.example"),
            ("Shop.Example", "shop.example"),
            ("shop.example:8000", "shop.example"),
            ("shop.example.", "shop.example"),
            ("shop.example.:80", "shop.example"),
            ("127.0.0.1:1", "127.0.0.1"),
            ("[::1]:8000", "[::1]"),
            ("[::1]", "[::1]"),
            ("shop.example:", "shop.example"),
        ] {
            assert_eq!(plain(text).as_deref(), Ok(host), "{text}");
        }
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for text in ["", ".", ":80", "a b", "a/b", "a@b", "a:80:80", "a:http", "a,b", "ä", "a:123456", "a\\b"]
        {
            assert!(plain(text).is_err(), "{text}");
        }
    }
}
