package exchange

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/meaning"
	"quern.dev/quern/internal/query"
	"quern.dev/quern/internal/verified"
)

// Exchange writes and reads documents.
type Exchange struct {
	Catalog  catalog.Catalog
	Query    *query.Query
	Verified *verified.Verified
}

// pageSize is how many datasets or verified questions are read at once.
const pageSize = 200

// Export returns a document with what people said about the datasets of a namespace that the caller may see, and with the
// verified questions of which the caller may read all datasets.
//
// Faults: NotFound; LimitExceeded if the document would be too large.
func (x Exchange) Export(ctx context.Context, who auth.Principal, at catalog.Path) (string, error) {
	items, err := x.items(ctx, who, at)
	if err != nil {
		return "", err
	}

	w := writer{names: map[string]int{}}

	for page := range slices.Chunk(items, pageSize) {
		found, err := x.Query.Said(ctx, who, page)
		if err != nil {
			return "", err
		}

		for _, item := range page {
			if err := w.dataset(item, found[item.ID]); err != nil {
				return "", err
			}
		}
	}

	made := document{Version: version, Models: []model{}}

	if len(items) > 0 { // a model without datasets is not valid
		w.keys()
		w.model.Name = items[0].Namespace

		if err := x.questions(ctx, who, at, &w.model); err != nil {
			return "", err
		}

		made.Models = append(made.Models, w.model)
	}

	text, err := made.text()
	if err == nil && len(text) > MaxDocument {
		err = fault.New(fault.LimitExceeded, fmt.Sprintf("The document would have more than %d bytes. Move datasets to other namespaces, or export with a token for some of them.", MaxDocument))
	}

	return text, err
}

// items returns the datasets of a namespace that the caller may see, by name.
func (x Exchange) items(ctx context.Context, who auth.Principal, at catalog.Path) (list []catalog.Item, err error) {
	const most = 2000

	for next := uuid.Nil; ; {
		var page []catalog.Item
		if page, next, err = x.Catalog.Datasets(ctx, who, at, next, pageSize); err != nil {
			return nil, err
		}

		if list = append(list, page...); len(list) > most {
			return nil, fault.New(fault.LimitExceeded, fmt.Sprintf("The namespace has more than %d datasets.", most))
		}

		if next == uuid.Nil {
			break
		}
	}

	slices.SortFunc(list, func(a, b catalog.Item) int { return strings.Compare(a.Name, b.Name) })

	return list, nil
}

// questions adds the verified questions that are in use.
func (x Exchange) questions(ctx context.Context, who auth.Principal, at catalog.Path, to *model) error {
	list, err := x.inUse(ctx, who, at)
	if err != nil || len(list) == 0 {
		return err
	}

	var ext modelExtension

	for _, one := range list {
		content := one.Content
		content.Imported = false
		ext.Verified = append(ext.Verified, content)
		to.Context.Examples = append(to.Context.Examples, example(one.Content))
	}

	to.Extensions, err = extended(ext)

	return err
}

// example returns a question with the defaults of its parameters.
func example(of verified.Content) string {
	text := of.Question
	for _, p := range of.Parameters {
		text = strings.ReplaceAll(text, "$"+p.Name, p.Default)
	}

	return text
}

// inUse returns the verified questions of a namespace that the caller may see and that are not suspended, by question.
func (x Exchange) inUse(ctx context.Context, who auth.Principal, at catalog.Path) (list []verified.Question, err error) {
	for next := uuid.Nil; ; {
		var page []verified.Question
		if page, next, err = x.Verified.List(ctx, who, at, verified.Active, next, pageSize); err != nil {
			return nil, err
		}

		if list = append(list, page...); next == uuid.Nil {
			break
		}
	}

	slices.SortFunc(list, func(a, b verified.Question) int {
		if order := strings.Compare(a.Question, b.Question); order != 0 {
			return order
		}

		return strings.Compare(a.ID.String(), b.ID.String())
	})

	return list, nil
}

// writer collects a model.
type writer struct {
	model model
	names map[string]int // of metrics and relationships, in lower case: how often each was wanted
}

