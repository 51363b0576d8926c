package meaning

import (
	"maps"
	"slices"
	"strings"
)

// Saved is what people said about a dataset: what they confirmed, and the drafts that they rejected. Only this is stored;
// drafts are made again at every read.
type Saved struct {
	Meaning

	RejectedJoins    []Join    `json:"rejectedJoins,omitempty"`
	RejectedMeasures []Measure `json:"rejectedMeasures,omitempty"`
}

// Over returns what was saved laid over a draft. A confirmed column replaces the drafted one, and a confirmed measure the
// drafted one of its name. A confirmed join replaces all drafted joins of its columns.
func (s Saved) Over(draft Meaning) Meaning {
	effective := Meaning{Row: draft.Row, Columns: maps.Clone(draft.Columns)}
	if s.Row != "" {
		effective.Row = s.Row
	}

	if effective.Columns == nil {
		effective.Columns = map[string]Column{}
	}

	for name, c := range s.Columns {
		c.Confirmed = true
		effective.Columns[name] = c
	}

	for _, j := range s.Joins {
		j.Confirmed = true
		effective.Joins = append(effective.Joins, j)
	}

	for _, j := range draft.Joins {
		replaced := slices.ContainsFunc(s.Joins, func(own Join) bool { return sameColumns(own.Columns, j.Columns) })
		if !replaced && !slices.ContainsFunc(s.RejectedJoins, j.Same) {
			effective.Joins = append(effective.Joins, j)
		}
	}

	for _, m := range s.Measures {
		m.Confirmed = true
		effective.Measures = append(effective.Measures, m)
	}

	for _, m := range draft.Measures {
		if !slices.ContainsFunc(s.Measures, m.Same) && !slices.ContainsFunc(s.RejectedMeasures, m.Same) {
			effective.Measures = append(effective.Measures, m)
		}
	}

	return effective
}

// Same reports whether two joins relate the same columns.
func (j Join) Same(other Join) bool {
	return strings.EqualFold(j.To, other.To) && sameColumns(j.Columns, other.Columns) && sameColumns(j.Keys, other.Keys)
}

// Same reports whether two measures have the same name.
func (m Measure) Same(other Measure) bool { return strings.EqualFold(m.Name, other.Name) }

func sameColumns(a, b []string) bool { return slices.EqualFunc(a, b, strings.EqualFold) }
