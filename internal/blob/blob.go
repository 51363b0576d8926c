// Package blob is the object store: any S3 that does multipart uploads and conditional writes, which
// TestBlobContract checks. Keys are relative to the deployment's prefix of the bucket.
//
// Nothing but Config says where calls go and who makes them: no environment, no shared files, no
// metadata service, no redirects. Every call ends with its context and is tried three times at most.
//
// Presigned addresses are secrets for as long as they are valid: they are in no error and no log.
//
// Faults: NotFound, Unavailable while the store cannot be reached, is overloaded or does not answer in
// time, Conflict for parts that do not make the object and for a place that belongs to another
// deployment. What is left (a missing bucket, a wrong key) is for the operator and stays foreign.
package blob

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/sync/errgroup"

	"quern.dev/quern/internal/fault"
)

const (
	maxAttempts = 3
	maxBackoff  = 500 * time.Millisecond

	// writePartSize is how much of a stream is in memory at a time; writeMaxParts is S3's limit.
	writePartSize = 8 << 20
	writeMaxParts = 10_000

	// filePartSize is the length of a file's parts, of which some go at once.
	filePartSize    = 16 << 20
	filePartsAtOnce = 4

	cleanupTimeout = 10 * time.Second
)

// Config is how the store is reached.
type Config struct {
	Endpoint       string // for example https://s3.eu-central-1.amazonaws.com
	PublicEndpoint string // how clients reach it, for presigned addresses; Endpoint if empty
	Region         string
	Bucket         string
	Prefix         string // of all keys, so that a bucket can be shared
	AccessKey      string
	SecretKey      string
	PathStyle      bool // the bucket is in the path, not in the host name

	// Client makes the calls. Its Timeout is for one try of a call that the store answers at once, and until a
	// read begins; those that carry a file's bytes or make the store put a file together end with their context.
	Client *http.Client
	Now    func() time.Time
}

// Store is one prefix of one bucket.
type Store struct {
	calls     *s3.Client // with the client's timeout
	transfers *s3.Client // without
	reads     *s3.Client // with it until the answer begins
	signer    *v4.Signer
	public    url.URL // of the prefix, as clients reach it
	keys      aws.Credentials
	region    string
	bucket    string
	prefix    string
	now       func() time.Time
}

// New prepares a store. It connects when first used, so a start does not depend on it.
func New(c Config) (*Store, error) {
	if c.PublicEndpoint == "" {
		c.PublicEndpoint = c.Endpoint
	}

	if c.Prefix = strings.Trim(c.Prefix, "/"); c.Prefix != "" {
		c.Prefix += "/"
	}

	if _, err := c.address(c.Endpoint); err != nil {
		return nil, fmt.Errorf("the store's endpoint: %w", err)
	}

	public, err := c.address(c.PublicEndpoint)
	if err != nil {
		return nil, fmt.Errorf("the store's public endpoint: %w", err)
	}

	for name, value := range map[string]string{
		"region": c.Region, "bucket": c.Bucket, "access key": c.AccessKey, "secret key": c.SecretKey,
	} {
		if value == "" {
			return nil, fmt.Errorf("the store needs its %s", name)
		}
	}

	calls := *c.Client
	calls.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	transfers := calls
	transfers.Timeout = 0
	reads := transfers

	if calls.Timeout > 0 {
		reads.Transport = beginning{cmp.Or(calls.Transport, http.DefaultTransport), calls.Timeout}
	}

	return &Store{
		calls:     c.client(&calls),
		transfers: c.client(&transfers),
		reads:     c.client(&reads),
		signer:    v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }),
		public:    *public,
		keys:      c.credentials(),
		region:    c.Region,
		bucket:    c.Bucket,
		prefix:    c.Prefix,
		now:       c.Now,
	}, nil
}

// beginning gives up a request whose answer does not begin in time: a store that is silent shall not hold whoever
// waits for a file.
type beginning struct {
	next    http.RoundTripper
	timeout time.Duration
}

var errSilent = fmt.Errorf("no answer began: %w", os.ErrDeadlineExceeded)

func (b beginning) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	silent := time.AfterFunc(b.timeout, func() { cancel(errSilent) })

	answer, err := b.next.RoundTrip(r.WithContext(ctx))
	if silent.Stop() && err == nil {
		answer.Body = ending{answer.Body, cancel}

		return answer, nil
	}

	if err == nil {
		_ = answer.Body.Close()
	}

	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}

	cancel(nil)

	return nil, err
}

