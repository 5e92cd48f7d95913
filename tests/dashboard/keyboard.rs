//! The way of a new administrator without a pointer: only the keyboard is used.

use launchway_testkit::{
    browser::{Browser, DOWN, ENTER, TAB},
    repository::Repository,
    server::{ADMIN_EMAIL, ADMIN_PASSWORD, TestServer},
};
use serde_json::json;

/// The most elements that a page lets the keyboard go through.
const MOST_STEPS: usize = 80;

/// Goes on by the tabulator to the element, and asserts that each element on the way shows that it has the focus.
#[track_caller]
fn tab_to(browser: &Browser, selector: &str) {
    let (found, shown) = (
        format!("document.activeElement.matches({})", json!(selector)),
        "(() => {
            // Between the last element and the first one, the browser itself has the focus.
            if (document.activeElement === document.body) return true;
            const element = document.activeElement, style = getComputedStyle(element);
            const place = element.getBoundingClientRect();
            const is_seen = place.width > 0 && place.bottom > 0 && place.top < innerHeight && place.right > 0;
            return style.outlineStyle !== 'none' && is_seen;
        })()",
    );
    for _ in 0..MOST_STEPS {
        browser.press(TAB);
        assert_eq!(browser.value(shown), true, "{}", browser.value("document.activeElement.outerHTML"));
        if browser.value(&found) == true {
            return;
        }
    }
    panic!("the keyboard does not reach {selector} of {}", browser.url());
}

#[test]
fn everything_is_reached_by_the_keyboard() {
    let folder = tempfile::tempdir().unwrap();
    let (path, repositories) = (std::env::var("PATH").unwrap(), folder.path().display().to_string());
    let server =
        TestServer::configured(&[("PATH", &path), ("LAUNCHWAY_ALLOWED_LOCAL_REPOSITORIES", &repositories)]);
    let repository = Repository::empty(folder.path().join("site"));
    repository.write("index.html", "<h1>a page</h1>\n").commit();
    let browser = Browser::start();

    // Register: the first field has the focus.
    browser.open(&format!("{}/dashboard", server.url()));
    browser.wait_for("document.activeElement.matches('[name=username]')");
    browser.press(&["ada", TAB, ADMIN_EMAIL, TAB, ADMIN_PASSWORD, ENTER].concat());
    browser.wait_for("document.querySelector('.empty h2')");

    // The first key leads past the navigation.
    tab_to(&browser, ".skip");
    browser.press(ENTER);
    browser.wait_for("location.hash === '#content'");
    browser.press(TAB);
    assert_eq!(browser.value("document.activeElement.textContent"), "New application");
    browser.press(ENTER);

    // A new application.
    browser.wait_for("document.activeElement.matches('[name=repository]')");
    browser.press(&format!("file://{}", repository.path().display()));
    tab_to(&browser, "[name=build_pack]");
    while browser.value("document.activeElement.value") != "static" {
        browser.press(DOWN);
    }
    tab_to(&browser, "[name=name]");
    browser.press("Home page");
    tab_to(&browser, "summary");
    browser.press(ENTER);
    tab_to(&browser, "[name=environment_variables]");
    browser.press("GREETING=hello");
    tab_to(&browser, ".buttons .primary");
    browser.press(ENTER);
    browser.wait_for("document.querySelector('#progress .state.good')?.textContent === 'live'");

    // Its log can be scrolled, and a line of it can be linked.
    tab_to(&browser, "#log");
    tab_to(&browser, "#log .line a");
    browser.press(ENTER);
    browser.wait_for("document.querySelector('#log .line.hit')");

    // Delete it: the name has to be typed.
    tab_to(&browser, ".tabs [href$=settings]");
    browser.press(ENTER);
    browser.wait_for("document.querySelector('[data-must-be]')");
    tab_to(&browser, "[data-must-be]");
    browser.press("Home page");
    tab_to(&browser, ".danger button");
    browser.press(ENTER);
    browser.wait_for("document.querySelector('.empty h2')");

    // Leave.
    tab_to(&browser, ".account button");
    browser.press(ENTER);
    browser.wait_for("location.pathname === '/dashboard/login'");
}
