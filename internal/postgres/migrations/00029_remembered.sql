-- +goose Up

-- What a person chose when words of a question had several meanings in a dataset. The rows belong to the account of the dataset, so a question reads
-- them with the dataset, and the owner reads those of everybody without another account's rows. words has the stems, said is what was written.
CREATE TABLE remembered (
    account_id  uuid        NOT NULL,
    dataset_id  uuid        NOT NULL,
    person_id   uuid        NOT NULL,
    words       text        NOT NULL,
    kind        text        NOT NULL,
    said        text        NOT NULL,
    column_name text        NOT NULL,
    at          timestamptz NOT NULL,
    PRIMARY KEY (account_id, dataset_id, person_id, words, kind)
);
