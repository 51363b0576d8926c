package planner

import (
	"cmp"
	"slices"
	"strings"

	"quern.dev/quern/internal/meaning"
)

const (
	maxOptions = 6 // two forms for each of three dates
	maxUnused  = 5
)

// Make plans a question. A question with typing errors is at most answered by a question back.
func Make(want Request) Plan {
	w := newWorld(want.Datasets)

	made, best := w.plan(want)
	if made.Outcome == Refuse && best != nil && best.unused > 0 {
		if again, ok := corrected(w, want, best); ok {
			return again
		}
	}

	if made.Outcome == Refuse {
		made.Examples = w.examples(want)
	}

	return made
}

// plan plans a question as it is written. It returns the best way to explain its words, too, nil if there is none.
func (w *world) plan(want Request) (Plan, *cover) {
	plan := Plan{}
	tokens := tokenise(want.Question)

	if len(tokens) == 0 || len(tokens) > maxTokens {
		return plan, nil
	}

	if plan.Language = foreign(want.Question, tokens, operators); plan.Language != "" {
		return plan, nil
	}

	m := &matcher{world: w, text: want.Question, tokens: tokens, today: want.Today, matches: want.Matches}
	all := covers(m.items())

	for from := 0; from < len(all) && all[from].unused == 0; {
		to := from
		for to < len(all) && compare(all[from], all[to]) == 0 {
			to++
		}

		if plan.consider(w, want.Question, tokens, all[from:to]); len(plan.Candidates) > 0 {
			if plan.decide(all[from].guess > 0); plan.Outcome != Refuse {
				return plan, nil
			}
		}

		from = to
	}

	if len(all) == 0 {
		return plan, nil
	}

	plan.unused(w, want.Question, tokens, all[0])

	return plan, all[0]
}

// consider adds the forms of covers that explain everything equally well.
func (p *Plan) consider(w *world, text string, tokens []token, covers []*cover) {
	for _, c := range covers {
		r := w.read(tokens, c)
		if p.addBoth(r, text, c) {
			continue
		}

		for _, day := range r.dates { // the question does not say which date is meant: each is an option
			again := w.read(tokens, c)
			again.day = day
			p.addBoth(again, text, c)
		}
	}
}

// addBoth adds the form of a reading, and the other form that the same words may mean, if there are two.
func (p *Plan) addBoth(r *reading, text string, c *cover) bool {
	if !p.add(r, text, c) {
		return false
	}

	if r.isBare {
		again := r.read(r.tokens, c)
		again.day, again.other = r.day, true
		p.add(again, text, c)
	}

	return true
}

// add adds the form of a reading, if it has one.
func (p *Plan) add(r *reading, text string, c *cover) bool {
	if !r.understand() {
		p.Reason = cmp.Or(p.Reason, r.why)

		return false
	}

	return p.compile(r, text, c)
}

// compile adds the statement of a form that is complete.
func (p *Plan) compile(r *reading, text string, c *cover) bool {
	statement, err := r.schema.Compile(r.form)
	if err != nil {
		p.Reason = cmp.Or(p.Reason, err.Error())

		return false
	}

	if !slices.ContainsFunc(p.Candidates, func(o Candidate) bool { return o.SQL == statement.SQL }) {
		p.Candidates = append(p.Candidates, Candidate{
			Form: r.form, SQL: statement.SQL, Interpretation: statement.Interpretation, Notes: statement.Notes, Explained: r.explain(text, c.list()),
			Check: statement.Check,
		})
	}

	return true
}

func (p *Plan) decide(isGuess bool) {
	p.Reason = ""
	p.preferOwn()

	switch {
	case isGuess && len(p.Candidates) > 1: // several guesses are worth nothing
		p.Outcome, p.Candidates = Refuse, nil
	case len(p.Candidates) > 1:
		p.Outcome = AskBack
		p.Candidates = p.Candidates[:min(len(p.Candidates), maxOptions)]
	case isGuess:
		p.Outcome = DidYouMean
	default:
		p.Outcome = Answer
	}
}

// preferOwn keeps the interpretations that need the fewest other datasets, if all are about the same rows: orders by
// country are by their own country, if they have one.
func (p *Plan) preferOwn() {
	if slices.ContainsFunc(p.Candidates, func(c Candidate) bool { return c.Form.Dataset != p.Candidates[0].Form.Dataset }) {
		return
	}

	others := func(c Candidate) (n int) {
		for _, e := range c.Explained {
			if e.Column != "" && e.Dataset != c.Form.Dataset {
				n++
			}
		}

		return n
	}

	least := others(slices.MinFunc(p.Candidates, func(a, b Candidate) int { return cmp.Compare(others(a), others(b)) }))
	p.Candidates = slices.DeleteFunc(p.Candidates, func(c Candidate) bool { return others(c) > least })
}

