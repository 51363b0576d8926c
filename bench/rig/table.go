package rig

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"quern.dev/quern/api"
)

// FillTable makes the service load the rows of a statement, from the given number of identical files.
func (b *Bench) FillTable(ctx context.Context, s *Service, name, rows string, files int) error {
	dir, err := os.MkdirTemp(b.Dir, "rows-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	path := filepath.Join(dir, "rows.parquet")
	if err := BareDuckDB(fmt.Sprintf(`COPY (%s) TO '%s' (FORMAT parquet, COMPRESSION zstd)`, rows, path)); err != nil {
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

	uploaded, err := s.Upload(ctx, OfFile(file), slices.Repeat([]int64{size}, files)...)
	if err != nil {
		return err
	}

	to, err := s.NamedDataset(ctx, name)
	if err != nil {
		return err
	}

	begin := time.Now()
	loaded, err := to.Load(ctx, uploaded.ID, api.NewIngestion{}, IngestPoll, nil)
	fmt.Fprintf(os.Stderr, "query: %d rows of %s loaded in %v\n", loaded.Progress.RowsDone, name, time.Since(begin).Round(time.Millisecond))

	return err
}
