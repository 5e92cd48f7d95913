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
    methods: Vec<MountedMethod>,
}

/// A method of a path.
struct MountedMethod {
    method: Method,
    codes: Vec<Code>,
    query_names: Vec<String>,
}

impl Mounted {
    fn method(&self, method: &Method) -> Option<&MountedMethod> {
        let method = if *method == Method::HEAD { &Method::GET } else { method };
        self.methods.iter().find(|known| known.method == method)
    }

    /// Returns whether the endpoint of `method` declares `code`.
    pub(crate) fn declares(&self, method: &Method, code: Code) -> bool {
        self.method(method).is_none_or(|mounted| mounted.codes.contains(&code))
    }

    /// Returns the names in `query` that the endpoint of `method` does not read.
    pub(crate) fn unknown_parameters(&self, method: &Method, query: &str) -> Vec<String> {
        let Some(mounted) = self.method(method) else { return Vec::new() };
        let Ok(pairs) = web::Query::<Vec<(String, String)>>::from_query(query) else { return Vec::new() };
        let mut names: Vec<_> = pairs.into_inner().into_iter().map(|(name, _)| name).collect();
        names.retain(|name| !mounted.query_names.contains(name));
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// Mounts one resource for each path, so that a known path with another method is distinguished from an
/// unknown path.
pub(crate) fn mount(endpoints: Vec<Endpoint>, config: &mut ServiceConfig) {
    let mut paths: BTreeMap<&'static str, (Mounted, Vec<Route>)> = BTreeMap::new();
    for endpoint in endpoints {
        let (codes, query_names) = (endpoint.codes(), endpoint.query_names());
        let Endpoint { method, path, route, .. } = endpoint;
        let (mounted, routes) =
            paths.entry(path).or_insert_with(|| (Mounted { path, methods: Vec::new() }, Vec::new()));
        mounted.methods.push(MountedMethod { method, codes, query_names });
        routes.push(route);
    }
    // Paths are matched in order, and those with parameters cost most: they come last.
    let (with_parameters, plain): (Vec<_>, Vec<_>) =
        paths.into_iter().partition(|(path, _)| path.contains('{'));
    for (path, (mounted, routes)) in plain.into_iter().chain(with_parameters) {
        let mut methods: Vec<_> = mounted.methods.iter().map(|each| each.method.as_str()).collect();
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
