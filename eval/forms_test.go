package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/api"
)

func formQuestions() []*question {
	return []*question{
		{ID: "a", Suite: "office", Category: "count", Text: "How many?", Answerable: true},
		{ID: "b", Suite: "office", Category: "top", Text: "Which is the best of each?", Answerable: true, MultiTable: true},
		{ID: "c", Suite: "office", Category: "none", Text: "What else?"},
	}
}

func TestReadForms(t *testing.T) {
	t.Parallel()

	read := func(content string) (map[string]*goldForm, error) {
		name := filepath.Join(t.TempDir(), "forms.ndjson")
		require.NoError(t, os.WriteFile(name, []byte(content), 0o600))

		return readForms(name, formQuestions())
	}

	const a, b = `{"id": "a", "form": {"dataset": "orders"}}`, `{"id": "b", "none": "top of each group: best product"}`

	forms, err := read(a + "\n" + b + "\n" + `{"id": "of another suite", "form": {}}`)
	require.NoError(t, err)
	require.JSONEq(t, `{"dataset": "orders"}`, string(forms["a"].reply().Form))
	require.Equal(t, "answer", forms["a"].reply().Outcome)
	require.Equal(t, &reply{Outcome: "refused"}, forms["b"].reply())
	require.Equal(t, &reply{Outcome: "refused"}, forms["c"].reply())

	for content, expected := range map[string]string{
		a:                 "has no line for b",
		a + b + a:         "two lines for a",
		a + `{"id"}`:      "line 2 of",
		a + `{"id": "b"}`: "b needs either a form",
		a + `{"id": "b", "form": {}, "none": "why"}`:        "b needs either a form",
		a + `{"id": "b", "form": "SELECT 1"}`:               "b needs either a form",
		a + `{"id": "b", "form": null}`:                     "b needs either a form",
		a + `{"id": "b", "query": "SELECT 1"}`:              "unknown field",
		a + b + `{"id": "c", "none": "it has no answer"}`:   "which has no answer",
		a + b + `{"id": "c", "form": {"dataset": "other"}}`: "which has no answer",
	} {
		_, err := read(content)
		require.ErrorContains(t, err, expected, content)
	}
}

// TestCountForms checks what counts as expressible, and that only an answer that comes from the form counts as right.
func TestCountForms(t *testing.T) {
	t.Parallel()

	questions := append(formQuestions(), &question{ID: "d", Suite: "office", Category: "count", Answerable: true}, &question{ID: "tied", Suite: "office", Category: "top", Answerable: true, TieSensitive: true})
	shown := json.RawMessage(`{"dataset": "orders"}`)
	s := &script{name: formsModel, questions: questions, forms: map[string]*goldForm{
		"a": {Form: shown}, "b": {None: "top of each group: best product"}, "d": {Form: shown}, "tied": {Form: shown},
	}}

	marks := []mark{
		{question: questions[0], Verdict: right, Basis: api.BasisForm},
		{question: questions[1], Verdict: refusedWrong},
		{question: questions[2], Verdict: refusedRight},
		{question: questions[3], Verdict: right, Basis: api.BasisForm},
		{question: questions[4], Verdict: wrong, Basis: api.BasisForm},
	}

	counted := s.countForms(marks)
	require.Equal(t, &formTally{3, 2, 2}, counted.Total)
	require.Equal(t, map[string]*formTally{
		"office": {3, 2, 2}, "office/count": {2, 2, 2}, "office/top": {1, 0, 0}, "one table": {2, 2, 2}, "several tables": {1, 0, 0},
	}, counted.Classes)
	require.Equal(t, map[string]int{"top of each group": 1}, counted.Families)
	require.NoError(t, s.check(marks, false))

	var printed strings.Builder

	require.NoError(t, counted.write(&printed))
	require.Equal(t, []string{"all", "3", "2", "66.7%", "100.0%"}, strings.Fields(strings.Split(printed.String(), "\n")[1]))
	require.Contains(t, printed.String(), "top of each group")

	for _, lost := range []mark{{Verdict: right, Basis: api.BasisSQL}, {Verdict: wrong, Basis: api.BasisForm}, {Verdict: refusedWrong}, {Verdict: failed, Failure: "why"}} {
		lost.question = questions[3]
		marks[3] = lost

		require.Equal(t, &formTally{3, 2, 1}, s.countForms(marks).Total)
		require.ErrorContains(t, s.check(marks, false), "\nd: "+string(lost.Verdict))
		require.EqualError(t, s.check(marks, true), "1 forms do not give a right answer")
	}

	var other *script

	require.Nil(t, other.countForms(marks))
	require.Nil(t, (&script{name: "gold", questions: questions}).countForms(marks))
	require.NoError(t, (*expressed)(nil).write(&printed))
}

// TestScriptedForms checks that the model gives a form as text, and that the scripted agent is not asked for one.
func TestScriptedForms(t *testing.T) {
	t.Parallel()

	s := &script{questions: formQuestions(), forms: map[string]*goldForm{"a": {Form: json.RawMessage(`{"dataset": "orders"}`)}, "b": {None: "why"}}}

	for text, expected := range map[string][2]string{"How many?": {"answer", `{"dataset": "orders"}`}, "Which is the best of each?": {"refused", ""}, "What else?": {"refused", ""}} {
		var about conversation

		content, err := json.Marshal("Question: " + text)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal([]byte(`{"messages": [{"role": "user", "content": `+string(content)+`}]}`), &about))

		answer, err := s.say(about)
		require.NoError(t, err)

		var said struct{ Outcome, Form, Query string }
		require.NoError(t, json.Unmarshal(answer, &said))
		require.Equal(t, expected, [2]string{said.Outcome, said.Form}, text)
		require.Empty(t, said.Query)
	}

	_, err := s.forms["a"].reply().asScript()
	require.ErrorContains(t, err, "no forms")
}

// TestBusinessForms checks that every answerable question of the suite has a form or a reason.
func TestBusinessForms(t *testing.T) {
	t.Parallel()

	questions, err := readQuestions("business", "dev", "business")
	require.NoError(t, err)

	_, err = readForms(options{dir: "business", split: "dev"}.formsFile(), questions)
	require.NoError(t, err)
}
