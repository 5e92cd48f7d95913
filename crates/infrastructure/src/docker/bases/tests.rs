use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn variables(pairs: &[(&str, &str)]) -> Variables {
    let owned = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    owned.collect::<BTreeMap<_, _>>().try_into().unwrap()
}

fn references(text: &str, pairs: &[(&str, &str)]) -> Result<Vec<String>, String> {
    let mut found: Vec<String> =
        bases_of(text, &variables(pairs))?.into_iter().map(|base| base.reference).collect();
    found.dedup();
    Ok(found)
}

#[test]
fn images_are_known_by_their_names() {
    for (text, expected) in [
        ("FROM nginx", vec!["nginx:latest"]),
        ("\u{feff}from\tnginx:1\r\nRUN x\r\n", vec!["nginx:1"]),
        ("FROM scratch\nCOPY --from=docker.io/library/8db98c /x /x", vec!["8db98c:latest"]),
        (
            "FROM --platform=$BUILDPLATFORM golang:1 AS build\nFROM scratch\nCOPY --from=build / /",
            vec!["golang:1"],
        ),
        ("FROM web AS abc\nFROM abc\nCOPY --from=0 / /\nCOPY --from=ABC / /", vec!["web:latest"]),
        ("FROM \\\n# comment\n\n  a:1 \\\n as abc\nFROM ABC", vec!["a:1"]),
        ("# escape=`\nFROM `\na:1\nRUN dir c:\\\nFROM b:1", vec!["a:1", "b:1"]),
        ("ARG V=1\nARG R=a:$V\nFROM ${R}", vec!["a:1"]),
        ("ARG V='1' W=\"2\"\nFROM a:${V}${W:-3}${X:-4}${V:+5}${X:+6}", vec!["a:1245"]),
        ("ARG A=a B=b\nFROM ${N:-${A:+x${B}}}:1", vec!["xb:1"]),
        ("FROM \"a:1\"", vec!["a:1"]),
        ("FROM web\nRUN echo \\\n  # comment\n  more\n", vec!["web:latest"]),
        ("# syntax=docker/dockerfile:1\nFROM web\nRUN <<EOF\nFROM 8db98c\nEOF\n", vec!["web:latest"]),
        (
            "FROM web\nCOPY <<-'A' <<B /x/\nhello there\n\tA\n$X\nB\nRUN echo \"1 <<EOF 2\"",
            vec!["web:latest"],
        ),
        (
            "FROM web\nRUN --mount=type=cache,target=/x --mount=type=bind,from=sql,target=/y x",
            vec!["web:latest", "sql:latest"],
        ),
        (
            "FROM web\nCOPY --chown=\"a:b\" --from=b:1 / /\nONBUILD COPY --from=c:1 / /",
            vec!["web:latest", "b:1", "c:1"],
        ),
        (
            "FROM web\nRUN echo FROM 8db98c\nRUN echo --from=8db98c\nCOPY x --from=8db98c /y\n",
            vec!["web:latest"],
        ),
    ] {
        assert_eq!(references(text, &[]), Ok(expected.into_iter().map(str::to_owned).collect()), "{text:?}");
    }
    assert_eq!(references("ARG R=8db98c\nFROM $R", &[("R", "a:1")]), Ok(vec!["a:1".to_owned()]));
}

#[test]
fn what_could_be_an_id_is_refused_however_it_is_written() {
    for text in [
        "FROM 8db98c",
        "FROM ABC",
        "FROM a",
        "  fRoM\t\t8db98c\tAS x",
        "FROM 8db\\\n98c",
        "FROM \\\n# c\n\n8db98c",
        "# escape=`\nFROM 8db`\n98c",
        "FROM '8db98c'",
        "FROM 8d\"b9\"8c",
        "ARG X=8db98c\nFROM $X",
        "ARG X=8d\nARG Y=${X}b9\nFROM ${Y}8c",
        "ARG X=\"8db98c\"\nFROM ${X}",
        "FROM ${NOTHING:-8db98c}",
        "ARG X=1\nFROM ${X:+8db98c}",
        "FROM scratch\nCOPY --from=8db98c / /",
        "FROM scratch\nADD --chown=1 --from=8db98c / /",
        "FROM scratch\nCOPY --from=0 / /",
        "FROM scratch AS abc123\nCOPY --from=abc123 / /",
        "FROM abc123\nFROM scratch AS abc123",
        "FROM scratch\nONBUILD COPY --from=8db98c / /",
        "FROM scratch\nONBUILD ONBUILD COPY --from=8db98c / /",
        "FROM scratch\nRUN --mount=type=bind,FROM=8db98c,target=/x cat /x",
        "FROM scratch\nRUN echo \\\n  # a comment\nFROM 8db98c",
        "FROM scratch\nRUN echo \\\\\nFROM 8db98c",
        "FROM scratch\nCOPY <<RUN /x\nFROM 8db98c\nRUN\n",
    ] {
        let told = references(text, &[]).unwrap_err();
        assert!(told.contains("could be the beginning of an image's id"), "{text:?}: {told}");
    }
    let told = references("ARG R=a:1\nFROM $R", &[("R", "8db98c")]).unwrap_err();
    assert_eq!(
        told,
        "`8db98c` could be the beginning of an image's id: name the image by its repository, such as \
         `docker.io/library/…`"
    );
}

