package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"quern.dev/quern/stack"
)

// place is a prefix of the stack's bucket. It is reached as the service reaches it, and past it.
type place struct {
	endpoint, region, bucket, prefix string

	keys   aws.Credentials
	http   *http.Client // keeps as many connections as parts are sent at once
	client *s3.Client
}

// newPlace returns an empty place; vacate removes whatever is in it then.
func newPlace(ctx context.Context) (p *place, vacate func(), err error) {
	p = &place{
		prefix: "bench/" + rand.Text() + "/",
		http:   &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: uploadParallel}},
	}

	for name, value := range map[string]*string{
		"ENDPOINT": &p.endpoint, "REGION": &p.region, "BUCKET": &p.bucket,
		"ACCESS_KEY": &p.keys.AccessKeyID, "SECRET_KEY": &p.keys.SecretAccessKey,
	} {
		if *value, err = stack.Lookup("QUERN_TEST_S3_" + name); err != nil {
			return nil, nil, err
		}
	}

	p.client = s3.New(s3.Options{
		BaseEndpoint: &p.endpoint, Region: p.region, UsePathStyle: true, HTTPClient: p.http,
		Credentials:                aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return p.keys, nil }),
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
	})

	return p, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()

		if err := p.empty(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "emptying the place in the object store:", err)
		}

		p.http.CloseIdleConnections()
	}, nil
}

// settings are those of a service that keeps its files here.
func (p *place) settings() []string {
	return []string{
		"QUERN_S3_ENDPOINT=" + p.endpoint,
		"QUERN_S3_REGION=" + p.region,
		"QUERN_S3_BUCKET=" + p.bucket,
		"QUERN_S3_PREFIX=" + p.prefix,
		"QUERN_S3_ACCESS_KEY=" + p.keys.AccessKeyID,
		"QUERN_S3_SECRET_KEY=" + p.keys.SecretAccessKey,
	}
}

func (p *place) empty(ctx context.Context) error {
	objects := s3.NewListObjectsV2Paginator(p.client, &s3.ListObjectsV2Input{Bucket: &p.bucket, Prefix: &p.prefix})
	for objects.HasMorePages() {
		page, err := objects.NextPage(ctx)
		if err != nil {
			return err
		}

		for _, object := range page.Contents {
			if _, err := p.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &p.bucket, Key: object.Key}); err != nil {
				return err
			}
		}
	}

	uploads := s3.NewListMultipartUploadsPaginator(p.client, &s3.ListMultipartUploadsInput{Bucket: &p.bucket, Prefix: &p.prefix})
	for uploads.HasMorePages() {
		page, err := uploads.NextPage(ctx)
		if err != nil {
			return err
		}

		for _, upload := range page.Uploads {
			_, err := p.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &p.bucket, Key: upload.Key, UploadId: upload.UploadId})
			if err != nil {
				return err
			}
		}
	}

	return nil
}

// remove takes a key relative to the prefix, as the service gives it.
func (p *place) remove(ctx context.Context, key string) error {
	_, err := p.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &p.bucket, Key: p.full(key)})

	return err
}

func (p *place) full(key string) *string { return new(p.prefix + key) }
