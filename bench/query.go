package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"quern.dev/quern/api"
)

const (
	queryMemory = 1 << 30 // of one statement, on both sides
	queryRows   = 10_000  // of a result, on both sides
	queryReady  = 2       // children that wait
	queryKeys   = 100_000 // customers
	queryMore   = 1.15    // how much longer ours may take
	queryExtra  = 20 * time.Millisecond
)

// shape is a statement of which all have their like.
type shape struct{ name, statement string }

func shapes() []shape {
	return []shape{
		{"count", `SELECT count(*) AS n FROM sales`},
		{"group-50", groupBy50},
		{"group-100k", `SELECT customer, count(*) AS n, sum(amount) AS total FROM sales GROUP BY customer`},
		{"join", `SELECT c.segment, count(*) AS n, sum(s.amount) AS total FROM sales s JOIN customers c ON c.customer = s.customer GROUP BY c.segment ORDER BY c.segment`},
		{"top", `SELECT id, region, customer, amount, sold FROM sales ORDER BY amount DESC, id LIMIT 100`},
		{"like", `SELECT count(*) AS n, min(id) AS first FROM sales WHERE note LIKE '%call%noon%'`},
	}
}

const groupBy50 = `SELECT region, count(*) AS n, sum(amount) AS total, avg(share) AS mean FROM sales GROUP BY region ORDER BY region`

// runQuery measures statements of many shapes through the API beside DuckDB alone, in this process and with the
// same files, threads and memory. Both give the rows as JSON.
func runQuery(ctx context.Context, b *bench) ([]result, error) {
	q, stop, err := b.startQueries(ctx, b.rows, queryReady)
	if err != nil {
		return nil, err
	}
	defer stop()

	bare, err := openBare(b.dir, runtime.NumCPU(), q.views...)
	if err != nil {
		return nil, err
	}
	defer bare.close()

	var results []result

	for _, s := range shapes() {
		name := "query-" + s.name
		fmt.Fprintln(os.Stderr, name)

		ours, alone, err := alternate(ctx, b.queries, q.side(s.statement), q.bareSide(bare, s.statement))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}

		results = append(results, result{
			name: name, ours: milliseconds(ours), bare: milliseconds(alone), ratio: alone / ours,
			enough: ours <= queryMore*alone+float64(queryExtra),
		})
	}

	err = b.profileDuring(ctx, "query", q.quernd, func(ctx context.Context, lasting time.Duration) error {
		for begin := time.Now(); time.Since(begin) < lasting; {
			if _, err := q.run(ctx, groupBy50); err != nil {
				return err
			}
		}

		return nil
	})

	return results, err
}

// queries is a service with sales and their customers in it.
type queries struct {
	*service

	ready int
	views []bareView // the copies that the service keeps
}

// startQueries starts a service with so many sales, of which copies of all files are on the local disk.
func (b *bench) startQueries(ctx context.Context, sales, ready int, settings ...string) (q *queries, stop func(), err error) {
	s, stop, err := b.startService(ctx, append([]string{fmt.Sprintf("QUERN_SANDBOX_READY=%d", ready), fmt.Sprintf("QUERN_QUERY_MEMORY=%dMiB", queryMemory>>20)}, settings...)...)
	if err != nil {
		return nil, nil, err
	}

	q = &queries{service: s, ready: ready}

	for _, made := range []struct{ name, rows string }{{"sales", salesRows(sales)}, {"customers", customerRows()}} {
		if err := b.fillTable(ctx, s, made.name, made.rows, 1); err != nil {
			stop()

			return nil, nil, fmt.Errorf("loading %s: %w", made.name, err)
		}

		if err := q.see(ctx, made.name); err != nil {
			stop()

			return nil, nil, fmt.Errorf("reading %s: %w", made.name, err)
		}
	}

	return q, stop, nil
}

// salesRows are the same in every run, of all common types.
func salesRows(rows int) string {
	return fmt.Sprintf(`SELECT i AS id, 'region ' || hash(i) %% 50 AS region, CAST(hash(i + 1) %% %d AS BIGINT) AS customer,
		CAST(hash(i + 2) %% 1000000 / 100 AS DECIMAL(12, 2)) AS amount, hash(i + 3) %% 99999989 / 99999989 AS share,
		TIMESTAMP '2020-01-01' + to_seconds(i * 13) AS sold, hash(i + 4) %% 3 = 0 AS paid,
		['', 'delivered late', 'said ''call me'' twice', 'paid in cash, no receipt', 'first order of this customer', 'will call again about ' || hash(i + 5) %% 1000 || ' at noon']
			[CAST(hash(i + 6) %% 6 AS INTEGER) + 1] AS note
		FROM range(%d) r(i)`, queryKeys, rows)
}

