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
	"strings"
	"time"

	"quern.dev/quern/api"
)

const (
	wideRows  = 10_000
	widePage  = 100 // rows of the first page
	wideMore  = 1.5 // how much longer ours may take
	wideExtra = 50 * time.Millisecond
	wideLoad  = 0.5 // at most twice as long
)

// runWide measures a table of very many columns: its load, its first page, one whole row and two of its columns.
func runWide(ctx context.Context, b *bench) ([]result, error) {
	s, stop, err := b.startService(ctx, fmt.Sprintf("QUERN_SANDBOX_READY=%d", queryReady), fmt.Sprintf("QUERN_QUERY_MEMORY=%dMiB", queryMemory>>20),
		fmt.Sprintf("QUERN_INGEST_THREADS=%d", ingestThreads), fmt.Sprintf("QUERN_INGEST_MEMORY=%dMiB", ingestMemory>>20))
	if err != nil {
		return nil, err
	}
	defer stop()

	loaded, err := b.loadWide(ctx, s)
	if err != nil {
		return nil, err
	}

	q := &queries{service: s, ready: queryReady}
	if err := q.see(ctx, "wide"); err != nil {
		return nil, err
	}

	bare, err := openBare(b.dir, runtime.NumCPU(), q.views...)
	if err != nil {
		return nil, err
	}
	defer bare.close()

	results := []result{loaded}

	for _, one := range []struct {
		name, statement string
		ours            func(statement string) side
	}{
		{"wide-page", fmt.Sprintf(`FROM wide LIMIT %d`, widePage), func(string) side { return q.pageSide("wide") }},
		{"wide-star", `FROM wide LIMIT 1`, q.side},
		{"wide-two", `SELECT c0, c1 FROM wide LIMIT 1`, q.side},
	} {
		fmt.Fprintln(os.Stderr, one.name)

		ours, alone, err := alternate(ctx, b.queries, one.ours(one.statement), q.bareSide(bare, one.statement))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", one.name, err)
		}

		results = append(results, result{
			name: one.name, ours: milliseconds(ours), bare: milliseconds(alone), ratio: alone / ours,
			enough: ours <= wideMore*alone+float64(wideExtra),
		})
	}

	return results, b.profileDuring(ctx, "wide", q.quernd, func(ctx context.Context, lasting time.Duration) error {
		for begin := time.Now(); time.Since(begin) < lasting; {
			if _, err := q.run(ctx, `FROM wide LIMIT 1`); err != nil {
				return err
			}
		}

		return nil
	})
}

// loadWide measures how long it takes until the rows of the uploaded CSV file can be read, beside bareLoad.
func (b *bench) loadWide(ctx context.Context, s *service) (result, error) {
	data, err := s.namedDataset(ctx, "wide")
	if err != nil {
		return result{}, err
	}

	files, size, err := b.uploadWide(ctx, s)
	if err != nil {
		return result{}, err
	}

	fmt.Fprintf(os.Stderr, "wide: %d columns, %d rows, %d bytes\n", b.columns, wideRows, size)

	var memory footprint

	ours, bare, err := alternate(ctx, b.loads,
		side{"ours", func(ctx context.Context) (float64, string, error) {
			took, _, phases, err := data.timedLoad(ctx, files, wideRows, &memory)

			return float64(took), fmt.Sprintf("%v%s", took, phases), err
		}},
		side{"bare", func(ctx context.Context) (float64, string, error) {
			took, remark, err := b.bareLoad(ctx, s.place, files.key)

			return float64(took), remark, err
		}})

	return result{name: "wide-load", ours: seconds(ours), bare: seconds(bare), ratio: bare / ours, goal: wideLoad}, err
}

// uploadWide makes the CSV file, of columns of all common types in turn, and uploads it.
func (b *bench) uploadWide(ctx context.Context, s *service) (files session, size int64, err error) {
	kinds := []string{
		`CAST(hash(i + %[1]d) %% 1000 AS BIGINT) AS c%[1]d`,
		`'value ' || hash(i + %[1]d) %% 97 AS c%[1]d`,
		`hash(i + %[1]d) %% 99989 / 99989 AS c%[1]d`,
		`CAST(hash(i + %[1]d) %% 100000 / 100 AS DECIMAL(12, 2)) AS c%[1]d`,
		`DATE '2020-01-01' + CAST(hash(i + %[1]d) %% 1000 AS INTEGER) AS c%[1]d`,
	}

	columns := make([]string, b.columns)
	for n := range columns {
		columns[n] = fmt.Sprintf(kinds[n%len(kinds)], n)
	}

	path := filepath.Join(b.dir, "wide.csv")
	defer os.Remove(path)

	err = bareDuckDB(fmt.Sprintf(`COPY (SELECT %s FROM range(%d) r(i)) TO '%s' (FORMAT csv)`, strings.Join(columns, ", "), wideRows, path))
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

	files, err = s.upload(ctx, ofFile(file), size)

	return files, size, err
}

// pageSide is the first page of a dataset.
func (q *queries) pageSide(name string) side {
	return side{"ours", func(ctx context.Context) (float64, string, error) {
		if err := q.rest(ctx); err != nil {
			return 0, "", err
		}

		request, err := q.request(ctx, "ada", http.MethodGet, fmt.Sprintf("/data/ada/bench/%s/rows?limit=%d", name, widePage), nil)
		if err != nil {
			return 0, "", err
		}

		begin := time.Now()

		body, err := get(request)
		if err != nil {
			return 0, "", err
		}

		got := answered{took: time.Since(begin), bytes: len(body)}

		var page api.RowPage
		if err := json.Unmarshal(body, &page); err != nil {
			return 0, "", err
		}

		if got.rows = int64(len(page.Data)); got.rows != widePage {
			err = errors.New("not a whole page")
		}

		return float64(got.took), got.String(), err
	}}
}
