package benchmark

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/verified"
)

const (
	sqlColumns = `
		account_id, namespace_id, id, status, mode, model, provider, release, caller, author_id, author, conversation_id, previous_id, questions,
		answered_right, answered_wrong, refused, asked_back, failed, better, worse, error_code, error_message, created_at, finished_at`
	sqlGet  = `SELECT` + sqlColumns + ` FROM benchmarks WHERE account_id = $1 AND namespace_id = $2 AND id = $3`
	sqlList = `SELECT` + sqlColumns + ` FROM benchmarks WHERE account_id = $1 AND namespace_id = $2 AND id < $3 ORDER BY id DESC LIMIT $4`
	sqlLast = `
		SELECT id FROM benchmarks WHERE account_id = $1 AND namespace_id = $2 AND mode = $3 AND status = 'completed' ORDER BY id DESC LIMIT 1`

	sqlInsert = `
		INSERT INTO benchmarks (account_id, namespace_id, id, status, mode, model, provider, release, caller, author_id, author, previous_id, created_at)
		VALUES ($1, $2, $3, 'running', $4, $5, $6, $7, $8::jsonb, $9, $10, $11, $12)`
	sqlForget = `
		WITH old AS (
			DELETE FROM benchmarks WHERE account_id = $1 AND namespace_id = $2 AND status <> 'running' AND id IN (
				SELECT id FROM benchmarks WHERE account_id = $1 AND namespace_id = $2 ORDER BY id DESC OFFSET $3 LIMIT 10)
			RETURNING id),
		results AS (DELETE FROM benchmark_results WHERE account_id = $1 AND benchmark_id IN (SELECT id FROM old))
		DELETE FROM benchmark_datasets WHERE account_id = $1 AND benchmark_id IN (SELECT id FROM old)`
	sqlEnd = `
		UPDATE benchmarks SET status = $4, error_code = $5, error_message = $6, finished_at = $7
		WHERE account_id = $1 AND namespace_id = $2 AND id = $3 AND status = 'running'`
	sqlHoldRunning  = `SELECT 1 FROM benchmarks WHERE account_id = $1 AND namespace_id = $2 AND id = $3 AND status = 'running' FOR UPDATE`
	sqlQuestions    = `UPDATE benchmarks SET questions = $4 WHERE account_id = $1 AND namespace_id = $2 AND id = $3 AND status = 'running'`
	sqlConversation = `UPDATE benchmarks SET conversation_id = $4 WHERE account_id = $1 AND namespace_id = $2 AND id = $3`
	sqlCount        = `
		UPDATE benchmarks SET answered_right = answered_right + ($4 = 'right')::int, answered_wrong = answered_wrong + ($4 = 'wrong')::int,
			refused = refused + ($4 = 'refused')::int, asked_back = asked_back + ($4 = 'asked_back')::int, failed = failed + ($4 = 'failed')::int,
			better = better + ($5 = 'better')::int, worse = worse + ($5 = 'worse')::int
		WHERE account_id = $1 AND namespace_id = $2 AND id = $3`

	sqlInsertResults = `
		INSERT INTO benchmark_results (account_id, benchmark_id, question_id, revision, question, outcome, detail, data, meaning)
		SELECT $1, $2, id, revision, question, '', '', '', '' FROM unnest($3::uuid[], $4::bigint[], $5::text[]) AS q(id, revision, question)
		ON CONFLICT (account_id, benchmark_id, question_id) DO NOTHING`
	sqlBeginResult = `
		UPDATE benchmark_results SET revision = $4, question = $5, run_id = $6, data = $7, meaning = $8
		WHERE account_id = $1 AND benchmark_id = $2 AND question_id = $3`
	sqlFinishResult = `
		UPDATE benchmark_results SET outcome = $4, detail = $5, row_count = $6, expected = $7, data = $8
		WHERE account_id = $1 AND benchmark_id = $2 AND question_id = $3 AND outcome = ''`

	sqlResultColumns = ` question_id, revision, question, outcome, detail, run_id, row_count, expected, data, meaning`
	sqlResults       = `
		SELECT` + sqlResultColumns + ` FROM benchmark_results
		WHERE account_id = $1 AND benchmark_id = $2 AND question_id < $3 ORDER BY question_id DESC LIMIT $4`
	sqlOpen = `
		SELECT` + sqlResultColumns + ` FROM benchmark_results
		WHERE account_id = $1 AND benchmark_id = $2 AND question_id < $3 AND outcome = '' ORDER BY question_id DESC LIMIT $4`
	sqlSame     = `SELECT` + sqlResultColumns + ` FROM benchmark_results WHERE account_id = $1 AND benchmark_id = $2 AND question_id = ANY($3)`
	sqlOutcomes = `SELECT question_id, outcome FROM benchmark_results WHERE account_id = $1 AND benchmark_id = $2`
	sqlOutcome  = `SELECT outcome FROM benchmark_results WHERE account_id = $1 AND benchmark_id = $2 AND question_id = $3`

	sqlOtherRevisions = `
		SELECT EXISTS (
			SELECT FROM benchmark_results r
			LEFT JOIN verified_questions v ON v.account_id = $1 AND v.namespace_id = $2 AND v.id = r.question_id AND v.revision = r.revision
			WHERE r.account_id = $1 AND r.benchmark_id = $3 AND v.id IS NULL)`

	sqlInsertDataset = `
		INSERT INTO benchmark_datasets (account_id, benchmark_id, dataset_account, dataset_namespace, dataset_id, definition_revision, semantics_revision)
		VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (account_id, benchmark_id, dataset_account, dataset_id) DO NOTHING`
	sqlDatasets = `
		SELECT benchmark_id, dataset_account, dataset_namespace, dataset_id, definition_revision, semantics_revision FROM benchmark_datasets
		WHERE account_id = $1 AND benchmark_id = ANY($2)`
)

