package query

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"quern.dev/quern/bench/rig"
)

const (
	trinoTable = "events"
	trinoFile  = 1_000_000 // rows of one file; larger tables have more of them
	trinoMore  = 1.1       // how much longer ours may take
	trinoExtra = 50 * time.Millisecond
	trinoWarm  = 2 // a new JVM compiles its code during the first statements
)

// trinoShapes are statements with at most 1,000 rows of result that mean the same to both engines. %s is the table.
func trinoShapes() []shape {
	return []shape{
		{"count", `SELECT count(*) AS n FROM %s WHERE amount >= 5000`},
		{"group", `SELECT region, count(*) AS n, sum(amount) AS total FROM %s GROUP BY region ORDER BY region`},
		{"customers", `SELECT customer, sum(amount) AS total FROM %s WHERE region = 'region 7' GROUP BY customer ORDER BY total DESC, customer LIMIT 1000`},
		{"top", `SELECT id, region, amount, sold FROM %s ORDER BY amount DESC, id LIMIT 1000`},
	}
}

// trinoRows returns the rows of one file.
func trinoRows(rows int) string {
	return fmt.Sprintf(`SELECT i AS id, 'region ' || hash(i) %% 50 AS region, CAST(hash(i + 1) %% %d AS BIGINT) AS customer,
		CAST(hash(i + 2) %% 1000000 / 100 AS DECIMAL(12, 2)) AS amount, TIMESTAMP '2020-01-01' + to_seconds(i * 13) AS sold
		FROM range(%d) r(i)`, queryKeys, rows)
}

// onCluster is a service with datasets of one kind and different sizes, and the cluster that reads them.
type onCluster struct {
	*Queries

	cluster *rig.Cluster
	bench   *rig.Bench
}

// startOnCluster starts a service with a dataset for each number of rows.
func startOnCluster(ctx context.Context, b *rig.Bench, sizes ...int) (*onCluster, func(), error) {
	cluster, err := rig.NewCluster(ctx)
	if err != nil {
		return nil, nil, err
	}

	s, stopService, err := b.StartService(ctx, append(cluster.Settings(), fmt.Sprintf("QUERN_SANDBOX_IDLE_PROCESSES=%d", Ready),
		fmt.Sprintf("QUERN_QUERY_MEMORY=%dMiB", queryMemory>>20), "QUERN_QUERY_TIMEOUT=5m", "QUERN_REQUEST_TIMEOUT=5m", "QUERN_INGEST_WORKERS=1")...)
	if err != nil {
		cluster.Drop(ctx)

		return nil, nil, err
	}

	stop := func() {
		cluster.Drop(ctx)
		stopService()
	}

	c := &onCluster{Queries: &Queries{Service: s, ready: Ready}, cluster: cluster, bench: b}
	if err := c.fill(ctx, sizes); err != nil {
		stop()

		return nil, nil, err
	}

	return c, stop, nil
}

func (c *onCluster) fill(ctx context.Context, sizes []int) error {
	for _, size := range sizes {
		perFile := min(size, trinoFile)
		if err := c.bench.FillTable(ctx, c.Service, tableOf(size), trinoRows(perFile), size/perFile); err != nil {
			return fmt.Errorf("loading %d rows: %w", size, err)
		}
	}

	return c.cluster.Read(ctx, c.Service)
}

func tableOf(size int) string { return fmt.Sprintf("%s_%d", trinoTable, size) }

// raw returns the name of a dataset's table in the catalog that reads it without the service.
func (c *onCluster) raw(ctx context.Context, dataset string) (name string, err error) {
	err = c.Scan(ctx, fmt.Sprintf(`SELECT account_id::text, id::text FROM datasets WHERE name = '%s'`, dataset), func(row pgx.CollectableRow) error {
		var account, id string
		if err := row.Scan(&account, &id); err != nil {
			return err
		}

		name = fmt.Sprintf(`%s."%s"."%s"`, c.cluster.Raw, account, id)

		return nil
	})

	return name, err
}

// client runs the statement with the bare client of Trino.
func (c *onCluster) client(statement string) rig.Side {
	return rig.Side{Name: "bare", Round: func(ctx context.Context) (float64, string, error) {
		if err := c.Rest(ctx); err != nil {
			return 0, "", err
		}

		begin := time.Now()
		rows, err := c.cluster.Rows(ctx, statement)
		got := Answered{Took: time.Since(begin), rows: int64(len(rows))}

		return float64(got.Took), got.String(), err
	}}
}

// Trino measures statements over a large dataset on Trino through the API, beside the bare client of Trino over the same table.
func Trino(ctx context.Context, b *rig.Bench) ([]rig.Result, error) {
	c, stop, err := startOnCluster(ctx, b, b.Cluster)
	if err != nil {
		return nil, err
	}
	defer stop()

	dataset := tableOf(b.Cluster)
	if err := b.SetEngine(ctx, c.Quernd, dataset, "trino"); err != nil {
		return nil, err
	}

	table, err := c.raw(ctx, dataset)
	if err != nil {
		return nil, err
	}

	var results []rig.Result

	for _, s := range trinoShapes() {
		name := "trino-" + s.name
		fmt.Fprintln(os.Stderr, name)

		ours, bare := c.side(fmt.Sprintf(s.statement, dataset)), c.client(fmt.Sprintf(s.statement, table))

		for range trinoWarm {
			for _, side := range []rig.Side{ours, bare} {
				if _, _, err := side.Round(ctx); err != nil {
					return nil, fmt.Errorf("%s: %w", name, err)
				}
			}
		}

		through, alone, err := rig.Alternate(ctx, b.Clustered, ours, bare)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}

		results = append(results, rig.Result{
			Name: name, Ours: rig.Milliseconds(through), Bare: rig.Milliseconds(alone), Ratio: alone / through,
			Enough: through <= trinoMore*alone+float64(trinoExtra),
		})
	}

	return results, nil
}

// TrinoCross measures the same statements through the API over datasets of growing size, on DuckDB and on Trino. It tells where the
// engines cross on this machine, and has no goal.
func TrinoCross(ctx context.Context, b *rig.Bench) ([]rig.Result, error) {
	sizes := []int{b.Cluster / 50, b.Cluster / 10, b.Cluster * 2 / 5, b.Cluster}

	c, stop, err := startOnCluster(ctx, b, sizes...)
	if err != nil {
		return nil, err
	}
	defer stop()

	var results []rig.Result

	for _, size := range sizes {
		for _, s := range trinoShapes() {
			took := map[string]float64{}

			for _, engine := range []string{"duckdb", "trino"} {
				if err := b.SetEngine(ctx, c.Quernd, tableOf(size), engine); err != nil {
					return nil, err
				}

				side := c.side(fmt.Sprintf(s.statement, tableOf(size)))

				var figures []float64

				for i := range b.Clustered + trinoWarm {
					figure, remark, err := side.Round(ctx)
					if err != nil {
						return nil, fmt.Errorf("%d rows on %s: %w", size, engine, err)
					}

					fmt.Fprintf(os.Stderr, "%s of %d rows on %s: %s\n", s.name, size, engine, remark)

					if i >= trinoWarm {
						figures = append(figures, figure)
					}
				}

				took[engine] = rig.Median(figures)
			}

			results = append(results, rig.Result{
				Name: fmt.Sprintf("trino-cross-%s-%d", s.name, size), Ours: rig.Milliseconds(took["trino"]), Bare: rig.Milliseconds(took["duckdb"]),
				Ratio: took["duckdb"] / took["trino"], Enough: true,
			})
		}
	}

	return results, nil
}
