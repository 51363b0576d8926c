package lake

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/postgres"
)

const sqlUpdateProfiled = `
	UPDATE lake_tables SET profiled_rows = $3
	WHERE account_id = $1 AND dataset_id = $2 AND removed_at IS NULL AND replaced_sequence <= $4`

// updateProfiled records how many rows are profiled. It reports whether the table exists and no row was removed after
// the snapshot.
func updateProfiled(ctx context.Context, tx pgx.Tx, t Table, rows, sequence int64) (there bool, err error) {
	tag, err := tx.Exec(ctx, sqlUpdateProfiled, t.Account, t.Dataset, rows, sequence)

	return tag.RowsAffected() == 1, err
}

const sqlSelectProfiles = `
	SELECT p.dataset_id, p.snapshot_id, p.sequence, p.row_count, p.computed_at, p.profile_key, p.profile_size, p.values_key, p.values_size,
		CASE WHEN $3 THEN p.summary END
	FROM lake_profiles p JOIN lake_tables t USING (account_id, dataset_id)
	WHERE p.account_id = $1 AND p.dataset_id = ANY($2) AND p.sequence >= t.replaced_sequence AND t.removed_at IS NULL`

func selectProfiles(ctx context.Context, q postgres.Querier, account uuid.UUID, datasets []uuid.UUID, summarized bool) (map[uuid.UUID]Profiled, error) {
	rows, err := q.Query(ctx, sqlSelectProfiles, account, datasets, summarized)
	if err != nil {
		return nil, err
	}

	found := map[uuid.UUID]Profiled{}

	var (
		dataset uuid.UUID
		p       Profiled
	)

	_, err = pgx.ForEachRow(rows, []any{
		&dataset, &p.Snapshot, &p.Sequence, &p.Rows, &p.ComputedAt, &p.Profile.Key, &p.Profile.Size, &p.Values.Key, &p.Values.Size, &p.Summary,
	}, func() error {
		p.Profile.Table = Table{Account: account, Dataset: dataset}
		p.Values.Table = p.Profile.Table
		found[dataset] = p
		p.Summary = nil

		return nil
	})

	return found, err
}

const (
	sqlDeleteProfile = `
		DELETE FROM lake_profiles WHERE account_id = $1 AND dataset_id = $2 RETURNING profile_key, values_key`
	// Rows are locked in a fixed order, so that concurrent deletions do not deadlock.
	sqlDeleteJoins = `
		DELETE FROM lake_joins WHERE (account_id, dataset_id, other_id, column_name, other_column) IN (
			SELECT account_id, dataset_id, other_id, column_name, other_column FROM lake_joins
			WHERE account_id = $1 AND (dataset_id = $2 OR other_id = $2)
			ORDER BY least(dataset_id, other_id), greatest(dataset_id, other_id), dataset_id, column_name, other_column FOR UPDATE)`
)

// deleteProfile deletes the profile and the joins of a table, and returns the keys of the profile's objects.
func deleteProfile(ctx context.Context, tx pgx.Tx, t Table) (keys []string, err error) {
	if _, err := tx.Exec(ctx, sqlDeleteJoins, t.Account, t.Dataset); err != nil {
		return nil, err
	}

	var profile, values string

	err = tx.QueryRow(ctx, sqlDeleteProfile, t.Account, t.Dataset).Scan(&profile, &values)
	if postgres.NoRows(err) {
		return nil, nil
	}

	keys = append(keys, profile)
	if values != "" {
		keys = append(keys, values)
	}

	return keys, err
}

const (
	sqlInsertProfile = `
		INSERT INTO lake_profiles (account_id, dataset_id, snapshot_id, sequence, row_count, computed_at, profile_key, profile_size, values_key,
			values_size, summary)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11::jsonb)`
	sqlInsertJoins = `
		INSERT INTO lake_joins (account_id, dataset_id, column_name, other_id, other_column, share)
		SELECT $1, a, b, c, d, share FROM (
			SELECT $2::uuid AS a, column_name AS b, other_id AS c, other_column AS d, share
			FROM unnest($3::text[], $4::uuid[], $5::text[], $6::real[]) AS found (column_name, other_id, other_column, share)
			UNION ALL
			SELECT other_id, other_column, $2::uuid, column_name, share
			FROM unnest($3::text[], $4::uuid[], $5::text[], $6::real[]) AS found (column_name, other_id, other_column, share)) both_ways
		ORDER BY least(a, c), greatest(a, c), a, b, d
		ON CONFLICT (account_id, dataset_id, other_id, column_name, other_column) DO UPDATE SET share = excluded.share`
)

func insertProfile(ctx context.Context, tx pgx.Tx, t Table, p Profiled, joins []Join) error {
	_, err := tx.Exec(ctx, sqlInsertProfile, t.Account, t.Dataset, p.Snapshot, p.Sequence, p.Rows, p.ComputedAt, p.Profile.Key, p.Profile.Size,
		p.Values.Key, p.Values.Size, string(p.Summary))
	if err != nil || len(joins) == 0 {
		return err
	}

	var (
		columns, to []string
		others      []uuid.UUID
		shares      []float64
	)

	for _, j := range joins {
		columns, others, to, shares = append(columns, j.Column), append(others, j.Other), append(to, j.To), append(shares, j.Share)
	}

	_, err = tx.Exec(ctx, sqlInsertJoins, t.Account, t.Dataset, columns, others, to, shares)

	return err
}

const maxJoins = 100

const sqlSelectJoins = `
	SELECT d.id, j.* FROM unnest($2::uuid[]) AS d(id), LATERAL (
		SELECT column_name, other_id, other_column, share FROM lake_joins
		WHERE account_id = $1 AND dataset_id = d.id ORDER BY share DESC, other_id, column_name, other_column LIMIT $3) j`

func selectJoins(ctx context.Context, q postgres.Querier, account uuid.UUID, datasets []uuid.UUID) (map[uuid.UUID][]Join, error) {
	rows, err := q.Query(ctx, sqlSelectJoins, account, datasets, maxJoins)
	if err != nil {
		return nil, err
	}

	var (
		found = map[uuid.UUID][]Join{}
		of    uuid.UUID
		j     Join
	)

	_, err = pgx.ForEachRow(rows, []any{&of, &j.Column, &j.Other, &j.To, &j.Share}, func() error {
		found[of] = append(found[of], j)

		return nil
	})

	return found, err
}

const sqlSelectUnique = `
	SELECT p.dataset_id, c.name
	FROM lake_profiles p JOIN lake_tables t USING (account_id, dataset_id),
		jsonb_to_recordset(p.summary -> 'columns') AS c (name text, nulls bigint, "distinct" bigint)
	WHERE p.account_id = $1 AND p.dataset_id = ANY($2) AND p.sequence >= t.replaced_sequence AND t.removed_at IS NULL
		AND p.row_count > 0 AND c.nulls = 0 AND c."distinct" = p.row_count`

func selectUnique(ctx context.Context, q postgres.Querier, account uuid.UUID, datasets []uuid.UUID) (map[uuid.UUID][]string, error) {
	rows, err := q.Query(ctx, sqlSelectUnique, account, datasets)
	if err != nil {
		return nil, err
	}

	var (
		found   = map[uuid.UUID][]string{}
		dataset uuid.UUID
		column  string
	)

	_, err = pgx.ForEachRow(rows, []any{&dataset, &column}, func() error {
		found[dataset] = append(found[dataset], column)

		return nil
	})

	return found, err
}
