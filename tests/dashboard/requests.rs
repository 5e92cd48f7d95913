//! Requests as a browser sends them.

use launchway_testkit::{
    client::{Answer, Client},
    server::TestServer,
};

/// A visitor with the cookie of a session.
pub(crate) struct Visitor {
    client: Client,
    /// The value of the cookie header.
    pub(crate) cookie: String,
}

/// Returns a client whose requests come from a page of the server.
pub(crate) fn own_page(server: &TestServer) -> Client {
    let client = server.client().with_header("content-type", "application/x-www-form-urlencoded");
    client.with_header("sec-fetch-site", "same-origin")
}

impl Visitor {
    /// Logs in.
    pub(crate) fn log_in(server: &TestServer, email: &str, password: &str) -> Self {
        let form = form(&[("email", email), ("password", password)]);
        let answer = own_page(server).send("POST", "/dashboard/login", Some(&form));
        assert_eq!(answer.status, 303, "{}", answer.text);
        let cookie = answer.headers["set-cookie"].split(';').next().unwrap().to_owned();
        Self { client: own_page(server).with_header("cookie", &cookie), cookie }
    }

    /// Opens a page.
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.client.get(&format!("/dashboard{path}"))
    }

    /// Fetches a page again, as a script does that has the version `tag` of it.
    pub(crate) fn poll(&self, path: &str, tag: &str) -> Answer {
        self.client.with_header("if-none-match", tag).get(&format!("/dashboard{path}"))
    }

    /// Sends a form with the token of the session.
    pub(crate) fn send(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let token = self.form_token();
        let mut all = vec![("form_token", token.as_str())];
        all.extend_from_slice(fields);
        self.client.send("POST", &format!("/dashboard{path}"), Some(&form(&all)))
    }

    /// Returns the token that the forms of this session contain.
    pub(crate) fn form_token(&self) -> String {
        let page = self.get("/profile");
        assert_eq!(page.status, 200, "{}", page.text);
        let (_, rest) = page.text.split_once("name=\"form_token\" value=\"").unwrap();
        rest.split('"').next().unwrap().to_owned()
    }
}

/// Returns the body of a form.
pub(crate) fn form(fields: &[(&str, &str)]) -> String {
    let encoded = |text: &str| {
        let bytes = text.bytes().map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        });
        bytes.collect::<String>()
    };
    let pairs: Vec<_> = fields.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    pairs.join("&")
}
