package exchange

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/meaning"
)

// said is what a document says about one dataset of the namespace.
type said struct {
	item     catalog.Item
	row      string
	columns  []saidColumn
	joins    []meaning.Join
	measures []meaning.Measure

	rejectedJoins    []meaning.Join
	rejectedMeasures []meaning.Measure
}

// saidColumn is what a document says about a column. Without an extension of Quern it says only some of it.
type saidColumn struct {
	name  string
	whole *fieldExtension // nil if the document is of another tool
	time  bool
	words []string // synonyms
}

// gathering collects what a document says, by dataset of the namespace.
type gathering struct {
	visible map[string]catalog.Item // by name in lower case
	may     func(catalog.Item) bool // whether the caller may edit it
	found   []*said
	issues  []Issue
}

func (g *gathering) notef(entry, format string, args ...any) {
	g.issues = append(g.issues, Issue{entry, sentence(fmt.Sprintf(format, args...))})
}

// sentence returns a message as a sentence.
func sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	text = strings.ToUpper(string(first)) + text[size:]

	if !strings.HasSuffix(text, ".") && !strings.HasSuffix(text, "?") {
		text += "."
	}

	return text
}

// target returns the dataset of the namespace that a dataset of the document is about: the table of its source, otherwise
// that of its name.
func (g *gathering) target(d dataset) (catalog.Item, bool) {
	if strings.Contains(d.Name, "/") {
		return catalog.Item{}, false // in another namespace
	}

	for _, name := range []string{d.Source[strings.LastIndexByte(d.Source, '.')+1:], d.Name} {
		if item, ok := g.visible[strings.ToLower(strings.Trim(name, `"`+"`"))]; ok {
			return item, true
		}
	}

	return catalog.Item{}, false
}

// about returns the entry of a dataset that the caller may edit. Datasets that the caller may only see, or may not see, are
// reported as those that do not exist.
func (g *gathering) about(d dataset, entry string) *said {
	item, ok := g.target(d)
	if !ok || !g.may(item) {
		g.notef(entry, "The namespace has no dataset %s that you may edit", cut(d.Name))

		return nil
	}

	if n := slices.IndexFunc(g.found, func(s *said) bool { return s.item.ID == item.ID }); n >= 0 {
		return g.found[n]
	}

	g.found = append(g.found, &said{item: item})

	return g.found[len(g.found)-1]
}

func (g *gathering) model(m model) {
	s := scopeOf(m)

	for _, d := range m.Datasets {
		g.dataset(d)
	}

	for _, r := range m.Relationships {
		g.relationship(s, r)
	}

	for _, one := range m.Metrics {
		g.metric(s, one)
	}
}

// read decodes an extension of Quern. It reports what is not understood.
func (g *gathering) read(list []extension, entry string, into any) bool {
	text := own(list)
	if text == "" {
		return false
	}

	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()

	if err := decoder.Decode(into); err != nil || strings.Contains(text, `\u0000`) {
		g.notef(entry, "The extension of Quern has a field that is not known here, or that is of another type")

		return false
	}

	return true
}

func (g *gathering) dataset(d dataset) {
	var (
		ext     datasetExtension
		entry   = "dataset " + cut(d.Name)
		columns []saidColumn
	)

	g.read(d.Extensions, entry, &ext)

	for _, f := range d.Fields {
		if one, says := g.field(f, d); says {
			columns = append(columns, one)
		}
	}

	if ext.isEmpty() && len(columns) == 0 {
		return
	}

	to := g.about(d, entry)
	if to == nil {
		return
	}

	if ext.Row != "" {
		to.row = ext.Row
	}

	to.columns = append(to.columns, columns...)

	for _, j := range ext.RejectedJoins {
		to.rejectedJoins = append(to.rejectedJoins, meaning.Join{Columns: j.Columns, To: j.To, Keys: j.Keys})
	}

	for _, m := range ext.RejectedMeasures {
		to.rejectedMeasures = append(to.rejectedMeasures, meaning.Measure{Name: m.Name, Function: m.Function, Expression: m.Expression})
	}
}

// field returns what a field says about a column. It returns false if it says nothing that is kept.
func (g *gathering) field(f field, of dataset) (one saidColumn, says bool) {
	entry := "field " + cut(of.Name+"."+f.Name)

	parsed, err := f.parsed()
	if err != nil || parsed.Op != meaning.ColumnOp {
		g.notef(entry, "It is computed. Only columns are kept; a metric can use it if it has only columns, numbers and + - * /")

		return one, false
	}

	one = saidColumn{name: parsed.Column.Column, time: f.Dimension != nil && f.Dimension.IsTime, words: f.Context.Synonyms}

	var ext fieldExtension
	if g.read(f.Extensions, entry, &ext) {
		one.whole = &ext
	}

	return one, one.whole != nil || one.time || len(one.words) > 0
}

func (g *gathering) relationship(s scope, r relationship) {
	var (
		entry    = "relationship " + cut(r.Name)
		from, to = s.datasets[strings.ToLower(r.From)], s.datasets[strings.ToLower(r.To)]
	)

	if from == nil || to == nil {
		g.notef(entry, "It names a dataset that the model does not have")

		return
	}

	name := to.Name

	if !strings.Contains(name, "/") {
		item, ok := g.target(*to)
		if !ok {
			g.notef(entry, "The namespace has no dataset %s that you may see", cut(to.Name))

			return
		}

		name = item.Name
	}

	if about := g.about(*from, entry); about != nil {
		about.joins = append(about.joins, meaning.Join{Columns: columnsOf(*from, r.FromColumns), To: name, Keys: columnsOf(*to, r.ToColumns)})
	}
}

// columnsOf returns the columns of fields. A name that is no field is a column.
func columnsOf(d dataset, names []string) []string {
	list := make([]string, len(names))

	for i, name := range names {
		list[i] = name

		for _, f := range d.Fields {
			if parsed, err := f.parsed(); err == nil && parsed.Op == meaning.ColumnOp && strings.EqualFold(f.Name, name) {
				list[i] = parsed.Column.Column
			}
		}
	}

	return list
}

func (g *gathering) metric(s scope, m metric) {
	var (
		ext   metricExtension
		entry = "metric " + cut(m.Name)
	)

	g.read(m.Extensions, entry, &ext)

	of, found, err := s.measure(m, ext)
	if err != nil {
		g.notef(entry, "%s", err.Error())

		return
	}

	d := s.datasets[strings.ToLower(of)]
	if d == nil {
		g.notef(entry, "The model has no dataset %s", cut(of))

		return
	}

	about := g.about(*d, entry)
	if about == nil {
		return
	}

	if found.Expression != "" { // joined datasets have their names here
		parsed, _ := meaning.Parse(found.Expression) // it was written by String
		parsed, _ = parsed.Replace(func(r meaning.Ref) (meaning.Ref, bool) {
			if joined := s.datasets[strings.ToLower(r.Dataset)]; joined != nil {
				if item, ok := g.target(*joined); ok {
					r.Dataset = item.Name
				}
			}

			return r, true
		})
		found.Expression = parsed.String()
	}

	about.measures = append(about.measures, found)
}
