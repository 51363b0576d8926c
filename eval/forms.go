package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"quern.dev/quern/api"
)

// formsModel is the scripted model that answers with forms.
const formsModel = "forms"

// goldForm is a line of forms.ndjson: the form that answers a question, or the reason why no form does.
type goldForm struct {
	ID   string          `json:"id"`
	Form json.RawMessage `json:"form,omitempty"` // an object
	None string          `json:"none,omitempty"` // family of questions, and after a colon what the question needs
}

// formsFile returns the file with the forms of a set.
func (o options) formsFile() string {
	if o.forms != "" {
		return o.forms
	}

	return filepath.Join(o.dir, o.split, "forms.ndjson")
}

// readForms reads the forms of the questions, by ID. Every answerable question needs a line, so that a question which was
// forgotten is not taken for one that no form expresses.
func readForms(name string, questions []*question) (map[string]*goldForm, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()

	forms := map[string]*goldForm{}
	lines := json.NewDecoder(file)
	lines.DisallowUnknownFields()

	for {
		one := &goldForm{}
		if err := lines.Decode(one); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("line %d of %s: %w", len(forms)+1, name, err)
		}

		switch {
		case forms[one.ID] != nil:
			return nil, fmt.Errorf("%s has two lines for %s", name, one.ID)
		case (len(one.Form) == 0) == (one.None == ""), one.None == "" && one.Form[0] != '{':
			return nil, fmt.Errorf("%s: %s needs either a form, which is an object, or the reason why there is none", name, one.ID)
		}

		forms[one.ID] = one
	}

	for _, q := range questions {
		switch one := forms[q.ID]; {
		case q.Answerable && one == nil:
			return nil, fmt.Errorf("%s has no line for %s", name, q.ID)
		case !q.Answerable && one != nil:
			return nil, fmt.Errorf("%s has a line for %s, which has no answer", name, q.ID)
		}
	}

	return forms, nil
}

// reply returns the form as the reply of a model. Without a form the model refuses.
func (f *goldForm) reply() *reply {
	if f == nil || f.None != "" {
		return &reply{Outcome: "refused"}
	}

	return &reply{Outcome: "answer", Form: f.Form}
}

// formTally counts the answerable questions of a class that a form expresses. Only strict questions count.
type formTally struct {
	Answerable  int `json:"answerable"`
	Expressible int `json:"expressible"`
	Right       int `json:"right"` // of the expressible ones: the statement made from the form gives a right answer
}

// expressed are the figures about forms in a report.
type expressed struct {
	Total    *formTally            `json:"total"`
	Classes  map[string]*formTally `json:"classes"`
	Families map[string]int        `json:"families"` // questions without a form, by the family in their reason
}

// countForms returns the figures about forms, nil if the model is another one.
func (s *script) countForms(marks []mark) *expressed {
	if s == nil || s.forms == nil {
		return nil
	}

	e := &expressed{Total: &formTally{}, Classes: map[string]*formTally{}, Families: map[string]int{}}

	for _, m := range marks {
		if !m.question.Answerable || !m.question.strict() {
			continue
		}

		one := s.forms[m.question.ID]
		e.Total.add(one, m)

		for _, class := range classesOf(m.question) {
			if e.Classes[class] == nil {
				e.Classes[class] = &formTally{}
			}

			e.Classes[class].add(one, m)
		}

		if one.None != "" {
			family, _, _ := strings.Cut(one.None, ":")
			e.Families[strings.TrimSpace(family)]++
		}
	}

	return e
}

func (t *formTally) add(one *goldForm, m mark) {
	t.Answerable++

	if one.None != "" {
		return
	}

	t.Expressible++

	if m.byForm() {
		t.Right++
	}
}

// byForm reports whether a right answer comes from a form.
func (m mark) byForm() bool { return m.Verdict == right && m.Basis == api.BasisForm }

// checkForms returns an error with the questions whose form does not give a right answer.
func (s *script) checkForms(marks []mark, secret bool) error {
	var lost []string

	for _, m := range marks {
		one := s.forms[m.question.ID]
		if one == nil || one.None != "" || !m.question.strict() || m.byForm() {
			continue
		}

		lost = append(lost, strings.TrimSpace(m.question.ID+": "+string(m.Verdict)+" "+m.Failure))
	}

	switch {
	case len(lost) == 0:
		return nil
	case secret:
		return fmt.Errorf("%d forms do not give a right answer", len(lost))
	default:
		return errors.New("forms that do not give a right answer:\n" + strings.Join(lost, "\n"))
	}
}

// write prints the share of the questions that a form expresses, by class, and the families of those without a form.
func (e *expressed) write(to io.Writer) error {
	if e == nil {
		return nil
	}

	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)

	row := func(name string, t *formTally) {
		fmt.Fprintf(table, "%s\t%d\t%d\t%s\t%s\n", name, t.Answerable, t.Expressible, share(t.Expressible, t.Answerable), share(t.Right, t.Expressible))
	}

	fmt.Fprintln(table, "forms\tanswerable\texpressible\tshare\tright")
	row("all", e.Total)

	for _, class := range slices.Sorted(maps.Keys(e.Classes)) {
		row(class, e.Classes[class])
	}

	fmt.Fprintln(table)

	if len(e.Families) > 0 {
		fmt.Fprintln(table, "no form for\tquestions")

		for _, family := range slices.Sorted(maps.Keys(e.Families)) {
			fmt.Fprintf(table, "%s\t%d\n", family, e.Families[family])
		}

		fmt.Fprintln(table)
	}

	return table.Flush()
}
