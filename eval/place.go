package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"quern.dev/quern/stack"
)

// newPlace returns the settings for an empty prefix in the bucket of the stack. vacate deletes all objects in it.
func newPlace(ctx context.Context) (settings []string, vacate func(), err error) {
	found := map[string]string{"PREFIX": "eval/" + rand.Text() + "/"}

	for _, name := range []string{"ENDPOINT", "REGION", "BUCKET", "ACCESS_KEY", "SECRET_KEY"} {
		if found[name], err = stack.Lookup("QUERN_TEST_S3_" + name); err != nil {
			return nil, nil, err
		}
	}

	for name, value := range found {
		settings = append(settings, "QUERN_S3_"+name+"="+value)
	}

	client := s3.New(s3.Options{
		BaseEndpoint: new(found["ENDPOINT"]), Region: found["REGION"], UsePathStyle: true,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: found["ACCESS_KEY"], SecretAccessKey: found["SECRET_KEY"]}, nil
		}),
	})

	return settings, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()

		if err := empty(ctx, client, found["BUCKET"], found["PREFIX"]); err != nil {
			fmt.Fprintln(os.Stderr, "eval: emptying the location in the object store:", err)
		}
	}, nil
}

func empty(ctx context.Context, client *s3.Client, bucket, prefix string) error {
	objects := s3.NewListObjectsV2Paginator(client, &s3.ListObjectsV2Input{Bucket: &bucket, Prefix: &prefix})
	for objects.HasMorePages() {
		page, err := objects.NextPage(ctx)
		if err != nil {
			return err
		}

		for _, object := range page.Contents {
			if _, err := client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &bucket, Key: object.Key}); err != nil {
				return err
			}
		}
	}

	return nil
}
