use super::*;

/// Returns the reason for which a file is refused.
#[track_caller]
fn reason(text: &str) -> String {
    match check(text, &[]) {
        Ok(checked) => panic!("{text:?} was accepted: {:?}", checked.render()),
        Err(rejection) => rejection.reason,
    }
}

#[test]
fn options_with_bytes_that_are_spaces_are_refused() {
    // The UTF-8 form of these characters has a byte 0xA0 or 0x85, a space to the engine.
    for letter in ["à", "Å", "ꀠ", "\u{a0}", "\u{85}", "\u{3000}"] {
        for text in [
            format!("FROM web\nCOPY --chown={letter}--from=8db98c /secret /x"),
            format!("FROM web\nCOPY --chown=\"{letter}\"--from=8db98c /secret /x"),
            format!("FROM web\nONBUILD COPY --chown=1{letter}--from=8db98c /secret /x"),
            format!("FROM web\nRUN --network=none{letter}--mount=from=8db98c x"),
            format!("FROM --platform={letter}x web"),
        ] {
            let rejection = check(&text, &[]).unwrap_err();
            assert!(rejection.line == 2 || text.starts_with("FROM --"), "{text:?}: {rejection}");
            let nothing = variables(&[]);
            let trigger = text.lines().last().unwrap().trim_start_matches("ONBUILD ");
            assert!(legacy(&nothing).check_trigger(trigger, &[]).is_err(), "{trigger:?}");
        }
    }
    for bytes in
        [&b"FROM web\nCOPY --chown=\xa0--from=x / /"[..], b"FROM web\nRUN \x85", b"FROM web\nRUN a\0b"]
    {
        assert_eq!(Dockerfile::parse(bytes).unwrap_err().line, 2);
    }
}

#[test]
fn sources_of_add_that_are_remote_are_refused() {
    for source in [
        "http://127.0.0.1:9/metrics",
        "https://example.com/x.tar.gz",
        "HTTP://10.0.0.1/x",
        "ftp://x/y",
        "git@github.com:a/b.git",
        "git://x/y",
        "ssh://git@x/y",
        "\"http://x/y\"",
        "'http:'//x/y",
        "h\\ttp://x/y",
        "$X://y",
        "https://$X/y",
    ] {
        for text in [
            format!("FROM web\nADD {source} /x"),
            format!("FROM web\nADD --chown=1 a {source} /x"),
            format!("FROM web\nONBUILD ADD {source} /x"),
            format!("FROM web\nADD \\\n# c\n {source} /x"),
        ] {
            let message = reason(&text);
            assert!(message.starts_with("`ADD` takes files of the repository only"), "{text:?}: {message}");
        }
    }
    let message = reason("FROM web\nADD [\"http://x/y\", \"/z\"]");
    assert!(message.starts_with("`ADD` takes files of the repository only"), "{message}");
}

#[test]
fn beginnings_of_ids_are_refused() {
    for text in [
        "FROM 8db98c",
        "FROM ABC",
        "  fRoM\t\t8db98c\tAS x",
        "FROM 8db\\\n98c",
        "FROM \\\n# c\n\n8db98c",
        "# escape=`\nFROM 8db`\n98c",
        "FROM '8db98c'",
        "FROM 8d\"b9\"8c",
        "ARG X=8db98c\nFROM $X",
        "ARG X=8d\nARG Y=${X}b9\nFROM ${Y}8c",
        "FROM ${NOTHING:-8db98c}",
        "ARG X=1\nFROM ${X:+8db98c}",
        "FROM scratch\nCOPY --from=8db98c / /",
        "FROM scratch\nCOPY --chown=1 --from=8db98c / /",
        "FROM scratch\nCOPY --fr\"om=8db98c\" / /",
        "FROM scratch\nCOPY --from=0 / /",
        "FROM scratch AS abc123\nCOPY --from=abc123 / /",
        "FROM abc123\nFROM scratch AS abc123",
        "FROM scratch\nONBUILD COPY --from=8db98c / /",
        "FROM scratch\nRUN --mount=type=bind,FROM=8db98c,target=/x cat /x",
        "FROM scratch\nRUN --mount=type=cache,from=8db98c,target=/x cat /x",
        "FROM scratch\nRUN echo\nFROM 8db98c",
    ] {
        let message = reason(text);
        assert!(message.contains("could be the beginning of an image's id"), "{text:?}: {message}");
    }
    let message = images("ARG R=web:1\nFROM $R", &[("R", "8db98c")]).unwrap_err();
    assert!(message.contains("could be the beginning of an image's id"), "{message}");
}

