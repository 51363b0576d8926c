package connection

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/postgres"
)

const (
	sqlInsertGrant = `
		INSERT INTO directory_connections (subject_kind, subject_id, connection_id, account_id) VALUES ($3, $4, $2, $1) ON CONFLICT DO NOTHING`
	sqlDeleteGrants = `
		DELETE FROM directory_connections d USING unnest($3::text[], $4::text[]) AS s (kind, id)
		WHERE d.subject_kind = s.kind AND d.subject_id = s.id AND d.connection_id = $2 AND d.account_id = $1`
	sqlDeleteAllGrants = `DELETE FROM directory_connections WHERE account_id = $1 AND connection_id = $2`
	sqlSelectGrants    = `SELECT subject_kind, subject_id FROM directory_connections WHERE account_id = $1 AND connection_id = $2`
	sqlSelectGranter   = `
		SELECT d.account_id FROM unnest($1::text[], $2::text[]) AS s (kind, id)
		JOIN directory_connections d ON d.subject_kind = s.kind AND d.subject_id = s.id AND d.connection_id = $3 LIMIT 1`
	// A group of the owner may have a grant.
	sqlSelectGranted = `
		SELECT DISTINCT d.connection_id, d.account_id
		FROM unnest($1::text[], $2::text[]) AS s (kind, id) CROSS JOIN LATERAL (
			SELECT connection_id, account_id FROM directory_connections
			WHERE subject_kind = s.kind AND subject_id = s.id AND connection_id > $3 AND account_id <> $4
			ORDER BY connection_id LIMIT $5) d
		ORDER BY d.connection_id LIMIT $5`
	sqlSelectGrantedOf = `
		SELECT DISTINCT d.connection_id FROM unnest($1::text[], $2::text[]) AS s (kind, id)
		JOIN directory_connections d ON d.subject_kind = s.kind AND d.subject_id = s.id AND d.connection_id = ANY($3)`
	sqlSelectThese = `SELECT ` + sqlColumns + ` WHERE account_id = $1 AND id = ANY($2)`
	sqlBindGrants  = `
		WITH gone AS (DELETE FROM directory_connections WHERE subject_kind = 'name' AND subject_id = $1 RETURNING connection_id, account_id)
		INSERT INTO directory_connections (subject_kind, subject_id, connection_id, account_id)
		SELECT 'account', $2::uuid::text, connection_id, account_id FROM gone ON CONFLICT DO NOTHING`
)

func subjects(list []auth.Subject) (kinds, ids []string) {
	for _, subject := range list {
		kinds = append(kinds, subject.Kind)
		ids = append(ids, subject.ID)
	}

	return kinds, ids
}

func insertGrant(ctx context.Context, tx pgx.Tx, of Connection, to auth.Subject) error {
	_, err := tx.Exec(ctx, sqlInsertGrant, of.Account, of.ID, to.Kind, to.ID)

	return err
}

func deleteGrants(ctx context.Context, tx pgx.Tx, of Connection, list []auth.Subject) (removed int64, err error) {
	kinds, ids := subjects(list)
	done, err := tx.Exec(ctx, sqlDeleteGrants, of.Account, of.ID, kinds, ids)

	return done.RowsAffected(), err
}

func selectGrants(ctx context.Context, q postgres.Querier, of Connection) ([]auth.Subject, error) {
	rows, err := q.Query(ctx, sqlSelectGrants, of.Account, of.ID)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (s auth.Subject, err error) {
		err = row.Scan(&s.Kind, &s.ID)

		return s, err
	})
}

// selectGranter returns the owner of a connection that is shared with the caller, and uuid.Nil if none is.
func selectGranter(ctx context.Context, q postgres.Querier, who auth.Principal, id uuid.UUID) (owner uuid.UUID, err error) {
	kinds, ids := subjects(who.Subjects())

	err = q.QueryRow(ctx, sqlSelectGranter, kinds, ids, id).Scan(&owner)
	if postgres.NoRows(err) {
		err = nil
	}

	return owner, err
}

// selectGranted returns the ids of connections that are shared with the caller, by their owners.
func selectGranted(ctx context.Context, q postgres.Querier, who auth.Principal, after uuid.UUID, limit int) (map[uuid.UUID][]uuid.UUID, error) {
	kinds, ids := subjects(who.Subjects())

	rows, err := q.Query(ctx, sqlSelectGranted, kinds, ids, after, who.Account, limit)
	if err != nil {
		return nil, err
	}

	var (
		granted   = map[uuid.UUID][]uuid.UUID{}
		id, owner uuid.UUID
	)

	_, err = pgx.ForEachRow(rows, []any{&id, &owner}, func() error {
		granted[owner] = append(granted[owner], id)

		return nil
	})

	return granted, err
}

func selectGrantedOf(ctx context.Context, q postgres.Querier, who auth.Principal, of []uuid.UUID) ([]uuid.UUID, error) {
	kinds, ids := subjects(who.Subjects())

	rows, err := q.Query(ctx, sqlSelectGrantedOf, kinds, ids, of)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
}

// selectThese returns those of the connections that the account has.
func selectThese(ctx context.Context, q postgres.Querier, account uuid.UUID, ids []uuid.UUID) ([]Connection, error) {
	rows, err := q.Query(ctx, sqlSelectThese, account, ids)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, scan)
}

func bindGrants(ctx context.Context, tx pgx.Tx, username string, account uuid.UUID) error {
	_, err := tx.Exec(ctx, sqlBindGrants, username, account)

	return err
}
