package ingest

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"quern.dev/quern/bench/rig"
)

const (
	prepareParts = 10_000
	prepareGoal  = time.Second
)

// Prepare measures how long it takes to prepare the upload of a file with the maximum number of parts. As a
// reference it also measures the SDK's presigner, which signs as many addresses without a service.
func Prepare(ctx context.Context, b *rig.Bench) ([]rig.Result, error) {
	s, stop, err := b.StartService(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()

	took, bare, err := rig.Alternate(ctx, b.Rounds,
		rig.Side{Name: "ours", Round: func(ctx context.Context) (float64, string, error) {
			begin := time.Now()
			session, err := s.Prepare(ctx, prepareParts*rig.UploadPart)
			took := time.Since(begin)

			if err == nil && len(session.Files[0].PresignedUrls) != prepareParts {
				err = fmt.Errorf("%d addresses and not %d", len(session.Files[0].PresignedUrls), prepareParts)
			}

			return float64(took), took.String(), err
		}},
		rig.Side{Name: "bare", Round: func(ctx context.Context) (float64, string, error) {
			begin := time.Now()
			err := presign(ctx, s.Location)
			took := time.Since(begin)

			return float64(took), took.String(), err
		}})
	if err != nil {
		return nil, err
	}

	fmt.Fprintf(os.Stderr, "prepare: ours %s, the SDK's presigner alone %s\n", rig.Milliseconds(took), rig.Milliseconds(bare))

	return []rig.Result{{
		Name: "prepare", Ours: rig.Milliseconds(took), Bare: prepareGoal.String(), Ratio: float64(prepareGoal) / took, Enough: took < float64(prepareGoal),
	}}, nil
}

func presign(ctx context.Context, p *rig.Location) error {
	presigner := s3.NewPresignClient(p.Client)

	for i := range prepareParts {
		_, err := presigner.PresignUploadPart(ctx, &s3.UploadPartInput{
			Bucket: &p.Bucket, Key: p.Full("bare/presigned"), UploadId: new("00000000-0000-0000-0000-000000000000"), PartNumber: new(int32(i + 1)),
			ContentLength: new(int64(rig.UploadPart)),
		})
		if err != nil {
			return err
		}
	}

	return nil
}