func (w *writer) dataset(item catalog.Item, said query.Said) error {
	one := dataset{
		Name: item.Name, Source: item.Owner + "." + item.Namespace + "." + item.Name, Description: said.Definition.DataDescription,
	}

	ext := datasetExtension{Row: said.Saved.Row}
	if ext.Row != "" {
		one.Context.Instructions = "Each row is one " + ext.Row + "."
	}

	for _, c := range item.Columns {
		added, err := fieldOf(c, said)
		if err != nil {
			return err
		}

		one.Fields = append(one.Fields, added)
	}

	for _, j := range said.Saved.RejectedJoins {
		ext.RejectedJoins = append(ext.RejectedJoins, rejectedJoin{j.Columns, j.To, j.Keys})
	}

	for _, m := range said.Saved.RejectedMeasures {
		ext.RejectedMeasures = append(ext.RejectedMeasures, rejected{m.Name, m.Function, m.Expression})
	}

	if !ext.isEmpty() {
		var err error
		if one.Extensions, err = extended(ext); err != nil {
			return err
		}
	}

	w.model.Datasets = append(w.model.Datasets, one)

	for _, j := range said.Saved.Joins {
		w.model.Relationships = append(w.model.Relationships, relationship{
			Name: w.unique(item.Name + "_" + strings.Join(j.Columns, "_")), From: item.Name, To: j.To, FromColumns: j.Columns, ToColumns: j.Keys,
		})
	}

	return w.measures(item, said.Saved)
}

func (w *writer) measures(item catalog.Item, said meaning.Saved) error {
	for _, m := range said.Measures {
		text, err := sql(m, item.Name, func(joined string) string { return targetOf(said.Joins, joined) })
		if err != nil {
			return err
		}

		ext := metricExtension{Dataset: item.Name, Unit: m.Unit}
		one := metric{Name: w.unique(m.Name), Expression: in(text), Context: aiContext{Synonyms: m.Synonyms}}

		if m.Unit != "" {
			one.Context.Instructions = "The unit is " + m.Unit + "."
		}

		if one.Name != m.Name {
			ext.Name = m.Name
		}

		if one.Extensions, err = extended(ext); err != nil {
			return err
		}

		w.model.Metrics = append(w.model.Metrics, one)
	}

	return nil
}

// unique returns a name that no other metric or relationship has.
func (w *writer) unique(name string) string {
	for wanted := name; ; {
		key := strings.ToLower(name)
		if w.names[key]++; w.names[key] == 1 {
			return name
		}

		name = wanted + "_" + strconv.Itoa(w.names[key])
	}
}

// targetOf returns the name of a joined dataset in the document, which is the name in its join.
func targetOf(joins []meaning.Join, name string) string {
	for _, j := range joins {
		if strings.EqualFold(j.To, name) {
			return j.To
		}
	}

	for _, j := range joins {
		if strings.EqualFold(j.To[strings.LastIndexByte(j.To, '/')+1:], name) {
			return j.To
		}
	}

	return name
}

// keys adds the datasets that only joins name, and the keys of all joined datasets.
func (w *writer) keys() {
	for _, r := range w.model.Relationships {
		n := slices.IndexFunc(w.model.Datasets, func(d dataset) bool { return strings.EqualFold(d.Name, r.To) })
		if n < 0 {
			n = len(w.model.Datasets)
			w.model.Datasets = append(w.model.Datasets, dataset{Name: r.To, Source: strings.ReplaceAll(r.To, "/", ".")})
		}

		d := &w.model.Datasets[n]
		if !slices.ContainsFunc(d.UniqueKeys, func(key []string) bool { return slices.Equal(key, r.ToColumns) }) {
			d.UniqueKeys = append(d.UniqueKeys, r.ToColumns)
		}
	}
}

// fieldOf returns a column with what people said about it.
func fieldOf(c catalog.Column, said query.Said) (field, error) {
	one := field{Name: c.Name, Expression: in(meaning.Ref{Column: c.Name}.String()), Description: said.Definition.SchemaDefinition[c.Name]}
	if isTime(c.Type) {
		one.Dimension = &dimension{IsTime: true}
	}

	column, isSaid := said.Saved.Columns[c.Name]
	if !isSaid {
		return one, nil
	}

	if one.Dimension = nil; column.Role == meaning.Date || column.Role == meaning.Year || isTime(c.Type) {
		one.Dimension = &dimension{IsTime: column.Role == meaning.Date || column.Role == meaning.Year}
	}

	one.Context = aiContext{Instructions: instructions(column), Synonyms: column.Synonyms}

	var err error
	one.Extensions, err = extended(fieldExtension{column.Role, column.Unit, column.NotForFigures})

	return one, err
}

func isTime(kind string) bool {
	return kind == "date" || strings.HasPrefix(kind, "timestamp")
}

// instructions says in words what other tools cannot read from the role.
func instructions(c meaning.Column) (text string) {
	switch {
	case c.NotForFigures || !c.Role.IsFigure():
	case c.Role == meaning.Balance:
		text = "Add it up over things, never over time."
	case c.Role.Adds():
		text = "It can be added up."
	case c.Role == meaning.Price || c.Role == meaning.Share:
		text = "Average it, never add it up."
	}

	if c.Unit != "" {
		text = strings.TrimSpace(text + " The unit is " + c.Unit + ".")
	}

	return text
}
