package meaning_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/meaning"
)

func TestOver(t *testing.T) {
	t.Parallel()

	draft := meaning.Meaning{
		Row:     "order",
		Columns: map[string]meaning.Column{"price": {Role: meaning.Amount}, "region": {Role: meaning.Category}},
		Joins: []meaning.Join{
			{Columns: []string{"product"}, To: "products", Keys: []string{"id"}},
			{Columns: []string{"product"}, To: "old_products", Keys: []string{"id"}},
			{Columns: []string{"region"}, To: "regions", Keys: []string{"name"}},
			{Columns: []string{"region"}, To: "areas", Keys: []string{"name"}},
		},
		Measures: []meaning.Measure{{Name: "revenue", Function: "sum", Expression: "price"}, {Name: "margin", Function: "sum", Expression: "price"}, {Name: "n", Function: "count"}},
	}

	require.Equal(t, draft, meaning.Saved{}.Over(draft), "nothing said is the draft")

	said := meaning.Saved{
		Meaning: meaning.Meaning{
			Row:      "order line",
			Columns:  map[string]meaning.Column{"price": {Role: meaning.Price, Unit: "EUR"}},
			Joins:    []meaning.Join{{Columns: []string{"Product"}, To: "goods", Keys: []string{"id"}}},
			Measures: []meaning.Measure{{Name: "Revenue", Function: "sum", Expression: "quantity * price"}},
		},
		RejectedJoins:    []meaning.Join{{Columns: []string{"region"}, To: "Regions", Keys: []string{"name"}}},
		RejectedMeasures: []meaning.Measure{{Name: "MARGIN"}},
	}

	require.Equal(t, meaning.Meaning{
		Row:     "order line",
		Columns: map[string]meaning.Column{"price": {Role: meaning.Price, Unit: "EUR", Confirmed: true}, "region": {Role: meaning.Category}},
		Joins: []meaning.Join{
			{Columns: []string{"Product"}, To: "goods", Keys: []string{"id"}, Confirmed: true},
			{Columns: []string{"region"}, To: "areas", Keys: []string{"name"}},
		},
		Measures: []meaning.Measure{{Name: "Revenue", Function: "sum", Expression: "quantity * price", Confirmed: true}, {Name: "n", Function: "count"}},
	}, said.Over(draft))

	require.Equal(t, meaning.Amount, draft.Columns["price"].Role, "the draft stays")
}
