// Package ingest measures the way of rows into datasets: uploads, jobs, loads of files, posted rows and commits.
package ingest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"quern.dev/quern/api"
	"quern.dev/quern/bench/rig"
)

const (
	Threads        = 2
	Memory         = 1 << 30           // memory of the engine, on both sides
	ingestLimit    = Memory + Memory/2 // memory of its process
	ingestProgress = 2 * time.Second   // longest time without progress
)

// Ingest measures the time until the rows of an uploaded CSV file can be read, beside the least work that is
// necessary: fetch the file, convert it to Parquet with DuckDB, and store the result.
func Ingest(ctx context.Context, b *rig.Bench) ([]rig.Result, error) {
	s, stop, err := b.StartService(ctx, fmt.Sprintf("QUERN_INGEST_THREADS=%d", Threads), fmt.Sprintf("QUERN_INGEST_MEMORY=%dMiB", Memory>>20))
	if err != nil {
		return nil, err
	}
	defer stop()

	data, err := s.NewDataset(ctx)
	if err != nil {
		return nil, err
	}

	files, size, err := uploadRows(ctx, b, s)
	if err != nil {
		return nil, err
	}

	fmt.Fprintf(os.Stderr, "ingest: %d rows, %d bytes\n", b.Rows, size)

	var (
		memory  rig.Footprint
		stillst time.Duration
	)

	ours, bare, err := rig.Alternate(ctx, b.Loads,
		rig.WithProcessorTime(s.PID, rig.Side{Name: "ours", Round: func(ctx context.Context) (float64, string, error) {
			took, still, phases, err := TimedLoad(ctx, data, files, b.Rows, &memory)
			stillst = max(stillst, still)

			return float64(took), fmt.Sprintf("%v, %v without progress%s", took, still, phases), err
		}}),
		rig.WithProcessorTime(os.Getpid(), rig.Side{Name: "bare", Round: func(ctx context.Context) (float64, string, error) {
			took, remark, err := BareLoad(ctx, b, s.Location, files.Key)

			return float64(took), remark, err
		}}))
	if err != nil {
		return nil, err
	}

	fmt.Fprintf(os.Stderr, "ingest: all processes of the service together took at most %s\n", rig.Megabytes(memory.Total))

	return []rig.Result{
		{Name: "ingest", Ours: rig.Seconds(ours), Bare: rig.Seconds(bare), Ratio: bare / ours},
		{
			Name: "ingest-progress", Ours: rig.Seconds(float64(stillst)), Bare: ingestProgress.String(), Ratio: float64(ingestProgress) / float64(stillst), Goal: 1,
			Enough: stillst <= ingestProgress,
		},
		{
			Name: "ingest-memory", Ours: rig.Megabytes(memory.Child), Bare: rig.Megabytes(ingestLimit), Ratio: float64(ingestLimit) / float64(memory.Child), Goal: 1,
			Enough: memory.Child <= ingestLimit,
		},
	}, nil
}

// TimedLoad replaces the rows of the dataset. It records the longest time without progress, and the memory.
func TimedLoad(ctx context.Context, d rig.Dataset, files rig.Session, rows int, memory *rig.Footprint) (took, still time.Duration, phases string, err error) {
	var (
		before  api.IngestionProgress
		watched error
		where   string
		changed = time.Now()
		begin   = changed
	)

	done, err := d.Load(ctx, files.ID, api.NewIngestion{Mode: new(api.NewIngestionModeReplace)}, rig.IngestPoll, func(now api.Ingestion) {
		if err := memory.Watch(d.PID); err != nil {
			watched = err
		}

		if now.Progress == before {
			return
		}

		if now.Progress.Phase != before.Phase {
			phases += fmt.Sprintf(" %s %v", now.Progress.Phase, time.Since(begin).Round(rig.IngestPoll))
		}

		if pause := time.Since(changed); pause > still {
			still, where = pause, fmt.Sprintf(" (%s after %d bytes and %d rows)", before.Phase, before.BytesDone, before.RowsDone)
		}

		changed, before = time.Now(), now.Progress
	})
	took = time.Since(begin)

	if err == nil {
		err = watched
	}

	if err == nil && (done.Progress.RowsDone != int64(rows) || done.Progress.RowsSetAside != 0) {
		err = fmt.Errorf("%d rows are there and %d were set aside, of %d", done.Progress.RowsDone, done.Progress.RowsSetAside, rows)
	}

	return took, still, where + phases, err
}

