package form

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Limits of a form that is read from text.
const (
	maxText  = 20_000 // bytes
	maxDepth = 24     // nested objects and lists
)

// Parse reads a form that somebody else filled. Unknown members are an error, because what they ask for would be lost.
func Parse(text string) (f Form, err error) {
	if len(text) > maxText {
		return Form{}, fmt.Errorf("the form is longer than %d bytes", maxText)
	}

	if depth(text) > maxDepth {
		return Form{}, errors.New("the form is nested too deep")
	}

	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	decoder.UseNumber()

	if err := decoder.Decode(&f); err != nil {
		return Form{}, fmt.Errorf("the form cannot be read: %w", err)
	}

	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Form{}, errors.New("the form is followed by something else")
	}

	return f, nil
}

// depth returns how deep brackets are nested at most, those in texts included.
func depth(text string) (deepest int) {
	open := 0

	for _, r := range text {
		switch r {
		case '{', '[':
			open++
			deepest = max(deepest, open)
		case '}', ']':
			open--
		}
	}

	return deepest
}

// UnmarshalJSON accepts a day as well as a moment.
func (p *Period) UnmarshalJSON(content []byte) error {
	var plain struct {
		From string `json:"from"`
		To   string `json:"to"`
		Text string `json:"text"`
	}

	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()

	if err := decoder.Decode(&plain); err != nil {
		return err
	}

	var failed error

	moment := func(text string) time.Time {
		if text == "" {
			return time.Time{}
		}

		at, err := time.Parse(time.DateOnly, text)
		if err != nil {
			if at, err = time.Parse(time.RFC3339, text); err != nil {
				failed = errors.New("a period has days as YYYY-MM-DD")
			}
		}

		return at
	}

	*p = Period{From: moment(plain.From), To: moment(plain.To), Text: plain.Text}

	return failed
}

// Same reports whether two forms ask for the same: names of figures, texts of periods and the order of conditions do not
// matter. Two forms that differ may still have the same result.
func (f Form) Same(other Form) bool {
	a, errA := json.Marshal(f.canonical())
	b, errB := json.Marshal(other.canonical())

	return errA == nil && errB == nil && bytes.Equal(a, b)
}

func (f Form) canonical() Form {
	f.Measures, f.Groups, f.Having, f.Show = slices.Clone(f.Measures), slices.Clone(f.Groups), slices.Clone(f.Having), slices.Clone(f.Show)
	home := f.Dataset

	for i := range f.Measures {
		f.Measures[i] = f.Measures[i].canonical(home)
	}

	for i := range f.Groups {
		f.Groups[i].Column, f.Groups[i].Key = f.Groups[i].canonical(home), nil
	}

	for i := range f.Show {
		f.Show[i] = f.Show[i].canonical(home)
	}

	for i := range f.Having {
		f.Having[i].Measure = f.Having[i].Measure.canonical(home)

		if f.Having[i].Other != nil {
			f.Having[i].Other = new(f.Having[i].Other.canonical(home))
		}
	}

	if f.Order != nil && f.Order.Column != nil {
		order := *f.Order
		order.Column = new(f.Order.Column.canonical(home))
		f.Order = &order
	}

	f.Where = canonical(f.Where, home)

	return f
}

func (c Column) canonical(home string) Column {
	c.Dataset = cmp.Or(c.Dataset, home)

	return c
}

func (t Term) canonical(home string) Term {
	if t.Op == "" {
		t.Column = t.Column.canonical(home)
	}

	t.Args = slices.Clone(t.Args)
	for i := range t.Args {
		t.Args[i] = t.Args[i].canonical(home)
	}

	return t
}

func (m Measure) canonical(home string) Measure {
	m.Name, m.Dataset = "", cmp.Or(m.Dataset, home)

	if m.Of != nil {
		m.Of = new(m.Of.canonical(m.Dataset))
	}

	if m.Per != nil {
		m.Per = new(m.Per.canonical(home))
	}

	if m.Less != nil {
		m.Less = new(m.Less.canonical(home))
	}

	m.Where = canonical(m.Where, m.Dataset)

	return m
}

func canonical(list []Condition, home string) []Condition {
	list = slices.Clone(list)
	texts := map[string]Condition{}
	keys := make([]string, len(list))

	for i, c := range list {
		c.Column = c.canonical(home)

		if c.Period != nil {
			c.Period = &Period{From: c.Period.From, To: c.Period.To}
		}

		if c.Other != nil {
			c.Other = new(c.Other.canonical(home))
		}

		if c.Rows != nil {
			c.Rows = &Rows{Dataset: c.Rows.Dataset, Via: c.Rows.Via, Where: canonical(c.Rows.Where, c.Rows.Dataset)}
		}

		content, _ := json.Marshal(c) //nolint:errchkjson // a value that cannot be written is the same as none
		keys[i] = string(content)
		texts[keys[i]] = c
	}

	slices.Sort(keys)

	for i, key := range keys {
		list[i] = texts[key]
	}

	return list
}
