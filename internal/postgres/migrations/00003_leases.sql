-- +goose Up

-- Who is at a piece of long work. Whoever holds lease_id may write for it; a lease that ran out belongs to
-- nobody, and its work is delivered again, at delivered_at. job, queue and args are what delivers it.
CREATE TABLE leases (
    account_id uuid        NOT NULL,
    work_id    uuid        NOT NULL,
    lease_id   uuid        NOT NULL,
    until      timestamptz NOT NULL,
    job        text        NOT NULL,
    queue      text        NOT NULL,
    args       jsonb       NOT NULL,
    delivered_at timestamptz,
    PRIMARY KEY (account_id, work_id)
);
CREATE INDEX leases_until ON leases (until);
