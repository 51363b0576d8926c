package planner

import (
	"cmp"
	"slices"
)

const (
	maxCandidates = 5
	farLess       = 0.5 // fraction of the trust in the most likely dataset; less likely datasets are dropped
)

// Make plans a question.
func Make(want Request) Plan {
	plan, asked := Plan{Examples: examples(want.Datasets)}, ask(want.Question, want.Today)
	if len(asked.tokens) == 0 {
		return plan
	}

	if plan.Language = foreign(want.Question, asked.tokens, asked.phrases); plan.Language != "" {
		return plan
	}

	interpretations := make([][]*reader, len(want.Datasets))
	for i := range want.Datasets {
		interpretations[i] = want.interpretations(i, asked)
	}

	var best *reader

	for _, r := range rivals(interpretations) {
		if best == nil || r.trust > best.trust {
			best = r
		}

		plan.add(r.form, r.trust)
	}

	slices.SortStableFunc(plan.Candidates, func(a, b Candidate) int { return cmp.Compare(b.Confidence, a.Confidence) })
	plan.Candidates = plan.Candidates[:min(len(plan.Candidates), maxCandidates)]

	if best != nil {
		for _, i := range best.unknown {
			plan.Unknown = append(plan.Unknown, want.Question[asked.tokens[i].start:asked.tokens[i].end])
		}
	}

	return plan
}

// interpretations returns the possible interpretations of the question for one dataset.
func (want *Request) interpretations(i int, asked *question) (list []*reader) {
	s := prepare(&want.Datasets[i])
	s.totals = want.Totals
	l := &matcher{schema: s, question: asked, matches: want.Matches}

	for _, c := range covers(l.items()) {
		if r, ok := s.read(asked.tokens, c, len(want.Datasets) == 1); ok {
			list = append(list, r)
		}
	}

	return list
}

// Likely returns the indexes of the datasets that the question most likely refers to, up to the given number, without
// those that are far less likely than the first. The values of the datasets need not be known.
func Likely(want Request, most int) []int {
	asked := ask(want.Question, want.Today)
	trust := make([]float64, len(want.Datasets))
	list := make([]int, len(want.Datasets))

	interpretations := make([][]*reader, len(want.Datasets))

	for i := range want.Datasets {
		list[i], interpretations[i] = i, want.interpretations(i, asked)
	}

	rivals(interpretations)

	for i, of := range interpretations {
		for _, r := range of {
			trust[i] = max(trust[i], r.trust)
		}
	}

	slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(trust[b], trust[a]) })

	list = list[:min(len(list), most)]

	return slices.DeleteFunc(list, func(i int) bool { return trust[i] < trust[list[0]]*farLess })
}

// add adds an interpretation. Of several with the same essence it keeps the one with the highest confidence.
func (p *Plan) add(form Form, confidence float64) {
	one := Candidate{Form: form, SQL: form.SQL(), Interpretation: form.Interpretation(), Confidence: confidence}
	essence := form.essence()

	for i, c := range p.Candidates {
		if c.Form.essence() == essence {
			if confidence > c.Confidence {
				p.Candidates[i] = one
			}

			return
		}
	}

	p.Candidates = append(p.Candidates, one)
}

// essence returns a text that is equal for forms that select the same rows and differ only in the columns they show.
func (f Form) essence() string {
	if f.Kind == List {
		f.Show, f.Distinct = nil, false
	}

	return f.SQL()
}

// rivals returns the interpretations of all datasets. It lowers the trust in an interpretation that does not name its
// rows if another dataset could be meant too.
func rivals(interpretations [][]*reader) (list []*reader) {
	most := make([]float64, len(interpretations))

	for i, of := range interpretations {
		for _, r := range of {
			most[i] = max(most[i], r.trust)
		}
	}

	for i, of := range interpretations {
		for _, r := range of {
			factor := 1.0

			for j := range interpretations {
				if j != i && most[j] >= farLess*r.trust && !r.namesRows() {
					factor = 0.9
				}
			}

			r.doubt(factor)

			list = append(list, r)
		}
	}

	return list
}

// namesRows reports whether the question names the rows.
func (r *reader) namesRows() bool {
	return slices.ContainsFunc(r.items, func(one *item) bool { return one.kind == rowsItem })
}

// examples returns questions that the planner can answer about the first two datasets.
func examples(datasets []Dataset) []string {
	var list []string

	for i := range datasets[:min(len(datasets), 2)] {
		s := prepare(&datasets[i])
		name := s.Name
		list = append(list, "How many "+name+" are there?")

		if m := s.measures(); len(m) > 0 {
			list = append(list, "What is the average "+s.columns[m[0]].Name+" of "+name+"?")

			for _, c := range s.ofKind(text) {
				if !s.columns[c].unique && s.columns[c].Distinct > 1 {
					list = append(list, "Total "+s.columns[m[0]].Name+" of "+name+" by "+s.columns[c].Name)

					break
				}
			}
		}
	}

	return list
}
