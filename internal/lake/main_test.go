package lake

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	arrowmemory "github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/blob/blobtest"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/postgres/pgtest"
)

func TestMain(m *testing.M) {
	iceio.Register("s3", openIO)
	goleak.VerifyTestMain(m)
}

// wire counts the requests to the store. A test can intercept them.
type wire struct {
	http.RoundTripper

	mu     sync.Mutex
	counts map[string]int
	before func(*http.Request) error
	after  func(*http.Request)
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.counts[r.Method]++
	before, after := w.before, w.after
	w.mu.Unlock()

	if before != nil {
		if err := before(r); err != nil {
			return nil, err
		}
	}

	response, err := w.RoundTripper.RoundTrip(r)
	if after != nil && err == nil {
		after(r)
	}

	return response, err
}

func (w *wire) intercept(before func(*http.Request) error, after func(*http.Request)) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.before, w.after = before, after
}

// count returns the number of requests since its last call, by method.
func (w *wire) count() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()

	counts := w.counts
	w.counts = map[string]int{}

	return counts
}

// place is a separate lake with an empty database and an empty prefix of the bucket.
type place struct {
	*Lake

	t      *testing.T
	url    string // address of the database
	config blob.Config
	wire   *wire
	clock  *clock
}

type clock struct {
	mu    sync.Mutex
	ahead time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()

	return time.Now().Add(c.ahead)
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.ahead += d
}

func newPlace(t *testing.T) place {
	t.Helper()

	p := place{t: t, url: pgtest.URL(t), clock: &clock{}, config: blobtest.Config(t)}
	p.Lake, p.wire = p.replica(p.url, func(*Config) {})

	t.Cleanup(func() {
		var group errgroup.Group

		group.SetLimit(16)

		for object, err := range p.store.List(context.Background(), "") {
			require.NoError(t, err)
			group.Go(func() error { return p.store.Delete(context.Background(), object.Key) })
		}

		require.NoError(t, group.Wait())
	})

	return p
}

// replica returns another Lake on the same database and store.
func (p place) replica(address string, change func(*Config)) (*Lake, *wire) {
	p.t.Helper()

	transport := &http.Transport{MaxIdleConnsPerHost: 32}
	p.t.Cleanup(transport.CloseIdleConnections)

	w := &wire{RoundTripper: transport, counts: map[string]int{}}
	config := p.config
	config.Client = &http.Client{Transport: w, Timeout: 20 * time.Second}

	store, err := blob.New(config)
	require.NoError(p.t, err)

	db, err := postgres.Open(context.Background(), postgres.Config{
		URL: address, MaxConns: 10, AcquireTimeout: 10 * time.Second, QueryTimeout: 30 * time.Second, LockTimeout: 10 * time.Second,
	})
	require.NoError(p.t, err)
	p.t.Cleanup(db.Close)

	c := Config{DB: db, Store: store, Now: p.clock.now, Log: slog.New(slog.NewTextHandler(p.t.Output(), nil)), DeleteGrace: time.Hour}
	change(&c)

	l, err := New(c)
	require.NoError(p.t, err)
	p.t.Cleanup(func() { require.NoError(p.t, l.Close()) })

	return l, w
}

func newTable() Table { return Table{Account: uuid.New(), Dataset: uuid.New()} }

func noMore(postgres.Tx, Snapshot) error { return nil }

// stage stages a written data file of rows from..from+n-1, and returns its ingestion.
func (p place) stage(l *Lake, t Table, columns []Column, from, n int) uuid.UUID {
	p.t.Helper()

	ingestion, err := stage(p.t.Context(), l, t, columns, parquetFile(p.t, columns, from, n))
	require.NoError(p.t, err)

	return ingestion
}

func stage(ctx context.Context, l *Lake, t Table, columns []Column, path string) (ingestion uuid.UUID, err error) {
	return stageFrom(ctx, l, t, columns, path, Source{File: uuid.New(), Name: "file.csv", FirstRow: 7})
}

func stageFrom(ctx context.Context, l *Lake, t Table, columns []Column, path string, source Source) (ingestion uuid.UUID, err error) {
	ingestion = uuid.Must(uuid.NewV7())

	var staged Staged

	err = l.db.InTx(ctx, func(tx postgres.Tx) error {
		staged, err = l.StageTx(ctx, tx, t, ingestion, source)

		return err
	})
	if err != nil {
		return ingestion, err
	}

	if staged, err = l.Write(ctx, staged, path, columns); err != nil {
		return ingestion, err
	}

	return ingestion, l.db.InTx(ctx, func(tx postgres.Tx) error { return l.ReadyTx(ctx, tx, []Staged{staged}) })
}

// add plans, stages and commits a file.
func (p place) add(t Table, mode Mode, from, n int, want ...Column) Snapshot {
	p.t.Helper()

	columns, err := p.Plan(p.t.Context(), t, want, mode)
	require.NoError(p.t, err)

	made, err := p.Commit(p.t.Context(), Change{Table: t, Mode: mode, Ingestions: []uuid.UUID{p.stage(p.Lake, t, columns, from, n)}}, noMore)
	require.NoError(p.t, err)

	return made
}

func (p place) current(t Table) (*Snapshot, []File) {
	p.t.Helper()

	var (
		snapshot *Snapshot
		files    []File
	)

	require.NoError(p.t, p.db.Do(p.t.Context(), func(q postgres.Querier) (err error) {
		snapshot, files, err = p.Current(p.t.Context(), q, t)

		return err
	}))

	return snapshot, files
}

