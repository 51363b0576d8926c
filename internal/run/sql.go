package run

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/agent"
	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/query"
)

const (
	// Questions of one account are counted one after another.
	sqlLockAccount  = `SELECT pg_advisory_xact_lock(hashtextextended('runs ' || $1::text, 0))`
	sqlCountRunning = `SELECT count(*) FROM runs WHERE account_id = $1 AND status = 'running'`

	sqlInsertConversation = `
		INSERT INTO conversations (account_id, id, namespace_account, namespace_id, username, namespace, title, turns, created_at, active_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, 1, $8, $8)`
	sqlConversationColumns = `
		account_id, id, namespace_account, namespace_id, username, namespace, title, turns, created_at, active_at`
	sqlSelectConversation = `SELECT` + sqlConversationColumns + ` FROM conversations WHERE account_id = $1 AND id = $2`
	sqlLockConversation   = sqlSelectConversation + ` FOR UPDATE`
	sqlTouchConversation  = `
		UPDATE conversations SET turns = turns + 1, active_at = greatest(active_at, $3) WHERE account_id = $1 AND id = $2`
	sqlDeleteConversation  = `DELETE FROM conversations WHERE account_id = $1 AND id = $2`
	sqlSelectConversations = `
		SELECT` + sqlConversationColumns + ` FROM conversations
		WHERE account_id = $1 AND (active_at, id) < ($2, $3) ORDER BY active_at DESC, id DESC LIMIT $4`
	sqlSelectConversationsOf = `
		SELECT` + sqlConversationColumns + ` FROM conversations
		WHERE account_id = $1 AND namespace_id = $5 AND (active_at, id) < ($2, $3) ORDER BY active_at DESC, id DESC LIMIT $4`
	sqlUpdateTitle = `UPDATE conversations SET title = $3 WHERE account_id = $1 AND id = $2`

	sqlInsertRun = `
		INSERT INTO runs (account_id, id, conversation_id, agent, status, question, request, caller, trace_id, last_seq, created_at, deadline_at)
		VALUES ($1, $2, $3, $4, 'running', $5, $6::jsonb, $7::jsonb, $8, 1, $9, $10)`
	sqlRunColumns = `
		account_id, id, conversation_id, agent, status, question, request, caller, trace_id, last_seq, result, error_code, error_message,
		created_at, deadline_at, finished_at`
	sqlSelectRun   = `SELECT` + sqlRunColumns + ` FROM runs WHERE account_id = $1 AND id = $2`
	sqlLockRun     = sqlSelectRun + ` FOR UPDATE`
	sqlSelectTurns = `SELECT` + sqlRunColumns + ` FROM runs WHERE account_id = $1 AND conversation_id = $2 ORDER BY id`
	sqlSelectLate  = `SELECT account_id, id FROM runs WHERE status = 'running' AND deadline_at < $1 ORDER BY deadline_at LIMIT $2`

	sqlInsertFirst = `
		INSERT INTO run_events (account_id, run_id, seq, kind, step, body, at) VALUES ($1, $2, 1, $3, 0, $4, $5)`
	sqlAppendEvent = `
		WITH next AS (
			UPDATE runs SET last_seq = last_seq + 1 WHERE account_id = $1 AND id = $2 AND status = 'running' RETURNING last_seq)
		INSERT INTO run_events (account_id, run_id, seq, kind, step, body, at) SELECT $1, $2, last_seq, $3, $4, $5, $6 FROM next`
	// The end has its content in the row of the run.
	sqlEndRun = `
		WITH ended AS (
			UPDATE runs SET status = $3, last_seq = last_seq + 1, result = $4, error_code = $5, error_message = $6, finished_at = $7
			WHERE account_id = $1 AND id = $2 AND status = 'running' RETURNING last_seq)
		INSERT INTO run_events (account_id, run_id, seq, kind, step, body, at) SELECT $1, $2, last_seq, $8, 0, '{}', $7 FROM ended`
	sqlSelectEvents = `
		SELECT seq, kind, step, body FROM run_events WHERE account_id = $1 AND run_id = $2 AND seq > $3 ORDER BY seq`
	sqlSelectSteps = `
		SELECT body FROM run_events WHERE account_id = $1 AND run_id = $2 AND kind = 'step' ORDER BY step`
	// Runs without news cost one look at their row.
	sqlSelectNews = `
		SELECT w.account_id, w.run_id, e.seq, e.kind, e.step, e.body
		FROM unnest($1::uuid[], $2::uuid[], $3::bigint[]) AS w (account_id, run_id, after)
		JOIN runs r ON r.account_id = w.account_id AND r.id = w.run_id AND r.last_seq > w.after
		CROSS JOIN LATERAL (
			SELECT seq, kind, step, body FROM run_events n
			WHERE n.account_id = w.account_id AND n.run_id = w.run_id AND n.seq > w.after ORDER BY n.seq LIMIT 100) e
		ORDER BY w.account_id, w.run_id, e.seq`

	sqlInsertRead = `
		INSERT INTO run_reads (account_id, run_id, dataset_account, dataset_id, dataset, snapshot_id, committed_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING`
	sqlSelectReads = `
		SELECT dataset_account, dataset_id, dataset, snapshot_id, committed_at FROM run_reads WHERE account_id = $1 AND run_id = $2 ORDER BY dataset`

	sqlInsertObject = `
		INSERT INTO run_objects (account_id, run_id, step, state, object_key, remove_at) VALUES ($1, $2, $3, 'writing', $4, $5)`
	sqlKeepObject = `
		UPDATE run_objects SET state = 'kept', size = $5, remove_at = NULL
		WHERE account_id = $1 AND run_id = $2 AND step = $3 AND object_key = $4 AND state = 'writing'`

	sqlMakePartition = `SELECT run_events_partition($1)`
	sqlDropEvents    = `SELECT run_events_drop($1)`
	sqlClaimObjects  = `
		UPDATE run_objects SET state = 'removing' WHERE object_key IN (
			SELECT object_key FROM run_objects WHERE remove_at < $1 ORDER BY remove_at LIMIT $2 FOR UPDATE SKIP LOCKED)
		RETURNING account_id, run_id, object_key`
	sqlDeleteObject = `DELETE FROM run_objects WHERE account_id = $1 AND run_id = $2 AND object_key = $3 AND state = 'removing'`
	sqlKnownObjects = `SELECT object_key, '' FROM run_objects WHERE object_key = ANY($1)`
	sqlKeptObjects  = `SELECT object_key, size FROM run_objects WHERE state = 'kept' AND object_key > $1 ORDER BY object_key LIMIT $2`

	sqlSelectReaders = `SELECT account_id, run_id FROM run_reads WHERE dataset_account = $1 AND dataset_id = $2 LIMIT $3`
	sqlEraseEvents   = `DELETE FROM run_events WHERE account_id = $1 AND run_id = $2 AND kind NOT IN ('run-started', 'run-completed', 'run-cancelled', 'error')`
	sqlEraseResult   = `UPDATE runs SET result = CASE WHEN result IS NOT NULL THEN $3 END, error_message = '' WHERE account_id = $1 AND id = $2`
	sqlDeleteRead    = `DELETE FROM run_reads WHERE account_id = $1 AND run_id = $2 AND dataset_id = $3`

	sqlDropObjects  = `UPDATE run_objects SET remove_at = $3 WHERE account_id = $1 AND run_id = ANY($2)`
	sqlDeleteEvents = `DELETE FROM run_events WHERE account_id = $1 AND run_id = ANY($2)`
	sqlDeleteReads  = `DELETE FROM run_reads WHERE account_id = $1 AND run_id = ANY($2)`
	sqlDeleteRuns   = `DELETE FROM runs WHERE account_id = $1 AND id = ANY($2)`
)

