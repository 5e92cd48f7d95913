//! A Chromium, driven by its driver.

use std::{
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{client::Client, wait::until};

/// The tabulator key.
pub const TAB: &str = "\u{e004}";
/// The enter key.
pub const ENTER: &str = "\u{e007}";
/// The arrow key that points down.
pub const DOWN: &str = "\u{e015}";

/// A Chromium with a profile of its own.
pub struct Browser {
    driver: Child,
    client: Client,
    session: String,
    _profile: TempDir,
}

impl Browser {
    /// Starts a browser with an empty profile.
    pub fn start() -> Self {
        let profile = tempfile::tempdir().unwrap();
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
            format!("--user-data-dir={}", profile.path().display()),
        ]);
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {"args": arguments}, "goog:loggingPrefs": {"browser": "ALL"},
        }}});
        let answer = client.post("/session", &wanted).json();
        let session = answer["value"]["sessionId"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
        Self { driver, client, session, _profile: profile }
    }

    fn post(&self, command: &str, body: &Value) -> Value {
        let answer = self.client.post(&format!("/session/{}/{command}", self.session), body);
        assert_eq!(answer.status, 200, "{command}: {}", answer.text);
        answer.json()["value"].clone()
    }

    /// Opens a page, and waits until it is loaded.
    pub fn open(&self, url: &str) {
        self.post("url", &json!({"url": url}));
    }

    /// Returns the address of the page.
    pub fn url(&self) -> String {
        self.value("location.href").as_str().unwrap().to_owned()
    }

    /// Returns the value of an expression in the page.
    pub fn value(&self, expression: &str) -> Value {
        self.result(&format!("return {expression};"))
    }

    /// Runs statements in the page.
    pub fn run(&self, script: &str) {
        self.result(script);
    }

    /// Runs statements in the page, and returns what they return, or what their promise becomes.
    pub fn result(&self, script: &str) -> Value {
        self.post("execute/sync", &json!({"script": script, "args": []}))
    }

    /// Waits until an expression is true, on this page or on the next one.
    #[track_caller]
    pub fn wait_for(&self, expression: &str) {
        let script = json!({"script": format!("return Boolean({expression});"), "args": []});
        until(expression, || {
            let path = format!("/session/{}/execute/sync", self.session);
            // A page that is just replaced cannot answer.
            let answer = self.client.try_send("POST", &path, Some(&script.to_string())).ok()?;
            (answer.status == 200 && answer.json()["value"] == true).then_some(())
        });
    }

    /// Fills a form field.
    pub fn fill(&self, selector: &str, text: &str) {
        let (selector, text) = (json!(selector), json!(text));
        self.run(&format!(
            "const field = document.querySelector({selector}); field.value = {text};
             field.dispatchEvent(new Event('input', {{bubbles: true}}));"
        ));
    }

    /// Clicks an element, as a pointer would.
    pub fn click(&self, selector: &str) {
        let found = self.post("element", &json!({"using": "css selector", "value": selector}));
        let id = found.as_object().unwrap().values().next().unwrap().as_str().unwrap().to_owned();
        self.post(&format!("element/{id}/click"), &json!({}));
    }

    /// Runs a command of the DevTools protocol.
    pub fn devtools(&self, command: &str, parameters: &Value) -> Value {
        self.post("goog/cdp/execute", &json!({"cmd": command, "params": parameters}))
    }

    /// Types text, and keys such as [`TAB`], on the keyboard.
    pub fn press(&self, keys: &str) {
        let each = |key: char| {
            ["keyDown", "keyUp"].map(|kind| json!({"type": kind, "value": key.to_string()})).into_iter()
        };
        let actions: Vec<Value> = keys.chars().flat_map(each).collect();
        let keyboard = json!({"type": "key", "id": "keyboard", "actions": actions});
        self.post("actions", &json!({"actions": [keyboard]}));
    }

    /// Changes the size of the page. `is_mobile` shows it as a phone does.
    pub fn resize(&self, width: u32, height: u32, is_mobile: bool) {
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": is_mobile});
        self.devtools("Emulation.setDeviceMetricsOverride", &metrics);
    }

    /// Sets the preferred colour scheme.
    pub fn prefer(&self, scheme: &str) {
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.devtools("Emulation.setEmulatedMedia", &features);
    }

    /// Returns the errors in the console of the browser since the last call, those of security policies too.
    pub fn console_errors(&self) -> Vec<Value> {
        let log = self.post("se/log", &json!({"type": "browser"}));
        log.as_array().unwrap().iter().filter(|entry| entry["level"] == "SEVERE").cloned().collect()
    }

    /// Writes a picture of the page, as PNG or WebP by its name, into the folder of `LAUNCHWAY_TEST_SCREENSHOTS`, if it
    /// is set.
    pub fn picture(&self, name: &str) {
        let Some(folder) = std::env::var_os("LAUNCHWAY_TEST_SCREENSHOTS") else { return };
        let format = Path::new(name).extension().unwrap().to_str().unwrap();
        let options = match format {
            "webp" => json!({"format": "webp", "quality": 90}),
            _ => json!({"format": format}),
        };
        let answer = self.devtools("Page.captureScreenshot", &options);
        let picture = data_encoding::BASE64.decode(answer["data"].as_str().unwrap().as_bytes()).unwrap();
        std::fs::write(Path::new(&folder).join(name), picture).unwrap();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _gone = self.client.try_send("DELETE", &format!("/session/{}", self.session), None);
        let _gone = self.driver.kill();
        let _gone = self.driver.wait();
    }
}
