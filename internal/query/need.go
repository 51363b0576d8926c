package query

import (
	"fmt"
	"slices"

	"github.com/google/uuid"
)

// Need is a dataset that a statement reads, with the columns whose names occur in the statement. A statement that is kept
// says something else when one of them changes.
type Need struct {
	Account   uuid.UUID    `json:"account"`
	ID        uuid.UUID    `json:"id"`
	Namespace uuid.UUID    `json:"namespace"`
	Dataset   string       `json:"dataset"` // owner/namespace/name
	Columns   []NeedColumn `json:"columns"`
}

// NeedColumn is a column that a statement needs, with its type.
type NeedColumn struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// ChangedError is the error of a statement that no longer reads what it is expected to read. Reason contains names and types
// only, for people who may read the datasets.
type ChangedError struct{ Reason string }

func (c *ChangedError) Error() string {
	return "the statement reads something else than expected: " + c.Reason
}

// needs returns what the statement reads. A name counts wherever it stands: a column that is added with the name of another
// dataset's column may change what the name means.
func (s *statement) needs(reads []resolved) (list []Need) {
	names := mentioned{strings: map[string]bool{}, tables: map[string]bool{}}
	names.collect(s.root)

	for _, one := range distinct(reads) {
		need := Need{Account: one.Account, ID: one.ID, Namespace: one.NamespaceID, Dataset: one.path(), Columns: []NeedColumn{}}

		for _, c := range one.snapshot.Columns {
			if names.all() || names.strings[folded(c.Name)] {
				need.Columns = append(need.Columns, NeedColumn{c.Name, string(c.Type)})
			}
		}

		list = append(list, need)
	}

	return list
}

// expect returns what a statement that is kept reads. It fails if that is not what the request expects.
func (s *statement) expect(want Statement, reads []resolved) ([]Need, error) {
	if !want.Lasting {
		return nil, nil
	}

	needs := s.needs(reads)
	if want.Needs == nil {
		return needs, nil
	}

	if reason := Compare(want.Needs, needs); reason != "" {
		return nil, &ChangedError{reason}
	}

	return needs, nil
}

// mentioned is what a tree mentions: every text in it, which includes all names of columns.
type mentioned struct {
	strings map[string]bool // folded
	tables  map[string]bool // folded names and aliases of tables
	single  []string        // folded references to a column without a table
	star    bool            // it needs all columns
}

// all reports whether the statement needs all columns: it has a *, or takes a whole row by the name of its table.
func (m *mentioned) all() bool {
	return m.star || slices.ContainsFunc(m.single, func(name string) bool { return m.tables[name] })
}

func (m *mentioned) collect(value any) {
	switch value := value.(type) {
	case string:
		m.strings[folded(value)] = true
	case []any:
		for _, inner := range value {
			m.collect(inner)
		}
	case object:
		if value["class"] == "CONSTANT" {
			return
		}

		m.note(value)

		for _, inner := range value {
			m.collect(inner)
		}
	}
}

func (m *mentioned) note(o object) {
	switch {
	case o["class"] == "STAR", o["ref_type"] == "NATURAL", o["type"] == "PIVOT", o["type"] == "SHOW_REF":
		m.star = true
	case o["class"] == "COLUMN_REF":
		if names, _ := o["column_names"].([]any); len(names) == 1 {
			name, _ := names[0].(string)
			m.single = append(m.single, folded(name))
		}
	case o["type"] == "BASE_TABLE":
		for _, key := range []string{"table_name", "alias"} {
			if name, _ := o[key].(string); name != "" {
				m.tables[folded(name)] = true
			}
		}
	}
}

// Compare says what is different between what a statement needed and what it needs now; "" if nothing is.
func Compare(before, now []Need) string {
	for _, old := range before {
		i := slices.IndexFunc(now, func(n Need) bool { return n.ID == old.ID && n.Account == old.Account })
		if i < 0 || now[i].Dataset != old.Dataset {
			return fmt.Sprintf("The dataset %s was deleted, renamed or moved.", old.Dataset)
		}

		if reason := compareColumns(old, now[i].Columns); reason != "" {
			return reason
		}
	}

	for _, one := range now {
		if !slices.ContainsFunc(before, func(n Need) bool { return n.ID == one.ID && n.Account == one.Account }) {
			return fmt.Sprintf("The statement reads the dataset %s, which it did not read before.", one.Dataset)
		}
	}

	return ""
}

func compareColumns(old Need, now []NeedColumn) string {
	for _, c := range old.Columns {
		i := slices.IndexFunc(now, func(n NeedColumn) bool { return n.Name == c.Name })

		switch {
		case i < 0:
			return fmt.Sprintf("The column %s of %s was removed or renamed.", c.Name, old.Dataset)
		case now[i].Type != c.Type:
			return fmt.Sprintf("The column %s of %s was %s and is %s.", c.Name, old.Dataset, c.Type, now[i].Type)
		}
	}

	for _, c := range now {
		if !slices.ContainsFunc(old.Columns, func(n NeedColumn) bool { return n.Name == c.Name }) {
			return fmt.Sprintf("%s has a new column %s, whose name is in the statement.", old.Dataset, c.Name)
		}
	}

	return ""
}
