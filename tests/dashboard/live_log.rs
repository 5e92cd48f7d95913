//! Logs in a real browser while they are written: much at once, and across a restart of the server.

use launchway_testkit::{
    browser::Browser,
    repository::{running, web_server},
    wait::until,
};
use serde_json::json;

use crate::{
    harness::{DEPLOY, Harness},
    journey::log_in,
};

/// The numbers of the lines that the page shows.
const SHOWN: &str = "[...document.querySelectorAll('#log .line')].map(each => Number(each.id.slice(1)))";
/// The page has shown the last line.
const ENDED: &str = "'ended' in document.querySelector('#log').dataset";

/// The number of lines that the script of the page appends in one frame.
const LINES_OF_A_FRAME: u64 = 250;
/// Blocks of many lines that the browser lays out while they are out of sight.
const LAID_OUT_OUT_OF_SIGHT: &str = "[...document.querySelectorAll('#log .block')].filter(each => \
    each.childElementCount >= 50 && getComputedStyle(each).contentVisibility !== 'auto').map(each => each.childElementCount)";

/// Asserts that the page shows every stored line once, in order.
#[track_caller]
fn assert_complete(browser: &Browser, harness: &Harness, deployment: &str) -> usize {
    let numbers = browser.value(SHOWN);
    let numbers: Vec<i64> =
        numbers.as_array().unwrap().iter().map(|number| number.as_i64().unwrap()).collect();
    assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
    let texts =
        browser.value("[...document.querySelectorAll('#log .line span')].map(each => each.textContent)");
    let stored = harness.lines(deployment);
    assert_eq!(texts.as_array().unwrap(), &stored);
    stored.len()
}

#[test]
fn a_restart_of_the_server_loses_and_doubles_no_line() {
    let mut harness = Harness::new();
    let address = harness.server.address().to_owned();
    harness.server.set("LAUNCHWAY_BIND", &address);
    let talk = "RUN for n in $(seq 80); do echo \"Step number $n\"; sleep 0.05; done";
    let browser = Browser::start();
    log_in(&browser, &harness.server);
    let deployment = harness.deploy("Shop", &web_server(talk));
    browser.open(&format!("{}/dashboard/deployments/{deployment}", harness.server.url()));
    browser.wait_for("document.querySelector('#log').textContent.includes('Step number 5')");
    harness.server.kill();
    browser.wait_for("'broken' in document.querySelector('#log').dataset");
    harness.server.restart();
    assert_eq!(harness.server.address(), address);
    browser.wait_for("document.querySelector('#progress .state.good')?.textContent === 'live'");
    browser.wait_for("document.querySelector('#log').textContent.includes('Deployed in')");
    let lines = assert_complete(&browser, &harness, &deployment);
    assert!(
        lines > 80
            && browser.value("document.querySelector('#log').textContent.includes('Attempt 2')") == true
    );
    assert_eq!(browser.value("'broken' in document.querySelector('#log').dataset"), false);
}

#[test]
fn ten_thousand_lines_do_not_freeze_the_page() {
    let harness = Harness::new();
    let browser = Browser::start();
    log_in(&browser, &harness.server);
    let dockerfile = running("exit 1").replace("CMD", "RUN seq 10000 | sed 's/^/Number /'\nCMD");
    let deployment = harness.deploy("Shop", &dockerfile);
    until("the end of the deployment", || {
        let path = format!("{DEPLOY}/deployments/{deployment}");
        (harness.admin.get(&path).success()["status"]["status"] == "failed").then_some(())
    });
    browser.open(&format!("{}/dashboard/deployments/{deployment}", harness.server.url()));
    browser.wait_for(ENDED);
    // Each frame appends one block: small ones, which are laid out only when they are in sight.
    let sizes =
        browser.value("[...document.querySelectorAll('#log .block')].map(each => each.childElementCount)");
    let sizes: Vec<u64> = sizes.as_array().unwrap().iter().map(|size| size.as_u64().unwrap()).collect();
    assert!(sizes.len() >= 40 && sizes.iter().all(|&size| size <= LINES_OF_A_FRAME), "{sizes:?}");
    assert_eq!(browser.value(LAID_OUT_OUT_OF_SIGHT), json!([]));
    assert!(assert_complete(&browser, &harness, &deployment) > 10_000);
    browser.fill("[data-log-search]", "number 9999");
    assert_eq!(browser.value("document.querySelectorAll('#log .line:not(.unmatched)').length"), 1);
}