func scanBenchmark(row pgx.CollectableRow) (b Benchmark, err error) {
	var (
		conversation, previous *uuid.UUID
		code, message          string
		finished               *time.Time
	)

	c := &b.Counts
	err = row.Scan(&b.Account, &b.Namespace, &b.ID, &b.Status, &b.Mode, &b.Model, &b.Provider, &b.Release, &b.caller, &b.authorID, &b.Author, &conversation,
		&previous, &b.Questions, &c.Right, &c.Wrong, &c.Refused, &c.AskedBack, &c.Failed, &b.Better, &b.Worse, &code, &message, &b.CreatedAt, &finished)

	if conversation != nil {
		b.conversation = *conversation
	}

	if previous != nil {
		b.Previous = *previous
	}

	if finished != nil {
		b.FinishedAt = *finished
	}

	if code != "" {
		b.Error = fault.New(fault.Code(code), message)
	}

	return b, err
}

// selectBenchmark returns nil if there is none.
func selectBenchmark(ctx context.Context, q postgres.Querier, account, namespace, id uuid.UUID) (*Benchmark, error) {
	rows, err := q.Query(ctx, sqlGet, account, namespace, id)
	if err != nil {
		return nil, err
	}

	found, err := pgx.CollectRows(rows, scanBenchmark)
	if err != nil || len(found) == 0 {
		return nil, err
	}

	return &found[0], nil
}

func selectBenchmarks(ctx context.Context, q postgres.Querier, account, namespace, after uuid.UUID, limit int) ([]Benchmark, error) {
	rows, err := q.Query(ctx, sqlList, account, namespace, after, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, scanBenchmark)
}

// selectLast returns the last completed benchmark of the namespace with the same mode; uuid.Nil if there is none.
func selectLast(ctx context.Context, q postgres.Querier, of Benchmark) (last uuid.UUID, err error) {
	err = q.QueryRow(ctx, sqlLast, of.Account, of.Namespace, string(of.Mode)).Scan(&last)
	if postgres.NoRows(err) {
		err = nil
	}

	return last, err
}

