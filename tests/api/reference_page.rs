//! The API reference in a real browser.

use std::{
    net::TcpListener,
    process::{Child, Command, Stdio},
};

use launchway_testkit::{client::Client, server::TestServer};
use serde_json::{Value, json};

use crate::wait::until;

/// The size that the page may have when it is compressed.
const LARGEST: usize = 100 * 1024;

/// A Chromium, driven by its driver.
struct Browser {
    driver: Child,
    client: Client,
    session: String,
}

impl Browser {
    fn start(profile: &std::path::Path) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let driver = Command::new("chromedriver")
            .arg(format!("--port={port}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("`chromedriver` of chromium-driver cannot be started: {error}"));
        let client = Client::new(&format!("http://127.0.0.1:{port}"));
        until("the driver of the browser", || client.try_send("GET", "/status", None).ok());
        let arguments = json!([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--force-prefers-reduced-motion",
            "--window-size=1280,800",
            format!("--user-data-dir={}", profile.display()),
        ]);
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {"args": arguments}, "goog:loggingPrefs": {"browser": "ALL"},
        }}});
        let answer = client.post("/session", &wanted).json();
        let session = answer["value"]["sessionId"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
        Self { driver, client, session }
    }

    fn post(&self, command: &str, body: &Value) -> Value {
        let answer = self.client.post(&format!("/session/{}/{command}", self.session), body);
        assert_eq!(answer.status, 200, "{command}: {}", answer.text);
        answer.json()["value"].clone()
    }

    fn open(&self, url: &str) {
        self.post("url", &json!({"url": url}));
    }

    /// Returns the value of an expression in the page.
    fn value(&self, expression: &str) -> Value {
        self.post("execute/sync", &json!({"script": format!("return {expression};"), "args": []}))
    }

    /// Runs statements in the page.
    fn run(&self, script: &str) {
        self.post("execute/sync", &json!({"script": script, "args": []}));
    }

    fn resize(&self, width: u32, height: u32) {
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": true});
        let command = json!({"cmd": "Emulation.setDeviceMetricsOverride", "params": metrics});
        self.post("goog/cdp/execute", &command);
    }

    fn prefer(&self, scheme: &str) {
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.post("goog/cdp/execute", &json!({"cmd": "Emulation.setEmulatedMedia", "params": features}));
    }

    /// Returns the errors in the console of the browser.
    fn console_errors(&self) -> Vec<Value> {
        let log = self.post("se/log", &json!({"type": "browser"}));
        log.as_array().unwrap().iter().filter(|entry| entry["level"] == "SEVERE").cloned().collect()
    }

    /// Writes a picture of the page, if somebody wants to look at it.
    fn picture(&self, name: &str) {
        let Some(folder) = std::env::var_os("LAUNCHWAY_TEST_SCREENSHOTS") else { return };
        let answer = self.client.get(&format!("/session/{}/screenshot", self.session)).json();
        let picture = data_encoding::BASE64.decode(answer["value"].as_str().unwrap().as_bytes()).unwrap();
        std::fs::write(std::path::Path::new(&folder).join(name), picture).unwrap();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _gone = self.client.try_send("DELETE", &format!("/session/{}", self.session), None);
        let _gone = self.driver.kill();
        let _gone = self.driver.wait();
    }
}

#[test]
fn the_page_is_small_and_allows_nothing_from_elsewhere() {
    let server = TestServer::on_sqlite();
    let answer = server.client().get("/docs");
    let policy = &answer.headers["content-security-policy"];
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    assert!(!policy.contains("unsafe") && policy.contains("connect-src 'self'"), "{policy}");
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut encoder, answer.text.as_bytes()).unwrap();
    let size = encoder.finish().unwrap().len();
    assert!(size <= LARGEST, "{size}");
}

#[test]
fn the_page_can_be_searched_and_sends_requests() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    let token = admin.post("/api/v1/auth/tokens", &json!({"name": "page"})).success()["token"].clone();
    let profile = tempfile::tempdir().unwrap();
    let browser = Browser::start(profile.path());
    browser.open(&format!("{}/docs", server.url()));
    browser.picture("light.png");

    // Every operation has an anchor and a link to it.
    let anchors =
        "[...document.querySelectorAll('nav li a')].every(a => document.getElementById(a.hash.slice(1)))";
    assert_eq!(browser.value(anchors), true);
    let operations = browser.value("document.querySelectorAll('article form').length").as_u64().unwrap();
    assert!(operations > 80, "{operations}");

    let shown = "[...document.querySelectorAll('article')].filter(a => !a.hidden).map(a => a.id)";
    let search = |text: &str| {
        let set = format!("document.getElementById('search').value = {}", json!(text));
        browser.run(&format!("{set}; document.getElementById('search').dispatchEvent(new Event('input'));"));
        browser.value(shown)
    };
    assert_eq!(search("patch theme"), json!(["change_theme"]));
    assert_eq!(search("launchway rollback"), json!(["roll_back"]));
    let command = "document.querySelector('#roll_back pre + p + pre').textContent";
    assert_eq!(browser.value(command), "launchway rollback <DEPLOYMENT>");
    assert_eq!(search("nothing has this name"), json!([]));
    assert!(search("").as_array().unwrap().len() > 80);

    // The navigation follows the place that is read.
    browser.run("location.hash = '#list_deployments';");
    let current = "document.querySelector('nav a[aria-current]')?.hash";
    until("the navigation at the operation", || {
        (browser.value(current) == "#list_deployments").then_some(())
    });

    // A request with a token that only the page has.
    let send = format!(
        "document.getElementById('token').value = {token};
         document.querySelector('#user form').requestSubmit();"
    );
    browser.run(&send);
    let answer = until("the response", || {
        let text = browser.value("document.querySelector('#user form pre').textContent");
        text.as_str().filter(|text| text.starts_with("200")).map(str::to_owned)
    });
    assert!(answer.contains("\"email\": \"ada@example.com\""), "{answer}");
    let kept = "localStorage.length + sessionStorage.length + document.cookie.length";
    assert_eq!(browser.value(kept), 0);
    let hosts = "performance.getEntriesByType('resource').every(e => e.name.startsWith(location.origin))";
    assert_eq!(browser.value(hosts), true);

    // Both themes show the badges of methods, and a narrow screen shows everything.
    let style = |name: &str| {
        browser.value(&format!("getComputedStyle(document.querySelector('.method.get')).{name}"))
    };
    for scheme in ["light", "dark"] {
        browser.prefer(scheme);
        assert_eq!(
            (style("color"), style("backgroundColor")),
            (json!("rgb(255, 255, 255)"), json!("rgb(5, 80, 174)"))
        );
    }
    browser.picture("dark.png");
    browser.resize(390, 844);
    browser.run("document.querySelectorAll('details').forEach(each => each.open = true);");
    assert_eq!(browser.value("document.documentElement.scrollWidth"), 390);
    browser.picture("narrow.png");
    assert_eq!(browser.console_errors(), Vec::<Value>::new());
}
