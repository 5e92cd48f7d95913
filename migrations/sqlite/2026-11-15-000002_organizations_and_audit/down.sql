DROP TRIGGER audit_entries_only_grow_on_update;
DROP TRIGGER audit_entries_only_grow_on_delete;
DROP TABLE audit_entries;
DROP TABLE audit_chains;
DROP TABLE key_check;
DROP TABLE password_setups;
