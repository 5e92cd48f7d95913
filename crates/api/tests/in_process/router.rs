//! The OpenAPI document contains exactly the mounted operations.

use std::collections::BTreeSet;

use launchway_api::{document, operations};
use serde_json::Value;

/// Returns method, path and operation of each entry of the document, with duplicates.
fn documented() -> Vec<(String, String, Value)> {
    let document = document();
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            found.push((method.to_uppercase(), path.clone(), operation.clone()));
        }
    }
    found
}

#[test]
fn no_operation_is_mounted_twice() {
    let mounted: Vec<_> =
        operations().into_iter().map(|operation| (operation.method, operation.path)).collect();
    let once: BTreeSet<_> = mounted.iter().collect();
    assert_eq!(once.len(), mounted.len());
}

#[test]
fn operations_have_ids_and_summaries_of_their_own() {
    let documented = documented();
    for key in ["operationId", "summary"] {
        let texts: BTreeSet<_> =
            documented.iter().map(|(_, _, operation)| operation[key].to_string()).collect();
        assert!(!texts.contains("\"\""), "{key}");
        if key == "operationId" {
            assert_eq!(texts.len(), documented.len());
        }
    }
}

#[test]
fn every_part_of_a_path_that_varies_is_documented() {
    for (method, path, operation) in documented() {
        let in_path: BTreeSet<_> = path.split(['{', '}']).skip(1).step_by(2).map(str::to_owned).collect();
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let documented: BTreeSet<_> = parameters
            .filter(|parameter| parameter["in"] == "path")
            .map(|parameter| parameter["name"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(documented, in_path, "{method} {path}");
    }
}

#[test]
fn only_authenticated_operations_take_an_organization() {
    for (method, path, operation) in documented() {
        let mut parameters = operation["parameters"].as_array().into_iter().flatten();
        let takes_one = parameters.any(|parameter| parameter["name"] == "X-Organization-Id");
        assert_eq!(takes_one, operation["security"] != serde_json::json!([]), "{method} {path}");
    }
}
