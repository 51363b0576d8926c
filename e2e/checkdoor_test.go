package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/eval/sample"
	"quern.dev/quern/internal/grounding"
)

type checkedText struct {
	Text   string
	Claims []checkedClaim
	Steps  []struct {
		RunID    string
		RowCount int64
		Complete bool
	}
	Verified, Unverified int
}

type checkedClaim struct {
	Claim      string
	Start, End int
	Verified   bool
	Reason     string
	Sources    []struct {
		Step   int
		Row    *int64
		Column string
	}
}

func (d *filled) checkText(text, more string) *answer {
	d.t.Helper()

	return call(d.t, http.MethodPost, d.s.url+"/query/check", d.bearer, `{"text": `+encode(d.t, text)+`, `+more+`}`)
}

// TestCheckDoor checks texts of others against rows: with the rights of the caller, within limits, and with the same result as
// the check of the assistant's answers.
func TestCheckDoor(t *testing.T) { //nolint:tparallel // the parts use the same dataset, and one of them shares it
	t.Parallel()

	s := start(t, scripted)
	key := s.newKey()
	d := newFilled(t, s, "ada", key.token("ada"))
	require.Equal(t, http.StatusOK, d.post(`{"data": [{"region": "north", "year": 2025, "revenue": 120.5}, {"region": "north", "year": 2026, "revenue": 200}, {"region": "south", "year": 2025, "revenue": 180}]}`).status)
	stranger := d.by(key.token("eve"))
	byRegion := fmt.Sprintf(`{"username": "ada", "namespace": %q, "query": "SELECT region, sum(revenue) AS revenue FROM orders GROUP BY ALL ORDER BY ALL"}`, d.namespace)

	t.Run("claims", func(t *testing.T) { checksClaims(t, d, byRegion) })
	t.Run("rights", func(t *testing.T) { checksRights(t, d, stranger, byRegion) })
	t.Run("hostile", func(t *testing.T) { checksHostile(t, d, byRegion) })
	t.Run("samples", func(t *testing.T) { checksSamples(t, d) })
	t.Run("command line", func(t *testing.T) { checksByCommand(t, d) })
}

func checksClaims(t *testing.T, d *filled, byRegion string) {
	t.Helper()

	var found checkedText

	answer := d.checkText("Ü: north made 320.5, south 181. south has the highest revenue.", `"statements": [`+byRegion+`]`)
	require.Equal(t, http.StatusOK, answer.status, answer.body)
	answer.json(t, &found)
	require.Equal(t, 1, found.Verified)
	require.Equal(t, 2, found.Unverified)
	require.True(t, found.Steps[0].Complete)

	runes := []rune(found.Text)
	for i, want := range []string{"320.5", "181", "highest"} {
		require.Equal(t, want, found.Claims[i].Claim)
		require.Equal(t, want, string(runes[found.Claims[i].Start:found.Claims[i].End]))
		require.Equal(t, found.Claims[i].Verified, found.Claims[i].Reason == "")
	}

	require.Equal(t, "revenue", found.Claims[0].Sources[0].Column)
	require.Equal(t, int64(0), *found.Claims[0].Sources[0].Row)

	// The steps of a run come first; markers name them.
	run := d.asks(allRevenue, "")

	answer = d.checkText("All revenue is 500.5 [[0:0:revenue]], north 320.5 [[1:0:revenue]].", `"runs": ["`+run.RunID+`"], "statements": [`+byRegion+`]`)
	require.Equal(t, http.StatusOK, answer.status, answer.body)
	answer.json(t, &found)
	require.Equal(t, "All revenue is 500.5, north 320.5.", found.Text)
	require.Equal(t, 2, found.Verified, answer.body)
	require.Equal(t, run.RunID, found.Steps[0].RunID)
	require.Empty(t, found.Steps[1].RunID)
}