#[test]
fn what_is_not_certain_is_refused() {
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
        "FROM scratch\nCOPY --from=\"8db98c\" / /",
        "FROM scratch\nCOPY --fr\\om=8db98c / /",
        "FROM scratch\nRUN --mount=type=bind,\"from=8db98c\" x",
        "FROM scratch\nRUN --mount=\"type=bind, x,from=8db98c\" x",
        "ARG BUILDPLATFORM=linux/s390x\nFROM --platform=$BUILDPLATFORM x:1",
    ] {
        let told = references(text, &[]).unwrap_err();
        assert!(told.starts_with("it is not certain which image"), "{text:?}: {told}");
    }
    let doubled: String = (1..60).map(|n| format!("ARG X{n}=$X{0}$X{0}\n", n - 1)).collect();
    assert!(references(&format!("ARG X0=a\n{doubled}FROM $X59"), &[]).is_err());
    assert!(references(&format!("FROM {}", "${X:-".repeat(100_000)), &[]).is_err());
}

#[test]
fn files_that_docker_may_read_otherwise_are_refused() {
    for text in [
        "# syntax=x\n# escape=`\nFROM a:1",
        "# escape=`x\nFROM a:1",
        " # escape=`\nFROM a:1",
        "#\u{a0}escape=`\nFROM a:1",
        "FROM a:1\rFROM 8db98c",
        "# Syntax = evil/frontend\nFROM a:1",
        "# syntax=docker/dockerfile.evil.example/x\nFROM a:1",
        "FROM a:1\nRUN echo \\\" <<#x\nFROM 8db98c\n#x\n",
        "FROM a:1\nRUN <<A\nx\nA\nRUN <<#x\nFROM 8db98c\n#x\n",
        "NONSENSE",
        "{\"syntax\": \"evil\"}",
    ] {
        assert!(references(text, &[]).is_err(), "{text:?}");
    }
    assert!(references("FROM a:1", &[("BUILDKIT_SYNTAX", "evil/frontend")]).is_err());
}

#[test]
fn images_of_deployments_and_what_is_no_name_are_refused() {
    for image in [
        "launchway/a:b",
        "docker.io/launchway/a:b",
        "index.docker.io/launchway/a:b",
        "registry-1.docker.io/launchway/a:b",
        "Docker.IO/launchway/a:b",
        "library/launchway/a:b",
        "LAUNCHWAY/a:b",
        "sha256:8db98c",
        "SHA256:8db98c",
        "Nginx",
        "a//b",
        "docker-image://a",
        "--from",
    ] {
        assert!(references(&format!("FROM {image}"), &[]).is_err(), "{image}");
        assert!(references(&format!("FROM scratch\nCOPY --from={image} / /"), &[]).is_err(), "{image}");
        assert!(bases_of_trigger(&format!("COPY --from={image} / /"), &[]).is_err(), "{image}");
    }
}

#[test]
fn what_a_base_tells_is_held_to_the_same() {
    let earlier = ["abc".to_owned()];
    for trigger in ["RUN make", "COPY . /app", "COPY --from=abc / /", "COPY --from=0 / /", "ARG X=1"] {
        assert_eq!(bases_of_trigger(trigger, &earlier), Ok(Vec::new()), "{trigger}");
    }
    for trigger in [
        "COPY --from=8db98c / /",
        "COPY --from=1 / /",
        "FROM nginx",
        "RUN x\nCOPY --from=8db98c / /",
        "# escape=`\nCOPY `\n--from=8db98c / /",
        "NONSENSE",
    ] {
        assert!(bases_of_trigger(trigger, &earlier).is_err(), "{trigger}");
    }
}

proptest! {
    #[test]
    fn no_reference_of_hexadecimal_digits_is_ever_accepted(
        id in "[0-9a-fA-F]{1,64}",
        cut in 0_usize..64,
        space in "[ \t]{1,3}|[ \t]\\\\\n[ \t]?|[ ]\\\\\n#x\n",
        form in 0..8,
    ) {
        let (first, second) = id.split_at(cut.min(id.len()));
        let text = match form {
            0 => format!("FROM{space}{id}"),
            1 => format!("from{space}{first}\\\n{second} AS x"),
            2 => format!("ARG A={first}\nARG B=${{A}}{second}\nFROM{space}$B"),
            3 => format!("FROM{space}${{A:-{first}${{B:-{second}}}}}"),
            4 => format!("FROM{space}'{first}'\"{second}\""),
            5 => format!("FROM scratch\nCOPY{space}--from={id}{space}/ /"),
            6 => format!("FROM scratch\nONBUILD{space}ADD{space}--from={id}{space}/ /"),
            _ => format!("FROM scratch\nRUN{space}--mount=from={id},target=/x{space}x"),
        };
        prop_assert!(references(&text, &[]).is_err(), "{:?}", text);
    }

    #[test]
    fn whatever_stands_in_a_dockerfile_is_read_to_its_end(text in "(FROM|COPY|RUN|ARG|[-#$`\"'{}:=<\\\\ \na-c]){0,60}") {
        let _decided = references(&text, &[]);
    }
}
