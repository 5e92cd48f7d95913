use super::*;

#[test]
fn a_file_becomes_one_line_for_each_instruction() {
    for (text, expected) in [
        ("\u{feff}from\tweb:1\r\nrun\techo  1\r\n", "FROM web:1\nRUN echo  1\n"),
        ("FROM web:1 as Build\nFROM BUILD\n", "FROM web:1 AS build\nFROM build\n"),
        ("# a\n#b\n\nFROM \\\n# c\n\n  web:1 \\ \t\n As x\n", "FROM web:1 AS x\n"),
        ("FROM web:1\nRUN a && \\\n    # why\n    b \\\n\n  c", "FROM web:1\nRUN a &&     b   c\n"),
        ("FROM web:1\nRUN a \\", "FROM web:1\nRUN a\n"),
        (
            "# escape=`\nFROM web:1\nRUN a `\n b\nWORKDIR c:\\\n",
            "# escape=`\nFROM web:1\nRUN a  b\nWORKDIR c:\\\n",
        ),
        ("#syntax=docker/dockerfile:1.7\n# escape=`\nFROM web:1", "# escape=`\nFROM web:1\n"),
        ("# check=skip=all\n# Syntax = docker.io/docker/dockerfile\nFROM web:1", "FROM web:1\n"),
        ("FROM web:1\nENV a=b  c=\"d  e\" f=g\\ h\n", "FROM web:1\nENV a=b c=\"d  e\" f=g\\ h\n"),
        ("FROM web:1\nENV a  b  c\nENV d e=f\n", "FROM web:1\nENV a b  c\nENV d e=f\n"),
        (
            "FROM web:1\nLABEL \"a b\"='c d' \\\n  e=\"Grüße à\"\n",
            "FROM web:1\nLABEL \"a b\"='c d' e=\"Grüße à\"\n",
        ),
        (
            "FROM web:1\nCMD [ \"a\",\"b\\tc\\u00a0\\\"\" ]\n",
            "FROM web:1\nCMD [\"a\", \"b\\u0009c\\u00a0\\\"\"]\n",
        ),
        ("FROM web:1\nENTRYPOINT []\nCMD ['a']\n", "FROM web:1\nENTRYPOINT []\nCMD ['a']\n"),
        (
            "FROM web:1\nRUN [ -f /x ] && y\nRUN [[ \"$A\" == b ]]\n",
            "FROM web:1\nRUN [ -f /x ] && y\nRUN [[ \"$A\" == b ]]\n",
        ),
        (
            "FROM web:1\nHEALTHCHECK --interval=5s \\\n --retries=3 cmd curl x\n",
            "FROM web:1\nHEALTHCHECK --interval=5s --retries=3 CMD curl x\n",
        ),
        (
            "FROM web:1\nhealthcheck none\nSHELL [\"/bin/sh\",\"-c\"]\n",
            "FROM web:1\nHEALTHCHECK NONE\nSHELL [\"/bin/sh\", \"-c\"]\n",
        ),
        (
            "FROM web:1\nEXPOSE 80/tcp\t443 $P\nVOLUME /a /b\nVOLUME [\"/a b\"]\n",
            "FROM web:1\nEXPOSE 80/tcp 443 $P\nVOLUME /a /b\nVOLUME [\"/a b\"]\n",
        ),
        (
            "FROM web:1\nUSER a:b\nWORKDIR /a b\nSTOPSIGNAL SIGINT\nMAINTAINER A <a@b>\n",
            "FROM web:1\nUSER a:b\nWORKDIR /a b\nSTOPSIGNAL SIGINT\nMAINTAINER A <a@b>\n",
        ),
        (
            "FROM web:1\nCOPY --chown=\"a:b\" --chmod=755 --link x /y\n",
            "FROM web:1\nCOPY --chown=a:b --chmod=755 --link x /y\n",
        ),
        (
            "FROM web:1\nCOPY x --from=web /y\nRUN echo --from=8db98c\n",
            "FROM web:1\nCOPY x --from=web /y\nRUN echo --from=8db98c\n",
        ),
        (
            "FROM web:1\nRUN cat <<< x; echo $((1<<2)); cat << y\n",
            "FROM web:1\nRUN cat <<< x; echo $((1<<2)); cat << y\n",
        ),
        (
            "FROM --platform=$BUILDPLATFORM web:1\nFROM --platform=linux/amd64 web:1\n",
            "FROM web:1\nFROM --platform=linux/amd64 web:1\n",
        ),
        ("ARG TARGETPLATFORM\nFROM --platform=${TARGETPLATFORM} web:1\n", "ARG TARGETPLATFORM\nFROM web:1\n"),
        (
            "FROM web:1\nONBUILD  run  make\nonbuild ADD x /y\n",
            "FROM web:1\nONBUILD RUN make\nONBUILD ADD ./x /y\n",
        ),
    ] {
        assert_eq!(rendered(text), expected, "{text:?}");
    }
}

#[test]
fn comments_may_have_any_bytes() {
    let tree = Dockerfile::parse(b"FROM web:1\n# gr\xfc\xdfe \x00\nRUN a \\\n  # \xa0\x85\n b\n").unwrap();
    assert_eq!(tree.render(), "FROM web:1\nRUN a  b\n");
}

