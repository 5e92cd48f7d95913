DROP TRIGGER audit_entries_only_grow ON audit_entries;
DROP TABLE audit_entries;
DROP FUNCTION refuse_to_change_audit_entries();
DROP TABLE audit_chains;
DROP TABLE key_check;
DROP TABLE password_setups;
