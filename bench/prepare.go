package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
)

const (
	prepareParts = 10_000
	prepareGoal  = time.Second
)

// runPrepare measures how long it takes to prepare the upload of a file with as many parts as there can
// be. That the SDK's presigner signs as many addresses, without a service, shows what the machine gives.
func runPrepare(ctx context.Context, b *bench) ([]result, error) {
	s, stop, err := b.startService(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()

	took, bare, err := alternate(ctx, b.rounds,
		side{"ours", func(ctx context.Context) (float64, string, error) {
			begin := time.Now()
			session, err := s.prepare(ctx, prepareParts*uploadPart)
			took := time.Since(begin)

			if err == nil && len(session.Files[0].PresignedUrls) != prepareParts {
				err = fmt.Errorf("%d addresses and not %d", len(session.Files[0].PresignedUrls), prepareParts)
			}

			return float64(took), took.String(), err
		}},
		side{"bare", func(ctx context.Context) (float64, string, error) {
			begin := time.Now()
			err := s.place.presign(ctx)
			took := time.Since(begin)

			return float64(took), took.String(), err
		}})
	if err != nil {
		return nil, err
	}

	fmt.Fprintf(os.Stderr, "prepare: ours %s, the SDK's presigner alone %s\n", milliseconds(took), milliseconds(bare))

	return []result{{
		name: "prepare", ours: milliseconds(took), bare: prepareGoal.String(), ratio: float64(prepareGoal) / took, enough: took < float64(prepareGoal),
	}}, nil
}

func (p *place) presign(ctx context.Context) error {
	presigner := s3.NewPresignClient(p.client)

	for i := range prepareParts {
		_, err := presigner.PresignUploadPart(ctx, &s3.UploadPartInput{
			Bucket: &p.bucket, Key: p.full("bare/presigned"), UploadId: new("00000000-0000-0000-0000-000000000000"), PartNumber: new(int32(i + 1)),
			ContentLength: new(int64(uploadPart)),
		})
		if err != nil {
			return err
		}
	}

	return nil
}
