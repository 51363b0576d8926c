package catalog

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/postgres"
)

// found is a candidate. n is the number of the condition that it meets, counted from 1, or the count of conditions
// that it meets.
type found struct {
	n  int64
	at entry
}

func scanFound(row pgx.CollectableRow) (f found, err error) {
	err = row.Scan(&f.n, &f.at.account, &f.at.dataset)

	return f, err
}

// The statements that find candidates, and the one that ranks them, read documents of several accounts; each part
// of a condition is about one account. A condition in a subquery is parsed once, not for each row.
const sqlFindWithin = `
	SELECT w.i, h.account_id, h.dataset_id FROM unnest($1::text[]) WITH ORDINALITY AS w (match, i) CROSS JOIN LATERAL (
		SELECT h.account_id, h.dataset_id FROM unnest($2::text[]) AS s (scope) CROSS JOIN LATERAL (
			SELECT account_id, dataset_id FROM dataset_search WHERE document @@ (s.scope || ' & ' || w.match)::tsquery LIMIT $3) h
		LIMIT $3) h
	WHERE w.match <> ''`

// findWithin returns, for each condition, the first datasets in the given accounts and namespaces that meet it.
func findWithin(ctx context.Context, q postgres.Querier, conditions, scopes []string) ([]found, error) {
	rows, err := q.Query(ctx, sqlFindWithin, conditions, scopes, maxCandidates)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, scanFound)
}

const sqlSelectFrequent = `
	WITH recent AS MATERIALIZED (SELECT document FROM dataset_search WHERE account_id = $1 ORDER BY dataset_id DESC LIMIT $3)
	SELECT w.i - 1 FROM unnest($2::text[]::tsquery[]) WITH ORDINALITY AS w (match, i)
	WHERE EXISTS (SELECT 1 FROM dataset_search WHERE account_id = $1 OFFSET $5)
		AND (SELECT count(*) FROM recent WHERE document @@ w.match) >= $4`

// selectFrequent returns the indexes of the conditions that many of the newest datasets of a large account meet.
func selectFrequent(ctx context.Context, q postgres.Querier, account uuid.UUID, conditions []string) ([]int, error) {
	rows, err := q.Query(ctx, sqlSelectFrequent, account, conditions, sampled, oftenSampled, largeAccount)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, pgx.RowTo[int])
}

const sqlFindRecent = `
	SELECT 1::bigint, account_id, dataset_id FROM (
		SELECT account_id, dataset_id, document FROM dataset_search WHERE account_id = $1 ORDER BY dataset_id DESC LIMIT $3) r
	WHERE document @@ (SELECT $2::text::tsquery) LIMIT $4`

// findRecent returns the first of the newest datasets of an account that meet a condition.
func findRecent(ctx context.Context, q postgres.Querier, account uuid.UUID, condition string) ([]found, error) {
	rows, err := q.Query(ctx, sqlFindRecent, account, condition, recentLooked, maxCandidates)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, scanFound)
}

const sqlFindAmong = `
	SELECT c.n, h.account_id, h.dataset_id FROM unnest($3::uuid[], $4::uuid[]) AS i (account_id, dataset_id)
		JOIN dataset_search h ON h.account_id = i.account_id AND h.dataset_id = i.dataset_id
		CROSS JOIN LATERAL (SELECT count(*) AS n FROM unnest($1::text[]::tsquery[]) AS w (match) WHERE h.document @@ w.match) c
	WHERE c.n > 0 ORDER BY c.n DESC LIMIT $2`

// findAmong returns those of the given datasets that meet the most conditions.
func findAmong(ctx context.Context, q postgres.Querier, conditions []string, list []entry) ([]found, error) {
	accounts, datasets := columnsOf(list)

	rows, err := q.Query(ctx, sqlFindAmong, conditions, maxCandidates, accounts, datasets)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, scanFound)
}

const sqlRank = `
	SELECT h.account_id, h.dataset_id, h.document @@ (SELECT $3::text::tsquery),
		ARRAY(SELECT CASE WHEN h.document @@ w.a THEN 0 WHEN h.document @@ w.b THEN 1 WHEN h.document @@ w.c THEN 2
				WHEN h.document @@ w.d THEN 3 WHEN h.document @@ w.e THEN 4 WHEN h.document @@ w.f THEN 5
				WHEN h.document @@ w.g THEN 6 ELSE 7 END::int2
			FROM unnest($4::text[]::tsquery[], $5::text[]::tsquery[], $6::text[]::tsquery[], $7::text[]::tsquery[], $8::text[]::tsquery[],
				$9::text[]::tsquery[], $10::text[]::tsquery[]) AS w (a, b, c, d, e, f, g))
	FROM unnest($1::uuid[], $2::uuid[]) AS i (account_id, dataset_id)
		JOIN dataset_search h ON h.account_id = i.account_id AND h.dataset_id = i.dataset_id`

