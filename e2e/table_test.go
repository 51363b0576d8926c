package e2e

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"
	catalog "github.com/apache/iceberg-go/catalog/sql"
	icebergio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/stack"
)

// tableContents is a table as an independent reader sees it.
type tableContents struct {
	columns []tableColumn
	// rows contains nil, bool, int64, float64 or string, in the order of the columns. Rows of a table have no order, so these are
	// sorted.
	rows [][]any
}

// tableColumn is a column with its type as the service names it.
type tableColumn struct{ name, kind string }

// sorted returns the rows in an order that depends only on their values.
func sorted(rows [][]any) [][]any {
	return slices.SortedFunc(slices.Values(rows), func(a, b []any) int { return strings.Compare(fmt.Sprintf("%#v", a), fmt.Sprintf("%#v", b)) })
}

// tableName returns the name of a dataset's table in the Iceberg catalog: the ids of its account and of the dataset.
func (s *service) tableName(owner, namespace, dataset string) (account, id string) {
	s.t.Helper()
	withDatabase(s.t, s.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
		require.NoError(s.t, connection.QueryRow(ctx, `
			SELECT datasets.account_id::text, datasets.id::text FROM datasets
			JOIN namespaces ON namespaces.account_id = datasets.account_id AND namespaces.id = datasets.namespace_id
			JOIN accounts ON accounts.id = datasets.account_id
			WHERE accounts.username = $1 AND namespaces.name = $2 AND datasets.name = $3 AND datasets.deleted_at IS NULL AND namespaces.deleted_at IS NULL`,
			owner, namespace, dataset).Scan(&account, &id))
	})

	return account, id
}

// readTable reads the whole table of a dataset through iceberg-go's own SQL catalog, using only the standard rows in the database
// and the objects in the object store. TestMain registers the function that opens the objects.
func readTable(t *testing.T, databaseURL, account, dataset string) (contents tableContents) {
	t.Helper()

	pool, err := pgxpool.New(t.Context(), databaseURL)
	require.NoError(t, err)

	defer pool.Close()

	database := stdlib.OpenDBFromPool(pool)
	defer func() { require.NoError(t, database.Close()) }()

	contents, err = scanTable(t.Context(), database, table.Identifier{account, dataset}, iceberg.Properties{
		"init_catalog_tables":       "false", // missing catalog tables must be an error
		icebergio.S3EndpointURL:     stack.Env(t, "QUERN_TEST_S3_ENDPOINT"),
		icebergio.S3Region:          stack.Env(t, "QUERN_TEST_S3_REGION"),
		icebergio.S3AccessKeyID:     stack.Env(t, "QUERN_TEST_S3_ACCESS_KEY"),
		icebergio.S3SecretAccessKey: stack.Env(t, "QUERN_TEST_S3_SECRET_KEY"),
	})
	require.NoError(t, err)

	return contents
}

func scanTable(ctx context.Context, database *sql.DB, name table.Identifier, properties iceberg.Properties) (contents tableContents, err error) {
	tables, err := catalog.NewCatalog("quern", database, catalog.Postgres, properties)
	if err != nil {
		return contents, err
	}
	defer func() { err = errors.Join(err, tables.Close()) }()

	found, err := tables.LoadTable(ctx, name)
	if err != nil {
		return contents, err
	}

	for _, field := range found.Schema().Fields() {
		contents.columns = append(contents.columns, tableColumn{field.Name, kindOf(field)})
	}

	_, batches, err := found.Scan().ToArrowRecords(ctx)
	if err != nil {
		return contents, err
	}

	for batch, err := range batches {
		if err != nil {
			return contents, err
		}

		for row := range int(batch.NumRows()) {
			values := make([]any, batch.NumCols())
			for column := range values {
				values[column] = valueOf(batch.Column(column), row)
			}

			contents.rows = append(contents.rows, values)
		}

		batch.Release()
	}

	contents.rows = sorted(contents.rows)

	return contents, nil
}

// kindOf returns the service's name of a type. Types that the service never creates have Iceberg's name, which no test expects.
func kindOf(field iceberg.NestedField) string {
	switch kind := field.Type.(type) {
	case iceberg.Int64Type:
		return "bigint"
	case iceberg.StringType:
		if field.Doc == "json" {
			return "json"
		}

		return "varchar"
	case iceberg.DecimalType:
		return fmt.Sprintf("decimal(%d,%d)", kind.Precision(), kind.Scale())
	default:
		return kind.String()
	}
}

// Formats of dates and times, as Trino writes them.
const (
	dateLayout      = time.DateOnly
	timeLayout      = "15:04:05.000000"
	timestampLayout = dateLayout + " " + timeLayout
)

func valueOf(values arrow.Array, row int) any {
	if values.IsNull(row) {
		return nil
	}

	switch values := values.(type) {
	case *array.Boolean:
		return values.Value(row)
	case *array.Int64:
		return values.Value(row)
	case *array.Float64:
		return values.Value(row)
	case *array.Date32:
		return values.Value(row).ToTime().Format(dateLayout)
	case *array.Time64:
		return values.Value(row).ToTime(arrow.Microsecond).Format(timeLayout)
	case *array.Timestamp:
		return values.Value(row).ToTime(arrow.Microsecond).Format(timestampLayout)
	case *array.Decimal128:
		kind, _ := values.DataType().(arrow.DecimalType)

		return values.Value(row).ToString(kind.GetScale())
	default: // text, and types that no test expects
		return values.ValueStr(row)
	}
}

// openStore returns the file system with which iceberg-go reads objects. It reads whole objects, because the tables of the tests
// are small.
func openStore(_ context.Context, location *url.URL, properties map[string]string) (icebergio.IO, error) {
	return storeFiles{bucket: location.Host, client: s3.New(s3.Options{
		BaseEndpoint: new(properties[icebergio.S3EndpointURL]), UsePathStyle: true, Region: properties[icebergio.S3Region],
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: properties[icebergio.S3AccessKeyID], SecretAccessKey: properties[icebergio.S3SecretAccessKey]}, nil
		}),
	})}, nil
}

type storeFiles struct {
	bucket string
	client *s3.Client
}

func (f storeFiles) Open(name string) (icebergio.File, error) {
	key, isHere := strings.CutPrefix(name, "s3://"+f.bucket+"/")
	if !isHere {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}

	object, err := f.client.GetObject(context.Background(), &s3.GetObjectInput{Bucket: &f.bucket, Key: &key})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	defer func() { _ = object.Body.Close() }()

	content, err := io.ReadAll(object.Body)

	return storeFile{bytes.NewReader(content)}, err
}

// Remove returns an error, because a reader must not remove objects.
func (storeFiles) Remove(name string) error {
	return &fs.PathError{Op: "remove", Path: name, Err: fs.ErrPermission}
}

type storeFile struct{ *bytes.Reader }

func (storeFile) Close() error { return nil }

func (f storeFile) Stat() (fs.FileInfo, error) { return fileSize{size: f.Size()}, nil }

type fileSize struct {
	fs.FileInfo // nil: only the size is used

	size int64
}

func (f fileSize) Size() int64 { return f.size }
