package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"quern.dev/quern/api"
	"quern.dev/quern/stack"
)

const (
	readPath        = "/api/v1/user/me"
	readConnections = 32

	// The parameters of the twin.
	readTwinDatabase = "BENCH_DATABASE_URL"
	readTwinAccount  = "BENCH_ACCOUNT"
)

// runRead measures an authenticated GET /user/me against the same row read and written bare.
func runRead(ctx context.Context, b *bench) ([]result, error) {
	database, drop, err := stack.CreateDatabase(ctx, "bench")
	if err != nil {
		return nil, err
	}
	defer drop()

	service, err := b.startQuernd(ctx, database)
	if err != nil {
		return nil, err
	}
	defer service.stop()

	request, err := readRequest(ctx, service.api)
	if err != nil {
		return nil, err
	}

	want, err := get(request) // the first request makes the account
	if err != nil {
		return nil, err
	}

	twin, bareRequest, err := b.startReadTwin(ctx, database, want)
	if err != nil {
		return nil, err
	}
	defer twin.stop()

	ours := func(ctx context.Context, lasting time.Duration) (loaded, error) {
		request, err := readRequest(ctx, service.api) // with a new token, as they live for minutes only
		if err != nil {
			return loaded{}, err
		}

		return closedLoop{[]exchange{{request, want}}, readConnections}.run(ctx, lasting)
	}

	oursRate, bareRate, err := alternate(ctx, b.rounds,
		side{"ours", func(ctx context.Context) (float64, string, error) {
			done, err := ours(ctx, b.round)
			if err != nil {
				return 0, "", err
			}

			return done.perSecond, done.String(), nil
		}},
		side{"bare", func(ctx context.Context) (float64, string, error) {
			done, err := closedLoop{[]exchange{{bareRequest, want}}, readConnections}.run(ctx, b.round)
			if err != nil {
				return 0, "", err
			}

			return done.perSecond, done.String(), nil
		}})
	if err != nil {
		return nil, err
	}

	err = b.profileDuring(ctx, "read", service, func(ctx context.Context, lasting time.Duration) error {
		_, err := ours(ctx, lasting)

		return err
	})

	return []result{{
		name: "read", ours: fmt.Sprintf("%.0f/s", oursRate), bare: fmt.Sprintf("%.0f/s", bareRate), ratio: oursRate / bareRate,
	}}, err
}

func readRequest(ctx context.Context, address string) (*http.Request, error) {
	token, err := accessToken(ctx, "ada")
	if err != nil {
		return nil, fmt.Errorf("signing in: %w", err)
	}

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+readPath, nil)
	if err != nil {
		return nil, err
	}

	request.Header.Set("Authorization", "Bearer "+token)

	return request, nil
}

// startReadTwin starts the twin for the account in want and checks that it gives the same answer.
func (b *bench) startReadTwin(ctx context.Context, database string, want []byte) (*process, *http.Request, error) {
	var me api.Me
	if err := json.Unmarshal(want, &me); err != nil {
		return nil, nil, err
	}

	twin, err := b.startTwin(ctx, "read", readTwinDatabase+"="+database, readTwinAccount+"="+me.ID.String())
	if err != nil {
		return nil, nil, err
	}

	request, err := askReadTwin(ctx, twin, want)
	if err != nil {
		twin.stop()

		return nil, nil, fmt.Errorf("starting the twin: %w", err)
	}

	return twin, request, nil
}

func askReadTwin(ctx context.Context, twin *process, want []byte) (*http.Request, error) {
	address, err := twin.address(ctx, "api")
	if err != nil {
		return nil, err
	}

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+readPath, nil)
	if err != nil {
		return nil, err
	}

	body, err := get(request)
	if err == nil && !bytes.Equal(body, want) {
		err = fmt.Errorf("it answers %s and not %s", body, want)
	}

	return request, err
}

// serveReadTwin is net/http, pgx and one statement, with nothing around them.
func serveReadTwin(ctx context.Context) error {
	id, err := uuid.Parse(os.Getenv(readTwinAccount))
	if err != nil {
		return err
	}

	account := [16]byte(id) // pgx would make a text of a uuid.UUID first

	config, err := pgxpool.ParseConfig(os.Getenv(readTwinDatabase))
	if err != nil {
		return err
	}

	config.MaxConns = poolSize

	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()

	mux := http.NewServeMux()
	mux.HandleFunc("GET "+readPath, func(w http.ResponseWriter, r *http.Request) {
		var me api.Me

		err := pool.QueryRow(r.Context(), `SELECT id, username, name, email, groups FROM accounts WHERE id = $1`, account).
			Scan(&me.ID, &me.Username, &me.Name, &me.Email, &me.Groups)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)

			return
		}

		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(me) // the client may have left
	})

	return serveTwin(ctx, mux)
}
