-- The index of texts by their trigrams, for searches in audit logs and in logs of applications.
-- The twin in ../../postgres has the same tables, columns and names of constraints and indexes.
-- Both tables start empty: servers fill them in the background, and scan what is not indexed yet. They are derived from
-- other tables, and are not part of backups.

-- The block that is indexed next, of each log that has one.
CREATE TABLE search_indexes (
    kind TEXT NOT NULL,
    -- The chain of an audit log, or an application.
    owner_id BLOB NOT NULL,
    next_block INTEGER NOT NULL,
    CONSTRAINT search_indexes_pkey PRIMARY KEY (kind, owner_id)
) STRICT;

-- The rows of a block that contain the trigrams of a bucket. Bucket -1 is empty, and in every indexed block. With a
-- rowid, because long rows of a table without one take pages of their own.
CREATE TABLE search_postings (
    kind TEXT NOT NULL,
    owner_id BLOB NOT NULL,
    block INTEGER NOT NULL,
    bucket INTEGER NOT NULL,
    postings BLOB NOT NULL,
    CONSTRAINT search_postings_pkey PRIMARY KEY (kind, owner_id, block, bucket)
) STRICT;
