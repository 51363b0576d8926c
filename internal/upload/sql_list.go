package upload

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/internal/postgres"
)

const (
	sqlSelectSessions = `
		SELECT id, status, created_at, expires_at FROM upload_sessions
		WHERE account_id = $1 AND ($2::uuid = '00000000-0000-0000-0000-000000000000' OR token_id = $2) AND id < $3 ORDER BY id DESC LIMIT $4`
	sqlSelectFilesOf = `
		SELECT session_id, id, filename, size, status, completed_at FROM upload_files
		WHERE account_id = $1 AND session_id = ANY($2) ORDER BY session_id, position`
)

// selectSessions returns sessions before an id, newest first, without their files. If token is not uuid.Nil, it returns only those that
// this token prepared.
func selectSessions(ctx context.Context, q postgres.Querier, account, token, before uuid.UUID, limit int) ([]Session, error) {
	rows, err := q.Query(ctx, sqlSelectSessions, account, token, before, limit)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (s Session, err error) {
		s.Account = account

		return s, row.Scan(&s.ID, &s.Status, &s.CreatedAt, &s.ExpiresAt)
	})
}

// selectFilesOf adds to each session what a list shows of its files.
func selectFilesOf(ctx context.Context, q postgres.Querier, account uuid.UUID, sessions []Session) error {
	ids, at := make([]uuid.UUID, len(sessions)), map[uuid.UUID]int{}
	for i, session := range sessions {
		ids[i], at[session.ID] = session.ID, i
	}

	rows, err := q.Query(ctx, sqlSelectFilesOf, account, ids)
	if err != nil {
		return err
	}

	var (
		session   uuid.UUID
		file      File
		completed *time.Time
	)

	_, err = pgx.ForEachRow(rows, []any{&session, &file.ID, &file.Name, &file.Size, &file.Status, &completed}, func() error {
		found := file
		if completed != nil {
			found.CompletedAt = *completed
		}

		sessions[at[session]].Files = append(sessions[at[session]].Files, found)

		return nil
	})

	return err
}
