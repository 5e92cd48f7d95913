//! Media types by file extension.

use std::path::Path;

use http::HeaderValue;
use mime_guess::{from_path, mime};

/// Types that a browser would misinterpret, or only download, because the list of all types has another one
/// or none.
const OF_THE_WEB: &[(&str, &str)] = &[
    ("cjs", "text/javascript; charset=utf-8"),
    ("geojson", "application/geo+json"),
    ("js", "text/javascript; charset=utf-8"),
    ("jsonld", "application/ld+json"),
    ("map", "application/json"),
    ("mjs", "text/javascript; charset=utf-8"),
    ("webmanifest", "application/manifest+json"),
];

/// Returns the `Content-Type` of a file. All text is assumed to be UTF-8.
pub(super) fn content_type(file: &Path) -> HeaderValue {
    let extension = file.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    if let Some((_, known)) = OF_THE_WEB.iter().find(|(own, _)| own.eq_ignore_ascii_case(extension)) {
        return HeaderValue::from_static(known);
    }
    let guessed = from_path(file).first_or_octet_stream();
    let text =
        if guessed.type_() == mime::TEXT { format!("{guessed}; charset=utf-8") } else { guessed.to_string() };
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("application/octet-stream"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_the_type_that_browsers_need() {
        for (name, expected) in [
            ("index.html", "text/html; charset=utf-8"),
            ("INDEX.HTM", "text/html; charset=utf-8"),
            ("a.css", "text/css; charset=utf-8"),
            ("a.js", "text/javascript; charset=utf-8"),
            ("a.mjs", "text/javascript; charset=utf-8"),
            ("a.min.js", "text/javascript; charset=utf-8"),
            ("a.js.map", "application/json"),
            ("a.json", "application/json"),
            ("a.webmanifest", "application/manifest+json"),
            ("a.wasm", "application/wasm"),
            ("a.txt", "text/plain; charset=utf-8"),
            ("a.md", "text/markdown; charset=utf-8"),
            ("a.csv", "text/csv; charset=utf-8"),
            ("a.xml", "text/xml; charset=utf-8"),
            ("a.svg", "image/svg+xml"),
            ("a.png", "image/png"),
            ("a.jpg", "image/jpeg"),
            ("a.webp", "image/webp"),
            ("a.avif", "image/avif"),
            ("favicon.ico", "image/x-icon"),
            ("a.woff2", "font/woff2"),
            ("a.mp4", "video/mp4"),
            ("a.pdf", "application/pdf"),
            ("a.zip", "application/zip"),
            ("a.gz", "application/gzip"),
            ("a.unheard-of", "application/octet-stream"),
            ("LICENSE", "application/octet-stream"),
        ] {
            assert_eq!(content_type(Path::new(name)), expected, "{name}");
        }
    }
}
