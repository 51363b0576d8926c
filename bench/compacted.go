package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	compactedWait  = 2 * time.Minute
	compactedFiles = 16 // data files that may be left
)

// runCompacted measures a count of rows that came in many posts, when housekeeping has been there, beside the same rows
// in one file.
func runCompacted(ctx context.Context, b *bench) ([]result, error) {
	s, stop, err := b.startService(ctx, "QUERN_UPKEEP_WORKERS=1", "QUERN_UPKEEP_EVERY=1s", fmt.Sprintf("QUERN_SANDBOX_READY=%d", queryReady))
	if err != nil {
		return nil, err
	}
	defer stop()

	posted, err := s.namedDataset(ctx, "posted")
	if err != nil {
		return nil, err
	}

	whole, err := s.namedDataset(ctx, "whole")
	if err != nil {
		return nil, err
	}

	if err := posted.fill(ctx, b.posts); err != nil {
		return nil, err
	}

	var (
		rows   []postedRow
		stored struct{ Indexed int }
	)

	for i := range b.posts {
		rows = append(rows, rowsToPost(i)...)
	}

	if err := whole.ask(ctx, "ada", http.MethodPost, whole.path+"/rows", map[string]any{"data": rows}, &stored); err != nil {
		return nil, err
	}

	files, err := s.awaitCompacted(ctx)
	if err != nil {
		return nil, err
	}

	fmt.Fprintf(os.Stderr, "compacted: %d posts are %d data files\n", b.posts, files)

	q := &queries{service: s, ready: queryReady}

	one := q.side(`SELECT count(*) AS n FROM whole`)
	one.name = "one file"

	ours, bare, err := alternate(ctx, b.smalls, q.side(`SELECT count(*) AS n FROM posted`), one)

	return []result{{name: "compacted", ours: milliseconds(ours), bare: milliseconds(bare), ratio: bare / ours}}, err
}

// awaitCompacted waits until no table has files that should be fewer, and returns how many the one with most has.
func (s *service) awaitCompacted(ctx context.Context) (files int, err error) {
	connection, err := pgx.Connect(ctx, s.database)
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
