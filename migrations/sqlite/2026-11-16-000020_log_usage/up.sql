-- The bytes that the kept lines of an application take: their text, and 100 for each line.
-- The twin in ../../postgres has the same tables, columns and names of constraints and indexes.
CREATE TABLE log_usage (
    application_id BLOB NOT NULL,
    bytes INTEGER NOT NULL,
    CONSTRAINT log_usage_pkey PRIMARY KEY (application_id),
    CONSTRAINT log_usage_application_id_fkey FOREIGN KEY (application_id) REFERENCES applications (id)
) STRICT, WITHOUT ROWID;

INSERT INTO log_usage (application_id, bytes)
    SELECT application_id, SUM(LENGTH(CAST(log AS BLOB)) + 100) FROM application_logs
    WHERE application_id IN (SELECT id FROM applications)
    GROUP BY application_id;
