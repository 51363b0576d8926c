package job_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/job"
)

// lines is a log that can be read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.text.Write(p)
}

// with returns the lines that contain all of the words.
func (l *lines) with(words ...string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()

	for line := range strings.Lines(l.text.String()) {
		if !lacks(line, words) {
			found = append(found, line)
		}
	}

	return found
}

func lacks(line string, words []string) bool {
	for _, word := range words {
		if !strings.Contains(line, word) {
			return true
		}
	}

	return false
}

func TestLimited(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		var written lines

		log := job.Limited(slog.New(slog.NewTextHandler(&written, nil))).With("part", "jobs")

		// An outage of 90 seconds, with a different port in each error.
		for i := range 900 {
			log.Error("fetching", "err", fmt.Errorf("read tcp 127.0.0.1:%d: refused", 40000+i))
			log.Info("counts", "error", "none")
			time.Sleep(100 * time.Millisecond)
		}

		log.Warn("without a reason")
		log.Warn("without a reason")
		require.Len(t, written.with("msg=fetching"), 2)
		require.Len(t, written.with("msg=fetching", "left_out=599", "part=jobs"), 1)
		require.Len(t, written.with("msg=counts"), 900, "what is no error is not limited")
		require.Len(t, written.with("without a reason"), 2)
		require.Empty(t, written.with("has stopped"))

		log.Error("fetching", "err", errors.New("no such table"))
		require.Len(t, written.with("msg=fetching"), 3, "another cause")

		time.Sleep(time.Minute)
		require.Len(t, written.with("has stopped"), 1)
		require.Len(t, written.with("has stopped", "message=fetching", "duration=1m29.9s", "left_out=898", "part=jobs"), 1)

		log.Error("fetching", "err", errors.New("read tcp 127.0.0.1:1: refused"))
		require.Len(t, written.with("msg=fetching"), 4, "a new outage is told at once")
	})
}
