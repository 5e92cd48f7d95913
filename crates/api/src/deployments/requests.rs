//! The request bodies of deployments.

use launchway_domain::ids::{ApplicationId, DeploymentId};
use utoipa::ToSchema;

use crate::{body::Input, error::ApiError, fields::Fields};

#[derive(ToSchema)]
pub(crate) struct RedeployApplication {
    /// An application of this organization.
    #[schema(value_type = String)]
    pub(super) id: ApplicationId,
}

impl Input for RedeployApplication {
    fn read(mut fields: Fields) -> Result<Self, ApiError> {
        let id = fields.required_id("id");
        fields.finish()?;
        Ok(Self { id: id? })
    }
}

#[derive(ToSchema)]
pub(crate) struct WhichDeployment {
    /// A deployment of this organization.
    #[schema(value_type = String)]
    pub(super) id: DeploymentId,
}

impl Input for WhichDeployment {
    fn read(mut fields: Fields) -> Result<Self, ApiError> {
        let id = fields.required_id("id");
        fields.finish()?;
        Ok(Self { id: id? })
    }
}
