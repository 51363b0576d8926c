// Package blob is the client of the object store: any S3-compatible store with multipart uploads and conditional
// writes. TestBlobContract checks what is required. Keys are relative to the prefix of the deployment in the bucket.
//
// Config alone determines the target and the credentials of calls: the package reads no environment variables, no
// shared files and no metadata service, and follows no redirects. Every call ends with its context and is tried at
// most three times.
//
// A presigned address is a secret while it is valid: no error and no log contains it.
//
// Faults: NotFound; Unavailable while the store cannot be reached, is overloaded or does not answer in time; Conflict
// for parts that do not make the object and for a location that belongs to another deployment. All other errors (a
// missing bucket, a wrong access key) need the operator and are not faults.
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

	// writePartSize is how much of a stream is held in memory at a time, in bytes. writeMaxParts is S3's limit.
	writePartSize = 8 << 20
	writeMaxParts = 10_000

	// filePartSize is the minimum size of the parts of a file, in bytes. filePartsAtOnce parts are uploaded at once.
	filePartSize    = 16 << 20
	filePartsAtOnce = 4

	cleanupTimeout = 10 * time.Second
	defaultStalled = 5 * time.Minute // a store may take minutes to assemble a large file
)

// Config configures the access to the store.
type Config struct {
	Endpoint       string // for example https://s3.eu-central-1.amazonaws.com
	PublicEndpoint string // endpoint for clients, used in presigned addresses; Endpoint if empty
	Region         string
	Bucket         string
	Prefix         string // prefix of all keys, so that a bucket can be shared
	AccessKey      string
	SecretKey      string
	PathStyle      bool // put the bucket in the path, not in the host name

	// Client sends the requests. Its Timeout limits each attempt of a call that the store answers at once, and the
	// wait for the first byte of a read. Calls that transfer the bytes of a file or make the store assemble a file
	// may take as long as their context, but fail if no byte moves for the time Stalled; 0 means five minutes.
	Client  *http.Client
	Stalled time.Duration
	Now     func() time.Time

	// MayRemove is called before anything is removed. If it fails, nothing is removed and its error is returned. Nil
	// allows every removal.
	MayRemove func(ctx context.Context) error
}

// Store gives access to one prefix of one bucket.
type Store struct {
	calls     *s3.Client // with the client's timeout
	transfers *s3.Client // with a timeout only while no byte moves
	reads     *s3.Client // the same, and with the client's timeout until the answer begins
	signer    *v4.Signer
	public    url.URL // address of the prefix for clients
	keys      aws.Credentials
	region    string
	bucket    string
	prefix    string
	now       func() time.Time
	mayRemove func(ctx context.Context) error
}

// New creates a Store. It connects on first use, so that a process can start while the store is not available.
func New(c Config) (*Store, error) {
	if c.PublicEndpoint == "" {
		c.PublicEndpoint = c.Endpoint
	}

	if c.MayRemove == nil {
		c.MayRemove = func(context.Context) error { return nil }
	}

	if c.Prefix = strings.Trim(c.Prefix, "/"); c.Prefix != "" {
		c.Prefix += "/"
	}

	if _, err := c.address(c.Endpoint); err != nil {
		return nil, fmt.Errorf("the endpoint of the store: %w", err)
	}

	public, err := c.address(c.PublicEndpoint)
	if err != nil {
		return nil, fmt.Errorf("the public endpoint of the store: %w", err)
	}

	for name, value := range map[string]string{
		"region": c.Region, "bucket": c.Bucket, "access key": c.AccessKey, "secret key": c.SecretKey,
	} {
		if value == "" {
			return nil, fmt.Errorf("the %s of the store is missing", name)
		}
	}

	calls := *c.Client
	calls.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	transfers := calls
	transfers.Timeout = 0
	reads := transfers

	stalled := cmp.Or(c.Stalled, defaultStalled)
	transport := cmp.Or(calls.Transport, http.DefaultTransport)
	transfers.Transport = moving{transport, stalled, stalled}
	reads.Transport = moving{transport, cmp.Or(calls.Timeout, stalled), stalled}

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
		mayRemove: c.MayRemove,
	}, nil
}

