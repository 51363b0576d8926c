-- +goose NO TRANSACTION
-- +goose Up

-- Each statement is a transaction of its own and can be run again, so that no index is made while a table is locked for readers.

-- grantees are words for those with whom the dataset is shared by itself. The document has them too, so that one index finds words within what is shared with somebody.
-- A trigger adds them, because a program of the previous version writes documents without them.
ALTER TABLE dataset_search ADD COLUMN IF NOT EXISTS grantees text[] NOT NULL DEFAULT '{}';

-- Whether the document of the dataset has a word for the grant: false if the dataset has too many, null for grants on namespaces and for those that a job has to add.
ALTER TABLE directory_grants ADD COLUMN IF NOT EXISTS indexed boolean;

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION dataset_search_grantees() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    NEW.document := ts_delete(NEW.document, OLD.grantees);
    IF NEW.document <> ''::tsvector THEN -- not deleted, and made
        NEW.document := NEW.document || array_to_tsvector(NEW.grantees);
    END IF;

    RETURN NEW;
END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE OR REPLACE TRIGGER dataset_search_grantees BEFORE UPDATE OF document, grantees ON dataset_search FOR EACH ROW
    WHEN (OLD.grantees <> '{}' OR NEW.grantees <> '{}') EXECUTE FUNCTION dataset_search_grantees();
-- +goose StatementEnd

-- The document of a dataset with thousands of grantees would be large and slow to write. The update also waits for a transaction that removes the same word.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION directory_grants_follow() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    about directory_grants := coalesce(NEW, OLD);
    word  text := '@s' || left(encode(sha256(convert_to(about.subject_kind || ':' || about.subject_id, 'UTF8')), 'hex'), 16);
BEGIN
    IF TG_OP = 'DELETE' THEN
        UPDATE dataset_search SET grantees = array_remove(grantees, word) WHERE account_id = OLD.account_id AND dataset_id = OLD.dataset_id;

        RETURN NULL;
    END IF;

    UPDATE dataset_search SET grantees = array_append(array_remove(grantees, word), word)
    WHERE account_id = NEW.account_id AND dataset_id = NEW.dataset_id AND (cardinality(grantees) < 100 OR word = ANY (grantees));
    NEW.indexed := FOUND;

    RETURN NEW;
END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE OR REPLACE TRIGGER directory_grants_made BEFORE INSERT OR UPDATE OF indexed ON directory_grants FOR EACH ROW
    WHEN (NEW.dataset_id <> '00000000-0000-0000-0000-000000000000') EXECUTE FUNCTION directory_grants_follow();
-- +goose StatementEnd
-- +goose StatementBegin
CREATE OR REPLACE TRIGGER directory_grants_deleted AFTER DELETE ON directory_grants FOR EACH ROW
    WHEN (OLD.indexed) EXECUTE FUNCTION directory_grants_follow();
-- +goose StatementEnd

CREATE INDEX IF NOT EXISTS directory_grants_namespaces ON directory_grants (subject_kind, subject_id, account_id, namespace_id)
    WHERE dataset_id = '00000000-0000-0000-0000-000000000000';
CREATE INDEX IF NOT EXISTS directory_grants_apart ON directory_grants (subject_kind, subject_id, account_id, namespace_id, dataset_id)
    WHERE indexed IS NOT TRUE AND dataset_id <> '00000000-0000-0000-0000-000000000000';
CREATE INDEX IF NOT EXISTS directory_grants_unindexed ON directory_grants (account_id, dataset_id)
    WHERE indexed IS NULL AND dataset_id <> '00000000-0000-0000-0000-000000000000';
