package agent

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/llm"
	"quern.dev/quern/internal/planner"
	"quern.dev/quern/internal/query"
)

// TestMayHear: a reading that rests on values is for models that may see values of that dataset.
func TestMayHear(t *testing.T) {
	t.Parallel()

	told, other := uuid.New(), uuid.New()

	for _, one := range []struct {
		least llm.Exposure
		of    uuid.UUID
		sql   string
		hears bool
	}{
		{llm.ExposeSchema, told, `SELECT count(*) FROM "orders" WHERE "status" = 'Late'`, false},
		{llm.ExposeSchema, told, `SELECT count(*) FROM "orders" WHERE "amount" > 90`, true},
		{llm.ExposeSchema, told, `SELECT count(*) FROM "orders" WHERE "ordered" >= DATE '2026-02-01'`, true},
		{llm.ExposeSchema, told, `SELECT count(*) FROM "orders" WHERE "ordered" >= '2026-02-01' AND "status" = 'Late'`, false},
		{llm.ExposeValues, told, `SELECT count(*) FROM "orders" WHERE "status" = 'Late'`, true},
		{llm.ExposeRows, told, `SELECT count(*) FROM "orders" WHERE "status" = 'Late'`, true},
		{llm.ExposeRows, other, `SELECT count(*) FROM "orders" WHERE "status" = 'Late'`, false},
	} {
		w := &writing{
			asking: &asking{around: surroundings{exposure: map[uuid.UUID]llm.Exposure{told: one.least}, others: llm.ExposeSchema, least: one.least}},
			second: &opinion{Candidate: planner.Candidate{SQL: one.sql}, read: query.Read{ID: one.of}},
		}
		require.Equal(t, one.hears, w.mayHear(), one.sql)
	}
}
