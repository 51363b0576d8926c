package ingest

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"time"

	"quern.dev/quern/bench/rig"
)

const uploadPassing = 10_000_000 // bytes that quernd may read and write for one upload, of whatever size

// Upload measures the upload of a file through a session to the store, in bytes per second, beside the SDK alone
// with parts of the same size and as many at once. No content of the file may pass through the service.
func Upload(ctx context.Context, b *rig.Bench) ([]rig.Result, error) {
	s, stop, err := b.StartService(ctx, "QUERN_JOB_WORKERS=0") // reads and writes of jobs would count
	if err != nil {
		return nil, err
	}
	defer stop()

	part := make([]byte, rig.UploadPart) // sent again and again by both sides
	_, _ = rand.Read(part)               // never fails

	var most int64 // most bytes that passed through the service in one upload

	oursRate, bareRate, err := rig.Alternate(ctx, b.Uploads,
		rig.Side{Name: "ours", Round: func(ctx context.Context) (float64, string, error) {
			before, err := s.Passed()
			if err != nil {
				return 0, "", err
			}

			rate, err := timed(ctx, s.Location, b.Upload, func() (string, error) {
				session, err := s.Upload(ctx, rig.Again(part), b.Upload)

				return session.Key, err
			})
			if err != nil {
				return 0, "", err
			}

			after, err := s.Passed()
			most = max(most, after-before)

			return rate, fmt.Sprintf("%s, %d bytes through quernd", rig.PerSecond(rate), after-before), err
		}},
		rig.Side{Name: "bare", Round: func(ctx context.Context) (float64, string, error) {
			rate, err := timed(ctx, s.Location, b.Upload, func() (string, error) { return s.Location.Upload(ctx, b.Upload, rig.Again(part)) })

			return rate, rig.PerSecond(rate), err
		}})
	if err != nil {
		return nil, err
	}

	fmt.Fprintf(os.Stderr, "upload: at most %d bytes passed through quernd for a file of %d\n", most, b.Upload)

	if most >= uploadPassing {
		return nil, fmt.Errorf("%d bytes passed through quernd for one upload, and fewer than %d should", most, uploadPassing)
	}

	return []rig.Result{{Name: "upload", Ours: rig.PerSecond(oursRate), Bare: rig.PerSecond(bareRate), Ratio: oursRate / bareRate}}, nil
}

// timed returns the rate of an upload in bytes per second, and removes the uploaded object.
func timed(ctx context.Context, p *rig.Location, size int64, upload func() (key string, err error)) (float64, error) {
	begin := time.Now()

	key, err := upload()
	if err != nil {
		return 0, err
	}

	took := time.Since(begin)

	return float64(size) / took.Seconds(), p.Remove(ctx, key)
}
