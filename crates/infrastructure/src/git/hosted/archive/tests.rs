use std::io::{Cursor, Write as _};

use flate2::{Compression, write::GzEncoder};
use tar::{Builder, Header};

use super::*;

const LIMITS: Limits = Limits { bytes: 1000, entries: 10 };

/// An entry: name, type, content or target of the link.
type Entry<'a> = (&'a str, EntryType, &'a [u8]);

fn packed(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut archive = Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (name, kind, content) in entries {
        let mut header = Header::new_gnu();
        header.set_entry_type(*kind);
        header.set_mode(if name.ends_with(".sh") { 0o755 } else { 0o644 });
        // The setters of the library refuse such names.
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        let mut data = *content;
        if matches!(kind, EntryType::Symlink | EntryType::Link) {
            header.as_old_mut().linkname[..content.len()].copy_from_slice(content);
            data = b"";
        }
        header.set_size(data.len() as u64);
        header.set_cksum();
        archive.append(&header, data).unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap()
}

fn commit() -> UploadCommit {
    UploadCommit {
        name: "Ada <x>\n".to_owned(),
        email: "ada@example.com".to_owned(),
        at: chrono::DateTime::UNIX_EPOCH,
        message: "Upload\n".to_owned(),
    }
}

fn converted_within(archive: &[u8], limits: Limits) -> Result<String, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("archive");
    std::fs::write(&path, archive).unwrap();
    let mut stream = tempfile::tempfile().unwrap();
    let commit = commit();
    match convert(File::open(path).unwrap(), &mut stream, ("refs/x", &commit), limits) {
        Ok(()) => {
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            Ok(text)
        }
        Err(Refusal::Sentence(sentence)) => Err(sentence),
        Err(Refusal::Io(error)) => panic!("{error}"),
    }
}

