//! Routing of requests by their host.

use launchway_proxy::{
    control::ControlError,
    routes::{Route, Target},
};

use crate::{
    application::named,
    client::{get, raw},
    process::{proxy, route},
};

#[tokio::test]
async fn each_host_leads_to_its_own_application() {
    let (proxy, shop, blog) = (proxy().await, named("shop").await, named("blog").await);
    proxy.route_to("shop", shop.address).await;
    proxy.route_to("blog", blog.address).await;
    for (host, name) in [
        ("shop.example", "shop"),
        ("blog.example", "blog"),
        ("SHOP.Example", "shop"),
        ("shop.example:8000", "shop"),
        ("shop.example.", "shop"),
    ] {
        let answer = get(proxy.address, host, "/").await;
        assert_eq!((answer.status, answer.text()), (200, name), "{host}");
    }
    assert_eq!(get(proxy.address, "shop.example.org", "/").await.status, 404);
}

#[tokio::test]
async fn a_whole_address_as_target_has_to_agree_with_the_host() {
    let (proxy, shop) = (proxy().await, named("shop").await);
    proxy.route_to("shop", shop.address).await;
    let ask = |target: &str, host: &str| format!("GET {target} HTTP/1.1\r\n{host}Connection: close\r\n\r\n");
    for (target, host, status) in [
        ("http://shop.example/a", "Host: shop.example\r\n", 200),
        ("http://shop.example:80/a", "Host: shop.example\r\n", 200),
        ("http://shop.example/a", "Host: blog.example\r\n", 400),
        ("http://shop.example/a", "", 400),
        ("http://someone@shop.example/a", "Host: shop.example\r\n", 400),
        ("/a", "Host: shop.example\r\nHost: shop.example\r\n", 400),
        ("/a", "Host: \r\n", 400),
        ("/a", "", 400),
        ("shop.example", "Host: shop.example\r\n", 400),
        ("*", "Host: shop.example\r\n", 200),
    ] {
        let answer = raw(proxy.address, ask(target, host).as_bytes()).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{target} {host}: {answer}");
    }
}

#[tokio::test]
async fn http_1_0_is_served_when_it_names_a_host() {
    let (proxy, shop) = (proxy().await, named("shop").await);
    proxy.route_to("shop", shop.address).await;
    let answer = raw(proxy.address, b"GET / HTTP/1.0\r\nHost: shop.example\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.0 200 ") && answer.ends_with("shop"), "{answer}");
}

#[tokio::test]
async fn an_application_that_is_nowhere_says_so() {
    let proxy = proxy().await;
    for (name, target) in [("stopped", Target::Stopped), ("absent", Target::Absent)] {
        let hosts = vec![format!("{name}.example")];
        proxy
            .control
            .set(Route { application: name.to_owned(), hosts, target, https_only: false })
            .await
            .unwrap();
        assert_eq!(get(proxy.address, &format!("{name}.example"), "/").await.status, 503);
    }
}

#[tokio::test]
async fn a_removed_application_is_unknown() {
    let (proxy, shop) = (proxy().await, named("shop").await);
    proxy.route_to("shop", shop.address).await;
    proxy.control.remove("shop").await.unwrap();
    assert_eq!(get(proxy.address, "shop.example", "/").await.status, 404);
}

#[tokio::test]
async fn two_applications_never_share_a_host() {
    let (proxy, shop) = (proxy().await, named("shop").await);
    proxy.route_to("shop", shop.address).await;
    let mut thief = route("thief", shop.address);
    thief.hosts.push("shop.example".to_owned());
    for refused in [
        proxy.control.set(thief.clone()).await,
        proxy.control.replace_all(vec![route("shop", shop.address), thief]).await,
    ] {
        let Err(ControlError::Refused(reason)) = refused else { panic!("{refused:?}") };
        assert!(reason.contains("shop.example") && reason.contains("`shop`"), "{reason}");
    }
    assert_eq!(get(proxy.address, "shop.example", "/").await.text(), "shop");
    assert_eq!(get(proxy.address, "thief.example", "/").await.status, 404);
}

#[tokio::test]
async fn a_route_with_what_is_no_host_is_refused() {
    let proxy = proxy().await;
    for host in ["", "Shop.example", "shop.example:80", "shop.example.", "a b", "a/b"] {
        let mut route = route("shop", proxy.address);
        route.hosts = vec![host.to_owned()];
        assert!(matches!(proxy.control.set(route).await, Err(ControlError::Refused(_))), "{host}");
    }
}

#[tokio::test]
async fn a_set_replaces_the_names_of_an_application() {
    let (proxy, shop) = (proxy().await, named("shop").await);
    proxy.route_to("shop", shop.address).await;
    let mut renamed = route("shop", shop.address);
    renamed.hosts = vec!["store.example".to_owned()];
    proxy.control.set(renamed).await.unwrap();
    assert_eq!(get(proxy.address, "store.example", "/").await.text(), "shop");
    assert_eq!(get(proxy.address, "shop.example", "/").await.status, 404);
    // The name is free for another one.
    let other = named("other").await;
    let mut taker = route("other", other.address);
    taker.hosts = vec!["shop.example".to_owned()];
    proxy.control.set(taker).await.unwrap();
    assert_eq!(get(proxy.address, "shop.example", "/").await.text(), "other");
}
