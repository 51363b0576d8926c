package icebergrest_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/blob/blobtest"
	"quern.dev/quern/internal/icebergrest"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/postgres/pgtest"
)

const secret = "a secret that Trino and the catalog share"

// place is a catalog with one table of two snapshots.
type place struct {
	*icebergrest.Catalog

	t      *testing.T
	at     lake.Table
	first  lake.Snapshot
	second lake.Snapshot
	now    time.Time
}

func newPlace(t *testing.T) *place {
	t.Helper()

	p := &place{t: t, at: lake.Table{Account: uuid.New(), Dataset: uuid.New()}, now: time.Now()}
	db, log := pgtest.New(t), slog.New(slog.NewTextHandler(t.Output(), nil))

	tables, err := lake.New(lake.Config{DB: db, Store: blobtest.New(t), Now: time.Now, Log: log})
	require.NoError(t, err)

	p.Catalog = &icebergrest.Catalog{Schemas: icebergrest.Schemas{DB: db, Now: func() time.Time { return p.now }}, Lake: tables, Log: log, Secret: secret}
	p.first, p.second = p.commit(), p.commit()

	return p
}

// commit adds a row to the table.
func (p *place) commit() (made lake.Snapshot) {
	p.t.Helper()

	columns, err := p.Lake.Plan(p.t.Context(), p.at, []lake.Column{{Name: "n", Type: lake.Bigint}}, lake.Append)
	require.NoError(p.t, err)

	builder := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{{
		Name: "n", Type: arrow.PrimitiveTypes.Int64, Nullable: true, Metadata: arrow.NewMetadata([]string{"PARQUET:field_id"}, []string{"1"}),
	}}, nil))
	defer builder.Release()

	n, _ := builder.Field(0).(*array.Int64Builder)
	n.Append(1)

	path := filepath.Join(p.t.TempDir(), "one.parquet")
	file, err := os.Create(path)
	require.NoError(p.t, err)

	writer, err := pqarrow.NewFileWriter(builder.Schema(), file, nil, pqarrow.DefaultWriterProps())
	require.NoError(p.t, err)
	require.NoError(p.t, writer.Write(builder.NewRecordBatch()))
	require.NoError(p.t, writer.Close())

	var (
		staged    lake.Staged
		ingestion = uuid.Must(uuid.NewV7())
	)

	require.NoError(p.t, p.DB.InTx(p.t.Context(), func(tx postgres.Tx) error {
		staged, err = p.Lake.StageTx(p.t.Context(), tx, p.at, ingestion, lake.Source{})

		return err
	}))

	staged, err = p.Lake.Write(p.t.Context(), staged, path, columns)
	require.NoError(p.t, err)
	require.NoError(p.t, p.DB.InTx(p.t.Context(), func(tx postgres.Tx) error { return p.Lake.ReadyTx(p.t.Context(), tx, []lake.Staged{staged}) }))

	made, err = p.Lake.Commit(p.t.Context(), lake.Change{Table: p.at, Mode: lake.Append, Ingestions: []uuid.UUID{ingestion}}, func(postgres.Tx, lake.Snapshot) error { return nil })
	require.NoError(p.t, err)

	return made
}

// open opens a schema with the table under a name.
func (p *place) open(name string, snapshot uuid.UUID) icebergrest.Schema {
	p.t.Helper()

	s := icebergrest.New(uuid.New())
	require.NoError(p.t, p.Open(p.t.Context(), s, []icebergrest.Table{{Schema: s.Name, Name: name, Account: p.at.Account, Dataset: p.at.Dataset, Snapshot: snapshot}}, p.now.Add(time.Minute)))

	return s
}

// ask sends a request and returns the status and the body.
func (p *place) ask(method, path, token string) (status int, body string) {
	p.t.Helper()

	request := httptest.NewRequestWithContext(p.t.Context(), method, path, http.NoBody)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}

	answer := httptest.NewRecorder()
	p.ServeHTTP(answer, request)

	content, err := io.ReadAll(answer.Body)
	require.NoError(p.t, err)
	require.True(p.t, json.Valid(content), string(content))

	return answer.Code, string(content)
}

func TestSchemaShowsOneSnapshot(t *testing.T) {
	t.Parallel()

	p := newPlace(t)
	old, current := p.open("Orders 2026/a+b%", p.first.ID), p.open("orders", p.second.ID)

	for path, of := range map[string]struct {
		schema icebergrest.Schema
		want   lake.Snapshot
	}{
		"Orders+2026%2Fa%2Bb%25": {old, p.first}, "orders+2026%2fA%2Bb%25": {old, p.first}, "orders": {current, p.second}, "ORDERS": {current, p.second},
	} {
		status, body := p.ask(http.MethodGet, "/v1/namespaces/"+of.schema.Name+"/tables/"+path, of.schema.Token)
		require.Equal(t, http.StatusOK, status, body)

		var found struct {
			Metadata struct {
				Current   int64 `json:"current-snapshot-id"`
				Snapshots []struct {
					ID int64 `json:"snapshot-id"`
				} `json:"snapshots"`
			} `json:"metadata"`
		}

		require.NoError(t, json.Unmarshal([]byte(body), &found))
		require.Equal(t, of.want.Number, found.Metadata.Current)
		require.Len(t, found.Metadata.Snapshots, 1)
		require.Equal(t, of.want.Number, found.Metadata.Snapshots[0].ID)
	}
}

