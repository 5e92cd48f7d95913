//! Users' Dockerfiles, built on the engine in their canonical form.

mod agreement;

use std::sync::Arc;

use launchway_docker::Builder;
use launchway_domain::deployments::{ImageBuilder as _, StepError};
use launchway_testkit::docker::{base_image, docker};
use serde_json::{Value, json};

use crate::{
    builds::by_buildkit,
    installation::{Installation, owner, variables},
    recorder::Recorder,
};

fn legacy() -> Installation {
    Installation::with(|options| options.builder = Builder::Legacy)
}

/// Builds the repository, and returns the configuration of the image and the output.
async fn built(installation: &Installation, pairs: &[(&str, &str)]) -> (Value, String) {
    let mut plan = installation.plan(owner());
    plan.variables = variables(pairs);
    let recorder = Arc::new(Recorder::default());
    let image = installation.engine.build(&plan, recorder.clone()).await;
    let image = image.unwrap_or_else(|error| panic!("{error}: {}", recorder.text()));
    let config = docker(&["image", "inspect", "--format", "{{json .Config}}", image.as_str()]);
    (serde_json::from_str(&config).unwrap(), recorder.text())
}

/// Returns the reason why the repository is rejected.
async fn refusal(installation: &Installation) -> String {
    let built = installation.engine.build(&installation.plan(owner()), Arc::new(Recorder::default())).await;
    match built {
        Err(StepError::Rejected(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

fn with_base(dockerfile: &str) -> String {
    dockerfile.replace("<BASE>", base_image())
}

#[tokio::test]
async fn a_build_in_stages_becomes_a_small_image() {
    let installation = legacy();
    installation.write("src/main.c", "int main;\n");
    installation.write(
        "Dockerfile",
        &with_base(
            r#"# syntax=docker/dockerfile:1
ARG BASE=<BASE>
ARG UNUSED

FROM --platform=$BUILDPLATFORM ${BASE} AS Builder
ARG VERSION=0.0.0
WORKDIR /src
COPY --chown=1000:1000 src/ ./
# Comments may be anywhere,
RUN mkdir -p /out && \
    # also in a command,
    cp main.c /out/main-"$VERSION" \

    && echo "built $VERSION"

from builder as test
run test -f /out/main-1.2.3

FROM <BASE>
COPY --from=builder /out /app
COPY --from=0 /out/main-1.2.3 /app/copy
RUN ls -la /app && [ -f /app/copy ]
ENTRYPOINT ["/bin/sh", "-c"]
CMD ["exec", "sleep 1"]
"#,
        ),
    );
    let (config, output) = built(&installation, &[("VERSION", "1.2.3")]).await;
    assert!(output.contains("built 1.2.3"), "{output}");
    assert_eq!(config["Entrypoint"], json!(["/bin/sh", "-c"]));
    assert_eq!(config["Cmd"], json!(["exec", "sleep 1"]));
}

#[tokio::test]
async fn every_instruction_reaches_the_image() {
    let installation = legacy();
    installation.write(
        "Dockerfile",
        &with_base(
            "\u{feff}FROM --platform=linux/amd64 <BASE>\r\n\
             MAINTAINER Ada <ada@example.com>\r\n\
             ENV OLD form with  spaces\r\n\
             ENV A=1 B=\"two words\" C=three\\ words \\\r\n    D='single $A'\r\n\
             ENV E=$A-$B\r\n\
             LABEL \"org.example.title\"=\"Déjà vu\" \\\r\n      # why\r\n      org.example.text='a \"b\" c'\r\n\
             expose 8080 9090/udp\r\n\
             VOLUME [\"/data\", \"/with space\"]\r\n\
             WORKDIR /srv/app\r\n\
             USER 1000:1000\r\n\
             STOPSIGNAL SIGINT\r\n\
             SHELL [\"/bin/sh\", \"-ec\"]\r\n\
             HEALTHCHECK --interval=5s --timeout=3s --start-period=1s --retries=2 CMD wget -q -O - http://x || exit 1\r\n\
             ONBUILD COPY . /app\r\n\
             ENTRYPOINT [\"/bin/echo\", \"\\u00e4\\t\\\"\"]\r\n\
             CMD echo $A | tr 1 2\r\n",
        ),
    );
    let (config, _) = built(&installation, &[]).await;
    let environment = config["Env"].as_array().unwrap();
    for pair in
        ["OLD=form with  spaces", "A=1", "B=two words", "C=three words", "D=single $A", "E=1-two words"]
    {
        assert!(environment.contains(&json!(pair)), "{pair}: {environment:?}");
    }
    assert_eq!(config["Labels"]["org.example.title"], "Déjà vu");
    assert_eq!(config["Labels"]["org.example.text"], "a \"b\" c");
    assert_eq!(config["ExposedPorts"], json!({"8080/tcp": {}, "9090/udp": {}}));
    assert_eq!(config["Volumes"], json!({"/data": {}, "/with space": {}}));
    assert_eq!((&config["WorkingDir"], &config["User"]), (&json!("/srv/app"), &json!("1000:1000")));
    assert_eq!((&config["StopSignal"], &config["Shell"]), (&json!("SIGINT"), &json!(["/bin/sh", "-ec"])));
    assert_eq!(config["Healthcheck"]["Test"], json!(["CMD-SHELL", "wget -q -O - http://x || exit 1"]));
    assert_eq!(config["Healthcheck"]["Retries"], 2);
    assert_eq!(config["OnBuild"], json!(["COPY . /app"]));
    assert_eq!(config["Entrypoint"], json!(["/bin/echo", "ä\t\""]));
    assert_eq!(config["Cmd"], json!(["/bin/sh", "-ec", "echo $A | tr 1 2"]));
}

#[tokio::test]
async fn add_unpacks_archives_and_takes_variables() {
    let installation = legacy();
    installation.write("files/plain.txt", "plain");
    installation.write("with space.txt", "spaced");
    let archive = installation.root().join("archive.tar");
    let inner = installation.root().join("files");
    let status =
        std::process::Command::new("tar").arg("-cf").arg(archive).arg("-C").arg(inner).arg(".").status();
    assert!(status.unwrap().success());
    installation.write(
        "Dockerfile",
        &with_base(
            "FROM <BASE>\nARG FOLDER=files\nADD archive.tar /unpacked/\nADD $FOLDER/plain.txt \"${FOLDER}\"/*.txt /all/\n\
             ADD [\"with space.txt\", \"/spaced.txt\"]\nADD ./files /folder\nADD /files/plain.txt /rooted.txt\n\
             RUN cat /unpacked/plain.txt /all/plain.txt /spaced.txt /folder/plain.txt /rooted.txt\n",
        ),
    );
    let (_, output) = built(&installation, &[]).await;
    assert!(output.contains("plainplainspacedplainplain"), "{output}");
}

#[tokio::test]
async fn a_backtick_escapes_where_the_file_says_so() {
    let installation = legacy();
    installation.write(
        "Dockerfile",
        &with_base("# escape=`\n\nFROM <BASE>\nENV A=C:\\dir B=x` y\nRUN echo one `\n  two \\\\ three\n"),
    );
    let (config, _) = built(&installation, &[]).await;
    let environment = config["Env"].as_array().unwrap();
    for pair in ["A=C:\\dir", "B=x y"] {
        assert!(environment.contains(&json!(pair)), "{environment:?}");
    }
}

#[tokio::test]
async fn files_that_dockerignore_names_are_left_out() {
    let installation = legacy();
    installation.write(
        "deploy/web.Dockerfile",
        &with_base("FROM <BASE>\nCOPY . /app\nRUN cd /app && find . -type f\n"),
    );
    installation.write(".dockerignore", "secret\ndeploy\n");
    installation.write("secret", "x");
    installation.write("kept", "x");
    let mut plan = installation.plan(owner());
    plan.dockerfile = "deploy/web.Dockerfile".parse().unwrap();
    let recorder = Arc::new(Recorder::default());
    installation.engine.build(&plan, recorder.clone()).await.unwrap();
    let output = recorder.text();
    assert!(output.contains("./kept") && !output.contains("./secret"), "{output}");
}

#[tokio::test]
async fn bases_are_built_from_by_their_id() {
    let installation = legacy();
    installation.write("Dockerfile", &with_base("FROM <BASE> AS web\nCOPY --from=<BASE> /bin/busybox /x\n"));
    let (_, output) = built(&installation, &[]).await;
    let id = docker(&["image", "inspect", "--format", "{{.Id}}", base_image()]);
    assert!(output.contains(&format!("FROM {id} AS web")), "{output}");
    assert!(output.contains(&format!("COPY --from={id} /bin/busybox /x")), "{output}");
}

#[tokio::test]
async fn buildkit_gets_its_options_and_no_foreign_cache() {
    let installation = Installation::with(by_buildkit);
    installation.write("file", "x");
    installation.write(
        "Dockerfile",
        &with_base(
            "FROM --platform=$TARGETPLATFORM <BASE> AS web\nCOPY --chmod=600 file /file\n\
             RUN --mount=type=cache,target=/cache --mount=type=tmpfs,target=/t --mount=target=/context \
             ls /cache && date > /cache/seen && cat /context/file && stat -c %a /file\n\
             FROM web\nRUN --mount=type=bind,from=web,target=/web test -f /web/file\n",
        ),
    );
    // Another application has another cache, whatever its path is.
    for _application in 0..2 {
        let (_, output) = built(&installation, &[]).await;
        assert!(output.contains("600") && !output.contains("seen\n"), "{output}");
        installation.write("file", "y");
    }
}

#[tokio::test]
async fn a_refused_file_says_where_and_why() {
    let installation = legacy();
    for (line, reason) in [
        ("RUN --mount=type=cache,target=/x y", "line 2: the option `--mount` of `RUN` needs BuildKit"),
        ("COPY <<EOF /x\nx\nEOF", "line 2: the here-document `<<EOF` is not supported"),
        ("ADD https://example.com/x /x", "line 2: `ADD` takes files of the repository only"),
    ] {
        installation.write("Dockerfile", &with_base(&format!("FROM <BASE>\n{line}\n")));
        let message = refusal(&installation).await;
        assert!(message.starts_with(&format!("the Dockerfile is refused: {reason}")), "{message}");
    }
}
