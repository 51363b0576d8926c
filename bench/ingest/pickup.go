package ingest

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"quern.dev/quern/api"
	"quern.dev/quern/bench/rig"
)

// Pickup measures how long a job waits until a worker begins it, according to the API, beside River alone. Both poll
// for jobs at the same interval, which is most of the time.
func Pickup(ctx context.Context, b *rig.Bench) ([]rig.Result, error) {
	s, stop, err := b.StartService(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()

	bare, stop, err := rig.StartBareRiver(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()

	data, err := s.NewDataset(ctx)
	if err != nil {
		return nil, err
	}

	const small = "id,page\n1,/\n2,/a\n"

	files, err := s.Upload(ctx, rig.OfFile(bytes.NewReader([]byte(small))), int64(len(small)))
	if err != nil {
		return nil, err
	}

	var ourTimes, bareTimes []time.Duration

	for i := range b.Pickups + pickupWarm {
		time.Sleep(rand.N(rig.PickupPoll)) // at a random time between two polls

		seen, err := data.Load(ctx, files.ID, api.NewIngestion{DryRun: new(true)}, 10*time.Millisecond, nil)
		if err != nil {
			return nil, err
		}

		time.Sleep(rand.N(rig.PickupPoll))

		bareTime, err := bare.Wait(ctx)
		if err != nil {
			return nil, err
		}

		if i >= pickupWarm {
			ourTimes, bareTimes = append(ourTimes, seen.StartedAt.Sub(seen.CreatedAt)), append(bareTimes, bareTime)
		}
	}

	slices.Sort(ourTimes)
	slices.Sort(bareTimes)

	fmt.Fprintf(os.Stderr, "pickup: %d jobs, ours at most %v, bare at most %v\n", b.Pickups, ourTimes[len(ourTimes)-1], bareTimes[len(bareTimes)-1])

	at := func(name string, q float64) rig.Result {
		ours, bare := rig.Loaded{Took: ourTimes}.Quantile(q), rig.Loaded{Took: bareTimes}.Quantile(q)

		return rig.Result{Name: name, Ours: rig.Milliseconds(float64(ours)), Bare: rig.Milliseconds(float64(bare)), Ratio: float64(bare) / float64(ours)}
	}

	return []rig.Result{at("pickup-p50", 0.5), at("pickup-p95", 0.95)}, nil
}

const pickupWarm = 5
