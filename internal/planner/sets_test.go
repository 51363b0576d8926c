package planner_test

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/meaning"
)

const mostVariants = 20 // of a question with other values in one place

// questionSets returns the questions of the repository's question sets with their variants, and questions made from
// templates.
func questionSets(t *testing.T) []*questionSet {
	t.Helper()

	sets := append(readSet(t, "../../eval/business/dev"), readSet(t, "../../eval/testdata/dev")...)

	for _, w := range worlds(t) {
		sets = append(sets, &questionSet{testWorld: w, questions: fill(w)})
	}

	return sets
}

// readSet reads a question set. Each question is added with other values, years, months, numbers and columns, too.
func readSet(t *testing.T, folder string) (sets []*questionSet) {
	t.Helper()

	f, err := os.Open(folder + "/questions.ndjson")
	require.NoError(t, err)

	defer func() { require.NoError(t, f.Close()) }()

	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)

	for lines.Scan() {
		var one struct {
			DB       string `json:"db"`
			Question string `json:"question"`
			AsOf     string `json:"as_of"`
		}

		require.NoError(t, json.Unmarshal(lines.Bytes(), &one))

		at := slices.IndexFunc(sets, func(s *questionSet) bool { return s.name == one.DB })
		if at < 0 {
			today := june()
			if one.AsOf != "" {
				today, err = time.Parse(time.DateOnly, one.AsOf)
				require.NoError(t, err)
			}

			at = len(sets)
			sets = append(sets, &questionSet{testWorld: loadWorld(t, folder+"/"+one.DB, today), isReal: true})
		}

		sets[at].questions = append(sets[at].questions, one.Question)
		sets[at].questions = append(sets[at].questions, variants(sets[at].testWorld, one.Question)...)
	}

	require.NoError(t, lines.Err())

	for _, s := range sets {
		slices.Sort(s.questions)
		s.questions = slices.Compact(s.questions)
	}

	return sets
}

// variants returns a question with one other value, column, year, month or number, or with a period.
func variants(w *testWorld, question string) (list []string) {
	for _, m := range w.matches(question) {
		for i, other := range w.others(m.Dataset, m.Column, m.Value) {
			if i < mostVariants {
				list = append(list, question[:m.Start]+other+question[m.End:])
			}
		}
	}

	for _, more := range []string{"in 2025", "since March 2026", "per month", "in the last 90 days"} {
		list = append(list, strings.TrimRight(question, "?.")+" "+more)
	}

	lower := strings.ToLower(question)

	for _, d := range w.datasets {
		for _, c := range d.Columns {
			at := strings.Index(lower, said(c.Name))
			if at < 0 {
				continue
			}

			for _, o := range d.Columns {
				if o.Name != c.Name && kindOf(d.Meaning.Columns[o.Name].Role) == kindOf(d.Meaning.Columns[c.Name].Role) {
					list = append(list, question[:at]+said(o.Name)+question[at+len(said(c.Name)):])
				}
			}
		}
	}

	for word := range strings.FieldsSeq(question) {
		word = strings.Trim(word, "?.,")

		for _, same := range [][]string{{"2023", "2024", "2025", "2026"}, {"January", "March", "April", "May", "June", "December"}, {"first", "second", "third"}, {"month", "quarter", "year", "week"}} {
			if slices.Contains(same, word) {
				for _, other := range same {
					list = append(list, strings.Replace(question, word, other, 1))
				}
			}
		}

		if n, err := strconv.Atoi(word); err == nil && n < 1000 {
			list = append(list, strings.Replace(question, word, strconv.Itoa(n+2), 1), strings.Replace(question, word, strconv.Itoa(2*n), 1))
		}
	}

	return list
}

// said returns the name of a column or dataset as people write it.
func said(name string) string {
	name = strings.TrimPrefix(strings.ReplaceAll(name, "_", " "), "is ")

	return strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, " on"), " id"), " pct")
}

