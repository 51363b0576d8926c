package run

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

const (
	sqlOpinionColumns = ` account_id, run_id, revision, trace_id, state, thumbs_up, comment, sent, check_at, created_at`
	sqlSelectOpinions = `SELECT` + sqlOpinionColumns + ` FROM run_feedback WHERE account_id = $1 AND run_id = $2 ORDER BY revision`
	sqlSelectRatings  = `
		SELECT DISTINCT ON (run_id) run_id, thumbs_up, comment, created_at FROM run_feedback
		WHERE account_id = $1 AND run_id = ANY($2) AND state = 'recorded' ORDER BY run_id, revision DESC`
	sqlTouchRun      = `SELECT 1 FROM runs WHERE account_id = $1 AND id = $2 FOR UPDATE`
	sqlInsertOpinion = `
		INSERT INTO run_feedback (account_id, run_id, revision, trace_id, state, thumbs_up, comment, sent, check_at, created_at)
		VALUES ($1, $2, $3, $4, 'sending', $5, $6, true, $7, $8)`
	// If another revision may reach the store after this one, the content of the store is uncertain and is checked again.
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
	// Applies only if no revision was inserted since the rows were read: a newer one may not take into account what the
	// repair sent.
	sqlSettleOpinions = `
		UPDATE run_feedback SET check_at = NULL, sent = (revision = $4), state = CASE state WHEN 'sending' THEN 'refused' ELSE state END
		WHERE account_id = $1 AND run_id = $2
			AND NOT EXISTS (SELECT FROM run_feedback o WHERE o.account_id = $1 AND o.run_id = $2 AND o.revision > $3)`
	sqlDeleteOpinions = `DELETE FROM run_feedback WHERE account_id = $1 AND run_id = $2 AND revision <= $3`
	// The content of ratings of deleted runs is removed at once. The rows are deleted after the store has removed the ratings.
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

// setRatings sets the ratings in force of runs of one account.
func setRatings(ctx context.Context, q postgres.Querier, account uuid.UUID, runs []Run) error {
	ids := make([]uuid.UUID, len(runs))
	for i, one := range runs {
		ids[i] = one.ID
	}

	rows, err := q.Query(ctx, sqlSelectRatings, account, ids)
	if err != nil {
		return err
	}

	var (
		id    uuid.UUID
		up    *bool // nil means withdrawn
		found Feedback
	)

	_, err = pgx.ForEachRow(rows, []any{&id, &up, &found.Comment, &found.At}, func() error {
		if i := slices.Index(ids, id); up != nil {
			found.ThumbsUp = *up
			runs[i].Feedback = new(found)
		}

		return nil
	})

	return err
}

// insertOpinion inserts a revision with the next number and returns it with the revisions before it.
//
// Faults: NotFound if the run was deleted.
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

// recordOpinion puts a revision in force. It returns false if the run was deleted, or if the revision was refused, since it
// was inserted.
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

// settleOpinions marks the content of the store as certain, unless a revision newer than last exists. In that case the
// run is repaired again.
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
