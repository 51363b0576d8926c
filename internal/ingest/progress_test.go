package ingest

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/postgres"
)

const (
	slowStore = 3 << 20 // bytes in a second

	// longestGap is how many bytes the store may receive between two changes of the progress: a part of 8 MiB, and what arrives until the change is
	// recorded and seen. Bytes do not depend on the speed of the machine.
	longestGap = 14 << 20
)

// TestProgressTold checks that the progress of a load changes while a slow store receives the data file: while the file is written, and if it has to be
// stored again as a whole.
func TestProgressTold(t *testing.T) {
	t.Parallel()

	for name, refused := range map[string]int{"stored while it is written": 0, "stored afterwards": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var received atomic.Int64

			refuse := refused
			p := newPipelineRun(t, pipelineCase{content: noisy(), store: func(r *http.Request) (*http.Response, error) {
				if refuse--; refuse >= 0 {
					return &http.Response{StatusCode: http.StatusForbidden, Body: http.NoBody, Request: r}, nil
				}

				if r.Body != nil {
					r.Body = slowly{r.Body, &received}
				}

				return nil, nil //nolint:nilnil // the store answers
			}})

			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()

			ended := make(chan struct{})

			go func() {
				defer close(ended)

				_ = p.run(ctx, RunArgs{Account: p.made.Account, Dataset: p.made.Dataset, Ingestion: p.made.ID}, true) // the rows tell how far it came
			}()

			gap, phase := p.longestGap(ended, &received)
			require.LessOrEqual(t, gap, int64(longestGap), "in phase %s", phase)
			require.Greater(t, received.Load(), int64(longestGap)+4<<20, "without progress the gap would be the whole file")
		})
	}
}

// longestGap returns the most bytes that the store received without a change of the progress, and the phase, until the data file is stored.
func (p *pipelineRun) longestGap(ended <-chan struct{}, received *atomic.Int64) (gap int64, where string) {
	p.t.Helper()

	var (
		last    Ingestion
		changed int64
	)

	for isStored := false; !isStored; {
		select {
		case <-ended:
			isStored = true
		case <-time.After(50 * time.Millisecond):
		}

		var now *Ingestion

		require.NoError(p.t, p.DB.Do(p.t.Context(), func(q postgres.Querier) (err error) {
			now, err = selectIngestion(p.t.Context(), q, p.made.Account, p.made.Dataset, p.made.ID)

			return err
		}))

		if now.Phase == last.Phase && now.BytesDone == last.BytesDone && now.RowsDone == last.RowsDone {
			continue
		}

		if bytes := received.Load() - changed; bytes > gap {
			gap, where = bytes, last.Phase
		}

		isStored = isStored || now.Phase == phaseCommitting
		last, changed = *now, received.Load()
	}

	require.EqualValues(p.t, noisyRows, last.RowsDone)

	return gap, where
}

// slowly reads as a slow store does.
type slowly struct {
	io.ReadCloser

	received *atomic.Int64
}

func (s slowly) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p[:min(len(p), slowStore/100)])
	s.received.Add(int64(n))
	time.Sleep(time.Duration(n) * time.Second / slowStore)

	return n, err
}

const noisyRows = 240_000

// noisy returns rows whose data file has several parts, because they cannot be compressed.
func noisy() string {
	var (
		random  = rand.NewChaCha8([32]byte{1})
		noise   = make([]byte, 90)
		content strings.Builder
	)

	content.WriteString("n,noise\n")

	for n := range noisyRows {
		_, _ = random.Read(noise) // never fails
		fmt.Fprintf(&content, "%d,%s\n", n, base64.StdEncoding.EncodeToString(noise))
	}

	return content.String()
}
