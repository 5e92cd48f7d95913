DROP INDEX applications_live_idx;
