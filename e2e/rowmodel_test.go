package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRowModel appends, loads, merges, deletes and restores rows at random while files are compacted, and compares the table
// after each step with a table in memory: rows, their order, and where they come from. At the end other programs read the same rows.
func TestRowModel(t *testing.T) {
	t.Parallel()

	m := newRowModel(t, start(t, "QUERN_MAINTENANCE_INTERVAL=1s"))

	for range rounds(2000) {
		m.step()
	}

	m.requireSame("other readers")
	m.requireRead(m.d.table().rows)
	m.requireRead(readByPyIceberg(t, m.d))
	t.Logf("steps: %v", m.done)
}

// newRowModel returns a model of a new table that has a few rows.
func newRowModel(t *testing.T, s *service) *rowModel {
	t.Helper()

	bearer := value(t, call(t, http.MethodPost, s.url+"/user/tokens", s.newKey().token("ada"), `{"name": "model", "role": "owner"}`))
	seed := rand.Uint64()
	t.Logf("seed %d", seed)

	m := &rowModel{t: t, d: newFilled(t, s, "ada", bearer), random: rand.New(rand.NewPCG(seed, 1)), states: map[string][]modelRow{}}
	m.load(false)
	m.requireSame("the first load") // remembers a snapshot, in case that the first step is a restore

	return m
}

// modelRow is a row of the table in memory.
type modelRow struct {
	n      int64 // negative for NULL
	name   string
	source string // file and row, empty for a posted row
}

func (r modelRow) number() any {
	if r.n < 0 {
		return nil
	}

	return r.n
}

func (r modelRow) text() string {
	text := fmt.Sprint(r.number(), " ", r.name)
	if r.source != "" {
		text += " " + r.source
	}

	return text
}

type rowModel struct {
	t      *testing.T
	d      *filled
	random *rand.Rand
	rows   []modelRow
	states map[string][]modelRow // by snapshot
	done   [6]int
	files  int
}

func (m *rowModel) step() {
	m.t.Helper()

	what := m.random.IntN(10)

	switch what {
	case 0, 1:
		m.post(false)
	case 2, 3:
		m.load(false)
	case 4, 5:
		m.post(true)
	case 6:
		m.load(true)
	case 7, 8:
		m.delete()
	case 9:
		m.restore()
	}

	m.done[min(what/2, 5)]++
	m.requireSame(strconv.Itoa(what))
}

// requireSame compares the table with the model and remembers the snapshot.
func (m *rowModel) requireSame(what string) {
	m.t.Helper()

	var found, want []string

	for _, row := range m.d.result(`SELECT n, name FROM orders LIMIT 100000`, "").Data {
		text := fmt.Sprint(row["n"], " ", row["name"])

		metadata, _ := row["__metadata"].(map[string]any)
		if source, isFile := metadata["source"].(map[string]any); isFile {
			text += fmt.Sprintf(" %v:%v", source["file"], source["row"])
		}

		found = append(found, text)
	}

	for _, row := range m.rows {
		want = append(want, row.text())
	}

	require.Equal(m.t, want, found, what)
	m.states[m.d.snapshots()[0].SnapshotID] = slices.Clone(m.rows)
}

// fresh returns random rows, without a repeated key if they are to be merged.
func (m *rowModel) fresh(unique bool, most int64) (rows []modelRow) {
	met := map[int64]bool{}

	for range 1 + m.random.IntN(8) {
		row := modelRow{n: m.random.Int64N(most) - 2, name: "v" + strconv.Itoa(m.random.IntN(9))}
		if row.n >= 0 && met[row.n] && unique {
			continue
		}

		met[row.n] = true
		rows = append(rows, row)
	}

	return rows
}

func (m *rowModel) apply(isMerge bool, rows []modelRow) {
	if isMerge {
		m.rows = slices.DeleteFunc(slices.Clone(m.rows), func(old modelRow) bool {
			return old.n >= 0 && slices.ContainsFunc(rows, func(row modelRow) bool { return row.n == old.n })
		})
	}

	m.rows = append(slices.Clone(m.rows), rows...)
}

