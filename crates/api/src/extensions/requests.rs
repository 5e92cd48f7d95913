//! The request bodies of extensions.

use std::collections::BTreeMap;

use crate::input::input;

input! {
    pub(crate) struct RunExtension {
        /// The values of its variables, by name; none by default.
        pub(super) variables: Option<BTreeMap<String, String>>,
    }
}

input! {
    pub(crate) struct ForkExtension {
        /// Another definition; an exact copy by default.
        pub(super) yaml_content: Option<String>,
    }
}

input! {
    pub(crate) struct UninstallExtension {
        /// True if its volumes are removed too, with all of their data; false by default.
        pub(super) volumes: Option<bool>,
    }
}