func lockRunning(ctx context.Context, tx pgx.Tx, account uuid.UUID) (running int, err error) {
	if _, err := tx.Exec(ctx, sqlLockAccount, account); err != nil {
		return 0, err
	}

	err = tx.QueryRow(ctx, sqlCountRunning, account).Scan(&running)

	return running, err
}

func insertConversation(ctx context.Context, tx pgx.Tx, c Conversation) error {
	_, err := tx.Exec(ctx, sqlInsertConversation, c.Account, c.ID, c.namespaceAccount, c.namespaceID, c.Username, c.Namespace, c.Title, c.CreatedAt)

	return err
}

// selectConversation returns nil if there is none.
func selectConversation(ctx context.Context, q postgres.Querier, account, id uuid.UUID) (*Conversation, error) {
	return oneConversation(q.Query(ctx, sqlSelectConversation, account, id))
}

func lockConversation(ctx context.Context, tx pgx.Tx, account, id uuid.UUID) (*Conversation, error) {
	return oneConversation(tx.Query(ctx, sqlLockConversation, account, id))
}

func updateTitle(ctx context.Context, tx pgx.Tx, c Conversation) error {
	_, err := tx.Exec(ctx, sqlUpdateTitle, c.Account, c.ID, c.Title)

	return err
}

func touchConversation(ctx context.Context, tx pgx.Tx, c Conversation, now time.Time) error {
	_, err := tx.Exec(ctx, sqlTouchConversation, c.Account, c.ID, now)

	return err
}

