//! The request bodies of deployments.

use crate::input::input;
use launchway_domain::ids::{ApplicationId, DeploymentId};

input! {
    pub(crate) struct RedeployApplication {
        /// An application of this organization.
        pub(super) id: ApplicationId,
        /// Run every step of the build, instead of taking unchanged ones from earlier builds; default `false`.
        pub(super) no_cache: Option<bool>,
    }
}

input! {
    pub(crate) struct WhichDeployment {
        /// A deployment of this organization.
        pub(super) id: DeploymentId,
    }
}
