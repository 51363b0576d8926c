package catalog

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/postgres"
)

const (
	sqlHoldNamespaceByID = `SELECT id AS namespace_id FROM namespaces WHERE account_id = $1 AND id = $2 AND deleted_at IS NULL FOR SHARE`
	sqlHoldDataset       = `SELECT namespace_id FROM datasets WHERE account_id = $1 AND id = $2 AND deleted_at IS NULL FOR SHARE`
)

// holdTarget locks a namespace or a dataset against deletion and moves until the transaction ends. It sets
// target.namespace to the current namespace.
func holdTarget(ctx context.Context, tx pgx.Tx, target *access) (isLive bool, err error) {
	statement := sqlHoldDataset
	if target.dataset == uuid.Nil {
		statement = sqlHoldNamespaceByID
	}

	err = tx.QueryRow(ctx, statement, target.account, target.id()).Scan(&target.namespace)
	if postgres.NoRows(err) {
		return false, nil
	}

	return true, err
}

const sqlInsertGrant = `
	WITH inverse AS (
		INSERT INTO directory_grants (subject_kind, subject_id, account_id, namespace_id, dataset_id)
		VALUES ($3, $4, $1, $7, $8) ON CONFLICT DO NOTHING)
	INSERT INTO grants (account_id, target_id, subject_kind, subject_id, role, created_at) VALUES ($1, $2, $3, $4, $5, $6)
	ON CONFLICT (account_id, target_id, subject_kind, subject_id) DO UPDATE SET role = excluded.role, created_at = excluded.created_at`

func insertGrant(ctx context.Context, tx pgx.Tx, target access, g grant, now time.Time) error {
	_, err := tx.Exec(ctx, sqlInsertGrant, target.account, target.id(), g.subject.Kind, g.subject.ID, g.role, now, target.namespace, target.dataset)

	return err
}

const sqlDeleteGrants = `
	WITH gone AS (
		DELETE FROM grants g USING unnest($5::text[], $6::text[]) AS s (kind, id)
		WHERE g.account_id = $1 AND g.target_id = $2 AND g.subject_kind = s.kind AND g.subject_id = s.id
		RETURNING g.subject_kind, g.subject_id),
	inverse AS (
		DELETE FROM directory_grants i USING gone
		WHERE i.subject_kind = gone.subject_kind AND i.subject_id = gone.subject_id
			AND i.account_id = $1 AND i.namespace_id = $3 AND i.dataset_id = $4)
	SELECT count(*) FROM gone`

func deleteGrants(ctx context.Context, tx pgx.Tx, target access, list []auth.Subject) (removed int, err error) {
	kinds, ids := subjects(list)
	err = tx.QueryRow(ctx, sqlDeleteGrants, target.account, target.id(), target.namespace, target.dataset, kinds, ids).Scan(&removed)

	return removed, err
}

const sqlDeleteGrantsOn = `
	WITH gone AS (DELETE FROM grants WHERE account_id = $1 AND target_id = $2 RETURNING subject_kind, subject_id)
	DELETE FROM directory_grants i USING gone
	WHERE i.subject_kind = gone.subject_kind AND i.subject_id = gone.subject_id
		AND i.account_id = $1 AND i.namespace_id = $3 AND i.dataset_id = $4`

func deleteGrantsOn(ctx context.Context, tx pgx.Tx, target access) error {
	_, err := tx.Exec(ctx, sqlDeleteGrantsOn, target.account, target.id(), target.namespace, target.dataset)

	return err
}

const sqlSelectGrants = `SELECT subject_kind, subject_id, role FROM grants WHERE account_id = $1 AND target_id = $2`

func selectGrants(ctx context.Context, q postgres.Querier, target access) ([]grant, error) {
	rows, err := q.Query(ctx, sqlSelectGrants, target.account, target.id())
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (g grant, err error) {
		err = row.Scan(&g.subject.Kind, &g.subject.ID, &g.role)

		return g, err
	})
}

const sqlSharesNamespace = `
	SELECT EXISTS (SELECT FROM unnest($1::text[], $2::text[]) AS s (kind, id)
		JOIN directory_grants i ON i.subject_kind = s.kind AND i.subject_id = s.id
			AND i.account_id = $3 AND i.namespace_id = $4 AND i.dataset_id = $5)`

// sharesNamespace reports whether a namespace as a whole is shared with the caller.
func sharesNamespace(ctx context.Context, q postgres.Querier, who auth.Principal, at entry) (shares bool, err error) {
	kinds, ids := subjects(who.Subjects())
	err = q.QueryRow(ctx, sqlSharesNamespace, kinds, ids, at.account, at.namespace, uuid.Nil).Scan(&shares)

	return shares, err
}