func checksRights(t *testing.T, d, stranger *filled, byRegion string) {
	t.Helper()

	run := d.asks(allRevenue, "")

	absent := stranger.checkText("5", `"runs": ["`+uuid.NewString()+`"]`)
	require.Equal(t, http.StatusNotFound, absent.status, absent.body)

	unseen := stranger.checkText("5", `"runs": ["`+run.RunID+`"]`)
	require.Equal(t, http.StatusNotFound, unseen.status, unseen.body)
	require.Equal(t, withoutIDs(absent.body), withoutIDs(unseen.body), "the same answer as for a run that does not exist")

	statement := stranger.checkText("5", `"statements": [`+byRegion+`]`)
	require.Equal(t, http.StatusNotFound, statement.status, statement.body)

	// A statement can only read.
	changing := d.checkText("5", `"statements": [{"query": "DROP TABLE orders"}]`)
	require.Equal(t, http.StatusUnprocessableEntity, changing.status, changing.body)
	require.Contains(t, changing.body, "QUERY_INVALID")

	// A run whose rows are withheld.
	share(t, d.s, d.bearer, "datasets/self/"+d.namespace+"/"+d.name, "eve", "viewer")

	own := stranger.asks(allRevenue, "")
	require.Equal(t, http.StatusOK, stranger.checkText("500.5", `"runs": ["`+own.RunID+`"]`).status)
	unshare(t, d.s, d.bearer, "datasets/self/"+d.namespace+"/"+d.name, "eve")
	require.Equal(t, http.StatusNotFound, stranger.checkText("500.5", `"runs": ["`+own.RunID+`"]`).status)
}

func checksHostile(t *testing.T, d *filled, byRegion string) {
	t.Helper()

	based := `"statements": [` + byRegion + `]`

	for name, text := range map[string]string{
		"a megabyte":             strings.Repeat("north made 320.5 ", 1<<20/17),
		"ten thousand figures":   strings.Repeat("7 8, ", 5_001),
		"nothing":                "",
		"markers and brackets":   strings.Repeat("[[= sum(0:*:revenue) / (", loops(4_000)),
		"figures that are named": strings.Repeat("north has 1 revenue, ", loops(4_700)),
		"quotes":                 strings.Repeat("\"", loops(99_000)),
		"relations":              strings.Repeat("north has the highest revenue than south, ", loops(2_300)),
		"one long word":          strings.Repeat("dreiundzwanzig", loops(7_000)),
		"a table":                strings.Repeat("| north | 1 |\n", loops(7_000)),
	} {
		began := time.Now()
		answer := d.checkText(text, based)
		require.Contains(t, []int{http.StatusOK, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge}, answer.status, "%s: %.500s", name, answer.body)
		require.Less(t, time.Since(began), time.Minute, name)

		if name == "a megabyte" || name == "ten thousand figures" || name == "nothing" {
			require.NotEqual(t, http.StatusOK, answer.status, name)
		}
	}

	none := d.checkText("5", `"runs": []`)
	require.Equal(t, http.StatusUnprocessableEntity, none.status, none.body)

	plan := d.checkText("5", `"statements": [{"query": "SELECT 1", "explain": true}]`)
	require.Equal(t, http.StatusUnprocessableEntity, plan.status, plan.body)
}

const (
	checkedSamples = 1_000

	allRevenue = `{"steps": [{"instruction": "all", "queries": ["SELECT sum(revenue) AS revenue FROM orders"]}], "response": "ok"}`
)

// checksSamples compares the verdicts on texts with planted errors with those of the check itself. The rows of a text are those
// of a statement.
func checksSamples(t *testing.T, d *filled) {
	t.Helper()

	files, err := filepath.Glob("../eval/sample/testdata/*.csv")
	require.NoError(t, err)
	tables, err := sample.Read(files...)
	require.NoError(t, err)

	work := make(chan sample.Sample)

	var (
		workers       sync.WaitGroup
		mu            sync.Mutex
		wrong, missed int
	)

	for range 4 {
		workers.Go(func() {
			for one := range work {
				inside, door := insideCheck(one), doorCheck(t, d, one)

				mu.Lock()
				if !slices.Equal(inside, door) {
					wrong++
					t.Errorf("inside %v\ndoor %v\n%s", inside, door, one.Answer)
				}

				for _, claim := range one.Claims {
					if claim.Wrong && !slices.ContainsFunc(inside, func(v sample.Verdict) bool { return v.From < claim.To && v.To > claim.From && !v.Verified }) {
						missed++
					}
				}
				mu.Unlock()
			}
		})
	}

	classes, made := append(sample.Classes(), sample.True), 0

	for seed := uint64(3_000_000); made < loops(checkedSamples) && !t.Failed(); seed++ {
		one, ok := sample.New(seed, tables, sample.Formats()[seed%3], classes[seed%uint64(len(classes))])
		if !ok || len(one.Steps) != 1 || !one.Steps[0].Complete {
			continue
		}

		work <- one

		made++
	}

	close(work)
	workers.Wait()
	t.Logf("%d texts, %d with another result than inside, %d planted errors missed by both", made, wrong, missed)
	require.Zero(t, wrong)
	require.LessOrEqual(t, missed, made*3/100)
}

