CREATE TABLE old_hosts (
    host TEXT NOT NULL,
    application_id BLOB NOT NULL,
    CONSTRAINT hosts_pkey PRIMARY KEY (host),
    CONSTRAINT hosts_application_id_fkey FOREIGN KEY (application_id) REFERENCES applications (id)
) STRICT, WITHOUT ROWID;
INSERT INTO old_hosts (host, application_id)
    SELECT host, application_id FROM hosts WHERE application_id IS NOT NULL;
DROP TABLE hosts;
ALTER TABLE old_hosts RENAME TO hosts;
CREATE INDEX hosts_application_id_idx ON hosts (application_id);
DROP TABLE extension_routes;
DROP TABLE execution_logs;
DROP TABLE execution_steps;
DROP TABLE extension_executions;
DROP TABLE extension_installations;
DROP TABLE extension_variables;
DROP TABLE extensions;
