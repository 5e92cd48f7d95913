//! The upload of source, and the applications that source creates.

mod blocks;

use actix_web::{HttpRequest, web::Data};
use launchway_application::{
    Error,
    applications::NewApplication,
    sources::{NewSource, SourceTarget, TargetName, UploadRequest},
};
use launchway_domain::{
    applications::{ApplicationName, Environment},
    deployments::BuildCache,
    idempotency::BodyHash,
    ids::ApplicationId,
    sources::{MANIFEST, Received, Spool, Upload, detect},
    value::InvalidValue,
};
use serde_json::{Map, Value, json};

use super::{CREATE, requests::CreateApplication};
use crate::{
    Api,
    body::Body,
    caller::Caller,
    deployments::build_cache,
    endpoint::{Description, Endpoint, Part},
    envelope::Envelope,
    error::{ApiError, Code},
    fields::{Choice, Fields},
    git::body::{Refused, collect},
    idempotent::{Idempotent, Once, Stored, describe_key},
    input::{Input, input},
    query::Query,
    views::deployments::DeploymentView,
};

/// The environment of an application that is named without one.
const USUAL_ENVIRONMENT: &str = "production";

pub(super) fn endpoints() -> Vec<Endpoint> {
    let mut endpoints = blocks::endpoints();
    endpoints.push(
        Endpoint::post("/api/v1/deploy/application/source", "upload_source", upload_source)
            .summary("Upload and deploy the source of an application")
            .about(
                "The body is a gzipped tar archive of regular files, folders and symbolic links that stay inside. With `id` \
                 it is deployed to that application; with `name` to the one of this name, which is created if there is none: \
                 by the `launchway.toml` in the archive, or else as its files suggest.",
            )
            .requires(CREATE)
            .fails(&[Code::Conflict, Code::NotFound, Code::RateLimited]),
    );
    endpoints
}

input! {
    struct UploadQuery {
        /// Id of an application of this organization
        id: Option<ApplicationId>,
        /// Name of an application of this organization, or of a new one
        name: Option<ApplicationName>,
        /// Environment of the application with this name; default `production`
        environment: Option<Environment>,
        /// Run every step of the build, instead of taking unchanged ones from earlier builds; default `false`
        no_cache: Option<Choice>,
    }
}

/// A gzipped body, whose size is limited by `LAUNCHWAY_MAX_SOURCE_SIZE`.
pub(crate) struct Gzipped;

impl Part for Body<Gzipped> {
    fn describe(description: &mut Description) {
        description.body(|_| json!({"type": "string", "format": "binary"}), true);
        // Generators of clients know no type for gzip.
        description.body_type = "application/octet-stream";
        description.fails(&[
            Code::ValidationFailed,
            Code::RequestTimeout,
            Code::PayloadTooLarge,
            Code::RateLimited,
        ]);
    }
}

impl Part for Idempotent<Gzipped> {
    fn describe(description: &mut Description) {
        Body::<Gzipped>::describe(description);
        describe_key(description);
    }
}

impl Body<Gzipped> {
    /// Stores the body in a file.
    async fn collect(self, api: &Data<Api>, spool: Box<dyn Spool>) -> Result<Received, ApiError> {
        let _permit = crate::git::body::permit(api).await.map_err(|_busy| {
            ApiError::from(Error::RateLimited { retry_after: std::time::Duration::from_secs(5) })
        })?;
        let collected = collect(self.into_payload(), spool, api.options.body_timeout).await;
        collected.body.map_err(|refused| match refused {
            Refused::Incomplete(sentence) => ApiError::new(Code::RequestTimeout, sentence),
            Refused::TooLarge(sentence) => ApiError::new(Code::PayloadTooLarge, sentence),
            Refused::Failed(error) => ApiError::unavailable(error),
        })
    }
}

