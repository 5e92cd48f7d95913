//! The rows that each table is filled with.

use crate::dialect::Dialect;

/// The log lines of one application: fewer than the server keeps of one, so that it deletes none.
const LINES_OF_ONE: u64 = 190_000;
/// The last digits of ids, per kind of row.
const APPLICATION: u16 = 1;
const APPLICATION_STATUS: u16 = 2;
const DEPLOYMENT: u16 = 3;
const DEPLOYMENT_STATUS: u16 = 4;
const JOB: u16 = 5;
const ENTRY: u16 = 6;

/// The live versions of the copies of an application. Their containers listen on `port`.
#[derive(Clone, Copy)]
pub(crate) enum LiveVersions {
    Running { port: u16 },
    Stopped { port: u16 },
}

impl LiveVersions {
    fn is_stopped(self) -> bool {
        matches!(self, Self::Stopped { .. })
    }

    /// The changed columns of an application that has a live version.
    fn of_application(self, dialect: Dialect) -> Vec<(&'static str, String)> {
        vec![
            ("build_pack", "'dockerfile'".to_owned()),
            ("health_check_path", "'/'".to_owned()),
            ("status", if self.is_stopped() { "'stopped'" } else { "'running'" }.to_owned()),
            ("live_deployment_id", dialect.id("n", DEPLOYMENT)),
            ("is_stopped", dialect.boolean(self.is_stopped()).to_owned()),
        ]
    }

    /// The changed columns of a deployment that is a live version.
    fn of_deployment(self, dialect: Dialect) -> Vec<(&'static str, String)> {
        let (Self::Running { port } | Self::Stopped { port }) = self;
        let (application, deployment) = (dialect.id_text("n", APPLICATION), dialect.id_text("n", DEPLOYMENT));
        vec![
            ("status", "'deployed'".to_owned()),
            ("image", format!("'launchway/' || {application} || ':' || {deployment}")),
            ("container_id", dialect.container_id("n")),
            ("container_name", format!("'launchway-' || {deployment} || '-1'")),
            ("container_state", if self.is_stopped() { "'exited'" } else { "'running'" }.to_owned()),
            ("container_address", "'127.1.' || (n / 256) || '.' || (n % 256)".to_owned()),
            ("container_port", port.to_string()),
        ]
    }
}

/// Copies of one row of one table.
pub(crate) struct Copies {
    pub(crate) name: &'static str,
    /// The SQL after the name of the table that selects the row to copy.
    which: &'static str,
    /// The columns in which a copy differs, and their SQL expressions.
    changes: Vec<(&'static str, String)>,
}

impl Copies {
    /// Copies the row into a temporary table, because inserting is slower when it reads from the table that
    /// grows.
    pub(crate) fn template(&self) -> String {
        let Self { name, which, .. } = self;
        format!("CREATE TEMPORARY TABLE template_{name} AS SELECT * FROM {name} {which} LIMIT 1;")
    }

