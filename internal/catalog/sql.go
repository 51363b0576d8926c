package catalog

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/postgres"
)

// A statement about who may see something takes the caller's subjects as two arrays, kinds and ids, and
// probes grants once for each of them.
const (
	sqlNamespaceColumns = `
		n.account_id, n.id, n.name, coalesce(n.exposure, ''), n.created_at,
		ARRAY(SELECT g.role FROM unnest($2::text[], $3::text[]) AS s (kind, id)
			JOIN grants g ON g.account_id = n.account_id AND g.target_id = n.id AND g.subject_kind = s.kind AND g.subject_id = s.id)
		FROM namespaces n`

	sqlDatasetColumns = `
		d.account_id, d.id, n.id, n.name, d.name, coalesce(d.exposure, n.exposure, ''), d.epoch, left(d.data_description, 200), d.columns, d.row_count,
		coalesce(d.snapshot_id, '00000000-0000-0000-0000-000000000000'::uuid), d.created_at, d.updated_at,
		ARRAY(SELECT g.role FROM unnest($2::text[], $3::text[]) AS s (kind, id)
			JOIN grants g ON g.account_id = d.account_id AND g.target_id IN (n.id, d.id) AND g.subject_kind = s.kind AND g.subject_id = s.id)`
	sqlDatasets = ` FROM datasets d JOIN namespaces n ON n.account_id = d.account_id AND n.id = d.namespace_id`

	sqlSelectNamespace      = `SELECT ` + sqlNamespaceColumns + ` WHERE n.account_id = $1 AND n.name_key = $4 AND n.deleted_at IS NULL`
	sqlSelectNamespaceByID  = `SELECT ` + sqlNamespaceColumns + ` WHERE n.account_id = $1 AND n.id = $4`
	sqlSelectNamespacesByID = `SELECT ` + sqlNamespaceColumns + ` WHERE n.account_id = $1 AND n.id = ANY($4) AND n.deleted_at IS NULL ORDER BY n.id`
	sqlSelectOwnNamespaces  = `SELECT ` + sqlNamespaceColumns + ` WHERE n.account_id = $1 AND n.id > $4 AND n.deleted_at IS NULL ORDER BY n.id LIMIT $5`

	// The plans of these must be good for an account with a million datasets, though the planner expects a
	// few: each condition fits one index alone.
	sqlSelectDataset = `SELECT ` + sqlDatasetColumns + sqlDatasets + `
		WHERE d.account_id = $1 AND d.name_key = $5 AND d.deleted_at IS NULL
			AND d.namespace_id = (SELECT id FROM namespaces WHERE account_id = $1 AND name_key = $4 AND deleted_at IS NULL)`
	sqlSelectDatasetByID  = `SELECT ` + sqlDatasetColumns + sqlDatasets + ` WHERE d.account_id = $1 AND d.id = $4`
	sqlSelectDatasetsByID = `
		WITH d AS MATERIALIZED (
			SELECT account_id, id, namespace_id, name, exposure, epoch, data_description, columns, row_count, snapshot_id, created_at, updated_at
			FROM datasets WHERE account_id = $1 AND id = ANY($4) AND deleted_at IS NULL)
		SELECT ` + sqlDatasetColumns + ` FROM d JOIN namespaces n ON n.account_id = d.account_id AND n.id = d.namespace_id ORDER BY d.id`
	sqlSelectDatasetsOf = `SELECT ` + sqlDatasetColumns + sqlDatasets + `
		WHERE d.account_id = $1 AND d.namespace_id = $4 AND d.id > $5 AND d.live ORDER BY d.id LIMIT $6`

	sqlSelectNeighbours = `
		SELECT id, name FROM datasets WHERE account_id = $1 AND id = $2 AND live
		UNION (
			SELECT id, name FROM datasets
			WHERE account_id = $1 AND namespace_id = (SELECT namespace_id FROM datasets WHERE account_id = $1 AND id = $2) AND live
			ORDER BY id DESC LIMIT $3)`

	sqlInsertNamespace = `
		INSERT INTO namespaces (account_id, id, name, name_key, exposure, created_at) VALUES ($1, $2, $3, $4, nullif($5, ''), $6)
		ON CONFLICT (account_id, name_key) WHERE deleted_at IS NULL DO NOTHING`
	sqlHoldNamespace           = `SELECT id, name FROM namespaces WHERE account_id = $1 AND name_key = $2 AND deleted_at IS NULL FOR SHARE`
	sqlLockNamespace           = `SELECT id FROM namespaces WHERE account_id = $1 AND id = $2 AND deleted_at IS NULL FOR UPDATE`
	sqlHoldNamespaceByID       = `SELECT id AS namespace_id FROM namespaces WHERE account_id = $1 AND id = $2 AND deleted_at IS NULL FOR SHARE`
	sqlUpdateNamespaceExposure = `UPDATE namespaces SET exposure = $3 WHERE account_id = $1 AND id = $2 AND deleted_at IS NULL`
	sqlDeleteNamespace         = `UPDATE namespaces SET deleted_at = $3 WHERE account_id = $1 AND id = $2 AND deleted_at IS NULL`
	sqlNamespaceHasDatasets    = `SELECT EXISTS (SELECT FROM datasets WHERE account_id = $1 AND namespace_id = $2 AND deleted_at IS NULL)`

	sqlInsertDataset = `
		INSERT INTO datasets (account_id, id, namespace_id, name, name_key, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $6)
		ON CONFLICT (account_id, namespace_id, name_key) WHERE deleted_at IS NULL DO NOTHING`
	sqlHoldDataset   = `SELECT namespace_id FROM datasets WHERE account_id = $1 AND id = $2 AND deleted_at IS NULL FOR SHARE`
	sqlUpdateDataset = `
		UPDATE datasets SET name = coalesce(nullif($3, ''), name), name_key = coalesce(nullif($4, ''), name_key),
			exposure = coalesce(nullif($5, ''), exposure), updated_at = $6
		WHERE account_id = $1 AND id = $2 AND deleted_at IS NULL`
	sqlDeleteDataset = `
		UPDATE datasets SET deleted_at = $3, epoch = epoch + 1 WHERE account_id = $1 AND id = $2 AND deleted_at IS NULL`
	sqlClearDataset = `
		UPDATE datasets SET row_count = 0, epoch = epoch + 1, snapshot_id = $4, updated_at = $3 WHERE account_id = $1 AND id = $2 AND deleted_at IS NULL`
	sqlUpdateContent = `
		UPDATE datasets SET columns = $4, row_count = $5, snapshot_id = $6, updated_at = $7
		WHERE account_id = $1 AND id = $2 AND epoch = $3 AND deleted_at IS NULL`
	sqlUpdateSnapshot = `UPDATE datasets SET snapshot_id = $3 WHERE account_id = $1 AND id = $2 AND deleted_at IS NULL`

	sqlSelectDefinition = `
		SELECT definition_revision, data_description, schema_definition FROM datasets WHERE account_id = $1 AND id = $2`
	sqlSelectDefinitions = `
		SELECT id, definition_revision, data_description, schema_definition FROM datasets WHERE account_id = $1 AND id = ANY($2)`
	sqlLockDefinition = `
		SELECT definition_revision, data_description, schema_definition FROM datasets
		WHERE account_id = $1 AND id = $2 AND deleted_at IS NULL FOR UPDATE`
	sqlInsertDefinition = `
		WITH saved AS (
			INSERT INTO definitions (account_id, dataset_id, revision, data_description, schema_definition, actor_id, actor, at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8))
		UPDATE datasets SET definition_revision = $3, data_description = $4, schema_definition = $5, updated_at = $8
		WHERE account_id = $1 AND id = $2`

	sqlInsertGrant = `
		WITH inverse AS (
			INSERT INTO directory_grants (subject_kind, subject_id, account_id, namespace_id, dataset_id)
			VALUES ($3, $4, $1, $7, $8) ON CONFLICT DO NOTHING)
		INSERT INTO grants (account_id, target_id, subject_kind, subject_id, role, created_at) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (account_id, target_id, subject_kind, subject_id) DO UPDATE SET role = excluded.role, created_at = excluded.created_at`
	sqlDeleteGrants = `
		WITH gone AS (
			DELETE FROM grants g USING unnest($5::text[], $6::text[]) AS s (kind, id)
			WHERE g.account_id = $1 AND g.target_id = $2 AND g.subject_kind = s.kind AND g.subject_id = s.id
			RETURNING g.subject_kind, g.subject_id),
		inverse AS (
			DELETE FROM directory_grants i USING gone
			WHERE i.subject_kind = gone.subject_kind AND i.subject_id = gone.subject_id
				AND i.account_id = $1 AND i.namespace_id = $3 AND i.dataset_id = $4)
		SELECT count(*) FROM gone`
	sqlDeleteGrantsOn = `
		WITH gone AS (DELETE FROM grants WHERE account_id = $1 AND target_id = $2 RETURNING subject_kind, subject_id)
		DELETE FROM directory_grants i USING gone
		WHERE i.subject_kind = gone.subject_kind AND i.subject_id = gone.subject_id
			AND i.account_id = $1 AND i.namespace_id = $3 AND i.dataset_id = $4`
	sqlSelectGrants = `SELECT subject_kind, subject_id, role FROM grants WHERE account_id = $1 AND target_id = $2`

	sqlSelectAccountID  = `SELECT account_id FROM directory_names WHERE username = $1`
	sqlSelectUsernames  = `SELECT account_id, username FROM directory_names WHERE account_id = ANY($1)`
	sqlSelectTakenNames = `SELECT username FROM directory_names WHERE username = ANY($1)`
	sqlSharesNamespace  = `
		SELECT EXISTS (SELECT FROM unnest($1::text[], $2::text[]) AS s (kind, id)
			JOIN directory_grants i ON i.subject_kind = s.kind AND i.subject_id = s.id
				AND i.account_id = $3 AND i.namespace_id = $4 AND i.dataset_id = $5)`
	sqlSelectShared = `
		SELECT DISTINCT i.account_id, i.namespace_id, i.dataset_id
		FROM unnest($1::text[], $2::text[]) AS s (kind, id) CROSS JOIN LATERAL (
			SELECT account_id, namespace_id, dataset_id FROM directory_grants
			WHERE subject_kind = s.kind AND subject_id = s.id AND (account_id, namespace_id, dataset_id) > ($3, $4, $5)
			ORDER BY account_id, namespace_id, dataset_id LIMIT $6) i
		ORDER BY i.account_id, i.namespace_id, i.dataset_id LIMIT $6`

	sqlLockTombstone = `
		SELECT d.id, d.namespace_id, n.name, d.name FROM datasets d JOIN namespaces n ON n.account_id = d.account_id AND n.id = d.namespace_id
		WHERE d.account_id = $1 AND n.account_id = $1 AND n.name_key = $2 AND d.name_key = $3 AND d.deleted_at >= $4
		ORDER BY d.deleted_at DESC LIMIT 1 FOR UPDATE OF d`
	sqlReviveNamespace = `UPDATE namespaces SET deleted_at = NULL WHERE account_id = $1 AND id = $2`
	sqlReviveDataset   = `
		UPDATE datasets SET deleted_at = NULL, namespace_id = $3, epoch = epoch + 1, updated_at = $4 WHERE account_id = $1 AND id = $2`
	sqlMoveInverse = `
		UPDATE directory_grants i SET namespace_id = $4 FROM grants g
		WHERE g.account_id = $1 AND g.target_id = $2 AND i.subject_kind = g.subject_kind AND i.subject_id = g.subject_id
			AND i.account_id = $1 AND i.namespace_id = $3 AND i.dataset_id = $2`
	sqlSelectRevisions = `
		SELECT revision, data_description, schema_definition, actor_id, actor, at FROM definitions WHERE account_id = $1 AND dataset_id = $2`
	sqlInsertRevision = `
		INSERT INTO definitions (account_id, dataset_id, revision, data_description, schema_definition, actor_id, actor, at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`
	sqlInsertCopy = `
		INSERT INTO datasets (account_id, id, namespace_id, name, name_key, exposure, epoch, definition_revision, data_description, schema_definition,
			columns, row_count, created_at, updated_at, deleted_at, snapshot_id)
		VALUES ($1, $2, $3, $4, $5, nullif($6, ''), $7, $8, $9, $10, $11, $12, $13, $14, $14, $15)
		ON CONFLICT (account_id, id) DO UPDATE SET namespace_id = excluded.namespace_id, name = excluded.name, name_key = excluded.name_key,
			exposure = excluded.exposure, epoch = excluded.epoch, definition_revision = excluded.definition_revision,
			data_description = excluded.data_description, schema_definition = excluded.schema_definition, columns = excluded.columns,
			row_count = excluded.row_count, snapshot_id = excluded.snapshot_id, updated_at = excluded.updated_at, deleted_at = excluded.deleted_at`
	sqlDeleteRevisions = `DELETE FROM definitions WHERE account_id = $1 AND dataset_id = $2`
	sqlSelectOwn       = `
		SELECT coalesce(d.exposure, ''), coalesce(h.examples, '{}')
		FROM datasets d LEFT JOIN dataset_search h ON h.account_id = d.account_id AND h.dataset_id = d.id WHERE d.account_id = $1 AND d.id = $2`
	sqlRemoveDataset = `
		WITH revisions AS (DELETE FROM definitions WHERE account_id = $1 AND dataset_id = $2)
		DELETE FROM datasets WHERE account_id = $1 AND id = $2`
	sqlSelectInverse = `
		SELECT account_id, namespace_id, dataset_id FROM directory_grants WHERE subject_kind = $1 AND subject_id = $2 LIMIT $3`
	sqlBindGrant = `
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

	// Those that find candidates, and the one that ranks them, read documents of several accounts: each part of a
	// condition is about one of them. A condition that is a subquery is read once, not for each row.
	sqlFindWithin = `
		SELECT w.i, h.account_id, h.dataset_id FROM unnest($1::text[]) WITH ORDINALITY AS w (match, i) CROSS JOIN LATERAL (
			SELECT h.account_id, h.dataset_id FROM unnest($2::text[]) AS s (scope) CROSS JOIN LATERAL (
				SELECT account_id, dataset_id FROM dataset_search WHERE document @@ (s.scope || ' & ' || w.match)::tsquery LIMIT $3) h
			LIMIT $3) h
		WHERE w.match <> ''`
	sqlSelectFrequent = `
		WITH recent AS MATERIALIZED (SELECT document FROM dataset_search WHERE account_id = $1 ORDER BY dataset_id DESC LIMIT $3)
		SELECT w.i - 1 FROM unnest($2::text[]::tsquery[]) WITH ORDINALITY AS w (match, i)
		WHERE EXISTS (SELECT 1 FROM dataset_search WHERE account_id = $1 OFFSET $5)
			AND (SELECT count(*) FROM recent WHERE document @@ w.match) >= $4`
	sqlFindRecent = `
		SELECT 1::bigint, account_id, dataset_id FROM (
			SELECT account_id, dataset_id, document FROM dataset_search WHERE account_id = $1 ORDER BY dataset_id DESC LIMIT $3) r
		WHERE document @@ (SELECT $2::text::tsquery) LIMIT $4`
	sqlFindAmong = `
		SELECT c.n, h.account_id, h.dataset_id FROM unnest($3::uuid[], $4::uuid[]) AS i (account_id, dataset_id)
			JOIN dataset_search h ON h.account_id = i.account_id AND h.dataset_id = i.dataset_id
			CROSS JOIN LATERAL (SELECT count(*) AS n FROM unnest($1::text[]::tsquery[]) AS w (match) WHERE h.document @@ w.match) c
		WHERE c.n > 0 ORDER BY c.n DESC LIMIT $2`
	sqlFindShared = `
		SELECT c.n, h.account_id, h.dataset_id FROM unnest($3::text[], $4::text[]) AS s (kind, id) CROSS JOIN LATERAL (
				SELECT account_id, namespace_id, dataset_id FROM directory_grants
				WHERE subject_kind = s.kind AND subject_id = s.id ORDER BY account_id, namespace_id, dataset_id LIMIT $5) i
			JOIN dataset_search h ON h.account_id = i.account_id AND h.dataset_id = i.dataset_id
			CROSS JOIN LATERAL (SELECT count(*) AS n FROM unnest($1::text[]::tsquery[]) AS w (match) WHERE h.document @@ w.match) c
		WHERE c.n > 0 ORDER BY c.n DESC LIMIT $2`
	sqlRank = `
		SELECT h.account_id, h.dataset_id, h.document @@ (SELECT $3::text::tsquery),
			ARRAY(SELECT CASE WHEN h.document @@ w.a THEN 0 WHEN h.document @@ w.b THEN 1 WHEN h.document @@ w.c THEN 2
					WHEN h.document @@ w.d THEN 3 WHEN h.document @@ w.e THEN 4 WHEN h.document @@ w.f THEN 5 ELSE 6 END::int2
				FROM unnest($4::text[]::tsquery[], $5::text[]::tsquery[], $6::text[]::tsquery[], $7::text[]::tsquery[], $8::text[]::tsquery[],
					$9::text[]::tsquery[]) AS w (a, b, c, d, e, f))
		FROM unnest($1::uuid[], $2::uuid[]) AS i (account_id, dataset_id)
			JOIN dataset_search h ON h.account_id = i.account_id AND h.dataset_id = i.dataset_id`
	sqlSelectSharedNamespaces = `
		SELECT DISTINCT i.namespace_id FROM unnest($1::text[], $2::text[]) AS s (kind, id) CROSS JOIN LATERAL (
			SELECT account_id, namespace_id, dataset_id FROM directory_grants
			WHERE subject_kind = s.kind AND subject_id = s.id ORDER BY account_id, namespace_id, dataset_id LIMIT $3) i
		WHERE i.dataset_id = $4 AND i.account_id <> $5`
	sqlSelectRanked = `
		WITH d AS MATERIALIZED (
			SELECT d.account_id, d.id, d.namespace_id, d.name, d.exposure, d.epoch, d.data_description, d.columns, d.row_count, d.snapshot_id,
				d.created_at, d.updated_at, s.place
			FROM unnest($1::uuid[], $4::uuid[]) WITH ORDINALITY AS s (account_id, id, place)
				JOIN datasets d ON d.account_id = s.account_id AND d.id = s.id AND d.deleted_at IS NULL)
		SELECT ` + sqlDatasetColumns + ` FROM d JOIN namespaces n ON n.account_id = d.account_id AND n.id = d.namespace_id ORDER BY d.place`

	sqlLockSearched   = `SELECT examples FROM dataset_search WHERE account_id = $1 AND dataset_id = $2 FOR UPDATE`
	sqlSelectSearched = `
		SELECT id, namespace_id, name, data_description, schema_definition, columns FROM datasets
		WHERE account_id = $1 AND id = ANY($2) AND deleted_at IS NULL`
	sqlUpdateSearched = `
		UPDATE dataset_search h SET document = s.document::tsvector, stale = false
		FROM unnest($2::uuid[], $3::text[]) AS s (dataset_id, document) WHERE h.account_id = $1 AND h.dataset_id = s.dataset_id`
	sqlUpdateExamples = `
		UPDATE dataset_search SET examples = $3 WHERE account_id = $1 AND dataset_id = $2 AND examples <> $3`
	sqlInsertExamples = `
		INSERT INTO dataset_search (account_id, dataset_id, examples, stale) VALUES ($1, $2, $3, false)
		ON CONFLICT (account_id, dataset_id) DO UPDATE SET examples = excluded.examples`
	sqlLockStale = `
		SELECT account_id, dataset_id, examples FROM dataset_search
		WHERE stale AND account_id = (SELECT account_id FROM dataset_search WHERE stale ORDER BY account_id LIMIT 1)
		ORDER BY dataset_id LIMIT $1 FOR UPDATE SKIP LOCKED`

	sqlSelectUsage = `
		SELECT coalesce(u.kind, l.kind), coalesce(u.amount, 0), l.amount
		FROM (SELECT kind, amount FROM usage WHERE account_id = $1 AND day = $2) u
		FULL JOIN (SELECT kind, amount FROM limits WHERE account_id = $1) l USING (kind)
		ORDER BY 1`
	sqlAddUsage = `
		INSERT INTO usage AS u (account_id, day, kind, amount) VALUES ($1, $2, $3, greatest(0, $4))
		ON CONFLICT (account_id, day, kind) DO UPDATE SET amount = greatest(0, u.amount + $4)
		RETURNING amount, (SELECT amount FROM limits WHERE account_id = $1 AND kind = $3)`
)

// subjects splits the caller's subjects into the two arrays that the statements take.
func subjects(list []auth.Subject) (kinds, ids []string) {
	for _, subject := range list {
		kinds = append(kinds, subject.Kind)
		ids = append(ids, subject.ID)
	}

	return kinds, ids
}

func scanNamespace(row pgx.CollectableRow) (n Namespace, err error) {
	err = row.Scan(&n.Account, &n.ID, &n.Name, &n.Exposure, &n.CreatedAt, &n.access.granted)
	n.access.account, n.access.namespace = n.Account, n.ID

	return n, err
}

func scanDataset(row pgx.CollectableRow) (d Dataset, err error) {
	err = row.Scan(&d.Account, &d.ID, &d.NamespaceID, &d.Namespace, &d.Name, &d.Exposure, &d.Epoch, &d.DataDescription, &d.Columns, &d.RowCount,
		&d.SnapshotID, &d.CreatedAt, &d.UpdatedAt, &d.access.granted)
	d.access.account, d.access.namespace, d.access.dataset = d.Account, d.NamespaceID, d.ID

	return d, err
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

// first returns nil if there is no row.
func first[T any](list []T, err error) (*T, error) {
	if err != nil || len(list) == 0 {
		return nil, err
	}

	return &list[0], nil
}

func selectNamespace(ctx context.Context, q postgres.Querier, account uuid.UUID, key string, who auth.Principal) (*Namespace, error) {
	return first(list(ctx, q, scanNamespace, sqlSelectNamespace, account, who, key))
}

func selectNamespaceByID(ctx context.Context, q postgres.Querier, account, id uuid.UUID) (*Namespace, error) {
	return first(list(ctx, q, scanNamespace, sqlSelectNamespaceByID, account, auth.Principal{Account: account}, id))
}

func selectNamespacesByID(ctx context.Context, q postgres.Querier, account uuid.UUID, who auth.Principal, ids []uuid.UUID) ([]Namespace, error) {
	return list(ctx, q, scanNamespace, sqlSelectNamespacesByID, account, who, ids)
}

func selectOwnNamespaces(ctx context.Context, q postgres.Querier, who auth.Principal, after uuid.UUID, limit int) ([]Namespace, error) {
	return list(ctx, q, scanNamespace, sqlSelectOwnNamespaces, who.Account, who, after, limit)
}

func selectDataset(ctx context.Context, q postgres.Querier, account uuid.UUID, namespace, name string, who auth.Principal) (*Dataset, error) {
	return first(list(ctx, q, scanDataset, sqlSelectDataset, account, who, namespace, name))
}

func selectDatasetByID(ctx context.Context, q postgres.Querier, account, id uuid.UUID, who auth.Principal) (*Dataset, error) {
	return first(list(ctx, q, scanDataset, sqlSelectDatasetByID, account, who, id))
}

func selectDatasetsByID(ctx context.Context, q postgres.Querier, account uuid.UUID, who auth.Principal, ids []uuid.UUID) ([]Dataset, error) {
	return list(ctx, q, scanDataset, sqlSelectDatasetsByID, account, who, ids)
}

func selectDatasetsOf(ctx context.Context, q postgres.Querier, account uuid.UUID, who auth.Principal, namespace, after uuid.UUID, limit int) ([]Dataset, error) {
	return list(ctx, q, scanDataset, sqlSelectDatasetsOf, account, who, namespace, after, limit)
}

func selectNeighbours(ctx context.Context, q postgres.Querier, account, dataset uuid.UUID, limit int) (map[uuid.UUID]string, error) {
	return namesByID(ctx, q, sqlSelectNeighbours, account, dataset, limit)
}

// namesByID runs a statement that gives ids and what they are called.
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

// changed runs a statement and tells whether it met a row.
func changed(ctx context.Context, tx pgx.Tx, statement string, args ...any) (bool, error) {
	tag, err := tx.Exec(ctx, statement, args...)

	return tag.RowsAffected() > 0, err
}

func insertNamespace(ctx context.Context, tx pgx.Tx, n Namespace) (isNew bool, err error) {
	return changed(ctx, tx, sqlInsertNamespace, n.Account, n.ID, n.Name, nameKey(n.Name), n.Exposure, n.CreatedAt)
}

// holdNamespace returns nil if there is none.
func holdNamespace(ctx context.Context, tx pgx.Tx, account uuid.UUID, key string) (*Namespace, error) {
	n := Namespace{Account: account}

	err := tx.QueryRow(ctx, sqlHoldNamespace, account, key).Scan(&n.ID, &n.Name)
	if postgres.NoRows(err) {
		return nil, nil //nolint:nilnil // absence is not a failure here
	}

	n.access = access{account: account, namespace: n.ID}

	return &n, err
}

func lockNamespace(ctx context.Context, tx pgx.Tx, n Namespace) (isLive bool, err error) {
	return changed(ctx, tx, sqlLockNamespace, n.Account, n.ID)
}

func updateNamespaceExposure(ctx context.Context, tx pgx.Tx, n Namespace, exposure Exposure) (isLive bool, err error) {
	return changed(ctx, tx, sqlUpdateNamespaceExposure, n.Account, n.ID, exposure)
}

func deleteNamespace(ctx context.Context, tx pgx.Tx, n Namespace, now time.Time) error {
	_, err := tx.Exec(ctx, sqlDeleteNamespace, n.Account, n.ID, now)

	return err
}

func namespaceHasDatasets(ctx context.Context, tx pgx.Tx, n Namespace) (has bool, err error) {
	err = tx.QueryRow(ctx, sqlNamespaceHasDatasets, n.Account, n.ID).Scan(&has)

	return has, err
}

func insertDataset(ctx context.Context, tx pgx.Tx, d Dataset) (isNew bool, err error) {
	return changed(ctx, tx, sqlInsertDataset, d.Account, d.ID, d.NamespaceID, d.Name, nameKey(d.Name), d.CreatedAt)
}

func updateDataset(ctx context.Context, tx pgx.Tx, d Dataset, change DatasetChange, now time.Time) (isLive bool, err error) {
	return changed(ctx, tx, sqlUpdateDataset, d.Account, d.ID, change.Name, nameKey(change.Name), change.Exposure, now)
}

func deleteDataset(ctx context.Context, tx pgx.Tx, d Dataset, now time.Time) (isLive bool, err error) {
	return changed(ctx, tx, sqlDeleteDataset, d.Account, d.ID, now)
}

func clearDataset(ctx context.Context, tx pgx.Tx, d Dataset, snapshot uuid.UUID, now time.Time) (isLive bool, err error) {
	return changed(ctx, tx, sqlClearDataset, d.Account, d.ID, now, orNull(snapshot))
}

func updateContent(ctx context.Context, tx pgx.Tx, d Dataset, content Content, now time.Time) (fits bool, err error) {
	columns, err := asJSON(content.Columns)
	if err != nil {
		return false, err
	}

	return changed(ctx, tx, sqlUpdateContent, d.Account, d.ID, d.Epoch, columns, content.Rows, orNull(content.Snapshot), now)
}

// asJSON: behind a pooler nobody but us knows that a column is jsonb.
func asJSON(columns []Column) (string, error) {
	text, err := json.Marshal(append([]Column{}, columns...)) // none are an empty array

	return string(text), err
}

func updateSnapshot(ctx context.Context, tx pgx.Tx, account, id, snapshot uuid.UUID) error {
	_, err := tx.Exec(ctx, sqlUpdateSnapshot, account, id, snapshot)

	return err
}

func orNull(id uuid.UUID) *uuid.UUID {
	if id == uuid.Nil {
		return nil
	}

	return &id
}

// holdTarget keeps a namespace or a dataset from being deleted or moved before the transaction ends, and
// says in which namespace it is now.
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

// readDefinition returns nil if there is no such dataset.
func readDefinition(ctx context.Context, q postgres.Querier, statement string, d Dataset) (*Definition, error) {
	var found Definition

	err := q.QueryRow(ctx, statement, d.Account, d.ID).Scan(&found.Revision, &found.DataDescription, &found.SchemaDefinition)
	if postgres.NoRows(err) {
		return nil, nil //nolint:nilnil // absence is not a failure here
	}

	return &found, err
}

func selectDefinition(ctx context.Context, q postgres.Querier, d Dataset) (*Definition, error) {
	return readDefinition(ctx, q, sqlSelectDefinition, d)
}

func selectDefinitions(ctx context.Context, q postgres.Querier, account uuid.UUID, ids []uuid.UUID) (map[uuid.UUID]Definition, error) {
	rows, err := q.Query(ctx, sqlSelectDefinitions, account, ids)
	if err != nil {
		return nil, err
	}

	var (
		found = map[uuid.UUID]Definition{}
		id    uuid.UUID
		one   Definition
	)

	_, err = pgx.ForEachRow(rows, []any{&id, &one.Revision, &one.DataDescription, &one.SchemaDefinition}, func() error {
		found[id] = one
		one.SchemaDefinition = nil

		return nil
	})

	return found, err
}

func lockDefinition(ctx context.Context, tx pgx.Tx, d Dataset) (*Definition, error) {
	return readDefinition(ctx, tx, sqlLockDefinition, d)
}

func insertDefinition(ctx context.Context, tx pgx.Tx, who auth.Principal, d Dataset, definition Definition, now time.Time) error {
	_, err := tx.Exec(ctx, sqlInsertDefinition, d.Account, d.ID, definition.Revision, definition.DataDescription, definition.SchemaDefinition,
		who.Account, who.Username, now)

	return err
}

func insertGrant(ctx context.Context, tx pgx.Tx, target access, g grant, now time.Time) error {
	_, err := tx.Exec(ctx, sqlInsertGrant, target.account, target.id(), g.subject.Kind, g.subject.ID, g.role, now, target.namespace, target.dataset)

	return err
}

func deleteGrants(ctx context.Context, tx pgx.Tx, target access, list []auth.Subject) (removed int, err error) {
	kinds, ids := subjects(list)
	err = tx.QueryRow(ctx, sqlDeleteGrants, target.account, target.id(), target.namespace, target.dataset, kinds, ids).Scan(&removed)

	return removed, err
}

func deleteGrantsOn(ctx context.Context, tx pgx.Tx, target access) error {
	_, err := tx.Exec(ctx, sqlDeleteGrantsOn, target.account, target.id(), target.namespace, target.dataset)

	return err
}

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

// selectAccountID returns uuid.Nil for a name that nobody has.
func selectAccountID(ctx context.Context, q postgres.Querier, username string) (id uuid.UUID, err error) {
	err = q.QueryRow(ctx, sqlSelectAccountID, username).Scan(&id)
	if postgres.NoRows(err) {
		return uuid.Nil, nil
	}

	return id, err
}

func selectUsernames(ctx context.Context, q postgres.Querier, accounts []uuid.UUID) (map[uuid.UUID]string, error) {
	return namesByID(ctx, q, sqlSelectUsernames, accounts)
}

func selectTakenNames(ctx context.Context, q postgres.Querier, names []string) ([]string, error) {
	rows, err := q.Query(ctx, sqlSelectTakenNames, names)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// sharesNamespace tells whether a namespace as a whole is shared with the caller.
func sharesNamespace(ctx context.Context, q postgres.Querier, who auth.Principal, at entry) (shares bool, err error) {
	kinds, ids := subjects(who.Subjects())
	err = q.QueryRow(ctx, sqlSharesNamespace, kinds, ids, at.account, at.namespace, uuid.Nil).Scan(&shares)

	return shares, err
}

func selectShared(ctx context.Context, q postgres.Querier, who auth.Principal, after entry, limit int) ([]entry, error) {
	kinds, ids := subjects(who.Subjects())

	rows, err := q.Query(ctx, sqlSelectShared, kinds, ids, after.account, after.namespace, after.dataset, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, scanEntry)
}

func selectUsage(ctx context.Context, q postgres.Querier, account uuid.UUID, day time.Time) ([]Used, error) {
	rows, err := q.Query(ctx, sqlSelectUsage, account, day)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, pgx.RowToStructByPos[Used])
}

func addUsage(ctx context.Context, tx pgx.Tx, account uuid.UUID, on Reservation, amount int64) (used Used, err error) {
	used.Kind = on.Kind
	err = tx.QueryRow(ctx, sqlAddUsage, account, on.Day, on.Kind, amount).Scan(&used.Amount, &used.Limit)

	return used, err
}

// lockTombstone returns nil if there is none.
func lockTombstone(ctx context.Context, tx pgx.Tx, account uuid.UUID, namespace, name string, notBefore time.Time) (*Dataset, error) {
	d := Dataset{Account: account}

	err := tx.QueryRow(ctx, sqlLockTombstone, account, namespace, name, notBefore).Scan(&d.ID, &d.NamespaceID, &d.Namespace, &d.Name)
	if postgres.NoRows(err) {
		return nil, nil //nolint:nilnil // absence is not a failure here
	}

	return &d, err
}

func reviveNamespace(ctx context.Context, tx pgx.Tx, account, id uuid.UUID) error {
	_, err := tx.Exec(ctx, sqlReviveNamespace, account, id)

	return err
}

func reviveDataset(ctx context.Context, tx pgx.Tx, d Dataset, now time.Time) error {
	_, err := tx.Exec(ctx, sqlReviveDataset, d.Account, d.ID, d.NamespaceID, now)

	return err
}

// moveInverse follows a dataset that changes its namespace.
func moveInverse(ctx context.Context, tx pgx.Tx, d Dataset, namespace uuid.UUID) error {
	_, err := tx.Exec(ctx, sqlMoveInverse, d.Account, d.ID, d.NamespaceID, namespace)

	return err
}

// contents is what goes along when a dataset changes its owner.
type contents struct {
	exposure   Exposure // its own, "" for none
	definition Definition
	revisions  []revision
	grants     []grant
	examples   []string
}

type revision struct {
	Definition

	actorID uuid.UUID
	actor   string
	at      time.Time
}

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

	c.grants, err = selectGrants(ctx, tx, d.access)

	return c, err
}

// insertCopy writes a dataset as a tombstone, with the history of its definition, over what an earlier
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
		c.definition.Revision, c.definition.DataDescription, c.definition.SchemaDefinition, columns, d.RowCount, d.CreatedAt, now, orNull(d.SnapshotID)); err != nil {
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

	return nil
}

func removeDataset(ctx context.Context, tx pgx.Tx, d Dataset) error {
	if err := deleteGrantsOn(ctx, tx, d.access); err != nil {
		return err
	}

	_, err := tx.Exec(ctx, sqlRemoveDataset, d.Account, d.ID)

	return err
}

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

// bindGrant moves a grant from one subject to another, which keeps what it has if it has one already.
func bindGrant(ctx context.Context, tx pgx.Tx, target access, from, to auth.Subject) error {
	_, err := tx.Exec(ctx, sqlBindGrant, target.account, target.id(), target.namespace, target.dataset, from.Kind, from.ID, to.Kind, to.ID)

	return err
}

// found is a candidate: the number of a condition that it fulfils, or how many.
type found struct {
	n  int64
	at entry
}

func scanFound(row pgx.CollectableRow) (f found, err error) {
	err = row.Scan(&f.n, &f.at.account, &f.at.dataset)

	return f, err
}

// findWithin gives the first that fulfil each of the conditions, in accounts and namespaces.
func findWithin(ctx context.Context, q postgres.Querier, conditions, scopes []string) ([]found, error) {
	rows, err := q.Query(ctx, sqlFindWithin, conditions, scopes, maxCandidates)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, scanFound)
}

// selectFrequent are the numbers of the conditions that many of the newest datasets of a large account fulfil.
func selectFrequent(ctx context.Context, q postgres.Querier, account uuid.UUID, conditions []string) ([]int, error) {
	rows, err := q.Query(ctx, sqlSelectFrequent, account, conditions, sampled, oftenSampled, largeAccount)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, pgx.RowTo[int])
}

// findRecent gives the first of an account's newest that fulfil a condition.
func findRecent(ctx context.Context, q postgres.Querier, account uuid.UUID, condition string) ([]found, error) {
	rows, err := q.Query(ctx, sqlFindRecent, account, condition, recentLooked, maxCandidates)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, scanFound)
}

// findAmong gives those of the datasets that fulfil most of the conditions.
func findAmong(ctx context.Context, q postgres.Querier, conditions []string, list []entry) ([]found, error) {
	accounts, datasets := columnsOf(list)

	rows, err := q.Query(ctx, sqlFindAmong, conditions, maxCandidates, accounts, datasets)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, scanFound)
}

// findShared is findAmong for the single datasets that are shared with the caller, the first of them. What is the
// caller's own is among them too, if it is shared with a group that the caller is in.
func findShared(ctx context.Context, q postgres.Querier, conditions []string, who auth.Principal) ([]found, error) {
	kinds, ids := subjects(who.Subjects())

	rows, err := q.Query(ctx, sqlFindShared, conditions, maxCandidates, kinds, ids, maxShares)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, scanFound)
}

// rankAll says how good candidates are.
func rankAll(ctx context.Context, q postgres.Querier, want wanted, list []entry) ([]Rank, error) {
	accounts, datasets := columnsOf(list)

	args := []any{accounts, datasets, want.whole}
	for _, place := range want.places {
		args = append(args, place)
	}

	rows, err := q.Query(ctx, sqlRank, args...)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r Rank, err error) {
		var (
			isWhole bool
			at      []int16
		)

		err = row.Scan(&r.Account, &r.Dataset, &isWhole, &at)
		r.Score = score(isWhole, at)

		return r, err
	})
}

// columnsOf gives the accounts and the datasets of entries.
func columnsOf(list []entry) (accounts, datasets []uuid.UUID) {
	accounts, datasets = make([]uuid.UUID, len(list)), make([]uuid.UUID, len(list))
	for i, e := range list {
		accounts[i], datasets[i] = e.account, e.dataset
	}

	return accounts, datasets
}

// selectSharedNamespaces gives those of others that are shared with the caller as a whole, among the first shares.
func selectSharedNamespaces(ctx context.Context, q postgres.Querier, who auth.Principal) ([]uuid.UUID, error) {
	kinds, ids := subjects(who.Subjects())

	rows, err := q.Query(ctx, sqlSelectSharedNamespaces, kinds, ids, maxShares, uuid.Nil, who.Account)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
}

// selectRanked gives datasets in the order of their ranks.
func selectRanked(ctx context.Context, q postgres.Querier, who auth.Principal, ranks []Rank) ([]Dataset, error) {
	accounts, datasets := make([]uuid.UUID, len(ranks)), make([]uuid.UUID, len(ranks))
	for i, r := range ranks {
		accounts[i], datasets[i] = r.Account, r.Dataset
	}

	kinds, ids := subjects(who.Subjects())

	rows, err := q.Query(ctx, sqlSelectRanked, accounts, kinds, ids, datasets)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, scanDataset)
}

func lockSearched(ctx context.Context, tx pgx.Tx, account, dataset uuid.UUID) ([]searched, error) {
	found := searched{account: account, dataset: dataset}

	err := tx.QueryRow(ctx, sqlLockSearched, account, dataset).Scan(&found.values)
	if postgres.NoRows(err) {
		return nil, nil
	}

	return []searched{found}, err
}

func lockStale(ctx context.Context, tx pgx.Tx, limit int) ([]searched, error) {
	rows, err := tx.Query(ctx, sqlLockStale, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (s searched, err error) {
		err = row.Scan(&s.account, &s.dataset, &s.values)

		return s, err
	})
}

func selectSearched(ctx context.Context, tx pgx.Tx, list []searched) (map[uuid.UUID]searched, error) {
	ids := make([]uuid.UUID, len(list))
	for i, s := range list {
		ids[i] = s.dataset
	}

	rows, err := tx.Query(ctx, sqlSelectSearched, list[0].account, ids)
	if err != nil {
		return nil, err
	}

	found := map[uuid.UUID]searched{}

	for rows.Next() {
		var s searched
		if err := rows.Scan(&s.dataset, &s.namespace, &s.name, &s.definition.DataDescription, &s.definition.SchemaDefinition, &s.columns); err != nil {
			return nil, err
		}

		found[s.dataset] = s
	}

	return found, rows.Err()
}

func updateSearched(ctx context.Context, tx pgx.Tx, account uuid.UUID, ids []uuid.UUID, documents []string) error {
	_, err := tx.Exec(ctx, sqlUpdateSearched, account, ids, documents)

	return err
}

func updateExamples(ctx context.Context, tx pgx.Tx, account, dataset uuid.UUID, values []string) (isNew bool, err error) {
	return changed(ctx, tx, sqlUpdateExamples, account, dataset, values)
}