#[test]
fn uncertain_images_are_refused() {
    for text in [
        "FROM $X",
        "FROM 8d${X}b98c",
        "ARG X\nFROM $X",
        "ARG X=a:1\nARG X\nFROM $X",
        "FROM ${X-8db98c}",
        "ARG X=abc\nFROM ${X%c}",
        "ARG X=a\\ b\nFROM $X",
        "ARG TARGETARCH=8db98c\nFROM $TARGETARCH",
        "FROM 8d\\b98c",
        "FROM scratch\nCOPY --from=$X / /",
        "ARG BUILDPLATFORM=linux/s390x\nFROM --platform=$BUILDPLATFORM$X x:1",
    ] {
        let message = reason(text);
        assert!(message.starts_with("it is not certain which image"), "{text:?}: {message}");
    }
    let doubled: String = (1..60).map(|n| format!("ARG X{n}=$X{0}$X{0}\n", n - 1)).collect();
    assert!(images(&format!("ARG X0=a\n{doubled}FROM $X59"), &[]).is_err());
    assert!(images(&format!("FROM {}", "${X:-".repeat(10_000)), &[]).is_err());
}

#[test]
fn unknown_and_ambiguous_text_is_refused_with_its_line() {
    for (text, line, expected) in [
        ("FROM web\n\nNONSENSE x", 3, "unknown instruction `NONSENSE`"),
        ("FROM web\nRUN", 2, "`RUN` needs an argument"),
        ("RUN x\nFROM web", 1, "the first instruction has to be `FROM`"),
        ("# nothing\n", 1, "the Dockerfile has no `FROM`"),
        ("ARG X=1", 1, "the Dockerfile has no `FROM`"),
        ("FROM web\nRUN <<EOF\nFROM 8db98c\nEOF", 2, "the here-document `<<EOF` is not supported"),
        ("FROM web\nCOPY 3<<-'A' /x\n\tA", 2, "the here-document `3<<-'A'` is not supported"),
        ("FROM web\nONBUILD RUN cat <<A", 2, "the here-document `<<A` is not supported"),
        ("FROM web\nRUN echo \\\\\nFROM 8db98c", 2, "the instruction ends with an escaped `\\`"),
        ("FROM web\nENV a=b\\ \\", 2, "the instruction ends with an escaped `\\`"),
        ("FROM web\nRUN [ \"$A\" ] && x", 2, "`[ \"$A\" ] && x` begins with a JSON array"),
        // Words are written with spaces between them, with which these would be arrays.
        ("FROM web\nADD [\"a\tb\", \"c\"]", 2, "`[\"ab\", \"c\"]` begins with a JSON array"),
        ("FROM web\nADD [\"--x\t=y\", \"b\"]f-%", 2, "`[\"--x=y\", \"b\"]f-%` begins with a JSON array"),
        ("FROM web\nCMD [1, null]", 2, "`[1, null]` begins with a JSON array"),
        ("FROM web\nCOPY [\"a\"] /x", 2, "`[\"a\"] /x` begins with a JSON array"),
        ("FROM web\nRUN a\rFROM 8db98c", 2, "the character U+000D is not accepted"),
        ("FROM web\nRUN a\u{b}b", 2, "the character U+000B is not accepted"),
        ("FROM web\nENV a=\u{2028}", 2, "the character U+2028 is not accepted"),
        ("FROM web x", 1, "`FROM` takes an image"),
        ("FROM web AS 1x", 1, "`1x` is not a name of a stage"),
        ("FROM web AS \u{212a}", 1, "`\u{212a}` is not a name of a stage"),
        ("FROM web\nCOPY -- --x /y", 2, "`--` is not an option"),
        ("FROM web\nCOPY --From=x / /", 2, "`--From=x` is not an option"),
        ("FROM web\nCOPY --keep-git-dir x /y", 2, "`COPY` does not take the option `--keep-git-dir`"),
        ("FROM web\nADD --from=web / /", 2, "`ADD` does not take the option `--from`"),
        ("FROM web\nADD --checksum=x y /z", 2, "`ADD` does not take the option `--checksum`"),
        ("FROM web\nCMD --x", 2, "`CMD` needs an argument"),
        ("FROM web\nENV --x a=b", 2, "`ENV` does not take the option `--x`"),
        ("FROM web\nCOPY --from=web --from=x / /", 2, "`--from` has to be there once"),
        ("FROM web\nCOPY --from= / /", 2, "`--from` has to be there once"),
        ("FROM web\nRUN --device=x y", 2, "`RUN` does not take the option `--device`"),
        ("FROM web\nRUN --security=insecure y", 2, "`RUN --security=insecure` is not accepted"),
        ("FROM web\nRUN --network=host y", 2, "`RUN --network=host` is not accepted"),
        ("FROM web\nRUN --mount=type=ssh y", 2, "the mount type `ssh` is not accepted"),
        ("FROM web\nRUN --mount=type=secret,id=x y", 2, "the mount type `secret` is not accepted"),
        ("FROM web\nRUN --mount=type=bind,env=x y", 2, "the mount field `env` is not accepted"),
        ("FROM web\nRUN --mount=type=bind,type=ssh y", 2, "the mount field `type` is there twice"),
        (
            "FROM web\nRUN --mount=\"type=bind, from=8db98c\" y",
            2,
            "the value of `--mount=type=bind, from=8db98c`",
        ),
        ("FROM web\nONBUILD ONBUILD RUN x", 2, "`ONBUILD` may not contain"),
        ("FROM web\nONBUILD FROM x", 2, "`ONBUILD` may not contain"),
        ("FROM web\nENV x", 2, "`ENV` needs a name and a value"),
        ("FROM web\nENV a=b c", 2, "`c` has no `=`"),
        ("FROM web\nCOPY x", 2, "`COPY` needs at least one source"),
        ("FROM web\nSHELL sh -c", 2, "`SHELL` takes a JSON array"),
        ("FROM web\nHEALTHCHECK curl", 2, "`HEALTHCHECK` takes `NONE`"),
        ("# escape=x\nFROM web", 1, "`# escape=` takes"),
        ("# escape=`\n# escape=`\nFROM web", 2, "the directive `escape` is there twice"),
        ("# syntax=evil/frontend\nFROM web", 1, "the frontend `evil/frontend` is not accepted"),
        (
            "# x=y\n# SYNTAX = docker/dockerfile.evil/x\nFROM web",
            2,
            "the frontend `docker/dockerfile.evil/x`",
        ),
    ] {
        let rejection = check(text, &[]).unwrap_err();
        assert!(rejection.line == line && rejection.reason.starts_with(expected), "{text:?}: {rejection}");
    }
    let long = format!("FROM web\nRUN {}", "echo x \\\n".repeat(10_000));
    assert!(reason(&long).starts_with("the instruction has more than 65000 bytes"));
    let many = format!("FROM web\nCOPY {} x /y", "--exclude=x ".repeat(101));
    assert_eq!(reason(&many), "the instruction has more than 100 options");
    let many: String = (0..51).map(|n| format!("COPY --from=web:{n} x /y\n")).collect();
    assert_eq!(reason(&format!("FROM scratch\n{many}")), "the Dockerfile names more than 50 images");
    let many = "FROM scratch\n".repeat(201);
    assert_eq!(reason(&many), "the Dockerfile has more than 200 stages");
    assert!(images("FROM web", &[("BUILDKIT_SYNTAX", "docker/dockerfile:1")]).is_err());
}

