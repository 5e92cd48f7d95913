//! The packet filter of a node, with engines that are in no Swarm: it holds from the start of the engine.

use launchway_testkit::{
    docker::base_image,
    swarm::{LocalContainer, SwarmLab},
};

/// Starts a container that answers at port 8080, with these options.
fn serve(lab: &SwarmLab, node: usize, options: &[&str]) -> LocalContainer {
    let command = "mkdir -p /www && echo page > /www/index.html && exec httpd -f -p 8080 -h /www";
    let words = [&["run", "--detach"], options, &[base_image(), "sh", "-c", command]].concat();
    LocalContainer { node, id: lab.docker(node, &words) }
}

#[test]
fn rules_from_before_the_engine_hold() {
    let mut lab = SwarmLab::of_separate_engines(2, 2);
    let published = format!("{}:10000", lab.address(2));
    serve(&lab, 2, &["--publish", &format!("{published}:8080")]);

    lab.stop_engine(1);
    lab.remove_rules(1);
    let added = lab.prepare_packet_filter(1);
    assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
    lab.restart_engine(1);

    // The network of builds with BuildKit, and that of extensions from before the Swarm.
    lab.docker(1, &["network", "create", "organization"]);
    let containers = ["bridge", "organization"].map(|network| serve(&lab, 1, &["--network", network]));
    for container in &containers {
        let itself = lab.fetch_from(container, "127.0.0.1:8080");
        assert!(itself.ends_with("page\n"), "{itself:?}");
        assert_eq!(lab.fetch_from(container, &published), "");
    }
    lab.flush_rules(1);
    for container in &containers {
        let open = lab.fetch_from(container, &published);
        assert!(open.ends_with("page\n"), "without the rules: {open:?}");
    }
}
