//! Mounts endpoints.

use std::collections::BTreeMap;

use actix_web::{
    Route,
    http::Method,
    web::{self, ServiceConfig},
};

use crate::{
    endpoint::Endpoint,
    error::{ApiError, Code},
};

/// The mounted path of a request.
pub(crate) struct Mounted {
    /// The path, with its parameters in braces.
    pub(crate) path: &'static str,
    /// The error codes of each method.
    codes: Vec<(Method, Vec<Code>)>,
}

impl Mounted {
    /// Returns whether the endpoint of `method` declares `code`.
    pub(crate) fn declares(&self, method: &Method, code: Code) -> bool {
        let method = if *method == Method::HEAD { &Method::GET } else { method };
        let codes = self.codes.iter().find(|(known, _)| known == method).map(|(_, codes)| codes);
        codes.is_none_or(|codes| codes.contains(&code))
    }
}

/// Mounts one resource for each path, so that a known path with another method is distinguished from an
/// unknown path.
pub(crate) fn mount(endpoints: Vec<Endpoint>, config: &mut ServiceConfig) {
    let mut paths: BTreeMap<&'static str, (Mounted, Vec<Route>)> = BTreeMap::new();
    for endpoint in endpoints {
        let codes = endpoint.declares();
        let Endpoint { method, path, route, .. } = endpoint;
        let (mounted, routes) =
            paths.entry(path).or_insert_with(|| (Mounted { path, codes: Vec::new() }, Vec::new()));
        mounted.codes.push((method, codes));
        routes.push(route);
    }
    // Paths are matched in order, and those with parameters cost most: they come last.
    let (with_parameters, plain): (Vec<_>, Vec<_>) =
        paths.into_iter().partition(|(path, _)| path.contains('{'));
    for (path, (mounted, routes)) in plain.into_iter().chain(with_parameters) {
        let mut methods: Vec<_> = mounted.codes.iter().map(|(method, _)| method.as_str()).collect();
        if methods.contains(&"GET") {
            methods.push("HEAD");
        }
        methods.sort_unstable();
        let allow = methods.join(", ");
        let resource =
            routes.into_iter().fold(web::resource(path), actix_web::Resource::route).app_data(mounted);
        config.service(resource.default_service(web::to(move || {
            let refusal = ApiError::method_not_allowed(&allow);
            async move { Err::<&str, _>(refusal) }
        })));
    }
}