// rankAll computes the ranks of candidates.
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
		r.Score, r.in = score(isWhole, at), partsOf(isWhole, at)

		return r, err
	})
}

// columnsOf returns the accounts and the datasets of entries.
func columnsOf(list []entry) (accounts, datasets []uuid.UUID) {
	accounts, datasets = make([]uuid.UUID, len(list)), make([]uuid.UUID, len(list))
	for i, e := range list {
		accounts[i], datasets[i] = e.account, e.dataset
	}

	return accounts, datasets
}

const sqlSelectSharedNamespaces = `
	SELECT DISTINCT i.namespace_id FROM unnest($1::text[], $2::text[]) AS s (kind, id) CROSS JOIN LATERAL (
		SELECT account_id, namespace_id FROM directory_grants
		WHERE subject_kind = s.kind AND subject_id = s.id AND dataset_id = '00000000-0000-0000-0000-000000000000'
		ORDER BY account_id, namespace_id LIMIT $3) i
	WHERE i.account_id <> $4`

// selectSharedNamespaces returns the first namespaces of other accounts that are shared with the caller as a whole.
func selectSharedNamespaces(ctx context.Context, q postgres.Querier, who auth.Principal) ([]uuid.UUID, error) {
	kinds, ids := subjects(who.Subjects())

	rows, err := q.Query(ctx, sqlSelectSharedNamespaces, kinds, ids, maxShares, who.Account)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
}

const sqlSelectNamed = `
	WITH shared AS (
			SELECT i.account_id, i.namespace_id FROM unnest($3::text[], $4::text[]) AS s (kind, id) CROSS JOIN LATERAL (
				SELECT account_id, namespace_id FROM directory_grants
				WHERE subject_kind = s.kind AND subject_id = s.id ORDER BY account_id, namespace_id, dataset_id LIMIT $5) i
			UNION SELECT l.account_id, l.namespace_id FROM unnest($6::uuid[], $7::uuid[]) AS l (account_id, namespace_id)),
		seen AS MATERIALIZED (
			SELECT id, name_key FROM namespaces WHERE account_id = $8 AND deleted_at IS NULL
			UNION SELECT n.id, n.name_key FROM shared s
				JOIN namespaces n ON n.account_id = s.account_id AND n.id = s.namespace_id AND n.deleted_at IS NULL)
	SELECT w.word, n.id FROM unnest($1::int[], $2::text[], $9::bool[]) AS w (word, form, is_prefix) CROSS JOIN LATERAL (
		SELECT id FROM seen WHERE w.form = ANY (string_to_array(translate(name_key, '._', '--'), '-'))
			OR w.is_prefix AND starts_with(name_key, w.form) LIMIT $10) n`

// selectNamed returns the namespaces that words stand for. It looks at those of the caller's account and of the caller's first
// shares, also if only single datasets are shared. For a restricted token it looks at the listed ones only.
func selectNamed(ctx context.Context, q postgres.Querier, who auth.Principal, words []namedWord, listed []entry) ([]namedNamespace, error) {
	var (
		account          = who.Account
		kinds, ids       = subjects(who.Subjects())
		accounts, spaces []uuid.UUID
		numbers          []int
		forms            []string
		arePrefixes      []bool
	)

	if isRestricted(who) {
		account, kinds, ids = uuid.Nil, nil, nil
	}

	for _, e := range listed {
		accounts, spaces = append(accounts, e.account), append(spaces, e.namespace)
	}

	for _, w := range words {
		numbers, forms, arePrefixes = append(numbers, w.word), append(forms, w.form), append(arePrefixes, w.isPrefix)
	}

	rows, err := q.Query(ctx, sqlSelectNamed, numbers, forms, kinds, ids, maxShares, accounts, spaces, account, arePrefixes, maxNamed)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (n namedNamespace, err error) {
		err = row.Scan(&n.word, &n.namespace)

		return n, err
	})
}

const sqlSelectRanked = `
	WITH d AS MATERIALIZED (
		SELECT d.account_id, d.id, d.namespace_id, d.name, d.exposure, d.epoch, d.data_description, d.columns, d.row_count, d.snapshot_id,
			d.created_at, d.updated_at, d.key_columns, d.key_duplicates, d.engine, s.place
		FROM unnest($1::uuid[], $4::uuid[]) WITH ORDINALITY AS s (account_id, id, place)
			JOIN datasets d ON d.account_id = s.account_id AND d.id = s.id AND d.deleted_at IS NULL)
	SELECT ` + sqlDatasetColumns + ` FROM d JOIN namespaces n ON n.account_id = d.account_id AND n.id = d.namespace_id ORDER BY d.place`

// selectRanked returns datasets in the order of their ranks.
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
