//! The style sheet, the scripts and the icon. The binary contains them.

use std::{io::Write as _, sync::LazyLock};

use actix_web::{
    HttpRequest, HttpResponse,
    http::header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, VARY},
    web::Path,
};
use data_encoding::HEXLOWER;
use flate2::{Compression, write::GzEncoder};
use sha2::{Digest as _, Sha256};

use crate::{error::PageError, router::PREFIX};

const FILES: &[(&str, &str, &str)] = &[
    ("dashboard.css", "text/css; charset=utf-8", include_str!("../assets/dashboard.css")),
    ("dashboard.js", "text/javascript; charset=utf-8", include_str!("../assets/dashboard.js")),
    ("log.js", "text/javascript; charset=utf-8", include_str!("../assets/log.js")),
    ("icon.svg", "image/svg+xml", include_str!("../assets/icon.svg")),
];

/// An asset, compressed once.
struct Asset {
    name: &'static str,
    media_type: &'static str,
    plain: &'static str,
    compressed: Vec<u8>,
}

static ASSETS: LazyLock<Vec<Asset>> = LazyLock::new(|| {
    let asset = |&(name, media_type, plain)| Asset { name, media_type, plain, compressed: gzip(plain) };
    FILES.iter().map(asset).collect()
});

/// One hash of all files, so that a module finds the others beside it.
static FOLDER: LazyLock<String> = LazyLock::new(|| {
    let mut hash = Sha256::new();
    for (name, _, text) in FILES {
        hash.update(name.as_bytes());
        hash.update(text.as_bytes());
    }
    let hash = HEXLOWER.encode(&hash.finalize());
    format!("{PREFIX}/assets/{}", hash.get(..16).unwrap_or_default())
});

/// Returns the path of the folder of the assets, which changes with their contents.
pub(crate) fn path() -> &'static str {
    &FOLDER
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    // Writing to memory cannot fail.
    encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish()).unwrap_or_default()
}

pub(crate) async fn asset(
    request: HttpRequest,
    path: Path<(String, String)>,
) -> Result<HttpResponse, PageError> {
    let (folder, name) = path.into_inner();
    let asset = ASSETS.iter().find(|asset| asset.name == name).ok_or_else(PageError::unknown_page)?;
    // A page of another version of the server may ask for its own assets: it gets ours, and must not keep them.
    let is_current = FOLDER.ends_with(&folder);
    let caching = if is_current { "public, max-age=31536000, immutable" } else { "no-store" };
    let accepts = request.headers().get(ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    let mut response = HttpResponse::Ok();
    response
        .insert_header((CACHE_CONTROL, caching))
        .insert_header((VARY, "accept-encoding"))
        .content_type(asset.media_type);
    if accepts.is_some_and(|accepts| accepts.contains("gzip")) && !asset.compressed.is_empty() {
        return Ok(response.insert_header((CONTENT_ENCODING, "gzip")).body(asset.compressed.clone()));
    }
    Ok(response.body(asset.plain))
}
