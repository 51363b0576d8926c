package run

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/tracing"
)

// shelf is a fake Phoenix that stores the last annotation. hold delays the next one.
type shelf struct {
	mutex sync.Mutex
	label string
	held  chan struct{} // the next annotation waits until it is closed
}

func (s *shelf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Data []struct {
			Result struct {
				Label string `json:"label"`
			} `json:"result"`
		} `json:"data"`
	}

	if json.NewDecoder(r.Body).Decode(&body) != nil || len(body.Data) != 1 {
		return // spans, not an annotation
	}

	s.mutex.Lock()
	held := s.held
	s.held = nil
	s.mutex.Unlock()

	if held != nil {
		<-held
	}

	s.mutex.Lock()
	defer s.mutex.Unlock()

	s.label = body.Data[0].Result.Label
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{"data": [{"id": "1"}]}`))
}

func (s *shelf) hold() (release chan struct{}) {
	s.mutex.Lock()
	defer s.mutex.Unlock()

	s.held = make(chan struct{})

	return s.held
}

func (s *shelf) has() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()

	return s.label
}

func TestRatingsThatCross(t *testing.T) {
	t.Parallel()

	o := newOffice(t, time.Minute)
	store := &shelf{}
	server := httptest.NewServer(store)
	t.Cleanup(server.Close)

	var err error

	o.Tracing, err = tracing.New(t.Context(), tracing.Config{
		Kind: tracing.Phoenix, Endpoint: server.URL, Project: "p", Client: server.Client(), Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	t.Cleanup(func() { o.Tracing.Stop(t.Context()) })

	asked := o.ask()
	require.True(t, fault.Is(o.Rate(t.Context(), o.who, asked.ID, true, ""), fault.RunNotCompleted))
	o.let <- 0
	require.NoError(t, o.Await(t.Context(), o.who, asked.ID))

	// The first rating is being sent while the second is recorded, and reaches the store after it.
	release, first := store.hold(), make(chan error)

	go func() { first <- o.Rate(t.Context(), o.who, asked.ID, true, "first") }()

	require.Eventually(t, func() bool {
		store.mutex.Lock()
		defer store.mutex.Unlock()

		return store.held == nil
	}, time.Second*10, time.Millisecond*10)
	require.NoError(t, o.Rate(t.Context(), o.who, asked.ID, false, "second"))
	require.NoError(t, o.repair(t.Context(), job.Lease{}), "it leaves alone what is on its way")
	close(release)
	require.NoError(t, <-first)
	require.Equal(t, "thumbs-up", store.has())

	found, err := o.Feedback(t.Context(), o.who, asked.ID)
	require.NoError(t, err)
	require.Equal(t, "second", found.Comment)

	require.NoError(t, o.repair(t.Context(), job.Lease{}))
	require.Equal(t, "thumbs-down", store.has())

	all, err := selectOpinions(t.Context(), o.DB.Pool(), asked.Account, asked.ID)
	require.NoError(t, err)
	require.Len(t, all, 2)

	for _, one := range all {
		require.Nil(t, one.checkAt)
	}

	require.NoError(t, o.Delete(t.Context(), o.who, asked.ID))
	require.NoError(t, o.repair(t.Context(), job.Lease{}))

	all, err = selectOpinions(t.Context(), o.DB.Pool(), asked.Account, asked.ID)
	require.NoError(t, err)
	require.Empty(t, all)
}
