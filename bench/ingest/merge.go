package ingest

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"quern.dev/quern/api"
	"quern.dev/quern/bench/rig"
)

// mergeShare is how many rows of the table there are for one that is changed.
const mergeShare = 100

// Merge measures how long a merge of changed rows into a table takes, beside DuckDB that does the same with local files: it
// writes the rows of the table without those that change, and the changed rows, as Parquet. The changed rows are spread
// over the whole table, other ones in each round.
func Merge(ctx context.Context, b *rig.Bench) ([]rig.Result, error) {
	s, stop, err := b.StartService(ctx, "QUERN_MAINTENANCE_INTERVAL=1h")
	if err != nil {
		return nil, err
	}
	defer stop()

	dir, err := os.MkdirTemp(b.Dir, "merge-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)

	m := &mergeBench{dir: dir, rows: b.Rows}

	if m.to, err = s.NewDataset(ctx); err != nil {
		return nil, err
	}

	if err := m.write(m.table(), fmt.Sprintf(`SELECT i AS id, i %% 97 AS page, 'visitor ' || (i * 7919) %% 1000003 AS visitor, i / 8.0 AS took FROM range(%d) t(i)`, m.rows)); err != nil {
		return nil, err
	}

	if _, err := m.load(ctx, m.table(), api.NewIngestion{}); err != nil {
		return nil, err
	}

	ours, bare, err := rig.Alternate(ctx, b.Loads, rig.Side{Name: "quern", Round: m.ours}, rig.Side{Name: "duckdb", Round: m.bare})

	return []rig.Result{{Name: "merge", Ours: rig.Seconds(ours), Bare: rig.Seconds(bare), Ratio: bare / ours}}, err
}

type mergeBench struct {
	dir   string
	rows  int
	to    rig.Dataset
	round int // of ours
	twin  int // of the twin
}

func (m *mergeBench) table() string { return filepath.Join(m.dir, "table.parquet") }

func (m *mergeBench) write(path, rows string) error {
	return rig.BareDuckDB(fmt.Sprintf(`COPY (%s) TO '%s' (FORMAT parquet, COMPRESSION zstd)`, rows, path))
}

// changed writes the changed rows of a round.
func (m *mergeBench) changed(round int) (path string, err error) {
	path = filepath.Join(m.dir, fmt.Sprintf("changed-%d.parquet", round))

	return path, m.write(path, fmt.Sprintf(`SELECT i * %[1]d + %[2]d AS id, 0 AS page, 'changed ' || i AS visitor, 0.5 AS took FROM range(%[3]d) t(i)`,
		mergeShare, round%mergeShare, m.rows/mergeShare))
}

func (m *mergeBench) ours(ctx context.Context) (float64, string, error) {
	m.round++

	path, err := m.changed(m.round)
	if err != nil {
		return 0, "", err
	}

	took, err := m.load(ctx, path, api.NewIngestion{Mode: new(api.NewIngestionModeMerge), Key: &[]string{"id"}})

	return float64(took), took.String(), err
}

// load uploads a file and returns how long loading it took.
func (m *mergeBench) load(ctx context.Context, path string, how api.NewIngestion) (time.Duration, error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()

	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}

	uploaded, err := m.to.Upload(ctx, rig.OfFile(file), size)
	if err != nil {
		return 0, err
	}

	begin := time.Now()
	_, err = m.to.Load(ctx, uploaded.ID, how, rig.IngestPoll, nil)

	return time.Since(begin), err
}

func (m *mergeBench) bare(context.Context) (float64, string, error) {
	m.twin++

	path, err := m.changed(m.twin)
	if err != nil {
		return 0, "", err
	}

	const options = `(FORMAT parquet, COMPRESSION zstd)`

	begin := time.Now()
	err = rig.BareDuckDB(
		fmt.Sprintf(`COPY (SELECT r.id, r.page, r.visitor, r.took FROM '%s' r ANTI JOIN '%s' c USING (id)) TO '%s' %s`, m.table(), path, filepath.Join(m.dir, "left.parquet"), options),
		fmt.Sprintf(`COPY (SELECT id, page, visitor, took FROM '%s') TO '%s' %s`, path, filepath.Join(m.dir, "new.parquet"), options),
	)
	took := time.Since(begin)

	return float64(took), took.String(), err
}
