package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/llm"
	"quern.dev/quern/internal/query"
)

const (
	maxDatasets = 20     // that a model is told of
	maxNotes    = 60_000 // bytes about all of them
	maxColumns  = 200    // of one
	maxValues   = 30     // that words of the question may mean
	fewValues   = 10     // of a column are all told
	someValues  = 3
	valueRunes  = 60

	shortestQuote = 3 // bytes; what is shorter is in every text
)

// surroundings is what a model is told of the data for one question. Whatever is in it the model may see: exposure is
// decided here and nowhere else.
type surroundings struct {
	datasets []query.About
	exposure map[uuid.UUID]llm.Exposure
	others   llm.Exposure // of datasets that are not among them
	least    llm.Exposure // that holds for all datasets: more must not be said of results
	told     notes
	notes    string
}

// allows tells whether the model may see rows that were made of these datasets.
func (s surroundings) allows(read map[uuid.UUID]uuid.UUID) bool {
	for id := range read {
		exposure, known := s.exposure[id]
		if !known {
			exposure = s.others
		}

		if exposure < llm.ExposeRows {
			return false
		}
	}

	return true
}

// quoted are the datasets of which words have a value that the asker did not say.
func (s surroundings) quoted(asked Question, words []string) (reads []query.Read) {
	text, known := strings.ToLower(strings.Join(words, "\n")), strings.ToLower(asked.Text)

	for _, d := range s.datasets {
		if d.Profile == nil {
			continue
		}

		isQuoted := slices.ContainsFunc(s.told.valuesOf(nameOf(asked, d.Item)), func(value string) bool {
			value = strings.ToLower(value)

			return len(value) >= shortestQuote && strings.Contains(text, value) && !strings.Contains(known, value)
		})
		if isQuoted {
			seconds, nanoseconds := d.SnapshotID.Time().UnixTime()
			reads = append(reads, query.Read{
				Account: d.Account, ID: d.ID, Dataset: d.Owner + "/" + d.Namespace + "/" + d.Name, Snapshot: d.SnapshotID,
				CommittedAt: time.Unix(seconds, nanoseconds).UTC(),
			})
		}
	}

	return reads
}

// notes is what goes out.
type notes struct {
	Datasets []datasetNote `json:"datasets"`
	Values   []valueNote   `json:"values,omitempty"`
}

type datasetNote struct {
	Name        string       `json:"name"`
	Description string       `json:"description,omitempty"`
	Rows        int64        `json:"rows"`
	Keys        [][]string   `json:"keys,omitempty"`
	Joins       []string     `json:"joins,omitempty"`
	Columns     []columnNote `json:"columns"`
}

// valuesOf are the values of a dataset that are told.
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
	Description string            `json:"description,omitempty"`
	Values      []json.RawMessage `json:"values,omitempty"`   // all that there are
	Examples    []json.RawMessage `json:"examples,omitempty"` // some of many
	Min         json.RawMessage   `json:"min,omitempty"`
	Max         json.RawMessage   `json:"max,omitempty"`
	Empty       int64             `json:"empty,omitempty"` // rows
}

// valueNote is a value that words of the question may mean.
type valueNote struct {
	Words   string `json:"words"`
	Dataset string `json:"dataset"`
	Column  string `json:"column"`
	Value   string `json:"value"`
}

// allowed is how much a model may see of a dataset: what the operator lets it see, or less if the owner says so.
func allowed(model llm.Model, set catalog.Exposure) llm.Exposure {
	if model.Local {
		return llm.ExposeRows
	}

	switch set {
	case catalog.SchemaExposed:
		return llm.ExposeSchema
	case catalog.ValuesExposed:
		return min(model.Exposure, llm.ExposeValues)
	default:
		return model.Exposure
	}
}

// surround finds the datasets that a question may be about, and what is known of them.
func (a NL2QL) surround(ctx context.Context, who auth.Principal, asked Question, model llm.Model) (surroundings, error) {
	chosen, err := a.choose(ctx, who, asked, maxDatasets)
	if err != nil {
		return surroundings{}, err
	}

	isValued := func(item catalog.Item) bool { return allowed(model, item.Exposure) >= llm.ExposeValues }

	known, err := a.Query.About(ctx, who, chosen, isValued)
	if err != nil {
		return surroundings{}, err
	}

	s := surroundings{datasets: known, exposure: map[uuid.UUID]llm.Exposure{}, others: allowed(model, catalog.SchemaExposed), least: llm.ExposeRows}
	s.told.Datasets = describe(asked, known)

	var valued []string

	for _, d := range known {
		s.exposure[d.ID] = allowed(model, d.Exposure)
		s.least = min(s.least, s.exposure[d.ID])

		if isValued(d.Item) && inNamespace(asked, d.Item) {
			valued = append(valued, d.Name)
		}
	}

	if s.told.Values, err = a.values(ctx, who, asked, valued, asked.Text); err != nil {
		return surroundings{}, err
	}

	content, err := json.Marshal(s.told)
	s.notes = string(content)

	return s, err
}

