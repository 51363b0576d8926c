package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/llm"
	"quern.dev/quern/internal/meaning"
	"quern.dev/quern/internal/planner"
	"quern.dev/quern/internal/query"
)

const (
	maxDatasets = 20     // that a model sees
	maxNotes    = 60_000 // bytes about all datasets together
	maxColumns  = 200    // of one dataset
	fullColumns = 40     // of one dataset that are described; the others have only names and types
	maxValues   = 30     // matches of words of the question
	fewValues   = 10     // a column with at most this many values is described by all of them
	someValues  = 3
	valueRunes  = 60

	shortestQuote = 3 // bytes; shorter values occur in almost every text
)

// surroundings is what a model sees of the data for one question. The model may see everything in it: exposure is
// decided here and nowhere else.
type surroundings struct {
	datasets []query.About
	exposure map[uuid.UUID]llm.Exposure
	others   llm.Exposure // exposure of datasets that are not in exposure
	least    llm.Exposure // lowest exposure of all datasets; limits what the model sees of results
	notes    notes
	text     string // the notes as JSON, for the prompt
	dialect  string // what statements cannot contain because of the engine of a dataset
}

// allows reports whether the model may see rows that were read from these datasets.
func (s surroundings) allows(read map[uuid.UUID]uuid.UUID) bool {
	for id := range read {
		if s.exposureOf(id) < llm.ExposeRows {
			return false
		}
	}

	return true
}

// quoted returns the reads of the datasets with a value that occurs in the text but not in the question.
func (s surroundings) quoted(asked Question, words []string) (reads []query.Read) {
	text, known := strings.ToLower(strings.Join(words, "\n")), strings.ToLower(asked.Text)

	for i, d := range s.datasets {
		if d.Profile == nil {
			continue
		}

		isQuoted := slices.ContainsFunc(s.notes.valuesOf(nameOf(asked, d.Item)), func(value string) bool {
			value = strings.ToLower(value)

			return len(value) >= shortestQuote && strings.Contains(text, value) && !strings.Contains(known, value)
		})
		if isQuoted {
			reads = append(reads, s.readOf(i))
		}
	}

	return reads
}

// notes is the description of the data in the prompt.
type notes struct {
	Datasets []datasetNote `json:"datasets"`
	Values   []valueNote   `json:"values,omitempty"`
}

type datasetNote struct {
	Name        string       `json:"name"`
	Description string       `json:"description,omitempty"`
	Row         string       `json:"row,omitempty"` // what one row is
	Rows        int64        `json:"rows"`
	Keys        [][]string   `json:"keys,omitempty"`
	Joins       []string     `json:"joins,omitempty"`
	Measures    []string     `json:"measures,omitempty"` // figures with a name
	Columns     []columnNote `json:"columns"`

	Others map[string]string `json:"others,omitempty"` // types of the columns that are not described, by name
}

// valuesOf returns the values of a dataset that the notes contain.
func (n notes) valuesOf(dataset string) (values []string) {
	for _, d := range n.Datasets {
		if d.Name != dataset {
			continue
		}

		for _, c := range d.Columns {
			for _, value := range slices.Concat(c.Values, c.Examples, []json.RawMessage{c.Min, c.Max}) {
				values = append(values, strings.Trim(string(value), `"`))
			}
		}
	}

	for _, v := range n.Values {
		if v.Dataset == dataset {
			values = append(values, v.Value)
		}
	}

	return values
}

type columnNote struct {
	Name        string            `json:"name"`
	Type        string            `json:"type"`
	Role        meaning.Role      `json:"role,omitempty"`
	Unit        string            `json:"unit,omitempty"`
	Description string            `json:"description,omitempty"`
	Values      []json.RawMessage `json:"values,omitempty"`   // all values of the column
	Examples    []json.RawMessage `json:"examples,omitempty"` // some of many values
	Min         json.RawMessage   `json:"min,omitempty"`
	Max         json.RawMessage   `json:"max,omitempty"`
	Empty       int64             `json:"empty,omitempty"` // number of rows without a value
}

