//! Whatever is written as a repository, a branch, an image, a host or a path: what is kept reads back
//! to itself, is no option of a program, and leads nowhere else.
#![no_main]

use std::{fmt::Debug, net::IpAddr};

use launchway_domain::{
    applications::{BasePath, Branch, DockerfilePath, GitPlace, GitUrl, HealthCheckPath, Hostname, ImageRef},
    value::InvalidValue,
    webhooks::RepositoryKey,
};
use libfuzzer_sys::fuzz_target;

/// The longest text that databases index.
const LONGEST_KEY: usize = 1024;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    repository(text);
    branch(text);
    image(text);
    hostname(text);
    paths(text);
});

/// The value, which reads back to itself, is no option and holds nothing that is not seen.
fn kept<T>(raw: &str, text: impl Fn(&T) -> &str) -> Option<T>
where
    T: TryFrom<String, Error = InvalidValue> + PartialEq + Debug,
{
    let value = T::try_from(raw.to_owned()).ok()?;
    let kept = text(&value);
    assert!(!kept.starts_with('-') && !kept.contains(char::is_control), "{value:?}");
    assert_eq!(T::try_from(kept.to_owned()).as_ref(), Ok(&value));
    Some(value)
}

fn leads_up(path: &str) -> bool {
    path.split('/').any(|part| part == "..")
}

fn repository(raw: &str) {
    let Ok((url, credentials)) = GitUrl::parse(raw) else { return };
    // What is kept holds no credentials: with them it would be refused.
    assert_eq!(kept(url.as_str(), GitUrl::as_str).as_ref(), Some(&url), "{url:?}");
    if credentials.is_none() {
        assert_eq!(kept(raw, GitUrl::as_str).as_ref(), Some(&url));
    }
    match url.place() {
        GitPlace::Local(path) => {
            assert!(path.is_absolute() && path.to_str().is_some_and(|path| !leads_up(path)), "{url:?}");
        }
        GitPlace::Remote { host, port, .. } => {
            assert!(*port > 0 && !host.is_empty() && !host.starts_with(['-', '.']), "{url:?}");
            assert!(!host.contains(|c: char| c.is_ascii_uppercase() || c.is_whitespace()), "{url:?}");
            // The path of `user@host:path` is read by the other machine alone.
            assert!(!url.as_str().contains("://") || !leads_up(url.as_str()), "{url:?}");
        }
    }
    let key = RepositoryKey::of(&url);
    assert_eq!(RepositoryKey::parse(raw).as_ref(), Some(&key));
    assert_eq!(RepositoryKey::parse(url.as_str()).as_ref(), Some(&key));
    assert!(key.as_str().len() <= LONGEST_KEY);
    assert_eq!(kept(key.as_str(), RepositoryKey::as_str), Some(key));
}

fn branch(raw: &str) {
    let Some(branch) = kept(raw, Branch::as_str) else { return };
    let branch = branch.as_str();
    assert!(
        branch.len() <= 255 && !branch.contains("..") && !branch.contains([' ', ':', '\\']),
        "{branch:?}"
    );
    assert!(branch.split('/').all(|part| !part.is_empty() && !part.starts_with('.')), "{branch:?}");
}

fn image(raw: &str) {
    let Some(image) = kept(raw, ImageRef::as_str) else { return };
    let image = image.as_str();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._:/@-".contains(&byte);
    assert!((1..=255).contains(&image.len()) && image.bytes().all(is_plain), "{image:?}");
    assert!(!leads_up(image) && !image.contains("//"), "{image:?}");
}

fn hostname(raw: &str) {
    let Some(name) = kept(raw, Hostname::as_str) else { return };
    let name = name.as_str();
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte);
    assert!((1..=253).contains(&name.len()) && name.bytes().all(is_plain), "{name:?}");
    assert!(name.parse::<IpAddr>().is_err(), "{name:?}");
    // To whoever reads web addresses it is this very name, and no address in disguise.
    assert_eq!(url::Host::parse(name), Ok(url::Host::Domain(name.to_owned())));
}

fn paths(raw: &str) {
    if let Some(path) = kept(raw, BasePath::as_str) {
        assert!(path.as_str().starts_with('/') && !leads_up(path.as_str()), "{path:?}");
        assert!(!path.relative().starts_with('/') && !path.as_str().contains(['\\']), "{path:?}");
    }
    // Never an argument of a program, so that it may begin like an option.
    if let Ok(path) = raw.parse::<DockerfilePath>() {
        assert_eq!(path.as_str().parse(), Ok(path.clone()));
        assert!(!path.as_str().is_empty() && !path.as_str().starts_with('/'), "{path:?}");
        assert!(!leads_up(path.as_str()) && !path.as_str().contains(char::is_control), "{path:?}");
    }
    if let Some(path) = kept(raw, HealthCheckPath::as_str) {
        let is_plain = path.as_str().bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
        assert!(path.as_str().starts_with('/') && path.as_str().len() <= 1024 && is_plain, "{path:?}");
    }
}
