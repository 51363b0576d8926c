package llm

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

func TestChoose(t *testing.T) {
	t.Parallel()

	b := newBench(t,
		Provider{Name: "far", Kind: Anthropic, Models: []string{"big", "small"}, Exposure: ExposeValues},
		Provider{Name: "near", Kind: OpenAI, Models: []string{"small"}, Local: true, Exposure: ExposeSchema})
	require.True(t, b.Configured())

	for _, c := range []struct{ model, provider, wantModel, wantProvider, field string }{
		{"", "", "big", "far", ""},
		{"small", "", "small", "far", ""},
		{"", "near", "small", "near", ""},
		{"small", "near", "small", "near", ""},
		{"big", "near", "", "", "model"},
		{"other", "", "", "", "model"},
		{"", "other", "", "", "provider"},
	} {
		got, err := b.Choose(c.model, c.provider)
		require.Equal(t, c.wantModel, got.Name)
		require.Equal(t, c.wantProvider, got.Provider)

		if c.field != "" {
			require.Equal(t, c.field, fault.From(err).Subs[0].Code)
		}
	}

	far, err := b.Choose("big", "")
	require.NoError(t, err)
	require.Equal(t, Model{Name: "big", Provider: "far", Exposure: ExposeValues}, far)

	near, err := b.Choose("", "near")
	require.NoError(t, err)
	require.Equal(t, Model{Name: "small", Provider: "near", Local: true, Exposure: ExposeRows}, near, "what is local may see everything")
	require.Equal(t, []Model{far, {Name: "small", Provider: "far", Exposure: ExposeValues}, near}, b.All())
	require.Equal(t, "values rows", far.Exposure.String()+" "+near.Exposure.String())

	none, err := New(Config{})
	require.NoError(t, err)
	require.False(t, none.Configured())
	_, err = none.Choose("", "")
	require.Equal(t, fault.Unavailable, fault.From(err).Code)

	_, err = New(Config{Providers: []Provider{{Name: "far", Kind: OpenAI, Models: []string{"x"}, Concurrency: 1, Timeout: 1, Client: http.DefaultClient}}})
	require.ErrorContains(t, err, "needs an exposure", "an exposure is never assumed")
}

func TestHangingProviderIsTriedAgain(t *testing.T) {
	t.Parallel()

	v := openAIVendor()
	server := script(t, hang, jsonAnswer(v.complete("Three.", v.stop)))
	b := newBench(t, Provider{Kind: OpenAI, URL: server.URL + v.base(), Timeout: 2 * time.Second})

	got, err := b.Complete(t.Context(), b.call, b.request(t))
	require.NoError(t, err)
	require.Equal(t, "Three.", got.Text)
	require.Equal(t, []row{{State: "unknown", Error: "timeout", Turn: 1, Attempt: 1}, done(v, 1, 2)}, b.rows(t))
}

func TestNobodyThere(t *testing.T) {
	t.Parallel()

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)

	address := listener.Addr().String()
	require.NoError(t, listener.Close())

	b := newBench(t, Provider{Kind: Anthropic, URL: "http://" + address})
	_, err = b.Complete(t.Context(), b.call, b.request(t))
	require.Equal(t, fault.Unavailable, fault.From(err).Code)
	require.Positive(t, fault.From(err).RetryAfter)

	for _, one := range b.rows(t) {
		require.Equal(t, "failed", one.State, "nothing was sent, so nothing was billed")
		require.Equal(t, "connect", one.Error)
	}
}

func TestBreaker(t *testing.T) {
	t.Parallel()

	var asked atomic.Int64

	var well atomic.Bool

	v := openAIVendor()
	server := script(t)
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)

		if well.Load() {
			jsonAnswer(v.complete("Three.", v.stop))(w, r)
		} else {
			refuse(500, v.failure("api_error", "x"))(w, r)
		}
	})

	var ahead atomic.Int64

	b := newBench(t, Provider{Kind: OpenAI, URL: server.URL + v.base()})
	b.config.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	request := b.request(t)

	for range 2 {
		_, err := b.Complete(t.Context(), b.call, request)
		require.Equal(t, fault.Unavailable, fault.From(err).Code)
	}

	require.EqualValues(t, breakAfter, asked.Load(), "after five failures in a row nobody asks any more")

	_, err := b.Complete(t.Context(), b.call, request)
	require.Equal(t, fault.Unavailable, fault.From(err).Code)
	require.InDelta(t, breakFor.Seconds(), fault.From(err).RetryAfter.Seconds(), 10)
	require.EqualValues(t, breakAfter, asked.Load())
	require.Len(t, b.rows(t), breakAfter, "no row without a call")

	well.Store(true)
	ahead.Store(int64(breakFor))

	for range 2 {
		_, err = b.Complete(t.Context(), b.call, request)
		require.NoError(t, err)
	}
}

