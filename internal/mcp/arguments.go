package mcp

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/fault"
)

// The limits of arguments, in characters or items; the same as in the contract of the REST API.
const (
	maxQuestion  = 10_000
	maxStatement = 100_000
	maxPath      = 386
	maxList      = 20
	maxCursor    = 600
	maxZone      = 64
)

// arguments are the arguments of a call. Models make mistakes with the form of arguments, so a list, an object and a number may
// also be a text that contains it. The methods collect what is wrong, and check returns all of it.
type arguments struct {
	given    map[string]json.RawMessage
	problems []fault.Sub
}

func parseArguments(d definition, text json.RawMessage) (*arguments, error) {
	args := &arguments{given: map[string]json.RawMessage{}}

	if text = bytes.TrimSpace(text); len(text) > 0 && !bytes.Equal(text, []byte("null")) {
		if err := json.Unmarshal(text, &args.given); err != nil {
			return nil, fault.Wrap(err, fault.ValidationFailed, "The arguments must be an object.")
		}
	}

	maps.DeleteFunc(args.given, func(_ string, value json.RawMessage) bool { return bytes.Equal(value, []byte("null")) })

	for _, name := range slices.Sorted(maps.Keys(args.given)) {
		if _, known := d.input.Properties[name]; !known {
			args.refuse(name, "is not an argument of "+d.Name+"; it has: "+strings.Join(slices.Sorted(maps.Keys(d.input.Properties)), ", "))
		}
	}

	for _, name := range d.input.Required {
		if !args.has(name) {
			args.refuse(name, "is required")
		}
	}

	return args, args.check()
}

func (a *arguments) refuse(name, message string) {
	const most = 20

	if name, _ = shorten(name, maxZone); len(a.problems) < most {
		a.problems = append(a.problems, fault.Sub{Code: name, Message: message})
	}
}

// check returns the fault for all problems so far.
func (a *arguments) check() error {
	if len(a.problems) == 0 {
		return nil
	}

	return &fault.Error{Code: fault.ValidationFailed, Message: "The arguments are not valid.", Subs: a.problems}
}

func (a *arguments) has(name string) bool { return a.given[name] != nil }

func (a *arguments) text(name string, most int) string {
	if !a.has(name) {
		return ""
	}

	var text string

	switch err := json.Unmarshal(a.given[name], &text); {
	case err != nil:
		a.refuse(name, "must be a text")
	case utf8.RuneCountInString(text) > most:
		a.refuse(name, "may have at most "+strconv.Itoa(most)+" characters")
	case strings.ContainsRune(text, 0):
		a.refuse(name, "must not contain a zero character")
	}

	return text
}

// unquoted returns an argument, or the content of a text that contains it.
func (a *arguments) unquoted(name string) json.RawMessage {
	var text string
	if json.Unmarshal(a.given[name], &text) == nil && json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}

	return a.given[name]
}

func (a *arguments) list(name string) (items []string) {
	if !a.has(name) {
		return nil
	}

	if json.Unmarshal(a.unquoted(name), &items) != nil {
		a.refuse(name, "must be a list of texts")
	}

	for _, item := range items {
		if item == "" || len(item) > maxPath {
			a.refuse(name, "has a name that is empty or too long")
		}
	}

	return items
}

func (a *arguments) integer(name string, fallback, least, most int) int {
	if !a.has(name) {
		return fallback
	}

	var number int
	if json.Unmarshal(a.unquoted(name), &number) != nil || number < least || number > most {
		a.refuse(name, "must be a whole number from "+strconv.Itoa(least)+" to "+strconv.Itoa(most))
	}

	return number
}

func (a *arguments) moment(name string) (at time.Time) {
	text := a.text(name, maxZone)
	if text == "" {
		return at
	}

	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		a.refuse(name, "must be an RFC 3339 time such as 2026-11-01T00:00:00Z")
	}

	return at
}

// id returns an id. One in another form names nothing, like an id that does not exist.
func (a *arguments) id(name string) uuid.UUID {
	text := a.text(name, maxPath)
	if id, err := uuid.Parse(text); err == nil && id.String() == text {
		return id
	}

	return uuid.Nil
}

// value returns an argument of any form; numbers keep their digits.
func (a *arguments) value(name string) (value any) {
	if !a.has(name) {
		return nil
	}

	decoder := json.NewDecoder(bytes.NewReader(a.unquoted(name)))
	decoder.UseNumber()

	if decoder.Decode(&value) != nil {
		a.refuse(name, "is not valid JSON")
	}

	return value
}

// namespace returns the namespace of the argument with this name: name, or owner/name.
func (a *arguments) namespace() (at catalog.Path) {
	const name = "namespace"

	text := strings.Trim(a.text(name, maxPath), "/")
	if text == "" {
		return at
	}

	parts := strings.Split(text, "/")
	if len(parts) == 1 {
		parts = append([]string{auth.Self}, parts...)
	}

	if len(parts) != 2 { //nolint:mnd // owner and name
		a.refuse(name, "must be the name of one of your namespaces, or owner/name")

		return at
	}

	return catalog.Path{Username: parts[0], Namespace: parts[1]}
}

// dataset returns a dataset: namespace/name, or owner/namespace/name.
func (a *arguments) dataset(name string) catalog.Path {
	parts := strings.Split(strings.TrimPrefix(a.text(name, maxPath), scheme), "/")
	if len(parts) == 2 { //nolint:mnd // namespace and name
		parts = append([]string{auth.Self}, parts...)
	}

	if len(parts) != 3 || slices.Contains(parts, "") { //nolint:mnd // owner, namespace and name
		a.refuse(name, "must be owner/namespace/name, or namespace/name for one of your own; list_datasets shows the names")

		return catalog.Path{}
	}

	return catalog.Path{Username: parts[0], Namespace: parts[1], Dataset: parts[2]}
}
