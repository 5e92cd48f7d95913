//! Hostile texts and bodies.

use launchway_testkit::hostile::PAYLOADS;

/// Texts for every field. `§` stands for the folder in which a shell would create its canary file.
const TEXTS: [&str; 48] = [
    // SQL.
    "' OR '1'='1",
    "'; DROP TABLE users; --",
    "'); DELETE FROM organizations; --",
    "\" OR \"\"=\"",
    "1; UPDATE users SET type = 'admin'; --",
    "' UNION SELECT password_hash FROM passwords --",
    "x' AND randomblob(100000000) --",
    "'; SELECT pg_sleep(30); --",
    "%' ESCAPE '%",
    "\\'; DROP TABLE users; --",
    "%_%_%_%_%",
    // Paths.
    "../../../../../../etc/passwd",
    "..\\..\\..\\windows\\win.ini",
    "/etc/passwd",
    "%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    "....//....//etc/passwd",
    "file:///etc/passwd",
    "/proc/self/environ",
    ".git/config",
    // Zero bytes, line breaks and escape sequences.
    "a\0b",
    "\0",
    "a\r\nSet-Cookie: session=stolen",
    "a\r\n\r\n<html>",
    "a\nb\nc",
    "\u{1b}[2J\u{1b}]0;title\u{7}",
    "\u{1b}]8;;http://example.com\u{7}click\u{1b}]8;;\u{7}",
    "\u{8}\u{8}\u{8}gone",
    "\u{85}\u{2028}\u{2029}",
    // Templates and pages.
    "{{ 7 * 7 }}",
    "${7*7}",
    "#{7*7}",
    "<%= 7 * 7 %>",
    "{% include '/etc/passwd' %}",
    "${jndi:ldap://127.0.0.1/a}",
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "javascript:alert(1)",
    "=cmd|' /C calc'!A0",
    // Confusing characters.
    "\u{202e}gnp.exe",
    "\u{200b}\u{feff}",
    "admin\u{301}\u{301}\u{301}",
    "ａｄａ＠ｅｘａｍｐｌｅ．ｃｏｍ",
    "İıſK",
    "\u{10ffff}\u{fffe}",
    // Formats and numbers.
    "%s%s%s%n",
    "99999999999999999999999999",
    "-1",
    "NaN",
];

/// Bodies that are invalid or unusual JSON.
const BODIES: [&[u8]; 16] = [
    b"{\"name\": \"\xc0\xaf\xe0\x80\xaf\"}",
    b"{\"name\": \"\xf8\x88\x80\x80\x80\"}",
    b"{\"name\": \"\xff\xfe\"}",
    b"{\"\xc0\x80\": 1}",
    b"{\"name\": \"\\ud800\"}",
    b"{\"name\": \"\\u0000\"}",
    b"\xef\xbb\xbf{}",
    b"{\"id\": 1e400}",
    b"{\"port\": 1e308, \"font_size\": -1e308}",
    b"{\"port\": 99999999999999999999999999999999999999}",
    b"{\"port\": -0.0, \"font_size\": 16.5}",
    b"{\"name\": \"a\", \"name\": \"b\"}",
    b"[]",
    b"null",
    b"\"text\"",
    b"{} {}",
];

/// Returns every text, with the folder inserted.
pub(crate) fn texts(marks: &str) -> Vec<String> {
    let long = ["a".repeat(70_000), "é".repeat(300), " ".repeat(300)];
    let texts = TEXTS.iter().chain(&PAYLOADS).map(|text| text.replace('§', marks));
    texts.chain(long).collect()
}

/// Returns every body, including deeply nested ones.
pub(crate) fn bodies() -> Vec<Vec<u8>> {
    let nested = |depth: usize, open: &str, close: &str| {
        format!("{{\"name\": {}1{}}}", open.repeat(depth), close.repeat(depth)).into_bytes()
    };
    let deep = [
        nested(31, "[", "]"),
        nested(127, "[", "]"),
        nested(100_000, "[", "]"),
        nested(5_000, "{\"a\":", "}"),
    ];
    BODIES.iter().map(|body| body.to_vec()).chain(deep).collect()
}