func scanConversation(row pgx.CollectableRow) (c Conversation, err error) {
	err = row.Scan(&c.Account, &c.ID, &c.namespaceAccount, &c.namespaceID, &c.Username, &c.Namespace, &c.Title, &c.turns, &c.CreatedAt, &c.ActiveAt)

	return c, err
}

// selectConversations returns those of one namespace, or of all if it is uuid.Nil.
func selectConversations(ctx context.Context, q postgres.Querier, account, namespace uuid.UUID, after Position, limit int) ([]Conversation, error) {
	if after.ActiveAt.IsZero() {
		after = Position{ActiveAt: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), ID: uuid.Max}
	}

	statement, arguments := sqlSelectConversations, []any{account, after.ActiveAt, after.ID, limit}
	if namespace != uuid.Nil {
		statement, arguments = sqlSelectConversationsOf, append(arguments, namespace)
	}

	rows, err := q.Query(ctx, statement, arguments...)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, scanConversation)
}

func deleteConversation(ctx context.Context, tx pgx.Tx, account, id uuid.UUID) error {
	_, err := tx.Exec(ctx, sqlDeleteConversation, account, id)

	return err
}

func oneConversation(rows pgx.Rows, err error) (*Conversation, error) {
	if err != nil {
		return nil, err
	}

	found, err := pgx.CollectRows(rows, scanConversation)
	if err != nil || len(found) == 0 {
		return nil, err
	}

	return &found[0], nil
}

func insertRun(ctx context.Context, tx pgx.Tx, r Run) error {
	request, err := json.Marshal(r.Question)
	if err != nil {
		return err
	}

	asking, err := json.Marshal(r.caller) //nolint:musttag // it is read by the same type
	if err != nil {
		return err
	}

	_, err = tx.Exec(ctx, sqlInsertRun, r.Account, r.ID, r.Conversation, r.Agent, r.Question.Text, string(request), string(asking), r.TraceID[:],
		r.CreatedAt, r.DeadlineAt)

	return err
}

// selectRun returns nil if there is none.
func selectRun(ctx context.Context, q postgres.Querier, account, id uuid.UUID) (*Run, error) {
	return oneRun(q.Query(ctx, sqlSelectRun, account, id))
}

func lockRun(ctx context.Context, tx pgx.Tx, account, id uuid.UUID) (*Run, error) {
	return oneRun(tx.Query(ctx, sqlLockRun, account, id))
}

func oneRun(rows pgx.Rows, err error) (*Run, error) {
	if err != nil {
		return nil, err
	}

	found, err := pgx.CollectRows(rows, scanRun)
	if err != nil || len(found) == 0 {
		return nil, err
	}

	return &found[0], nil
}

func selectTurns(ctx context.Context, q postgres.Querier, account, conversation uuid.UUID) ([]Run, error) {
	rows, err := q.Query(ctx, sqlSelectTurns, account, conversation)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, scanRun)
}

func scanRun(row pgx.CollectableRow) (r Run, err error) {
	var (
		question, code, message string
		trace                   []byte
		result                  *string
		finished                *time.Time
	)

	err = row.Scan(&r.Account, &r.ID, &r.Conversation, &r.Agent, &r.Status, &question, &r.Question, &r.caller, &trace, &r.lastSeq, &result, &code, &message,
		&r.CreatedAt, &r.DeadlineAt, &finished)
	if err != nil {
		return r, err
	}

	r.Question.Text = question
	copy(r.TraceID[:], trace)

	if finished != nil {
		r.FinishedAt = *finished
	}

	if code != "" {
		r.Error = fault.New(fault.Code(code), message)
	}

	if result != nil {
		r.stored = &storedResult{}
		err = json.Unmarshal([]byte(*result), r.stored)
	}

	return r, err
}

func selectLate(ctx context.Context, q postgres.Querier, now time.Time, limit int) ([]Args, error) {
	rows, err := q.Query(ctx, sqlSelectLate, now, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, pgx.RowToStructByPos[Args])
}

