package planner

import (
	"slices"
	"strings"

	"quern.dev/quern/internal/form"
	"quern.dev/quern/internal/lexicon"
	"quern.dev/quern/internal/meaning"
)

// world is the datasets of a request, prepared for matching with words.
type world struct {
	tables []*table
	schema form.Schema
}

type table struct {
	at      int
	name    string
	source  *Dataset
	nouns   [][]string // stems that name a row
	alike   [][]string // the same with one name for words that mean the same
	columns []column
	label   int // column that names a row; -1 if there is none
	key     int // column that identifies a row; -1 if there is none
	joins   []edge

	measures []figure
}

type column struct {
	meaning.SourceColumn
	meaning.Column

	table, at int
	stems     []string   // of the name, abbreviations written out
	strong    []string   // without words of little meaning, such as id, name, date
	own       []string   // strong, without the noun of the dataset
	others    [][]string // synonyms
	alike     [][]string // names with one name for words that mean the same
	described []string   // stems of the description
	negative  bool       // the name begins with a negation: no_show
	unique    bool
	joined    bool // it refers to another dataset
}

// edge leads from a row to at most one row of another table.
type edge struct {
	column  string
	to      int
	key     string
	partial bool // some rows have no partner, or that is not known
}

func newWorld(datasets []Dataset) *world {
	w := &world{}

	for i := range datasets {
		w.tables = append(w.tables, newTable(i, &datasets[i]))
	}

	for _, t := range w.tables {
		for _, j := range t.source.Meaning.Joins {
			to := slices.IndexFunc(w.tables, func(o *table) bool { return o.name == j.To })
			if to < 0 || to == t.at || len(j.Columns) != 1 || len(j.Keys) != 1 {
				continue
			}

			t.joins = append(t.joins, edge{j.Columns[0], to, j.Keys[0], t.isPartial(j)})

			for c := range t.columns {
				if t.columns[c].Name == j.Columns[0] && t.key != c {
					t.columns[c].joined = true
				}
			}
		}
	}

	for _, t := range w.tables {
		t.measures = w.stated(t)

		if len(t.measures) == 0 {
			t.measures = w.earnings(t)
		}

		if m, ok := w.soldThings(t); ok {
			t.measures = append(t.measures, m)
		}

		w.schema.Datasets = append(w.schema.Datasets, t.describe(w))
	}

	return w
}

// describe returns what the compiler needs to know about a table.
func (t *table) describe(w *world) form.Dataset {
	d := form.Dataset{Name: t.name, Row: t.source.Meaning.Row, Keys: t.source.Keys, Units: map[string]string{}}

	if t.label >= 0 {
		d.Label = t.columns[t.label].Name
	}

	for _, c := range t.columns {
		d.Columns = append(d.Columns, form.ColumnInfo{Name: c.Name, Type: c.Type, Role: c.Role, Unit: c.Unit, HasNulls: c.Nulls > 0})
	}

	for _, m := range t.source.Meaning.Measures {
		if m.Unit != "" {
			d.Units[m.Name] = m.Unit
		}
	}

	for _, j := range t.joins {
		d.Joins = append(d.Joins, form.Join{Columns: []string{j.column}, To: w.tables[j.to].name, Keys: []string{j.key}, Partial: j.partial})
	}

	for _, m := range t.source.Totals {
		d.Totals = append(d.Totals, form.Condition{Column: form.Column{Name: m.Column}, Is: form.Is, Values: []any{m.Value}})
	}

	return d
}

// isPartial reports whether rows may have no partner in the dataset that they refer to.
func (t *table) isPartial(j meaning.Join) bool {
	at := t.find(j.Columns[0])

	return at < 0 || t.columns[at].Nulls > 0 || !slices.ContainsFunc(t.source.Joins, func(p meaning.SourceJoin) bool {
		return p.Column == j.Columns[0] && p.To == j.To && p.Key == j.Keys[0] && p.Share >= 1
	})
}

func (t *table) find(name string) int {
	return slices.IndexFunc(t.columns, func(c column) bool { return c.Name == name })
}

func stemsOf(text string) []string {
	return lexicon.NameStems(strings.Join(lexicon.NameWords(text), " "))
}

