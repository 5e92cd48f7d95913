ALTER TABLE previews DROP COLUMN reported_state;
ALTER TABLE previews DROP COLUMN reported_commit;
DROP TABLE code_host_tokens;
