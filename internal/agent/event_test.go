package agent

import (
	"encoding/json"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/doubt"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/query"
)

// TestEventBodies checks the bytes of the body of every event, because logs are stored and streams are compared byte by
// byte: the names and the order of the keys, and which keys are left out.
func TestEventBodies(t *testing.T) {
	t.Parallel()

	row := int64(0)

	for want, body := range map[string]any{
		`{}`: Empty{},
		`{"runId":"00000000-0000-0000-0000-000000000000","conversationId":"00000000-0000-0000-0000-000000000000"}`: RunStarted{uuid.Nil, uuid.Nil},
		`{"steps":["a"],"reasoning":""}`: Plan{Steps: []string{"a"}},
		`{"steps":["a","b"],"reasoning":"r","interpretation":"i","after":[[],[0]],"dropped":1,"model":"planner"}`: Plan{[]string{"a", "b"}, "r", "i", [][]int{{}, {0}}, 1, "planner"},
		`{"index":1,"instruction":"a \u003c b"}`:         StepStarted{Index: 1, Instruction: "a < b"},
		`{"index":0,"instruction":"","model":"planner"}`: StepStarted{Model: plannerName},
		`{"attempt":2,"index":1,"query":"SELECT 1"}`:     QueryExecuting{Attempt: 2, Index: 1, Query: "SELECT 1"},
		`{"attempt":1,"index":0,"query":"q","basis":"form","explained":[{"words":"w","as":"value","dataset":"d","column":"c","how":"guessed"},{"words":"v","as":"sum"}]}`: QueryExecuting{
			Attempt: 1, Query: "q", Basis: BasisForm, Explained: []Explained{{Words: "w", As: "value", Dataset: "d", Column: "c", How: "guessed"}, {Words: "v", As: "sum"}},
		},
		`{"index":0,"instruction":"","query":"","reasoning":"","columns":null,"data":null,"rowCount":0,"truncated":false,"basis":"sql"}`: Step{Basis: BasisSQL},
		`{"index":0,"instruction":"i","query":"q","reasoning":"","columns":[{"name":"n","type":"bigint"}],"data":[{"n":1}],"rowCount":1,"truncated":false}`: Step{
			Instruction: "i", Query: "q", Columns: []query.Column{{Name: "n", Type: "bigint"}}, Data: []json.RawMessage{json.RawMessage(`{"n":1}`)}, RowCount: 1,
		},
		`{"index":0,"instruction":"","query":"","reasoning":"","columns":null,"data":null,"rowCount":0,"truncated":false,"doubts":[{"kind":"value","text":"t","words":"w"},{"kind":"role","text":"t"}]}`: Step{
			Doubts: []Doubt{{Kind: doubt.Value, Text: "t", Words: "w", Indexed: true}, {Kind: doubt.Role, Text: "t"}},
		},
		`{"response":"r","outcome":"no_data","doubts":[{"kind":"opinion","text":"t"}]}`: Conclusion{Response: "r", Outcome: NoData, Doubts: []Doubt{{Kind: doubt.Opinion, Text: "t"}}},
		`{"response":"r","outcome":"answer"}`:                                           Conclusion{Response: "r", Outcome: Answer},
		`{"response":"r","outcome":"clarification","clarification":{"question":"w","options":[{"number":1,"interpretation":"a"},{"number":2,"interpretation":"b","query":"SELECT 2","form":{"kind":"rows"}}]},"checks":{"claims":2,"verified":1,"unverified":["9"]},"citations":[{"claim":"1","step":0,"row":0,"column":"n","calculation":"sum"},{"claim":"2","step":1}]}`: Conclusion{
			"r", Clarification, &Choice{"w", []Option{{Number: 1, Interpretation: "a"}, {Number: 2, Interpretation: "b", Query: "SELECT 2", Form: json.RawMessage(`{"kind":"rows"}`)}}}, &Checks{Claims: 2, Verified: 1, Unverified: []string{"9"}}, []Citation{{"1", 0, &row, "n", "sum"}, {Claim: "2", Step: 1}}, nil,
		},
		`{"response":"9 (?)","outcome":"answer_unverified","checks":{"claims":1,"verified":0,"unverified":["9"],"places":[{"claim":"9","start":0,"end":1,"verified":false}]}}`: Conclusion{
			Response: "9 (?)", Outcome: AnswerUnverified, Checks: &Checks{1, 0, []string{"9"}, []Place{{"9", 0, 1, false}}},
		},
		`{"number":2,"interpretation":"b"}`:                          OptionChosen{2, "b"},
		`{"result":{"response":"r","steps":[],"outcome":"refused"}}`: RunCompleted{&Result{Response: "r", Steps: []Step{}, Outcome: Refused}},
		`{"code":"TIMEOUT","message":"m"}`:                           RunFailed{fault.Timeout, "m"},
	} {
		content, err := json.Marshal(body)
		require.NoError(t, err)
		require.Equal(t, want, string(content), "%T", body)
	}
}
