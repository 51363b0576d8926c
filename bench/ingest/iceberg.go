package ingest

import (
	"bytes"
	"context"
	"database/sql"
	"io"
	"io/fs"
	"net/url"
	"strings"
	"sync"

	"github.com/apache/iceberg-go"
	icebergcatalog "github.com/apache/iceberg-go/catalog"
	sqlcatalog "github.com/apache/iceberg-go/catalog/sql"
	icebergio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"quern.dev/quern/bench/rig"
	"quern.dev/quern/stack"
)

// bareTables is held while a table of iceberg-go is in use: its registry of schemes has one entry for "s3", and small measures run at
// the same time.
var bareTables sync.Mutex //nolint:gochecknoglobals // guards a registry of the process

// bareTable returns a table of iceberg-go's own SQL catalog, in a database of its own, with its objects in the location
// p.
func bareTable(ctx context.Context, p *rig.Location, schema *iceberg.Schema) (made *table.Table, drop func(), err error) {
	address, dropDatabase, err := stack.CreateDatabase(ctx, "bench")
	if err != nil {
		return nil, nil, err
	}

	pool, err := pgxpool.New(ctx, address)
	if err != nil {
		dropDatabase()

		return nil, nil, err
	}

	bareTables.Lock()
	icebergio.Register("s3", func(context.Context, *url.URL, map[string]string) (icebergio.IO, error) { return bareFiles{p}, nil })

	database := stdlib.OpenDBFromPool(pool)
	drop = func() {
		_ = database.Close()

		pool.Close()
		icebergio.Unregister("s3")
		bareTables.Unlock()
		dropDatabase()
	}

	if made, err = createTable(ctx, p, database, schema); err != nil {
		drop()

		return nil, nil, err
	}

	return made, drop, nil
}

func createTable(ctx context.Context, p *rig.Location, database *sql.DB, schema *iceberg.Schema) (*table.Table, error) {
	tables, err := sqlcatalog.NewCatalog("bare", database, sqlcatalog.Postgres, iceberg.Properties{})
	if err != nil {
		return nil, err
	}

	if err := tables.CreateNamespace(ctx, table.Identifier{"bare"}, nil); err != nil {
		return nil, err
	}

	return tables.CreateTable(ctx, table.Identifier{"bare", "bare"}, schema, icebergcatalog.WithLocation(addressOf(p, "bare")))
}

func addressOf(p *rig.Location, key string) string { return "s3://" + p.Bucket + "/" + *p.Full(key) }

// bareFiles are the objects of a location, each read and written as a whole, which needs the fewest requests.
type bareFiles struct{ *rig.Location }

var _ icebergio.WriteFileIO = bareFiles{}

func (f bareFiles) key(name string) *string {
	return new(strings.TrimPrefix(name, "s3://"+f.Bucket+"/"))
}

func (f bareFiles) Open(name string) (icebergio.File, error) {
	object, err := f.Client.GetObject(context.Background(), &s3.GetObjectInput{Bucket: &f.Bucket, Key: f.key(name)})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	defer object.Body.Close()

	content, err := io.ReadAll(object.Body)

	return bareFile{bytes.NewReader(content)}, err
}

func (f bareFiles) WriteFile(name string, content []byte) error {
	_, err := f.Client.PutObject(context.Background(), &s3.PutObjectInput{Bucket: &f.Bucket, Key: f.key(name), Body: bytes.NewReader(content)})

	return err
}

func (f bareFiles) Create(name string) (icebergio.FileWriter, error) {
	return &bareWriter{files: f, name: name}, nil
}

func (f bareFiles) Remove(name string) error {
	_, err := f.Client.DeleteObject(context.Background(), &s3.DeleteObjectInput{Bucket: &f.Bucket, Key: f.key(name)})

	return err
}

type bareFile struct{ *bytes.Reader }

func (bareFile) Close() error { return nil }

func (f bareFile) Stat() (fs.FileInfo, error) { return bareInfo{size: f.Size()}, nil }

type bareInfo struct {
	fs.FileInfo // nil, because only the size is used

	size int64
}

func (f bareInfo) Size() int64 { return f.size }

// bareWriter stores what was written when it is closed.
type bareWriter struct {
	bytes.Buffer

	files bareFiles
	name  string
}

func (w *bareWriter) Close() error { return w.files.WriteFile(w.name, w.Bytes()) }
