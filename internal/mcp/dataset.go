package mcp

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/meaning"
	"quern.dev/quern/internal/query"
)

const (
	pageDatasets   = 50
	maxDescription = 500 // characters of a description in a list
	maxWords       = 200 // characters of a search
)

type listedDatasets struct {
	Datasets   []listedDataset `json:"datasets"`
	NextCursor string          `json:"nextCursor,omitempty"`
	Hint       string          `json:"hint,omitempty"`
}

type listedDataset struct {
	Dataset     string `json:"dataset"`
	Description string `json:"description,omitempty"`
	RowCount    int64  `json:"rowCount"`
	ColumnCount int    `json:"columnCount"`
}

// listDatasets lists or searches datasets. If a page is too large it reads a shorter one, so that its cursor is right.
func (s *Server) listDatasets(call *invocation) (any, error) {
	in, search := call.args.namespace(), strings.TrimSpace(call.args.text("search", maxWords))
	if err := call.args.check(); err != nil {
		return nil, err
	}

	limit := pageDatasets

	for {
		found, next, err := s.datasets(call, in, search, limit)
		if err != nil {
			return nil, absent(err, "There is no such namespace that you can see. Call list_datasets without a namespace.")
		}

		page, left := listedDatasets{Datasets: []listedDataset{}, NextCursor: next}, newBudget()

		for _, d := range found {
			text, _ := shorten(d.DataDescription, maxDescription)

			one := listedDataset{Dataset: pathOf(d.Owner, d.Namespace, d.Name), Description: text, RowCount: d.RowCount, ColumnCount: len(d.Columns)}
			if !left.take(one) {
				break
			}

			page.Datasets = append(page.Datasets, one)
		}

		if len(page.Datasets) < len(found) {
			limit = len(page.Datasets)

			continue
		}

		if len(found) == 0 {
			page.Hint = "Nothing was found. What is not shared with you is not listed."
		}

		return page, nil
	}
}

// datasets returns a page, and the cursor of the next one.
func (s *Server) datasets(call *invocation, in catalog.Path, search string, limit int) (found []catalog.Item, cursor string, err error) {
	var next any

	switch {
	case search != "":
		var place catalog.Rank
		if err := call.position(&place); err != nil {
			return nil, "", err
		}

		page, after, err := s.Catalog.Search(call, call.who, catalog.Search{Words: search, In: in, After: place, Limit: limit})
		if err != nil {
			return nil, "", err
		}

		if found = page; after != nil {
			next = after
		}
	case in != catalog.Path{}:
		var place uuid.UUID
		if err := call.position(&place); err != nil {
			return nil, "", err
		}

		page, after, err := s.Catalog.Datasets(call, call.who, in, place, limit)
		if err != nil {
			return nil, "", err
		}

		if found = page; after != uuid.Nil {
			next = after
		}
	default:
		var place catalog.Position
		if err := call.position(&place); err != nil {
			return nil, "", err
		}

		page, after, err := s.Catalog.All(call, call.who, place, limit)
		if err != nil {
			return nil, "", err
		}

		if found = page; after != nil {
			next = after
		}
	}

	if next != nil {
		cursor, err = call.cursor(next)
	}

	return found, cursor, err
}

func pathOf(owner, namespace, name string) string { return owner + "/" + namespace + "/" + name }

type describedDataset struct {
	Dataset     string            `json:"dataset"`
	SQLName     string            `json:"sqlName"`
	Description string            `json:"description,omitempty"`
	RowCount    int64             `json:"rowCount"`
	Row         string            `json:"row,omitempty"`
	Columns     []describedColumn `json:"columns"`
	Keys        [][]string        `json:"keys,omitempty"`
	Joins       []describedJoin   `json:"joins,omitempty"`
	Measures    []measure         `json:"measures,omitempty"`
	Sample      *table            `json:"sample,omitempty"`
	Hint        string            `json:"hint,omitempty"`
}

type describedColumn struct {
	Name        string            `json:"name"`
	Type        string            `json:"type"`
	Description string            `json:"description,omitempty"`
	Role        meaning.Role      `json:"role,omitempty"`
	Unit        string            `json:"unit,omitempty"`
	Nulls       int64             `json:"nulls,omitempty"`
	Distinct    int64             `json:"distinct,omitempty"`
	Min         json.RawMessage   `json:"min,omitempty"`
	Max         json.RawMessage   `json:"max,omitempty"`
	Values      []json.RawMessage `json:"values,omitempty"` // the most frequent ones
}

type describedJoin struct {
	Columns []string `json:"columns"`
	To      string   `json:"to"`
	Keys    []string `json:"keys"`
}

type measure struct {
	Name       string `json:"name"`
	Function   string `json:"function"`
	Expression string `json:"expression"`
	Unit       string `json:"unit,omitempty"`
}

