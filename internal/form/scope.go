package form

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// compiler compiles one form.
type compiler struct {
	schema *Schema
	form   Form
	home   *Dataset   // of the form
	facts  []*Dataset // whose rows are aggregated
	bare   bool       // the statement reads one table, so its columns need no table's name
	tables int        // that the statement reads
	notes  []string
	losses []loss
}

func (c *compiler) note(text string) {
	if !slices.Contains(c.notes, text) {
		c.notes = append(c.notes, text)
	}
}

// table is a dataset that a SELECT reads.
type table struct {
	alias   string
	data    *Dataset
	path    string // from the first table
	key     string // column that is never empty where there is a row
	partial bool   // some rows have no partner here
}

// scope is one SELECT: a dataset whose rows it reads, and what these lead to.
type scope struct {
	c      *compiler
	root   *table
	tables []*table
	joins  []string
	used   map[string]bool // aliases here and in the SELECTs around

	reached []*table // joined tables that the condition at hand needs
}

func (c *compiler) scope(d *Dataset, around *scope) *scope {
	s := &scope{c: c, used: map[string]bool{}}
	if around != nil {
		s.used = around.used
	}

	s.root = s.table(d)

	return s
}

func (s *scope) table(d *Dataset) *table {
	base := d.Name[strings.LastIndexByte(d.Name, '/')+1:]
	if base == "" {
		base = "rows"
	}

	alias := base
	for i := 2; s.used[strings.ToLower(alias)]; i++ {
		alias = base + "_" + strconv.Itoa(i)
	}

	s.used[strings.ToLower(alias)] = true
	s.c.tables++

	t := &table{alias: alias, data: d}
	s.tables = append(s.tables, t)

	return t
}

// from returns FROM and its joins.
func (s *scope) from() string { return " FROM " + s.source(s.root) + strings.Join(s.joins, "") }

func (s *scope) source(t *table) string {
	if s.c.bare || t.alias == t.data.Name {
		return quoted(t.data.Name)
	}

	return quoted(t.data.Name) + " AS " + quoted(t.alias)
}

// ref returns a column of a table as SQL.
func (s *scope) ref(t *table, column string) string {
	if s.c.bare {
		return quoted(column)
	}

	return quoted(t.alias) + "." + quoted(column)
}

// follow joins what a path leads to, and returns its last table.
func (s *scope) follow(from *table, hops []hop) *table {
	at := from

	for _, h := range hops {
		path := at.path + "/" + h.fullName()

		i := slices.IndexFunc(s.tables, func(t *table) bool { return t.path == path })
		if i >= 0 {
			at = s.tables[i]

			continue
		}

		next := s.table(h.to)
		next.path, next.key, next.partial = path, h.join.Keys[0], at.partial || h.isPartial()
		s.joins = append(s.joins, " LEFT JOIN "+s.source(next)+" ON "+s.equal(h, at, next))
		at = next
	}

	return at
}

// equal returns the condition of a join.
func (s *scope) equal(h hop, from, to *table) string {
	parts := make([]string, len(h.join.Columns))

	for i, name := range h.join.Columns {
		key := h.join.Keys[i]
		left, right := s.ref(from, name), s.ref(to, key)

		// A text that is not a number must not end the statement.
		if a, b := h.from.column(name).kind(), h.to.column(key).kind(); a != b && (a == text || b == text) {
			left, right = "CAST("+left+" AS VARCHAR)", "CAST("+right+" AS VARCHAR)"
		}

		parts[i] = left + " = " + right
	}

	return strings.Join(parts, " AND ")
}

// cell is a column in the scope of a SELECT.
type cell struct {
	sql   string
	info  *ColumnInfo
	table *table
}

// find returns a column, and joins its dataset if necessary. A column without a dataset belongs to home.
func (s *scope) find(c Column, home *Dataset) (cell, error) {
	d := home
	if c.Dataset != "" {
		d = s.c.schema.dataset(c.Dataset)
	}

	if d == nil {
		return cell{}, &NameError{Dataset: c.Dataset}
	}

	info := d.column(c.Name)
	if info == nil {
		return cell{}, &NameError{Dataset: d.Name, Column: c.Name}
	}

	t, err := s.reach(d, c.Via, home)
	if err != nil {
		if join, isJoin := errors.AsType[*JoinError](err); isJoin {
			join.Column = c.Name
		}

		return cell{}, err
	}

	return cell{sql: s.ref(t, c.Name), info: info, table: t}, nil
}

// reach returns the table of a dataset to which each row leads.
func (s *scope) reach(d *Dataset, via []string, home *Dataset) (*table, error) {
	if d == s.root.data && (len(via) == 0 || home != d) {
		return s.root, nil
	}

	path, err := choose(s.c.schema.paths(s.root.data, d), s.root.data, d, via, home != s.root.data)
	if err != nil {
		if join, isJoin := errors.AsType[*JoinError](err); isJoin {
			join.Reversed = len(s.c.schema.paths(d, s.root.data)) > 0
		}

		return nil, err
	}

	t := s.follow(s.root, path.hops)
	s.reached = append(s.reached, t)

	return t, nil
}
