package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"quern.dev/quern/api"
)

const (
	commitFiles = 20
	commitPoll  = 5 * time.Millisecond
	commitPuts  = 3 // manifest, manifest list, metadata
)

// runCommit measures one commit of files whose data is stored already, until it can be read, beside iceberg-go
// alone with the same files, and counts the requests to the store.
func runCommit(ctx context.Context, b *bench) ([]result, error) {
	store, vacate, err := newPlace(ctx)
	if err != nil {
		return nil, err
	}
	defer vacate()

	seen, err := startCounter(store.endpoint)
	if err != nil {
		return nil, err
	}
	defer seen.Close()

	s, stop, err := b.startService(ctx, "QUERN_S3_ENDPOINT="+seen.URL)
	if err != nil {
		return nil, err
	}
	defer stop()

	data, err := s.newDataset(ctx)
	if err != nil {
		return nil, err
	}

	stored, err := data.commit(ctx, seen)
	if err != nil {
		return nil, err
	}

	to, drop, err := bareTable(ctx, s.place.through(seen.URL), iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64},
		iceberg.NestedField{ID: 2, Name: "page", Type: iceberg.PrimitiveTypes.String},
	))
	if err != nil {
		return nil, err
	}
	defer drop()

	to, entries, err := seen.addFirst(ctx, to, stored.files)
	if err != nil {
		return nil, err
	}

	var ourRequests, bareRequests tally

	ours, bare, err := alternate(ctx, b.commits,
		side{"ours", func(ctx context.Context) (float64, string, error) {
			made, err := data.commit(ctx, seen)
			ourRequests = made.requests

			return float64(made.took), fmt.Sprintf("%v (of it %v before the first request), %s", made.took, made.before, made.requests), err
		}},
		side{"bare", func(ctx context.Context) (float64, string, error) {
			seen.take()

			begin := time.Now()
			change := to.NewTransaction()
			err := change.AddDataFiles(ctx, entries, nil, table.WithoutDuplicateCheck())

			if err == nil {
				to, err = change.Commit(ctx)
			}

			took := time.Since(begin)
			bareRequests = count(seen.take())

			return float64(took), fmt.Sprintf("%v, %s", took, bareRequests), err
		}})
	if err != nil {
		return nil, err
	}

	return []result{
		{name: "commit", ours: milliseconds(ours), bare: milliseconds(bare), ratio: bare / ours},
		{
			name: "commit-requests", ours: ourRequests.String(), bare: bareRequests.String(),
			ratio: float64(commitPuts) / float64(ourRequests.puts+ourRequests.others), goal: 1,
		},
	}, nil
}

// addFirst adds the files as somebody does who knows nothing of them but their names: it reads them all. What
// it finds out is returned, because the service knows as much of staged files.
func (c *counter) addFirst(ctx context.Context, to *table.Table, files []string) (*table.Table, []iceberg.DataFile, error) {
	c.take()

	begin := time.Now()
	change := to.NewTransaction()

	if err := change.AddFiles(ctx, files, nil, false); err != nil {
		return nil, nil, err
	}

	to, err := change.Commit(ctx)
	if err != nil {
		return nil, nil, err
	}

	fmt.Fprintf(os.Stderr, "commit: iceberg-go alone, when it has to read the files first: %v, %s\n", time.Since(begin), count(c.take()))

	tasks, err := to.Scan().PlanFiles(ctx)
	if err != nil {
		return nil, nil, err
	}

	entries := make([]iceberg.DataFile, len(tasks))
	for i, task := range tasks {
		entries[i] = task.File
	}

	return to, entries, nil
}

// tally is the number of requests to the store.
type tally struct{ puts, others int }

func (t tally) String() string { return fmt.Sprintf("%dPUT+%dother", t.puts, t.others) }

func count(requests []request) (t tally) {
	for _, r := range requests {
		if r.method == http.MethodPut {
			t.puts++
		} else {
			t.others++
		}
	}

	return t
}

// committed is what was seen of a commit of ours.
type committed struct {
	took     time.Duration // since the last data file was stored
	before   time.Duration // until the first request
	requests tally
	files    []string // addresses of the data
}

func (d dataset) commit(ctx context.Context, seen *counter) (made committed, err error) {
	var rows bytes.Buffer
	for i := range 100 {
		fmt.Fprintf(&rows, "%d,/page/%d\n", i, i%7)
	}

	content := append([]byte("id,page\n"), rows.Bytes()...)

	files, err := d.upload(ctx, ofFile(bytes.NewReader(content)), slices.Repeat([]int64{int64(len(content))}, commitFiles)...)
	if err != nil {
		return made, err
	}

	seen.take()

	if _, err := d.load(ctx, files.id, api.NewIngestion{}, commitPoll, nil); err != nil {
		return made, err
	}

	ended := time.Now()

	var (
		stored   time.Time
		metadata []request
	)

	for _, r := range seen.take() {
		switch _, key, isLake := strings.Cut(r.path, "/lake/"); {
		case isLake && path.Ext(key) == ".parquet":
			stored = latest(stored, r.ended)
			made.files = append(made.files, "s3:/"+r.path)
		case isLake:
			metadata = append(metadata, r)
		}
	}

	if len(made.files) != commitFiles || len(metadata) == 0 {
		return made, errors.New("the requests of the commit were not seen")
	}

	first := slices.MinFunc(metadata, func(a, b request) int { return a.begun.Compare(b.begun) })
	made.took, made.before, made.requests = ended.Sub(stored), first.begun.Sub(stored), count(metadata)

	return made, nil
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}

	return b
}