async fn upload_source(
    api: Data<Api>,
    request: HttpRequest,
    caller: Caller,
    query: Query<UploadQuery>,
    body: Idempotent<Gzipped>,
) -> Result<Stored<Envelope<DeploymentView>>, ApiError> {
    // First, so that the query of somebody who may not deploy is not looked at.
    let spool = api.services.sources.spool(&caller).await?;
    let UploadQuery { id, name, environment, no_cache } = query.read()?;
    let named = Named { id, name, environment };
    named.check()?;
    let cache = build_cache(no_cache.map(|choice| choice.0));
    let (body, header) = body.into_parts();
    let archive = body.collect(&api, spool).await?;
    let hash = BodyHash::of(format!("{} {}", archive.sha256, request.query_string()).as_bytes());
    let once = header.once(&caller, CREATE, hash)?;
    deploy(&api, &caller, once, named, async |_| Ok(Upload::Archive(archive)), cache).await
}

/// Deploys an upload once.
async fn deploy(
    api: &Api,
    caller: &Caller,
    once: Once,
    named: Named,
    upload: impl AsyncFnOnce(&Caller) -> Result<Upload, Error>,
    cache: BuildCache,
) -> Result<Stored<Envelope<DeploymentView>>, ApiError> {
    let (sources, deployments) = (&api.services.sources, &api.services.deployments);
    once.answer(
        api,
        "Deployment created successfully",
        async |key| {
            // In this order: nobody who may not deploy learns of applications.
            let request = UploadRequest { upload: upload(caller).await?, cache, key };
            let target = named.target(api, caller).await?;
            let uploaded = sources.upload(caller, &target, request, &describe).await?;
            deployments.written(caller, uploaded.deployment).await
        },
        async |id| deployments.written(caller, id.into()).await,
        DeploymentView::from,
    )
    .await
}

/// The application of an upload, as a request names it.
struct Named {
    id: Option<ApplicationId>,
    name: Option<ApplicationName>,
    environment: Option<Environment>,
}

impl Named {
    fn check(&self) -> Result<(), ApiError> {
        match (&self.id, &self.name, &self.environment) {
            (Some(_), None, None) | (None, Some(_), _) => Ok(()),
            _ => {
                let message = "either id, or name with an optional environment, is required";
                Err(ApiError::new(Code::ValidationFailed, message))
            }
        }
    }

    async fn target(self, api: &Api, caller: &Caller) -> Result<SourceTarget, Error> {
        let sources = &api.services.sources;
        match (self.id, self.name) {
            (None, Some(name)) => {
                let usual =
                    || USUAL_ENVIRONMENT.parse().map_err(|error: InvalidValue| Error::Internal(error.into()));
                let environment = self.environment.map_or_else(usual, Ok)?;
                sources.by_name(caller, TargetName { name, environment }).await
            }
            (Some(id), _) => {
                let (actor, target) = sources.by_id(caller, id).await?;
                // The header names the organization.
                let is_here = actor.organization().ok() == caller.organization().ok();
                if is_here { Ok(target) } else { Err(Error::NotFound("the application")) }
            }
            (None, None) => Err(Error::NotFound("the application")),
        }
    }
}

