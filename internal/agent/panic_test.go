package agent

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/planner"
	"quern.dev/quern/internal/query"
)

// TestPanicBeside: what panics beside a question fails that question, and nothing else.
func TestPanicBeside(t *testing.T) {
	t.Parallel()

	asked := Question{Username: "ada", Namespace: "shop", Text: "How many orders are there?"}
	p := &planning{asked: asked} // whose Query is nil
	orders := catalog.Item{Owner: "ada", Dataset: catalog.Dataset{Namespace: "shop", Name: "orders"}}

	err := <-p.linkAside(t.Context(), []catalog.Item{orders}, &planner.Request{})
	require.True(t, fault.Is(err, fault.Internal), "%v", err)
	require.ErrorContains(t, err, "planner.go:")
}

// TestPanicOfTheSecondOpinion: the model answers without it, and the log says why.
func TestPanicOfTheSecondOpinion(t *testing.T) {
	t.Parallel()

	var log bytes.Buffer

	a := NL2QL{Query: &query.Query{Config: query.Config{Log: slog.New(slog.NewTextHandler(&log, nil))}}, Now: time.Now, Opinion: true}
	w := &writing{asking: &asking{NL2QL: a, asked: Question{Text: "How many orders are there?"}}, whole: true} // without a catalog

	hear, stop := w.consult(t.Context())
	defer stop()

	require.Nil(t, hear())
	require.Contains(t, log.String(), "the second opinion failed")
	require.Contains(t, log.String(), "opinion.go:")
}