// kindOf returns which roles can stand for each other in a question.
func kindOf(role meaning.Role) string {
	switch {
	case role.Adds():
		return "adds"
	case role.IsFigure():
		return "figure"
	case role == meaning.Category || role == meaning.Name || role == meaning.Text:
		return "thing"
	default:
		return string(role)
	}
}

// templates returns questions with places: {rows} of a dataset, {kind} and {adds}, {figure}, {flag}, {date} for columns of
// it, {value} of a kind.
func templates() []string {
	return []string{
		"How many {rows} are there?",
		"How many {rows} are there in {value}?",
		"How many {value} {rows} were there in 2025?",
		"Number of {rows} per {kind}",
		"Number of {rows} with {kind} {value}",
		"How many {rows} are not {value}?",
		"{rows} by {kind} in 2026",
		"Total {adds} of {rows}",
		"Total {adds} by {kind}",
		"{adds} per month",
		"{adds} in May 2026 by {kind}",
		"Average {figure}",
		"What is the average {figure} in {value}?",
		"Average {figure} by {kind}",
		"Median {figure} of {value}",
		"Highest {figure} in {value}",
		"What is the lowest {figure}?",
		"{rows} with {figure} over 20",
		"How many {rows} have a {figure} between 5 and 50?",
		"{rows} with at least 3 {adds}",
		"How many {flag} {rows}?",
		"How many {rows} are not {flag}?",
		"Share of {flag} {rows} by {kind}",
		"How many {rows} since March 2026?",
		"How many {rows} between 2026-02-01 and 2026-03-31?",
		"{rows} with {date} before 2026",
		"Top 3 {kind} by {adds}",
		"Top 5 {rows} by {figure}",
		"Which {kind} has the most {rows}?",
		"Which {kind} has the highest average {figure}?",
		"Which {kind} has the fewest {rows}?",
		"{kind} with more than 2 {rows}",
		"What percentage of {rows} is {value}?",
		"Share of {adds} by {kind}",
		"List all {rows} in {value}",
		"Which {rows} have a {figure} above 100?",
		"What is the most common {kind}?",
		"How many different {kind} do {rows} have?",
		"{rows} except {value} by {kind}",
		"{rows} without {date}",
		"Number of {rows} by {kind} descending",
		"{value} {rows} last month",
		"How many {rows} were there in March?",
		"Which month had the most {rows}?",
	}
}

// fill fills the templates with the names and values of a world.
func fill(w *testWorld) (list []string) {
	for _, d := range w.datasets {
		places := map[string][]string{"{rows}": {said(d.Name)}}

		for _, c := range d.Columns {
			role := d.Meaning.Columns[c.Name].Role
			add := func(place, text string) { places[place] = append(places[place], text) }

			switch kindOf(role) {
			case "adds":
				add("{adds}", said(c.Name))
				add("{figure}", said(c.Name))
			case "figure":
				add("{figure}", said(c.Name))
			case "thing":
				add("{kind}", said(c.Name))

				for _, v := range c.Values[:min(2, len(c.Values))] {
					add("{value}", written(v))
				}
			case string(meaning.Flag):
				add("{flag}", said(c.Name))
			case string(meaning.Date):
				add("{date}", said(c.Name))
			}
		}

		for _, t := range templates() {
			list = append(list, filled(t, places)...)
		}
	}

	slices.Sort(list)

	return slices.Compact(list)
}

const mostFilled = 16 // questions of a template

// filled fills one template with what each place can be. Long lists are thinned out evenly.
func filled(template string, places map[string][]string) []string {
	list := []string{template}

	for _, place := range []string{"{rows}", "{kind}", "{adds}", "{figure}", "{flag}", "{date}", "{value}"} {
		if !strings.Contains(template, place) {
			continue
		}

		var next []string

		for _, text := range list {
			for _, with := range places[place] {
				next = append(next, strings.ReplaceAll(text, place, with))
			}
		}

		list = next
	}

	for len(list) > mostFilled {
		var thin []string
		for i := 0; i < len(list); i += 1 + len(list)/mostFilled {
			thin = append(thin, list[i])
		}

		list = thin
	}

	return list
}
