package grounding_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/eval/sample"
	"quern.dev/quern/internal/grounding"
)

// Seeds from used on were used while the check was developed. Seeds from fresh on were not, so their figures are the
// relevant ones.
const (
	used  = 1
	fresh = 2_000_000
)

// TestGrounding measures the check with answers that are known to be true or wrong, about the tables of the repository.
func TestGrounding(t *testing.T) {
	t.Parallel()

	tables := repositoryTables(t)

	samples := uint64(9)
	if full() {
		samples = 90
	}

	for _, seeds := range []struct {
		name     string
		from, to uint64
	}{{"used seeds", used, used + 5}, {"fresh seeds", fresh, fresh + samples}} {
		var shown int

		figures := sample.Measure(tables, seeds.from, seeds.to, func(s sample.Sample) []sample.Verdict {
			return check(t, s)
		}, func(class sample.Class, s sample.Sample, c sample.Claim) {
			if shown++; shown <= 20 {
				t.Logf("%s, %q is wrong: %v\n%s", class, s.Plain[c.From:c.To], c.Wrong, s.Answer)
			}
		})

		var printed strings.Builder
		require.NoError(t, figures.Print(&printed))

		found, of := figures.Found()
		claims, answers := figures.FalseAlarms()
		t.Logf("%s\n%sfound %.1f%% of %d, false alarms: %.1f%% of claims, %.1f%% of answers", seeds.name, printed.String(), 100*found, of, 100*claims, 100*answers)

		require.GreaterOrEqual(t, of, 100)
		require.GreaterOrEqual(t, found, 0.97)
		require.LessOrEqual(t, claims, 0.03)
		require.LessOrEqual(t, answers, 0.03)
	}
}

// full reports whether loops run at full length, as in `make torture`.
func full() bool { return os.Getenv("QUERN_TEST_LOOPS") == "full" }

func check(t *testing.T, s sample.Sample) []sample.Verdict {
	t.Helper()

	var steps []grounding.Step
	for i, step := range s.Steps {
		steps = append(steps, grounding.Step{Index: i, Columns: step.Columns, Rows: step.Rows, RowCount: step.RowCount, Complete: step.Complete})
	}

	report := grounding.Check(s.Answer, s.Question, steps)
	require.Equal(t, s.Plain, report.Text)

	var verdicts []sample.Verdict
	for _, claim := range report.Claims {
		verdicts = append(verdicts, sample.Verdict{From: claim.At, To: claim.At + len(claim.Text), Verified: claim.Verified})
	}

	return verdicts
}

func repositoryTables(t *testing.T) []sample.Table {
	t.Helper()

	var files []string

	for _, pattern := range []string{"../../eval/sample/testdata/*.csv", "../../eval/testdata/dev/*/*.csv"} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, found)

		files = append(files, found...)
	}

	tables, err := sample.Read(files...)
	require.NoError(t, err)

	return tables
}
