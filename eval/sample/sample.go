// Package sample makes answers that are known to be true or wrong, to measure the check of answers: true ones, written
// as a good model writes them about the rows of some tables, and ones with exactly one mistake. Everything is derived
// from the seed. The package does not depend on how answers are checked.
package sample

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Sample is an answer to check.
type Sample struct {
	Question string
	Steps    []Step
	Answer   string // with markers
	Plain    string // without markers
	Claims   []Claim
}

// Claim is a part of Plain that must be checked.
type Claim struct {
	From, To int
	Marked   bool
	Wrong    bool
}

type random struct{ *rand.Rand }

func (r *random) chance(percent int) bool { return r.IntN(100) < percent }

func pick[T any](r *random, list []T) (one T, some bool) {
	if len(list) == 0 {
		return one, false
	}

	return list[r.IntN(len(list))], true
}

// attempts is how many answers are tried until the class of mistakes fits one.
const attempts = 200

// New makes an answer about some of the tables. It returns false if the tables do not have what the class needs.
func New(seed uint64, tables []Table, in Format, class Class) (Sample, bool) {
	r := &random{rand.New(rand.NewPCG(seed, uint64(in)))}

	for range attempts {
		if s, made := r.sample(tables, in, class); made {
			return s, true
		}
	}

	return Sample{}, false
}

func (r *random) sample(tables []Table, in Format, class Class) (Sample, bool) {
	var views []*view

	for range 1 + r.IntN(3) {
		if v, usable := newView(r, tables[r.IntN(len(tables))], len(views)); usable {
			views = append(views, v)
		}
	}

	statements := r.statements(views, in, class)
	if len(statements) == 0 {
		return Sample{}, false
	}

	if class == Invented && r.chance(40) {
		statements = append(statements, r.inventedStatement(views[0]))
	} else if class != True && !r.mutate(class, statements[r.IntN(len(statements))]) {
		return Sample{}, false
	}

	w := newWriter(r, in)
	w.opening()

	for _, s := range statements {
		if !w.statement(s) {
			return Sample{}, false
		}
	}

	made := Sample{Question: w.question, Answer: strings.TrimRight(w.answer.String(), " \n"), Plain: strings.TrimRight(w.plain.String(), " \n"), Claims: w.claims}

	for _, v := range views {
		step, err := v.result()
		if err != nil {
			return made, false
		}

		made.Steps = append(made.Steps, step)
	}

	return made, class == True || slices.ContainsFunc(made.Claims, func(c Claim) bool { return c.Wrong })
}

// statements makes one to four statements about the steps, with a quarter of the figures without markers.
func (r *random) statements(views []*view, in Format, class Class) []*statement {
	var list []*statement

	for range 1 + r.IntN(4) {
		v, some := pick(r, views)
		if !some {
			return nil
		}

		s := facts()[r.IntN(len(facts()))](r, v)
		if _, isRelation := relations()[class]; r.chance(30) || isRelation && len(list) == 0 {
			s = r.related(v, in, class)
		}

		if s == nil {
			continue
		}

		// A figure calculated from two cells needs a marker that states the calculation.
		for _, f := range s.figures {
			f.bare = f.form == asWords || r.chance(25) && (f.row >= 0 || slices.Contains([]string{"count", "sum", "average", "share"}, s.what))
		}

		list = append(list, s)
	}

	return list
}

func (r *random) inventedStatement(v *view) *statement {
	f := r.calculated(v, v.numeric()[0], v.all(v.numeric()[0])[0], "")
	f.form, f.bare = asNumber, true
	r.invent(f)

	return &statement{what: "invented", figures: []*figure{f}}
}

// writer composes an answer, with and without its markers.
type writer struct {
	*random

	in            Format
	answer, plain strings.Builder
	claims        []Claim
	question      string
	marker        string            // marker that is still to be written
	numbers       map[string]string // numbers of the question
}

