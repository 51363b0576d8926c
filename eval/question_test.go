package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestReadQuestions(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "dev"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "dev", "questions.ndjson"), []byte(`{"id": "1", "suite": "sum", "db": "a", "tables": ["x/t.csv", "x/u.csv"]}
{"id": "2", "suite": "sum-hard", "db": "a", "tables": ["x/t.csv"], "as_of": "2026-11-11"}
{"id": "3", "suite": "summary", "db": "a", "disputed": "why", "as_of": null}
`), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "dev", "train.ndjson"), []byte(`{"id": "4", "suite": "sum-train"}`), 0o600))

	for suite, expected := range map[string][]string{
		"all": {"1", "2", "3"}, "sum": {"1", "2"}, "sum-hard": {"2"}, "summary": {"3"}, "sum-train": {"4"},
	} {
		questions, err := readQuestions(dir, "dev", suite)
		require.NoError(t, err)

		var ids []string
		for _, q := range questions {
			ids = append(ids, q.ID)
		}

		require.Equal(t, expected, ids, suite)
	}

	_, err := readQuestions(dir, "dev", "other")
	require.ErrorContains(t, err, "no question of the suite other")

	questions, err := readQuestions(dir, "dev", "all")
	require.NoError(t, err)
	require.Equal(t, []table{{"x/t.csv", "sum-a", "t"}, {"x/u.csv", "sum-a", "u"}}, tablesOf(questions))
	require.True(t, questions[0].strict())
	require.False(t, questions[2].strict())

	today, err := questions[1].today()
	require.NoError(t, err)
	require.Equal(t, time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC), today)
}

func TestPercentile(t *testing.T) {
	t.Parallel()

	require.Zero(t, percentile(nil, 0.5))
	require.InDelta(t, 1, percentile([]float64{1}, 0.95), 0)
	require.InDelta(t, 2, percentile([]float64{1, 2, 3, 4}, 0.5), 0)
	require.InDelta(t, 4, percentile([]float64{1, 2, 3, 4}, 0.95), 0)
}
