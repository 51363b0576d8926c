package planner

import (
	"cmp"
	"slices"
	"strings"

	"quern.dev/quern/internal/lexicon"
	"quern.dev/quern/internal/meaning"
)

const (
	maxOptions = 6 // two forms for each of three dates
	maxUnused  = 5
)

// Make plans a question. A question with typing errors is at most answered by a question back.
func Make(want Request) Plan {
	made, best := plan(want)
	if made.Outcome == Refuse && best != nil && best.unused > 0 {
		if again, ok := corrected(newWorld(want.Datasets), want, best); ok {
			return again
		}
	}

	return made
}

// plan plans a question as it is written. It returns the best way to explain its words, too, nil if there is none.
func plan(want Request) (Plan, *cover) {
	plan := Plan{}
	tokens := tokenise(want.Question)

	if len(tokens) == 0 || len(tokens) > maxTokens {
		return plan, nil
	}

	w := newWorld(want.Datasets)
	plan.Examples = w.examples()

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
		again := r.world.read(r.tokens, c)
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

const maxExamples = 4

// examples returns questions about the datasets that the planner can answer.
func (w *world) examples() (list []string) {
	for _, t := range w.tables {
		if len(t.nouns) == 0 || len(list) >= maxExamples {
			continue
		}

		rows := t.source.Name[strings.LastIndexByte(t.source.Name, '/')+1:]
		rows = strings.Join(lexicon.NameWords(rows), " ")
		figure := w.onlyOrFirst(t, func(c *column) bool { return c.Role.Adds() && c.Role != meaning.Balance })
		kind := w.onlyOrFirst(t, func(c *column) bool { return c.Role == meaning.Category && c.Distinct > 1 })

		list = append(list, "How many "+rows+" are there?")

		switch {
		case figure != nil && kind != nil:
			list = append(list, "Total "+said(figure)+" of "+rows+" by "+said(kind))
		case kind != nil:
			list = append(list, "Number of "+rows+" by "+said(kind))
		}
	}

	return list[:min(len(list), maxExamples)]
}

// said returns the name of a column as people write it.
func said(c *column) string { return strings.Join(lexicon.NameWords(c.Name), " ") }

func (w *world) onlyOrFirst(t *table, is func(*column) bool) *column {
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
