package ingest

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"quern.dev/quern/api"
	"quern.dev/quern/bench/rig"
	"quern.dev/quern/stack"
)

const (
	freshShare    = 100 // one file in so many is new in a run
	listedAtOnce  = 1000
	filesWritten  = 16 // at once
	filesLongest  = time.Minute
	filesRounds   = 3
	requestsSpare = 1
)

// sourceFiles is a bucket with many files, most of which a source has loaded.
type sourceFiles struct {
	*rig.Service

	bucket       *rig.Location
	counter      *rig.Counter
	files, fresh int
	source       uuid.UUID
	next         int
}

// measure returns the requests and the time of runs with new files. The others are recorded as loaded without being loaded, because loading ten thousand files is another measure.
func (f *sourceFiles) measure(ctx context.Context) ([]rig.Result, error) {
	if err := f.write(ctx, f.files); err != nil {
		return nil, err
	}

	if err := f.add(ctx); err != nil {
		return nil, err
	}

	if err := f.record(ctx); err != nil {
		return nil, err
	}

	var (
		times, requests []float64
		memory          rig.Footprint
	)

	for range filesRounds {
		if err := f.write(ctx, f.fresh); err != nil {
			return nil, err
		}

		f.counter.Take()

		took, run, err := refresh(ctx, f.Service, f.source, &memory)
		if err != nil {
			return nil, err
		}

		if run.Files != int64(f.fresh) {
			return nil, fmt.Errorf("%d of %d new files were loaded", run.Files, f.fresh)
		}

		asked := len(f.counter.Take())
		times, requests = append(times, float64(took)), append(requests, float64(asked))

		fmt.Fprintf(os.Stderr, "source-list: %d files, %d new: %d requests, %v\n", f.next, f.fresh, asked, took)
	}

	took, asked := rig.Median(times), rig.Median(requests)
	least := float64((f.next+listedAtOnce-1)/listedAtOnce + f.fresh) // pages, and one request for each new file

	return []rig.Result{
		{Name: "source-requests", Ours: fmt.Sprintf("%.0f", asked), Bare: fmt.Sprintf("%.0f", least), Ratio: least / asked, Goal: 1, Enough: asked <= least+requestsSpare},
		{Name: "source-list", Ours: rig.Seconds(took), Bare: filesLongest.String(), Ratio: float64(filesLongest) / took, Goal: 1, Enough: took <= float64(filesLongest)},
	}, nil
}

// write adds files.
func (f *sourceFiles) write(ctx context.Context, count int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(filesWritten)

	for range count {
		n := f.next
		f.next++

		group.Go(func() error {
			_, err := f.bucket.Client.PutObject(ctx, &s3.PutObjectInput{
				Bucket: &f.bucket.Bucket, Key: f.bucket.Full(fmt.Sprintf("%06d.csv", n)), Body: strings.NewReader(fmt.Sprintf("id,total\n%d,%d\n", n, n*7)),
			})

			return err
		})
	}

	return group.Wait()
}

// add makes the source.
func (f *sourceFiles) add(ctx context.Context) (err error) {
	settings := &api.NewS3Settings{Endpoint: f.counter.URL, Bucket: f.bucket.Bucket, Prefix: &f.bucket.Prefix, PathStyle: new(true)}

	for name, value := range map[string]*string{"REGION": &settings.Region, "ACCESS_KEY": &settings.AccessKeyID, "SECRET_KEY": &settings.SecretAccessKey} {
		if *value, err = stack.Lookup("QUERN_TEST_S3_" + name); err != nil {
			return err
		}
	}

	f.source, err = addSource(ctx, f.Service, api.NewConnection{Name: "files", Kind: api.S3, S3: settings}, api.NewSource{
		Name: "files", Namespace: "bench", DatasetName: "files", Accept: &[]api.DoubtCode{"all"},
	})

	return err
}

// record tells the service that it has loaded all files that are there.
func (f *sourceFiles) record(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, f.Database)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)

	var rows [][]any

	pages := s3.NewListObjectsV2Paginator(f.bucket.Client, &s3.ListObjectsV2Input{Bucket: &f.bucket.Bucket, Prefix: &f.bucket.Prefix})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}

		for _, object := range page.Contents {
			etag := aws.ToString(object.ETag)
			rows = append(rows, []any{f.Accounts["ada"], f.source, strings.TrimPrefix(aws.ToString(object.Key), f.bucket.Prefix), etag, etag, aws.ToInt64(object.Size), "loaded"})
		}
	}

	_, err = conn.CopyFrom(ctx, pgx.Identifier{"source_files"}, []string{"account_id", "source_id", "path", "etag", "seen", "size", "state"}, pgx.CopyFromRows(rows))

	return err
}
