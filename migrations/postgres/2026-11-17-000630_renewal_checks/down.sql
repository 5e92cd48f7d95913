ALTER TABLE certificates DROP COLUMN renewal_check_at;