// ending is a body with whose end the request ends.
type ending struct {
	io.ReadCloser

	cancel context.CancelCauseFunc
}

func (e ending) Close() error {
	defer e.cancel(nil)

	return e.ReadCloser.Close()
}

// address is that of the prefix behind an endpoint.
func (c Config) address(endpoint string) (*url.URL, error) {
	address, err := url.Parse(endpoint)
	if err != nil || (address.Scheme != "http" && address.Scheme != "https") || address.Host == "" ||
		address.User != nil || address.RawQuery != "" || address.Fragment != "" {
		return nil, errors.New("not an http or https address of a host")
	}

	address.Path = strings.TrimSuffix(address.Path, "/") + "/"

	if c.PathStyle {
		address.Path += c.Bucket + "/"
	} else {
		// Where the SDK would go over to path style by itself, our presigned addresses would not fit.
		if _, err := netip.ParseAddr(address.Hostname()); err == nil || strings.Contains(c.Bucket, ".") {
			return nil, errors.New("an IP address, or a bucket with a dot, needs path style")
		}

		address.Host = c.Bucket + "." + address.Host
	}

	address.Path += c.Prefix

	return address, nil
}

func (c Config) credentials() aws.Credentials {
	return aws.Credentials{AccessKeyID: c.AccessKey, SecretAccessKey: c.SecretKey}
}

func (c Config) client(client *http.Client) *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint: &c.Endpoint,
		Region:       c.Region,
		UsePathStyle: c.PathStyle,
		HTTPClient:   client,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return c.credentials(), nil
		}),
		Retryer: retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts = maxAttempts
			o.MaxBackoff = maxBackoff
			o.RateLimiter = ratelimit.None
		}),
		// Compatible stores do not all know the newer checksums; the signature covers the content.
		RequestChecksumCalculation:                aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation:                aws.ResponseChecksumValidationWhenRequired,
		DisableLogOutputChecksumValidationSkipped: true,
		DisableMultiRegionAccessPoints:            true,
		DisableS3ExpressSessionAuth:               new(true),
	})
}

// full is the key within the bucket.
func (s *Store) full(key string) *string { return new(s.prefix + key) }

// URI is the address of an object as other programs that read the bucket know it.
func (s *Store) URI(key string) string { return "s3://" + s.bucket + "/" + s.prefix + key }

// Object is what the store says of an object.
type Object struct {
	Key      string
	Size     int64
	ETag     string // changes with the content, and says nothing else of it
	Modified time.Time
}

// Head looks at an object without reading it.
func (s *Store) Head(ctx context.Context, key string) (Object, error) {
	head, err := s.calls.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &s.bucket, Key: s.full(key)})
	if err != nil {
		return Object{}, translate(err)
	}

	return Object{
		Key: key, Size: aws.ToInt64(head.ContentLength), ETag: aws.ToString(head.ETag),
		Modified: aws.ToTime(head.LastModified),
	}, nil
}

// Read streams length bytes from offset on, or all if length is negative; fewer if the object ends
// before, none if it ends before offset. Close it. It lives no longer than ctx.
func (s *Store) Read(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	input := &s3.GetObjectInput{Bucket: &s.bucket, Key: s.full(key)}

	switch {
	case length == 0:
		return http.NoBody, nil
	case length > 0:
		input.Range = new(fmt.Sprintf("bytes=%d-%d", offset, offset+length-1))
	case offset > 0:
		input.Range = new(fmt.Sprintf("bytes=%d-", offset))
	}

	object, err := s.reads.GetObject(ctx, input)
	if hasStatus(err, http.StatusRequestedRangeNotSatisfiable) {
		return http.NoBody, nil
	}

	if err != nil {
		return nil, translate(err)
	}

	return &body{object.Body}, nil
}

// body translates what ends a stream early.
type body struct{ io.ReadCloser }

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, context.Canceled) {
		err = unavailable(fmt.Errorf("S3 GetObject: %w", err))
	}

	return n, err
}

