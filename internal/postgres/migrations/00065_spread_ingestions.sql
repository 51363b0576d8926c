-- +goose Up

-- An ingestion that is spread has a job for each of its files in each of two steps: inspect and convert. round counts how often it has begun, so that the
-- jobs of an earlier attempt write nothing. parts_left are the files that the step still needs, parts_next is the position of the next file without a job.
-- planned has the columns of all files together.
ALTER TABLE ingestions
    ADD spread     boolean NOT NULL DEFAULT false,
    ADD step       text    NOT NULL DEFAULT '' CHECK (step IN ('', 'inspect', 'convert')),
    ADD round      int     NOT NULL DEFAULT 0,
    ADD parts_left int     NOT NULL DEFAULT 0,
    ADD parts_next int     NOT NULL DEFAULT 0,
    ADD planned    jsonb;
CREATE INDEX ingestions_spread ON ingestions (account_id, id) WHERE spread AND status = 'running';

-- How many ingestions of an account have not ended.
CREATE INDEX ingestions_unfinished ON ingestions (account_id) WHERE kind = 'files' AND status IN ('queued', 'running');

-- The last step that is done for the file, what the step has found, and the progress of the file.
ALTER TABLE ingestion_files
    ADD part_step  text   NOT NULL DEFAULT '' CHECK (part_step IN ('', 'inspect', 'convert')),
    ADD part_found jsonb,
    ADD part_bytes bigint NOT NULL DEFAULT 0,
    ADD part_rows  bigint NOT NULL DEFAULT 0;