func newWriter(r *random, in Format) *writer {
	w := &writer{random: r, in: in, numbers: map[string]string{"{q}": strconv.Itoa(2 + r.IntN(20)), "{y}": strconv.Itoa(1990 + r.IntN(40))}}
	question, _ := pick(r, phrases("question", in))
	w.question = w.fill(question)

	if !strings.Contains(question, "{q}") {
		delete(w.numbers, "{q}")
	}

	return w
}

func (w *writer) fill(text string) string {
	for slot, number := range w.numbers {
		text = strings.ReplaceAll(text, slot, number)
	}

	return text
}

func (w *writer) opening() {
	opening, _ := pick(w.random, phrases("opening", w.in))
	if opening = w.fill(opening); !strings.Contains(opening, "{") {
		w.write(opening + " ")
	}
}

func (w *writer) write(text string) {
	w.answer.WriteString(text)
	w.plain.WriteString(text)
}

var slots = regexp.MustCompile(`\{.\}`)

// statement writes a statement. It returns false if a wrong figure would not be a claim.
func (w *writer) statement(s *statement) bool {
	phrase := w.phrase(s)
	end := 0

	// Some writers also cite names.
	if !slices.ContainsFunc(s.figures, func(f *figure) bool { return f.wrong }) && w.chance(8) {
		for _, name := range s.names {
			name.marker = name.v.cellRef(name.row, name.column)
		}
	}

	for _, slot := range slots.FindAllStringIndex(phrase, -1) {
		if !strings.HasPrefix(phrase[end:], " {c}") || w.chance(50) {
			w.cite()
		}

		w.write(phrase[end:slot[0]])
		end = slot[1]
		name := phrase[slot[0]+1 : slot[1]-1]

		if column, is := s.columns[name]; is {
			w.write(column)
			w.cite()
		} else if row, is := s.names[name]; is {
			row.bare = row.marker == ""
			w.figure(row)
		} else if i, err := strconv.Atoi(name); err != nil || !w.figure(s.figures[i]) {
			return false
		}
	}

	w.cite()
	w.write(phrase[end:])

	if separators := [...]string{" ", " ", "\n\n"}; strings.HasSuffix(phrase, "\n") {
		w.write("\n")
	} else {
		w.write(separators[w.IntN(3)])
	}

	return true
}

// phrase chooses a sentence for a statement. A wrong figure without a marker is wrong only if the column is named, so
// the sentence must then name the column.
func (w *writer) phrase(s *statement) string {
	list := phrases(s.what, w.in)
	if slices.ContainsFunc(s.figures, func(f *figure) bool { return f.wrong }) && len(s.columns) > 0 && s.what != "table" {
		list = slices.DeleteFunc(slices.Clone(list), func(phrase string) bool { return !strings.Contains(phrase, "{c}") })
	}

	phrase, _ := pick(w.random, list)

	return phrase + s.phrase
}

// cite writes the marker of the last figure. The marker may follow the noun after the figure.
func (w *writer) cite() {
	w.answer.WriteString(w.marker)
	w.marker = ""
}

var year = regexp.MustCompile(`^(19|20)[0-9]{2}$|^2100$`)

// figure writes a figure and prepares its marker. Years and numbers of the question without a marker are not claims, so
// such a figure gets its marker, or is refused if it is wrong.
func (w *writer) figure(f *figure) bool {
	text := f.write(w.in)
	claim := Claim{From: w.plain.Len(), To: w.plain.Len() + len(text), Marked: !f.bare, Wrong: f.wrong}
	w.write(text)

	if f.form == asName && f.bare {
		return true
	}

	if f.bare && f.form != asWords && (year.MatchString(text) || slices.Contains([]string{w.numbers["{q}"], w.numbers["{y}"]}, strings.Trim(text, "-−"))) {
		if f.wrong {
			return false
		}

		f.bare, claim.Marked = false, true
	}

	if !f.bare {
		w.marker = [...]string{" ", " ", ""}[w.IntN(3)] + "[[" + f.marker + "]]"
	}

	w.claims = append(w.claims, claim)

	return true
}
