package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"quern.dev/quern/api"
)

const (
	ingestThreads  = 2
	ingestMemory   = 1 << 30                       // for the engine, of both sides
	ingestLimit    = ingestMemory + ingestMemory/2 // for its process
	ingestPoll     = 100 * time.Millisecond
	ingestProgress = 2 * time.Second // the longest time without progress
)

// runIngest measures how long it takes until the rows of an uploaded CSV file can be read, beside what must be
// done at least: fetch the file, let DuckDB write it as Parquet, and put that.
func runIngest(ctx context.Context, b *bench) ([]result, error) {
	s, stop, err := b.startService(ctx, fmt.Sprintf("QUERN_INGEST_THREADS=%d", ingestThreads), fmt.Sprintf("QUERN_INGEST_MEMORY=%dMiB", ingestMemory>>20))
	if err != nil {
		return nil, err
	}
	defer stop()

	data, err := s.newDataset(ctx)
	if err != nil {
		return nil, err
	}

	files, size, err := b.uploadRows(ctx, s)
	if err != nil {
		return nil, err
	}

	fmt.Fprintf(os.Stderr, "ingest: %d rows, %d bytes\n", b.rows, size)

	var (
		memory  footprint
		stillst time.Duration
	)

	ours, bare, err := alternate(ctx, b.loads,
		withProcessorTime(s.pid, side{"ours", func(ctx context.Context) (float64, string, error) {
			took, still, phases, err := data.timedLoad(ctx, files, b.rows, &memory)
			stillst = max(stillst, still)

			return float64(took), fmt.Sprintf("%v, %v without progress%s", took, still, phases), err
		}}),
		withProcessorTime(os.Getpid(), side{"bare", func(ctx context.Context) (float64, string, error) {
			took, remark, err := b.bareLoad(ctx, s.place, files.key)

			return float64(took), remark, err
		}}))
	if err != nil {
		return nil, err
	}

	fmt.Fprintf(os.Stderr, "ingest: all processes of the service together took at most %s\n", megabytes(memory.total))

	return []result{
		{name: "ingest", ours: seconds(ours), bare: seconds(bare), ratio: bare / ours},
		{
			name: "ingest-progress", ours: seconds(float64(stillst)), bare: ingestProgress.String(), ratio: float64(ingestProgress) / float64(stillst), goal: 1,
			enough: stillst <= ingestProgress,
		},
		{
			name: "ingest-memory", ours: megabytes(memory.child), bare: megabytes(ingestLimit), ratio: float64(ingestLimit) / float64(memory.child), goal: 1,
			enough: memory.child <= ingestLimit,
		},
	}, nil
}

// withProcessorTime adds to the remark what a round takes of the processors, which others do not disturb as much.
func withProcessorTime(pid int, s side) side {
	return side{s.name, func(ctx context.Context) (float64, string, error) {
		before, err := processorTime(pid)
		if err != nil {
			return 0, "", err
		}

		figure, remark, err := s.round(ctx)
		if err != nil {
			return 0, "", err
		}

		after, err := processorTime(pid)

		return figure, fmt.Sprintf("%s; processors %v", remark, after-before), err
	}}
}

func seconds(nanoseconds float64) string {
	return fmt.Sprintf("%.2fs", nanoseconds/float64(time.Second))
}

func megabytes(bytes int64) string { return fmt.Sprintf("%dMB", bytes/1e6) }

// timedLoad replaces the rows of the dataset. It watches how long the progress stays the same, and the memory.
func (d dataset) timedLoad(ctx context.Context, files session, rows int, memory *footprint) (took, still time.Duration, phases string, err error) {
	var (
		before  api.IngestionProgress
		watched error
		where   string
		changed = time.Now()
		begin   = changed
	)

	done, err := d.load(ctx, files.id, api.NewIngestion{Mode: new(api.NewIngestionModeReplace)}, ingestPoll, func(now api.Ingestion) {
		if err := memory.watch(d.pid); err != nil {
			watched = err
		}

		if now.Progress == before {
			return
		}

		if now.Progress.Phase != before.Phase {
			phases += fmt.Sprintf(" %s %v", now.Progress.Phase, time.Since(begin).Round(ingestPoll))
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

// bareLoad fetches the file, converts it and puts the result.
func (b *bench) bareLoad(ctx context.Context, p *place, key string) (took time.Duration, remark string, err error) {
	dir, err := os.MkdirTemp(b.dir, "bare-")
	if err != nil {
		return 0, "", err
	}
	defer os.RemoveAll(dir)

	begin := time.Now()
	from, to := filepath.Join(dir, "rows.csv"), filepath.Join(dir, "rows.parquet")

	if err := p.fetch(ctx, key, from); err != nil {
		return 0, "", err
	}

	fetched := time.Now()

	// The service compresses with zstd.
	err = bareDuckDB(fmt.Sprintf(`SET threads = %d`, ingestThreads), fmt.Sprintf(`SET memory_limit = '%dB'`, ingestMemory),
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

	stored, err := p.upload(ctx, info.Size(), ofFile(file))
	if err != nil {
		return 0, "", err
	}

	took = time.Since(begin)
	remark = fmt.Sprintf("%v: fetching %v, converting %v, storing %d bytes %v", took, fetched.Sub(begin), converted.Sub(fetched), info.Size(), time.Since(converted))

	return took, remark, p.remove(ctx, stored)
}

func (p *place) fetch(ctx context.Context, key, path string) error {
	object, err := p.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &p.bucket, Key: p.full(key)})
	if err != nil {
		return err
	}
	defer object.Body.Close()

	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()

	if _, err := io.Copy(file, object.Body); err != nil {
		return err
	}

	return file.Close()
}

// uploadRows makes the CSV file and uploads it; only the object stays.
func (b *bench) uploadRows(ctx context.Context, s *service) (files session, size int64, err error) {
	file, err := os.CreateTemp(b.dir, "rows-")
	if err != nil {
		return files, 0, err
	}
	defer os.Remove(file.Name())
	defer file.Close()

	if err := writeRows(file, b.rows); err != nil {
		return files, 0, err
	}

	info, err := file.Stat()
	if err != nil {
		return files, 0, err
	}

	files, err = s.upload(ctx, ofFile(file), info.Size())

	return files, info.Size(), err
}

// writeRows writes about 100 bytes a row, in columns of all common types, the same in every run.
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
		random = random*6364136223846793005 + 1442695040888963407 // Knuth's
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