func insertFirst(ctx context.Context, tx pgx.Tx, r Run, kind string, body json.RawMessage) error {
	_, err := tx.Exec(ctx, sqlInsertFirst, r.Account, r.ID, kind, string(body), r.CreatedAt)

	return err
}

// appendEvent returns false if the run has ended.
func appendEvent(ctx context.Context, tx pgx.Tx, account, run uuid.UUID, e agent.Event, now time.Time) (running bool, err error) {
	tag, err := tx.Exec(ctx, sqlAppendEvent, account, run, e.Kind, e.Index, string(e.Body), now)

	return tag.RowsAffected() == 1, err
}

// endRun returns false if the run has ended before.
func endRun(ctx context.Context, tx pgx.Tx, account, run uuid.UUID, e ending) (running bool, err error) {
	var result *string
	if e.result != nil {
		result = new(string(e.result))
	}

	tag, err := tx.Exec(ctx, sqlEndRun, account, run, e.status, result, e.failure.Code, e.failure.Message, e.at, e.kind)

	return tag.RowsAffected() == 1, err
}

func selectEvents(ctx context.Context, q postgres.Querier, account, run uuid.UUID, after int64) ([]Event, error) {
	rows, err := q.Query(ctx, sqlSelectEvents, account, run, after)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (e Event, err error) {
		var body string

		err = row.Scan(&e.Seq, &e.Kind, &e.Index, &body)
		e.Body = json.RawMessage(body)

		return e, err
	})
}

func selectSteps(ctx context.Context, q postgres.Querier, account, run uuid.UUID) ([]json.RawMessage, error) {
	rows, err := q.Query(ctx, sqlSelectSteps, account, run)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (json.RawMessage, error) {
		var body string
		err := row.Scan(&body)

		return json.RawMessage(body), err
	})
}

func selectNews(ctx context.Context, q postgres.Querier, wanted map[topicKey]int64) (map[topicKey][]Event, error) {
	var (
		accounts, runs []uuid.UUID
		afters         []int64
	)

	for key, after := range wanted {
		accounts, runs, afters = append(accounts, key.account), append(runs, key.run), append(afters, after)
	}

	rows, err := q.Query(ctx, sqlSelectNews, accounts, runs, afters)
	if err != nil {
		return nil, err
	}

	var (
		found = map[topicKey][]Event{}
		key   topicKey
		e     Event
		body  string
	)

	_, err = pgx.ForEachRow(rows, []any{&key.account, &key.run, &e.Seq, &e.Kind, &e.Index, &body}, func() error {
		e.Body = json.RawMessage(body)
		found[key] = append(found[key], e)

		return nil
	})

	return found, err
}

func insertReads(ctx context.Context, tx pgx.Tx, r Run, reads []query.Read) error {
	batch := &pgx.Batch{}
	for _, read := range reads {
		batch.Queue(sqlInsertRead, r.Account, r.ID, read.Account, read.ID, read.Dataset, read.Snapshot, read.CommittedAt)
	}

	return tx.SendBatch(ctx, batch).Close()
}

func selectReads(ctx context.Context, q postgres.Querier, account, run uuid.UUID) ([]query.Read, error) {
	rows, err := q.Query(ctx, sqlSelectReads, account, run)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, pgx.RowToStructByPos[query.Read])
}

func insertObject(ctx context.Context, tx pgx.Tx, r Run, step int, key string, removeAt time.Time) error {
	_, err := tx.Exec(ctx, sqlInsertObject, r.Account, r.ID, step, key, removeAt)

	return err
}

func keepObject(ctx context.Context, tx pgx.Tx, r Run, step int, key string, size int64) error {
	tag, err := tx.Exec(ctx, sqlKeepObject, r.Account, r.ID, step, key, size)
	if err == nil && tag.RowsAffected() == 0 {
		err = errEnded // it took so long that the object is gone
	}

	return err
}

func makePartition(ctx context.Context, tx pgx.Tx, week time.Time) error {
	_, err := tx.Exec(ctx, sqlMakePartition, week)

	return err
}

func dropEvents(ctx context.Context, tx pgx.Tx, before time.Time) error {
	_, err := tx.Exec(ctx, sqlDropEvents, before)

	return err
}

func claimObjects(ctx context.Context, q postgres.Querier, now time.Time, limit int) ([]removable, error) {
	rows, err := q.Query(ctx, sqlClaimObjects, now, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, pgx.RowToStructByPos[removable])
}

