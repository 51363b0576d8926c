package query

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
	"strings"
	"time"

	"quern.dev/quern/api"
	"quern.dev/quern/bench/ingest"
	"quern.dev/quern/bench/rig"
)

const (
	wideRows  = 10_000
	widePage  = 100 // rows of the first page
	wideMore  = 1.5 // how much longer ours may take
	wideExtra = 50 * time.Millisecond
	wideLoad  = 0.5 // at most twice as long
)

// Wide measures a table with very many columns: its load, its first page, one whole row and two of its columns.
func Wide(ctx context.Context, b *rig.Bench) ([]rig.Result, error) {
	s, stop, err := b.StartService(ctx, fmt.Sprintf("QUERN_SANDBOX_IDLE_PROCESSES=%d", Ready), fmt.Sprintf("QUERN_QUERY_MEMORY=%dMiB", queryMemory>>20),
		fmt.Sprintf("QUERN_INGEST_THREADS=%d", ingest.Threads), fmt.Sprintf("QUERN_INGEST_MEMORY=%dMiB", ingest.Memory>>20))
	if err != nil {
		return nil, err
	}
	defer stop()

	loaded, err := loadWide(ctx, b, s)
	if err != nil {
		return nil, err
	}

	q := &Queries{Service: s, ready: Ready}
	if err := q.see(ctx, "wide"); err != nil {
		return nil, err
	}

	bare, err := openBare(b.Dir, runtime.NumCPU(), q.views...)
	if err != nil {
		return nil, err
	}
	defer bare.close()

	results := []rig.Result{loaded}

	for _, one := range []struct {
		name, statement string
		ours            func(statement string) rig.Side
	}{
		{"wide-page", fmt.Sprintf(`FROM wide LIMIT %d`, widePage), func(string) rig.Side { return q.pageSide("wide") }},
		{"wide-star", `FROM wide LIMIT 1`, q.side},
		{"wide-two", `SELECT c0, c1 FROM wide LIMIT 1`, q.side},
	} {
		fmt.Fprintln(os.Stderr, one.name)

		ours, alone, err := rig.Alternate(ctx, b.Queries, one.ours(one.statement), q.bareSide(bare, one.statement))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", one.name, err)
		}

		results = append(results, rig.Result{
			Name: one.name, Ours: rig.Milliseconds(ours), Bare: rig.Milliseconds(alone), Ratio: alone / ours,
			Enough: ours <= wideMore*alone+float64(wideExtra),
		})
	}

	return results, b.ProfileDuring(ctx, "wide", q.Quernd, func(ctx context.Context, lasting time.Duration) error {
		for begin := time.Now(); time.Since(begin) < lasting; {
			if _, err := q.Run(ctx, `FROM wide LIMIT 1`); err != nil {
				return err
			}
		}

		return nil
	})
}

// loadWide measures the time until the rows of the uploaded CSV file can be read, beside bareLoad.
func loadWide(ctx context.Context, b *rig.Bench, s *rig.Service) (rig.Result, error) {
	data, err := s.NamedDataset(ctx, "wide")
	if err != nil {
		return rig.Result{}, err
	}

	files, size, err := uploadWide(ctx, b, s)
	if err != nil {
		return rig.Result{}, err
	}

	fmt.Fprintf(os.Stderr, "wide: %d columns, %d rows, %d bytes\n", b.Columns, wideRows, size)

	var memory rig.Footprint

	ours, bare, err := rig.Alternate(ctx, b.Loads,
		rig.Side{Name: "ours", Round: func(ctx context.Context) (float64, string, error) {
			took, _, phases, err := ingest.TimedLoad(ctx, data, files, wideRows, &memory)

			return float64(took), fmt.Sprintf("%v%s", took, phases), err
		}},
		rig.Side{Name: "bare", Round: func(ctx context.Context) (float64, string, error) {
			took, remark, err := ingest.BareLoad(ctx, b, s.Location, files.Key)

			return float64(took), remark, err
		}})

	return rig.Result{Name: "wide-load", Ours: rig.Seconds(ours), Bare: rig.Seconds(bare), Ratio: bare / ours, Goal: wideLoad}, err
}

// uploadWide writes the CSV file, with columns of all common types in turn, and uploads it.
func uploadWide(ctx context.Context, b *rig.Bench, s *rig.Service) (files rig.Session, size int64, err error) {
	kinds := []string{
		`CAST(hash(i + %[1]d) %% 1000 AS BIGINT) AS c%[1]d`,
		`'value ' || hash(i + %[1]d) %% 97 AS c%[1]d`,
		`hash(i + %[1]d) %% 99989 / 99989 AS c%[1]d`,
		`CAST(hash(i + %[1]d) %% 100000 / 100 AS DECIMAL(12, 2)) AS c%[1]d`,
		`DATE '2020-01-01' + CAST(hash(i + %[1]d) %% 1000 AS INTEGER) AS c%[1]d`,
	}

	columns := make([]string, b.Columns)
	for n := range columns {
		columns[n] = fmt.Sprintf(kinds[n%len(kinds)], n)
	}

	path := filepath.Join(b.Dir, "wide.csv")
	defer os.Remove(path)

	err = rig.BareDuckDB(fmt.Sprintf(`COPY (SELECT %s FROM range(%d) r(i)) TO '%s' (FORMAT csv)`, strings.Join(columns, ", "), wideRows, path))
	if err != nil {
		return files, 0, err
	}

	file, err := os.Open(path)
	if err != nil {
		return files, 0, err
	}
	defer file.Close()

	if size, err = file.Seek(0, io.SeekEnd); err != nil {
		return files, 0, err
	}

	files, err = s.Upload(ctx, rig.OfFile(file), size)

	return files, size, err
}

// pageSide requests the first page of a dataset.
func (q *Queries) pageSide(name string) rig.Side {
	return rig.Side{Name: "ours", Round: func(ctx context.Context) (float64, string, error) {
		if err := q.Rest(ctx); err != nil {
			return 0, "", err
		}

		request, err := q.Request(ctx, "ada", http.MethodGet, fmt.Sprintf("/data/ada/bench/%s/rows?limit=%d", name, widePage), nil)
		if err != nil {
			return 0, "", err
		}

		begin := time.Now()

		body, err := rig.Get(request)
		if err != nil {
			return 0, "", err
		}

		got := Answered{Took: time.Since(begin), bytes: len(body)}

		var page api.RowPage
		if err := json.Unmarshal(body, &page); err != nil {
			return 0, "", err
		}

		if got.rows = int64(len(page.Data)); got.rows != widePage {
			err = errors.New("not a whole page")
		}

		return float64(got.Took), got.String(), err
	}}
}