// valueNote is a match: a value that words of the question may mean.
type valueNote struct {
	Words   string `json:"words"`
	Dataset string `json:"dataset"`
	Column  string `json:"column"`
	Value   string `json:"value"`
}

// surround finds the datasets that a question may be about, and collects what the model may see of them.
func surround(ctx context.Context, q *inquiry, model llm.Model) (surroundings, error) {
	chosen, err := q.choose(ctx, maxDatasets)
	if err != nil {
		return surroundings{}, err
	}

	isValued := func(item catalog.Item) bool { return model.Allowed(string(item.Exposure)) >= llm.ExposeValues }

	known, err := q.tools.Query.About(ctx, q.who, chosen, isValued)
	if err != nil {
		return surroundings{}, err
	}

	s := surroundings{datasets: known, exposure: map[uuid.UUID]llm.Exposure{}, others: model.Allowed(string(catalog.SchemaExposed)), least: llm.ExposeRows}
	s.notes.Datasets = describe(q.question, known)

	var valued []string

	for _, d := range known {
		s.exposure[d.ID] = model.Allowed(string(d.Exposure))
		s.least = min(s.least, s.exposure[d.ID])

		if isValued(d.Item) && inNamespace(q.question, d.Item) {
			valued = append(valued, d.Name)
		}
	}

	if s.notes.Values, err = q.values(ctx, valued, q.question.Text); err != nil {
		return surroundings{}, err
	}

	s.text = plainJSON(s.notes)

	if slices.ContainsFunc(s.datasets, func(d query.About) bool { return d.Engine == catalog.Trino }) {
		s.dialect = trinoPrompt
	}

	return s, nil
}

// describe returns the notes about datasets. The most likely datasets come first in known and get values and
// descriptions until maxNotes is reached; later ones are shortened or left out. The result is ordered by name, so that
// the same datasets produce the same beginning of a prompt, which providers can cache.
func describe(asked Question, known []query.About) []datasetNote {
	list, room := make([]datasetNote, 0, len(known)), maxNotes

	for _, d := range known {
		note := noteOf(asked, d)
		note.narrow(asked.Text)

		for _, shorten := range []func(){
			func() {},
			func() { note.bare() },
			func() { note.Columns, note.Others = note.Columns[:min(len(note.Columns), maxColumns/10)], nil },
		} {
			shorten()

			if size := sizeOf(note); size <= room {
				room -= size
				list = append(list, note)

				break
			}
		}
	}

	slices.SortFunc(list, func(a, b datasetNote) int { return cmp.Compare(a.Name, b.Name) })

	return list
}

func sizeOf(note datasetNote) int { return len(plainJSON(note)) }

// narrow describes only the columns that the question most likely needs: those whose names have words of the question, those
// with a value that it contains, keys and joins, dates, and then the first ones. Of the others only names and types stay.
func (d *datasetNote) narrow(question string) {
	if len(d.Columns) <= fullColumns {
		return
	}

	names := make([]string, len(d.Columns))
	for i, c := range d.Columns {
		names[i] = c.Name
	}

	named, kept := planner.Named(question, names), map[string]bool{}

	for _, isWanted := range []func(int) bool{
		func(i int) bool { return named[i] > 1 },
		func(i int) bool { return d.Columns[i].isSaid(question) },
		func(i int) bool { return d.isLinked(names[i]) },
		func(i int) bool { return named[i] > 0 },
		func(i int) bool { return d.Columns[i].Role == meaning.Date },
		func(int) bool { return true },
	} {
		for i, name := range names {
			if len(kept) < fullColumns && isWanted(i) {
				kept[name] = true
			}
		}
	}

	d.Others = map[string]string{}

	d.Columns = slices.DeleteFunc(d.Columns, func(c columnNote) bool {
		if !kept[c.Name] {
			d.Others[c.Name] = c.Type
		}

		return !kept[c.Name]
	})
}