func deleteObject(ctx context.Context, q postgres.Querier, o removable) error {
	_, err := q.Exec(ctx, sqlDeleteObject, o.Account, o.Run, o.Key)

	return err
}

// stored is all that is in the store for runs. An object may have been begun several times.
func stored(db *postgres.DB) blob.Rows {
	return blob.Rows{
		Prefix: objectPrefix,
		Known: func(ctx context.Context, keys []string) (map[string]string, error) {
			return postgres.Map[string](ctx, db, sqlKnownObjects, keys)
		},
		Next: func(ctx context.Context, after string, limit int) (map[string]int64, error) {
			return postgres.Map[int64](ctx, db, sqlKeptObjects, after, limit)
		},
	}
}

func selectReaders(ctx context.Context, q postgres.Querier, account, dataset uuid.UUID, limit int) ([]Args, error) {
	rows, err := q.Query(ctx, sqlSelectReaders, account, dataset, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, pgx.RowToStructByPos[Args])
}

// eraseRun leaves the question and that it was answered.
func eraseRun(ctx context.Context, tx pgx.Tx, run Args, dataset uuid.UUID, withheld []byte, now time.Time) error {
	batch := &pgx.Batch{}
	batch.Queue(sqlDropObjects, run.Account, []uuid.UUID{run.Run}, now)
	batch.Queue(sqlEraseEvents, run.Account, run.Run)
	batch.Queue(sqlEraseResult, run.Account, run.Run, string(withheld))
	batch.Queue(sqlDeleteRead, run.Account, run.Run, dataset)

	return tx.SendBatch(ctx, batch).Close()
}

func deleteRuns(ctx context.Context, tx pgx.Tx, account uuid.UUID, runs []uuid.UUID, now time.Time) error {
	batch := &pgx.Batch{}
	batch.Queue(sqlDropObjects, account, runs, now)
	batch.Queue(sqlDropOpinions, account, runs, now)

	for _, statement := range []string{sqlDeleteEvents, sqlDeleteReads, sqlDeleteRuns} {
		batch.Queue(statement, account, runs)
	}

	return tx.SendBatch(ctx, batch).Close()
}

const (
	sqlOpinionColumns = ` account_id, run_id, revision, trace_id, state, thumbs_up, comment, sent, check_at, created_at`
	sqlSelectOpinions = `SELECT` + sqlOpinionColumns + ` FROM run_feedback WHERE account_id = $1 AND run_id = $2 ORDER BY revision`
	sqlTouchRun       = `SELECT 1 FROM runs WHERE account_id = $1 AND id = $2 FOR UPDATE`
	sqlInsertOpinion  = `
		INSERT INTO run_feedback (account_id, run_id, revision, trace_id, state, thumbs_up, comment, sent, check_at, created_at)
		VALUES ($1, $2, $3, $4, 'sending', $5, $6, true, $7, $8)`
	// Another that may reach the store later than this one leaves doubts.
	sqlRecordOpinion = `
		UPDATE run_feedback SET state = 'recorded', check_at = CASE WHEN EXISTS (
			SELECT FROM run_feedback o WHERE o.account_id = $1 AND o.run_id = $2 AND o.revision <> $3 AND (o.check_at IS NOT NULL OR o.revision > $3)
		) THEN $4::timestamptz END
		WHERE account_id = $1 AND run_id = $2 AND revision = $3 AND state = 'sending'`
	sqlForgetSent = `
		UPDATE run_feedback SET sent = false WHERE account_id = $1 AND run_id = $2 AND revision < $3 AND sent AND check_at IS NULL`
	sqlRefuseOpinion = `
		UPDATE run_feedback SET state = 'refused', check_at = $4 WHERE account_id = $1 AND run_id = $2 AND revision = $3`
	sqlDoubtOpinion = `
		UPDATE run_feedback SET check_at = $4 WHERE account_id = $1 AND run_id = $2 AND revision = $3`
	sqlSelectUnsure = `
		SELECT account_id, run_id FROM (
			SELECT account_id, run_id, check_at FROM run_feedback WHERE check_at <= $1 ORDER BY check_at LIMIT $2) AS due
		GROUP BY account_id, run_id ORDER BY min(check_at)`
	sqlPostponeOpinions = `
		UPDATE run_feedback SET check_at = $4 WHERE account_id = $1 AND run_id = $2 AND check_at <= $3`
	// Nothing may have begun since the look at the rows: it would not know of what was sent in between.
	sqlSettleOpinions = `
		UPDATE run_feedback SET check_at = NULL, sent = (revision = $4), state = CASE state WHEN 'sending' THEN 'refused' ELSE state END
		WHERE account_id = $1 AND run_id = $2
			AND NOT EXISTS (SELECT FROM run_feedback o WHERE o.account_id = $1 AND o.run_id = $2 AND o.revision > $3)`
	sqlDeleteOpinions = `DELETE FROM run_feedback WHERE account_id = $1 AND run_id = $2 AND revision <= $3`
	// What was said of deleted runs goes at once; the rows go when the store has forgotten it too.
	sqlDropOpinions = `
		UPDATE run_feedback SET thumbs_up = NULL, comment = '', check_at = CASE state WHEN 'sending' THEN check_at ELSE $3 END
		WHERE account_id = $1 AND run_id = ANY($2)`
)

