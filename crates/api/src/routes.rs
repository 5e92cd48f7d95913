//! The builder of routes, to which each feature adds its endpoints.

use std::collections::BTreeMap;

use actix_web::{
    FromRequest, Handler, Responder, Route, guard,
    http::Method,
    web::{self, ServiceConfig},
};

use crate::error::ApiError;

/// A mounted method and path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Operation {
    /// The HTTP method, such as `GET`.
    pub method: String,
    /// The path, with its parameters in braces.
    pub path: &'static str,
}

/// The path pattern of a route, for metrics.
pub(crate) struct Pattern(pub(crate) &'static str);

/// Routes to be mounted.
#[derive(Default)]
pub(crate) struct Routes(Vec<(Operation, Route)>);

/// `fn get`, `fn post`, …: adds `handler` at `path`.
macro_rules! methods {
    ($($name:ident => $method:ident),*) => {$(
        pub(crate) fn $name<F, Args>(&mut self, path: &'static str, handler: F) -> &mut Self
        where
            F: Handler<Args>,
            Args: FromRequest + 'static,
            F::Output: Responder + 'static,
        {
            self.add(Method::$method, path, handler)
        }
    )*};
}

impl Routes {
    methods!(get => GET, post => POST, put => PUT, patch => PATCH, delete => DELETE);

    fn add<F, Args>(&mut self, method: Method, path: &'static str, handler: F) -> &mut Self
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        let operation = Operation { method: method.to_string(), path };
        let route = if method == Method::GET {
            // Every GET endpoint responds to HEAD too.
            web::route().guard(guard::Any(guard::Get()).or(guard::Head()))
        } else {
            web::method(method)
        };
        self.0.push((operation, route.to(handler)));
        self
    }

    /// Returns the added operations.
    pub(crate) fn operations(self) -> Vec<Operation> {
        self.0.into_iter().map(|(operation, _)| operation).collect()
    }

    /// Mounts one resource for each path, so that a known path with another method is distinguished from an
    /// unknown path.
    pub(crate) fn mount(self, config: &mut ServiceConfig) {
        let mut paths: BTreeMap<&'static str, (Vec<String>, Vec<Route>)> = BTreeMap::new();
        for (Operation { method, path }, route) in self.0 {
            let (methods, routes) = paths.entry(path).or_default();
            if method == "GET" {
                methods.push("HEAD".to_owned());
            }
            methods.push(method);
            routes.push(route);
        }
        // Paths are matched in order, and those with parameters cost most: they come last.
        let (with_parameters, plain): (Vec<_>, Vec<_>) =
            paths.into_iter().partition(|(path, _)| path.contains('{'));
        for (path, (mut methods, routes)) in plain.into_iter().chain(with_parameters) {
            methods.sort();
            let allow = methods.join(", ");
            let resource = routes
                .into_iter()
                .fold(web::resource(path), actix_web::Resource::route)
                .app_data(Pattern(path));
            config.service(resource.default_service(web::to(move || {
                let refusal = ApiError::method_not_allowed(&allow);
                async move { Err::<&str, _>(refusal) }
            })));
        }
    }
}