// choose takes at most so many datasets: those that the asker named, all of a small namespace, or those that the words
// of the question find.
func (a NL2QL) choose(ctx context.Context, who auth.Principal, asked Question, most int) (chosen []catalog.Item, err error) {
	at := asked.path()

	for _, name := range asked.Datasets[:min(len(asked.Datasets), most)] {
		one, err := a.Catalog.Describe(ctx, who, at.Named(name))
		if err != nil {
			return nil, err
		}

		chosen = append(chosen, catalog.Item{Dataset: one.Dataset, Owner: one.Owner})
	}

	if len(chosen) > 0 {
		return chosen, nil
	}

	first, next, err := a.Catalog.Datasets(ctx, who, at, uuid.Nil, most)
	if err != nil || next == uuid.Nil {
		return first, err
	}

	words := asked.Text
	if before := len(asked.Earlier); before > 0 {
		words += " " + asked.Earlier[before-1].Question // "and in the south?"
	}

	found, _, err := a.Catalog.Search(ctx, who, catalog.Search{Words: words, In: at, Limit: most})
	if len(found) == 0 {
		found = first
	}

	return found, err
}

func (q Question) path() catalog.Path {
	return catalog.Path{Username: q.Username, Namespace: q.Namespace}
}

func inNamespace(asked Question, d catalog.Item) bool {
	return strings.EqualFold(d.Namespace, asked.Namespace) && (asked.Username == "self" || strings.EqualFold(d.Owner, asked.Username))
}

// nameOf is a dataset's name in statements.
func nameOf(asked Question, d catalog.Item) string {
	if inNamespace(asked, d) {
		return d.Name
	}

	return d.Owner + "/" + d.Namespace + "/" + d.Name
}

// values finds text among the values of datasets.
func (a NL2QL) values(ctx context.Context, who auth.Principal, asked Question, datasets []string, text string) ([]valueNote, error) {
	if len(datasets) == 0 {
		return nil, nil
	}

	linked, err := a.Query.Link(ctx, who, query.LinkRequest{Username: asked.Username, Namespace: asked.Namespace, Datasets: datasets, Question: text})
	found := make([]valueNote, 0, maxValues)

	for _, l := range linked.Links[:min(len(linked.Links), maxValues)] {
		found = append(found, valueNote{Words: text[l.Start:l.End], Dataset: l.Dataset, Column: l.Column, Value: l.Value})
	}

	return found, err
}

// describe writes the notes, the most likely datasets first as long as there is room for values and descriptions, and
// orders them by name: the same datasets give the same beginning of a prompt.
func describe(asked Question, known []query.About) []datasetNote {
	list, room := make([]datasetNote, 0, len(known)), maxNotes

	for _, d := range known {
		note := noteOf(asked, d)

		for _, shorten := range []func(){
			func() {},
			func() { note.bare() },
			func() { note.Columns = note.Columns[:min(len(note.Columns), maxColumns/10)] },
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

func sizeOf(note datasetNote) int {
	content, _ := json.Marshal(note) //nolint:errchkjson // it was made from JSON

	return len(content)
}

// bare leaves names and types.
func (d *datasetNote) bare() {
	d.Description = cut(d.Description, valueRunes)

	for i, c := range d.Columns {
		d.Columns[i] = columnNote{Name: c.Name, Type: c.Type}
	}
}

func noteOf(asked Question, d query.About) datasetNote {
	note := datasetNote{Name: nameOf(asked, d.Item), Description: d.Definition.DataDescription, Rows: d.RowCount, Columns: []columnNote{}}
	profiles := map[string]query.ColumnProfile{}

	if d.Profile != nil {
		note.Keys = d.Profile.Keys

		for _, c := range d.Profile.Columns {
			profiles[c.Name] = c
		}

		for _, j := range d.Profile.Joins {
			note.Joins = append(note.Joins, fmt.Sprintf("%q = %q.%q", j.Column, nameOf(asked, j.With), j.To))
		}
	}

	for _, c := range d.Columns[:min(len(d.Columns), maxColumns)] {
		one := columnNote{Name: c.Name, Type: c.Type, Description: d.Definition.SchemaDefinition[c.Name]}

		if p, ok := profiles[c.Name]; ok {
			one.fill(p)
		}

		note.Columns = append(note.Columns, one)
	}

	return note
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

	if p.Shortest == nil { // no text
		c.Min, c.Max = cutValue(p.Min), cutValue(p.Max)
	}
}

// cutValue shortens a long text.
func cutValue(value json.RawMessage) json.RawMessage {
	var text string
	if len(value) <= valueRunes || json.Unmarshal(value, &text) != nil {
		return value
	}

	short, _ := json.Marshal(cut(text, valueRunes)) //nolint:errchkjson // a string

	return short
}

// cut keeps the beginning of a text that is too long.
func cut(text string, length int) string {
	runes := []rune(text)
	if len(runes) <= length {
		return text
	}

	return string(runes[:length-1]) + "…"
}