/// Decides how a new application is built: by its `launchway.toml`, and else as its files suggest.
pub(crate) fn describe(source: &NewSource) -> Result<NewApplication, String> {
    let manifest = source.files.iter().find(|file| file.name == MANIFEST);
    let mut fields: Map<String, Value> = match manifest.and_then(|file| file.text.as_deref()) {
        Some(text) => {
            toml::from_str(text).map_err(|error| format!("{MANIFEST} is invalid: {}", error.message()))?
        }
        None => Map::new(),
    };
    if let Some(key) = fields.keys().find(|key| key.ends_with("_variables")) {
        return Err(format!(
            "{MANIFEST} is invalid: `{key}` does not belong into a repository; use `launchway env set`"
        ));
    }
    let TargetName { name, environment } = &source.name;
    fields.insert("name".to_owned(), name.as_str().into());
    fields.insert("environment".to_owned(), environment.as_str().into());
    fields.insert("repository".to_owned(), source.repository.as_str().into());
    fields.insert("branch".to_owned(), source.branch.as_str().into());
    if !fields.contains_key("build_pack") {
        let found = detect(&source.files).ok_or_else(|| {
            format!(
                "it is not clear how to build this: add a Dockerfile, a compose file, an index.html, the files of a \
                 supported language, or a {MANIFEST} with build_pack and port"
            )
        })?;
        fields.insert("build_pack".to_owned(), found.build_pack.as_str().into());
        fields.entry("port").or_insert_with(|| found.port.get().into());
    }
    if !fields.contains_key("port") {
        let found = detect(&source.files).map_or(8080, |found| found.port.get());
        fields.insert("port".to_owned(), found.into());
    }
    let read = CreateApplication::read(Fields::new(fields));
    read.map(Into::into).map_err(|error| format!("{MANIFEST} is invalid: {error}"))
}

#[cfg(test)]
mod tests {
    use launchway_domain::{
        applications::{BuildPack, GitUrl},
        sources::{SourceFile, is_read},
    };

    use super::*;

    fn described(files: &[(&str, &str)]) -> Result<NewApplication, String> {
        let files = files.iter().map(|(name, text)| SourceFile {
            name: (*name).to_owned(),
            text: is_read(name).then(|| (*text).to_owned()),
        });
        describe(&NewSource {
            name: TargetName { name: "shop".parse().unwrap(), environment: "staging".parse().unwrap() },
            repository: GitUrl::hosted("0198c9f2-7c1e-7000-8000-000000000001".parse().unwrap()),
            branch: "trunk".parse().unwrap(),
            files: files.collect(),
        })
    }

    #[test]
    fn files_decide_without_a_manifest() {
        let blueprint = described(&[("index.html", "")]).unwrap().blueprint;
        assert_eq!((blueprint.build_pack, blueprint.port.get()), (BuildPack::Static, 80));
        assert_eq!(blueprint.name.as_str(), "shop");
        assert_eq!(blueprint.branch.unwrap().as_str(), "trunk");
        assert_eq!(blueprint.repository.as_str(), "/git/0198c9f2-7c1e-7000-8000-000000000001.git");
    }

    #[test]
    fn a_manifest_decides_except_for_the_address() {
        let toml =
            "name = \"other\"\nrepository = \"https://example.com/x.git\"\nport = 9000\nreplicas = 2\n";
        let blueprint = described(&[(MANIFEST, toml), ("Dockerfile", "FROM x")]).unwrap().blueprint;
        assert_eq!((blueprint.build_pack, blueprint.port.get()), (BuildPack::Dockerfile, 9000));
        assert_eq!((blueprint.name.as_str(), blueprint.copies.get()), ("shop", 2));
        assert_eq!(blueprint.repository.as_str(), "/git/0198c9f2-7c1e-7000-8000-000000000001.git");
    }

    #[test]
    fn what_is_unclear_or_wrong_is_refused_with_a_sentence() {
        for (files, part) in [
            (vec![("README.md", "")], "add a Dockerfile"),
            (vec![(MANIFEST, "port = "), ("index.html", "")], "launchway.toml is invalid"),
            (vec![(MANIFEST, "prot = 1"), ("index.html", "")], "prot"),
            (vec![(MANIFEST, "port = 70000"), ("index.html", "")], "between 1 and 65535"),
            (vec![(MANIFEST, "[build_variables]\nA = \"1\""), ("index.html", "")], "launchway env set"),
            (vec![(MANIFEST, "build_pack = \"image\"")], "launchway.toml is invalid"),
        ] {
            let sentence = described(&files).unwrap_err();
            assert!(sentence.contains(part), "{sentence}");
        }
    }
}
