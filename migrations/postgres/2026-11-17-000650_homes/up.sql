-- The server whose machine runs what is stateful: applications with a compose file. Jobs of such a subject run there only. The
-- machine keeps the id of its engine when it joins a Swarm again as another node. The row outlives a deleted application until its
-- containers and volumes are removed.
-- The twin in ../../sqlite has the same tables, columns and names of constraints and indexes.
CREATE TABLE homes (
    subject UUID NOT NULL,
    server UUID NOT NULL,
    engine TEXT NOT NULL,
    node TEXT NOT NULL,
    machine TEXT NOT NULL,
    CONSTRAINT homes_pkey PRIMARY KEY (subject)
);