#[test]
fn instructions_know_their_lines() {
    let tree = Dockerfile::parse(b"# c\n\nFROM web:1\nRUN a \\\n# c\n b\n\nCMD c\n").unwrap();
    assert_eq!(tree.statements.iter().map(|statement| statement.line).collect::<Vec<_>>(), [3, 4, 8]);
}

#[test]
fn images_are_named_without_variables() {
    for (text, expected, image) in [
        ("FROM web", "FROM web", "web"),
        ("ARG V=1\nARG R=a.b:$V\nFROM ${R}", "FROM a.b:1", "a.b:1"),
        ("ARG V='1' W=\"2\"\nFROM z:${V}${W:-3}${X:-4}${V:+5}${X:+6}", "FROM z:1245", "z:1245"),
        ("ARG A=a B=b\nFROM ${N:-${A:+x${B}}}:1", "FROM xb:1", "xb:1"),
        ("FROM \"web:1\"", "FROM web:1", "web:1"),
        ("FROM docker.io/library/8db98c", "FROM docker.io/library/8db98c", "docker.io/library/8db98c"),
        ("FROM scratch\nCOPY --from=web:1 / /", "COPY --from=web:1 / /", "web:1"),
        (
            "FROM scratch\nRUN --mount=type=bind,from=web:1,target=/y x",
            "RUN --mount=type=bind,from=web:1,target=/y x",
            "web:1",
        ),
    ] {
        assert_eq!(rendered(text).lines().last(), Some(expected), "{text:?}");
        assert_eq!(images(text, &[]), Ok(vec![image.to_owned()]), "{text:?}");
    }
    assert_eq!(images("ARG R=8db98c\nFROM $R", &[("R", "web:1")]), Ok(vec!["web:1".to_owned()]));
}

#[test]
fn stages_are_copied_from_by_name_and_index() {
    let text =
        "FROM web AS abc\nFROM abc\nCOPY --from=0 / /\nCOPY --from=ABC / /\nFROM scratch\nCOPY --from=1 / /";
    assert_eq!(images(text, &[]), Ok(vec!["web".to_owned()]));
    assert!(rendered(text).contains("COPY --from=abc / /\n"));
}

#[test]
fn sources_of_add_become_local_paths() {
    for (written, expected) in [
        ("x y /z", "./x ./y /z"),
        ("$X/a /z", "./$X/a /z"),
        ("\"$X\" '$Y' /z", "./\"$X\" ./'$Y' /z"),
        ("./a ../b /c . /z", "./a ../b /c . /z"),
        ("github.com/x/y.git /z", "./github.com/x/y.git /z"),
        ("[\"a b\", \"$X\", \"/z\"]", "[\"./a b\", \"./$X\", \"/z\"]"),
        ("--chown=1:$X a http://x", "--chown=1:$X ./a http://x"),
    ] {
        assert_eq!(rendered(&format!("FROM web\nADD {written}")), format!("FROM web\nADD {expected}\n"));
    }
}

#[test]
fn cache_mounts_get_the_scope_of_their_build() {
    for (written, expected) in [
        ("type=cache,target=/root/.npm", "type=cache,target=/root/.npm,id=launchway-1-/root/.npm"),
        ("id=x,type=cache,dst=/y,sharing=locked", "type=cache,dst=/y,sharing=locked,id=launchway-1-x"),
        ("type=tmpfs,target=/x,size=1", "type=tmpfs,target=/x,size=1"),
        ("target=/x,RW", "target=/x,rw"),
    ] {
        let text = format!("FROM web\nRUN --mount={written} --network=none make");
        assert_eq!(rendered(&text), format!("FROM web\nRUN --mount={expected} --network=none make\n"));
    }
}

#[test]
fn pinned_images_are_built_by_their_id() {
    let text = "FROM web AS web\nRUN x\nFROM web\nCOPY --from=sql:1 --chown=1 / /\nCOPY --from=web / /";
    let mut checked = check(text, &[]).unwrap();
    checked.pin(|image| Some(format!("sha256:{}", image.as_str().len())));
    assert_eq!(
        checked.render(),
        "FROM sha256:3 AS web\nRUN x\nFROM web\nCOPY --from=sha256:5 --chown=1 / /\nCOPY --from=web / /\n"
    );
}

#[test]
fn triggers_of_bases_may_do_what_a_file_may() {
    let nothing = variables(&[]);
    let earlier = ["abc".to_owned()];
    for trigger in [
        "RUN make",
        "COPY . /app",
        "COPY --from=abc / /",
        "COPY --from=0 / /",
        "ARG X=1",
        "ADD src/*.tar /x",
        "ADD ./$X /y",
    ] {
        assert_eq!(legacy(&nothing).check_trigger(trigger, &earlier), Ok(Vec::new()), "{trigger}");
    }
    let copied = legacy(&nothing).check_trigger("COPY --from=web:1 / /", &[]).unwrap();
    assert_eq!(copied, ["web:1".parse().unwrap()]);
}
