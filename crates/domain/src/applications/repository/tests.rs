use proptest::prelude::*;

use super::*;

fn parse(raw: &str) -> Result<(GitUrl, Option<GitCredentials>), InvalidValue> {
    GitUrl::parse(raw)
}

#[test]
fn urls_and_ssh_addresses_are_accepted_as_they_are() {
    for raw in [
        "https://github.com/ada/engine.git",
        "https://git.example.com:8443/ada/engine",
        "ssh://git@github.com/ada/engine.git",
        "ssh://git@[2001:db8::1]:2222/ada/engine.git",
        "git@github.com:ada/engine.git",
        "http://10.0.0.1/engine.git",
        "git://10.0.0.1:9418/engine.git",
        "file:///srv/git/engine.git",
        "/srv/git/engine.git",
    ] {
        let (url, credentials) = parse(raw).unwrap();
        assert_eq!((url.as_str(), credentials), (raw, None));
    }
}

#[test]
fn what_could_be_an_option_a_helper_or_a_trick_is_refused() {
    let long = format!("https://example.com/{}", "a".repeat(2048));
    let long_as_it_is_kept = format!("https://example.com/{}", "ä".repeat(339));
    for raw in [
        "",
        "-",
        "--upload-pack=touch x",
        "ext::sh -c touch",
        "ext::x",
        "fd::17",
        "https://",
        "https:///x",
        "https://example.com",
        "https://example.com/",
        "ftp://example.com/x",
        "javascript:alert(1)",
        "https://example.com/x?y=1",
        "https://example.com/x#y",
        "https://exa mple.com/x",
        "ssh://-oProxyCommand=x/y",
        "git@-oProxyCommand=x:y",
        "-git@host:x",
        "git@host:-x",
        "git@host:",
        "host:path",
        "../x",
        "./x",
        "x",
        "file://host/x",
        "file:///a/../b",
        "/a/../b",
        "git@host:a b",
        "https://h/x\ny",
        "ssh://git:pw@host/x",
        "git://user@host/x",
        "https://h:0/x",
        "https://h:99999/x",
        &long,
        &long_as_it_is_kept,
    ] {
        assert!(parse(raw).is_err(), "{raw:?}");
    }
}

#[test]
fn credentials_are_taken_out_of_the_address() {
    for (raw, username, password) in [
        ("https://ada:hunter2@example.com/x.git", "ada", "hunter2"),
        ("https://ghp_token@example.com/x.git", "x-access-token", "ghp_token"),
        ("https://ada:p%40ss%3A@example.com/x.git", "ada", "p@ss:"),
    ] {
        let (url, credentials) = parse(raw).unwrap();
        assert_eq!(url.as_str(), "https://example.com/x.git");
        let credentials = credentials.unwrap();
        assert_eq!(
            (credentials.username.as_str(), credentials.password.expose().as_str()),
            (username, password)
        );
        assert!(GitUrl::try_from(raw.to_owned()).is_err());
    }
}

#[test]
fn a_refusal_repeats_no_password() {
    for raw in ["https://ada:hunter2@example.com/x?y", "ssh://ada:hunter2@example.com/x"] {
        assert!(!parse(raw).unwrap_err().to_string().contains("hunter2"));
    }
}

fn check(policy: &SourcePolicy, raw: &str) -> bool {
    policy.check(&parse(raw).unwrap().0).is_ok()
}

#[test]
fn allows_only_https_and_ssh_to_other_machines_by_default() {
    let policy = SourcePolicy::default();
    for (raw, allowed) in [
        ("https://github.com/a/b", true),
        ("git@github.com:a/b", true),
        ("https://10.0.0.1/a", true),
        ("http://github.com/a/b", false),
        ("git://github.com/a/b", false),
        ("https://127.0.0.1/a", false),
        ("https://127.1/a", false),
        ("https://0x7f000001/a", false),
        ("https://localhost/a", false),
        ("https://x.localhost/a", false),
        ("https://169.254.169.254/a", false),
        ("https://[::1]/a", false),
        ("https://[::ffff:127.0.0.1]/a", false),
        ("ssh://git@127.0.0.1/a", false),
        ("/srv/git/a", false),
        ("file:///srv/git/a", false),
    ] {
        assert_eq!(check(&policy, raw), allowed, "{raw}");
    }
}

#[test]
fn allows_listed_endpoints_and_folders_below_the_root() {
    let allow = vec![AllowedEndpoint { network: "127.0.0.1/32".parse().unwrap(), port: 9418 }];
    let policy = SourcePolicy { allow, local_root: Some("/srv/git".into()), containers: None };
    for (raw, allowed) in [
        ("git://127.0.0.1/a", true),
        ("git://localhost/a", true),
        ("git://127.0.0.1:9419/a", false),
        ("http://127.0.0.1/a", false),
        ("/srv/git/a", true),
        ("file:///srv/git/a", true),
        ("/srv/gitx/a", false),
        ("/etc", false),
    ] {
        assert_eq!(check(&policy, raw), allowed, "{raw}");
    }
    let address = |text: &str| text.parse().unwrap();
    assert!(policy.check_address(Transport::Http, address("127.0.0.1"), 9418).is_ok());
    assert!(policy.check_address(Transport::Http, address("192.0.2.1"), 80).is_err());
    assert!(policy.check_address(Transport::Https, address("192.0.2.1"), 443).is_ok());
}

proptest! {
    #[test]
    fn accepted_addresses_are_no_options_and_parse_again(text in "[-a-z@:/.0-9\\[\\]% ]{0,40}") {
        if let Ok((url, _)) = parse(&text) {
            prop_assert!(!url.as_str().starts_with('-'));
            prop_assert_eq!(GitUrl::try_from(url.as_str().to_owned()), Ok(url.clone()));
        }
    }
}

#[test]
fn a_container_is_no_place_for_a_repository() {
    let policy =
        SourcePolicy { containers: Some("10.192.0.0/12".parse().unwrap()), ..SourcePolicy::default() };
    for (url, is_allowed) in [
        ("https://10.192.2.2:8443/a.git", false),
        ("ssh://git@10.207.255.254/a.git", false),
        ("https://[::ffff:10.192.2.2]/a.git", false),
        ("https://10.191.255.255/a.git", true),
        ("https://10.208.0.1/a.git", true),
    ] {
        let (url, _) = GitUrl::parse(url).unwrap();
        assert_eq!(policy.check(&url).is_ok(), is_allowed, "{}", url.as_str());
    }
}

#[test]
fn a_path_with_an_id_is_a_repository_on_this_server() {
    let id: ApplicationId = "0198c9f2-7c1e-7000-8000-000000000001".parse().unwrap();
    let (url, credentials) = GitUrl::parse("/git/0198c9f2-7c1e-7000-8000-000000000001.git").unwrap();
    assert_eq!((url.clone(), credentials), (GitUrl::hosted(id), None));
    assert_eq!(url.hosted_for(), Some(id));
    assert_eq!(SourcePolicy::default().check(&url), Ok(()));
    for other in ["/git/shop.git", "/git/0198c9f2-7c1e-7000-8000-000000000001", "file:///git/a.git"] {
        let (url, _) = GitUrl::parse(other).unwrap();
        assert_eq!(url.hosted_for(), None, "{other}");
    }
}