func insideCheck(s sample.Sample) (verdicts []sample.Verdict) {
	step := s.Steps[0]
	report := grounding.Check(s.Answer, s.Question, []grounding.Step{{Columns: step.Columns, Rows: step.Rows, RowCount: step.RowCount, Complete: true}})

	for _, claim := range report.Claims {
		verdicts = append(verdicts, sample.Verdict{From: claim.At, To: claim.At + len(claim.Text), Verified: claim.Verified})
	}

	return verdicts
}

func doorCheck(t *testing.T, d *filled, s sample.Sample) (verdicts []sample.Verdict) {
	t.Helper()

	answer := d.checkText(s.Answer, `"question": `+encode(t, s.Question)+`, "statements": [{"query": `+encode(t, valuesOf(t, s.Steps[0]))+`}]`)
	if answer.status != http.StatusOK {
		t.Errorf("%d %s", answer.status, answer.body)

		return nil
	}

	var found checkedText

	answer.json(t, &found)

	runes := []rune(found.Text)
	for _, claim := range found.Claims {
		verdicts = append(verdicts, sample.Verdict{From: len(string(runes[:claim.Start])), To: len(string(runes[:claim.End])), Verified: claim.Verified})
	}

	return verdicts
}

// valuesOf returns a statement that returns the rows of a step.
func valuesOf(t *testing.T, step sample.Step) string {
	t.Helper()

	isText := make([]bool, len(step.Columns))
	rows := make([][]any, len(step.Rows))

	for i, row := range step.Rows {
		values := map[string]any{}
		decoder := json.NewDecoder(bytes.NewReader(row))
		decoder.UseNumber()
		require.NoError(t, decoder.Decode(&values))

		for c, name := range step.Columns {
			rows[i] = append(rows[i], values[name])
			_, text := values[name].(string)
			isText[c] = isText[c] || text
		}
	}

	var lines, names []string

	for _, row := range rows {
		cells := make([]string, len(row))

		for c, cell := range row {
			switch text := fmt.Sprint(cell); {
			case cell == nil:
				cells[c] = "NULL"
			case isText[c]:
				cells[c] = "'" + strings.ReplaceAll(text, "'", "''") + "'"
			default:
				cells[c] = text
			}
		}

		lines = append(lines, "("+strings.Join(cells, ", ")+")")
	}

	for _, name := range step.Columns {
		names = append(names, strconv.Quote(name))
	}

	columns := strings.Join(names, ", ")

	return "SELECT " + columns + " FROM (VALUES " + strings.Join(lines, ", ") + ") AS t(" + columns + ")"
}

func checksByCommand(t *testing.T, d *filled) {
	t.Helper()

	c := d.s.signedIn(t, d.bearer)
	file := filepath.Join(t.TempDir(), "text.md")
	query := "SELECT region, sum(revenue) AS revenue FROM orders GROUP BY ALL ORDER BY ALL"

	require.NoError(t, os.WriteFile(file, []byte("north made 320.5, south 180."), 0o600))
	right := c.try("check", file, "-n", d.namespace, "--query", query)
	require.Zero(t, right.code, right.err)
	require.Contains(t, right.out, "revenue in row 1 of statement 1")

	require.NoError(t, os.WriteFile(file, []byte("north made 322."), 0o600))
	wrong := c.try("check", file, "-n", d.namespace, "--query", query)
	require.Equal(t, 10, wrong.code, wrong.err)
	require.Contains(t, wrong.out, "322")

	require.Equal(t, 2, c.try("check", file).code)
}
