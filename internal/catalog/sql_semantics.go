package catalog

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/meaning"
	"quern.dev/quern/internal/postgres"
)

const sqlSelectSemantics = `
	SELECT d.id, s.revision, s.content FROM unnest($2::uuid[]) AS d(id), LATERAL (
		SELECT revision, content FROM semantics WHERE account_id = $1 AND dataset_id = d.id ORDER BY revision DESC LIMIT 1) s`

// selectSemantics returns the last revisions. Datasets without one are left out.
func selectSemantics(ctx context.Context, q postgres.Querier, account uuid.UUID, ids []uuid.UUID) (map[uuid.UUID]Semantics, error) {
	rows, err := q.Query(ctx, sqlSelectSemantics, account, ids)
	if err != nil {
		return nil, err
	}

	var (
		found = map[uuid.UUID]Semantics{}
		id    uuid.UUID
		one   Semantics
	)

	_, err = pgx.ForEachRow(rows, []any{&id, &one.Revision, &one.Saved}, func() error {
		found[id] = one
		one.Saved = meaning.Saved{}

		return nil
	})

	return found, err
}

const sqlInsertSemantics = `
	WITH saved AS (
		INSERT INTO semantics (account_id, dataset_id, revision, content, actor_id, actor, at) VALUES ($1, $2, $3, $4, $5, $6, $7))
	UPDATE datasets SET updated_at = $7 WHERE account_id = $1 AND id = $2`

func insertSemantics(ctx context.Context, tx pgx.Tx, who auth.Principal, d Dataset, saved Semantics, now time.Time) error {
	content, err := marshal(saved.Saved)
	if err != nil {
		return err
	}

	_, err = tx.Exec(ctx, sqlInsertSemantics, d.Account, d.ID, saved.Revision, string(content), who.Account, who.Username, now)

	return err
}

// remark is a revision of the semantics of a dataset that changes its owner.
type remark struct {
	revision int64
	content  []byte
	actorID  uuid.UUID
	actor    string
	at       time.Time
}

const sqlSelectRemarks = `SELECT revision, content, actor_id, actor, at FROM semantics WHERE account_id = $1 AND dataset_id = $2`

func selectRemarks(ctx context.Context, tx pgx.Tx, d Dataset) ([]remark, error) {
	rows, err := tx.Query(ctx, sqlSelectRemarks, d.Account, d.ID)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r remark, err error) {
		err = row.Scan(&r.revision, &r.content, &r.actorID, &r.actor, &r.at)

		return r, err
	})
}

const (
	sqlDeleteRemarks = `DELETE FROM semantics WHERE account_id = $1 AND dataset_id = $2`
	sqlInsertRemark  = `INSERT INTO semantics (account_id, dataset_id, revision, content, actor_id, actor, at) VALUES ($1, $2, $3, $4, $5, $6, $7)`
)

// insertRemarks replaces what an interrupted attempt may have left.
func insertRemarks(ctx context.Context, tx pgx.Tx, d Dataset, remarks []remark) error {
	if _, err := tx.Exec(ctx, sqlDeleteRemarks, d.Account, d.ID); err != nil {
		return err
	}

	for _, r := range remarks {
		if _, err := tx.Exec(ctx, sqlInsertRemark, d.Account, d.ID, r.revision, string(r.content), r.actorID, r.actor, r.at); err != nil {
			return err
		}
	}

	return nil
}