func TestEverythingElseIsAbsent(t *testing.T) {
	t.Parallel()

	p := newPlace(t)
	mine, other := p.open("orders", p.first.ID), p.open("leads", p.second.ID)

	for _, c := range []struct {
		method, path, token string
		status              int
		body                string
	}{
		{http.MethodGet, "/v1/config", secret, http.StatusOK, "endpoints"},
		{http.MethodGet, "/v1/config?warehouse=x", mine.Token, http.StatusOK, "endpoints"},
		{http.MethodGet, "/v1/namespaces", mine.Token, http.StatusOK, `{"namespaces":[]}`},
		{http.MethodGet, "/v1/namespaces", secret, http.StatusOK, `{"namespaces":[]}`},
		{http.MethodGet, "/v1/namespaces/" + mine.Name, mine.Token, http.StatusOK, mine.Name},
		{http.MethodGet, "/v1/namespaces/" + mine.Name + "/tables", mine.Token, http.StatusOK, `{"identifiers":[]}`},

		// Neither the shared secret nor the token of another statement shows a schema, even if its name is known.
		{http.MethodGet, "/v1/namespaces/" + mine.Name + "/tables/orders", secret, http.StatusNotFound, "NoSuchNamespace"},
		{http.MethodGet, "/v1/namespaces/" + other.Name + "/tables/leads", mine.Token, http.StatusNotFound, "NoSuchNamespace"},
		{http.MethodGet, "/v1/namespaces/" + other.Name, mine.Token, http.StatusNotFound, "NoSuchNamespace"},
		{http.MethodGet, "/v1/namespaces/" + mine.Name + "/tables/leads", mine.Token, http.StatusNotFound, "NoSuchTable"},
		{http.MethodGet, "/v1/namespaces/" + mine.Name + "/views/orders", mine.Token, http.StatusNotFound, "NoSuchTable"},
		{http.MethodGet, "/v1/namespaces/" + mine.Name + "/tables/orders/credentials", mine.Token, http.StatusNotFound, "NoSuchTable"},
		{http.MethodGet, "/v1/namespaces//tables/orders", mine.Token, http.StatusNotFound, "NotFound"},
		{http.MethodGet, "/v1/namespaces/%1F/tables/orders", mine.Token, http.StatusNotFound, "NoSuchNamespace"},
		{http.MethodGet, "/v2/namespaces", mine.Token, http.StatusNotFound, "NotFound"},

		{http.MethodGet, "/v1/config", "", http.StatusUnauthorized, "NotAuthorized"},
		{http.MethodGet, "/v1/config", secret + "x", http.StatusUnauthorized, "NotAuthorized"},
		{http.MethodGet, "/v1/namespaces", "x", http.StatusUnauthorized, "NotAuthorized"},
		{http.MethodGet, "/v1/namespaces", icebergrest.New(uuid.New()).Token, http.StatusUnauthorized, "NotAuthorized"},
		{http.MethodGet, "/anything", "", http.StatusUnauthorized, "NotAuthorized"},

		{http.MethodPost, "/v1/namespaces", mine.Token, http.StatusForbidden, "read only"},
		{http.MethodPost, "/v1/oauth/tokens", secret, http.StatusForbidden, "read only"},
		{http.MethodPost, "/v1/transactions/commit", mine.Token, http.StatusForbidden, "read only"},
		{http.MethodPost, "/v1/namespaces/" + mine.Name + "/tables/orders", mine.Token, http.StatusForbidden, "read only"},
		{http.MethodDelete, "/v1/namespaces/" + mine.Name + "/tables/orders", mine.Token, http.StatusForbidden, "read only"},
		{http.MethodPost, "/v1/namespaces/" + mine.Name + "/tables/orders", "", http.StatusUnauthorized, "NotAuthorized"},
	} {
		status, body := p.ask(c.method, c.path, c.token)
		require.Equal(t, c.status, status, "%s %s: %s", c.method, c.path, body)
		require.Contains(t, body, c.body, "%s %s", c.method, c.path)
	}
}

func TestSchemaEnds(t *testing.T) {
	t.Parallel()

	p := newPlace(t)
	closed, expired := p.open("orders", p.first.ID), p.open("orders", p.first.ID)

	require.NoError(t, p.Close(t.Context(), closed))
	require.NoError(t, p.Close(t.Context(), closed))

	status, _ := p.ask(http.MethodGet, "/v1/namespaces/"+closed.Name+"/tables/orders", closed.Token)
	require.Equal(t, http.StatusUnauthorized, status)

	status, _ = p.ask(http.MethodGet, "/v1/namespaces/"+expired.Name+"/tables/orders", expired.Token)
	require.Equal(t, http.StatusOK, status)

	p.now = p.now.Add(time.Minute)

	status, _ = p.ask(http.MethodGet, "/v1/namespaces/"+expired.Name+"/tables/orders", expired.Token)
	require.Equal(t, http.StatusUnauthorized, status)

	p.now = p.now.Add(time.Second)

	require.NoError(t, p.Clean(t.Context()))
	require.Zero(t, p.rows())
}

// rows returns how many schemas are stored.
func (p *place) rows() (count int) {
	p.t.Helper()

	require.NoError(p.t, p.DB.Do(p.t.Context(), func(q postgres.Querier) error {
		return q.QueryRow(p.t.Context(), `SELECT count(*) FROM engine_schemas`).Scan(&count)
	}))

	return count
}

func TestSchemaIsRandom(t *testing.T) {
	t.Parallel()

	account := uuid.New()
	met := map[string]bool{}

	for range 100 {
		s := icebergrest.New(account)
		require.True(t, strings.HasPrefix(s.Name, "q_") && len(s.Name) == 34, s.Name)
		require.False(t, met[s.Name] || met[s.Token])
		met[s.Name], met[s.Token] = true, true
	}
}
