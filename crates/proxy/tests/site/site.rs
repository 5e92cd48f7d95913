//! A site for each test, and requests to it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use launchway_proxy::site::serve;
use tempfile::TempDir;

/// A published folder.
pub(crate) struct Site {
    _parent: TempDir,
    folder: PathBuf,
}

/// The response that a client receives.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Site {
    /// Creates a site with these files, in a folder that has something private beside it.
    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("release");
        fs::create_dir(&folder).unwrap();
        fs::write(parent.path().join("secret.txt"), "secret").unwrap();
        let site = Self { _parent: parent, folder };
        files.iter().for_each(|(path, content)| site.write(path, content));
        site
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.folder.join(path)
    }

    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask(Method::GET, path, &[]).await
    }

    pub(crate) async fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.ask(Method::GET, path, headers).await
    }

    pub(crate) async fn ask(&self, method: Method, path: &str, headers: &[(&str, &str)]) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = serve(&self.folder, &request.body(()).unwrap()).await;
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Answer { status: head.status, headers: head.headers, body }
    }
}

impl Answer {
    /// Returns a header, or an empty text if there is none.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn tag(&self) -> &str {
        self.header("etag")
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}
