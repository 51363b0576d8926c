package catalog

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
	"quern.dev/quern/bench/rig"
	"quern.dev/quern/stack"
)

const (
	readPath        = "/api/v1/user/me"
	readConnections = 32

	// Names of the environment variables with the parameters of the twin.
	readTwinDatabase = "BENCH_DATABASE_URL"
	readTwinAccount  = "BENCH_ACCOUNT"
)

// Read measures an authenticated GET /user/me beside a bare server that reads and writes the same row.
func Read(ctx context.Context, b *rig.Bench) ([]rig.Result, error) {
	database, drop, err := stack.CreateDatabase(ctx, "bench")
	if err != nil {
		return nil, err
	}
	defer drop()

	service, err := b.StartQuernd(ctx, database)
	if err != nil {
		return nil, err
	}
	defer service.Stop()

	request, err := readRequest(ctx, service.API)
	if err != nil {
		return nil, err
	}

	want, err := rig.Get(request) // the first request creates the account
	if err != nil {
		return nil, err
	}

	twin, bareRequest, err := startReadTwin(ctx, b, database, want)
	if err != nil {
		return nil, err
	}
	defer twin.Stop()

	ours := func(ctx context.Context, lasting time.Duration) (rig.Loaded, error) {
		request, err := readRequest(ctx, service.API) // with a new token, because tokens are valid for minutes only
		if err != nil {
			return rig.Loaded{}, err
		}

		return rig.ClosedLoop{Exchanges: []rig.Exchange{{Request: request, Want: want}}, Connections: readConnections}.Run(ctx, lasting)
	}

	oursRate, bareRate, err := rig.Alternate(ctx, b.Rounds,
		rig.Side{Name: "ours", Round: func(ctx context.Context) (float64, string, error) {
			done, err := ours(ctx, b.Round)
			if err != nil {
				return 0, "", err
			}

			return done.PerSecond, done.String(), nil
		}},
		rig.Side{Name: "bare", Round: func(ctx context.Context) (float64, string, error) {
			done, err := rig.ClosedLoop{Exchanges: []rig.Exchange{{Request: bareRequest, Want: want}}, Connections: readConnections}.Run(ctx, b.Round)
			if err != nil {
				return 0, "", err
			}

			return done.PerSecond, done.String(), nil
		}})
	if err != nil {
		return nil, err
	}

	err = b.ProfileDuring(ctx, "read", service, func(ctx context.Context, lasting time.Duration) error {
		_, err := ours(ctx, lasting)

		return err
	})

	return []rig.Result{{
		Name: "read", Ours: fmt.Sprintf("%.0f/s", oursRate), Bare: fmt.Sprintf("%.0f/s", bareRate), Ratio: oursRate / bareRate,
	}}, err
}

func readRequest(ctx context.Context, address string) (*http.Request, error) {
	token, err := rig.AccessToken(ctx, "ada")
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

// startReadTwin starts the twin for the account in want and checks that it returns the same response.
func startReadTwin(ctx context.Context, b *rig.Bench, database string, want []byte) (*rig.Process, *http.Request, error) {
	var me api.Me
	if err := json.Unmarshal(want, &me); err != nil {
		return nil, nil, err
	}

	twin, err := b.StartTwin(ctx, "read", readTwinDatabase+"="+database, readTwinAccount+"="+me.ID.String())
	if err != nil {
		return nil, nil, err
	}

	request, err := askReadTwin(ctx, twin, want)
	if err != nil {
		twin.Stop()

		return nil, nil, fmt.Errorf("starting the twin: %w", err)
	}

	return twin, request, nil
}

func askReadTwin(ctx context.Context, twin *rig.Process, want []byte) (*http.Request, error) {
	address, err := twin.Address(ctx, "api")
	if err != nil {
		return nil, err
	}

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+readPath, nil)
	if err != nil {
		return nil, err
	}

	body, err := rig.Get(request)
	if err == nil && !bytes.Equal(body, want) {
		err = fmt.Errorf("it answers %s and not %s", body, want)
	}

	return request, err
}

// ReadTwin uses net/http, pgx and one statement, and nothing else.
func ReadTwin(ctx context.Context) error {
	id, err := uuid.Parse(os.Getenv(readTwinAccount))
	if err != nil {
		return err
	}

	account := [16]byte(id) // pgx would convert a uuid.UUID to text first

	config, err := pgxpool.ParseConfig(os.Getenv(readTwinDatabase))
	if err != nil {
		return err
	}

	config.MaxConns = rig.PoolSize

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
		_ = json.NewEncoder(w).Encode(me) // the client may have disconnected
	})

	return rig.ServeTwin(ctx, mux)
}
