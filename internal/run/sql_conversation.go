package run

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/postgres"
)

const (
	sqlInsertConversation = `
		INSERT INTO conversations (account_id, id, namespace_account, namespace_id, username, namespace, title, turns, created_at, active_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, 1, $8, $8)`
	sqlConversationColumns = `
		account_id, id, namespace_account, namespace_id, username, namespace, title, turns, created_at, active_at`
	sqlSelectConversation = `SELECT` + sqlConversationColumns + ` FROM conversations WHERE account_id = $1 AND id = $2`
	sqlLockConversation   = sqlSelectConversation + ` FOR UPDATE`
	sqlTouchConversation  = `
		UPDATE conversations SET turns = turns + 1, active_at = greatest(active_at, $3), namespace = $4 WHERE account_id = $1 AND id = $2`
	sqlDeleteConversation  = `DELETE FROM conversations WHERE account_id = $1 AND id = $2`
	sqlSelectConversations = `
		SELECT` + sqlConversationColumns + ` FROM conversations
		WHERE account_id = $1 AND (active_at, id) < ($2, $3) ORDER BY active_at DESC, id DESC LIMIT $4`
	sqlSelectConversationsOf = `
		SELECT` + sqlConversationColumns + ` FROM conversations
		WHERE account_id = $1 AND namespace_id = $5 AND (active_at, id) < ($2, $3) ORDER BY active_at DESC, id DESC LIMIT $4`
	sqlSelectFirstQuestion = `SELECT question FROM runs WHERE account_id = $1 AND conversation_id = $2 ORDER BY id LIMIT 1`
	sqlSelectAskers        = `SELECT id, status, caller FROM runs WHERE account_id = $1 AND conversation_id = $2`
	sqlUpdateTitle         = `UPDATE conversations SET title = $3 WHERE account_id = $1 AND id = $2`
)

func insertConversation(ctx context.Context, tx pgx.Tx, c Conversation) error {
	_, err := tx.Exec(ctx, sqlInsertConversation, c.Account, c.ID, c.namespaceAccount, c.namespaceID, c.Username, c.Namespace, c.Title, c.CreatedAt)

	return err
}

// selectConversation returns a conversation; nil if it does not exist.
func selectConversation(ctx context.Context, q postgres.Querier, account, id uuid.UUID) (*Conversation, error) {
	return oneConversation(q.Query(ctx, sqlSelectConversation, account, id))
}

func lockConversation(ctx context.Context, tx pgx.Tx, account, id uuid.UUID) (*Conversation, error) {
	return oneConversation(tx.Query(ctx, sqlLockConversation, account, id))
}

// selectFirstQuestion returns the first question of a conversation; false if it has none.
func selectFirstQuestion(ctx context.Context, q postgres.Querier, c Conversation) (question string, found bool, err error) {
	err = q.QueryRow(ctx, sqlSelectFirstQuestion, c.Account, c.ID).Scan(&question)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", false, nil
	}

	return question, true, err
}

func updateTitle(ctx context.Context, tx pgx.Tx, c Conversation) error {
	_, err := tx.Exec(ctx, sqlUpdateTitle, c.Account, c.ID, c.Title)

	return err
}

func touchConversation(ctx context.Context, tx pgx.Tx, c Conversation, now time.Time) error {
	_, err := tx.Exec(ctx, sqlTouchConversation, c.Account, c.ID, now, c.Namespace)

	return err
}

func scanConversation(row pgx.CollectableRow) (c Conversation, err error) {
	err = row.Scan(&c.Account, &c.ID, &c.namespaceAccount, &c.namespaceID, &c.Username, &c.Namespace, &c.Title, &c.turns, &c.CreatedAt, &c.ActiveAt)

	return c, err
}

// selectConversations returns conversations of one namespace, or of all namespaces for uuid.Nil.
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

// selectAskers returns the runs of a conversation with only the fields that decide which tokens can access them.
func selectAskers(ctx context.Context, q postgres.Querier, account, conversation uuid.UUID) ([]Run, error) {
	rows, err := q.Query(ctx, sqlSelectAskers, account, conversation)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r Run, err error) {
		err = row.Scan(&r.ID, &r.Status, &r.caller)

		return r, err
	})
}