// isSaid reports whether the question contains one of the values of a column.
func (c *columnNote) isSaid(question string) bool {
	question = strings.ToLower(question)

	return slices.ContainsFunc(c.Values, func(value json.RawMessage) bool {
		text := strings.ToLower(strings.Trim(string(value), `"`))

		return len(text) >= shortestQuote && strings.Contains(question, text)
	})
}

// isLinked reports whether a column is part of a key or a join.
func (d *datasetNote) isLinked(name string) bool {
	return slices.ContainsFunc(d.Keys, func(key []string) bool { return slices.Contains(key, name) }) ||
		slices.ContainsFunc(d.Joins, func(join string) bool { return strings.HasPrefix(join, strconv.Quote(name)+" = ") })
}

// bare removes everything but the names and types of columns and a short description.
func (d *datasetNote) bare() {
	d.Description, d.Measures = cut(d.Description, valueRunes), nil

	for i, c := range d.Columns {
		d.Columns[i] = columnNote{Name: c.Name, Type: c.Type}
	}
}

func noteOf(asked Question, d query.About) datasetNote {
	note := datasetNote{Name: nameOf(asked, d.Item), Description: d.Definition.DataDescription, Row: d.Meaning.Row, Rows: d.RowCount, Columns: []columnNote{}}
	profiles := map[string]query.ColumnProfile{}

	note.Keys = keysOf(d)

	if d.Profile != nil {
		for _, c := range d.Profile.Columns {
			profiles[c.Name] = c
		}

		for _, j := range d.Profile.Joins {
			note.Joins = append(note.Joins, fmt.Sprintf("%q = %q.%q", j.Column, nameOf(asked, j.With), j.To))
		}
	}

	for _, m := range d.Meaning.Measures {
		note.Measures = append(note.Measures, fmt.Sprintf("%s = %s(%s)", strings.Join(append([]string{m.Name}, m.Synonyms...), ", "), m.Function, m.Expression))
	}

	for _, c := range d.Columns[:min(len(d.Columns), maxColumns)] {
		means := d.Meaning.Columns[c.Name]
		one := columnNote{Name: c.Name, Type: c.Type, Role: means.Role, Unit: means.Unit, Description: d.Definition.SchemaDefinition[c.Name]}

		if p, ok := profiles[c.Name]; ok {
			one.fill(p)
		}

		note.Columns = append(note.Columns, one)
	}

	return note
}

// keysOf returns the keys of a dataset, without those of the profile that have figures: different prices are not a key, even if none occurs
// twice.
func keysOf(d query.About) (keys [][]string) {
	for _, key := range d.Keys() {
		if d.Key.Has(key) || !slices.ContainsFunc(key, func(name string) bool { return d.Meaning.Columns[name].Role.IsFigure() }) {
			keys = append(keys, key)
		}
	}

	return keys
}

func (c *columnNote) fill(p query.ColumnProfile) {
	c.Empty = p.Nulls

	if p.DistinctExact && p.Distinct <= fewValues && len(p.TopValues) == int(p.Distinct) {
		for _, top := range p.TopValues {
			c.Values = append(c.Values, cutValue(top.Value))
		}

		return
	}

	for _, example := range p.Examples[:min(len(p.Examples), someValues)] {
		c.Examples = append(c.Examples, cutValue(example))
	}

	if p.Shortest == nil { // the column is not text
		c.Min, c.Max = cutValue(p.Min), cutValue(p.Max)
	}
}

// cutValue shortens a long text value.
func cutValue(value json.RawMessage) json.RawMessage {
	var text string
	if len(value) <= valueRunes || json.Unmarshal(value, &text) != nil {
		return value
	}

	short, _ := json.Marshal(cut(text, valueRunes)) //nolint:errchkjson // a string

	return short
}

// cut returns a text that is longer than length runes as its beginning and an ellipsis.
func cut(text string, length int) string {
	runes := []rune(text)
	if len(runes) <= length {
		return text
	}

	return string(runes[:length-1]) + "…"
}