// address returns the address of the prefix at an endpoint.
func (c Config) address(endpoint string) (*url.URL, error) {
	address, err := url.Parse(endpoint)
	if err != nil || (address.Scheme != "http" && address.Scheme != "https") || address.Host == "" ||
		address.User != nil || address.RawQuery != "" || address.Fragment != "" {
		return nil, errors.New("not an http or https URL of a host")
	}

	address.Path = strings.TrimSuffix(address.Path, "/") + "/"

	if c.PathStyle {
		address.Path += c.Bucket + "/"
	} else {
		// In these cases the SDK switches to path style by itself, and presigned addresses would not match.
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
		// Some compatible stores do not support the newer checksums. The signature covers the content.
		RequestChecksumCalculation:                aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation:                aws.ResponseChecksumValidationWhenRequired,
		DisableLogOutputChecksumValidationSkipped: true,
		DisableMultiRegionAccessPoints:            true,
		DisableS3ExpressSessionAuth:               new(true),
	})
}

// full returns the key within the bucket.
func (s *Store) full(key string) *string { return new(s.prefix + key) }

// URI returns the s3:// address of an object, for other programs that read the bucket.
func (s *Store) URI(key string) string { return "s3://" + s.bucket + "/" + s.prefix + key }

// Object describes an object in the store.
type Object struct {
	Key      string
	Size     int64
	ETag     string // changes with the content; it has no other meaning
	Modified time.Time
}

// Head returns the description of an object without its content.
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

// Read streams length bytes from offset, or everything from offset if length is negative. It returns fewer bytes if
// the object ends earlier, and none if it ends before offset. The caller must close the stream, which is valid only
// while ctx is.
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

// ReadVersion streams an object that has the given ETag. The caller must close the stream, which is valid only while ctx is.
//
// Faults: Conflict if the object has another ETag now.
func (s *Store) ReadVersion(ctx context.Context, key, etag string) (io.ReadCloser, error) {
	object, err := s.reads.GetObject(ctx, &s3.GetObjectInput{Bucket: &s.bucket, Key: s.full(key), IfMatch: &etag})

	switch {
	case hasStatus(err, http.StatusPreconditionFailed):
		return nil, otherVersion()
	case err != nil:
		return nil, translate(err)
	case aws.ToString(object.ETag) != etag: // a store may ignore the condition
		_ = object.Body.Close()

		return nil, otherVersion()
	}

	return &body{object.Body}, nil
}

func otherVersion() error { return fault.New(fault.Conflict, "The file has changed.") }

// body translates errors that end a stream early.
type body struct{ io.ReadCloser }

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, context.Canceled) {
		err = unavailable(fmt.Errorf("S3 GetObject: %w", err))
	}

	return n, err
}

// Write creates or replaces an object with the content of the stream, and returns its size. The object is written
// completely or not at all. Errors of the stream are returned unchanged.
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

		_ = s.AbortUpload(ctx, key, uploadID) // if it fails, Uploads still lists the upload

		return 0, err
	}

	return size, nil
}

// writeParts uploads the content of part and then the rest of the stream, using part as its only buffer.
func (s *Store) writeParts(ctx context.Context, key, uploadID string, part *bytes.Buffer, rest io.Reader) (parts []UploadedPart, size int64, err error) {
	for number := 1; part.Len() > 0; number++ {
		if number > writeMaxParts {
			return nil, 0, errors.New("the stream exceeds the maximum size of an object")
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

// WriteFile is Write for content that can be read at any offset: it uploads large parts concurrently.
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

		_ = s.AbortUpload(ctx, key, uploadID) // if it fails, Uploads still lists the upload
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

// Delete removes an object. It succeeds if the object does not exist.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := s.mayRemove(ctx); err != nil {
		return err
	}

	_, err := s.calls.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.bucket, Key: s.full(key)})
	if hasCode(err, "NoSuchKey") {
		return nil
	}

	return translate(err)
}

// List yields the objects whose keys begin with prefix, in the order of their keys. It stops after the first error.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return s.ListAfter(ctx, prefix, "")
}

// ListAfter is List from the first key that is greater than after.
func (s *Store) ListAfter(ctx context.Context, prefix, after string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		input := &s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: s.full(prefix)}
		if after != "" {
			input.StartAfter = s.full(after)
		}

		pages := s3.NewListObjectsV2Paginator(s.calls, input)
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