func selectOpinions(ctx context.Context, q postgres.Querier, account, run uuid.UUID) ([]opinion, error) {
	rows, err := q.Query(ctx, sqlSelectOpinions, account, run)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (o opinion, err error) {
		var trace []byte

		err = row.Scan(&o.account, &o.run, &o.revision, &trace, &o.state, &o.up, &o.comment, &o.sent, &o.checkAt, &o.at)
		copy(o.trace[:], trace)

		return o, err
	})
}

// insertOpinion gives an opinion the next number. NotFound if the run was deleted.
func insertOpinion(ctx context.Context, tx pgx.Tx, next opinion, checkAt time.Time) (made opinion, before []opinion, err error) {
	tag, err := tx.Exec(ctx, sqlTouchRun, next.account, next.run)
	if err == nil && tag.RowsAffected() == 0 {
		err = fault.Absent()
	}

	if err != nil {
		return next, nil, err
	}

	if before, err = selectOpinions(ctx, tx, next.account, next.run); err != nil {
		return next, nil, err
	}

	next.revision = 1
	if len(before) > 0 {
		next.revision = before[len(before)-1].revision + 1
	}

	_, err = tx.Exec(ctx, sqlInsertOpinion, next.account, next.run, next.revision, next.trace[:], next.up, next.comment, checkAt, next.at)

	return next, before, err
}

// recordOpinion puts an opinion in force. It returns false if the run was deleted, or the opinion given up in between.
func recordOpinion(ctx context.Context, tx pgx.Tx, o opinion, now time.Time) (recorded bool, err error) {
	tag, err := tx.Exec(ctx, sqlTouchRun, o.account, o.run)
	if err != nil || tag.RowsAffected() == 0 {
		return false, err
	}

	tag, err = tx.Exec(ctx, sqlRecordOpinion, o.account, o.run, o.revision, now)
	if err != nil || tag.RowsAffected() == 0 {
		return false, err
	}

	_, err = tx.Exec(ctx, sqlForgetSent, o.account, o.run, o.revision)

	return true, err
}

func refuseOpinion(ctx context.Context, tx pgx.Tx, o opinion, now time.Time) error {
	_, err := tx.Exec(ctx, sqlRefuseOpinion, o.account, o.run, o.revision, now)

	return err
}

func selectUnsure(ctx context.Context, q postgres.Querier, now time.Time, limit int) ([]Args, error) {
	rows, err := q.Query(ctx, sqlSelectUnsure, now, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, pgx.RowToStructByPos[Args])
}

func postponeOpinions(ctx context.Context, q postgres.Querier, of Args, due, until time.Time) error {
	_, err := q.Exec(ctx, sqlPostponeOpinions, of.Account, of.Run, due, until)

	return err
}

// settleOpinions ends all doubts, unless there is a revision after the last that was seen.
func settleOpinions(ctx context.Context, tx pgx.Tx, of Args, last, inForce int64, now time.Time) error {
	if _, err := tx.Exec(ctx, sqlTouchRun, of.Account, of.Run); err != nil {
		return err
	}

	tag, err := tx.Exec(ctx, sqlSettleOpinions, of.Account, of.Run, last, inForce)
	if err == nil && tag.RowsAffected() == 0 {
		_, err = tx.Exec(ctx, sqlDoubtOpinion, of.Account, of.Run, last, now)
	}

	return err
}

func deleteOpinions(ctx context.Context, tx pgx.Tx, of Args, last int64) error {
	_, err := tx.Exec(ctx, sqlDeleteOpinions, of.Account, of.Run, last)

	return err
}
