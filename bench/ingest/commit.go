package ingest

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
	"quern.dev/quern/bench/rig"
)

const (
	commitFiles = 20
	commitPoll  = 5 * time.Millisecond
	commitPuts  = 3 // manifest, manifest list, metadata
)

// Commit measures one commit of files whose data is already stored, until it can be read, beside iceberg-go alone
// with the same files, and counts the requests to the store.
func Commit(ctx context.Context, b *rig.Bench) ([]rig.Result, error) {
	store, vacate, err := rig.NewLocation(ctx)
	if err != nil {
		return nil, err
	}
	defer vacate()

	seen, err := rig.StartCounter(store.Endpoint)
	if err != nil {
		return nil, err
	}
	defer seen.Close()

	s, stop, err := b.StartService(ctx, "QUERN_S3_ENDPOINT="+seen.URL)
	if err != nil {
		return nil, err
	}
	defer stop()

	data, err := s.NewDataset(ctx)
	if err != nil {
		return nil, err
	}

	stored, err := commitOnce(ctx, data, seen)
	if err != nil {
		return nil, err
	}

	to, drop, err := bareTable(ctx, s.Location.Through(seen.URL), iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64},
		iceberg.NestedField{ID: 2, Name: "page", Type: iceberg.PrimitiveTypes.String},
	))
	if err != nil {
		return nil, err
	}
	defer drop()

	to, entries, err := addFirst(ctx, seen, to, stored.files)
	if err != nil {
		return nil, err
	}

	var ourRequests, bareRequests tally

	ours, bare, err := rig.Alternate(ctx, b.Commits,
		rig.Side{Name: "ours", Round: func(ctx context.Context) (float64, string, error) {
			made, err := commitOnce(ctx, data, seen)
			ourRequests = made.requests

			return float64(made.took), fmt.Sprintf("%v (of it %v before the first request), %s", made.took, made.before, made.requests), err
		}},
		rig.Side{Name: "bare", Round: func(ctx context.Context) (float64, string, error) {
			seen.Take()

			begin := time.Now()
			change := to.NewTransaction()
			err := change.AddDataFiles(ctx, entries, nil, table.WithoutDuplicateCheck())

			if err == nil {
				to, err = change.Commit(ctx)
			}

			took := time.Since(begin)
			bareRequests = count(seen.Take())

			return float64(took), fmt.Sprintf("%v, %s", took, bareRequests), err
		}})
	if err != nil {
		return nil, err
	}

	return []rig.Result{
		{Name: "commit", Ours: rig.Milliseconds(ours), Bare: rig.Milliseconds(bare), Ratio: bare / ours},
		{
			Name: "commit-requests", Ours: ourRequests.String(), Bare: bareRequests.String(),
			Ratio: float64(commitPuts) / float64(ourRequests.puts+ourRequests.others), Goal: 1,
		},
	}, nil
}

// addFirst adds the files with nothing known about them but their names, so iceberg-go reads them all. It returns what
// iceberg-go found, because the service knows as much about staged files.
func addFirst(ctx context.Context, c *rig.Counter, to *table.Table, files []string) (*table.Table, []iceberg.DataFile, error) {
	c.Take()

	begin := time.Now()
	change := to.NewTransaction()

	if err := change.AddFiles(ctx, files, nil, false); err != nil {
		return nil, nil, err
	}

	to, err := change.Commit(ctx)
	if err != nil {
		return nil, nil, err
	}

	fmt.Fprintf(os.Stderr, "commit: iceberg-go alone, when it has to read the files first: %v, %s\n", time.Since(begin), count(c.Take()))

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

func count(requests []rig.Request) (t tally) {
	for _, r := range requests {
		if r.Method == http.MethodPut {
			t.puts++
		} else {
			t.others++
		}
	}

	return t
}

// committed is what was observed of a commit of the service.
type committed struct {
	took     time.Duration // since the last data file was stored
	before   time.Duration // from the end of the last data file to the first request
	requests tally
	files    []string // addresses of the data files
}

func commitOnce(ctx context.Context, d rig.Dataset, seen *rig.Counter) (made committed, err error) {
	var rows bytes.Buffer
	for i := range 100 {
		fmt.Fprintf(&rows, "%d,/page/%d\n", i, i%7)
	}

	content := append([]byte("id,page\n"), rows.Bytes()...)

	files, err := d.Upload(ctx, rig.OfFile(bytes.NewReader(content)), slices.Repeat([]int64{int64(len(content))}, commitFiles)...)
	if err != nil {
		return made, err
	}

	seen.Take()

	if _, err := d.Load(ctx, files.ID, api.NewIngestion{}, commitPoll, nil); err != nil {
		return made, err
	}

	ended := time.Now()

	var (
		stored   time.Time
		metadata []rig.Request
	)

	for _, r := range seen.Take() {
		switch _, key, isLake := strings.Cut(r.Path, "/lake/"); {
		case isLake && path.Ext(key) == ".parquet":
			stored = latest(stored, r.Ended)
			made.files = append(made.files, "s3:/"+r.Path)
		case isLake:
			metadata = append(metadata, r)
		}
	}

	if len(made.files) != commitFiles || len(metadata) == 0 {
		return made, errors.New("the requests of the commit were not seen")
	}

	first := slices.MinFunc(metadata, func(a, b rig.Request) int { return a.Begun.Compare(b.Begun) })
	made.took, made.before, made.requests = ended.Sub(stored), first.Begun.Sub(stored), count(metadata)

	return made, nil
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}

	return b
}
