//! Parts that are repeated in a response, such as the application of every log line, serialized once.

use std::sync::Arc;

use launchway_application::Error;
use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

/// A part of a response that is serialized JSON.
#[derive(Clone)]
pub(crate) struct Repeated(Arc<RawValue>);

impl Repeated {
    pub(crate) fn new(part: &impl Serialize) -> Result<Self, Error> {
        to_raw_value(part).map(|json| Self(json.into())).map_err(|error| Error::Internal(error.into()))
    }
}

impl Serialize for Repeated {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn it_is_written_as_what_it_was_made_of() {
        let part = json!({"name": "a \"shop\"", "port": 80, "labels": []});
        let repeated = Repeated::new(&part).unwrap();
        assert_eq!(serde_json::to_value([repeated.clone(), repeated]).unwrap(), json!([part, part]));
    }
}