const (
	sampleRows   = 3
	shownValues  = 5
	shownLists   = 20  // keys, joins and measures
	maxValue     = 80  // bytes of a value of a profile
	maxText      = 300 // bytes of the description of a column
	forRows      = 10_000
	maxParagraph = 4_000
)

func (s *Server) describeDataset(call *invocation) (any, error) {
	at := call.args.dataset("dataset")
	if err := call.args.check(); err != nil {
		return nil, err
	}

	return s.describe(call, at)
}

func (s *Server) describe(call *invocation, at catalog.Path) (describedDataset, error) {
	found, err := s.Catalog.Describe(call, call.who, at)
	if err != nil {
		return describedDataset{}, absent(err, "There is no such dataset that you can see. Call list_datasets to see the names.")
	}

	about, err := s.Query.About(call, call.who, []catalog.Item{{Dataset: found.Dataset, Owner: found.Owner}}, func(catalog.Item) bool { return true })
	if err != nil {
		return describedDataset{}, err
	}

	if len(about) == 0 { // access ended meanwhile
		return describedDataset{}, fault.New(fault.NotFound, "There is no such dataset that you can see. Call list_datasets to see the names.")
	}

	left := newBudget()
	shown := describedDataset{
		Dataset: pathOf(found.Owner, found.Namespace, found.Name), SQLName: sqlName(found), RowCount: found.RowCount,
		Description: left.text(found.Definition.DataDescription, maxParagraph), Row: left.text(about[0].Meaning.Row, maxText), Columns: []describedColumn{},
	}

	left.left -= forRows
	shown.addMeaning(about[0], left)
	shown.addColumns(about[0], left)
	left.left += forRows

	return shown, s.addSample(call, at, &shown, left)
}

// sqlName returns the name of a dataset in statements.
func sqlName(d catalog.Description) string {
	quote := func(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

	return quote(d.Owner) + "." + quote(d.Namespace) + "." + quote(d.Name)
}

func (d *describedDataset) addColumns(about query.About, left *budget) {
	profiles := map[string]query.ColumnProfile{}

	if about.Profile != nil {
		for _, p := range about.Profile.Columns {
			profiles[p.Name] = p
		}
	}

	for _, c := range about.Columns {
		means, profile := about.Meaning.Columns[c.Name], profiles[c.Name]
		one := describedColumn{
			Name: c.Name, Type: c.Type, Description: clip(about.Definition.SchemaDefinition[c.Name], maxText), Role: means.Role, Unit: clip(means.Unit, maxValue),
			Nulls: profile.Nulls, Distinct: profile.Distinct, Min: small(profile.Min), Max: small(profile.Max),
		}

		for _, top := range profile.TopValues[:min(len(profile.TopValues), shownValues)] {
			if value := small(top.Value); value != nil {
				one.Values = append(one.Values, value)
			}
		}

		if len(d.Columns) == maxColumns || !left.take(one) {
			d.Hint = fmt.Sprintf("%d of %d columns are not shown; SELECT column_name, data_type FROM information_schema.columns lists all.",
				len(about.Columns)-len(d.Columns), len(about.Columns))

			return
		}

		d.Columns = append(d.Columns, one)
	}
}

// small returns a value that is not too long to show, else nil.
func small(value json.RawMessage) json.RawMessage {
	if len(value) == 0 || len(value) > maxValue {
		return nil
	}

	short, _, err := cutCell(value, maxValue)
	if err != nil {
		return nil
	}

	return short
}

func (d *describedDataset) addMeaning(about query.About, left *budget) {
	for _, j := range about.Meaning.Joins[:min(len(about.Meaning.Joins), shownLists)] {
		if one := (describedJoin{j.Columns, j.To, j.Keys}); left.take(one) {
			d.Joins = append(d.Joins, one)
		}
	}

	for _, m := range about.Meaning.Measures[:min(len(about.Meaning.Measures), shownLists)] {
		if one := (measure{m.Name, m.Function, m.Expression, m.Unit}); left.take(one) {
			d.Measures = append(d.Measures, one)
		}
	}

	keys := about.Keys()

	for _, key := range keys[:min(len(keys), shownLists)] {
		if left.take(key) {
			d.Keys = append(d.Keys, key)
		}
	}
}

// addSample adds the first rows, of the columns that are shown.
func (s *Server) addSample(call *invocation, at catalog.Path, d *describedDataset, left *budget) error {
	if d.RowCount == 0 || len(d.Columns) == 0 {
		return nil
	}

	page := query.Page{Limit: sampleRows}
	for _, c := range d.Columns {
		page.Columns = append(page.Columns, c.Name)
	}

	sample, _, err := s.browse(call, at, page, left)
	if err != nil {
		return err
	}

	d.Sample = sample
	d.Hint = strings.TrimSpace(d.Hint + " " + sample.hint())

	return nil
}