// keys returns the keys of all objects in the store.
func (p place) keys() []string {
	p.t.Helper()

	var keys []string

	for object, err := range p.store.List(p.t.Context(), "") {
		require.NoError(p.t, err)

		keys = append(keys, object.Key)
	}

	return keys
}

func (p place) requireSound() {
	p.t.Helper()

	found, err := p.Inspect(p.t.Context())
	require.NoError(p.t, err)
	require.Empty(p.t, found.Orphans)
	require.Empty(p.t, found.Lost)
}

// parquetFile writes a file whose values are computed from the number of the row.
func parquetFile(tb testing.TB, columns []Column, from, n int) string {
	tb.Helper()

	content := parquetBytes(tb, columns, from, n)
	path := filepath.Join(tb.TempDir(), "data.parquet")
	require.NoError(tb, os.WriteFile(path, content, 0o600))

	return path
}

func parquetBytes(tb testing.TB, columns []Column, from, n int) []byte {
	tb.Helper()

	fields := make([]arrow.Field, len(columns))
	for i, column := range columns {
		fields[i] = arrow.Field{
			Name: column.Name, Type: arrowType(column.Type), Nullable: true,
			Metadata: arrow.NewMetadata([]string{"PARQUET:field_id"}, []string{strconv.Itoa(column.ID)}),
		}
	}

	return parquetWith(tb, fields, from, n)
}

// parquetOf returns a file of some rows of one column that Quern would not write.
func parquetOf(tb testing.TB, field arrow.Field) []byte {
	tb.Helper()

	return parquetWith(tb, []arrow.Field{field}, 0, 0)
}

func parquetWith(tb testing.TB, fields []arrow.Field, from, n int) []byte {
	tb.Helper()

	builder := array.NewRecordBuilder(arrowmemory.DefaultAllocator, arrow.NewSchema(fields, nil))
	defer builder.Release()

	for row := from; row < from+n; row++ {
		for i := range fields {
			appendValue(builder.Field(i), row)
		}
	}

	record := builder.NewRecordBatch()
	defer record.Release()

	return parquetRecord(tb, record)
}

func parquetRecord(tb testing.TB, record arrow.RecordBatch) []byte {
	tb.Helper()

	var content bytes.Buffer

	writer, err := pqarrow.NewFileWriter(record.Schema(), &content,
		parquet.NewWriterProperties(parquet.WithStats(true), parquet.WithStoreDecimalAsInteger(true)), pqarrow.DefaultWriterProps())
	require.NoError(tb, err)
	require.NoError(tb, writer.Write(record))
	require.NoError(tb, writer.Close())

	return content.Bytes()
}

func arrowType(t Type) arrow.DataType {
	switch t {
	case Boolean:
		return arrow.FixedWidthTypes.Boolean
	case Bigint:
		return arrow.PrimitiveTypes.Int64
	case Double:
		return arrow.PrimitiveTypes.Float64
	case Date:
		return arrow.FixedWidthTypes.Date32
	case Timestamp:
		return &arrow.TimestampType{Unit: arrow.Microsecond}
	case Time:
		return arrow.FixedWidthTypes.Time64us
	case Varchar, JSON:
		return arrow.BinaryTypes.String
	}

	precision, scale, _ := t.Decimal()

	return &arrow.Decimal128Type{Precision: int32(precision), Scale: int32(scale)}
}

func appendValue(builder array.Builder, row int) {
	switch b := builder.(type) {
	case *array.BooleanBuilder:
		b.Append(row%2 == 0)
	case *array.Int64Builder:
		b.Append(int64(row))
	case *array.Float64Builder:
		b.Append(float64(row) / 2)
	case *array.Date32Builder:
		b.Append(arrow.Date32(row))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(row))
	case *array.Time64Builder:
		b.Append(arrow.Time64(row))
	case *array.StringBuilder:
		b.Append(fmt.Sprintf("v%d", row))
	case *array.Decimal128Builder:
		b.Append(decimal128.FromI64(int64(row)))
	default:
		panic(fmt.Sprintf("%T", builder))
	}
}

// storeIO gives the catalog of iceberg-go access to the store. That catalog has no connection to package lake.
type storeIO struct {
	ctx   context.Context //nolint:containedctx // the interface has none
	store *blob.Store
	base  string
}

func openIO(ctx context.Context, address *url.URL, properties map[string]string) (iceio.IO, error) {
	store, err := blob.New(blob.Config{
		Endpoint: properties["endpoint"], Region: properties["region"], Bucket: address.Host, PathStyle: properties["path-style"] == "true",
		AccessKey: properties["access-key"], SecretKey: properties["secret-key"], Now: time.Now,
		Client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 20 * time.Second},
	})

	return storeIO{context.WithoutCancel(ctx), store, "s3://" + address.Host + "/"}, err
}

func (s storeIO) Open(name string) (iceio.File, error) {
	object, err := s.store.Read(s.ctx, strings.TrimPrefix(name, s.base), 0, -1)
	if err != nil {
		return nil, err
	}
	defer func() { _ = object.Close() }()

	content, err := io.ReadAll(object)

	return storeFile{bytes.NewReader(content), name}, err
}

func (s storeIO) Remove(string) error { return errors.ErrUnsupported }

type storeFile struct {
	*bytes.Reader

	name string
}

func (f storeFile) Close() error               { return nil }
func (f storeFile) Stat() (fs.FileInfo, error) { return f, nil }
func (f storeFile) Name() string               { return f.name }
func (f storeFile) Mode() fs.FileMode          { return 0o444 }
func (f storeFile) ModTime() time.Time         { return time.Time{} }
func (f storeFile) IsDir() bool                { return false }
func (f storeFile) Sys() any                   { return nil }
