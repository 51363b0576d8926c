package ingest

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/postgres"
)

const (
	slowStore   = 3 << 20         // bytes in a second; slower than 4 MiB, which a part needs to be stored in time
	longestGap  = 2 * time.Second // between two changes of the progress
	gapTolerate = 2 * time.Second // what a busy machine may add; without progress the store alone takes longer than both
)

// TestProgressTold checks that the progress of a load changes at least every two seconds, also while a slow store receives the data file: while the file
// is written, and if it has to be stored again as a whole.
func TestProgressTold(t *testing.T) { //nolint:paralleltest // it measures time
	for name, refused := range map[string]int{"stored while it is written": 0, "stored afterwards": 1} {
		t.Run(name, func(t *testing.T) {
			refuse := refused
			p := newPipelineRun(t, pipelineCase{content: noisy(), store: func(r *http.Request) (*http.Response, error) {
				if refuse--; refuse >= 0 {
					return &http.Response{StatusCode: http.StatusForbidden, Body: http.NoBody, Request: r}, nil
				}

				if r.Body != nil {
					r.Body = slowly{r.Body}
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

			gap, phase := p.longestGap(ended)
			require.LessOrEqual(t, gap, longestGap+gapTolerate, "in phase %s", phase)
		})
	}
}

// longestGap returns the longest time without a change of the progress, and its phase, until the data file is stored.
func (p *pipelineRun) longestGap(ended <-chan struct{}) (gap time.Duration, where string) {
	p.t.Helper()

	var (
		last    Ingestion
		changed = time.Now()
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

		if pause := time.Since(changed); last.Phase != "" && pause > gap {
			gap, where = pause, last.Phase
		}

		isStored = isStored || now.Phase == phaseCommitting
		last, changed = *now, time.Now()
	}

	require.EqualValues(p.t, noisyRows, last.RowsDone)

	return gap, where
}

// slowly reads as a slow store does.
type slowly struct{ io.ReadCloser }

func (s slowly) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p[:min(len(p), slowStore/100)])
	time.Sleep(time.Duration(n) * time.Second / slowStore)

	return n, err
}

const noisyRows = 150_000

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
