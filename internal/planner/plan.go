package planner

import (
	"cmp"
	"slices"
)

const (
	maxCandidates = 5
	farLess       = 0.5 // of the trust in the likeliest dataset, below which another is not looked at
)

// Make reads a question.
func Make(want Request) Plan {
	plan, asked := Plan{Examples: examples(want.Datasets)}, ask(want.Question, want.Today)
	if len(asked.tokens) == 0 {
		return plan
	}

	if plan.Language = foreign(want.Question, asked.tokens, asked.phrases); plan.Language != "" {
		return plan
	}

	readings := make([][]*reader, len(want.Datasets))
	for i := range want.Datasets {
		readings[i] = want.readings(i, asked)
	}

	var best *reader

	for _, r := range rivals(readings) {
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

// readings are the ways to read the question of one dataset.
func (want *Request) readings(i int, asked *question) (list []*reader) {
	s := prepare(&want.Datasets[i])
	s.totals = want.Totals
	l := &linker{schema: s, question: asked, links: want.Links}

	for _, c := range covers(l.items()) {
		if r, ok := s.read(asked.tokens, c, len(want.Datasets) == 1); ok {
			list = append(list, r)
		}
	}

	return list
}

// Likely are the datasets that the question is most likely about, by their place in the request, without those that are
// far less likely than the first. Their values need not be known for that.
func Likely(want Request, most int) []int {
	asked := ask(want.Question, want.Today)
	trust := make([]float64, len(want.Datasets))
	list := make([]int, len(want.Datasets))

	readings := make([][]*reader, len(want.Datasets))

	for i := range want.Datasets {
		list[i], readings[i] = i, want.readings(i, asked)
	}

	rivals(readings)

	for i, of := range readings {
		for _, r := range of {
			trust[i] = max(trust[i], r.trust)
		}
	}

	slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(trust[b], trust[a]) })

	list = list[:min(len(list), most)]

	return slices.DeleteFunc(list, func(i int) bool { return trust[i] < trust[list[0]]*farLess })
}

// add keeps each reading once, with its best confidence.
func (p *Plan) add(form Form, confidence float64) {
	one := Candidate{Form: form, SQL: form.SQL(), Reading: form.Reading(), Confidence: confidence}
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

// essence is the same for forms that differ only in what they show of the same rows.
func (f Form) essence() string {
	if f.Kind == List {
		f.Show, f.Distinct = nil, false
	}

	return f.SQL()
}

// rivals are the readings of all datasets. One that does not name its dataset is less sure if the words would do for
// another one too.
func rivals(readings [][]*reader) (list []*reader) {
	most := make([]float64, len(readings))

	for i, of := range readings {
		for _, r := range of {
			most[i] = max(most[i], r.trust)
		}
	}

	for i, of := range readings {
		for _, r := range of {
			factor := 1.0

			for j := range readings {
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

// namesRows is true if the question says what the rows are.
func (r *reader) namesRows() bool {
	return slices.ContainsFunc(r.items, func(one *item) bool { return one.kind == rowsItem })
}

// examples are questions that can be answered of the first datasets.
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