const sqlSelectShared = `
	SELECT DISTINCT i.account_id, i.namespace_id, i.dataset_id
	FROM unnest($1::text[], $2::text[]) AS s (kind, id) CROSS JOIN LATERAL (
		SELECT account_id, namespace_id, dataset_id FROM directory_grants
		WHERE subject_kind = s.kind AND subject_id = s.id AND (account_id, namespace_id, dataset_id) > ($3, $4, $5)
		ORDER BY account_id, namespace_id, dataset_id LIMIT $6) i
	ORDER BY i.account_id, i.namespace_id, i.dataset_id LIMIT $6`

func selectShared(ctx context.Context, q postgres.Querier, who auth.Principal, after entry, limit int) ([]entry, error) {
	kinds, ids := subjects(who.Subjects())

	rows, err := q.Query(ctx, sqlSelectShared, kinds, ids, after.account, after.namespace, after.dataset, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, scanEntry)
}

// The accounts are found one after the other by the index, because one account may share many datasets.
const sqlSelectSharers = `
	WITH RECURSIVE sharer (kind, id, account_id, n) AS (
		SELECT s.kind, s.id, (SELECT account_id FROM directory_grants
			WHERE subject_kind = s.kind AND subject_id = s.id ORDER BY account_id LIMIT 1), 1
		FROM unnest($1::text[], $2::text[]) AS s (kind, id)
		UNION ALL
		SELECT p.kind, p.id, (SELECT account_id FROM directory_grants
			WHERE subject_kind = p.kind AND subject_id = p.id AND account_id > p.account_id ORDER BY account_id LIMIT 1), p.n + 1
		FROM sharer p WHERE p.account_id IS NOT NULL AND p.n < $3)
	SELECT DISTINCT account_id FROM sharer WHERE account_id IS NOT NULL ORDER BY account_id LIMIT $3`

func selectSharers(ctx context.Context, q postgres.Querier, who auth.Principal, limit int) ([]uuid.UUID, error) {
	kinds, ids := subjects(who.Subjects())

	rows, err := q.Query(ctx, sqlSelectSharers, kinds, ids, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
}

const sqlSelectInverse = `
	SELECT account_id, namespace_id, dataset_id FROM directory_grants WHERE subject_kind = $1 AND subject_id = $2 LIMIT $3`

func selectInverse(ctx context.Context, q postgres.Querier, subject auth.Subject, limit int) ([]entry, error) {
	rows, err := q.Query(ctx, sqlSelectInverse, subject.Kind, subject.ID, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, scanEntry)
}

func scanEntry(row pgx.CollectableRow) (e entry, err error) {
	err = row.Scan(&e.account, &e.namespace, &e.dataset)

	return e, err
}

const sqlMoveInverse = `
	UPDATE directory_grants i SET namespace_id = $4 FROM grants g
	WHERE g.account_id = $1 AND g.target_id = $2 AND i.subject_kind = g.subject_kind AND i.subject_id = g.subject_id
		AND i.account_id = $1 AND i.namespace_id = $3 AND i.dataset_id = $2`

// moveInverse updates the directory when a dataset moves to another namespace.
func moveInverse(ctx context.Context, tx pgx.Tx, d Dataset, namespace uuid.UUID) error {
	_, err := tx.Exec(ctx, sqlMoveInverse, d.Account, d.ID, d.NamespaceID, namespace)

	return err
}

const sqlBindGrant = `
	WITH byname AS (
		DELETE FROM grants WHERE account_id = $1 AND target_id = $2 AND subject_kind = $5 AND subject_id = $6 RETURNING role, created_at),
	gone AS (
		DELETE FROM directory_grants
		WHERE subject_kind = $5 AND subject_id = $6 AND account_id = $1 AND namespace_id = $3 AND dataset_id = $4),
	inverse AS (
		INSERT INTO directory_grants (subject_kind, subject_id, account_id, namespace_id, dataset_id)
		SELECT $7, $8, $1, $3, $4 FROM byname ON CONFLICT DO NOTHING)
	INSERT INTO grants AS g (account_id, target_id, subject_kind, subject_id, role, created_at)
	SELECT $1, $2, $7, $8, role, created_at FROM byname
	ON CONFLICT (account_id, target_id, subject_kind, subject_id) DO NOTHING`

// bindGrant moves a grant from one subject to another. If the other subject already has a grant, that grant does not
// change.
func bindGrant(ctx context.Context, tx pgx.Tx, target access, from, to auth.Subject) error {
	_, err := tx.Exec(ctx, sqlBindGrant, target.account, target.id(), target.namespace, target.dataset, from.Kind, from.ID, to.Kind, to.ID)

	return err
}
