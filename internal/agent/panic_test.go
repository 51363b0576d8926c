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

// TestPanicBeside checks that a panic in a goroutine of a question fails only that question.
func TestPanicBeside(t *testing.T) {
	t.Parallel()

	asked := Question{Username: "ada", Namespace: "shop", Text: "How many orders are there?"}
	p := &interpreter{inquiry: &inquiry{question: asked}} // its Query is nil
	orders := catalog.Item{Owner: "ada", Dataset: catalog.Dataset{Namespace: "shop", Name: "orders"}}

	err := <-p.matchAside(t.Context(), []catalog.Item{orders}, &planner.Request{})
	require.True(t, fault.Is(err, fault.Internal), "%v", err)
	require.ErrorContains(t, err, "planner.go:")
}

// TestPanicOfTheSecondOpinion checks that the model answers without a second opinion that panics, and that the log
// reports the panic.
func TestPanicOfTheSecondOpinion(t *testing.T) {
	t.Parallel()

	var log bytes.Buffer

	tools := Tools{Query: &query.Query{Config: query.Config{Log: slog.New(slog.NewTextHandler(&log, nil))}}, Now: time.Now} // there is no catalog
	asked := &inquiry{tools: tools, question: Question{Text: "How many orders are there?"}}
	w := &writer{dialogue: &dialogue{inquiry: asked}, consults: true}

	hear, stop := w.consult(t.Context())
	defer stop()

	require.Nil(t, hear())
	require.Contains(t, log.String(), "the second opinion failed")
	require.Contains(t, log.String(), "opinion.go:")
}
