//! The table of endpoints in `docs/api.md` is generated from the declarations, and `docs/errors.md` lists all codes.

use launchway_api::{Access, Operation, document, operations};
use serde_json::Value;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/api.md");
const ERRORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/errors.md");
const BEGIN: &str = "<!-- endpoints:begin -->\n";
const END: &str = "<!-- endpoints:end -->";
/// Writes the table instead of comparing it.
const UPDATE: &str = "LAUNCHWAY_UPDATE_DOCS";

#[test]
fn the_table_of_endpoints_is_current() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (written, after) = rest.split_once(END).unwrap();
    let current = table();
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(PAGE, format!("{before}{BEGIN}{current}{END}{after}")).unwrap();
    } else {
        assert_eq!(
            written, current,
            "cure: {UPDATE}=1 cargo nextest run -p launchway-api the_table_of_endpoints"
        );
    }
}

#[test]
fn the_codes_of_fields_are_those_of_the_errors_page() {
    let page = std::fs::read_to_string(ERRORS).unwrap();
    let (_, section) = page.split_once("## Problems of fields\n").unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
    let mut documented: Vec<_> = rows.skip(1).collect();
    documented.sort_unstable();
    let document = document();
    let codes =
        document["components"]["schemas"]["Problem"]["properties"]["code"]["enum"].as_array().unwrap();
    let mut codes: Vec<_> = codes.iter().map(|code| code.as_str().unwrap()).collect();
    codes.sort_unstable();
    assert_eq!(documented, codes);
}

fn table() -> String {
    let document = document();
    let mut table = "| method | path | token | request | |\n|---|---|---|---|---|\n".to_owned();
    for operation in operations() {
        let documented = &document["paths"][operation.path][operation.method.to_lowercase()];
        let Operation { method, path, summary, .. } = &operation;
        let (token, request) = (token(&operation), request(&document, documented));
        let note = if operation.is_deprecated { " (deprecated)" } else { "" };
        table.push_str(&format!("| {method} | `{path}` | {token} | {request} | {summary}{note} |\n"));
    }
    table
}

fn token(operation: &Operation) -> String {
    match operation.access {
        Access::Public => "–".to_owned(),
        Access::Token => "any".to_owned(),
        Access::Session => "session".to_owned(),
        Access::Permission(permission) => format!("`{}`", permission.as_str()),
    }
}

/// Lists the fields of the body, and the parameters of the query: `?name=`, or `[?name=]` if it is optional.
fn request(document: &Value, operation: &Value) -> String {
    let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
    let pointer = schema["$ref"].as_str().map(|reference| reference.trim_start_matches('#'));
    let schema = pointer.and_then(|pointer| document.pointer(pointer)).unwrap_or(schema);
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let names = schema["properties"].as_object().into_iter().flat_map(|fields| fields.keys());
    let mut required_first: Vec<_> = names.collect();
    required_first.sort_by_key(|name| !required.iter().any(|required| required == *name));
    let fields = required_first.into_iter().map(|name| {
        let mark = if required.iter().any(|required| required == name) { "" } else { "?" };
        format!("`{name}{mark}`")
    });
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let query = parameters.filter(|parameter| parameter["in"] == "query").map(|parameter| {
        let name = parameter["name"].as_str().unwrap();
        if parameter["required"] == true { format!("`?{name}=`") } else { format!("`[?{name}=]`") }
    });
    let all: Vec<_> = fields.chain(query).collect();
    if all.is_empty() { "–".to_owned() } else { all.join(", ") }
}
