package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// evaluation is the program that measures a service with a question set.
type evaluation struct {
	t                   *testing.T
	program, set, out   string
	url, token, replies string
}

// evaluated is the output of an evaluation and the files that it wrote.
type evaluated struct {
	printed, told string // standard output and standard error
	failed        bool
	report, page  string
}

// mini is the question set of the repository. Its expected verdicts were decided by hand.
const mini = "../eval/testdata"

func newEvaluation(t *testing.T) *evaluation {
	t.Helper()

	s := start(t, scripted)
	_, token := newToken(t, s, s.newKey().token("asker"), "owner")
	dir := t.TempDir()
	e := &evaluation{t: t, program: filepath.Join(dir, "eval"), set: mini, out: filepath.Join(dir, "out"), url: s.root, token: token, replies: filepath.Join(mini, "replies.ndjson")}

	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", e.program, "../eval").CombinedOutput()
	require.NoError(t, err, "%s", out)

	return e
}

func (e *evaluation) run(split, model string, more ...string) evaluated {
	e.t.Helper()

	command := exec.CommandContext(e.t.Context(), e.program,
		append([]string{"-dir", e.set, "-split", split, "-model", model, "-replies", e.replies, "-scripted", "-out", e.out}, more...)...)
	command.Env = append(os.Environ(), "QUERN_URL="+e.url, "QUERN_TOKEN="+e.token)

	var printed, told bytes.Buffer

	command.Stdout, command.Stderr = &printed, &told
	err := command.Run()

	name := filepath.Join(e.out, "eval-all-"+split+"-"+model)
	report, failed := os.ReadFile(name + ".json")
	require.NoError(e.t, failed, "%s", told.String())
	page, failed := os.ReadFile(name + ".html")
	require.NoError(e.t, failed)

	return evaluated{printed.String(), told.String(), err != nil, string(report), string(page)}
}

func (e evaluated) last() string {
	lines := strings.Split(strings.TrimSpace(e.printed), "\n")

	return lines[len(lines)-1]
}

type evaluatedQuestion struct {
	ID, Verdict, Question, Query, Failure string
	Strict                                bool
	Repairs                               int
	Rows                                  *struct{ Rows [][]any }
	Expected                              []struct{ Rows [][]any }
}

func (e evaluated) questions(t *testing.T) (total map[string]any, questions []evaluatedQuestion) {
	t.Helper()

	var report struct {
		Total     map[string]any
		Questions []evaluatedQuestion
	}

	require.NoError(t, json.Unmarshal([]byte(e.report), &report))

	for _, measured := range []string{"p50Seconds", "p95Seconds"} {
		require.Positive(t, report.Total[measured])
		delete(report.Total, measured)
	}

	return report.Total, report.Questions
}

// known returns the lines of a file of the set.
func known(t *testing.T, path string) (list []map[string]any) {
	t.Helper()

	file, err := os.Open(path)
	require.NoError(t, err)

	defer func() { _ = file.Close() }()

	for lines := bufio.NewScanner(file); lines.Scan(); {
		line := map[string]any{}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &line))

		list = append(list, line)
	}

	return list
}

