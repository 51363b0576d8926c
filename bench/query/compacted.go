package query

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"quern.dev/quern/bench/ingest"
	"quern.dev/quern/bench/rig"
)

const (
	compactedWait  = 2 * time.Minute
	compactedFiles = 16 // data files that may remain
)

// Compacted measures a count of rows that arrived in many posts, after maintenance, beside the same rows in one
// file.
func Compacted(ctx context.Context, b *rig.Bench) ([]rig.Result, error) {
	s, stop, err := b.StartService(ctx, "QUERN_MAINTENANCE_WORKERS=1", "QUERN_MAINTENANCE_INTERVAL=1s", fmt.Sprintf("QUERN_SANDBOX_IDLE_PROCESSES=%d", Ready))
	if err != nil {
		return nil, err
	}
	defer stop()

	posted, err := s.NamedDataset(ctx, "posted")
	if err != nil {
		return nil, err
	}

	whole, err := s.NamedDataset(ctx, "whole")
	if err != nil {
		return nil, err
	}

	if err := ingest.Fill(ctx, posted, b.Posts); err != nil {
		return nil, err
	}

	var (
		rows   []ingest.PostedRow
		stored struct{ Indexed int }
	)

	for i := range b.Posts {
		rows = append(rows, ingest.RowsToPost(i)...)
	}

	if err := whole.Ask(ctx, "ada", http.MethodPost, whole.Path+"/rows", map[string]any{"data": rows}, &stored); err != nil {
		return nil, err
	}

	files, err := awaitCompacted(ctx, s)
	if err != nil {
		return nil, err
	}

	fmt.Fprintf(os.Stderr, "compacted: %d posts are %d data files\n", b.Posts, files)

	q := &Queries{Service: s, ready: Ready}

	one := q.side(`SELECT count(*) AS n FROM whole`)
	one.Name = "one file"

	ours, bare, err := rig.Alternate(ctx, b.Smalls, q.side(`SELECT count(*) AS n FROM posted`), one)

	return []rig.Result{{Name: "compacted", Ours: rig.Milliseconds(ours), Bare: rig.Milliseconds(bare), Ratio: bare / ours}}, err
}

// awaitCompacted waits until no table needs compaction, and returns the largest number of files that a table has.
func awaitCompacted(ctx context.Context, s *rig.Service) (files int, err error) {
	connection, err := pgx.Connect(ctx, s.Database)
	if err != nil {
		return 0, err
	}
	defer connection.Close(ctx)

	for end := time.Now().Add(compactedWait); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		var waiting bool

		err := connection.QueryRow(ctx, `
			SELECT EXISTS (SELECT FROM lake_upkeep WHERE chore = 'compact'), max(s.file_count)
			FROM lake_tables t JOIN lake_snapshots s ON s.account_id = t.account_id AND s.dataset_id = t.dataset_id AND s.id = t.snapshot_id`).Scan(&waiting, &files)
		if err != nil {
			return 0, err
		}

		if !waiting && files <= compactedFiles {
			return files, nil
		}
	}

	return files, errors.New("there are still many files")
}