func TestOneProbeAtATime(t *testing.T) {
	t.Parallel()

	var b breaker

	now := time.Now()
	for range breakAfter {
		require.Zero(t, b.allow(now))
		b.report(now, sick)
	}

	require.Equal(t, breakFor, b.allow(now))

	later := now.Add(breakFor)
	require.Zero(t, b.allow(later))
	require.Equal(t, probeWait, b.allow(later), "one is asking already")
	b.report(later, nothing)
	require.Zero(t, b.allow(later), "it said nothing, so the next may ask")
	b.report(later, sick)
	require.Equal(t, breakFor, b.allow(later))

	end := later.Add(breakFor)
	require.Zero(t, b.allow(end))
	b.report(end, healthy)
	require.Zero(t, b.allow(end))
	require.Zero(t, b.allow(end))
}

func TestConcurrency(t *testing.T) {
	t.Parallel()

	var now, most atomic.Int64

	v := openAIVendor()
	release := make(chan struct{})
	server := script(t)
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}

		<-release
		now.Add(-1)
		jsonAnswer(v.complete("Three.", v.stop))(w, r)
	})

	b := newBench(t, Provider{Kind: OpenAI, URL: server.URL + v.base(), Concurrency: 2})
	request := b.request(t)

	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			_, err := b.Complete(t.Context(), b.call, request)
			if err != nil {
				t.Error(err)
			}
		})
	}

	require.Eventually(t, func() bool { return now.Load() == 2 }, 20*time.Second, 10*time.Millisecond)

	short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()

	_, err := b.Complete(short, b.call, request)
	require.Equal(t, fault.Unavailable, fault.From(err).Code, "there was no place in time")

	close(release)
	all.Wait()
	require.EqualValues(t, 2, most.Load())
	require.Len(t, b.rows(t), 6)
}

func TestCancelledByTheCaller(t *testing.T) {
	t.Parallel()

	arrived := make(chan struct{})
	server := script(t, func(w http.ResponseWriter, r *http.Request) {
		close(arrived)
		hang(w, r)
	})
	b := newBench(t, Provider{Kind: Anthropic, URL: server.URL})
	ctx, cancel := context.WithCancel(t.Context())

	go func() {
		<-arrived
		cancel()
	}()

	_, err := b.Complete(ctx, b.call, b.request(t))
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, []row{{State: "unknown", Error: "cancelled", Turn: 1, Attempt: 1}}, b.rows(t), "written down although the caller is gone")
}

func TestCrashLeavesATrace(t *testing.T) {
	t.Parallel()

	b := newBench(t, Provider{Kind: OpenAI, URL: "http://127.0.0.1:1/v1"})
	request := b.request(t)

	// Simulate a process that died while it waited for the answer.
	_, err := b.begin(t.Context(), &turn{Call: b.call, provider: b.providers[0], request: request, number: 1, attempt: 1})
	require.NoError(t, err)
	require.Equal(t, []row{{State: "sending", Turn: 1, Attempt: 1}}, b.rows(t))

	require.NoError(t, b.giveUp(t.Context()))
	require.Equal(t, "sending", b.rows(t)[0].State, "it may still be under way")

	b.config.Now = func() time.Time { return time.Now().Add(20*time.Second + lateAfter + time.Second) }
	watching, stop := context.WithCancel(t.Context())
	defer stop()

	var ended sync.WaitGroup
	ended.Go(func() { b.Watch(watching) })

	require.Eventually(t, func() bool { return b.rows(t)[0].State == "unknown" }, 10*time.Second, 50*time.Millisecond)
	require.Equal(t, "lost", b.rows(t)[0].Error)
	stop()
	ended.Wait()
}

func TestNoRowNoCall(t *testing.T) {
	t.Parallel()

	v := openAIVendor()
	server := script(t, jsonAnswer(v.complete("Three.", v.stop)))
	b := newBench(t, Provider{Kind: OpenAI, URL: server.URL + v.base()})
	spent := fault.New(fault.LimitExceeded, "Today's limit is reached.")
	b.config.Admit = func(context.Context, postgres.Tx, uuid.UUID) error { return spent }

	_, err := b.Complete(t.Context(), b.call, b.request(t))
	require.Equal(t, fault.LimitExceeded, fault.From(err).Code)
	require.Empty(t, server.asked())
	require.Empty(t, b.rows(t))

	b.config.Admit = nil
	b.config.Settle = func(context.Context, postgres.Tx, uuid.UUID, int64) error { return spent }
	_, err = b.Complete(t.Context(), b.call, b.request(t))
	require.Error(t, err, "an answer that cannot be counted is not given")
	require.Equal(t, "sending", b.rows(t)[0].State, "one transaction: nothing is counted, nothing is done")
}
