package catalog

import (
	"context"

	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/postgres"
)

// The statements about grants on single datasets take the subjects and two positions, between which the grants are.

const sqlSampleShared = `
	SELECT i.subject, h.account_id, h.dataset_id, ARRAY(SELECT w.i - 1 FROM unnest($9::text[]::tsquery[]) WITH ORDINALITY AS w (match, i) WHERE h.document @@ w.match)
	FROM (
		SELECT s.subject, g.account_id, g.dataset_id FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS s (kind, id, subject) CROSS JOIN LATERAL (
			SELECT account_id, dataset_id FROM directory_grants
			WHERE subject_kind = s.kind AND subject_id = s.id AND dataset_id <> '00000000-0000-0000-0000-000000000000'
				AND (account_id, namespace_id, dataset_id) > ($3, $4, $5) AND (account_id, namespace_id, dataset_id) <= ($6, $7, $8)
			ORDER BY account_id, namespace_id, dataset_id LIMIT $10) g
		LIMIT $11) i
	JOIN dataset_search h ON h.account_id = i.account_id AND h.dataset_id = i.dataset_id`

// sampledShare is a dataset that is shared with a subject of the caller, and the indexes of the conditions that it meets.
type sampledShare struct {
	subject int64
	at      entry
	meets   []int64
}

// sampleShared returns the datasets of the first grants of each subject.
func sampleShared(ctx context.Context, q postgres.Querier, in shares, conditions []string) ([]sampledShare, error) {
	rows, err := q.Query(ctx, sqlSampleShared, in.args(conditions, sampled, maxSampled)...)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (s sampledShare, err error) {
		err = row.Scan(&s.subject, &s.at.account, &s.at.dataset, &s.meets)

		return s, err
	})
}

const sqlFindShared = `
	SELECT 1::bigint, h.account_id, h.dataset_id FROM (
		SELECT g.account_id, g.dataset_id FROM unnest($1::text[], $2::text[]) AS s (kind, id) CROSS JOIN LATERAL (
			SELECT account_id, dataset_id FROM directory_grants
			WHERE subject_kind = s.kind AND subject_id = s.id AND dataset_id <> '00000000-0000-0000-0000-000000000000'
				AND (account_id, namespace_id, dataset_id) > ($3, $4, $5) AND (account_id, namespace_id, dataset_id) <= ($6, $7, $8)
			ORDER BY account_id, namespace_id, dataset_id LIMIT $10) g
		LIMIT $10) i
	JOIN dataset_search h ON h.account_id = i.account_id AND h.dataset_id = i.dataset_id
	WHERE h.document @@ (SELECT $9::text::tsquery) LIMIT $11`

// findShared returns the first of the datasets of the first grants that meet a condition.
func findShared(ctx context.Context, q postgres.Querier, in shares, condition string) ([]found, error) {
	rows, err := q.Query(ctx, sqlFindShared, in.args(condition, sharesLooked, maxCandidates)...)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, scanFound)
}

// The literal conditions are those of an index.
const sqlFindApart = `
	SELECT c.n, h.account_id, h.dataset_id FROM unnest($1::text[], $2::text[]) AS s (kind, id) CROSS JOIN LATERAL (
			SELECT account_id, dataset_id FROM directory_grants
			WHERE subject_kind = s.kind AND subject_id = s.id AND indexed IS NOT TRUE AND dataset_id <> '00000000-0000-0000-0000-000000000000'
				AND (account_id, namespace_id, dataset_id) > ($3, $4, $5) AND (account_id, namespace_id, dataset_id) <= ($6, $7, $8)
			ORDER BY account_id, namespace_id, dataset_id LIMIT $10) i
		JOIN dataset_search h ON h.account_id = i.account_id AND h.dataset_id = i.dataset_id
		CROSS JOIN LATERAL (SELECT count(*) AS n FROM unnest($9::text[]::tsquery[]) AS w (match) WHERE h.document @@ w.match) c
	WHERE c.n > 0 ORDER BY c.n DESC LIMIT $11`

// findApart returns those datasets that meet the most conditions and whose documents do not have the grant: it looks at the first maxShares of them.
func findApart(ctx context.Context, q postgres.Querier, in shares, conditions []string) ([]found, error) {
	rows, err := q.Query(ctx, sqlFindApart, in.args(conditions, maxShares, maxCandidates)...)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, scanFound)
}

// args returns the arguments of the statements above.
func (s shares) args(match any, looked, limit int) []any {
	kinds, ids := subjects(s.who.Subjects())

	return []any{
		kinds, ids, s.after.account, s.after.namespace, s.after.dataset, s.to.account, s.to.namespace, s.to.dataset, match, looked, limit,
	}
}

// A trigger adds the grant to the document, or says that it cannot.
const sqlIndexGrants = `
	WITH next AS (
		SELECT subject_kind, subject_id, account_id, namespace_id, dataset_id FROM directory_grants
		WHERE indexed IS NULL AND dataset_id <> '00000000-0000-0000-0000-000000000000' ORDER BY account_id, dataset_id LIMIT $1 FOR UPDATE SKIP LOCKED)
	UPDATE directory_grants g SET indexed = true FROM next n
	WHERE g.subject_kind = n.subject_kind AND g.subject_id = n.subject_id AND g.account_id = n.account_id AND g.namespace_id = n.namespace_id
		AND g.dataset_id = n.dataset_id`

// indexGrants adds grants of before the schema had them to the documents, and returns their number.
func indexGrants(ctx context.Context, tx pgx.Tx, limit int) (made int, err error) {
	tag, err := tx.Exec(ctx, sqlIndexGrants, limit)

	return int(tag.RowsAffected()), err
}
