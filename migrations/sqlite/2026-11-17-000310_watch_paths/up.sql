-- The paths of a repository that applications watch.
-- The twin in ../../postgres has the same tables, columns and names of constraints and indexes.

-- The patterns of applications that have any, as a JSON array. A table of its own, because that of applications has as
-- many columns as the code can name.
CREATE TABLE application_watch_paths (
    application_id BLOB NOT NULL,
    patterns TEXT NOT NULL,
    CONSTRAINT application_watch_paths_pkey PRIMARY KEY (application_id),
    CONSTRAINT application_watch_paths_application_id_fkey FOREIGN KEY (application_id) REFERENCES applications (id)
) STRICT;
