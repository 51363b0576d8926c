package planner_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/planner"
)

var update = flag.Bool("update", false, "write the golden files")

// TestQuestions compares the plans of the questions in testdata/questions.txt with testdata/questions.golden.
func TestQuestions(t *testing.T) {
	t.Parallel()

	var (
		golden strings.Builder
		in     *testWorld
	)

	questions, err := os.ReadFile("testdata/questions.txt")
	require.NoError(t, err)

	for line := range strings.Lines(string(questions)) {
		line = strings.TrimSpace(line)

		switch name, isWorld := strings.CutPrefix(line, "## "); {
		case isWorld:
			in = loadWorld(t, "testdata/"+name, june())
		case line != "" && line[0] != '#':
			plan := in.ask(line)
			require.Equal(t, plan, in.ask(line), "the same again")
			golden.WriteString(describe(line, plan))
		}
	}

	const file = "testdata/questions.golden"

	if *update {
		require.NoError(t, os.WriteFile(file, []byte(golden.String()), 0o600))
	}

	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), golden.String())
}

// describe writes a plan as the golden file has it.
func describe(question string, plan planner.Plan) string {
	var text strings.Builder

	outcomes := map[planner.Outcome]string{planner.Refuse: "refuse", planner.Answer: "answer", planner.AskBack: "ask back", planner.DidYouMean: "did you mean"}

	fmt.Fprintf(&text, "# %s\n%s", question, outcomes[plan.Outcome])

	if plan.Language != "" {
		text.WriteString(", language: " + plan.Language)
	}

	if len(plan.Unused) > 0 {
		text.WriteString(", unused: " + strings.Join(plan.Unused, ", "))
	}

	if plan.Reason != "" {
		text.WriteString(", reason: " + plan.Reason)
	}

	text.WriteString("\n")

	for _, c := range plan.Candidates {
		text.WriteString(c.SQL + "\n" + c.Interpretation + "\n")

		for _, note := range c.Notes {
			text.WriteString("Note: " + note + "\n")
		}

		for i, e := range c.Explained {
			if i > 0 {
				text.WriteString("; ")
			}

			text.WriteString(e.Words + " = " + strings.TrimSpace(e.As+" "+strings.Trim(e.Dataset+"."+e.Column, ".")))

			if e.How != "" {
				text.WriteString(", " + e.How)
			}
		}

		text.WriteString("\n")
	}

	return text.String() + "\n"
}
