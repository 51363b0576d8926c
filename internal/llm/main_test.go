package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/postgres/pgtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "sk-Canary0123456789"

// scripted is a server that returns one prepared response after the other and records the requests.
type scripted struct {
	*httptest.Server

	mutex    sync.Mutex
	answers  []http.HandlerFunc
	requests []received
}

type received struct {
	path   string
	header http.Header
	body   map[string]any
	raw    string
}

func script(t *testing.T, answers ...http.HandlerFunc) *scripted {
	t.Helper()

	s := &scripted{answers: answers}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		got := received{path: r.URL.Path, header: r.Header, raw: string(raw)}
		_ = json.Unmarshal(raw, &got.body)

		s.mutex.Lock()
		s.requests = append(s.requests, got)
		n := len(s.requests)
		s.mutex.Unlock()

		if n > len(s.answers) {
			w.WriteHeader(http.StatusTeapot)

			return
		}

		s.answers[n-1](w, r)
	}))
	t.Cleanup(s.Close)

	return s
}

func (s *scripted) asked() []received {
	s.mutex.Lock()
	defer s.mutex.Unlock()

	return s.requests
}

// bench is Models with a ledger and a captured log.
type bench struct {
	*Models

	db      *postgres.DB
	log     *lockedBuffer
	settled map[uuid.UUID]int64
	call    Call
}

type lockedBuffer struct {
	mutex sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()

	return b.Buffer.Write(p)
}

func (b *lockedBuffer) text() string {
	b.mutex.Lock()
	defer b.mutex.Unlock()

	return b.String()
}

func newBench(t *testing.T, providers ...Provider) *bench {
	t.Helper()

	b := &bench{
		db: pgtest.New(t), log: &lockedBuffer{}, settled: map[uuid.UUID]int64{},
		call: Call{Account: uuid.Must(uuid.NewV7()), Run: uuid.Must(uuid.NewV7()), Purpose: "query"},
	}

	for i := range providers {
		transport := &http.Transport{}
		t.Cleanup(transport.CloseIdleConnections)

		p := &providers[i]
		p.Client = &http.Client{Transport: transport}

		if p.Name == "" {
			p.Name = "test"
		}

		if p.Models == nil {
			p.Models = []string{"model-x"}
		}

		if p.Concurrency == 0 {
			p.Concurrency = 4
		}

		if p.Timeout == 0 {
			p.Timeout = 20 * time.Second
		}

		if p.Exposure == 0 {
			p.Exposure = ExposeSchema
		}

		p.Key = key
	}

	var mutex sync.Mutex

	models, err := New(Config{
		DB: b.db, Providers: providers, Log: slog.New(slog.NewTextHandler(b.log, nil)), Now: time.Now,
		Settle: func(_ context.Context, _ postgres.Tx, account uuid.UUID, tokens int64) error {
			mutex.Lock()
			defer mutex.Unlock()

			b.settled[account] += tokens

			return nil
		},
	})
	require.NoError(t, err)

	b.Models = models

	return b
}

// request returns a request to the default model.
func (b *bench) request(t *testing.T) Request {
	t.Helper()

	model, err := b.Choose("", "")
	require.NoError(t, err)

	return Request{Model: model, System: "Be brief.", Messages: []Message{{User, "How many?"}}, MaxTokens: 100}
}

// row is the row of an attempt in the ledger.
type row struct {
	State, Error  string
	Turn, Attempt int
	Input, Output int64
}

func (b *bench) rows(t *testing.T) []row {
	t.Helper()

	var list []row

	require.NoError(t, b.db.Do(t.Context(), func(q postgres.Querier) error {
		rows, err := q.Query(t.Context(), `SELECT state, error, turn, attempt, input_tokens, output_tokens FROM model_calls
			WHERE account_id = $1 AND run_id = $2 ORDER BY id`, b.call.Account, b.call.Run)
		if err != nil {
			return err
		}

		list, err = pgx.CollectRows(rows, pgx.RowToStructByPos[row])

		return err
	}))

	return list
}
