// Package blobtest gives each test its own location in the object store of the stack.
package blobtest

import (
	"context"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/blob"
	"quern.dev/quern/stack"
)

// Config returns the settings of a new, empty location. The caller sets the client.
func Config(tb testing.TB) blob.Config {
	tb.Helper()

	pathStyle, err := strconv.ParseBool(stack.Env(tb, "QUERN_TEST_S3_PATH_STYLE"))
	require.NoError(tb, err)

	return blob.Config{
		Endpoint:  stack.Env(tb, "QUERN_TEST_S3_ENDPOINT"),
		Region:    stack.Env(tb, "QUERN_TEST_S3_REGION"),
		Bucket:    stack.Env(tb, "QUERN_TEST_S3_BUCKET"),
		AccessKey: stack.Env(tb, "QUERN_TEST_S3_ACCESS_KEY"),
		SecretKey: stack.Env(tb, "QUERN_TEST_S3_SECRET_KEY"),
		PathStyle: pathStyle,
		Prefix:    "test/" + uuid.NewString(),
		Now:       time.Now,
	}
}

// New returns a store at a new location, which is emptied when the test ends.
func New(tb testing.TB) *blob.Store {
	tb.Helper()

	transport := &http.Transport{}
	config := Config(tb)
	config.Client = &http.Client{Transport: transport, Timeout: 20 * time.Second}

	store, err := blob.New(config)
	require.NoError(tb, err)

	tb.Cleanup(func() {
		for object, err := range store.List(context.Background(), "") {
			require.NoError(tb, err)
			require.NoError(tb, store.Delete(context.Background(), object.Key))
		}

		transport.CloseIdleConnections()
	})

	return store
}
