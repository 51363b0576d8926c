-- +goose Up

-- One row that says which copy of the database the place in the object store belongs to. The store has its twin. epoch rises when the operator
-- says that this copy goes on. mark is the last sign of life, which is written here before it is written to the store: a database that went
-- back in time has an older one than the store. bound is set when the place was taken for the first time.
CREATE TABLE store_epoch (
    only_row boolean     PRIMARY KEY DEFAULT true CHECK (only_row),
    epoch    bigint      NOT NULL DEFAULT 1,
    mark     timestamptz NOT NULL DEFAULT now(),
    bound    boolean     NOT NULL DEFAULT false
);
INSERT INTO store_epoch DEFAULT VALUES;
