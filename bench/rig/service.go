package rig

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/api"
	"quern.dev/quern/stack"
)

// Service is a quernd with a database of its own and people who have signed in.
type Service struct {
	*Quernd

	Database string // address of the database
	Accounts map[string]uuid.UUID
	Tokens   map[string]string
}

// StartService starts a service and signs ada, bob and eve in; stop ends the service and removes its database.
func (b *Bench) StartService(ctx context.Context, settings ...string) (s *Service, stop func(), err error) {
	database, drop, err := stack.CreateDatabase(ctx, "bench")
	if err != nil {
		return nil, nil, err
	}

	started, err := b.StartQuernd(ctx, database, settings...)
	if err != nil {
		drop()

		return nil, nil, err
	}

	stop = func() {
		started.Stop()
		drop()
	}

	s = &Service{Quernd: started, Database: database, Accounts: map[string]uuid.UUID{}, Tokens: map[string]string{}}

	for _, user := range []string{"ada", "bob", "eve"} {
		if err := s.signIn(ctx, user); err != nil {
			stop()

			return nil, nil, fmt.Errorf("signing %s in: %w", user, err)
		}
	}

	return s, stop, nil
}

// signIn creates the user's account and an API token for it, which outlives any measure.
func (s *Service) signIn(ctx context.Context, user string) error {
	token, err := AccessToken(ctx, user)
	if err != nil {
		return err
	}

	s.Tokens[user] = token

	var me api.Me
	if err := s.Ask(ctx, user, http.MethodGet, "/user/me", nil, &me); err != nil {
		return err
	}

	var made api.CreatedToken
	if err := s.Ask(ctx, user, http.MethodPost, "/user/tokens", api.NewToken{Name: "bench", Role: new(api.NewTokenRoleOwner)}, &made); err != nil {
		return err
	}

	s.Accounts[user], s.Tokens[user] = me.ID, made.Token

	return nil
}

func (s *Service) Ask(ctx context.Context, user, method, path string, body, answer any) error {
	request, err := s.Request(ctx, user, method, path, body)
	if err != nil {
		return err
	}

	text, err := Get(request)
	if err != nil {
		return err
	}

	return json.Unmarshal(text, answer)
}

// Request returns a request of a user to the API. A nil body means no body.
func (s *Service) Request(ctx context.Context, user, method, path string, body any) (*http.Request, error) {
	var text []byte

	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}

	request, err := http.NewRequestWithContext(ctx, method, "http://"+s.API+"/api/v1"+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}

	request.Header.Set("Authorization", "Bearer "+s.Tokens[user])

	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}

	return request, nil
}

// Scan reads the rows of a statement directly from the database.
func (s *Service) Scan(ctx context.Context, statement string, each func(row pgx.CollectableRow) error) error {
	conn, err := pgx.Connect(ctx, s.Database)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)

	rows, err := conn.Query(ctx, statement)
	if err != nil {
		return err
	}
	defer rows.Close()

	for rows.Next() {
		if err := each(rows); err != nil {
			return err
		}
	}

	return rows.Err()
}
