package ingest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quern.dev/quern/api"
	"quern.dev/quern/bench/rig"
	"quern.dev/quern/stack"
)

const sourcePoll = 250 * time.Millisecond // each poll also reads the memory maps of the service, which takes processor time

// Source measures how long a source takes to load all rows of a table of PostgreSQL, beside COPY … TO into a CSV file that DuckDB converts to Parquet and that is then stored.
// It also measures a run over a bucket with many files of which few are new.
func Source(ctx context.Context, b *rig.Bench) ([]rig.Result, error) {
	database, drop, err := stack.CreateDatabase(ctx, "bench_source")
	if err != nil {
		return nil, err
	}
	defer drop()

	rows := &sourceRows{database: database, rows: b.Sourced}
	if err := rows.fill(ctx); err != nil {
		return nil, err
	}

	bucket, vacate, err := rig.NewLocation(ctx)
	if err != nil {
		return nil, err
	}
	defer vacate()

	counter, err := rig.StartCounter(bucket.Endpoint)
	if err != nil {
		return nil, err
	}
	defer counter.Close()

	s, stop, err := b.StartService(ctx, fmt.Sprintf("QUERN_INGEST_THREADS=%d", Threads), fmt.Sprintf("QUERN_INGEST_MEMORY=%dMiB", Memory>>20),
		"QUERN_SOURCE_KEY="+strings.Repeat("of the bench ", 4), "QUERN_SOURCE_ALLOWED_NETWORKS=127.0.0.0/8,::1/128",
		"QUERN_SOURCE_HOSTS="+rows.host()+","+strings.TrimPrefix(counter.URL, "http://"))
	if err != nil {
		return nil, err
	}
	defer stop()

	rows.Service = s

	loaded, err := rows.measure(ctx, b)
	if err != nil {
		return nil, err
	}

	listed, err := (&sourceFiles{Service: s, bucket: bucket, counter: counter, files: b.Listed, fresh: b.Listed / freshShare}).measure(ctx)

	return append(loaded, listed...), err
}

// sourceRows is a table of another database.
type sourceRows struct {
	*rig.Service

	database string
	rows     int
	source   uuid.UUID
	memory   rig.Footprint
}

const sourceQuery = `
	SELECT i AS id, 'customer-' || i %% 500000 AS customer, (i %% 1000000)::numeric(12,2) / 100 AS amount, i / 7.0::float8 AS share,
		date '2020-01-01' + (i %% 2000)::int AS day, timestamp '2020-01-01' + i * interval '13 s' AS created, i %% 3 = 0 AS paid
	FROM generate_series(1, %d) AS i`

func (r *sourceRows) fill(ctx context.Context) error {
	return stack.Execute(ctx, r.database, fmt.Sprintf("CREATE TABLE orders AS "+sourceQuery, r.rows))
}

func (r *sourceRows) address() *url.URL {
	address, err := url.Parse(r.database)
	if err != nil {
		return &url.URL{}
	}

	return address
}

// host returns the host with its port, as the operator allows it.
func (r *sourceRows) host() string {
	address := r.address()
	if address.Port() == "" {
		return address.Hostname() + ":5432"
	}

	return address.Host
}

func (r *sourceRows) measure(ctx context.Context, b *rig.Bench) ([]rig.Result, error) {
	address := r.address()
	password, _ := address.User.Password()
	port, _ := strconv.ParseInt(r.host()[strings.LastIndexByte(r.host(), ':')+1:], 10, 32)

	connection := api.NewConnection{Name: "erp", Kind: api.Postgresql, Postgresql: &api.NewPostgresSettings{
		Host: address.Hostname(), Port: new(int32(port)), Database: strings.TrimPrefix(address.Path, "/"), User: address.User.Username(), Password: password, SslMode: new(api.Disable),
	}}
	if connection.Postgresql.Password == "" {
		connection.Postgresql.Password = "none"
	}

	var err error
	if r.source, err = addSource(ctx, r.Service, connection, api.NewSource{
		Name: "orders", Namespace: "bench", DatasetName: "orders", Postgresql: &api.NewPostgresRows{Mode: api.Full, Table: new("orders")},
	}); err != nil {
		return nil, err
	}

	ours, bare, err := rig.Alternate(ctx, b.Loads,
		rig.WithProcessorTime(r.PID, rig.Side{Name: "ours", Round: r.ours}),
		rig.WithProcessorTime(os.Getpid(), rig.Side{Name: "bare", Round: func(ctx context.Context) (float64, string, error) { return r.bare(ctx, b) }}))
	if err != nil {
		return nil, err
	}

	fmt.Fprintf(os.Stderr, "source: %d rows; all processes of the service together took at most %s\n", r.rows, rig.Megabytes(r.memory.Total))

	return []rig.Result{{Name: "source", Ours: rig.Seconds(ours), Bare: rig.Seconds(bare), Ratio: bare / ours}}, nil
}

