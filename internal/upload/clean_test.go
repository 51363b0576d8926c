package upload

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/postgres/pgtest"
	"quern.dev/quern/stack"
)

// refusing is a connection to the store on which some keys cannot be removed.
type refusing struct {
	http.RoundTripper

	key string // what they have in them
}

var errRefused = errors.New("refused")

func (r refusing) RoundTrip(request *http.Request) (*http.Response, error) {
	if strings.Contains(request.URL.Path, r.key) {
		return nil, errRefused
	}

	return r.RoundTripper.RoundTrip(request)
}

// TestRemoveGoesOn: an object that cannot be removed does not keep later ones, not even when there are more of them than are
// looked at together. When all fail, it is soon given up.
func TestRemoveGoesOn(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		bad  func(i int) bool // of the files in the order of their removal
		left int
	}{
		"the first": {func(i int) bool { return i == 0 }, 1},
		"some":      {func(i int) bool { return i%20 == 0 }, 13},
		"all":       {func(int) bool { return true }, 250},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			u := newCleaned(t)

			for i := range 250 {
				key := fmt.Sprintf("uploads/good-%s", uuid.NewString())
				if test.bad(i) {
					key = fmt.Sprintf("uploads/bad-%s", uuid.NewString())
				}

				u.insert(t, key, time.Now().Add(-time.Hour+time.Duration(i)*time.Second))
			}

			err := u.clean(t)
			require.ErrorIs(t, err, errRefused, "it is told")
			require.Equal(t, test.left, u.left(t))

			if test.left == 250 {
				require.Equal(t, maxFailures, strings.Count(err.Error(), errRefused.Error()))
			}
		})
	}
}

type cleaned struct{ Uploads }

func newCleaned(t *testing.T) cleaned {
	t.Helper()

	pathStyle, err := strconv.ParseBool(stack.Env(t, "QUERN_TEST_S3_PATH_STYLE"))
	require.NoError(t, err)

	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)

	store, err := blob.New(blob.Config{
		Endpoint: stack.Env(t, "QUERN_TEST_S3_ENDPOINT"), Region: stack.Env(t, "QUERN_TEST_S3_REGION"), Bucket: stack.Env(t, "QUERN_TEST_S3_BUCKET"),
		AccessKey: stack.Env(t, "QUERN_TEST_S3_ACCESS_KEY"), SecretKey: stack.Env(t, "QUERN_TEST_S3_SECRET_KEY"), PathStyle: pathStyle,
		Prefix: "upload-test/" + uuid.NewString(), Now: time.Now, Client: &http.Client{Transport: refusing{transport, "/bad-"}, Timeout: 20 * time.Second},
	})
	require.NoError(t, err)

	return cleaned{Uploads{DB: pgtest.New(t), Store: store, Now: time.Now}}
}

func (c cleaned) insert(t *testing.T, key string, removeAt time.Time) {
	t.Helper()
	require.NoError(t, c.DB.Do(t.Context(), func(q postgres.Querier) error {
		_, err := q.Exec(t.Context(), `
			INSERT INTO upload_files (account_id, session_id, id, position, filename, size, part_size, object_key, upload_id, status, remove_at)
			VALUES ($1, $2, $3, 1, 'x', 1, 1, $4, '', 'completed', $5)`, uuid.New(), uuid.New(), uuid.New(), key, removeAt)

		return err
	}))
}

func (c cleaned) clean(t *testing.T) error {
	t.Helper()

	jobs, err := job.New(job.Config{DB: c.DB, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)

	work := job.Work{ID: cleanWork, Job: CleanArgs{}, Queue: CleanQueue}

	return jobs.Hold(t.Context(), work, c.Clean)
}

func (c cleaned) left(t *testing.T) (count int) {
	t.Helper()
	require.NoError(t, c.DB.Do(t.Context(), func(q postgres.Querier) error {
		return q.QueryRow(t.Context(), `SELECT count(*) FROM upload_files WHERE removed_at IS NULL`).Scan(&count)
	}))

	return count
}
