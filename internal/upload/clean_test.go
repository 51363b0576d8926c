package upload

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/postgres/pgtest"
	"quern.dev/quern/stack"
)

// TestCleanAgainstBinding checks a request that binds a file while a cleaner is about to delete its object. Either
// the file is bound and keeps its object, or it is deleted and the request fails.
func TestCleanAgainstBinding(t *testing.T) {
	t.Parallel()

	p := newPlace(t)
	session := p.completed(t, 1)
	to := Binding{Account: uuid.New(), Dataset: uuid.New(), Ingestion: uuid.New()}

	var bound error

	p.wire.before = func(r *http.Request) {
		if r.Method == http.MethodDelete {
			_, bound = p.Reserve(t.Context(), p.who, session.ID, nil, to, false)
		}
	}

	p.clean(t)

	_, err := p.Store.Head(t.Context(), session.Files[0].Key)
	if bound == nil {
		require.NoError(t, err, "the bound file lost its object")
	}

	require.True(t, fault.Is(bound, fault.InvalidState), "%v", bound)
	require.True(t, fault.Is(err, fault.NotFound), "%v", err)
}

// TestBindingAgainstClean checks the reverse: a file whose binding is not committed yet is not removed.
func TestBindingAgainstClean(t *testing.T) {
	t.Parallel()

	p := newPlace(t)
	session := p.completed(t, 1)
	file := session.Files[0]
	to := Binding{Account: uuid.New(), Dataset: uuid.New(), Ingestion: uuid.New()}

	require.NoError(t, p.DB.InTx(t.Context(), func(tx postgres.Tx) error {
		certain, _, err := bindFiles(t.Context(), tx, session, []uuid.UUID{file.ID}, to, p.Now().Add(time.Minute))
		require.Equal(t, 1, certain)
		p.clean(t)

		return err
	}))

	p.clean(t)

	_, err := p.Store.Head(t.Context(), file.Key)
	require.NoError(t, err)
}

// TestCleanGoesOn checks that an object that the store does not delete does not stop the removal of the others.
func TestCleanGoesOn(t *testing.T) {
	t.Parallel()

	p := newPlace(t)
	session := p.completed(t, 3)
	stuck := session.Files[1].Key
	p.wire.refuse = func(r *http.Request) bool {
		return r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, stuck)
	}

	require.ErrorContains(t, p.tryClean(t), stuck)

	for _, file := range session.Files {
		_, err := p.Store.Head(t.Context(), file.Key)
		require.Equal(t, file.Key == stuck, err == nil, file.Key)
	}

	p.wire.refuse = nil
	p.clean(t)

	_, err := p.Store.Head(t.Context(), stuck)
	require.True(t, fault.Is(err, fault.NotFound))
}

// place is an Uploads with its own database and prefix, for one test.
type place struct {
	Uploads

	who  auth.Principal
	wire *wire
	jobs *job.Client
}

// wire runs a function before requests to the store, or refuses them.
type wire struct {
	http.RoundTripper

	mu     sync.Mutex
	before func(*http.Request)
	refuse func(*http.Request) bool
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	defer w.mu.Unlock()

	if w.before != nil {
		w.before(r)
	}

	if w.refuse != nil && w.refuse(r) {
		return &http.Response{StatusCode: http.StatusForbidden, Body: http.NoBody, Header: http.Header{}, Request: r}, nil
	}

	return w.RoundTripper.RoundTrip(r)
}

func newPlace(t *testing.T) place {
	t.Helper()

	pathStyle, err := strconv.ParseBool(stack.Env(t, "QUERN_TEST_S3_PATH_STYLE"))
	require.NoError(t, err)

	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)

	p := place{who: auth.Principal{Account: uuid.New(), Username: "ada"}, wire: &wire{RoundTripper: transport}}

	p.Store, err = blob.New(blob.Config{
		Endpoint:  stack.Env(t, "QUERN_TEST_S3_ENDPOINT"),
		Region:    stack.Env(t, "QUERN_TEST_S3_REGION"),
		Bucket:    stack.Env(t, "QUERN_TEST_S3_BUCKET"),
		AccessKey: stack.Env(t, "QUERN_TEST_S3_ACCESS_KEY"),
		SecretKey: stack.Env(t, "QUERN_TEST_S3_SECRET_KEY"),
		PathStyle: pathStyle,
		Prefix:    "upload-test/" + uuid.NewString(),
		Client:    &http.Client{Transport: p.wire, Timeout: 20 * time.Second},
		Now:       time.Now,
	})
	require.NoError(t, err)

	p.DB, p.Now = pgtest.New(t), time.Now
	p.jobs, err = job.New(job.Config{DB: p.DB, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)

	return p
}

// completed creates a session of completed files that are due for removal.
func (p place) completed(t *testing.T, files int) Session {
	t.Helper()

	session := Session{Account: p.who.Account, ID: uuid.New(), Status: Completed, CreatedAt: p.Now(), ExpiresAt: p.Now().Add(time.Hour)}

	for i := range files {
		file := File{ID: uuid.New(), Name: "a.csv", Size: 1, PartSize: 1, Key: dayPrefix(p.Now()) + uuid.NewString(), Status: Preparing, position: i}
		session.Files = append(session.Files, file)
		_, err := p.Store.Write(t.Context(), file.Key, strings.NewReader("a"))
		require.NoError(t, err)
		t.Cleanup(func() { _ = p.Store.Delete(context.Background(), file.Key) })
	}

	require.NoError(t, p.DB.InTx(t.Context(), func(tx postgres.Tx) error {
		if err := insertSession(t.Context(), tx, session); err != nil {
			return err
		}

		for _, file := range session.Files {
			if err := completeFile(t.Context(), tx, session, file, p.Now(), p.Now().Add(-time.Minute)); err != nil {
				return err
			}
		}

		return nil
	}))

	return session
}

func (p place) clean(t *testing.T) {
	t.Helper()
	require.NoError(t, p.tryClean(t))
}

func (p place) tryClean(t *testing.T) error {
	t.Helper()

	return p.jobs.Hold(t.Context(), job.Work{ID: uuid.New(), Job: CleanArgs{}, Queue: job.CleanupQueue}, p.Clean)
}