func insertBenchmark(ctx context.Context, tx pgx.Tx, b Benchmark) error {
	caller, err := json.Marshal(b.caller) //nolint:musttag // it is read by the same type
	if err != nil {
		return err
	}

	_, err = tx.Exec(ctx, sqlInsert, b.Account, b.Namespace, b.ID, string(b.Mode), b.Model, b.Provider, b.Release, string(caller), b.authorID, b.Author,
		orNull(b.Previous), b.CreatedAt)

	return err
}

// forgetOld deletes the oldest benchmarks of a namespace that has more than the given number.
func forgetOld(ctx context.Context, tx pgx.Tx, of Benchmark, keep int) error {
	_, err := tx.Exec(ctx, sqlForget, of.Account, of.Namespace, keep)

	return err
}

func orNull(id uuid.UUID) *uuid.UUID {
	if id == uuid.Nil {
		return nil
	}

	return &id
}

// endBenchmark reports whether the benchmark was running.
func endBenchmark(ctx context.Context, tx pgx.Tx, of Args, as Status, why *fault.Error, now time.Time) (bool, error) {
	code, message := "", ""
	if why != nil {
		code, message = string(why.Code), why.Message
	}

	tag, err := tx.Exec(ctx, sqlEnd, of.Account, of.Namespace, of.Benchmark, string(as), code, message, now)

	return tag.RowsAffected() == 1, err
}

// holdRunning reports whether the benchmark is running, and keeps it so until the transaction ends.
func holdRunning(ctx context.Context, tx pgx.Tx, b Benchmark) (bool, error) {
	tag, err := tx.Exec(ctx, sqlHoldRunning, b.Account, b.Namespace, b.ID)

	return tag.RowsAffected() == 1, err
}

func setQuestions(ctx context.Context, tx pgx.Tx, b Benchmark, count int) (bool, error) {
	tag, err := tx.Exec(ctx, sqlQuestions, b.Account, b.Namespace, b.ID, count)

	return tag.RowsAffected() == 1, err
}

func setConversation(ctx context.Context, tx pgx.Tx, b Benchmark) error {
	_, err := tx.Exec(ctx, sqlConversation, b.Account, b.Namespace, b.ID, b.conversation)

	return err
}

func insertResults(ctx context.Context, tx pgx.Tx, b Benchmark, list []verified.Question) error {
	ids, revisions, texts := make([]uuid.UUID, len(list)), make([]int64, len(list)), make([]string, len(list))
	for i, q := range list {
		ids[i], revisions[i], texts[i] = q.ID, q.Revision, q.Asked()
	}

	_, err := tx.Exec(ctx, sqlInsertResults, b.Account, b.ID, ids, revisions, texts)

	return err
}

func beginResult(ctx context.Context, tx pgx.Tx, b Benchmark, r Result) error {
	_, err := tx.Exec(ctx, sqlBeginResult, b.Account, b.ID, r.Question, r.Revision, r.Text, r.Run, r.data, r.meaning)

	return err
}

// finishResult records the outcome and counts it.
func finishResult(ctx context.Context, tx pgx.Tx, b Benchmark, r Result, change Change) error {
	tag, err := tx.Exec(ctx, sqlFinishResult, b.Account, b.ID, r.Question, string(r.Outcome), r.Detail, r.Rows, r.Expected, r.data)
	if err != nil || tag.RowsAffected() == 0 {
		return err
	}

	_, err = tx.Exec(ctx, sqlCount, b.Account, b.Namespace, b.ID, string(r.Outcome), string(change))

	return err
}

