//! An endpoint: declared once, with everything that the router, the OpenAPI document, the table of
//! `docs/api.md` and the authorization tests need to know about it.
//!
//! **Invariant:** the parameters, the body and the response of an endpoint are described by the types that its
//! handler takes and returns, so that the document cannot differ from them.
//!
//! **Invariant:** an endpoint declares every error code that it returns. A debug build answers an undeclared
//! one with 500, so that every test of the API checks the declarations.

mod describe;

use actix_web::{FromRequest, Handler, Responder, Route, guard, http::Method, web};
use launchway_domain::auth::Permission;
use serde_json::{Value, json};

pub(crate) use self::describe::{Answer, Description, Part};
use crate::{
    error::Code,
    schema::{Register, Schemas},
};

/// The access that an endpoint requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// None.
    Public,
    /// A session token or an API token.
    Token,
    /// A session token: API tokens are refused.
    Session,
    /// A token whose user has this permission in the organization.
    Permission(Permission),
}

/// A mounted method and path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// The HTTP method, such as `GET`.
    pub method: String,
    /// The path, with its parameters in braces.
    pub path: &'static str,
    /// The summary: verb and object.
    pub summary: &'static str,
    /// The access that it requires.
    pub access: Access,
    /// True if another path replaces this one.
    pub is_deprecated: bool,
}

/// An endpoint.
pub(crate) struct Endpoint {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) route: Route,
    id: &'static str,
    tag: &'static str,
    summary: &'static str,
    about: &'static str,
    cli: &'static str,
    permission: Option<Permission>,
    is_deprecated: bool,
    description: Description,
}

/// `fn get`, `fn post`, …: declares an endpoint.
macro_rules! methods {
    ($($name:ident => $method:ident),*) => {$(
        pub(crate) fn $name<F, Args>(path: &'static str, id: &'static str, handler: F) -> Self
        where
            F: Handler<Args>,
            Args: FromRequest + Part + 'static,
            F::Output: Responder + Answer + 'static,
        {
            Self::new(Method::$method, path, id, handler)
        }
    )*};
}

impl Endpoint {
    methods!(get => GET, post => POST, put => PUT, patch => PATCH, delete => DELETE);

    fn new<F, Args>(method: Method, path: &'static str, id: &'static str, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + Part + 'static,
        F::Output: Responder + Answer + 'static,
    {
        let mut description = Description::default();
        description.fails(&[Code::Internal, Code::Unavailable]);
        let route = if method == Method::GET {
            // Every GET endpoint responds to HEAD too.
            web::route().guard(guard::Any(guard::Get()).or(guard::Head()))
        } else {
            // A page of another origin is refused.
            description.fails(&[Code::Forbidden]);
            web::method(method.clone())
        };
        Args::describe(&mut description);
        F::Output::describe(&mut description);
        Self {
            method,
            path,
            route: route.to(handler),
            id,
            tag: "",
            summary: "",
            about: "",
            cli: "",
            permission: None,
            is_deprecated: false,
            description,
        }
    }

    /// Sets the summary: verb and object.
    pub(crate) fn summary(self, summary: &'static str) -> Self {
        Self { summary, ..self }
    }

    /// Adds sentences about what the summary does not say.
    pub(crate) fn about(self, about: &'static str) -> Self {
        Self { about, ..self }
    }

    /// Names the command of the client that does the same.
    pub(crate) fn cli(self, cli: &'static str) -> Self {
        Self { cli, ..self }
    }

    /// Declares the permission that the use case requires.
    pub(crate) fn requires(self, permission: Permission) -> Self {
        Self { permission: Some(permission), ..self }
    }

    /// Declares error codes beyond those of the handler's parameters.
    pub(crate) fn fails(mut self, codes: &[Code]) -> Self {
        self.description.fails(codes);
        self
    }

    /// Declares the type and the schema of a response that is not in an envelope.
    pub(crate) fn responds(mut self, content_type: &'static str, schema: Register) -> Self {
        self.description.content_type = content_type;
        self.description.answer(schema);
        self
    }

    /// Declares another media type of the same response, for callers who accept only that.
    pub(crate) fn also_responds(mut self, content_type: &'static str) -> Self {
        self.description.other_content_type = Some(content_type);
        self
    }

    /// Adds the description of a header that the handler reads itself.
    pub(crate) fn header(mut self, name: &str, about: &str, schema: Value) -> Self {
        self.description.parameter("header", name, about, false, schema);
        self
    }

    /// Marks an endpoint that another path replaces.
    pub(crate) fn deprecated(self) -> Self {
        Self { is_deprecated: true, ..self }
    }

    /// Sets the tag, by which the document groups the endpoints of a noun.
    pub(crate) fn tagged(self, tag: &'static str) -> Self {
        Self { tag, ..self }
    }

    pub(crate) fn access(&self) -> Access {
        match (self.description.caller, self.permission) {
            (_, Some(permission)) => Access::Permission(permission),
            (access, None) => access,
        }
    }

    pub(crate) fn operation(&self) -> Operation {
        Operation {
            method: self.method.to_string(),
            path: self.path,
            summary: self.summary,
            access: self.access(),
            is_deprecated: self.is_deprecated,
        }
    }

    pub(crate) fn is_deprecated(&self) -> bool {
        self.is_deprecated
    }

    /// Returns the error codes that it declares.
    pub(crate) fn codes(&self) -> Vec<Code> {
        self.description.errors.iter().copied().collect()
    }

    /// Returns the names of the query parameters that it reads.
    pub(crate) fn query_names(&self) -> Vec<String> {
        self.description.query_names.clone()
    }

    /// Returns the operation object of the OpenAPI document, and adds the schemas that it refers to.
    pub(crate) fn document(&self, schemas: &mut Schemas) -> Value {
        let access = match self.access() {
            Access::Public => "Requires no token.".to_owned(),
            Access::Token => "Requires a token.".to_owned(),
            Access::Session => "Requires a session: API tokens are refused.".to_owned(),
            Access::Permission(permission) => format!("Requires the permission `{}`.", permission.as_str()),
        };
        let description = format!("{}\n\n{access}", self.about);
        let mut operation = json!({
            "operationId": self.id,
            "tags": [self.tag],
            "summary": self.summary,
            "description": description.trim(),
            "responses": self.description.responses(schemas),
            "security": [],
        });
        if self.access() != Access::Public {
            operation["security"] = json!([{"bearer": []}]);
        }
        if let Access::Permission(permission) = self.access() {
            operation["x-permission"] = json!(permission.as_str());
        }
        if !self.cli.is_empty() {
            operation["x-cli"] = json!(self.cli);
        }
        if !self.description.parameters.is_empty() {
            operation["parameters"] = json!(self.description.parameters);
        }
        if let Some(body) = self.description.request_body(schemas) {
            operation["requestBody"] = body;
        }
        if self.is_deprecated {
            operation["deprecated"] = json!(true);
        }
        operation
    }
}
