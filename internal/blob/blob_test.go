package blob_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/fault"
)

func config(t *testing.T, endpoint string) blob.Config {
	t.Helper()

	return blob.Config{
		Endpoint: endpoint, Region: "us-east-1", Bucket: "bucket", Prefix: "/hidden/", AccessKey: "access", SecretKey: "classified",
		PathStyle: true, Client: newClient(t), Now: time.Now,
	}
}

func newStore(t *testing.T, c blob.Config) *blob.Store {
	t.Helper()

	store, err := blob.New(c)
	require.NoError(t, err)

	return store
}

// serve starts a store with the given handler.
func serve(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()

	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)

	return server.URL
}

// calls returns every method that sends requests to the store.
func calls(s *blob.Store) map[string]func(ctx context.Context) error {
	return map[string]func(ctx context.Context) error{
		"CreateUpload": func(ctx context.Context) error { _, err := s.CreateUpload(ctx, "key"); return err },
		"ListParts":    func(ctx context.Context) error { _, err := s.ListParts(ctx, "key", "upload"); return err },
		"CompleteUpload": func(ctx context.Context) error {
			return s.CompleteUpload(ctx, "key", "upload", []blob.UploadedPart{{Number: 1}}, 1)
		},
		"AbortUpload": func(ctx context.Context) error { return s.AbortUpload(ctx, "key", "upload") },
		"Head":        func(ctx context.Context) error { _, err := s.Head(ctx, "key"); return err },
		"Read":        func(ctx context.Context) error { _, err := s.Read(ctx, "key", 0, -1); return err },
		"Write":       func(ctx context.Context) error { _, err := s.Write(ctx, "key", strings.NewReader("x")); return err },
		"Write parts": func(ctx context.Context) error {
			_, err := s.Write(ctx, "key", bytes.NewReader(make([]byte, 9*mib)))

			return err
		},
		"WriteFile": func(ctx context.Context) error { return s.WriteFile(ctx, "key", strings.NewReader("x"), 1) },
		"WriteFile parts": func(ctx context.Context) error {
			return s.WriteFile(ctx, "key", bytes.NewReader(make([]byte, 17*mib)), 17*mib)
		},
		"Delete":          func(ctx context.Context) error { return s.Delete(ctx, "key") },
		"AllowOrigins":    func(ctx context.Context) error { return s.AllowOrigins(ctx, []string{"https://a.test"}) },
		"Deployment":      func(ctx context.Context) error { _, err := s.Deployment(ctx); return err },
		"ClaimDeployment": func(ctx context.Context) error { return s.ClaimDeployment(ctx, "id") },
		"List": func(ctx context.Context) error {
			for _, err := range s.List(ctx, "key") {
				return err
			}

			return nil
		},
		"Uploads": func(ctx context.Context) error {
			for _, err := range s.Uploads(ctx, "key") {
				return err
			}

			return nil
		},
	}
}

// requireOutage checks that every call fails with Unavailable, in time, and that no error mentions keys or addresses.
func requireOutage(t *testing.T, store *blob.Store, limit time.Duration) {
	t.Helper()

	type outcome struct {
		name string
		err  error
		took time.Duration
	}

	all := calls(store)
	outcomes := make(chan outcome, len(all))

	// Concurrently, because each call waits between its attempts.
	for name, call := range all {
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()

			began := time.Now()
			err := call(ctx)
			outcomes <- outcome{name, err, time.Since(began)}
		}()
	}

	for range all {
		got := <-outcomes
		require.Less(t, got.took, limit+3*time.Second, got.name)
		requireFault(t, fault.Unavailable, got.err)
		require.Positive(t, fault.From(got.err).RetryAfter, got.name)

		for _, secret := range []string{"hidden", "key", "access", "classified", "Signature", "http://"} {
			require.NotContains(t, got.err.Error(), secret, got.name)
		}
	}
}

func TestStoreDown(t *testing.T) {
	t.Parallel()

	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())

	requireOutage(t, newStore(t, config(t, "http://"+listener.Addr().String())), 15*time.Second)
}

func TestStoreOverloaded(t *testing.T) {
	t.Parallel()

	var tries atomic.Int32

	endpoint := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		tries.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `<Error><Code>SlowDown</Code><Message>/bucket/hidden/key</Message></Error>`)
	})
	store := newStore(t, config(t, endpoint))

	_, err := store.Head(t.Context(), "key")
	requireFault(t, fault.Unavailable, err)
	require.Equal(t, int32(3), tries.Load())

	requireOutage(t, store, 15*time.Second)
}

func TestStoreSlow(t *testing.T) {
	t.Parallel()

	endpoint := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // else the server does not notice that the client left
		<-r.Context().Done()
	})

	requireOutage(t, newStore(t, config(t, endpoint)), 300*time.Millisecond)
}

