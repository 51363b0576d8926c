package agent

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/grounding"
)

// TestMarked checks that signs and places are at the right characters, also after letters of several bytes and where a link was
// removed from the text.
func TestMarked(t *testing.T) {
	t.Parallel()

	steps := []grounding.Step{{Columns: []string{"city", "orders"}, RowCount: 2, Complete: true, Rows: rawRows(`{"city":"Zürich","orders":18}`, `{"city":"Genf","orders":7}`)}}

	for answer, want := range map[string]string{
		"Zürich has 18 orders.":                         "Zürich has 18 orders.",
		"Zürich has 19 orders, Genf 7.":                 "Zürich has 19 (?) orders, Genf 7.\n\n(?) The rows do not confirm this.",
		"Genf has the highest orders: **9**.":           "Genf has the highest (?) orders: **9 (?)**.\n\n(?) The rows do not confirm this.",
		"Zürich hat neunzehn orders (mehr als Genf).":   "Zürich hat neunzehn (?) orders (mehr als Genf).\n\n(?) The rows do not confirm this.",
		"| city | orders |\n|---|---|\n| Zürich | 19 |": "| city | orders |\n|---|---|\n| Zürich | 19 (?) |\n\n(?) The rows do not confirm this.",
	} {
		var result Result

		result.Outcome = Answer
		result.setAnswer(grounding.Check(prose(answer), "", steps))
		require.Equal(t, want, result.Response)

		runes, unverified := []rune(result.Response), 0

		for _, p := range result.Checks.Places {
			require.Equal(t, p.Claim, string(runes[p.Start:p.End]))

			if sign := string(runes[p.End:min(len(runes), p.End+len(doubtSign))]); !p.Verified {
				require.Equal(t, doubtSign, sign)
				unverified++
			} else {
				require.NotEqual(t, doubtSign, sign)
			}
		}

		require.Len(t, result.Checks.Places, result.Checks.Claims)
		require.Len(t, result.Checks.Unverified, unverified)
		require.Equal(t, unverified > 0, result.Outcome == AnswerUnverified)
	}

	// A claim that was part of a link is gone; the others are found where they are now.
	text, places := marked("here 19", grounding.Report{Text: "[here](5) 19", Claims: []grounding.Claim{{Text: "5", At: 7}, {Text: "19", At: 10}}})
	require.Equal(t, "here 19 (?)", text)
	require.Equal(t, []Place{{Claim: "19", Start: 5, End: 7}}, places)
}

func rawRows(rows ...string) (list []json.RawMessage) {
	for _, row := range rows {
		list = append(list, json.RawMessage(row))
	}

	return list
}
