package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAt(t *testing.T) {
	t.Parallel()

	today := time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)

	for statement, expected := range map[string]string{
		"SELECT current_date - INTERVAL '3 months'":              "SELECT DATE '2026-11-11' - INTERVAL '3 months'",
		"WHERE at > NOW() AND at < CURRENT_TIMESTAMP":            "WHERE at > TIMESTAMP '2026-11-11 12:00:00' AND at < TIMESTAMP '2026-11-11 12:00:00'",
		`SELECT 'it''s CURRENT_DATE', "CURRENT_DATE" FROM now`:   `SELECT 'it''s CURRENT_DATE', "CURRENT_DATE" FROM now`,
		"SELECT current_dates, my_current_date, now_at FROM t":   "SELECT current_dates, my_current_date, now_at FROM t",
		"EXTRACT(YEAR FROM CURRENT_DATE)::int, 'x', now()::date": "EXTRACT(YEAR FROM DATE '2026-11-11')::int, 'x', TIMESTAMP '2026-11-11 12:00:00'::date",
	} {
		require.Equal(t, expected, at(statement, today))
		require.Equal(t, statement, at(statement, time.Time{}))
	}
}

func TestWithoutSchemas(t *testing.T) {
	t.Parallel()

	q := &question{Suite: "a", Tables: []string{"shop/orders.csv", "shop/sales.people.csv"}}

	for statement, expected := range map[string]string{
		"SELECT o.id FROM public.orders o JOIN public.Orders p ON o.id = p.id": "SELECT o.id FROM orders o JOIN Orders p ON o.id = p.id",
		"SELECT id FROM orders WHERE o.orders > 1":                             "SELECT id FROM orders WHERE o.orders > 1",
		"SELECT id FROM public.orders_old":                                     "SELECT id FROM public.orders_old",
		"SELECT name FROM sales.people":                                        `SELECT name FROM "sales.people"`,
	} {
		require.Equal(t, expected, q.withoutSchemas(statement))
	}
}

func TestValuesQuery(t *testing.T) {
	t.Parallel()

	set := resultSet{[]string{"a", "a"}, [][]any{{"it's", json.Number("1.5")}, {nil, true}, {map[string]any{"interval_seconds": json.Number("60")}, "x"}}}
	require.Equal(t, "SELECT value1, value2 FROM (VALUES ('it''s', 1.5), (NULL, true), (to_seconds(60), 'x')) AS answer(value1, value2)", valuesQuery(set))
}

// TestSpoilt checks that every planted answer is judged wrong.
func TestSpoilt(t *testing.T) {
	t.Parallel()

	questions, err := readQuestions("testdata", "dev", "all")
	require.NoError(t, err)

	for _, q := range questions {
		if q.Answerable {
			require.False(t, matchesAny(spoilt(q), q.accepted(), q.Ordered), q.ID)
			require.True(t, matchesAny(q.Answers[0], q.accepted(), q.Ordered), q.ID)
		}
	}
}

func TestScriptedModel(t *testing.T) {
	t.Parallel()

	s := &script{questions: []*question{
		{ID: "short", Text: "How many?", Answerable: true, GoldSQL: []string{"SELECT 1", "SELECT 2"}},
		{ID: "long", Text: "How many? And where?", Answerable: false},
		{ID: "here", Suite: "a", Text: "Who?", Answerable: true, Tables: []string{"a/here.csv"}, GoldSQL: []string{"SELECT 'here'"}},
		{ID: "there", Text: "Who?", Answerable: true, Tables: []string{"a/there.csv"}, GoldSQL: []string{"SELECT 'there'"}},
	}}

	say := func(messages string) (outcome, query string) {
		t.Helper()

		answer := httptest.NewRecorder()
		s.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/v1/chat/completions", bytes.NewBufferString(`{"model": "gold", "messages": `+messages+`}`)))
		require.Equal(t, http.StatusOK, answer.Code)

		var said struct {
			Choices []struct {
				Message struct{ Content string }
			}
		}

		require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &said))

		var content struct{ Outcome, Query string }
		require.NoError(t, json.Unmarshal([]byte(said.Choices[0].Message.Content), &content))

		return content.Outcome, content.Query
	}

	for _, c := range []struct{ messages, outcome, query string }{
		{`[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Question: How many?"}]`, "answer", "SELECT 1"},
		{`[{"role": "user", "content": "How many?"}, {"role": "assistant", "content": "{}"}, {"role": "user", "content": "It was refused."}]`, "answer", "SELECT 2"},
		{`[{"role": "user", "content": [{"type": "text", "text": "How many? And where?"}]}]`, "refused", ""},
		{`[{"role": "user", "content": "How many? And where?"}, {"role": "assistant", "content": "{}"}, {"role": "user", "content": "How many?"}]`, "answer", "SELECT 2"},
		{`[{"role": "user", "content": "The table there: a, b"}, {"role": "user", "content": "Who?"}]`, "answer", "SELECT 'there'"},
		{`[{"role": "user", "content": "What else?"}]`, "refused", ""},
	} {
		outcome, query := say(c.messages)
		require.Equal(t, c.outcome, outcome, c.messages)
		require.Equal(t, c.query, query, c.messages)
	}
}
