//go:build !race

package duckdb

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/sandbox"
)

// TestHostileDocuments reads hostile documents in a sealed process with the limits of an ingestion. None of them crashes the process: all are
// read in the same one. Each ends with a clear fault, or its rows are the right ones, in which texts that instruct a model are only values. The
// race detector would compile PDFium for minutes, so it does not run this test.
func TestHostileDocuments(t *testing.T) {
	t.Parallel()

	documents := slices.Concat(hostilePDFs(t), hostileWords(t), hostileHTML(t), hostileMails(t))
	require.GreaterOrEqual(t, len(documents), 60)

	child, err := children(t, sandbox.Full).Start(t.Context(), papers, sandbox.Limits{Memory: engine.Mapped(1 << 30), Wall: 3 * time.Minute})
	require.NoError(t, err)

	defer func() { t.Log("peak memory:", child.Close().Memory>>20, "MiB") }()

	read, slowest := 0, time.Duration(0)

	for n, one := range documents {
		name := fmt.Sprintf("file-%d", n)
		require.NoError(t, child.Mount(written(t, string(one.content)), name))

		begun := time.Now()

		var answer engine.Answer

		require.NoError(t, child.Send(engine.Source{Name: name, Size: int64(len(one.content))}))
		require.NoError(t, child.Receive(&answer), one.name)

		slowest = max(slowest, time.Since(begun))

		if failed := answer.Failure; failed != nil {
			t.Logf("%s: %s", one.name, failed.Message)
			require.True(t, one.fault == "*" || (one.fault != "" && strings.Contains(failed.Message, one.fault)), "%s: %s", one.name, failed.Message)

			continue
		}

		read++

		require.Contains(t, []string{"", "*"}, one.fault, "%s: %v", one.name, answer.Inspection)
		require.Equal(t, []map[string]any{{"Item": "Bolt", "Price": 1.2}, {"Item": instruction, "Price": 2.0}}, answer.Inspection.Rows, one.name)
	}

	require.Less(t, slowest, time.Minute)
	t.Logf("%d documents, of which %d were read; the slowest took %s", len(documents), read, slowest)
}