    pub(crate) fn statement(&self, dialect: Dialect, columns: &[String], rows: u64) -> String {
        let Self { name, changes, .. } = self;
        let value = |column: &String| match changes.iter().find(|(changed, _)| changed == column) {
            Some((_, value)) => value.clone(),
            None => format!("template.{column}"),
        };
        let values: Vec<String> = columns.iter().map(value).collect();
        format!(
            "INSERT INTO {name} ({}) {} SELECT {} FROM counter, template_{name} AS template;",
            columns.join(", "),
            dialect.counter(rows),
            values.join(", ")
        )
    }
}

/// The rows that a request for an application writes, and those of its deployment.
pub(crate) fn copies(dialect: Dialect, live: Option<LiveVersions>) -> Vec<Copies> {
    let id = |of| dialect.id("n", of);
    let name = || dialect.name("n");
    let host = || format!("{} || '.bench.localhost'", dialect.name("n"));
    let nothing = || "NULL".to_owned();
    let failed = || "'failed'".to_owned();
    let earlier = |column: &str| dialect.later(&format!("template.{column}"), "-1000000000 + n");
    // A version that is live would have to be there.
    let without = || vec![("status", failed()), ("live_deployment_id", nothing())];
    let of_application = live.map_or_else(without, |live| live.of_application(dialect));
    let of_deployment = live.map_or_else(|| vec![("status", failed())], |live| live.of_deployment(dialect));
    vec![
        Copies {
            name: "applications",
            which: "",
            changes: [
                vec![
                    ("id", id(APPLICATION)),
                    ("name", name()),
                    ("automatic_host", host()),
                    ("search", name()),
                    ("status_id", id(APPLICATION_STATUS)),
                    ("created_at", earlier("created_at")),
                ],
                of_application,
            ]
            .concat(),
        },
        Copies {
            name: "hosts",
            which: "WHERE application_id IS NOT NULL",
            changes: vec![("host", host()), ("application_id", id(APPLICATION))],
        },
        Copies {
            name: "deployments",
            which: "",
            changes: [
                vec![
                    ("id", id(DEPLOYMENT)),
                    ("application_id", id(APPLICATION)),
                    ("job_id", id(JOB)),
                    ("status_id", id(DEPLOYMENT_STATUS)),
                    ("created_at", earlier("created_at")),
                ],
                of_deployment,
            ]
            .concat(),
        },
        Copies {
            name: "jobs",
            which: "WHERE state = 'succeeded'",
            changes: vec![
                ("id", id(JOB)),
                ("subject", id(APPLICATION)),
                ("state", failed()),
                ("enqueued_at", earlier("enqueued_at")),
                ("run_at", earlier("run_at")),
            ],
        },
        Copies {
            name: "log_heads",
            which: "",
            changes: vec![
                ("application_id", id(APPLICATION)),
                ("first_number", "1".to_owned()),
                ("last_number", "0".to_owned()),
            ],
        },
        Copies {
            name: "deployment_log_heads",
            which: "",
            changes: vec![
                ("deployment_id", id(DEPLOYMENT)),
                ("application_id", id(APPLICATION)),
                ("first_number", "1".to_owned()),
                ("last_number", "0".to_owned()),
            ],
        },
        lines(dialect),
        entries(dialect),
    ]
}

/// The application that the API created gets as many lines as one may have, the next ones the rest.
fn lines(dialect: Dialect) -> Copies {
    let own_or =
        |own: &str, other: &str| format!("CASE WHEN n <= {LINES_OF_ONE} THEN {own} ELSE {other} END");
    let number = |head: &str| {
        let own = format!("(SELECT last_number FROM template_{head}) + n");
        own_or(&own, &format!("(n - 1) % {LINES_OF_ONE} + 1"))
    };
    let which = format!("(n - 1) / {LINES_OF_ONE}");
    Copies {
        name: "application_logs",
        which: "",
        changes: vec![
            ("application_id", own_or("template.application_id", &dialect.id(&which, APPLICATION))),
            ("number", number("log_heads")),
            ("deployment_id", own_or("template.deployment_id", &dialect.id(&which, DEPLOYMENT))),
            ("deployment_number", number("deployment_log_heads")),
            (
                "log",
                format!("template.log || ' {}' || n", "as the line before said, at length, and once more"),
            ),
        ],
    }
}

/// One entry in a thousand is of another user, so that a filter has something to find.
fn entries(dialect: Dialect) -> Copies {
    let actor = "CASE WHEN n % 1000 = 0 THEN 'grace' ELSE 'ada' END".to_owned();
    Copies {
        name: "audit_entries",
        which: "WHERE chain_id = (SELECT organization_id FROM template_applications) ORDER BY number DESC",
        changes: vec![
            ("number", "template.number + n".to_owned()),
            ("id", dialect.id("n", ENTRY)),
            ("actor", actor.clone()),
            ("actor_key", actor),
            ("request_id", "'request-' || n".to_owned()),
            ("at", dialect.later("template.at", "n")),
            ("search", "template.search || ' theme-' || (n % 1000)".to_owned()),
        ],
    }
}

/// Updates the heads of the logs and of the audit log.
pub(crate) fn heads(dialect: Dialect, rows: u64) -> Vec<String> {
    let last_at = dialect.later("last_at", &rows.to_string());
    let mut statements = vec![format!(
        "UPDATE audit_chains SET last_number = last_number + {rows}, last_at = {last_at}
         WHERE chain_id = (SELECT chain_id FROM template_audit_entries);"
    )];
    let own = rows.min(LINES_OF_ONE);
    for (head, column, of) in
        [("log_heads", "application_id", APPLICATION), ("deployment_log_heads", "deployment_id", DEPLOYMENT)]
    {
        statements.push(format!(
            "UPDATE {head} SET last_number = last_number + {own}
             WHERE {column} = (SELECT {column} FROM template_{head});"
        ));
        for block in 1..rows.div_ceil(LINES_OF_ONE) {
            let lines = LINES_OF_ONE.min(rows - block * LINES_OF_ONE);
            let which = dialect.id(&block.to_string(), of);
            statements.push(format!("UPDATE {head} SET last_number = {lines} WHERE {column} = {which};"));
        }
    }
    statements
}
