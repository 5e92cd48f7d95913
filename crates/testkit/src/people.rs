//! Users of the API.

use serde_json::{Value, json};

use crate::{client::Client, server::TestServer};

/// A user with an account.
#[derive(Clone)]
pub struct Person {
    /// The id of the user.
    pub id: String,
    /// Their e-mail address.
    pub email: String,
    /// Their password.
    pub password: &'static str,
    anonymous: Client,
}

impl Person {
    /// Logs in, and returns a client with the session.
    pub fn log_in(&self) -> Client {
        let answer = self
            .anonymous
            .post("/api/v1/auth/login", &json!({"email": self.email, "password": self.password}))
            .success();
        self.anonymous.with_token(answer["access_token"].as_str().unwrap())
    }
}

/// Accepts, as `client`, the invitation that an admin got this response for.
pub fn accept(client: &Client, added: &Value) {
    let path = format!("/api/v1/user/invitations/{}/accept", added["id"].as_str().unwrap());
    client.post(&path, &json!({"token": added["setup_token"]})).success();
}

/// Has `admin` add a new user to their organization, who sets their password.
pub fn join(server: &TestServer, admin: &Client, email: &str, role: &str) -> Person {
    let password = "a password of their own";
    let added = admin.post("/api/v1/organizations/users", &json!({"email": email, "role": role})).success();
    let token = added["setup_token"].as_str().unwrap();
    let setup = json!({"token": token, "password": password});
    server.client().post("/api/v1/auth/password/setup", &setup).success();
    Person {
        id: added["user_id"].as_str().unwrap().to_owned(),
        email: email.to_owned(),
        password,
        anonymous: server.client(),
    }
}
