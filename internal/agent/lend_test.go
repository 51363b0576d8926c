package agent //nolint:testpackage // tests what has no exported form

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/llm"
	"quern.dev/quern/internal/query"
)

// TestLentRows checks which rows of the turn before a model gets, and how many.
func TestLentRows(t *testing.T) {
	t.Parallel()

	id, other := uuid.Must(uuid.NewV7()), uuid.Must(uuid.NewV7())
	step := func(rows int, size int) *Step {
		made := &Step{RowCount: int64(rows)}
		for i := range rows {
			made.Data = append(made.Data, json.RawMessage(fmt.Sprintf(`{"n":%d,"t":%q}`, i, strings.Repeat("x", size))))
		}

		return made
	}
	given := func(exposure llm.Exposure, turns ...Turn) string {
		around := surroundings{exposure: map[uuid.UUID]llm.Exposure{id: exposure}, datasets: []query.About{{Item: catalog.Item{Dataset: catalog.Dataset{ID: id, SnapshotID: id}}}}}
		text, reads := (&inquiry{question: Question{Earlier: turns}}).rowsBefore(around)
		require.Equal(t, text != "", len(reads) > 0)

		return text
	}
	read := map[uuid.UUID]uuid.UUID{id: id}

	require.Contains(t, given(llm.ExposeRows, Turn{Read: read, Last: step(2, 1)}), `found 2 rows`)
	require.Equal(t, lentRows, strings.Count(given(llm.ExposeRows, Turn{Read: read, Last: step(100, 1)}), `"n"`))
	require.Less(t, len(given(llm.ExposeRows, Turn{Read: read, Last: step(100, 700)})), maxLentRows+200)

	require.Empty(t, given(llm.ExposeRows, Turn{Read: read, Last: step(1, maxLentRows)}), "a row that is too large")
	require.Empty(t, given(llm.ExposeValues, Turn{Read: read, Last: step(2, 1)}), "the model may not see rows")
	require.Empty(t, given(llm.ExposeRows, Turn{Read: map[uuid.UUID]uuid.UUID{id: id, other: other}, Last: step(2, 1)}), "another dataset")
	require.Empty(t, given(llm.ExposeRows, Turn{Read: read, Last: step(0, 1)}))
	require.Empty(t, given(llm.ExposeRows, Turn{Read: read, Last: step(2, 1)}, Turn{Read: read}), "only the turn before")
	require.Empty(t, given(llm.ExposeRows))
}
