package main

import (
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/google/uuid"
)

const (
	leastID  = 4  // characters of the beginning of an id that names something
	shortID  = 13 // characters that lists show; in our ids they are the millisecond of the creation
	manyIDs  = 10 // candidates that are listed
	hexDigit = "0123456789abcdef-"
)

// listed is something that has an id, and how a list of candidates describes it.
type listed struct {
	id    uuid.UUID
	about string
}

// findID returns the id that text names: a whole id, or the beginning of exactly one of the ids in the list, which is read only
// for a beginning.
func findID[T any](text, hint string, items iter.Seq2[T, error], of func(T) listed) (uuid.UUID, error) {
	if id, err := uuid.Parse(text); err == nil {
		return id, nil
	}

	begins := strings.ToLower(text)
	if len(text) < leastID || strings.Trim(begins, hexDigit) != "" {
		return uuid.Nil, exitError{exitNotFound, fmt.Sprintf("%q is not an id, nor the first %d or more characters of one", text, leastID), hint + "."}
	}

	var found []listed

	for item, err := range items {
		if err != nil {
			return uuid.Nil, err
		}

		if one := of(item); strings.HasPrefix(one.id.String(), begins) {
			found = append(found, one)
		}
	}

	switch len(found) {
	case 0:
		return uuid.Nil, exitError{exitNotFound, fmt.Sprintf("no id begins with %q", text), hint + "."}
	case 1:
		return found[0].id, nil
	}

	lines := []string{"Write more of it:"}

	for _, one := range found[:min(manyIDs, len(found))] {
		lines = append(lines, strings.TrimRight(fmt.Sprintf("  %s  %s", one.id, one.about), " "))
	}

	if more := len(found) - manyIDs; more > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more", more))
	}

	return uuid.Nil, exitError{exitUsage, fmt.Sprintf("%d ids begin with %q", len(found), text), strings.Join(lines, "\n")}
}

// findNamed is findID for something that has a name too, which nothing has that the caller gave.
func findNamed[T any](kind, text, hint string, items iter.Seq2[T, error], of func(T) listed) (uuid.UUID, error) {
	id, err := findID(text, hint, items, of)
	if absent, is := errors.AsType[exitError](err); is && absent.code == exitNotFound {
		absent.text = fmt.Sprintf("you have no %s with the name or id %q", kind, text)

		return uuid.Nil, absent
	}

	return id, err
}

// shortened returns the rows of a table with the beginnings of the ids in the first column, if these are different.
func shortened(rows [][]any) [][]any {
	seen := map[string]bool{}

	for _, row := range rows {
		id, is := row[0].(uuid.UUID)
		if !is || seen[id.String()[:shortID]] {
			return rows
		}

		seen[id.String()[:shortID]] = true
	}

	for _, row := range rows {
		row[0] = fmt.Sprint(row[0])[:shortID]
	}

	return rows
}