// BareLoad fetches the file, converts it and stores the result.
func BareLoad(ctx context.Context, b *rig.Bench, p *rig.Location, key string) (took time.Duration, remark string, err error) {
	dir, err := os.MkdirTemp(b.Dir, "bare-")
	if err != nil {
		return 0, "", err
	}
	defer os.RemoveAll(dir)

	begin := time.Now()
	from, to := filepath.Join(dir, "rows.csv"), filepath.Join(dir, "rows.parquet")

	if err := p.Fetch(ctx, key, from); err != nil {
		return 0, "", err
	}

	fetched := time.Now()

	// The service compresses with zstd.
	err = rig.BareDuckDB(fmt.Sprintf(`SET threads = %d`, Threads), fmt.Sprintf(`SET memory_limit = '%dB'`, Memory),
		fmt.Sprintf(`SET temp_directory = '%s'`, dir),
		fmt.Sprintf(`COPY (FROM read_csv('%s')) TO '%s' (FORMAT parquet, COMPRESSION zstd)`, from, to))
	if err != nil {
		return 0, "", err
	}

	converted := time.Now()

	file, err := os.Open(to)
	if err != nil {
		return 0, "", err
	}
	defer file.Close()

	info, err := file.Stat()
	if err != nil {
		return 0, "", err
	}

	stored, err := p.Upload(ctx, info.Size(), rig.OfFile(file))
	if err != nil {
		return 0, "", err
	}

	took = time.Since(begin)
	remark = fmt.Sprintf("%v: fetching %v, converting %v, storing %d bytes %v", took, fetched.Sub(begin), converted.Sub(fetched), info.Size(), time.Since(converted))

	return took, remark, p.Remove(ctx, stored)
}

// uploadRows writes the CSV file and uploads it; only the object remains.
func uploadRows(ctx context.Context, b *rig.Bench, s *rig.Service) (files rig.Session, size int64, err error) {
	file, err := os.CreateTemp(b.Dir, "rows-")
	if err != nil {
		return files, 0, err
	}
	defer os.Remove(file.Name())
	defer file.Close()

	if err := writeRows(file, b.Rows); err != nil {
		return files, 0, err
	}

	info, err := file.Stat()
	if err != nil {
		return files, 0, err
	}

	files, err = s.Upload(ctx, rig.OfFile(file), info.Size())

	return files, info.Size(), err
}

// writeRows writes about 100 bytes per row, in columns of all common types, the same in every run.
func writeRows(file io.Writer, rows int) error {
	to := bufio.NewWriterSize(file, 1<<20)
	if _, err := to.WriteString("id,customer,city,amount,share,day,created,paid,note\n"); err != nil {
		return err
	}

	var (
		cities = []string{"Berlin", "Buenos Aires", "Cape Town", "Łódź", "München", "New York", "Osaka", "São Paulo"}
		notes  = []string{"", "delivered late", `"said ""call me"", twice"`, `"paid in cash, no receipt"`, "first order of this customer"}
		first  = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
		random = uint64(1)
		line   []byte
	)

	for i := range rows {
		random = random*6364136223846793005 + 1442695040888963407 // the generator of Knuth
		pick := random >> 20
		at := first.Add(time.Duration(i) * 13 * time.Second)

		line = strconv.AppendInt(line[:0], int64(1_000_000_000+i), 10)
		line = append(line, ",customer-"...)
		line = strconv.AppendUint(line, pick%500_000, 10)
		line = append(line, ',')
		line = append(line, cities[pick%8]...)
		line = append(line, ',')
		line = strconv.AppendFloat(line, float64(pick%1_000_000)/100, 'f', 2, 64)
		line = append(line, ',')
		line = strconv.AppendFloat(line, float64(pick%99_999_989)/99_999_989, 'f', 9, 64)
		line = append(line, ',')
		line = at.AppendFormat(line, time.DateOnly)
		line = append(line, ',')
		line = at.AppendFormat(line, time.DateTime)
		line = append(line, ',')
		line = strconv.AppendBool(line, pick%3 == 0)
		line = append(line, ',')
		line = append(append(line, notes[pick%5]...), '\n')

		if _, err := to.Write(line); err != nil {
			return err
		}
	}

	return to.Flush()
}
