package rig

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"quern.dev/quern/stack"
)

// Location is a location: a prefix of the stack's bucket. The service uses it, and the bench also accesses it directly.
type Location struct {
	Endpoint, region, Bucket, Prefix string

	keys   aws.Credentials
	http   *http.Client // keeps as many connections as parts are sent at once
	Client *s3.Client
}

// NewLocation returns an empty location; vacate removes everything in it.
func NewLocation(ctx context.Context) (p *Location, vacate func(), err error) {
	p = &Location{
		Prefix: "bench/" + rand.Text() + "/",
		http:   &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: uploadParallel}},
	}

	for name, value := range map[string]*string{
		"ENDPOINT": &p.Endpoint, "REGION": &p.region, "BUCKET": &p.Bucket,
		"ACCESS_KEY": &p.keys.AccessKeyID, "SECRET_KEY": &p.keys.SecretAccessKey,
	} {
		if *value, err = stack.Lookup("QUERN_TEST_S3_" + name); err != nil {
			return nil, nil, err
		}
	}

	p.Client = s3.New(s3.Options{
		BaseEndpoint: &p.Endpoint, Region: p.region, UsePathStyle: true, HTTPClient: p.http,
		Credentials:                aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return p.keys, nil }),
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
	})

	return p, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()

		if err := p.empty(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "emptying the location in the object store:", err)
		}

		p.http.CloseIdleConnections()
	}, nil
}

// settings returns the settings of a service that uses this location.
func (p *Location) settings() []string {
	return []string{
		"QUERN_S3_ENDPOINT=" + p.Endpoint,
		"QUERN_S3_REGION=" + p.region,
		"QUERN_S3_BUCKET=" + p.Bucket,
		"QUERN_S3_PREFIX=" + p.Prefix,
		"QUERN_S3_ACCESS_KEY=" + p.keys.AccessKeyID,
		"QUERN_S3_SECRET_KEY=" + p.keys.SecretAccessKey,
	}
}

func (p *Location) empty(ctx context.Context) error {
	objects := s3.NewListObjectsV2Paginator(p.Client, &s3.ListObjectsV2Input{Bucket: &p.Bucket, Prefix: &p.Prefix})
	for objects.HasMorePages() {
		page, err := objects.NextPage(ctx)
		if err != nil {
			return err
		}

		for _, object := range page.Contents {
			if _, err := p.Client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &p.Bucket, Key: object.Key}); err != nil {
				return err
			}
		}
	}

	uploads := s3.NewListMultipartUploadsPaginator(p.Client, &s3.ListMultipartUploadsInput{Bucket: &p.Bucket, Prefix: &p.Prefix})
	for uploads.HasMorePages() {
		page, err := uploads.NextPage(ctx)
		if err != nil {
			return err
		}

		for _, upload := range page.Uploads {
			_, err := p.Client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &p.Bucket, Key: upload.Key, UploadId: upload.UploadId})
			if err != nil {
				return err
			}
		}
	}

	return nil
}

// Remove removes the object with a key relative to the prefix, as the service returns it.
func (p *Location) Remove(ctx context.Context, key string) error {
	_, err := p.Client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &p.Bucket, Key: p.Full(key)})

	return err
}

func (p *Location) Full(key string) *string { return new(p.Prefix + key) }

// Fetch writes the object with a key relative to the prefix to a file.
func (p *Location) Fetch(ctx context.Context, key, path string) error {
	object, err := p.Client.GetObject(ctx, &s3.GetObjectInput{Bucket: &p.Bucket, Key: p.Full(key)})
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

// Through returns the same location, reached at another address.
func (p *Location) Through(endpoint string) *Location {
	other := *p
	other.Endpoint = endpoint
	options := p.Client.Options()
	options.BaseEndpoint = &endpoint
	other.Client = s3.New(options)

	return &other
}