#[test]
fn the_legacy_builder_gets_no_option_of_buildkit() {
    let nothing = variables(&[]);
    for instruction in
        ["COPY --chmod=1 x /y", "COPY --link x /y", "ADD --chmod=1 x /y", "RUN --mount=target=/x y"]
    {
        let tree = Dockerfile::parse(format!("FROM web\n{instruction}").as_bytes()).unwrap();
        let rejection = legacy(&nothing).check(tree.clone()).unwrap_err();
        assert!(rejection.reason.contains("needs BuildKit"), "{rejection}");
        assert!(buildkit(&nothing).check(tree).is_ok(), "{instruction}");
    }
}

#[test]
fn names_that_are_no_images_are_refused() {
    for image in ["sha256:8db98c", "SHA256:8db98c", "Nginx", "a//b", "docker-image://a", "--from"] {
        assert!(images(&format!("FROM {image}"), &[]).is_err(), "{image}");
        assert!(images(&format!("FROM scratch\nCOPY --from={image} / /"), &[]).is_err(), "{image}");
        let nothing = variables(&[]);
        let trigger = format!("COPY --from={image} / /");
        assert!(legacy(&nothing).check_trigger(&trigger, &[]).is_err(), "{image}");
    }
}

#[test]
fn triggers_of_bases_may_do_no_more_than_a_file() {
    let nothing = variables(&[]);
    for trigger in [
        "COPY --from=8db98c / /",
        "COPY --from=1 / /",
        "COPY --from=\"web\" / /",
        "FROM nginx",
        "ONBUILD RUN x",
        "RUN x\nCOPY --from=8db98c / /",
        "# escape=`\nCOPY `\n--from=8db98c / /",
        "# escape=`",
        "RUN x \\",
        "ADD http://x/y /z",
        "ADD $X /z",
        "ADD github.com/x/y.git /z",
        "ADD GitHub.com/x/y.git /z",
        "ADD user@host:x.git /z",
        "ADD [\"$X\", \"/z\"]",
        "RUN --mount=type=cache,target=/x y",
        "RUN <<EOF",
        "NONSENSE",
        "",
    ] {
        assert!(buildkit(&nothing).check_trigger(trigger, &["abc".to_owned()]).is_err(), "{trigger:?}");
    }
}