func (m *rowModel) post(isMerge bool) {
	m.t.Helper()

	rows, list := m.fresh(isMerge, 60), []string{}

	for _, row := range rows {
		n := "null"
		if row.n >= 0 {
			n = strconv.FormatInt(row.n, 10)
		}

		list = append(list, fmt.Sprintf(`{"n": %s, "name": %q}`, n, row.name))
	}

	address := "/rows"
	if isMerge {
		address += "?mode=merge&key=n"
	}

	answer := m.d.call(http.MethodPost, address, `{"data": [`+strings.Join(list, ", ")+`]}`)
	require.Equal(m.t, http.StatusOK, answer.status, answer.body)
	m.apply(isMerge, rows)
}

// load loads a file. Now and then it has a row that does not fit.
func (m *rowModel) load(isMerge bool) {
	m.t.Helper()

	m.files++

	name, lines := fmt.Sprintf("f%d.csv", m.files), []string{"n,name"}
	rows := m.fresh(isMerge, 200)

	for i := range rows {
		if m.random.IntN(5) == 0 && i > 0 {
			lines = append(lines, "many,x")
		}

		n := ""
		if rows[i].n >= 0 {
			n = strconv.FormatInt(rows[i].n, 10)
		}

		lines = append(lines, n+","+rows[i].name)
		rows[i].source = fmt.Sprintf("%s:%d", name, len(lines)-1)
	}

	more := `"accept": ["all"], "options": {"types": {"n": "bigint", "name": "varchar"}}`
	if isMerge {
		more += `, "mode": "merge", "key": ["N"]`
	}

	m.d.named(more, name, strings.Join(lines, "\n")+"\n")
	m.apply(isMerge, rows)
}

func (m *rowModel) delete() {
	m.t.Helper()

	k := m.random.Int64N(60)

	conditions := []struct {
		text  string
		meets func(modelRow) bool
	}{
		{fmt.Sprintf("n < %d", k/4), func(r modelRow) bool { return r.n >= 0 && r.n < k/4 }},
		{fmt.Sprintf("n = %d OR name = 'v%d'", k, k%9), func(r modelRow) bool { return r.n == k || r.name == fmt.Sprintf("v%d", k%9) }},
		{fmt.Sprintf("n %% 7 = %d", k%7), func(r modelRow) bool { return r.n >= 0 && r.n%7 == k%7 }},
		{"n IS NULL", func(r modelRow) bool { return r.n < 0 }},
		{fmt.Sprintf("n BETWEEN %d AND %d", k, 3*k), func(r modelRow) bool { return r.n >= k && r.n <= 3*k }},
		{"n = (SELECT max(n) FROM orders)", func(r modelRow) bool { return r.n >= 0 && r.n == m.largest() }},
		{fmt.Sprintf("NOT (n <> %d)", k), func(r modelRow) bool { return r.n == k }},
	}

	condition := conditions[m.random.IntN(len(conditions))]
	left := slices.DeleteFunc(slices.Clone(m.rows), condition.meets)
	done := m.d.deleteRows(fmt.Sprintf(`{"condition": %q}`, condition.text))
	require.Equal(m.t, int64(len(m.rows)-len(left)), done.RowCount, condition.text)

	m.rows = left
}

func (m *rowModel) largest() int64 {
	most := int64(-1)
	for _, row := range m.rows {
		most = max(most, row.n)
	}

	return most
}

func (m *rowModel) restore() {
	m.t.Helper()

	var known []string

	for _, s := range m.d.snapshots() {
		if _, isKnown := m.states[s.SnapshotID]; isKnown {
			known = append(known, s.SnapshotID)
		}
	}

	to := known[m.random.IntN(min(len(known), 5))]
	require.Equal(m.t, http.StatusOK, m.d.restoreTo(to).status)
	m.rows = slices.Clone(m.states[to])
}
