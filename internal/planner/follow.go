package planner

import (
	"regexp"
	"slices"
	"strings"

	"quern.dev/quern/internal/form"
)

// opening and closing match words that only connect a question to the one before it.
var (
	opening = regexp.MustCompile(`(?i)^\W*((and|but|ok|okay|now|then|also)\b\W*)*((what|how) about\b|(and )?the same\b|same\b|only\b|just\b)?`)
	closing = regexp.MustCompile(`(?i)\W*\b(instead|as well|too|then|again)\W*$`)
)

// Follow plans a question that changes an earlier question, such as "and in Austria?" or "by month". last is the form of the
// earlier question. A condition replaces the condition on the same column, a period replaces the earlier period, and a group
// replaces the earlier groups. Everything else stays.
func Follow(want Request, last form.Form) Plan {
	made := Plan{}
	text := opening.ReplaceAllStringFunc(want.Question, blank)
	text = closing.ReplaceAllStringFunc(text, blank)

	tokens := tokenise(text)
	if len(tokens) == 0 || len(tokens) > maxTokens {
		return made
	}

	w := newWorld(want.Datasets)
	m := &matcher{world: w, text: text, tokens: tokens, today: want.Today, matches: want.Matches}
	all := covers(m.items())

	for from := 0; from < len(all) && all[from].unused == 0 && all[from].guess == 0; {
		to := from
		for to < len(all) && compare(all[from], all[to]) == 0 {
			to++
		}

		for _, c := range all[from:to] {
			r := w.read(tokens, c)
			if r.change(last) {
				made.compile(r, text, c)
			}
		}

		if len(made.Candidates) > 0 {
			made.decide(false)

			return made
		}

		from = to
	}

	return made
}

// blank returns as many spaces as a text has bytes, so that the positions of other words stay.
func blank(text string) string { return strings.Repeat(" ", len(text)) }

// change applies the items to an earlier form. It returns false if an item is left over, or if nothing changes.
func (r *reading) change(last form.Form) bool {
	if r.root = slices.IndexFunc(r.tables, func(t *table) bool { return t.name == last.Dataset }); r.root < 0 {
		return false
	}

	r.form = last
	r.form.Where, r.form.Groups = slices.Clone(last.Where), slices.Clone(last.Groups)
	r.isList = len(last.Measures) == 0

	r.findDate()
	r.comparisons()
	r.periods()
	r.negations()
	r.groupings()
	r.soleGroup()
	r.filters()

	if len(r.having) > 0 || len(r.where)+len(r.times)+len(r.groups) == 0 || len(r.groups) > 0 && (r.isList || last.Order != nil) {
		return false
	}

	for _, c := range r.where {
		r.drop(func(o form.Condition) bool { return o.Rows == nil && o.Dataset == c.Dataset && o.Name == c.Name })
	}

	if len(r.times) > 0 {
		r.drop(func(o form.Condition) bool { return o.Is == form.In || o.Is == form.InMonth })
	}

	if len(r.groups) > 0 {
		r.form.Groups = nil
	}

	r.qualifiers()

	return r.finish()
}

// drop removes the conditions of the earlier form that a new one replaces.
func (r *reading) drop(is func(form.Condition) bool) {
	r.form.Where = slices.DeleteFunc(r.form.Where, is)
}

// soleGroup handles "per customer" and "monthly" that groupings leaves over: a column or a thing that is all that is said.
func (r *reading) soleGroup() {
	if len(r.items) == 1 && r.is(0, grainItem) {
		r.use(0)
		r.groups = append(r.groups, group{table: -1, grain: r.items[0].grain})
	}
}
