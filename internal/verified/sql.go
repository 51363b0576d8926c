package verified

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/postgres"
)

const (
	sqlColumns = `v.account_id, v.namespace_id, v.id, v.revision, v.status, v.reason, v.content, v.needs, v.author, v.verified_at, v.created_at`

	sqlGet  = `SELECT ` + sqlColumns + ` FROM verified_questions v WHERE v.account_id = $1 AND v.namespace_id = $2 AND v.id = $3`
	sqlLock = sqlGet + ` FOR UPDATE`
	sqlList = `
		SELECT ` + sqlColumns + ` FROM verified_questions v
		WHERE v.account_id = $1 AND v.namespace_id = $2 AND v.id < $3 AND ($4 = '' AND v.status <> 'retired' OR v.status = $4)
		ORDER BY v.id DESC LIMIT $5`
	sqlCount = `SELECT count(*) FROM (SELECT FROM verified_questions WHERE account_id = $1 AND namespace_id = $2 AND status = 'verified' LIMIT $3) v`

	sqlInsert = `
		INSERT INTO verified_questions (account_id, namespace_id, id, revision, status, reason, content, needs, author_id, author, verified_at, created_at)
		VALUES ($1, $2, $3, 1, 'verified', '', $4, $5, $6, $7, $8, $8)`
	sqlUpdate = `
		UPDATE verified_questions SET revision = revision + 1, status = 'verified', reason = '', content = $4, needs = $5, author_id = $6, author = $7, verified_at = $8
		WHERE account_id = $1 AND namespace_id = $2 AND id = $3`
	sqlRetire = `
		UPDATE verified_questions SET revision = revision + 1, status = 'retired' WHERE account_id = $1 AND namespace_id = $2 AND id = $3`
	sqlSuspend = `
		UPDATE verified_questions SET revision = revision + 1, status = 'suspended', reason = $5
		WHERE account_id = $1 AND namespace_id = $2 AND id = $3 AND revision = $4 AND status = 'verified'`

	sqlDeleteWordings = `DELETE FROM verified_wordings WHERE account_id = $1 AND namespace_id = $2 AND id = $3`
	sqlInsertWordings = `
		INSERT INTO verified_wordings (account_id, namespace_id, id, shape, key, form, wording)
		SELECT $1, $2, $3, shape, key, form, wording FROM unnest($4::text[], $5::bigint[], $6::bigint[], $7::smallint[]) AS w(shape, key, form, wording)
		ON CONFLICT (account_id, namespace_id, shape, key, id, form) DO NOTHING`

	// The different shapes of a namespace are few. Each is found with one lookup in the index.
	sqlShapes = `
		WITH RECURSIVE shapes AS (
			(SELECT shape FROM verified_wordings WHERE account_id = $1 AND namespace_id = $2 ORDER BY shape LIMIT 1)
			UNION ALL
			SELECT (SELECT w.shape FROM verified_wordings w WHERE w.account_id = $1 AND w.namespace_id = $2 AND w.shape > s.shape ORDER BY w.shape LIMIT 1)
			FROM shapes s WHERE s.shape IS NOT NULL)
		SELECT shape FROM shapes WHERE shape IS NOT NULL`
	// The inner LIMIT makes each key one lookup in the index.
	sqlFind = `
		SELECT w.shape, w.key, w.wording, ` + sqlColumns + `
		FROM unnest($3::text[], $4::bigint[]) AS k(shape, key), LATERAL (
			SELECT shape, key, wording, id FROM verified_wordings
			WHERE account_id = $1 AND namespace_id = $2 AND shape = k.shape AND key = k.key LIMIT 20) w
		JOIN verified_questions v ON v.account_id = $1 AND v.namespace_id = $2 AND v.id = w.id AND v.status = 'verified'
		LIMIT 50`
)

func scanned(q *Question) []any {
	return []any{
		&q.Account, &q.Namespace, &q.ID, &q.Revision, &q.Status, &q.Reason, &q.Content, &q.Needs, &q.Author, &q.VerifiedAt, &q.CreatedAt,
	}
}

// selectQuestion returns nil if there is none.
func selectQuestion(ctx context.Context, db postgres.Querier, account, namespace, id uuid.UUID) (*Question, error) {
	return oneQuestion(db.QueryRow(ctx, sqlGet, account, namespace, id))
}