func customerRows() string {
	return fmt.Sprintf(`SELECT i AS customer, 'customer ' || i AS name, 'segment ' || hash(i) %% 20 AS segment FROM range(%d) r(i)`, queryKeys)
}

// fillTable lets the service load the rows of a statement, from so many files that are all the same.
func (b *bench) fillTable(ctx context.Context, s *service, name, rows string, files int) error {
	dir, err := os.MkdirTemp(b.dir, "rows-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	path := filepath.Join(dir, "rows.parquet")
	if err := bareDuckDB(fmt.Sprintf(`COPY (%s) TO '%s' (FORMAT parquet, COMPRESSION zstd)`, rows, path)); err != nil {
		return err
	}

	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()

	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}

	uploaded, err := s.upload(ctx, ofFile(file), slices.Repeat([]int64{size}, files)...)
	if err != nil {
		return err
	}

	to, err := s.namedDataset(ctx, name)
	if err != nil {
		return err
	}

	begin := time.Now()
	loaded, err := to.load(ctx, uploaded.id, api.NewIngestion{}, ingestPoll, nil)
	fmt.Fprintf(os.Stderr, "query: %d rows of %s loaded in %v\n", loaded.Progress.RowsDone, name, time.Since(begin).Round(time.Millisecond))

	return err
}

// see reads a dataset for the first time, and finds the copies of its files.
func (q *queries) see(ctx context.Context, name string) error {
	before, err := q.copies()
	if err != nil {
		return err
	}

	if _, err := q.run(ctx, `SELECT count(*) AS n FROM `+name); err != nil {
		return err
	}

	after, err := q.copies()
	if err != nil {
		return err
	}

	view := bareView{name: name, files: slices.DeleteFunc(after, func(path string) bool { return slices.Contains(before, path) })}
	if len(view.files) == 0 {
		return errors.New("no copy of a file was made")
	}

	q.views = append(q.views, view)

	return nil
}

func (q *queries) copies() ([]string, error) {
	return filepath.Glob(filepath.Join(q.work, "cache", "*.parquet"))
}

// side is the statement through the API.
func (q *queries) side(statement string) side {
	return side{"ours", func(ctx context.Context) (float64, string, error) {
		if err := q.rest(ctx); err != nil {
			return 0, "", err
		}

		got, err := q.run(ctx, statement)

		return float64(got.took), got.String(), err
	}}
}

// bareSide is the statement in an instance that stays.
func (q *queries) bareSide(bare *bareEngine, statement string) side {
	return side{"bare", func(ctx context.Context) (float64, string, error) {
		if err := q.rest(ctx); err != nil {
			return 0, "", err
		}

		begin := time.Now()
		lines, count, err := bare.rows(statement)
		got := answered{took: time.Since(begin), rows: count, bytes: len(lines)}

		return float64(got.took), got.String(), err
	}}
}

// answered is the answer to a statement.
type answered struct {
	took  time.Duration
	rows  int64
	bytes int
}

func (a answered) String() string {
	return fmt.Sprintf("%v, %d rows, %d bytes", a.took.Round(10*time.Microsecond), a.rows, a.bytes)
}

// run runs a statement as ada does.
func (q *queries) run(ctx context.Context, statement string) (answered, error) {
	request, err := q.request(ctx, "ada", http.MethodPost, "/query", api.QueryRequest{Username: "ada", Namespace: "bench", Query: statement})
	if err != nil {
		return answered{}, err
	}

	begin := time.Now()

	body, err := get(request)
	if err != nil {
		return answered{}, err
	}

	took := time.Since(begin)

	var answer struct{ Metadata api.QueryMetadata }

	err = json.Unmarshal(body, &answer)
	if err == nil && answer.Metadata.Count == 0 {
		err = errors.New("no rows")
	}

	return answered{took, answer.Metadata.Count, len(body)}, err
}

const queryRest = 10 * time.Second

// rest waits until all children that should wait do. Those that start take time from whoever is measured.
func (q *queries) rest(ctx context.Context) error {
	metrics, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+q.admin+"/metrics", nil)
	if err != nil {
		return err
	}

	for end := time.Now().Add(queryRest); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		shown, err := get(metrics)
		if err != nil {
			return err
		}

		if strings.Contains(string(shown), fmt.Sprintf("\nquern_sandbox_ready %d\n", q.ready)) {
			time.Sleep(5 * time.Millisecond) // for what ends behind an answer

			return nil
		}
	}

	return errors.New("the children are not ready")
}