// TestClientTimeout checks that the client's timeout limits each attempt if the caller has no deadline.
func TestClientTimeout(t *testing.T) {
	t.Parallel()

	endpoint := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	c := config(t, endpoint)
	c.Client.Timeout = 100 * time.Millisecond

	began := time.Now()
	_, err := newStore(t, c).Head(t.Context(), "key")
	requireFault(t, fault.Unavailable, err)
	require.Less(t, time.Since(began), 5*time.Second)
}

// TestLongRead checks that the client's timeout does not end a read in progress.
func TestLongRead(t *testing.T) {
	t.Parallel()

	endpoint := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for range 5 {
			_, _ = io.WriteString(w, "x")
			_ = http.NewResponseController(w).Flush()

			time.Sleep(50 * time.Millisecond)
		}
	})
	c := config(t, endpoint)
	c.Client.Timeout = 100 * time.Millisecond

	object, err := newStore(t, c).Read(t.Context(), "key", 0, -1)
	require.NoError(t, err)
	content, err := io.ReadAll(object)
	require.NoError(t, err)
	require.NoError(t, object.Close())
	require.Equal(t, "xxxxx", string(content))
}

// TestCutRead checks that a truncated file causes an error.
func TestCutRead(t *testing.T) {
	t.Parallel()

	endpoint := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "10")
		_, _ = io.WriteString(w, "begin")
	})

	object, err := newStore(t, config(t, endpoint)).Read(t.Context(), "key", 0, -1)
	require.NoError(t, err)
	content, err := io.ReadAll(object)
	require.NoError(t, object.Close())
	require.Equal(t, "begin", string(content))
	requireFault(t, fault.Unavailable, err)
}

func TestAnswers(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		status int
		code   string
		want   fault.Code
	}{
		"no object":       {http.StatusNotFound, "NoSuchKey", fault.NotFound},
		"no upload":       {http.StatusNotFound, "NoSuchUpload", fault.NotFound},
		"no bucket":       {http.StatusNotFound, "NoSuchBucket", fault.Internal},
		"forbidden":       {http.StatusForbidden, "AccessDenied", fault.Internal},
		"not implemented": {http.StatusNotImplemented, "NotImplemented", fault.Internal},
		"internal error":  {http.StatusInternalServerError, "InternalError", fault.Unavailable},
		"bad gateway":     {http.StatusBadGateway, "", fault.Unavailable},
		"throttled":       {http.StatusTooManyRequests, "", fault.Unavailable},
		"too slow":        {http.StatusBadRequest, "RequestTimeout", fault.Unavailable},
		"error in 200":    {http.StatusOK, "InternalError", fault.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			store := newStore(t, config(t, serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, `<Error><Code>`+test.code+`</Code><Message>/bucket/hidden/key</Message></Error>`)
			})))

			err := store.CompleteUpload(t.Context(), "key", "upload", []blob.UploadedPart{{Number: 1}}, 1)
			if test.code == "NoSuchUpload" {
				_, err = store.ListParts(t.Context(), "key", "upload")
			}

			requireFault(t, test.want, err)
			require.NotContains(t, err.Error(), "hidden")
		})
	}
}

func TestCanceled(t *testing.T) {
	t.Parallel()

	store := newStore(t, config(t, serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })))
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)

	_, err := store.Head(ctx, "key")
	require.ErrorIs(t, err, context.Canceled)
	require.NotContains(t, err.Error(), "hidden")
}

// TestNoRedirect checks that no request is sent to a host that is not configured.
func TestNoRedirect(t *testing.T) {
	t.Parallel()

	var elsewhere atomic.Int32

	other := serve(t, func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) })
	store := newStore(t, config(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other+r.URL.Path, http.StatusTemporaryRedirect)
	})))

	for name, call := range calls(store) {
		require.Error(t, call(t.Context()), name)
	}

	require.Zero(t, elsewhere.Load())
}

// TestEnvironmentIsNotRead checks that only the configuration determines the target and the keys of calls.
func TestEnvironmentIsNotRead(t *testing.T) {
	other := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("a call went where the environment says") })
	t.Setenv("AWS_ENDPOINT_URL", other)
	t.Setenv("AWS_ENDPOINT_URL_S3", other)
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", other)
	t.Setenv("HTTP_PROXY", other)
	t.Setenv("AWS_REGION", "eu-north-1")
	t.Setenv("AWS_PROFILE", "absent")
	t.Setenv("AWS_ACCESS_KEY_ID", "environment")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "environment")

	var authorization string

	store := newStore(t, config(t, serve(t, func(_ http.ResponseWriter, r *http.Request) { authorization = r.Header.Get("Authorization") })))
	require.NoError(t, store.Delete(t.Context(), "key"))
	require.Contains(t, authorization, "Credential=access/")
	require.Contains(t, authorization, "/us-east-1/s3/")
}

