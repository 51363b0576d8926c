package form

import (
	"slices"
	"strings"
)

// maxHops bounds how far a path leads.
const maxHops = 3

// hop leads from a row to at most one row of another dataset.
type hop struct {
	from, to *Dataset
	join     *Join
}

// name is what Via calls the hop.
func (h hop) name() string { return strings.Join(h.join.Columns, ",") }

// fullName tells apart hops over the same foreign key.
func (h hop) fullName() string {
	return h.name() + " > " + h.to.Name + "." + strings.Join(h.join.Keys, ",")
}

// isPartial reports whether a row may have no partner.
func (h hop) isPartial() bool {
	return h.join.Partial || slices.ContainsFunc(h.join.Columns, func(name string) bool { return h.from.column(name).HasNulls })
}

func (s *Schema) dataset(name string) *Dataset {
	for i := range s.Datasets {
		if s.Datasets[i].Name == name {
			return &s.Datasets[i]
		}
	}

	return nil
}

func (d *Dataset) column(name string) *ColumnInfo {
	for i := range d.Columns {
		if d.Columns[i].Name == name {
			return &d.Columns[i]
		}
	}

	return nil
}

// isKey reports whether exactly these columns are a key.
func (d *Dataset) isKey(columns []string) bool {
	for _, key := range d.Keys {
		if len(key) == len(columns) && len(key) > 0 && !slices.ContainsFunc(key, func(name string) bool { return !slices.Contains(columns, name) }) {
			return true
		}
	}

	return false
}

// hops returns the joins of a dataset that lead to at most one row.
func (s *Schema) hops(d *Dataset) (list []hop) {
	for i := range d.Joins {
		j := &d.Joins[i]
		to := s.dataset(j.To)

		if to == nil || len(j.Columns) != len(j.Keys) || !to.isKey(j.Keys) || slices.ContainsFunc(j.Columns, func(name string) bool { return d.column(name) == nil }) ||
			slices.ContainsFunc(j.Keys, func(name string) bool { return to.column(name) == nil }) {
			continue
		}

		h := hop{from: d, to: to, join: j}
		if !slices.ContainsFunc(list, func(o hop) bool { return o.fullName() == h.fullName() }) {
			list = append(list, h)
		}
	}

	return list
}

// paths returns the ways from the rows of a dataset to at most one row of another. No way passes a dataset twice, but
// one may lead back to the dataset where it begins: from an employee to the manager.
func (s *Schema) paths(from, to *Dataset) (list []Path) {
	var follow func(at *Dataset, way []hop)

	follow = func(at *Dataset, way []hop) {
		if len(way) > 0 && at == to {
			list = append(list, Path{hops: slices.Clone(way)})

			return
		}

		if len(way) == maxHops {
			return
		}

		for _, h := range s.hops(at) {
			passed := slices.ContainsFunc(way, func(o hop) bool { return o.from == h.to })
			if h.to != to && (passed || h.to == from) {
				continue
			}

			follow(h.to, append(way, h))
		}
	}

	follow(from, nil)

	name := func(p Path, full bool) (via []string) {
		for _, h := range p.hops {
			if full {
				via = append(via, h.fullName())
			} else {
				via = append(via, h.name())
			}
		}

		return via
	}

	for i, p := range list {
		same := 0

		for _, o := range list {
			if slices.Equal(name(p, false), name(o, false)) {
				same++
			}
		}

		list[i].Via = name(p, same > 1)

		for _, h := range p.hops {
			list[i].Datasets = append(list[i].Datasets, h.to.Name)
		}
	}

	return list
}

// choose returns the path that via selects. If via is that of another dataset, as of the form instead of the measure,
// it selects by the end of the path.
func choose(paths []Path, from, to *Dataset, via []string, foreign bool) (*Path, error) {
	fit := paths

	switch {
	case len(paths) == 0:
		return nil, &JoinError{From: from.Name, To: to.Name}
	case len(via) > 0 && !foreign:
		fit = slices.DeleteFunc(slices.Clone(paths), func(p Path) bool { return !slices.Equal(p.Via, via) })
	case len(via) > 0 && len(paths) > 1:
		fit = slices.DeleteFunc(slices.Clone(paths), func(p Path) bool { return len(p.Via) < len(via) || !slices.Equal(p.Via[len(p.Via)-len(via):], via) })
	}

	if len(fit) != 1 {
		return nil, &PathsError{From: from.Name, To: to.Name, Paths: paths}
	}

	return &fit[0], nil
}