func (r *sourceRows) ours(ctx context.Context) (float64, string, error) {
	took, run, err := refresh(ctx, r.Service, r.source, &r.memory)
	if err == nil && run.Rows != int64(r.rows) {
		err = fmt.Errorf("%d of %d rows were loaded", run.Rows, r.rows)
	}

	return float64(took), took.String(), err
}

// bare copies the table to a file, converts it and stores the result.
func (r *sourceRows) bare(ctx context.Context, b *rig.Bench) (_ float64, remark string, err error) {
	dir, err := os.MkdirTemp(b.Dir, "bare-")
	if err != nil {
		return 0, "", err
	}
	defer os.RemoveAll(dir)

	begin := time.Now()
	from, to := filepath.Join(dir, "rows.csv"), filepath.Join(dir, "rows.parquet")

	if err := r.copyTo(ctx, from); err != nil {
		return 0, "", err
	}

	copied := time.Now()

	if err := rig.BareDuckDB(fmt.Sprintf(`SET threads = %d`, Threads), fmt.Sprintf(`SET memory_limit = '%dB'`, Memory), fmt.Sprintf(`SET temp_directory = '%s'`, dir),
		fmt.Sprintf(`COPY (FROM read_csv('%s')) TO '%s' (FORMAT parquet, COMPRESSION zstd)`, from, to)); err != nil {
		return 0, "", err
	}

	converted := time.Now()

	key, size, err := storeFile(ctx, r.Location, to)
	if err != nil {
		return 0, "", err
	}

	took := time.Since(begin)

	return float64(took), fmt.Sprintf("%v: copying %v, converting %v, storing %d bytes %v", took, copied.Sub(begin), converted.Sub(copied), size, time.Since(converted)), r.Location.Remove(ctx, key)
}

func (r *sourceRows) copyTo(ctx context.Context, path string) error {
	conn, err := pgx.Connect(ctx, r.database)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)

	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()

	_, err = conn.PgConn().CopyTo(ctx, file, `COPY orders TO STDOUT (FORMAT csv, HEADER)`)

	return err
}

func storeFile(ctx context.Context, to *rig.Location, path string) (key string, size int64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer file.Close()

	info, err := file.Stat()
	if err != nil {
		return "", 0, err
	}

	key, err = to.Upload(ctx, info.Size(), rig.OfFile(file))

	return key, info.Size(), err
}

// addSource makes a connection and a source that uses it.
func addSource(ctx context.Context, s *rig.Service, connection api.NewConnection, source api.NewSource) (uuid.UUID, error) {
	var (
		connected api.Connection
		made      api.Source
	)

	if err := s.Ask(ctx, "ada", http.MethodPost, "/connections", connection, &connected); err != nil {
		return uuid.Nil, err
	}

	source.ConnectionID = connected.ID
	err := s.Ask(ctx, "ada", http.MethodPost, "/sources", source, &made)

	return made.ID, err
}

// refresh runs a source until the end.
func refresh(ctx context.Context, s *rig.Service, source uuid.UUID, memory *rig.Footprint) (took time.Duration, run api.SourceRun, err error) {
	begin := time.Now()
	if err := s.Ask(ctx, "ada", http.MethodPost, "/sources/"+source.String()+"/run", nil, &run); err != nil {
		return 0, run, err
	}

	for {
		var now api.Source
		if err := s.Ask(ctx, "ada", http.MethodGet, "/sources/"+source.String(), nil, &now); err != nil {
			return 0, run, err
		}

		if last := now.LastRun; last != nil && last.ID == run.ID && last.FinishedAt != nil {
			if run = *last; run.Status != api.SourceRunStatusCompleted {
				reason := string(run.Status)
				if run.Reason != nil {
					reason = *run.Reason
				}

				return 0, run, errors.New("the run has not completed: " + reason)
			}

			return time.Since(begin), run, nil
		}

		if err := memory.Watch(s.PID); err != nil {
			return 0, run, err
		}

		time.Sleep(sourcePoll)
	}
}