// TestHarness compares the report on answers of every kind with verdicts that were decided by hand.
func TestHarness(t *testing.T) {
	t.Parallel()

	e := newEvaluation(t)
	replies := known(t, e.replies)

	got := e.run("dev", "replies")
	require.False(t, got.failed, got.told)
	require.Equal(t, "eval all dev replies n=26 answered=21 precision=76.2% accuracy=69.6% refused-right=2/3", got.last())

	total, questions := got.questions(t)
	require.Equal(t, map[string]any{
		"n": 26.0, "answerable": 23.0, "answered": 21.0, "covered": 20.0, "right": 16.0, "refusedRight": 2.0, "refusedWrong": 1.0, "asked": 1.0, "failed": 1.0,
		"repaired": 1.0, "repairs": 1.0, "inputTokens": 0.0, "outputTokens": 0.0,
	}, total)
	require.Len(t, questions, len(replies))

	for i, q := range questions {
		require.Equal(t, replies[i]["id"], q.ID)
		require.Equal(t, replies[i]["verdict"], q.Verdict, q.Question)

		shown := strings.HasPrefix(q.Verdict, "wrong") || q.Verdict == "failed" || q.Verdict == "asked" || q.Verdict == "refused-wrong"
		require.Equal(t, shown, strings.Contains(got.page, q.ID), "%s on the page", q.ID)
	}

	vienna := questions[1]
	require.Equal(t, "SELECT count(*) AS n FROM customers", vienna.Query)
	require.Equal(t, [][]any{{4.0}}, vienna.Rows.Rows)
	require.Equal(t, [][]any{{2.0}}, vienna.Expected[0].Rows)

	for _, text := range []string{vienna.Question, vienna.Query, "<td>4", "<td>2", "There is no dataset"} {
		require.Contains(t, got.page, text)
	}

	gold := e.run("dev", "gold", "-compare", filepath.Join(e.out, "eval-all-dev-replies.json"))
	require.False(t, gold.failed, gold.told)
	require.Equal(t, "eval all dev gold n=26 answered=23 precision=100.0% accuracy=100.0% refused-right=3/3", gold.last())
	require.Regexp(t, `all +accuracy 69.6% -> 100.0% +precision 76.2% -> 100.0% +refused-right 2/3 -> 3/3`, gold.printed)
	require.Regexp(t, `mini-02 +wrong -> right +How many customers live in Vienna`, gold.printed)
	require.NotContains(t, gold.printed, "mini-01")

	again := e.run("dev", "gold", "-compare", filepath.Join(e.out, "eval-all-dev-gold.json"))
	require.Contains(t, again.printed, "nothing changed")
}

// TestHarnessCanFail plants errors in the answers and in the set, and checks that exactly those are reported.
func TestHarnessCanFail(t *testing.T) {
	t.Parallel()

	e := newEvaluation(t)

	planted := e.run("dev", "planted")
	require.False(t, planted.failed, planted.told)
	require.Equal(t, "eval all dev planted n=26 answered=23 precision=87.0% accuracy=87.0% refused-right=3/3", planted.last())

	var wrong []string

	_, questions := planted.questions(t)
	for _, q := range questions {
		if q.Verdict != "right" && q.Verdict != "refused-right" {
			wrong = append(wrong, q.ID)
		}
	}

	require.Equal(t, []string{"mini-01", "mini-12", "mini-22"}, wrong)

	// A set with a wrong gold statement is reported, and the program ends with an error.
	e.set = t.TempDir()
	require.NoError(t, os.CopyFS(e.set, os.DirFS(mini)))

	file := filepath.Join(e.set, "dev", "questions.ndjson")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, bytes.Replace(text, []byte("city = 'Vienna'"), []byte("city = 'Graz'"), 1), 0o600))

	lost := e.run("dev", "gold")
	require.True(t, lost.failed)
	require.Contains(t, lost.told, "mini-02: wrong")
	require.NotContains(t, lost.told, "mini-03")
	require.Equal(t, "eval all dev gold n=26 answered=23 precision=95.7% accuracy=95.7% refused-right=3/3", lost.last())
}

// TestHarnessHeldOut checks that only totals of a held-out split are printed or stored.
func TestHarnessHeldOut(t *testing.T) {
	t.Parallel()

	e := newEvaluation(t)
	e.set = t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(e.set, "held-out"), os.DirFS(filepath.Join(mini, "dev"))))

	got := e.run("held-out", "replies")
	require.False(t, got.failed, got.told)
	require.Equal(t, "eval all held-out replies n=26 answered=21 precision=76.2% accuracy=69.6% refused-right=2/3", got.last())

	total, questions := got.questions(t)
	require.EqualValues(t, 26, total["n"])
	require.Empty(t, questions)

	secrets := []string{"customers", "SELECT", "Vienna"}
	for _, q := range known(t, filepath.Join(mini, "dev", "questions.ndjson")) {
		secrets = append(secrets, fmt.Sprintf("%v\"", q["id"]), fmt.Sprintf("%v ", q["id"]), fmt.Sprint(q["question"]))
	}

	for _, said := range []string{got.printed, got.told, got.report, got.page} {
		for _, secret := range secrets {
			require.NotContains(t, said, secret)
		}
	}

	// This also holds when a table cannot be loaded.
	require.NoError(t, os.WriteFile(filepath.Join(e.set, "held-out", "shop", "customers.csv"), nil, 0o600))

	broken := e.run("held-out", "replies")
	require.True(t, broken.failed)
	require.Contains(t, broken.told, "table 1")
	require.NotContains(t, broken.told, "customers")
}
