// Package query measures statements over the rows of datasets beside DuckDB alone, and the search for matches in value
// indexes.
package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"quern.dev/quern/api"
	"quern.dev/quern/bench/rig"
)

const (
	queryMemory = 1 << 30 // memory of one statement, on both sides
	queryRows   = 10_000  // maximum rows of a result, on both sides
	Ready       = 2       // idle sealed processes
	queryKeys   = 100_000 // number of customers
	queryMore   = 1.15    // how much longer ours may take
	queryExtra  = 20 * time.Millisecond
)

// shape is a statement that represents a kind of statements.
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

// Query measures statements of many shapes through the API beside DuckDB alone, in this process and with the same
// files, threads and memory. Both return the rows as JSON.
func Query(ctx context.Context, b *rig.Bench) ([]rig.Result, error) {
	q, stop, err := StartQueries(ctx, b, b.Rows, Ready)
	if err != nil {
		return nil, err
	}
	defer stop()

	bare, err := openBare(b.Dir, runtime.NumCPU(), q.views...)
	if err != nil {
		return nil, err
	}
	defer bare.close()

	var results []rig.Result

	for _, s := range shapes() {
		name := "query-" + s.name
		fmt.Fprintln(os.Stderr, name)

		ours, alone, err := rig.Alternate(ctx, b.Queries, q.side(s.statement), q.bareSide(bare, s.statement))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}

		results = append(results, rig.Result{
			Name: name, Ours: rig.Milliseconds(ours), Bare: rig.Milliseconds(alone), Ratio: alone / ours,
			Enough: ours <= queryMore*alone+float64(queryExtra),
		})
	}

	err = b.ProfileDuring(ctx, "query", q.Quernd, func(ctx context.Context, lasting time.Duration) error {
		for begin := time.Now(); time.Since(begin) < lasting; {
			if _, err := q.Run(ctx, groupBy50); err != nil {
				return err
			}
		}

		return nil
	})

	return results, err
}

// Queries is a service with sales and their customers.
type Queries struct {
	*rig.Service

	ready int
	views []bareView // the copies of data files that the service keeps
}

// StartQueries starts a service with the given number of sales, with copies of all data files on the local disk.
func StartQueries(ctx context.Context, b *rig.Bench, sales, ready int, settings ...string) (q *Queries, stop func(), err error) {
	s, stop, err := b.StartService(ctx, append([]string{fmt.Sprintf("QUERN_SANDBOX_IDLE_PROCESSES=%d", ready), fmt.Sprintf("QUERN_QUERY_MEMORY=%dMiB", queryMemory>>20)}, settings...)...)
	if err != nil {
		return nil, nil, err
	}

	q = &Queries{Service: s, ready: ready}

	for _, made := range []struct{ name, rows string }{{"sales", SalesRows(sales)}, {"customers", customerRows()}} {
		if err := b.FillTable(ctx, s, made.name, made.rows, 1); err != nil {
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

// SalesRows returns the SQL of rows that are the same in every run, with columns of all common types.
func SalesRows(rows int) string {
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

// see reads a dataset for the first time, and finds the copies of its data files.
func (q *Queries) see(ctx context.Context, name string) error {
	before, err := q.copies()
	if err != nil {
		return err
	}

	if _, err := q.Run(ctx, `SELECT count(*) AS n FROM `+name); err != nil {
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

func (q *Queries) copies() ([]string, error) {
	return filepath.Glob(filepath.Join(q.Work, "cache", "*.parquet"))
}

// side runs the statement through the API.
func (q *Queries) side(statement string) rig.Side {
	return rig.Side{Name: "ours", Round: func(ctx context.Context) (float64, string, error) {
		if err := q.Rest(ctx); err != nil {
			return 0, "", err
		}

		got, err := q.Run(ctx, statement)

		return float64(got.Took), got.String(), err
	}}
}

// bareSide runs the statement in a DuckDB instance that stays open.
func (q *Queries) bareSide(bare *bareEngine, statement string) rig.Side {
	return rig.Side{Name: "bare", Round: func(ctx context.Context) (float64, string, error) {
		if err := q.Rest(ctx); err != nil {
			return 0, "", err
		}

		begin := time.Now()
		lines, count, err := bare.rows(statement)
		got := Answered{Took: time.Since(begin), rows: count, bytes: len(lines)}

		return float64(got.Took), got.String(), err
	}}
}

// Answered is the measured result of a statement.
type Answered struct {
	Took  time.Duration
	rows  int64
	bytes int
}

func (a Answered) String() string {
	return fmt.Sprintf("%v, %d rows, %d bytes", a.Took.Round(10*time.Microsecond), a.rows, a.bytes)
}

// Run runs a statement as ada.
func (q *Queries) Run(ctx context.Context, statement string) (Answered, error) {
	request, err := q.Request(ctx, "ada", http.MethodPost, "/query", api.QueryRequest{Username: new("ada"), Namespace: new("bench"), Query: statement})
	if err != nil {
		return Answered{}, err
	}

	begin := time.Now()

	body, err := rig.Get(request)
	if err != nil {
		return Answered{}, err
	}

	took := time.Since(begin)

	var answer struct{ Metadata api.QueryMetadata }

	err = json.Unmarshal(body, &answer)
	if err == nil && answer.Metadata.Count == 0 {
		err = errors.New("no rows")
	}

	return Answered{took, answer.Metadata.Count, len(body)}, err
}

const queryRest = 10 * time.Second

// Rest waits until all idle sealed processes have started: those that are starting would disturb the measurement.
func (q *Queries) Rest(ctx context.Context) error {
	metrics, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+q.Admin+"/metrics", nil)
	if err != nil {
		return err
	}

	for end := time.Now().Add(queryRest); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		shown, err := rig.Get(metrics)
		if err != nil {
			return err
		}

		if strings.Contains(string(shown), fmt.Sprintf("\nquern_sandbox_idle %d\n", q.ready)) {
			time.Sleep(5 * time.Millisecond) // for work that continues after a response

			return nil
		}
	}

	return errors.New("the children are not ready")
}
