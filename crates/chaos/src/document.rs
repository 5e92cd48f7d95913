//! The operations of the OpenAPI document of the server, and real ids to call them with.

use serde_json::Value;

/// An operation of the document.
pub(crate) struct Operation {
    pub(crate) method: String,
    pub(crate) path: String,
    /// Its definition in the document.
    pub(crate) about: Value,
}

/// One resource of each kind that a path or a query may name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ids {
    pub(crate) organization: String,
    pub(crate) user: String,
    pub(crate) token: String,
    pub(crate) application: String,
    pub(crate) deployment: String,
    /// A deployment that has finished and is not live: its stream ends.
    pub(crate) ended: String,
    pub(crate) extension: String,
    pub(crate) execution: String,
    pub(crate) delivery: String,
    pub(crate) domain: String,
}

/// Returns every operation of a document.
pub(crate) fn operations(document: &Value) -> Vec<Operation> {
    let paths = document["paths"].as_object().expect("a document has paths");
    let operations = paths.iter().flat_map(|(path, item)| {
        item.as_object().into_iter().flatten().map(|(method, about)| Operation {
            method: method.to_uppercase(),
            path: path.clone(),
            about: about.clone(),
        })
    });
    operations.collect()
}

impl Operation {
    /// Returns the name in reports.
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// Returns the path with ids in place of its parameters, and the required query parameters.
    pub(crate) fn filled(&self, ids: &Ids) -> String {
        let mut path = self.path.clone();
        while let (Some(start), Some(end)) = (path.find('{'), path.find('}')) {
            let name = path[start + 1..end].to_owned();
            path.replace_range(start..=end, ids.of(&self.path, &name));
        }
        for name in self.parameters("query", true) {
            let joint = if path.contains('?') { '&' } else { '?' };
            path.push_str(&format!("{joint}{name}={}", ids.of(&self.path, &name)));
        }
        path
    }

    /// Returns the names of its parameters in the path, the query or the headers; optionally only the
    /// required ones.
    pub(crate) fn parameters(&self, place: &str, only_required: bool) -> Vec<String> {
        let parameters = self.about["parameters"].as_array().into_iter().flatten();
        parameters
            .filter(|parameter| parameter["in"] == place)
            .filter(|parameter| !only_required || parameter["required"] == true)
            .map(|parameter| parameter["name"].as_str().unwrap_or_default().to_owned())
            .collect()
    }
}

impl Ids {
    /// Returns the value of the parameter of that name in that path.
    pub(crate) fn of(&self, path: &str, name: &str) -> &str {
        match name {
            "application_id" => &self.application,
            "deployment_id" if path.ends_with("/stream") => &self.ended,
            "deployment_id" => &self.deployment,
            "extension_id" => &self.extension,
            "execution_id" => &self.execution,
            "delivery_id" => &self.delivery,
            "user_id" => &self.user,
            "type" => "generic",
            "domain" => &self.domain,
            "id" if path.contains("/tokens/") => &self.token,
            "id" if path.contains("/organizations") => &self.organization,
            _ => &self.application,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parameters_are_filled_by_what_they_stand_for() {
        let document = json!({"paths": {
            "/api/v1/auth/tokens/{id}": {"delete": {}},
            "/api/v1/deploy/application": {"get": {"parameters": [
                {"name": "id", "in": "query", "required": true}, {"name": "page", "in": "query"},
            ]}},
        }});
        let ids = Ids { token: "t".to_owned(), application: "a".to_owned(), ..Ids::default() };
        let filled: Vec<_> = operations(&document).iter().map(|operation| operation.filled(&ids)).collect();
        assert_eq!(filled, ["/api/v1/auth/tokens/t", "/api/v1/deploy/application?id=a"]);
    }
}
