-- The queue of jobs.
-- Ids are 16 bytes, moments are microseconds since 1970, in UTC.
-- The twin in ../../postgres has the same tables, columns and names of constraints and indexes.

-- With a rowid, unlike most tables, because payloads are large and most indexes lead elsewhere.
CREATE TABLE jobs (
    id BLOB NOT NULL,
    kind TEXT NOT NULL,
    organization_id BLOB NOT NULL,
    -- What no two jobs work on at the same time.
    subject BLOB NOT NULL,
    -- Whether a newer one of the same subject and kind takes its place while it waits.
    replaceable INTEGER NOT NULL,
    payload TEXT NOT NULL,
    state TEXT NOT NULL,
    -- How often it was claimed. Only grows, and tells the holder of a lease from earlier ones.
    attempt INTEGER NOT NULL,
    -- How many of the attempts do not count against it.
    excused INTEGER NOT NULL,
    run_at INTEGER NOT NULL,
    enqueued_at INTEGER NOT NULL,
    started_at INTEGER,
    finished_at INTEGER,
    cancel_requested_at INTEGER,
    superseded_by BLOB,
    -- Why the last attempt came to nothing.
    reason TEXT,
    lease_instance BLOB,
    lease_boot BLOB,
    lease_worker INTEGER,
    lease_until INTEGER,
    CONSTRAINT jobs_pkey PRIMARY KEY (id),
    CONSTRAINT jobs_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations (id),
    CONSTRAINT jobs_state_is_known CHECK (
        state IN ('queued', 'running', 'succeeded', 'failed', 'cancelled', 'superseded')
    ),
    CONSTRAINT jobs_over_is_finished CHECK ((state IN ('queued', 'running')) = (finished_at IS NULL)),
    CONSTRAINT jobs_running_is_leased CHECK (
        (state = 'running') = (lease_until IS NOT NULL)
        AND (state = 'running') = (lease_instance IS NOT NULL)
        AND (state = 'running') = (lease_boot IS NOT NULL)
        AND (state = 'running') = (lease_worker IS NOT NULL)
    ),
    CONSTRAINT jobs_superseded_has_successor CHECK ((state = 'superseded') = (superseded_by IS NOT NULL)),
    CONSTRAINT jobs_waiting_is_wanted CHECK (state <> 'queued' OR cancel_requested_at IS NULL),
    CONSTRAINT jobs_excused_were_attempts CHECK (excused BETWEEN 0 AND attempt)
) STRICT;
CREATE UNIQUE INDEX jobs_one_running ON jobs (subject) WHERE state = 'running';
CREATE UNIQUE INDEX jobs_one_waiting ON jobs (subject, kind) WHERE state = 'queued' AND replaceable;
CREATE INDEX jobs_waiting_idx ON jobs (organization_id, run_at, enqueued_at, id) WHERE state = 'queued';
CREATE INDEX jobs_running_idx ON jobs (organization_id) WHERE state = 'running';

-- Whose turn it is: who was served longest ago has the smallest number. Everyone who ever had a
-- job is here.
CREATE TABLE job_turns (
    organization_id BLOB NOT NULL,
    last_turn INTEGER NOT NULL,
    CONSTRAINT job_turns_pkey PRIMARY KEY (organization_id),
    CONSTRAINT job_turns_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations (id)
) STRICT, WITHOUT ROWID;
CREATE INDEX job_turns_last_turn_idx ON job_turns (last_turn);
