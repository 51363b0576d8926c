package ingest

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"quern.dev/quern/api"
	"quern.dev/quern/bench/rig"
)

// manyRow is about the size of a row of writeRows, in bytes.
const manyRow = 112

// Many measures one ingestion of many files on one, two and four worker processes, beside the same files fetched, converted and stored
// one after the other without the service. The second line of each says how much of the processors' time the work has left unused.
func Many(ctx context.Context, b *rig.Bench) ([]rig.Result, error) {
	limits := []string{fmt.Sprintf("QUERN_INGEST_THREADS=%d", Threads), fmt.Sprintf("QUERN_INGEST_MEMORY=%dMiB", Memory>>20)}

	s, stop, err := b.StartService(ctx, limits...)
	if err != nil {
		return nil, err
	}
	defer stop()

	data, err := s.NewDataset(ctx)
	if err != nil {
		return nil, err
	}

	files, err := uploadMany(ctx, b, s)
	if err != nil {
		return nil, err
	}

	own := work{pids: []int{os.Getpid()}}

	err = own.measure(func() error {
		for range b.Files {
			if _, _, err := BareLoad(ctx, b, s.Location, files.Key); err != nil {
				return err
			}
		}

		return nil
	})
	if err != nil {
		return nil, err
	}

	var (
		results []rig.Result
		running = work{pids: []int{s.PID}}
	)

	for _, processes := range []int{1, 2, 4} {
		for len(running.pids) < processes {
			replica, err := b.StartReplica(ctx, s.Quernd, limits...)
			if err != nil {
				return nil, err
			}
			defer replica.Stop()

			running.pids = append(running.pids, replica.PID)
		}

		err := running.measure(func() error {
			done, err := data.Load(ctx, files.ID, api.NewIngestion{Mode: new(api.NewIngestionModeReplace)}, rig.IngestPoll, nil)
			if err == nil && done.Progress.RowsDone != int64(b.Files)*(b.FileSize/manyRow) {
				err = fmt.Errorf("%d rows are there", done.Progress.RowsDone)
			}

			return err
		})
		if err != nil {
			return nil, fmt.Errorf("%d processes: %w", processes, err)
		}

		name := fmt.Sprintf("ingest-many-%d", processes)
		results = append(results,
			rig.Result{Name: name, Ours: rig.Seconds(float64(running.took)), Bare: rig.Seconds(float64(own.took)), Ratio: float64(own.took) / float64(running.took)},
			rig.Result{Name: name + "-waiting", Ours: running.waiting(), Bare: own.waiting(), Ratio: float64(own.used) / float64(running.used), Enough: true})
	}

	return results, nil
}

// work measures how long a load takes, and the processor time of its processes.
type work struct {
	pids       []int
	took, used time.Duration // used is the time of the processors
}

func (w *work) measure(do func() error) error {
	before, err := w.processors()
	if err != nil {
		return err
	}

	begin := time.Now()

	if err := do(); err != nil {
		return err
	}

	w.took = time.Since(begin)

	after, err := w.processors()
	w.used = after - before

	return err
}

func (w *work) processors() (total time.Duration, err error) {
	for _, pid := range w.pids {
		own, ended, err := rig.ProcessorTimes(pid)
		if err != nil {
			return 0, err
		}

		total += own + ended
	}

	return total, nil
}

// waiting returns the share of the processors' time that was not used. Servers that the work waits for use some of it.
func (w *work) waiting() string {
	return fmt.Sprintf("%.0f%%", 100-100*w.used.Seconds()/(w.took.Seconds()*float64(runtime.NumCPU())))
}

// uploadMany uploads files with the same content.
func uploadMany(ctx context.Context, b *rig.Bench, s *rig.Service) (rig.Session, error) {
	file, err := os.CreateTemp(b.Dir, "rows-")
	if err != nil {
		return rig.Session{}, err
	}
	defer os.Remove(file.Name())
	defer file.Close()

	if err := writeRows(file, int(b.FileSize/manyRow)); err != nil {
		return rig.Session{}, err
	}

	info, err := file.Stat()
	if err != nil {
		return rig.Session{}, err
	}

	fmt.Fprintf(os.Stderr, "ingest-many: %d files of %d bytes\n", b.Files, info.Size())

	return s.Upload(ctx, rig.OfFile(file), slices.Repeat([]int64{info.Size()}, b.Files)...)
}
