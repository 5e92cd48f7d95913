//! Uploads of what a server does not have yet.

use actix_web::web::Data;
use launchway_application::Error;
use launchway_domain::{
    applications::{ApplicationName, Environment},
    ids::ApplicationId,
    sources::{BlockId, BlockIds},
};
use serde::Serialize;
use utoipa::ToSchema;

use super::{CREATE, Gzipped, Named, deploy};
use crate::{
    Api,
    body::Body,
    caller::Caller,
    deployments::build_cache,
    endpoint::Endpoint,
    envelope::{Envelope, Reply, success},
    error::{ApiError, Code},
    idempotent::{Idempotent, Stored},
    input::input,
    views::deployments::DeploymentView,
};

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::post("/api/v1/deploy/application/source/blocks/missing", "missing_blocks", missing_blocks)
            .summary("List the blocks of an upload that are missing")
            .about("A block is the content of a file, or 1 MiB of it, and is named by its SHA-256.")
            .requires(CREATE)
            .fails(&[Code::Conflict]),
        Endpoint::post("/api/v1/deploy/application/source/blocks", "upload_blocks", upload_blocks)
            .summary("Upload blocks")
            .about(
                "The body is gzipped. Each block in it follows its length, a big-endian number of four bytes. The blocks are \
                 stored for this organization when the response arrives, until they were not used for two weeks.",
            )
            .requires(CREATE)
            .fails(&[Code::Conflict]),
        Endpoint::post("/api/v1/deploy/application/source/files", "deploy_files", deploy_files)
            .summary("Deploy uploaded files")
            .cli("launchway deploy --upload")
            .about(
                "`digest` names the list of the files, whose blocks and those of its files were uploaded. The application is \
                 found or created as by an upload of an archive.",
            )
            .requires(CREATE)
            .fails(&[Code::Conflict, Code::NotFound]),
    ]
}

input! {
    /// The blocks of an upload.
    struct MissingBlocks {
        /// SHA-256 of each block
        blocks: BlockIds,
    }
}

input! {
    /// The files to deploy, and their application.
    struct DeployFiles {
        /// Digest of the list of files
        digest: BlockId,
        /// Id of an application of this organization
        id: Option<ApplicationId>,
        /// Name of an application of this organization, or of a new one
        name: Option<ApplicationName>,
        /// Environment of the application with this name; default `production`
        environment: Option<Environment>,
        /// Run every step of the build, instead of taking unchanged ones from earlier builds; default `false`
        no_cache: Option<bool>,
    }
}

/// The blocks that this organization has to send.
#[derive(Serialize, ToSchema)]
#[schema(as = MissingBlocksList)]
struct MissingBlocksView {
    missing: Vec<String>,
}

/// The blocks of a part that was stored.
#[derive(Serialize, ToSchema)]
#[schema(as = StoredBlocks)]
struct StoredBlocksView {
    blocks: usize,
    bytes: u64,
}

async fn missing_blocks(
    api: Data<Api>,
    caller: Caller,
    body: Body<MissingBlocks>,
) -> Reply<MissingBlocksView> {
    // First, so that the body of somebody who may not deploy is not looked at.
    caller.require(CREATE).map_err(Error::from)?;
    let MissingBlocks { blocks } = body.read().await?;
    let missing = api.services.sources.missing_blocks(&caller, blocks.into_vec()).await?;
    let missing = missing.iter().map(ToString::to_string).collect();
    Ok(success("Missing blocks retrieved successfully", MissingBlocksView { missing }))
}

async fn upload_blocks(api: Data<Api>, caller: Caller, body: Body<Gzipped>) -> Reply<StoredBlocksView> {
    let sources = &api.services.sources;
    let spool = sources.spool(&caller).await?;
    let part = body.collect(&api, spool).await?;
    let stored = sources.store_blocks(&caller, part).await?;
    let view = StoredBlocksView { blocks: stored.blocks, bytes: stored.bytes };
    Ok(success("Blocks uploaded successfully", view))
}

async fn deploy_files(
    api: Data<Api>,
    caller: Caller,
    body: Idempotent<DeployFiles>,
) -> Result<Stored<Envelope<DeploymentView>>, ApiError> {
    caller.require(CREATE).map_err(Error::from)?;
    let (fields, once) = body.read(&caller, CREATE).await?;
    let DeployFiles { digest, id, name, environment, no_cache } = fields;
    let named = Named { id, name, environment };
    named.check()?;
    let files = async |caller: &Caller| api.services.sources.listed_files(caller, digest).await;
    deploy(&api, &caller, once, named, files, build_cache(no_cache)).await
}