func newTable(at int, d *Dataset) *table {
	t := &table{at: at, name: d.Name, source: d, label: -1, key: -1}
	name := stemsOf(d.Name[strings.LastIndexByte(d.Name, '/')+1:])
	t.addNoun(name)
	t.addNoun(stemsOf(d.Meaning.Row))

	if n := len(name); n > 1 && isContainer(name[n-1]) {
		t.addNoun(name[:n-1])
	}

	t.columns = make([]column, 0, len(d.Columns))

	for i, c := range d.Columns {
		m := d.Meaning.Columns[c.Name]
		one := column{SourceColumn: c, Column: m, table: at, at: i, stems: stemsOf(c.Name), described: stemsOf(c.Description)}
		one.unique = slices.ContainsFunc(d.Keys, func(key []string) bool { return len(key) == 1 && key[0] == c.Name })

		if m.Role == meaning.Flag {
			one.negate()
		}

		for _, s := range m.Synonyms {
			one.others = append(one.others, stemsOf(s))
		}

		// Words that connect are left out of what people say: "kg on hand".
		if bare := slices.DeleteFunc(slices.Clone(one.stems), isFunction); len(bare) > 1 && len(bare) < len(one.stems) {
			one.others = append(one.others, bare)
		}

		for _, w := range one.stems {
			if !isWeakName(w) {
				one.strong = append(one.strong, w)
			}
		}

		if len(one.strong) == 0 {
			one.strong = one.stems
		}

		if m.Role == meaning.Identifier && one.unique && t.key < 0 {
			t.key = i

			if noun := slices.DeleteFunc(slices.Clone(one.stems), isWeakName); len(noun) > 0 && !t.named(name, noun) {
				t.addNoun(noun)
			}
		}

		t.columns = append(t.columns, one)
	}

	for i := range t.columns {
		c := &t.columns[i]
		c.own = slices.DeleteFunc(slices.Clone(c.strong), func(w string) bool {
			return slices.ContainsFunc(t.nouns, func(n []string) bool { return slices.Contains(n, w) })
		})
	}

	t.addAlike()
	t.label = t.findLabel()

	return t
}

// negate marks a flag that says what is not so, and keeps the word that says it: not_paid.
func (c *column) negate() {
	words := strings.FieldsFunc(strings.ToLower(c.Name), func(r rune) bool { return r == '_' || r == ' ' || r == '-' })
	if len(words) > 1 && isNegative(words[0]) {
		c.negative, c.stems = true, append([]string{words[0]}, stemsOf(strings.Join(words[1:], " "))...)
	}
}

// addAlike adds the names with one name for words that mean the same.
func (t *table) addAlike() {
	for i := range t.columns {
		c := &t.columns[i]
		c.alike = make([][]string, 0, 3+len(c.others))

		for _, name := range [][]string{c.stems, c.strong, c.own} {
			c.alike = append(c.alike, alike(name))
		}

		for _, name := range c.others {
			c.alike = append(c.alike, alike(name))
		}
	}

	for _, n := range t.nouns {
		t.alike = append(t.alike, alike(n))
	}
}

// alike returns stems with one name for words that mean the same, nil if there are no such words.
func alike(stems []string) (list []string) {
	for i, w := range stems {
		name, ok := lexicon.Same(w)
		if !ok {
			continue
		}

		if list == nil {
			list = slices.Clone(stems)
		}

		list[i] = name
	}

	return list
}

// named reports whether the noun of a key belongs to another thing than the dataset: order_no in ticket_sales names
// its rows, too.
func (t *table) named(name, noun []string) bool { return slices.Equal(name, noun) }

func (t *table) addNoun(stems []string) {
	if len(stems) > 0 && !slices.ContainsFunc(t.nouns, func(n []string) bool { return slices.Equal(n, stems) }) {
		t.nouns = append(t.nouns, stems)
	}
}

// isContainer reports whether a stem in the name of a dataset says only that it has rows: "job cards".
func isContainer(stem string) bool {
	switch stem {
	case "card", "record", "list", "data", "tabl", "entry", "sheet", "log", "master", "export", "fil", "register", "report", "overview", "detail", "dim", "fact", "info":
		return true
	default:
		return false
	}
}

// isWeakName reports whether people usually leave out a stem of a name.
func isWeakName(stem string) bool {
	switch stem {
	case "id", "number", "cod", "key", "ref", "uuid", "nam", "dat", "timestamp", "at", "on", "of", "the", "is", "has", "in", "n", "fact", "for",
		"eur", "usd", "gbp", "chf", "kg", "km", "ha", "t", "g", "m", "cm", "mm", "l", "km2", "m2", "m3", "sqm", "sqft", "percent", "proz":
		return true
	default:
		return false
	}
}

// isName reports whether a column or the rows of a table have a name of one stem.
func (w *world) isName(stem string) bool {
	return slices.ContainsFunc(w.tables, func(t *table) bool {
		return slices.ContainsFunc(t.nouns, func(n []string) bool { return len(n) == 1 && n[0] == stem }) ||
			slices.ContainsFunc(t.columns, func(c column) bool { return len(c.stems) == 1 && c.stems[0] == stem })
	})
}

