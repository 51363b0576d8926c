package catalog

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/postgres"
)

// A statement that decides who may see something takes the caller's subjects as two arrays, kinds and ids, and looks
// up grants once for each subject.
const (
	sqlNamespaceColumns = `
		n.account_id, n.id, n.name, coalesce(n.exposure, ''), n.created_at,
		ARRAY(SELECT g.role FROM unnest($2::text[], $3::text[]) AS s (kind, id)
			JOIN grants g ON g.account_id = n.account_id AND g.target_id = n.id AND g.subject_kind = s.kind AND g.subject_id = s.id)
		FROM namespaces n`

	sqlDatasetColumns = `
		d.account_id, d.id, n.id, n.name, d.name, coalesce(d.exposure, n.exposure, ''), d.epoch, left(d.data_description, 200), d.columns, d.row_count,
		coalesce(d.snapshot_id, '00000000-0000-0000-0000-000000000000'::uuid), d.created_at, d.updated_at,
		d.key_columns, d.key_duplicates, d.engine,
		ARRAY(SELECT g.role FROM unnest($2::text[], $3::text[]) AS s (kind, id)
			JOIN grants g ON g.account_id = d.account_id AND g.target_id IN (n.id, d.id) AND g.subject_kind = s.kind AND g.subject_id = s.id)`
	sqlDatasets = ` FROM datasets d JOIN namespaces n ON n.account_id = d.account_id AND n.id = d.namespace_id`
)

// subjects returns the caller's subjects as the two arrays that the statements take.
func subjects(list []auth.Subject) (kinds, ids []string) {
	for _, subject := range list {
		kinds = append(kinds, subject.Kind)
		ids = append(ids, subject.ID)
	}

	return kinds, ids
}

// list runs a statement whose first three arguments are an account and the caller's subjects.
func list[T any](ctx context.Context, q postgres.Querier, scan pgx.RowToFunc[T], statement string, account uuid.UUID, who auth.Principal, args ...any) ([]T, error) {
	kinds, ids := subjects(who.Subjects())

	rows, err := q.Query(ctx, statement, append([]any{account, kinds, ids}, args...)...)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, scan)
}

// first returns the first element, or nil if the list is empty.
func first[T any](list []T, err error) (*T, error) {
	if err != nil || len(list) == 0 {
		return nil, err
	}

	return &list[0], nil
}

// namesByID runs a statement that returns ids and names.
func namesByID(ctx context.Context, q postgres.Querier, statement string, arguments ...any) (map[uuid.UUID]string, error) {
	rows, err := q.Query(ctx, statement, arguments...)
	if err != nil {
		return nil, err
	}

	var (
		found = map[uuid.UUID]string{}
		id    uuid.UUID
		name  string
	)

	_, err = pgx.ForEachRow(rows, []any{&id, &name}, func() error {
		found[id] = name

		return nil
	})

	return found, err
}

// changed runs a statement and reports whether it affected a row.
func changed(ctx context.Context, tx pgx.Tx, statement string, args ...any) (bool, error) {
	tag, err := tx.Exec(ctx, statement, args...)

	return tag.RowsAffected() > 0, err
}