func scanResult(row pgx.CollectableRow) (r Result, err error) {
	var run *uuid.UUID

	err = row.Scan(&r.Question, &r.Revision, &r.Text, &r.Outcome, &r.Detail, &run, &r.Rows, &r.Expected, &r.data, &r.meaning)
	if run != nil {
		r.Run = *run
	}

	return r, err
}

func selectResults(ctx context.Context, q postgres.Querier, account, benchmark, after uuid.UUID, limit int) ([]Result, error) {
	return manyResults(q.Query(ctx, sqlResults, account, benchmark, after, limit))
}

// selectOpen returns the next results without an outcome.
func selectOpen(ctx context.Context, q postgres.Querier, b Benchmark, after uuid.UUID, limit int) ([]Result, error) {
	return manyResults(q.Query(ctx, sqlOpen, b.Account, b.ID, after, limit))
}

func manyResults(rows pgx.Rows, err error) ([]Result, error) {
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, scanResult)
}

// selectSame returns the results of the same questions in another benchmark.
func selectSame(ctx context.Context, q postgres.Querier, account, benchmark uuid.UUID, of []Result) (map[uuid.UUID]*Result, error) {
	ids := make([]uuid.UUID, len(of))
	for i, r := range of {
		ids[i] = r.Question
	}

	list, err := manyResults(q.Query(ctx, sqlSame, account, benchmark, ids))
	found := map[uuid.UUID]*Result{}

	for i := range list {
		found[list[i].Question] = &list[i]
	}

	return found, err
}

func selectOutcomes(ctx context.Context, q postgres.Querier, account, benchmark uuid.UUID) (map[uuid.UUID]Outcome, error) {
	rows, err := q.Query(ctx, sqlOutcomes, account, benchmark)
	if err != nil {
		return nil, err
	}

	var (
		found   = map[uuid.UUID]Outcome{}
		id      uuid.UUID
		outcome Outcome
	)

	_, err = pgx.ForEachRow(rows, []any{&id, &outcome}, func() error {
		found[id] = outcome

		return nil
	})

	return found, err
}

// selectOutcome returns the outcome of a question; empty if the benchmark has none.
func selectOutcome(ctx context.Context, q postgres.Querier, account, benchmark, question uuid.UUID) (outcome Outcome, err error) {
	err = q.QueryRow(ctx, sqlOutcome, account, benchmark, question).Scan(&outcome)
	if postgres.NoRows(err) {
		err = nil
	}

	return outcome, err
}

// hasOtherRevisions reports whether a question of the benchmark was changed since.
func hasOtherRevisions(ctx context.Context, q postgres.Querier, b Benchmark) (has bool, err error) {
	err = q.QueryRow(ctx, sqlOtherRevisions, b.Account, b.Namespace, b.ID).Scan(&has)

	return has, err
}

func insertDatasets(ctx context.Context, tx pgx.Tx, b Benchmark, list []dataset) error {
	batch := &pgx.Batch{}
	for _, d := range list {
		batch.Queue(sqlInsertDataset, b.Account, b.ID, d.account, d.namespace, d.id, d.definition, d.semantics)
	}

	return tx.SendBatch(ctx, batch).Close()
}

// selectDatasets returns the datasets that the questions of benchmarks need, by benchmark.
func selectDatasets(ctx context.Context, q postgres.Querier, account uuid.UUID, of []Benchmark) (map[uuid.UUID][]dataset, error) {
	ids := make([]uuid.UUID, len(of))
	for i, b := range of {
		ids[i] = b.ID
	}

	rows, err := q.Query(ctx, sqlDatasets, account, ids)
	if err != nil {
		return nil, err
	}

	var (
		found     = map[uuid.UUID][]dataset{}
		benchmark uuid.UUID
		d         dataset
	)

	_, err = pgx.ForEachRow(rows, []any{&benchmark, &d.account, &d.namespace, &d.id, &d.definition, &d.semantics}, func() error {
		found[benchmark] = append(found[benchmark], d)

		return nil
	})

	return found, err
}
