-- +goose Up

-- What is searched of each dataset. The program makes the words; the document has them by where they stand, and
-- the account and the namespace as words too, so that one index finds a word within either. examples are values of
-- the dataset. stale marks a document that is not made yet: of what was there before this table, and of what a
-- program writes that does not know of it. A deleted dataset keeps its row, with an empty document.
CREATE TABLE dataset_search (
    account_id uuid     NOT NULL,
    dataset_id uuid     NOT NULL,
    document   tsvector NOT NULL DEFAULT '',
    examples   text[]   NOT NULL DEFAULT '{}',
    stale      boolean  NOT NULL DEFAULT true,
    PRIMARY KEY (account_id, dataset_id)
);
-- Without fastupdate: a search would read the list of what is pending each time.
CREATE INDEX dataset_search_document ON dataset_search USING gin (document) WITH (fastupdate = off);
CREATE INDEX dataset_search_stale ON dataset_search (account_id, dataset_id) WHERE stale;

INSERT INTO dataset_search (account_id, dataset_id) SELECT account_id, id FROM datasets WHERE deleted_at IS NULL;

-- +goose StatementBegin
CREATE FUNCTION dataset_search_follow() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        DELETE FROM dataset_search WHERE account_id = OLD.account_id AND dataset_id = OLD.id;
    ELSIF NEW.deleted_at IS NOT NULL THEN
        UPDATE dataset_search SET document = '', stale = false WHERE account_id = NEW.account_id AND dataset_id = NEW.id;
    ELSE
        INSERT INTO dataset_search (account_id, dataset_id) VALUES (NEW.account_id, NEW.id)
        ON CONFLICT (account_id, dataset_id) DO UPDATE SET stale = true;
    END IF;

    RETURN NULL;
END
$$;
-- +goose StatementEnd

CREATE TRIGGER dataset_search_made AFTER INSERT OR DELETE ON datasets FOR EACH ROW EXECUTE FUNCTION dataset_search_follow();
CREATE TRIGGER dataset_search_changed AFTER UPDATE ON datasets FOR EACH ROW
    WHEN (OLD.name <> NEW.name OR OLD.namespace_id <> NEW.namespace_id OR OLD.live <> NEW.live OR OLD.columns <> NEW.columns
        OR OLD.data_description <> NEW.data_description OR OLD.schema_definition <> NEW.schema_definition)
    EXECUTE FUNCTION dataset_search_follow();
