package agent

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/llm"
	"quern.dev/quern/internal/planner"
	"quern.dev/quern/internal/query"
)

// TestMayBeShown checks that a statement that contains values is only for models that may see values of that dataset.
func TestMayBeShown(t *testing.T) {
	t.Parallel()

	known, other := uuid.New(), uuid.New()

	for _, one := range []struct {
		least llm.Exposure
		of    uuid.UUID
		sql   string
		shown bool
	}{
		{llm.ExposeSchema, known, `SELECT count(*) FROM "orders" WHERE "status" = 'Late'`, false},
		{llm.ExposeSchema, known, `SELECT count(*) FROM "orders" WHERE "amount" > 90`, true},
		{llm.ExposeSchema, known, `SELECT count(*) FROM "orders" WHERE "ordered" >= DATE '2026-02-01'`, true},
		{llm.ExposeSchema, known, `SELECT count(*) FROM "orders" WHERE "ordered" >= '2026-02-01' AND "status" = 'Late'`, false},
		{llm.ExposeValues, known, `SELECT count(*) FROM "orders" WHERE "status" = 'Late'`, true},
		{llm.ExposeRows, known, `SELECT count(*) FROM "orders" WHERE "status" = 'Late'`, true},
		{llm.ExposeRows, other, `SELECT count(*) FROM "orders" WHERE "status" = 'Late'`, false},
	} {
		o := &opinion{
			dialogue:  &dialogue{around: surroundings{exposure: map[uuid.UUID]llm.Exposure{known: one.least}, others: llm.ExposeSchema, least: one.least}},
			candidate: planner.Candidate{SQL: one.sql}, read: query.Read{ID: one.of},
		}
		require.Equal(t, one.shown, o.mayBeShown(), one.sql)
	}
}
