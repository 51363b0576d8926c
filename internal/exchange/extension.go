package exchange

import (
	"quern.dev/quern/internal/meaning"
	"quern.dev/quern/internal/verified"
)

// The extensions of Quern: what the format has no place for.

type modelExtension struct {
	Verified []verified.Content `json:"verified,omitempty"`
}

type datasetExtension struct {
	Row              string         `json:"row,omitempty"`
	RejectedJoins    []rejectedJoin `json:"rejectedJoins,omitempty"`
	RejectedMeasures []rejected     `json:"rejectedMeasures,omitempty"`
}

// isEmpty reports whether the extension says nothing.
func (e datasetExtension) isEmpty() bool {
	return e.Row == "" && len(e.RejectedJoins) == 0 && len(e.RejectedMeasures) == 0
}

// rejectedJoin is a drafted join that a person rejected.
type rejectedJoin struct {
	Columns []string `json:"columns"`
	To      string   `json:"to"`
	Keys    []string `json:"keys"`
}

// rejected is a drafted measure that a person rejected.
type rejected struct {
	Name       string `json:"name"`
	Function   string `json:"function"`
	Expression string `json:"expression,omitempty"`
}

type fieldExtension struct {
	Role          meaning.Role `json:"role"`
	Unit          string       `json:"unit,omitempty"`
	NotForFigures bool         `json:"notForFigures,omitempty"`
}

type metricExtension struct {
	Dataset string `json:"dataset"`        // that the measure belongs to
	Name    string `json:"name,omitempty"` // if the metric has another one, because names of metrics are unique
	Unit    string `json:"unit,omitempty"`
}