// isHead reports whether a stem is what a rate is of: a price per night is a price.
func (c *column) isHead(stem string) bool {
	at := slices.Index(c.strong, "per")

	return at > 0 && c.strong[at-1] == stem
}

// isNegative reports whether a word at the beginning of the name of a flag belongs to it, so that it negates nothing.
func isNegative(word string) bool { return word == "no" || word == "not" || word == "non" }

// identity returns the columns that tell a row apart: its key and its name, or the parts of the name of a person.
func (t *table) identity() (list []*column) {
	if t.key >= 0 {
		list = append(list, &t.columns[t.key])
	}

	if t.label >= 0 && t.label != t.key {
		return append(list, &t.columns[t.label])
	}

	if t.label < 0 {
		list = append(list, t.nameParts()...)
	}

	return list
}

// nameParts returns the first and the last name of a person.
func (t *table) nameParts() (list []*column) {
	for i := range t.columns {
		c := &t.columns[i]
		if c.Role == meaning.Name && len(c.stems) == 2 && c.stems[1] == "nam" && slices.Contains([]string{"first", "last", "given", "family", "sur"}, c.stems[0]) {
			list = append(list, c)
		}
	}

	return list
}

// findLabel returns the column that names a row: unique, text, and called name, title or like the row.
func (t *table) findLabel() int {
	best, most := -1, 0

	for i, c := range t.columns {
		var points int

		switch c.Role {
		case meaning.Name:
			points = 4
		case meaning.Text, meaning.Category:
			points = 1
		default:
			continue
		}

		if c.unique {
			points += 3
		}

		isNamed := slices.Contains(c.stems, "nam") || slices.Contains(c.stems, "titl")
		ofRow := slices.ContainsFunc(t.nouns, func(n []string) bool { return len(n) > 0 && len(c.own) == 0 || slices.Equal(n, c.strong) })

		switch {
		case isNamed && (len(c.strong) == 0 || ofRow || slices.Equal(c.stems, []string{"nam"}) || slices.Contains(c.stems, "titl") || slices.Contains(c.strong, "full")):
			points += 4
		case ofRow && (c.Role != meaning.Category || c.unique):
			points += 2
		case isNamed:
			points--
		}

		if points >= 4 && points > most {
			best, most = i, points
		}
	}

	return best
}

// reach returns whether rows of one table lead to at most one row of another, and how many ways there are.
func (w *world) reach(from, to int) int {
	return len(w.ways(from, to, map[int]bool{}))
}

const maxHops = 3

// ways returns the paths from one table to another, each as the columns that lead there.
func (w *world) ways(from, to int, seen map[int]bool) (list [][]string) {
	if from == to {
		return [][]string{nil}
	}

	if len(seen) >= maxHops {
		return nil
	}

	seen[from] = true
	defer delete(seen, from)

	for _, e := range w.tables[from].joins {
		if seen[e.to] || !w.tables[e.to].isKey(e.key) {
			continue
		}

		for _, rest := range w.ways(e.to, to, seen) {
			list = append(list, append([]string{e.column}, rest...))
		}
	}

	return list
}

// near returns the column of a table that refers to a key of another one, instead of the key: they have the same values.
// Other columns stay as they are.
func (w *world) near(root int, c *column) *column {
	if root >= 0 && c.table != root && w.reach(root, c.table) == 1 {
		for _, e := range w.tables[root].joins {
			if e.to == c.table && e.key == c.Name {
				return &w.tables[root].columns[w.tables[root].find(e.column)]
			}
		}
	}

	return c
}

// partner returns the column that is filled if a row of one table has a partner in another, nil if each row has one.
func (w *world) partner(from, to int) *column {
	list := w.ways(from, to, map[int]bool{})
	if len(list) != 1 {
		return nil
	}

	at, partial := w.tables[from], false

	var key *column

	for _, step := range list[0] {
		i := slices.IndexFunc(at.joins, func(e edge) bool { return e.column == step && w.reach(e.to, to) > 0 })
		if i < 0 {
			return nil
		}

		e := at.joins[i]
		partial = partial || e.partial
		at = w.tables[e.to]
		key = &at.columns[at.find(e.key)]
	}

	if !partial {
		return nil
	}

	return key
}

func (t *table) isKey(column string) bool {
	return slices.ContainsFunc(t.source.Keys, func(key []string) bool { return len(key) == 1 && key[0] == column })
}
