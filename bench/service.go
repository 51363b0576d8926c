package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"quern.dev/quern/api"
	"quern.dev/quern/stack"
)

// service is a quernd with a database of its own and people who have signed in.
type service struct {
	*quernd

	database string // its address
	accounts map[string]uuid.UUID
	tokens   map[string]string
}

// startService signs ada, bob and eve in; stop ends the service and removes its database.
func (b *bench) startService(ctx context.Context, settings ...string) (s *service, stop func(), err error) {
	database, drop, err := stack.CreateDatabase(ctx, "bench")
	if err != nil {
		return nil, nil, err
	}

	started, err := b.startQuernd(ctx, database, settings...)
	if err != nil {
		drop()

		return nil, nil, err
	}

	stop = func() {
		started.stop()
		drop()
	}

	s = &service{quernd: started, database: database, accounts: map[string]uuid.UUID{}, tokens: map[string]string{}}

	for _, user := range []string{"ada", "bob", "eve"} {
		if err := s.signIn(ctx, user); err != nil {
			stop()

			return nil, nil, fmt.Errorf("signing %s in: %w", user, err)
		}
	}

	return s, stop, nil
}

// signIn makes the user's account and an API token for it, which outlives any measure.
func (s *service) signIn(ctx context.Context, user string) error {
	token, err := accessToken(ctx, user)
	if err != nil {
		return err
	}

	s.tokens[user] = token

	var me api.Me
	if err := s.ask(ctx, user, http.MethodGet, "/user/me", nil, &me); err != nil {
		return err
	}

	var made api.CreatedToken
	if err := s.ask(ctx, user, http.MethodPost, "/user/token", api.NewToken{Name: "bench", Role: new(api.NewTokenRoleOwner)}, &made); err != nil {
		return err
	}

	s.accounts[user], s.tokens[user] = me.ID, made.Token

	return nil
}

func (s *service) ask(ctx context.Context, user, method, path string, body, answer any) error {
	request, err := s.request(ctx, user, method, path, body)
	if err != nil {
		return err
	}

	text, err := get(request)
	if err != nil {
		return err
	}

	return json.Unmarshal(text, answer)
}

// request is one to the API by a user. A nil body is none.
func (s *service) request(ctx context.Context, user, method, path string, body any) (*http.Request, error) {
	var text []byte

	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}

	request, err := http.NewRequestWithContext(ctx, method, "http://"+s.api+"/api/v1"+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}

	request.Header.Set("Authorization", "Bearer "+s.tokens[user])

	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}

	return request, nil
}