fn converted(entries: &[Entry<'_>]) -> Result<String, String> {
    converted_within(&packed(entries), LIMITS)
}

#[test]
fn files_folders_and_links_become_one_commit() {
    use EntryType::{Directory, Regular, Symlink};
    let stream = converted(&[
        ("./", Directory, b""),
        ("./a \"b\".sh", Regular, b"x\n"),
        ("d/", Directory, b""),
        ("d/e", Regular, b""),
        ("d/link", Symlink, b"../a"),
    ])
    .unwrap();
    assert_eq!(
        stream,
        "feature done\ncommit refs/x\nmark :1\ncommitter Ada x <ada@example.com> 0 +0000\ndata 7\nUpload\n\n\
         deleteall\nM 100755 inline \"a \\\"b\\\".sh\"\ndata 2\nx\n\nM 100644 inline \"d/e\"\ndata 0\n\n\
         M 120000 inline \"d/link\"\ndata 4\n../a\nget-mark :1\ndone\n"
    );
}

#[test]
fn hostile_archives_are_refused_with_a_sentence() {
    use EntryType::{Block, Char, Directory, Fifo, Link, Regular, Symlink};
    let cases: [(&[Entry<'_>], &str); 22] = [
        (&[("../out", Regular, b"x")], "outside"),
        (&[("/etc/passwd", Regular, b"x")], "outside"),
        (&[("a/../../out", Regular, b"x")], "outside"),
        (&[("a//b", Regular, b"x")], "outside"),
        (&[("..", Directory, b"")], "outside"),
        (&[("link", Symlink, b"/etc/passwd")], "outside"),
        (&[("link", Symlink, b"..")], "outside"),
        (&[("d/link", Symlink, b"../../x")], "outside"),
        (&[("link", Symlink, b"")], "outside"),
        (&[("hard", Link, b"a")], "hard link"),
        (&[("hard", Link, b"/etc/passwd")], "hard link"),
        (&[("pipe", Fifo, b"")], "neither"),
        (&[("disk", Block, b"")], "neither"),
        (&[("tty", Char, b"")], "neither"),
        (&[(".git/config", Regular, b"x")], "belongs to git"),
        (&[("a/.GIT/hooks/x", Regular, b"x")], "belongs to git"),
        (&[("git~1/config", Regular, b"x")], "belongs to git"),
        (&[(".git \u{200c}./config", Regular, b"x")], "belongs to git"),
        (&[("a\nb", Regular, b"x")], "control"),
        (&[("a", Regular, b"x"), ("a", Regular, b"y")], "twice"),
        (&[("a", Symlink, b"b"), ("a/c", Regular, b"y")], "both"),
        (&[("a/c", Regular, b"y"), ("a", Symlink, b"b")], "twice"),
    ];
    for (entries, part) in cases {
        let sentence = converted(entries).expect_err(&format!("{entries:?}"));
        assert!(sentence.contains(part), "{entries:?}: {sentence}");
    }
    assert!(converted(&[]).unwrap_err().contains("no files"));
}

#[test]
fn content_and_entries_are_limited_on_both_sides() {
    use EntryType::Regular;
    assert!(converted(&[("a", Regular, &[b'x'; 1000])]).is_ok());
    assert!(converted(&[("a", Regular, &[b'x'; 1001])]).unwrap_err().contains("1000 bytes"));
    let names: Vec<String> = (0..11).map(|number| format!("f{number}")).collect();
    let entries: Vec<Entry<'_>> = names.iter().map(|name| (name.as_str(), Regular, &b"x"[..])).collect();
    assert!(converted(&entries[..10]).is_ok());
    assert!(converted(&entries).unwrap_err().contains("10 entries"));
}

#[test]
fn a_bomb_is_refused_before_it_is_unpacked() {
    // Zeros behind the end of the archive: the file list is short, and the content is not.
    let mut writer = GzEncoder::new(Vec::new(), Compression::best());
    let mut tar = Builder::new(Vec::new());
    let mut header = Header::new_gnu();
    header.set_size(1);
    header.set_mode(0o644);
    header.set_cksum();
    tar.append_data(&mut header, "a", Cursor::new(b"x")).unwrap();
    writer.write_all(&tar.into_inner().unwrap()).unwrap();
    for _ in 0..100 {
        writer.write_all(&[0; 100_000]).unwrap();
    }
    let bomb = writer.finish().unwrap();
    assert!(bomb.len() < 20_000, "{}", bomb.len());
    let sentence = converted_within(&bomb, LIMITS).unwrap_err();
    assert!(sentence.contains("more than can be stored"), "{sentence}");
    // An entry that claims more than there is.
    let mut header = Header::new_gnu();
    header.set_path("a").unwrap();
    header.set_size(u64::MAX >> 10);
    header.set_cksum();
    let mut writer = GzEncoder::new(Vec::new(), Compression::fast());
    writer.write_all(header.as_bytes()).unwrap();
    assert!(converted_within(&writer.finish().unwrap(), LIMITS).is_err());
}

#[test]
fn what_is_damaged_or_cut_short_is_refused() {
    let whole = packed(&[("a", EntryType::Regular, b"a text"), ("b", EntryType::Regular, b"more")]);
    assert!(converted_within(&whole, LIMITS).is_ok());
    for length in [0, 5, whole.len() / 2, whole.len() - 9, whole.len() - 1] {
        assert!(converted_within(&whole[..length], LIMITS).is_err(), "{length}");
    }
    assert!(converted_within(b"not gzip", LIMITS).is_err());
}

#[test]
fn long_names_of_both_formats_are_read_and_limited() {
    let name = format!("{}/file", "deep/".repeat(60).trim_end_matches('/'));
    let archive = |name: &str| {
        let mut tar = Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        let mut header = Header::new_gnu();
        header.set_size(1);
        header.set_mode(0o644);
        header.set_cksum();
        tar.append_data(&mut header, name, Cursor::new(b"x")).unwrap();
        tar.into_inner().unwrap().finish().unwrap()
    };
    assert!(converted_within(&archive(&name), LIMITS).unwrap().contains(&name));
    let too_long = "x/".repeat(600) + "y";
    assert!(converted_within(&archive(&too_long), LIMITS).unwrap_err().contains("longer than 1024"));
    let pax = |record: &str| {
        let record = format!("{} {record}\n", record.len() + 4);
        converted(&[("pax", EntryType::XHeader, record.as_bytes()), ("short", EntryType::Regular, b"x")])
    };
    assert!(pax("path=longer/name").unwrap().contains("\"longer/name\""));
    assert!(pax("path=../longername").unwrap_err().contains("outside"));
    assert!(pax("GNU.sparse.name=ab").unwrap_err().contains("sparse"));
}
