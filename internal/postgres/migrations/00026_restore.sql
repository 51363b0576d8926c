-- +goose Up

-- The list of what an owner can restore is ordered by the time of deletion.
CREATE INDEX datasets_restorable ON datasets (account_id, deleted_at, id) WHERE deleted_at IS NOT NULL;
CREATE INDEX namespaces_restorable ON namespaces (account_id, deleted_at, id) WHERE deleted_at IS NOT NULL;

-- A deleted namespace keeps its grants until its grace period ends. erased says that its grants were deleted and that it
-- can no longer be restored.
ALTER TABLE namespaces ADD erased boolean NOT NULL DEFAULT false;
CREATE INDEX namespaces_removal ON namespaces (deleted_at) WHERE deleted_at IS NOT NULL AND NOT erased;