// TestPresignEqualsSDK checks that presign returns the same address as the presigner of the SDK.
func TestPresignEqualsSDK(t *testing.T) {
	t.Parallel()

	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

	for name, change := range map[string]func(*blob.Config){
		"path style":      func(*blob.Config) {},
		"virtual host":    func(c *blob.Config) { c.PathStyle = false },
		"public endpoint": func(c *blob.Config) { c.PublicEndpoint = "https://files.quern.test:8443/s3" },
		"no prefix":       func(c *blob.Config) { c.Prefix = "" },
	} {
		c := config(t, "https://s3.quern.test")
		c.Now = func() time.Time { return now }
		change(&c)

		store := newStore(t, c)
		theirs := sdkPresigner(c, now)
		prefix := strings.TrimPrefix(c.Prefix, "/")

		for _, key := range []string{"uploads/a", "カタカナ/ü ø", "a+b&c=d?e#f%20", "'(x)'!*~$,;:@[]{}"} {
			got, err := store.PresignPart(t.Context(), blob.Part{Key: key, UploadID: "id/+=x", Number: 7, Size: 8 * mib}, time.Hour)
			require.NoError(t, err)
			part, err := theirs.PresignUploadPart(t.Context(), &s3.UploadPartInput{
				Bucket: &c.Bucket, Key: new(prefix + key), UploadId: new("id/+=x"), PartNumber: new(int32(7)), ContentLength: new(int64(8 * mib)),
			}, s3.WithPresignExpires(time.Hour))
			require.NoError(t, err)
			require.Equal(t, part.URL, got, name)
			require.Contains(t, got, "X-Amz-SignedHeaders=content-length%3Bhost&")

			got, err = store.PresignGet(t.Context(), key, time.Minute, "ü.csv")
			require.NoError(t, err)
			object, err := theirs.PresignGetObject(t.Context(), &s3.GetObjectInput{
				Bucket: &c.Bucket, Key: new(prefix + key), ResponseContentDisposition: new("attachment; filename*=utf-8''%C3%BC.csv"),
			}, s3.WithPresignExpires(time.Minute))
			require.NoError(t, err)
			require.Equal(t, object.URL, got, name)
		}
	}
}

func sdkPresigner(c blob.Config, now time.Time) *s3.PresignClient {
	endpoint := c.PublicEndpoint
	if endpoint == "" {
		endpoint = c.Endpoint
	}

	return s3.NewPresignClient(s3.New(s3.Options{
		BaseEndpoint: &endpoint, Region: c.Region, UsePathStyle: c.PathStyle,
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: c.AccessKey, SecretAccessKey: c.SecretKey}, nil
		}),
	}), func(o *s3.PresignOptions) {
		o.Presigner = fixedTime{v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }), now}
	})
}

// fixedTime signs with a fixed time and without the parameter x-id, which only names the operation of the SDK.
type fixedTime struct {
	signer *v4.Signer
	now    time.Time
}

func (f fixedTime) PresignHTTP(ctx context.Context, keys aws.Credentials, r *http.Request, hash, service, region string, _ time.Time, options ...func(*v4.SignerOptions)) (string, http.Header, error) {
	query := r.URL.Query()
	query.Del("x-id")
	r.URL.RawQuery = query.Encode()

	return f.signer.PresignHTTP(ctx, keys, r, hash, service, region, f.now, options...)
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()

	for name, change := range map[string]func(*blob.Config){
		"no endpoint":             func(c *blob.Config) { c.Endpoint = "" },
		"no scheme":               func(c *blob.Config) { c.Endpoint = "s3.quern.test" },
		"other scheme":            func(c *blob.Config) { c.Endpoint = "ftp://s3.quern.test" },
		"keys in the endpoint":    func(c *blob.Config) { c.Endpoint = "https://a:b@s3.quern.test" },
		"query in the endpoint":   func(c *blob.Config) { c.Endpoint = "https://s3.quern.test/?a=b" },
		"broken public endpoint":  func(c *blob.Config) { c.PublicEndpoint = "://" },
		"no region":               func(c *blob.Config) { c.Region = "" },
		"no bucket":               func(c *blob.Config) { c.Bucket = "" },
		"no access key":           func(c *blob.Config) { c.AccessKey = "" },
		"no secret key":           func(c *blob.Config) { c.SecretKey = "" },
		"bucket in an IP address": func(c *blob.Config) { c.Endpoint, c.PathStyle = "http://127.0.0.1:9000", false },
		"dots in the host":        func(c *blob.Config) { c.Bucket, c.PathStyle = "a.b", false },
	} {
		c := config(t, "https://s3.quern.test")
		change(&c)

		_, err := blob.New(c)
		require.Error(t, err, name)
		require.NotContains(t, err.Error(), "a:b", name)
	}
}

func BenchmarkPresignPart(b *testing.B) {
	store, err := blob.New(blob.Config{
		Endpoint: "https://s3.quern.test", Region: "us-east-1", Bucket: "bucket", AccessKey: "a", SecretKey: "s",
		PathStyle: true, Client: http.DefaultClient, Now: time.Now,
	})
	require.NoError(b, err)

	for b.Loop() {
		_, err := store.PresignPart(b.Context(), blob.Part{Key: "uploads/2026-11-15/0", UploadID: "u", Number: 1, Size: 8 * mib}, time.Hour)
		require.NoError(b, err)
	}
}
