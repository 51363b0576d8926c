package catalog

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// contents is what a dataset takes along when it changes its owner.
type contents struct {
	exposure   Exposure // the dataset's own; "" for none
	definition Definition
	revisions  []revision
	remarks    []remark
	grants     []grant
	examples   []string
}

type revision struct {
	Definition

	actorID uuid.UUID
	actor   string
	at      time.Time
}

const (
	sqlSelectRevisions = `
		SELECT revision, data_description, schema_definition, actor_id, actor, at FROM definitions WHERE account_id = $1 AND dataset_id = $2`
	sqlSelectOwn = `
		SELECT coalesce(d.exposure, ''), coalesce(h.examples, '{}')
		FROM datasets d LEFT JOIN dataset_search h ON h.account_id = d.account_id AND h.dataset_id = d.id WHERE d.account_id = $1 AND d.id = $2`
)

func selectContents(ctx context.Context, tx pgx.Tx, d Dataset) (c contents, err error) {
	if err = tx.QueryRow(ctx, sqlSelectOwn, d.Account, d.ID).Scan(&c.exposure, &c.examples); err != nil {
		return c, err
	}

	definition, err := selectDefinition(ctx, tx, d)
	if err != nil || definition == nil {
		return c, err
	}

	c.definition = *definition

	rows, err := tx.Query(ctx, sqlSelectRevisions, d.Account, d.ID)
	if err != nil {
		return c, err
	}

	if c.revisions, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (r revision, err error) {
		err = row.Scan(&r.Revision, &r.DataDescription, &r.SchemaDefinition, &r.actorID, &r.actor, &r.at)

		return r, err
	}); err != nil {
		return c, err
	}

	if c.remarks, err = selectRemarks(ctx, tx, d); err != nil {
		return c, err
	}

	c.grants, err = selectGrants(ctx, tx, d.access)

	return c, err
}

const (
	sqlInsertRevision = `
		INSERT INTO definitions (account_id, dataset_id, revision, data_description, schema_definition, actor_id, actor, at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`
	sqlInsertCopy = `
		INSERT INTO datasets (account_id, id, namespace_id, name, name_key, exposure, epoch, definition_revision, data_description, schema_definition,
			columns, row_count, created_at, updated_at, deleted_at, snapshot_id, key_columns, key_duplicates, engine)
		VALUES ($1, $2, $3, $4, $5, nullif($6, ''), $7, $8, $9, $10, $11, $12, $13, $14, $14, $15, $16, $17, $18)
		ON CONFLICT (account_id, id) DO UPDATE SET namespace_id = excluded.namespace_id, name = excluded.name, name_key = excluded.name_key,
			exposure = excluded.exposure, epoch = excluded.epoch, definition_revision = excluded.definition_revision,
			data_description = excluded.data_description, schema_definition = excluded.schema_definition, columns = excluded.columns,
			row_count = excluded.row_count, snapshot_id = excluded.snapshot_id, updated_at = excluded.updated_at, deleted_at = excluded.deleted_at,
			key_columns = excluded.key_columns, key_duplicates = excluded.key_duplicates, engine = excluded.engine`
	sqlDeleteRevisions = `DELETE FROM definitions WHERE account_id = $1 AND dataset_id = $2`
	sqlInsertExamples  = `
		INSERT INTO dataset_search (account_id, dataset_id, examples, stale) VALUES ($1, $2, $3, false)
		ON CONFLICT (account_id, dataset_id) DO UPDATE SET examples = excluded.examples`
)

// insertCopy writes a dataset as a tombstone, with the history of its definition and semantics. It replaces what an interrupted
// attempt may have left.
func insertCopy(ctx context.Context, tx pgx.Tx, d Dataset, c contents, now time.Time) error {
	if err := deleteGrantsOn(ctx, tx, d.access); err != nil {
		return err
	}

	if _, err := tx.Exec(ctx, sqlDeleteRevisions, d.Account, d.ID); err != nil {
		return err
	}

	columns, err := asJSON(d.Columns)
	if err != nil {
		return err
	}

	if _, err := tx.Exec(ctx, sqlInsertCopy, d.Account, d.ID, d.NamespaceID, d.Name, nameKey(d.Name), c.exposure, d.Epoch,
		c.definition.Revision, c.definition.DataDescription, c.definition.SchemaDefinition, columns, d.RowCount, d.CreatedAt, now, orNull(d.SnapshotID),
		d.Key.names(), d.Key.Duplicates, d.Engine); err != nil {
		return err
	}

	if _, err := tx.Exec(ctx, sqlInsertExamples, d.Account, d.ID, c.examples); err != nil {
		return err
	}

	for _, r := range c.revisions {
		if _, err := tx.Exec(ctx, sqlInsertRevision, d.Account, d.ID, r.Revision, r.DataDescription, r.SchemaDefinition, r.actorID, r.actor, r.at); err != nil {
			return err
		}
	}

	return insertRemarks(ctx, tx, d, c.remarks)
}

const sqlRemoveDataset = `
	WITH gone AS (
		DELETE FROM datasets WHERE account_id = $1 AND id = $2 AND epoch = $3 AND deleted_at IS NOT NULL RETURNING account_id, id),
	revisions AS (DELETE FROM definitions v USING gone WHERE v.account_id = gone.account_id AND v.dataset_id = gone.id),
	remarks AS (DELETE FROM semantics s USING gone WHERE s.account_id = gone.account_id AND s.dataset_id = gone.id)
	SELECT account_id FROM gone`

// removeDataset removes a tombstone. It returns false if the dataset was restored since d was read.
func removeDataset(ctx context.Context, tx pgx.Tx, d Dataset) (removed bool, err error) {
	if removed, err = changed(ctx, tx, sqlRemoveDataset, d.Account, d.ID, d.Epoch); err != nil || !removed {
		return false, err
	}

	return true, deleteGrantsOn(ctx, tx, d.access)
}