// unused names the words that the best cover does not explain, or that no form uses.
func (p *Plan) unused(w *world, text string, tokens []token, c *cover) {
	for _, one := range c.list() {
		if one.kind == unusedItem {
			p.Unused = append(p.Unused, text[tokens[one.from].start:tokens[one.to-1].end])
		}
	}

	if len(p.Unused) == 0 && p.Reason == "" {
		r := w.read(tokens, c)
		if !r.understand() {
			p.Unused = r.leftOver(text)
		}
	}

	p.Unused = p.Unused[:min(len(p.Unused), maxUnused)]
}

const (
	maxExamples = 4
	maxTried    = 12 // questions that are planned for examples
)

// examples returns questions about the datasets of a request that are answered without asking back, first about the dataset
// that the question most likely refers to. Each was planned.
func (w *world) examples(want Request) (list []string) {
	tried := 0
	asked := stemsOf(want.Question)
	tables := slices.Clone(w.tables)

	for _, first := range Likely(want, 1) {
		tables = slices.Insert(slices.Delete(tables, first, first+1), 0, w.tables[first])
	}

	for _, t := range tables {
		found := 0

		for _, question := range w.questions(t, asked) {
			if len(list) == maxExamples || tried == maxTried {
				return list
			}

			if found == 2 {
				break
			}

			tried++

			if made, _ := w.plan(Request{Question: question, Today: want.Today, Datasets: want.Datasets}); made.Outcome == Answer {
				list = append(list, question)
				found++
			}
		}
	}

	return list
}

// questions returns questions that fit the columns of a table, the simplest first. They group by a category that the asked
// words name, if there is one. They are only attempts.
func (w *world) questions(t *table, asked []string) (list []string) {
	rows := said(t.name[strings.LastIndexByte(t.name, '/')+1:])
	if rows == "" {
		return nil
	}

	figure := w.first(t, func(c *column) bool { return c.Role.Adds() && c.Role != meaning.Balance })
	groups := func(c *column) bool { return c.Role == meaning.Category && c.Distinct > 1 }
	named := func(c *column) bool {
		return len(c.stems) > 0 && !slices.ContainsFunc(c.stems, func(stem string) bool { return !slices.Contains(asked, stem) })
	}
	kind := cmp.Or(w.first(t, func(c *column) bool { return groups(c) && named(c) }), w.first(t, groups))
	list = append(list, "How many "+rows+" are there?")

	if figure != nil && kind != nil {
		list = append(list, "Total "+said(figure.Name)+" of "+rows+" by "+said(kind.Name), "Average "+said(figure.Name)+" of "+rows+" by "+said(kind.Name))
	}

	if kind != nil {
		list = append(list, "Number of "+rows+" by "+said(kind.Name))
	}

	return list
}

// said returns a name as people write it in a question.
func said(name string) string {
	return strings.Join(strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune("_-. ", r) }), " ")
}

func (w *world) first(t *table, is func(*column) bool) *column {
	for i := range t.columns {
		if c := &t.columns[i]; is(c) && !c.joined {
			return c
		}
	}

	return nil
}

// Likely returns the indexes of the datasets that the question most likely refers to, up to the given number, in the
// order of the request. Profiles need not be known.
func Likely(want Request, most int) []int {
	w := newWorld(want.Datasets)
	m := &matcher{world: w, text: want.Question, tokens: tokenise(want.Question), today: want.Today, matches: want.Matches}
	hits := make([]map[int]bool, len(w.tables))

	for _, list := range m.items() {
		for _, one := range list {
			if one.kind != columnItem && one.kind != entityItem && one.kind != valueItem && one.kind != measureItem {
				continue
			}

			if hits[one.table] == nil {
				hits[one.table] = map[int]bool{}
			}

			for i := one.from; i < one.to; i++ {
				hits[one.table][i] = true
			}
		}
	}

	list := make([]int, len(w.tables))
	for i := range list {
		list[i] = i
	}

	slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(len(hits[b]), len(hits[a])) })
	list = slices.DeleteFunc(list[:min(len(list), most)], func(i int) bool { return len(hits[i]) == 0 })
	slices.Sort(list)

	return list
}