// Write makes or replaces an object of what the stream gives, and returns its size. The object appears
// whole or not at all. Errors of the stream are returned as they are.
func (s *Store) Write(ctx context.Context, key string, content io.Reader) (int64, error) {
	var part bytes.Buffer

	size, err := io.CopyN(&part, content, writePartSize)
	if errors.Is(err, io.EOF) {
		_, err := s.transfers.PutObject(ctx, &s3.PutObjectInput{
			Bucket: &s.bucket, Key: s.full(key), Body: bytes.NewReader(part.Bytes()),
		})

		return size, translate(err)
	}

	if err != nil {
		return 0, err
	}

	uploadID, err := s.CreateUpload(ctx, key)
	if err != nil {
		return 0, err
	}

	parts, size, err := s.writeParts(ctx, key, uploadID, &part, content)
	if err == nil {
		err = s.CompleteUpload(ctx, key, uploadID, parts, size)
	}

	if err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
		defer cancel()

		_ = s.AbortUpload(ctx, key, uploadID) // what it leaves behind shows in Uploads

		return 0, err
	}

	return size, nil
}

// writeParts uploads what part holds and then the rest of the stream, always through the same memory.
func (s *Store) writeParts(ctx context.Context, key, uploadID string, part *bytes.Buffer, rest io.Reader) (parts []UploadedPart, size int64, err error) {
	for number := 1; part.Len() > 0; number++ {
		if number > writeMaxParts {
			return nil, 0, errors.New("the stream is longer than an object can be")
		}

		uploaded, err := s.transfers.UploadPart(ctx, &s3.UploadPartInput{
			Bucket: &s.bucket, Key: s.full(key), UploadId: &uploadID,
			PartNumber: new(int32(number)), Body: bytes.NewReader(part.Bytes()),
		})
		if err != nil {
			return nil, 0, translate(err)
		}

		length := int64(part.Len())
		parts = append(parts, UploadedPart{Number: number, Size: length, ETag: aws.ToString(uploaded.ETag)})
		size += length

		part.Reset()

		if _, err := io.CopyN(part, rest, writePartSize); err != nil && !errors.Is(err, io.EOF) {
			return nil, 0, err
		}
	}

	return parts, size, nil
}

// WriteFile is Write for content that can be read in any order: large parts go side by side.
func (s *Store) WriteFile(ctx context.Context, key string, content io.ReaderAt, size int64) error {
	if size <= filePartSize {
		_, err := s.transfers.PutObject(ctx, &s3.PutObjectInput{
			Bucket: &s.bucket, Key: s.full(key), Body: io.NewSectionReader(content, 0, size),
		})

		return translate(err)
	}

	uploadID, err := s.CreateUpload(ctx, key)
	if err != nil {
		return err
	}

	parts, err := s.writeFileParts(ctx, key, uploadID, content, size)
	if err == nil {
		err = s.CompleteUpload(ctx, key, uploadID, parts, size)
	}

	if err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
		defer cancel()

		_ = s.AbortUpload(ctx, key, uploadID) // what it leaves behind shows in Uploads
	}

	return err
}

func (s *Store) writeFileParts(ctx context.Context, key, uploadID string, content io.ReaderAt, size int64) ([]UploadedPart, error) {
	length := max(int64(filePartSize), size/writeMaxParts+1)
	parts := make([]UploadedPart, (size+length-1)/length)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(filePartsAtOnce)

	for i := range parts {
		group.Go(func() (err error) {
			defer fault.Recover(&err)

			offset := int64(i) * length
			part := io.NewSectionReader(content, offset, min(length, size-offset))

			uploaded, err := s.transfers.UploadPart(ctx, &s3.UploadPartInput{
				Bucket: &s.bucket, Key: s.full(key), UploadId: &uploadID,
				PartNumber: new(int32(i + 1)), Body: part, //nolint:gosec // at most 10,000
			})
			if err != nil {
				return translate(err)
			}

			parts[i] = UploadedPart{Number: i + 1, Size: part.Size(), ETag: aws.ToString(uploaded.ETag)}

			return nil
		})
	}

	return parts, group.Wait()
}

// Delete removes an object; one that does not exist is fine.
func (s *Store) Delete(ctx context.Context, key string) error {
	_, err := s.calls.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.bucket, Key: s.full(key)})
	if hasCode(err, "NoSuchKey") {
		return nil
	}

	return translate(err)
}

// List gives the objects whose keys begin with prefix, in the order of their keys. It ends with its
// first error.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		pages := s3.NewListObjectsV2Paginator(s.calls, &s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: s.full(prefix)})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				yield(Object{}, translate(err))

				return
			}

			for _, found := range page.Contents {
				object := Object{
					Key:  strings.TrimPrefix(aws.ToString(found.Key), s.prefix),
					Size: aws.ToInt64(found.Size), ETag: aws.ToString(found.ETag),
					Modified: aws.ToTime(found.LastModified),
				}
				if !yield(object, nil) {
					return
				}
			}
		}
	}
}
