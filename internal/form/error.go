package form

import (
	"fmt"
	"strings"
)

// Path is one of several ways from a dataset to another.
type Path struct {
	Via      []string // selects the path: the foreign key of each hop
	Datasets []string // that the path passes, the last one included

	hops []hop
}

// PathsError is the error if several ways lead from a dataset to another, and the form does not say which.
type PathsError struct {
	From, To string
	Paths    []Path
}

func (e *PathsError) Error() string {
	ways := make([]string, len(e.Paths))
	for i, p := range e.Paths {
		ways[i] = strings.Join(p.Via, ", ")
	}

	return fmt.Sprintf("%d ways lead from %s to %s: via %s", len(e.Paths), e.From, e.To, strings.Join(ways, "; via "))
}

// JoinError is the error if no way leads from many rows to one, so that rows would be counted several times.
type JoinError struct {
	From, To string // datasets
	Column   string // that is asked for; empty for the rows themselves
	Reversed bool   // the way leads from To to From only: a row of From has many of To
}

func (e *JoinError) Error() string {
	to := e.To
	if e.Column != "" {
		to = "column " + e.Column + " of " + e.To
	}

	if e.Reversed {
		return fmt.Sprintf("a row of %s has many rows of %s, so %s cannot be used for each of its rows", e.From, e.To, to)
	}

	return fmt.Sprintf("no key leads from the rows of %s to %s", e.From, to)
}

// Reason is why a figure cannot be calculated.
type Reason string

// The reasons.
const (
	NotAFigure  Reason = "notAFigure"  // it identifies or describes
	NotAdditive Reason = "notAdditive" // a price or a share: the sum means nothing
	OverTime    Reason = "overTime"    // a balance, added up over time
	Coarser     Reason = "coarser"     // the column belongs to a dataset of which one row has many rows here
	Units       Reason = "units"       // the units differ
	Incomplete  Reason = "incomplete"  // the form lacks a part, or parts of it do not fit together
)

// FigureError is the error if a figure would mean nothing.
type FigureError struct {
	Function Function // empty for a condition
	Dataset  string
	Column   string // empty if it is not about one
	Reason   Reason
}

func (e *FigureError) Error() string {
	what := "the figure"
	if e.Column != "" {
		what = "the column " + e.Column + " of " + e.Dataset
	}

	switch e.Reason {
	case NotAFigure:
		return what + " does not contain figures, so it cannot be calculated with"
	case NotAdditive:
		return what + " does not add up: ask for its average, lowest or highest value"
	case OverTime:
		return what + " does not add up over time: ask for the latest date, or for each date"
	case Coarser:
		return what + " would be counted several times, because one of its rows has several rows here"
	case Units:
		return what + " has another unit than what it is added to or subtracted from"
	default:
		return what + " is not completely described"
	}
}

// NameError is the error if a dataset or a column does not exist.
type NameError struct {
	Dataset string
	Column  string // empty if the dataset does not exist
}

func (e *NameError) Error() string {
	if e.Column == "" {
		return "the dataset " + e.Dataset + " does not exist"
	}

	return "the dataset " + e.Dataset + " has no column " + e.Column
}