func lockQuestion(ctx context.Context, tx pgx.Tx, account, namespace, id uuid.UUID) (*Question, error) {
	return oneQuestion(tx.QueryRow(ctx, sqlLock, account, namespace, id))
}

func oneQuestion(row pgx.Row) (*Question, error) {
	var found Question

	err := row.Scan(scanned(&found)...)
	if postgres.NoRows(err) {
		return nil, nil //nolint:nilnil // there is none
	}

	return &found, err
}

func selectQuestions(ctx context.Context, db postgres.Querier, account, namespace, after uuid.UUID, status Status, limit int) ([]Question, error) {
	rows, err := db.Query(ctx, sqlList, account, namespace, after, string(status), limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (q Question, err error) {
		err = row.Scan(scanned(&q)...)

		return q, err
	})
}

func countQuestions(ctx context.Context, tx pgx.Tx, account, namespace uuid.UUID, most int) (count int, err error) {
	err = tx.QueryRow(ctx, sqlCount, account, namespace, most).Scan(&count)

	return count, err
}

func saveQuestion(ctx context.Context, tx pgx.Tx, who auth.Principal, statement string, q Question, now time.Time) error {
	content, err := json.Marshal(q.Content)
	if err != nil {
		return err
	}

	needs, err := json.Marshal(q.Needs)
	if err != nil {
		return err
	}

	_, err = tx.Exec(ctx, statement, q.Account, q.Namespace, q.ID, string(content), string(needs), who.Account, who.Username, now)

	return err
}

func insertQuestion(ctx context.Context, tx pgx.Tx, who auth.Principal, q Question, now time.Time) error {
	return saveQuestion(ctx, tx, who, sqlInsert, q, now)
}

func updateQuestion(ctx context.Context, tx pgx.Tx, who auth.Principal, q Question, now time.Time) error {
	return saveQuestion(ctx, tx, who, sqlUpdate, q, now)
}

func retireQuestion(ctx context.Context, tx pgx.Tx, q Question) error {
	_, err := tx.Exec(ctx, sqlRetire, q.Account, q.Namespace, q.ID)

	return err
}

// suspendQuestion reports whether the question was verified and had the same revision.
func suspendQuestion(ctx context.Context, tx pgx.Tx, q Question, reason string) (bool, error) {
	tag, err := tx.Exec(ctx, sqlSuspend, q.Account, q.Namespace, q.ID, q.Revision, reason)

	return tag.RowsAffected() == 1, err
}

func deleteWordings(ctx context.Context, tx pgx.Tx, q Question) error {
	_, err := tx.Exec(ctx, sqlDeleteWordings, q.Account, q.Namespace, q.ID)

	return err
}

// insertWordings adds the question to the index.
func insertWordings(ctx context.Context, tx pgx.Tx, q Question) error {
	var (
		shapes      []string
		keys, forms []int64
		wordings    []int16
		seen        = map[entry]bool{}
	)

	for i, w := range q.prepared() {
		for _, e := range w.entries() {
			same := entry{shape: e.shape, form: e.form}
			if e.shape == nearShape {
				same = e
			}

			if !seen[same] {
				seen[same] = true
				shapes, keys, forms, wordings = append(shapes, e.shape), append(keys, e.key), append(forms, e.form), append(wordings, int16(i))
			}
		}
	}

	_, err := tx.Exec(ctx, sqlInsertWordings, q.Account, q.Namespace, q.ID, shapes, keys, forms, wordings)

	return err
}

func selectShapes(ctx context.Context, db postgres.Querier, account, namespace uuid.UUID) ([]string, error) {
	rows, err := db.Query(ctx, sqlShapes, account, namespace)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// selectCandidates returns the verified questions with one of the keys.
func selectCandidates(ctx context.Context, db postgres.Querier, account, namespace uuid.UUID, shapes []string, keys []int64) ([]candidate, error) {
	rows, err := db.Query(ctx, sqlFind, account, namespace, shapes, keys)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (c candidate, err error) {
		err = row.Scan(append([]any{&c.shape, &c.key, &c.wording}, scanned(&c.Question)...)...)

		return c, err
	})
}
